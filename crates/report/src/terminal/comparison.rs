//! Two runs side by side on a terminal: for each lane what each figure was,
//! what it is, and whether that is a difference.

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::compare::{Basis, Chance, Change, Comparison, Direction, LaneChange};
use crate::figure::{LOST, Unit};
use crate::written;

/// The comparison as text, every line ending in a newline.
pub(crate) fn render(comparison: &Comparison, paint: Paint, room: usize) -> String {
    let mut out = String::new();
    let mut say = |text: &str, style: Style| {
        for line in wrap(&printable(text), room) {
            line_of(&mut out, &paint.apply(style, &line));
        }
    };
    for difference in &comparison.differences {
        say(&format!("Not alike: {difference}."), Style::Notice);
    }
    say(&summary(comparison), Style::Bold);
    for sentence in how_judged(comparison) {
        say(&sentence, Style::Dim);
    }
    for lane in &comparison.lanes {
        out.push('\n');
        of_lane(lane, paint, room, &mut out);
    }
    for (names, which) in [
        (&comparison.only_in_first, "first"),
        (&comparison.only_in_second, "second"),
    ] {
        if !names.is_empty() {
            out.push('\n');
            let text = format!("Only in the {which} run: {}", printable(&names.join(", ")));
            for line in wrap(&text, room) {
                line_of(&mut out, &line);
            }
        }
    }
    out
}

/// What a difference had to show to be called one, and what would decide the others.
fn how_judged(comparison: &Comparison) -> Vec<String> {
    let played = || {
        let lanes = comparison.lanes.iter();
        lanes.filter(|lane| !lane.changes.is_empty())
    };
    let of = |wanted: fn(Basis) -> bool| played().map(|lane| lane.basis).find(|&it| wanted(it));
    let mut said = Vec::new();
    if comparison.paired {
        said.push("Both runs met the same network conditions.".to_owned());
    }
    if let Some(basis) = of(Basis::is_enough) {
        said.push(format!(
            "{} Any figure of any lane is called better or worse by chance in at most one \
             comparison of twenty. An interval is its figure's own: of many, some leave out zero \
             by chance.",
            units(basis, comparison.paired)
        ));
    }
    let undecided = "what chance does is not known, and nothing is called better or worse";
    if of(|it| it == Basis::TooLittle).is_some() {
        said.push(format!(
            "Too little was played in one run or both: {undecided}. → --seeds 5 or more, the same \
             number in both (or --for 5min of one seed in both)."
        ));
    }
    if of(|it| it == Basis::Unlike).is_some() {
        said.push(format!(
            "One run has more seeds, or more play of few seeds, than the other: {undecided}. → the \
             same --seeds and --for in both."
        ));
    }
    let mut changes = played().flat_map(|lane| &lane.changes);
    if changes.any(|change| change.chance == Chance::Unknown) {
        said.push(format!(
            "Beside {} nothing shows what chance does: figures there are equal or undecided. What \
             is the most of a run (worst, freeze) is so always.",
            written::NOTHING
        ));
    }
    said
}

/// What of the runs is compared with what.
fn units(basis: Basis, is_paired: bool) -> String {
    match basis {
        Basis::Seeds(seeds) if is_paired => format!("Their {seeds} seeds are compared one by one."),
        Basis::Seeds(seeds) => {
            format!("The {seeds} seeds of each run are compared one by one, in their order.")
        }
        Basis::Stretches(stretches) => format!(
            "Their {stretches} stretches of ten seconds are compared one by one; --seeds 5 on both \
             shows other network conditions, too."
        ),
        Basis::Unlike | Basis::TooLittle => String::new(),
    }
}

/// `3 lanes compared. better: kcp · worse: enet · no difference shown: quic`.
fn summary(comparison: &Comparison) -> String {
    let mut parts = Vec::new();
    for (wanted, word) in [
        ("better", "better"),
        ("worse", "worse"),
        ("mixed", "mixed"),
        ("same", "no difference shown"),
        ("equal", "equal"),
        ("unknown", "undecided"),
    ] {
        let names: Vec<&str> = comparison
            .lanes
            .iter()
            .filter(|lane| outcome(lane) == wanted)
            .map(|lane| lane.lane.as_str())
            .collect();
        if !names.is_empty() {
            parts.push(format!("{word}: {}", names.join(", ")));
        }
    }
    let many = comparison.lanes.len();
    format!(
        "{many} lane{} compared. {}",
        if many == 1 { "" } else { "s" },
        parts.join(" · ")
    )
}

/// What all figures of a lane say together. Where none became better or worse it is
/// what the first says, the share in time, unless that is equal by itself alone.
fn outcome(lane: &LaneChange) -> &'static str {
    let any = |direction| {
        lane.changes
            .iter()
            .any(|change| change.direction == direction)
    };
    match (any(Direction::Better), any(Direction::Worse)) {
        (true, true) => "mixed",
        (true, false) => "better",
        (false, true) => "worse",
        (false, false) => match lane.changes.first().map(|change| change.direction) {
            Some(Direction::Same) => "same",
            Some(Direction::Equal) if !any(Direction::Unknown) => "equal",
            _ => "unknown",
        },
    }
}

fn of_lane(lane: &LaneChange, paint: Paint, room: usize, out: &mut String) {
    let columns = vec![
        Column::words(&printable(&lane.lane)),
        Column::numbers("first", ""),
        Column::numbers("second", ""),
        Column::numbers("change", ""),
        Column::numbers("95 % interval", ""),
        Column::words(""),
    ];
    let rows = lane
        .changes
        .iter()
        .map(|change| Row::Cells(cells(change)))
        .collect();
    Grid { columns, rows }.render(paint, out);
    for difference in &lane.differences {
        for line in wrap(&printable(difference), room - 2) {
            line_of(out, &format!("  {}", paint.apply(Style::Notice, &line)));
        }
    }
}

fn cells(change: &Change) -> Vec<Cell> {
    let figure = change.figure;
    let (word, style) = match change.direction {
        Direction::Same => ("not shown", Style::Dim),
        Direction::Equal => ("equal", Style::Dim),
        Direction::Better => ("better", Style::Good),
        Direction::Worse => ("worse", Style::Bad),
        Direction::Unknown => ("undecided", Style::Dim),
    };
    vec![
        Cell::new(
            format!("  {} {}", figure.heading(), figure.unit_label()),
            Style::Plain,
        ),
        Cell::new(figure.written(change.before), Style::Plain),
        Cell::new(figure.written(change.after), Style::Plain),
        Cell::new(difference(change), style),
        Cell::new(chance(change), Style::Dim),
        Cell::new(word, style),
    ]
}

/// The interval as `−1.2 … +0.3`.
fn chance(change: &Change) -> String {
    let signed = |value: f64| {
        let size = change.figure.written_spread(value.abs());
        let sign = match value {
            below if below < 0.0 => "−",
            above if above > 0.0 => "+",
            _ => return "0".to_owned(),
        };
        size.replacen('±', sign, 1)
    };
    match change.chance {
        Chance::Interval(low, high) => format!("{} … {}", signed(low), signed(high)),
        Chance::Lost => LOST.to_owned(),
        Chance::Unknown => written::NOTHING.to_owned(),
    }
}

/// The change with its sign: shares in points, all else also as a factor
/// where it is a large one.
fn difference(change: &Change) -> String {
    let difference = change.after - change.before;
    if !difference.is_finite() {
        return written::NOTHING.to_owned();
    }
    if difference.abs() < f64::EPSILON {
        return "0".to_owned();
    }
    let sign = if difference < 0.0 { "−" } else { "+" };
    let size = match change.figure.unit() {
        Unit::Share => return format!("{sign}{} pt", written::factor(difference.abs() * 100.0)),
        Unit::Count => return format!("{sign}{}", change.figure.written(difference.abs())),
        _ => change.figure.written(difference.abs()),
    };
    if change.before > 0.0 && change.after > 0.0 {
        let per_cent = difference / change.before * 100.0;
        if per_cent.abs() < 1000.0 {
            return format!("{sign}{size} ({sign}{:.1} %)", per_cent.abs());
        }
    }
    format!("{sign}{size}")
}
