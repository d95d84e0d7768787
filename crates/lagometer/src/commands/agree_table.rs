//! What `lagometer agree --testbed kernel` prints: a table that is Markdown, too,
//! and below it the first message of each lane that differs.

use std::fmt::Write as _;
use std::time::Duration;

use lagometer_results::{Disagreement, ExactFigures, MessageAgreement, WITHIN};

/// What was found of a lane over one network.
pub(super) struct Row {
    pub(super) network: String,
    pub(super) lane: String,
    /// In `sim` and on the kernel.
    pub(super) figures: [ExactFigures; 2],
    pub(super) messages: MessageAgreement,
    /// What does not agree as it should.
    pub(super) beyond: Vec<&'static str>,
    /// The first message that differs.
    pub(super) first: Option<First>,
}

/// The first message of a lane that differs.
pub(super) struct First {
    pub(super) seed: u64,
    pub(super) what: Disagreement,
    /// Where the packets part, if that is known.
    pub(super) parting: Option<String>,
}

impl Row {
    /// Whether it agrees, and what does not.
    pub(super) fn verdict(&self) -> String {
        if self.beyond.is_empty() {
            "yes".to_owned()
        } else {
            format!("NO: {}", self.beyond.join(", "))
        }
    }
}

/// So many seeds, in words.
pub(super) fn seeds_in_words(seeds: u32) -> String {
    match seeds {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    }
}

/// What stands above the rows.
pub(super) fn headings(version: &str, seeds: u32, each: &str, tolerance: Duration) -> String {
    let seeds = seeds_in_words(seeds);
    let names = [
        "network",
        "lane",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        &format!("within {} ms, %", WITHIN.as_millis()),
        "messages",
        "agrees",
    ];
    format!(
        "`sim` / Linux {version} (difference), {seeds} of {each}; messages whose round trips \
         agree within {} ms; TCP in `sim` with a clock that stands still between packets of one \
         instant, as a guest's does, and BBR with the phases that the kernel drew, as far as \
         they can be inferred from its play:\n\n{}{}",
        tolerance.as_millis(),
        line(&names.map(str::to_owned)),
        "| --- ".repeat(names.len()) + "|\n"
    )
}

/// A lane's line.
pub(super) fn row(row: &Row) -> String {
    let [one, other] = &row.figures;
    let pair = |nth: usize| [one.quantiles_ms[nth], other.quantiles_ms[nth]];
    let shares = [one.within, other.within].map(|share| 100.0 * share);
    line(&[
        row.network.clone(),
        row.lane.clone(),
        apart_in_ms(pair(0)),
        apart_in_share(pair(1)),
        apart_in_share(pair(2)),
        format!(
            "{:.2} / {:.2} ({:+.2})",
            shares[0],
            shares[1],
            shares[1] - shares[0]
        ),
        format!(
            "{:.2} % of {}",
            100.0 * row.messages.share(),
            row.messages.messages
        ),
        row.verdict(),
    ])
}

/// What is said below the table of a lane whose messages do not all agree.
pub(super) fn notes(row: &Row) -> String {
    let mut text = String::new();
    let Some(first) = &row.first else {
        return text;
    };
    let missed = row.messages.messages - row.messages.agreeing;
    let [sim, kernel] = first.what.round_trips.map(in_words);
    let _ = writeln!(
        text,
        "{} {}: {missed} not, first of seed {} message {} at {:.3} s: {sim}, kernel {kernel}",
        row.network,
        row.lane,
        first.seed,
        first.what.number,
        first.what.intended.as_nanos() as f64 / 1e9,
    );
    text += first.parting.as_deref().unwrap_or_default();
    text
}

fn line(cells: &[String; 8]) -> String {
    const WIDTHS: [usize; 8] = [16, 9, 24, 30, 30, 24, 18, 6];
    let mut text = String::new();
    for (cell, width) in cells.iter().zip(WIDTHS) {
        let _ = write!(text, "| {cell:width$} ");
    }
    text + "|\n"
}

/// Both values and by how much the second is larger, in milliseconds.
fn apart_in_ms(values: [Option<f64>; 2]) -> String {
    match values {
        [Some(one), Some(other)] if one.is_finite() && other.is_finite() => {
            format!("{one:.2} / {other:.2} ({:+.2})", other - one)
        }
        values => both(values),
    }
}

/// Both values and by how much the second is larger, in hundredths of the first.
fn apart_in_share(values: [Option<f64>; 2]) -> String {
    match values {
        [Some(one), Some(other)] if one.is_finite() && other.is_finite() && one > 0.0 => {
            format!(
                "{one:.1} / {other:.1} ({:+.1} %)",
                100.0 * (other / one - 1.0)
            )
        }
        values => both(values),
    }
}

fn both(values: [Option<f64>; 2]) -> String {
    let [one, other] = values.map(|value| match value {
        None => "-".to_owned(),
        Some(ms) if ms.is_finite() => format!("{ms:.1}"),
        Some(_) => "lost".to_owned(),
    });
    format!("{one} / {other}")
}

fn in_words(round_trip: Option<Duration>) -> String {
    round_trip.map_or_else(
        || "lost".to_owned(),
        |round_trip| format!("{:.3} ms", round_trip.as_secs_f64() * 1e3),
    )
}

#[cfg(test)]
mod tests {
    use lagometer_results::{MessageRecord, message_agreement};
    use lagometer_units::Time;

    use super::*;

    fn found() -> Row {
        let record = |ms| MessageRecord {
            returned: Some(Time::from_millis(ms)),
            ..MessageRecord::due(Time::ZERO)
        };
        let (one, other) = ([record(50), record(100)], [record(60), record(100)]);
        let messages = message_agreement(&one, &other, Duration::from_millis(1));
        Row {
            network: "loss-5".to_owned(),
            lane: "kcp".to_owned(),
            figures: [ExactFigures::of(&one), ExactFigures::of(&other)],
            messages,
            beyond: vec!["p50", "messages"],
            first: messages.first.map(|what| First {
                seed: 3,
                what,
                parting: Some("the packets\n".to_owned()),
            }),
        }
    }

    #[test]
    fn a_row_has_both_values_their_difference_and_what_is_beyond() {
        let row = row(&found());
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..3], ["loss-5", "kcp"]);
        assert_eq!(cells[3], "50.00 / 60.00 (+10.00)");
        assert_eq!(cells[4], "100.0 / 100.0 (+0.0 %)");
        assert_eq!(cells[6], "100.00 / 100.00 (+0.00)");
        assert_eq!(cells[7..9], ["50.00 % of 2", "NO: p50, messages"]);
        let heading = headings("6.1.1", 2, "60s", Duration::from_millis(1));
        let columns = |text: &str| text.matches('|').count();
        let lines: Vec<&str> = heading.lines().collect();
        assert_eq!(columns(lines[2]), columns(&row));
        assert_eq!(columns(lines[3]), columns(&row));
    }

    #[test]
    fn a_lane_that_differs_is_reported_with_its_first_message_and_packets() {
        let text = notes(&found());
        let first = "1 not, first of seed 3 message 0 at 0.000 s: 50.000 ms, kernel 60.000 ms";
        assert!(text.contains(first), "{text}");
        assert!(text.ends_with("\nthe packets\n"), "{text}");
    }

    #[test]
    fn quantiles_that_were_lost_are_said_to_be() {
        let lost = Some(f64::INFINITY);
        assert_eq!(apart_in_share([Some(5.0), lost]), "5.0 / lost");
        assert_eq!(apart_in_ms([lost, lost]), "lost / lost");
        assert_eq!(apart_in_ms([None, None]), "- / -");
    }
}
