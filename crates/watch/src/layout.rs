//! Where the parts of a run's view are.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::LaneView;
use crate::draw::{number, span, width};

/// Columns to the right of the graphs: the title, how wide, and what is in them.
pub(crate) type Column = (&'static str, u16, fn(&LaneView) -> String);

/// The most useful first: where there is little room, the others are left out.
pub(crate) const COLUMNS: [Column; 5] = [
    ("now", 9, |lane| {
        lane.now.latest.map_or_else(String::new, span)
    }),
    ("freezes", 9, |lane| {
        match (lane.now.freezes, lane.now.latest) {
            // Nothing came of which it is known.
            (0, None) => "–".to_owned(),
            (freezes, _) => freezes.to_string(),
        }
    }),
    ("longest", 9, |lane| match lane.now.longest {
        Duration::ZERO => "–".to_owned(),
        longest => span(longest),
    }),
    ("frozen", 9, |lane| match lane.now.frozen {
        Duration::ZERO => "–".to_owned(),
        frozen => span(frozen),
    }),
    ("back", 9, |lane| number(f64::from(lane.now.returned))),
];

/// The least columns of names: as many as `link down` has.
const LEAST_NAMES: u16 = 9;

/// The least columns of a graph that show anything.
const LEAST_GRAPH: u16 = 16;

/// Where things are: names, graphs, and how many columns are to their right.
pub(crate) struct Layout {
    pub(crate) names: u16,
    pub(crate) graph: u16,
    pub(crate) columns: usize,
}

impl Layout {
    pub(crate) fn of(lanes: &[LaneView], area: Rect) -> Self {
        let longest = lanes.iter().map(|lane| width(&lane.name)).max();
        let names = longest
            .unwrap_or(0)
            .clamp(LEAST_NAMES, 20)
            .min(area.width / 3)
            + 2;
        let mut columns = COLUMNS.len();
        let of = |columns: usize| COLUMNS[..columns].iter().map(|it| it.1).sum::<u16>();
        while columns > 0 && names + LEAST_GRAPH + of(columns) > area.width {
            columns -= 1;
        }
        Self {
            names,
            graph: area.width.saturating_sub(names + of(columns)),
            columns,
        }
    }

    pub(crate) fn name(&self, area: Rect) -> Rect {
        Rect {
            width: self.names.saturating_sub(2),
            ..area
        }
    }

    pub(crate) fn graph(&self, area: Rect) -> Rect {
        Rect {
            x: area.x + self.names.min(area.width),
            width: self.graph,
            ..area
        }
    }

    /// All that is to the right of the graphs.
    pub(crate) fn rest(&self, area: Rect) -> Rect {
        let x = (area.x + self.names + self.graph).min(area.right());
        Rect {
            x,
            width: area.right() - x,
            ..area
        }
    }

    pub(crate) fn column(&self, area: Rect, nth: usize) -> Rect {
        let before: u16 = COLUMNS[..nth].iter().map(|it| it.1).sum();
        let rest = self.rest(area);
        let x = (rest.x + before).min(area.right());
        let width = COLUMNS[nth].1.min(area.right() - x);
        Rect { x, width, ..area }
    }
}
