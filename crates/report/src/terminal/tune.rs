//! A search for settings on a terminal: a row for each lane, what was chosen and what
//! matters, and the lanes to paste.

use std::fmt::Write as _;

use lagometer_results::{Tune, TuneFinding, TunedFigure, TunedLane};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::cost::{amount, megabytes};
use crate::tuned::{
    change, change_interval, choice, finding, goal, goal_in_words, lanes_to_paste, limits,
    what_matters,
};
use crate::written;

/// Appends the search.
pub(crate) fn render(tune: &Tune, paint: Paint, room: usize, out: &mut String) {
    paragraph(&conditions(tune), Style::Dim, paint, room, out);
    out.push('\n');
    let mut grid = grid(tune);
    let has_cost = grid.width() <= room;
    if !has_cost {
        leave_cost(&mut grid);
    }
    grid.render(paint, out);
    out.push('\n');
    for lane in &tune.lanes {
        of_lane(tune, lane, !has_cost, (paint, room), out);
    }
    let found = lanes_to_paste(tune);
    if !found.is_empty() {
        line_of(
            out,
            &paint.apply(
                Style::Dim,
                "# What was found, to be pasted into an experiment:",
            ),
        );
    }
    for line in found.lines() {
        line_of(out, &printable(line));
    }
}

/// What was searched and what judged, in a sentence or two.
fn conditions(tune: &Tune) -> String {
    let networks: Vec<String> = tune
        .networks
        .iter()
        .map(|network| match (network.held_out, tune.networks.len()) {
            (true, _) => format!("{} (held out)", network.name),
            (false, 1) => network.name.clone(),
            (false, _) => format!("{} ({:.0} %)", network.name, network.weight * 100.0),
        })
        .collect();
    let limits = match tune.limits.as_slice() {
        [] => String::new(),
        limits => format!(" with {}", limits.join(", ")),
    };
    format!(
        "{}{limits} on {}: {} candidates on seeds {}, {} of play; judged on seeds {} that the \
         search never played.",
        goal_in_words(&tune.goal),
        networks.join(", "),
        tune.candidates,
        range(&tune.search_seeds),
        written::play_time(tune.played_s),
        range(&tune.held_out_seeds),
    )
}

fn range(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] => format!("{first}–{last}"),
        [only] => only.to_string(),
        [] => written::NOTHING.to_owned(),
    }
}

/// Columns before those of what a lane costs.
const WITHOUT_COST: usize = 5;

/// Takes what lanes cost out of a table that is too wide.
fn leave_cost(grid: &mut Grid) {
    grid.columns.truncate(WITHOUT_COST);
    for row in &mut grid.rows {
        if let Row::Cells(cells) = row {
            cells.truncate(WITHOUT_COST);
        }
    }
}

/// A figure as it was and as found; once where nothing was changed.
fn both(lane: &TunedLane, figure: &TunedFigure, write: fn(f64) -> String) -> String {
    let written = |value: Option<f64>| value.map_or(written::NOTHING.to_owned(), write);
    if lane.finding == TuneFinding::Same {
        written(figure.before)
    } else {
        format!("{} → {}", written(figure.before), written(figure.found))
    }
}

fn grid(tune: &Tune) -> Grid {
    let columns = vec![
        Column::words("lane"),
        Column::numbers("as it was", ""),
        Column::numbers("tuned", ""),
        Column::numbers("change", "95 %"),
        Column::words(""),
        Column::numbers("bytes", "× payload"),
        Column::numbers("p99", "ms"),
    ];
    let rows = tune.lanes.iter().map(|lane| {
        let style = match lane.finding {
            TuneFinding::Better => Style::Good,
            TuneFinding::Worse => Style::Bad,
            TuneFinding::NotDistinguished | TuneFinding::Same => Style::Dim,
        };
        let plain = |text: String| Cell::new(text, Style::Plain);
        let changed = match lane.goal.difference {
            Some(difference) => format!(
                "{} {}",
                change(&tune.goal, difference),
                change_interval(&tune.goal, &lane.goal)
            ),
            None => String::new(),
        };
        Row::Cells(vec![
            Cell::new(printable(&lane.lane), Style::Bold),
            plain(goal(&tune.goal, lane.goal.before)),
            plain(goal(&tune.goal, lane.goal.found)),
            plain(changed),
            Cell::new(finding(lane.finding), style),
            plain(both(lane, &lane.overhead, written::factor)),
            plain(both(lane, &lane.p99_ms, written::milliseconds)),
        ])
    });
    Grid {
        rows: rows.collect(),
        columns,
    }
}

fn of_lane(
    tune: &Tune,
    lane: &TunedLane,
    with_cost: bool,
    (paint, room): (Paint, usize),
    out: &mut String,
) {
    let text = |what: Option<f64>| goal(&tune.goal, what);
    let mut lines = vec![format!("{}: {}", lane.lane, choice(lane))];
    if with_cost {
        lines.push(format!(
            "  {} × the payload, p99 {}",
            both(lane, &lane.overhead, written::factor),
            both(lane, &lane.p99_ms, written::milliseconds_with_unit)
        ));
    }
    lines.extend(player_hour(lane));
    lines.push(format!(
        "  moves the goal most: {}",
        what_matters(&tune.goal, lane)
    ));
    lines.push(format!(
        "  on the seeds it was searched on {}, held out {}; as it was {} and {}",
        text(lane.goal.found_searched),
        text(lane.goal.found),
        text(lane.goal.before_searched),
        text(lane.goal.before)
    ));
    for transfer in &lane.transfer {
        lines.push(format!(
            "  on {}, which its search never played: {} instead of {} {}",
            transfer.network,
            text(transfer.goal.found),
            text(transfer.goal.before),
            change_interval(&tune.goal, &transfer.goal)
        ));
    }
    lines.extend(limits(tune, lane).map(|said| format!("  {said}")));
    for (nth, line) in lines.iter().enumerate() {
        let style = if nth == 0 { Style::Plain } else { Style::Dim };
        paragraph(line, style, paint, room, out);
    }
    frontier(lane, paint, room, out);
    out.push('\n');
}

/// What a player's hour takes and costs, as it was and tuned.
fn player_hour(lane: &TunedLane) -> Option<String> {
    let bytes = lane.bytes_per_player_hour.as_ref()?;
    let mut said = format!("  a player's hour: {} MB", both(lane, bytes, megabytes));
    if let Some(money) = &lane.money_per_player_hour {
        let amount = both(lane, money, amount);
        let currency = lane.currency.as_deref().unwrap_or("of its price list");
        let _ = write!(said, ", {amount} {currency} for 1000 hours");
    }
    Some(said)
}

/// The frontier in figures: bytes and delay of each point.
fn frontier(lane: &TunedLane, paint: Paint, room: usize, out: &mut String) {
    if lane.frontier.len() < 2 {
        return;
    }
    let points: Vec<String> = lane
        .frontier
        .iter()
        .map(|point| {
            let delay = point.p99_ms.map(written::milliseconds_with_unit);
            let delay = delay.unwrap_or_else(|| "endless".to_owned());
            format!("{} × {delay}", written::factor(point.overhead))
        })
        .collect();
    let text = format!(
        "  frontier of bytes and p99, means over seeds: {}",
        points.join(" · ")
    );
    paragraph(&text, Style::Dim, paint, room, out);
}

fn paragraph(text: &str, style: Style, paint: Paint, room: usize, out: &mut String) {
    let indent = text.len() - text.trim_start().len();
    let printable = printable(text.trim_start());
    for line in wrap(&printable, room.saturating_sub(indent)) {
        line_of(
            out,
            &paint.apply(style, &format!("{}{line}", " ".repeat(indent))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lagometer_results::TuneNetwork;

    #[test]
    fn what_was_found_is_shown_beside_what_was_and_can_be_pasted() {
        let tune = Tune {
            goal: "within_150ms".to_owned(),
            networks: vec![TuneNetwork {
                name: "busy-wifi".to_owned(),
                weight: 1.0,
                held_out: false,
            }],
            search_seeds: vec![1, 2],
            held_out_seeds: vec![3, 4],
            lanes: vec![TunedLane {
                lane: "kcp".to_owned(),
                preset: "kcp".to_owned(),
                settings: serde_json::json!({ "resend": 1 }),
                toml: "[[lane]]\nname = \"kcp-tuned\"\n".to_owned(),
                finding: TuneFinding::Better,
                goal: TunedFigure {
                    before: Some(0.98),
                    found: Some(0.99),
                    difference: Some(0.01),
                    difference_interval: Some([0.005, 0.015]),
                    ..TunedFigure::default()
                },
                ..TunedLane::default()
            }],
            ..Tune::default()
        };
        let mut out = String::new();
        render(&tune, Paint { colour: false }, 80, &mut out);
        assert!(
            out.contains("98.00 %  99.00 %  +1.00 [+0.50, +1.50]  better"),
            "{out}"
        );
        assert!(out.contains("kcp: resend = 1"), "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        assert!(out.contains("[[lane]]\nname = \"kcp-tuned\"\n"), "{out}");
    }

    #[test]
    fn silence_does_not_say_that_limits_are_kept() {
        let shown = |limits_kept| {
            let tune = Tune {
                goal: "within_150ms".to_owned(),
                limits: vec!["overhead at most 2".to_owned()],
                lanes: vec![TunedLane {
                    lane: "kcp".to_owned(),
                    limits_kept,
                    ..TunedLane::default()
                }],
                ..Tune::default()
            };
            let mut out = String::new();
            render(&tune, Paint { colour: false }, 80, &mut out);
            out
        };
        assert!(shown(Some(true)).contains("\n  all limits are kept\n"));
        assert!(shown(Some(false)).contains("\n  not all limits are kept\n"));
        assert!(shown(None).contains("\n  whether all limits are kept is not decided"));
    }
}
