//! What a player's hour takes and costs over each lane: a table under that of the lanes.

use lagometer_results::{Document, PlayerCost};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, fit, printable, wrap};
use crate::cost::{cells, headings, note};
use crate::ranking;

/// Columns a lane's name may take.
const WIDEST_NAME: usize = 28;

/// Appends the table, where there is anything for it.
pub(crate) fn render(
    document: &Document,
    limit_ms: u32,
    paint: Paint,
    room: usize,
    out: &mut String,
) {
    let lanes = ranking::in_order(document, limit_ms).into_iter();
    let costs: Vec<(&str, &PlayerCost)> = lanes
        .filter_map(|lane| Some((lane.lane.as_str(), lane.cost.as_ref()?)))
        .collect();
    let Some((_, first)) = costs.first() else {
        return;
    };
    let rows = costs.iter().map(|(name, cost)| {
        let name = fit(&printable(name), WIDEST_NAME);
        let all = std::iter::once(name).chain(cells(cost));
        let cell = |text: String| Cell::new(printable(&text), Style::Plain);
        Row::Cells(all.map(cell).collect())
    });
    let mut columns = vec![Column::words("cost")];
    let numbers = headings(first).into_iter();
    columns.extend(numbers.map(|(heading, unit)| Column::numbers(printable(&heading), unit)));
    out.push('\n');
    Grid {
        columns,
        rows: rows.collect(),
    }
    .render(paint, out);
    for line in wrap(&printable(&note(first)), room) {
        line_of(out, &paint.apply(Style::Dim, &line));
    }
}
