//! What each direction of each lane carried, where messages were not echoed, as a section
//! of the page.

use std::iter::once;

use super::figures_by_lane::FiguresByLane;
use super::view::View;
use crate::traffic::{HEADINGS, cells, note, ways};

/// Appends the section, where there is anything for it.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let Some(first) = view.lanes().find_map(|(_, lane)| lane.traffic.as_ref()) else {
        return;
    };
    let headings = once(("way", "")).chain(HEADINGS);
    let rows = view.lanes().flat_map(|(place, lane)| {
        let each = ways(lane).into_iter();
        each.map(move |(way, flow)| {
            let figures = once(way.to_owned()).chain(cells(flow));
            (place, figures.collect())
        })
    });
    let section = FiguresByLane {
        key: "traffic",
        title: "Each direction",
        note: note(first),
        headings: headings
            .map(|(heading, unit)| (heading.to_owned(), unit.to_owned()))
            .collect(),
        rows: rows.collect(),
    };
    section.render(view, out);
}
