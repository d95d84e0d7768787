//! The table of presets: what each way of setting up a transport made of the same
//! network, a row for each transport.

use lagometer_results::Document;

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, fit, printable, wrap};
use crate::by_preset::{self, figures};
use crate::written::NOTHING;

/// Appends the table to `out`; nothing where no family was played with several presets.
pub(crate) fn render(
    document: &Document,
    limit_ms: u32,
    paint: Paint,
    room: usize,
    out: &mut String,
) {
    let table = by_preset::of(document, limit_ms);
    if table.rows.is_empty() {
        return;
    }
    let presets = document.presets();
    // The third, bytes, has room on the page.
    let [within, p99, _] = figures(limit_ms);
    let figures = [within, p99];
    let mut columns = vec![Column::words("by preset")];
    for figure in figures {
        for (place, preset) in presets.iter().enumerate() {
            let heading = if place == 0 {
                figure.heading()
            } else {
                String::new()
            };
            columns.push(Column::numbers(heading, fit(preset, 7)));
        }
    }
    let rows = table.rows.iter().map(|row| {
        let mut cells = vec![Cell::new(fit(&printable(row.family), 24), Style::Plain)];
        for (place, figure) in figures.into_iter().enumerate() {
            for found in &row.presets {
                let text = found
                    .as_ref()
                    .and_then(|found| found.written(place, figure));
                let style = if text.is_some() {
                    Style::Plain
                } else {
                    Style::Dim
                };
                cells.push(Cell::new(text.unwrap_or_else(|| NOTHING.to_owned()), style));
            }
        }
        Row::Cells(cells)
    });
    let grid = Grid {
        rows: rows.collect(),
        columns,
    };
    out.push('\n');
    grid.render(paint, out);
    let marks = if table.is_judged {
        "≈ not told apart from the first, of all in this table · = the same settings"
    } else {
        "too little was played to tell presets apart · = the same settings"
    };
    let note = "the tables above show the first preset of each; default: as the library's \
                documentation shows a beginner · game: as its maintainers advise · tuned: as \
                `lagometer tune` found, with as many trials for each";
    for note in [marks, note] {
        for line in wrap(note, room) {
            line_of(out, &paint.apply(Style::Dim, &line));
        }
    }
}
