//! The table of transport properties: what each promises and what that costs, so that
//! no lane is silently advantaged.

use lagometer_results::{Document, Lane, TransportProperties};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, fit, printable, width, wrap};
use crate::ranking;
use crate::written::known_bytes;

/// The narrowest that columns of prose are wrapped to.
const NARROWEST_PROSE: usize = 12;

/// Appends the table to `out`; nothing where no lane states its terms.
pub(crate) fn render(
    document: &Document,
    limit_ms: u32,
    paint: Paint,
    room: usize,
    out: &mut String,
) {
    // Lanes on the same terms share a row.
    let mut terms: Vec<(&TransportProperties, Vec<String>)> = Vec::new();
    for lane in ranking::in_order(document, limit_ms) {
        let Some(properties) = &lane.properties else {
            continue;
        };
        let name = fit(&printable(&lane.lane), 24);
        match terms.iter_mut().find(|(other, _)| *other == properties) {
            Some((_, names)) => names.push(name),
            None => terms.push((properties, vec![name])),
        }
    }
    if terms.is_empty() {
        return;
    }
    let rows = terms
        .into_iter()
        .map(|(properties, names)| {
            Row::Cells(vec![
                Cell::new(names.join("\n"), Style::Plain),
                Cell::new(promises(properties), Style::Plain),
                Cell::new(known_bytes(properties.mtu_bytes), Style::Plain),
                Cell::new(properties.header_bytes.to_string(), Style::Plain),
                Cell::new(printable(&properties.acks), Style::Plain),
                Cell::new(printable(&properties.congestion_control), Style::Plain),
            ])
        })
        .collect();
    let columns = vec![
        Column::words("properties"),
        Column::words(""),
        Column::numbers("MTU", "B"),
        Column::numbers("head", "B"),
        Column::words("acks"),
        Column::words("congestion control"),
    ];
    let mut grid = Grid { columns, rows };
    share_out_prose(&mut grid, room);
    out.push('\n');
    grid.render(paint, out);
    let mut notes = vec![
        "R reliable · O ordered · E encrypted · head: wire bytes beyond one payload".to_owned(),
    ];
    notes.extend(peer_timeouts(document, limit_ms));
    notes.extend(varying(document).map(|lanes| {
        format!("not the same bytes when a seed is played again, yet the same figures: {lanes}")
    }));
    for line in notes.iter().flat_map(|note| wrap(&printable(note), room)) {
        line_of(out, &paint.apply(Style::Dim, &line));
    }
}

/// The lanes whose packets do not repeat to the byte in virtual time, in order; nothing
/// where all do.
fn varying(document: &Document) -> Option<String> {
    // Nothing repeats over real sockets, whatever the lane.
    document.testbed.as_deref().filter(|it| *it == "sim")?;
    let varies = |lane: &&Lane| {
        let properties = lane.properties.as_ref();
        properties.is_some_and(|it| !it.varies.is_empty())
    };
    let lanes: Vec<&str> = document
        .lanes
        .iter()
        .filter(varies)
        .map(|lane| &*lane.lane)
        .collect();
    (!lanes.is_empty()).then(|| lanes.join(", "))
}

/// After how long a silence lanes give their peer up: what most do, and who does
/// otherwise. Nothing where no lane says.
fn peer_timeouts(document: &Document, limit_ms: u32) -> Option<String> {
    let mut by_timeout: Vec<(&str, Vec<&str>)> = Vec::new();
    for lane in ranking::in_order(document, limit_ms) {
        let timeout = lane.properties.as_ref().map(|it| it.peer_timeout.as_str());
        let Some(timeout) = timeout.filter(|timeout| !timeout.is_empty()) else {
            continue;
        };
        match by_timeout.iter_mut().find(|(other, _)| *other == timeout) {
            Some((_, lanes)) => lanes.push(&lane.lane),
            None => by_timeout.push((timeout, vec![&lane.lane])),
        }
    }
    // The first of those that are as many.
    by_timeout.sort_by_key(|(_, lanes)| std::cmp::Reverse(lanes.len()));
    let ((usual, _), others) = by_timeout.split_first()?;
    let others = others
        .iter()
        .map(|(timeout, lanes)| format!("{timeout} by {}", lanes.join(", ")));
    let parts: Vec<String> = std::iter::once((*usual).to_owned()).chain(others).collect();
    Some(format!(
        "a silent peer is given up after: {}",
        parts.join(" · ")
    ))
}

/// `RO·`: a letter for each promise made, a dot for each that is not.
fn promises(properties: &TransportProperties) -> String {
    [
        (properties.reliable, 'R'),
        (properties.ordered, 'O'),
        (properties.encrypted, 'E'),
    ]
    .into_iter()
    .map(|(promised, letter)| if promised { letter } else { '·' })
    .collect()
}

/// Splits what the fixed columns leave of `room` between the two of prose, in
/// proportion to what each would take.
fn share_out_prose(grid: &mut Grid, room: usize) {
    let prose = [4, 5];
    let wanted = prose.map(|index| {
        let cells = grid.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.get(index).map(Cell::width),
            Row::Label(..) => None,
        });
        cells
            .max()
            .unwrap_or(0)
            .max(width(&grid.columns[index].heading))
    });
    for index in prose {
        grid.columns[index].widest = 0;
    }
    let headings: usize = prose
        .map(|index| width(&grid.columns[index].heading))
        .iter()
        .sum();
    let fixed = grid.width() - headings;
    let free = room.saturating_sub(fixed);
    if wanted[0] + wanted[1] <= free {
        for (index, wanted) in prose.into_iter().zip(wanted) {
            grid.columns[index].widest = wanted;
        }
        return;
    }
    let first = (free * wanted[0] / (wanted[0] + wanted[1]).max(1))
        .max(NARROWEST_PROSE)
        .min(
            free.saturating_sub(width(&grid.columns[5].heading))
                .max(NARROWEST_PROSE),
        );
    grid.columns[4].widest = first;
    grid.columns[5].widest = free.saturating_sub(first).max(NARROWEST_PROSE);
}
