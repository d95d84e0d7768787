//! Two documents of several worlds on a terminal: two rows for every cell that
//! both have, one beneath the other.

use lagometer_results::Document;

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use super::world_pair::heading;
use crate::beside::{Beside, Compared, carried, cell, compared};

/// The two as text, every line ending in a newline.
pub(crate) fn render(
    names: [&str; 2],
    documents: [&Document; 2],
    beside: &Beside<'_>,
    paint: Paint,
    room: usize,
) -> String {
    let mut out = heading(names, documents, None, paint, room);
    if let Some(words) = carried(names, documents) {
        for line in wrap(&printable(&words), room) {
            line_of(&mut out, &paint.apply(Style::Bold, &line));
        }
    }
    out.push('\n');
    let mut figures = compared(&beside.pairs);
    let mut grid = grid(names, beside, &figures);
    while grid.width() > room {
        let Some(spare) = figures.iter().position(|figure| figure.spare) else {
            break;
        };
        figures.remove(spare);
        grid = self::grid(names, beside, &figures);
    }
    grid.render(paint, &mut out);
    for (name, alone) in names.into_iter().zip(&beside.alone) {
        for world in alone {
            let words = format!("only in {name}: {}", cell(world));
            line_of(&mut out, &paint.apply(Style::Dim, &printable(&words)));
        }
    }
    out
}

fn grid(names: [&str; 2], beside: &Beside<'_>, figures: &[Compared]) -> Grid {
    let mut columns = vec![
        Column::words(""),
        Column::words(""),
        Column::words("sustained"),
    ];
    columns.extend(figures.iter().map(|figure| {
        let [heading, unit] = figure.heading.clone();
        Column::numbers(heading, unit)
    }));
    let mut rows = Vec::new();
    for &pair in &beside.pairs {
        let figures: Vec<_> = figures.iter().map(|figure| figure.cells(pair)).collect();
        for (nth, world) in pair.into_iter().enumerate() {
            let label = if nth == 0 { cell(world) } else { String::new() };
            let mut cells = vec![
                Cell::new(printable(&label), Style::Bold),
                Cell::new(printable(names[nth]), Style::Plain),
                if world.is_carried() {
                    Cell::new("yes", Style::Plain)
                } else {
                    Cell::new("no", Style::Bad)
                },
            ];
            cells.extend(figures.iter().map(|figure| {
                let (text, is_better) = &figure[nth];
                let style = if *is_better {
                    Style::Good
                } else {
                    Style::Plain
                };
                Cell::new(text, style)
            }));
            rows.push(Row::Cells(cells));
        }
    }
    Grid { columns, rows }
}
