//! Runs as text: a line as each ends, medians and spread at the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::abuse::row;
use crate::compare::{Run, What};
use crate::counters::Spread;
use crate::outcome::Outcome;

/// A figure of a run: its heading, how it is read off, its decimals.
type Column = (&'static str, fn(&Outcome) -> f64, usize);

/// What runs have in common that are put together: mode, rooms, rate, players,
/// gateway.
type Kind<'a> = (String, usize, u32, usize, &'a str);

const COLUMNS: &[Column] = &[
    ("windows/s", |o| o.windows_per_s, 1),
    ("worst", |o| o.worst_windows_per_s, 1),
    ("gap p99 ms", |o| o.gap_ms.p99, 1),
    ("worst gap ms", |o| o.gap_ms.max, 1),
    ("latency p50 ms", |o| o.latency_ms.p50, 1),
    ("p99 ms", |o| o.latency_ms.p99, 1),
    ("Mstates/s", |o| o.states_per_s / 1e6, 3),
    ("share", |o| o.states_share, 3),
    ("cpu %", |o| o.gateway_cpu_pct, 1),
    ("RSS MB", |o| o.gateway_rss_mb, 1),
    ("Mstates/cpu s", |o| o.states_per_cpu_s / 1e6, 2),
    ("MB/cpu s", |o| o.bytes_per_cpu_s / 1e6, 1),
    ("messages/s", |o| o.messages_per_s, 0),
    ("MB/s", |o| o.received_bytes_per_s / 1e6, 1),
    ("generator cpu %", |o| o.generator_cpu_pct, 1),
    ("late p99 ms", |o| o.generator_late_ms.p99, 1),
    ("missing", |o| o.missing as f64, 0),
];

/// What a gateway's bytes are compared with.
const ONLY_WRITES: &str = "a loop that only writes";

/// The other.
const READS_TOO: &str = "a loop that also reads and passes on";

/// One run on one line.
#[must_use]
pub(crate) fn line(run: &Run) -> String {
    match &run.what {
        What::Limit { mode, players } => {
            format!("{}: {mode:?} limit {players} players", run.gateway)
        }
        What::Bytes {
            mode,
            players,
            gateway_bytes_per_cpu_s,
            raw_bytes_per_cpu_s,
            reading_bytes_per_cpu_s,
        } => {
            let beside = |what: &str, bytes_per_cpu_s: f64| {
                let ratio = gateway_bytes_per_cpu_s / bytes_per_cpu_s;
                format!("; {what} {:.0}, ratio {ratio:.2}", bytes_per_cpu_s / 1e6)
            };
            format!(
                "{}: {mode:?} {players} players; {:.0} MB/cpu s{}{}",
                run.gateway,
                gateway_bytes_per_cpu_s / 1e6,
                beside(ONLY_WRITES, *raw_bytes_per_cpu_s),
                reading_bytes_per_cpu_s.map_or_else(String::new, |bytes| beside(READS_TOO, bytes)),
            )
        }
        What::Entities(seen) => format!(
            "{}: {} players see {} entities after {:.1} s; {:.0} windows/s, {:.3} of those due; \
             late p50/p99/max ms: near {}, not far {}, far {}; ticks {}; missing {}; cpu {:.1} %; RSS {:.0} MB; \
             {:.1} MB/s; generator cpu {:.1} %, late {}",
            run.gateway,
            seen.players,
            seen.entities,
            seen.set_up_s,
            seen.windows_per_s,
            seen.share,
            of(&seen.late_ms[0]),
            of(&seen.late_ms[1]),
            of(&seen.late_ms[2]),
            seen.ticks.map_or("unknown".to_owned(), |ticks| {
                let worst = ticks
                    .at_most_ms
                    .map_or(String::new(), |ms| format!(", none more than {ms:.0} ms"));
                format!(
                    "{:.1}/s, {:.1} % more than 10 ms late{worst}",
                    ticks.per_s, ticks.late_pct
                )
            }),
            seen.missing,
            seen.gateway_cpu_pct,
            seen.gateway_rss_mb,
            seen.received_bytes_per_s / 1e6,
            seen.generator_cpu_pct,
            of(&seen.generator_late_ms),
        ),
        What::Churn(seen) => format!(
            "{}: {} came and went, {:.0} a second; who stayed was answered after p50/p99/max ms {}; \
             cpu {:.1} %; RSS {:.1} MB, {:.1} after a tenth of them",
            run.gateway,
            seen.peers,
            seen.per_s,
            of(&seen.answer_ms),
            seen.gateway_cpu_pct,
            seen.gateway_rss_mb,
            seen.early_rss_mb,
        ),
        What::Abuse(row) => format!("{}: {}", run.gateway, row.line()),
        What::Crowd(outcome) => {
            let mut line = format!(
                "{}: {:?} {} players, {}",
                run.gateway,
                outcome.mode,
                outcome.players,
                if outcome.held {
                    "sustained"
                } else {
                    "NOT sustained"
                }
            );
            if !outcome.faults.is_empty() {
                let _ = write!(line, " ({})", outcome.faults.join(", "));
            }
            for (name, value, decimals) in COLUMNS {
                let _ = write!(line, "; {name} {:.*}", decimals, value(outcome));
            }
            line
        }
    }
}

fn of(spread: &Spread) -> String {
    format!("{:.1}/{:.1}/{:.1}", spread.p50, spread.p99, spread.max)
}

/// Median (least–most) of every figure, a row for each gateway, mode and number
/// of players, as Markdown.
#[must_use]
pub(crate) fn summary(runs: &[Run]) -> String {
    let mut crowds: BTreeMap<Kind<'_>, Vec<&Outcome>> = BTreeMap::new();
    let mut limits: BTreeMap<(String, &str), Vec<f64>> = BTreeMap::new();
    let mut ratios: BTreeMap<(String, usize, &str, &str), Vec<f64>> = BTreeMap::new();
    let mut text = String::new();
    for run in runs {
        match &run.what {
            What::Crowd(outcome) => crowds
                .entry((
                    format!("{:?}", outcome.mode),
                    outcome.rooms,
                    outcome.rate_hz,
                    outcome.players,
                    &run.gateway,
                ))
                .or_default()
                .push(outcome),
            What::Limit { mode, players } => limits
                .entry((format!("{mode:?}"), &run.gateway))
                .or_default()
                .push(*players as f64),
            What::Bytes {
                mode,
                players,
                gateway_bytes_per_cpu_s,
                raw_bytes_per_cpu_s,
                reading_bytes_per_cpu_s,
            } => {
                let bounds = [
                    (ONLY_WRITES, Some(*raw_bytes_per_cpu_s)),
                    (READS_TOO, *reading_bytes_per_cpu_s),
                ];
                for (bound, bytes_per_cpu_s) in bounds {
                    let ratio = bytes_per_cpu_s.map(|bytes| gateway_bytes_per_cpu_s / bytes);
                    ratios
                        .entry((format!("{mode:?}"), *players, &run.gateway, bound))
                        .or_default()
                        .extend(ratio);
                }
            }
            What::Abuse(_) => {}
            What::Entities(_) | What::Churn(_) => {
                let _ = writeln!(text, "{}", line(run));
            }
        }
    }
    let abuses = runs.iter().filter_map(|run| match &run.what {
        What::Abuse(row) => Some((run.gateway.as_str(), &**row)),
        _ => None,
    });
    let abuses: Vec<_> = abuses.collect();
    text.push_str(&row::table(abuses.iter().copied()));
    text.push_str(&row::missed(&abuses));
    for ((mode, players, gateway, bound), mut ratios) in ratios {
        if ratios.is_empty() {
            continue;
        }
        let spread = spread(&mut ratios, 2);
        let _ = writeln!(
            text,
            "{mode}, {players} players: {gateway} delivers {spread} of the bytes per CPU second \
             of {bound}"
        );
    }
    for ((mode, gateway), mut players) in limits {
        let spread = spread(&mut players, 0);
        let _ = writeln!(text, "{mode} limit of {gateway}: {spread} players");
    }
    if crowds.is_empty() {
        return text;
    }
    text.push_str("\n| mode | rooms | rate | players | gateway | runs | sustained |");
    for (name, ..) in COLUMNS {
        let _ = write!(text, " {name} |");
    }
    let _ = writeln!(text, "\n|{}", "---|".repeat(7 + COLUMNS.len()));
    for ((mode, rooms, rate, players, gateway), outcomes) in crowds {
        let held = outcomes.iter().filter(|outcome| outcome.held).count();
        let runs = outcomes.len();
        let _ = write!(
            text,
            "| {mode} | {rooms} | {rate} | {players} | {gateway} | {runs} | {held} |"
        );
        for (_, value, decimals) in COLUMNS {
            let mut values: Vec<f64> = outcomes.iter().map(|outcome| value(outcome)).collect();
            let _ = write!(text, " {} |", spread(&mut values, *decimals));
        }
        text.push('\n');
    }
    text
}

/// The median, and the least and most where they differ from it.
fn spread(values: &mut [f64], decimals: usize) -> String {
    values.sort_by(f64::total_cmp);
    let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
        return String::new();
    };
    let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
    let show = |value: f64| format!("{value:.decimals$}");
    if show(least) == show(most) {
        return show(median);
    }
    format!("{} ({}–{})", show(median), show(least), show(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_shown_where_there_is_one() {
        assert_eq!(spread(&mut [2.0], 1), "2.0");
        assert_eq!(spread(&mut [3.0, 1.0, 2.0], 0), "2 (1–3)");
        assert_eq!(spread(&mut [1.0, 2.0], 1), "1.5 (1.0–2.0)");
        assert_eq!(spread(&mut [], 1), "");
    }
}
