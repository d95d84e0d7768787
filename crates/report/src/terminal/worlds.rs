//! Several worlds on a terminal: how old what players see is, by transport and
//! network.

use lagometer_results::World;

use super::grid::{Cell, Column, Grid, Row};
use super::paint::{Paint, Style};
use super::world::reach;
use crate::by_network::{by_network, down_each, transport};
use crate::written::{self, milliseconds};

/// Appends the table.
pub(crate) fn render(worlds: &[World], paint: Paint, out: &mut String) {
    let Some(first) = worlds.first() else {
        return;
    };
    let mut columns = vec![Column::words("age, ms")];
    for tier in &first.tiers {
        columns.push(Column::numbers("p50", ""));
        columns.push(Column::numbers("p99", reach(first, tier)));
        columns.push(Column::numbers("p99.9", ""));
    }
    columns.push(Column::numbers("each gets", "kB/s"));
    columns.push(Column::numbers("views", "right"));
    let mut rows = Vec::new();
    for of in by_network(worlds) {
        rows.push(Row::Label(format!("on {}", of.network), Style::Bold));
        for world in &of.worlds {
            let mut cells = vec![Cell::new(format!("  {}", transport(world)), Style::Plain)];
            for tier in &world.tiers {
                for value in [tier.age_ms.p50, tier.age_ms.p99, tier.age_ms.p99_9] {
                    cells.push(match tier.samples {
                        0 => Cell::new(written::NOTHING, Style::Dim),
                        _ => Cell::new(milliseconds(value), Style::Plain),
                    });
                }
            }
            let each = down_each(world).map_or(written::NOTHING.to_owned(), |bytes| {
                format!("{:.1}", bytes / 1e3)
            });
            cells.push(Cell::new(each, Style::Plain));
            let (right, compared) = (world.sight.views_right, world.sight.views_compared);
            let style = if right == compared {
                Style::Plain
            } else {
                Style::Bad
            };
            cells.push(Cell::new(format!("{right}/{compared}"), style));
            rows.push(Row::Cells(cells));
        }
    }
    Grid { columns, rows }.render(paint, out);
}
