//! What each direction of each lane carried, where messages were not echoed: a table under
//! that of the lanes.

use lagometer_results::{Document, Lane};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, fit, printable, wrap};
use crate::ranking;
use crate::traffic::{HEADINGS, cells, note, ways};

/// Columns a lane's name may take.
const WIDEST_NAME: usize = 24;

/// Appends the table, where there is anything for it.
pub(crate) fn render(
    document: &Document,
    limit_ms: u32,
    paint: Paint,
    room: usize,
    out: &mut String,
) {
    let lanes: Vec<&Lane> = ranking::in_order(document, limit_ms)
        .into_iter()
        .filter(|lane| lane.traffic.is_some())
        .collect();
    let Some(first) = lanes.first().and_then(|lane| lane.traffic.as_ref()) else {
        return;
    };
    let rows = lanes.iter().flat_map(|lane| {
        ways(lane).into_iter().map(|(way, flow)| {
            let name = fit(&printable(&lane.lane), WIDEST_NAME);
            let words = [name, way.to_owned()];
            let all = words.into_iter().chain(cells(flow));
            Row::Cells(all.map(|text| Cell::new(text, Style::Plain)).collect())
        })
    });
    let mut columns = vec![Column::words("lane"), Column::words("way")];
    columns.extend(HEADINGS.map(|(heading, unit)| Column::numbers(heading, unit)));
    out.push('\n');
    Grid {
        columns,
        rows: rows.collect(),
    }
    .render(paint, out);
    for line in wrap(&note(first), room) {
        line_of(out, &paint.apply(Style::Dim, &line));
    }
}
