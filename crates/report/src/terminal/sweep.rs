//! A sweep on a terminal: sizes down, tests across.

use lagometer_results::Sweep;

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::instruments::sweep::figure;
use crate::written;
use crate::written::units;

/// Appends the grid, the losses, the placements, and what failed.
pub(crate) fn render(sweep: &Sweep, paint: Paint, room: usize, out: &mut String) {
    let tests = sweep.tests();
    let mut grid = Grid::default();
    grid.columns.push(Column::numbers("size", ""));
    for test in &tests {
        let (name, unit) = match test.strip_suffix("_batched") {
            Some(name) => (name, "batched"),
            None if test.ends_with("_lat") => (*test, "one way"),
            None => (*test, "received"),
        };
        grid.columns.push(Column::numbers(printable(name), unit));
    }
    for bytes in sweep.sizes() {
        let mut cells = vec![Cell::new(units::size(bytes), Style::Plain)];
        cells.extend(tests.iter().map(|test| {
            let Some(cell) = sweep.cell(test, bytes) else {
                return Cell::new(written::NOTHING, Style::Dim);
            };
            let style = if cell.failure.is_some() {
                Style::Bad
            } else {
                Style::Plain
            };
            Cell::new(figure(cell), style)
        }));
        grid.rows.push(Row::Cells(cells));
    }
    grid.render(paint, out);
    out.push('\n');
    for test in tests {
        notes_of(sweep, test, paint, room, out);
    }
    if let Some(control) = &sweep.congestion_control {
        let line = format!("TCP ran under {}.", printable(control));
        line_of(out, &paint.apply(Style::Dim, &line));
    }
}

/// Where a test ran, how it sent, what it lost, and what failed.
fn notes_of(sweep: &Sweep, test: &str, paint: Paint, room: usize, out: &mut String) {
    let cells = || sweep.cells.iter().filter(|cell| cell.test == test);
    let Some(first) = cells()
        .find(|cell| cell.failure.is_none())
        .or(cells().next())
    else {
        return;
    };
    let (sent, lost) = cells().fold((0_u64, 0_u64), |(sent, lost), cell| {
        (
            sent.saturating_add(cell.sent),
            lost.saturating_add(cell.lost),
        )
    });
    let mut note = format!("{test}: {}, {}", first.placement.in_words(), first.method);
    if lost > 0 {
        let share = written::lost_share(lost as f64 / sent.max(1) as f64);
        append!(note, ", {share} % lost");
    }
    for line in wrap(&printable(&note), room) {
        line_of(out, &paint.apply(Style::Dim, &line));
    }
    for cell in cells() {
        if let Some(why) = &cell.failure {
            let note = format!("{test} at {}: {why}", units::size(cell.size_bytes));
            for line in wrap(&printable(&note), room) {
                line_of(out, &paint.apply(Style::Bad, &line));
            }
        }
    }
}
