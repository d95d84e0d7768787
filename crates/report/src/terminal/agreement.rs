//! Virtual time beside real sockets on a terminal, lane by lane.

use lagometer_stats::{Agreement, Both, LaneAgreement};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::written::{factor, milliseconds, share};

/// The agreement as text, every line ending in a newline.
pub(crate) fn render(agreement: &Agreement, paint: Paint, room: usize) -> String {
    let mut out = String::new();
    let mut grid = Grid {
        columns: [
            ("p50", "sim ms"),
            ("p50", "emu ms"),
            ("p99", "sim ms"),
            ("p99", "emu ms"),
            ("within", "sim %"),
            ("within", "emu %"),
            ("wire", "sim ×"),
            ("wire", "emu ×"),
        ]
        .map(|(heading, unit)| Column::numbers(heading, unit))
        .into(),
        rows: Vec::new(),
    };
    grid.columns.insert(0, Column::words("lane"));
    grid.columns.push(Column::words("agrees"));
    grid.rows = agreement.lanes.iter().map(row).collect();
    grid.render(paint, &mut out);
    let permitted = agreement.tolerance;
    let mut say = |text: &str, style: Style| {
        for line in wrap(&printable(text), room) {
            line_of(&mut out, &paint.apply(style, &line));
        }
    };
    say(
        &format!(
            "sim: the mean of {} plays of the same weather that differ in the luck of single \
             packets. within: the limit at which the two are farthest apart beside that luck. \
             Permitted: medians {} ms apart, 99th percentiles {} ms or {} %, shares {} points, or \
             three standard deviations of luck; {} ms for late wake-ups.",
            agreement.plays,
            milliseconds(permitted.median_ms),
            milliseconds(permitted.p99_ms),
            factor(permitted.p99_share * 100.0),
            factor(permitted.within * 100.0),
            milliseconds(agreement.noise_ms),
        ),
        Style::Dim,
    );
    match (&agreement.invalid, agreement.holds()) {
        (Some(why), _) => say(
            &format!("NOT VALID: {why}. Nothing can be said."),
            Style::Bad,
        ),
        (None, true) => say("The two agree in every lane.", Style::Bold),
        (None, false) => say("The two do not agree.", Style::Bad),
    }
    out
}

fn row(lane: &LaneAgreement) -> Row {
    let mut cells = vec![Cell::new(printable(&lane.lane), Style::Plain)];
    let mut put = |both: Both, write: fn(f64) -> String| {
        for value in [both.first, both.second] {
            cells.push(Cell::new(write(value), Style::Plain));
        }
    };
    put(lane.median_ms, milliseconds);
    put(lane.p99_ms, milliseconds);
    put(lane.within, share);
    put(lane.overhead, factor);
    let limit = format!("(≤ {} ms)", lane.within_limit_ms);
    let (word, style) = if lane.beyond.is_empty() {
        (format!("yes {limit}"), Style::Good)
    } else {
        (
            format!("NO {limit}: {}", lane.beyond.join(", ")),
            Style::Bad,
        )
    };
    cells.push(Cell::new(printable(&word), style));
    Row::Cells(cells)
}
