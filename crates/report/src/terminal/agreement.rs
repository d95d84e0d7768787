//! Virtual time beside real sockets on a terminal, lane by lane.

use lagometer_results::{Agreement, ComparedFigure, LaneAgreement, Margin, Unit};
use lagometer_stats::{EquivalenceFinding, FEWEST_EQUIVALENCE_SEEDS, nearest_rank};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::written::{NOTHING, factor, milliseconds, share};

/// The agreement as text, every line ending in a newline.
pub(crate) fn render(agreement: &Agreement, paint: Paint, room: usize) -> String {
    let mut out = String::new();
    let [first, second] = agreement.testbeds.each_ref().map(|name| printable(name));
    let less = format!("{second} less {first}");
    let mut grid = Grid {
        columns: [
            (&*first, ""),
            (&*second, ""),
            (&*less, "90 % interval"),
            ("margin", "±"),
            ("seen from", "80 % power"),
        ]
        .map(|(heading, unit)| Column::numbers(heading, unit))
        .into(),
        rows: Vec::new(),
    };
    grid.columns.insert(0, Column::words("lane"));
    grid.columns.insert(1, Column::words("figure"));
    grid.columns.push(Column::words("equal"));
    grid.rows = agreement.lanes.iter().flat_map(rows).collect();
    grid.render(paint, &mut out);
    let mut say = |text: &str, style: Style| {
        for line in wrap(&printable(text), room) {
            line_of(&mut out, &paint.apply(style, &line));
        }
    };
    say(&notes(agreement), Style::Dim);
    let (sentence, style) = sentence(agreement);
    say(&sentence, style);
    out
}

fn notes(agreement: &Agreement) -> String {
    let margins = agreement.margins;
    format!(
        "Figures are of all messages together; differences are means of what {} seeds differ by, each \
         by its own figures{}. Equal: two one-sided tests show the true \
         difference to be within the margin, with a chance of 5 % to err. Margins: medians {}, 99th \
         percentiles {}, both and the {} ms that late wake-ups can add here, or half as much again \
         if that is less; shares {} points, at the limit where least is shown. Seen from: so small a \
         true difference is found in four runs of five. Late, by \
         the audit: what the emulator itself says that packets took too long there and back, in the \
         mean of its first seed; what the medians differ by beyond it, it does not see.",
        agreement.seeds,
        slowest(agreement.messages_of_a_seed),
        in_words(margins.median),
        in_words(margins.p99),
        milliseconds(agreement.noise_ms),
        factor(margins.within * 100.0),
    )
}

/// `10 %, at least 0.5 ms and at most 2 ms`.
fn in_words(margin: Margin) -> String {
    let mut words = format!(
        "{} %, at least {} ms",
        factor(margin.share * 100.0),
        milliseconds(margin.least_ms)
    );
    if margin.most_ms.is_finite() {
        append!(words, " and at most {} ms", milliseconds(margin.most_ms));
    }
    words
}

/// Which message a seed's 99th percentile is, where it is one of its few slowest.
fn slowest(messages: u64) -> String {
    let beyond = messages - nearest_rank(messages, 990).min(messages);
    let which = match beyond {
        0 => "slowest".to_owned(),
        1..=9 => format!("{} slowest", ordinal(beyond + 1)),
        _ => return String::new(),
    };
    format!(" (with {messages} messages its 99th percentile is its {which})")
}

fn ordinal(number: u64) -> &'static str {
    match number {
        2 => "second",
        3 => "third",
        4 => "fourth",
        5 => "fifth",
        6 => "sixth",
        7 => "seventh",
        8 => "eighth",
        9 => "ninth",
        _ => "tenth",
    }
}

/// What can be said of all lanes together.
fn sentence(agreement: &Agreement) -> (String, Style) {
    if let Some(why) = &agreement.invalid {
        return (
            format!("NOT VALID: {why}. Nothing can be said."),
            Style::Bad,
        );
    }
    if agreement.is_too_noisy() {
        return (
            format!(
                "Whether the two agree is not decided: this machine is TOO NOISY. Late wake-ups can \
                 add {} ms to a round trip, and may widen the narrowest margin by {} ms. Measure on an \
                 idle machine.",
                milliseconds(agreement.noise_ms),
                milliseconds(agreement.bearable_noise_ms),
            ),
            Style::Bad,
        );
    }
    match agreement.finding() {
        EquivalenceFinding::Equivalent => ("The two agree in every lane.".to_owned(), Style::Bold),
        EquivalenceFinding::Different => ("The two do not agree.".to_owned(), Style::Bad),
        EquivalenceFinding::Undecided => {
            let needed = agreement
                .lanes
                .iter()
                .flat_map(|lane| &lane.figures)
                .filter(|figure| figure.is.finding == EquivalenceFinding::Undecided)
                .map(|figure| figure.is.seeds_needed())
                .chain([Some(FEWEST_EQUIVALENCE_SEEDS)])
                .try_fold(0, |most: usize, needed| Some(most.max(needed?)));
            let may_differ = agreement
                .lanes
                .iter()
                .flat_map(|lane| &lane.figures)
                .any(|figure| {
                    figure.is.finding == EquivalenceFinding::Undecided
                        && figure.is.mean.abs() >= figure.is.margin
                });
            let advice = match needed {
                _ if may_differ => "play more seeds, which may show that they do not".to_owned(),
                Some(seeds) => format!("play about {seeds} seeds"),
                None => "more seeds will hardly help; play longer".to_owned(),
            };
            let said = format!("Whether the two agree is not decided by this run: {advice}.");
            (said, Style::Bad)
        }
    }
}

/// A row for each figure of a lane.
fn rows(lane: &LaneAgreement) -> Vec<Row> {
    if let Some(failure) = &lane.failure {
        let words = format!("{}: {failure}", lane.lane);
        return vec![Row::Label(printable(&words), Style::Bad)];
    }
    let row = |(index, figure): (usize, &ComparedFigure)| {
        let name = if index == 0 { &lane.lane } else { "" };
        Row::Cells(cells(name, figure))
    };
    let mut rows: Vec<Row> = lane.figures.iter().enumerate().map(row).collect();
    if let [Some(sim), Some(emu)] = lane.overhead {
        rows.push(untested(
            "bytes on the wire",
            [&factor(sim), &factor(emu), NOTHING],
        ));
    }
    if let [first, Some(second)] = lane.audited_ms {
        // Virtual time has no emulator that could be late.
        let first = first.unwrap_or(0.0);
        let less = format!("{:+.2}", second - first);
        rows.push(untested(
            "late, by the audit",
            [&milliseconds(first), &milliseconds(second), &less],
        ));
    }
    rows
}

/// A figure that is shown and not tested for being equal: of the two testbeds, and by how
/// much they differ.
fn untested(name: &str, [first, second, less]: [&str; 3]) -> Row {
    let mut cells = ["", name, first, second, less, NOTHING, NOTHING, ""]
        .map(|text| Cell::new(text, Style::Plain));
    cells[1].style = Style::Dim;
    Row::Cells(cells.into())
}

fn cells(lane: &str, figure: &ComparedFigure) -> Vec<Cell> {
    let is = figure.is;
    let (write, scale, unit): (fn(f64) -> String, f64, &str) = match figure.metric.unit() {
        // A difference of shares is given in points.
        Unit::Share => (share, 100.0, "points"),
        Unit::Milliseconds | Unit::Number => (milliseconds, 1.0, "ms"),
    };
    let written = |value: f64| {
        if value.is_infinite() {
            "lost".to_owned()
        } else {
            write(value)
        }
    };
    let apart = |value: f64| format!("{:+.2}", value * scale);
    let size = |value: f64| format!("{:.2} {unit}", value * scale);
    let (word, style) = match is.finding {
        EquivalenceFinding::Equivalent => ("yes", Style::Good),
        EquivalenceFinding::Different => ("NO", Style::Bad),
        EquivalenceFinding::Undecided => ("not decided", Style::Bad),
    };
    [
        (printable(lane), Style::Plain),
        (figure.metric.in_words(), Style::Plain),
        (written(figure.first), Style::Plain),
        (written(figure.second), Style::Plain),
        (
            format!(
                "{} ({} to {})",
                apart(is.mean),
                apart(is.low),
                apart(is.high)
            ),
            Style::Plain,
        ),
        (size(is.margin), Style::Plain),
        (size(is.smallest_detectable), Style::Plain),
        (word.to_owned(), style),
    ]
    .map(|(text, style)| Cell::new(text, style))
    .into()
}
