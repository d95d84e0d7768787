//! What a player's hour takes and costs over each lane, as a section of the page.

use super::figures_by_lane::FiguresByLane;
use super::view::View;
use crate::cost::{cells, headings, note};

/// Appends the section, where there is anything for it.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let Some(first) = view.lanes().find_map(|(_, lane)| lane.cost.as_ref()) else {
        return;
    };
    let rows = view.lanes();
    let rows = rows.filter_map(|(place, lane)| Some((place, cells(lane.cost.as_ref()?))));
    let section = FiguresByLane {
        key: "cost",
        title: "What a player costs",
        note: note(first),
        headings: headings(first),
        rows: rows.collect(),
    };
    section.render(view, out);
}
