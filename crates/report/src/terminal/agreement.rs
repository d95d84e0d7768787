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
            ("luck", "± ms"),
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
            "sim: the mean of {} plays of the same network conditions that differ in the luck of single \
             packets; luck: three standard deviations of them. within: the limit at which the \
             two come nearest to what is permitted. Permitted: medians {} ms apart, 99th percentiles {} ms or {} %, shares {} points, or \
             that luck; {} ms for late wake-ups.",
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
    let both = |both: Both| [both.first, both.second];
    let p99_ms = lane.p99_ms;
    let mut put = |values: &[f64], write: fn(f64) -> String| {
        cells.extend(
            values
                .iter()
                .map(|&value| Cell::new(write(value), Style::Plain)),
        );
    };
    put(&both(lane.median_ms), milliseconds);
    put(&[p99_ms.first, p99_ms.luck, p99_ms.second], milliseconds);
    put(&both(lane.within), share);
    put(&both(lane.overhead), factor);
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
