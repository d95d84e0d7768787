//! How the ground is cut into cells, and the cells given to servers.

use serde::{Deserialize, Serialize};

use crate::sim::vector::Vector;

/// Where a gateway's spatial channels begin: the channel of the cell in the
/// corner with the smallest coordinates.
const FIRST_CHANNEL: u32 = 0x1_0000;

/// The most columns or rows: their channels must fit before those of entities.
pub(crate) const MOST_CELLS: u32 = 600;

/// A grid of cells around the ground's centre, in blocks of one server each,
/// as a gateway's static grid controller reads it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Space {
    /// Columns and rows of cells.
    pub cells: [u32; 2],
    /// The side of each cell, metres.
    pub cell_m: f64,
    /// Columns and rows of servers; each has as many cells as the others.
    pub servers: [u32; 2],
    /// How far a player is to see, metres: the cells that a circle so large
    /// around its character touches when it comes to a cell.
    pub interest_radius_m: f64,
    /// A character that has gone so far from where its interest was last set,
    /// metres, has it set anew; only in a new cell where it is absent, as in
    /// the published tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_m: Option<f64>,
}

impl Space {
    /// How many servers simulate the world.
    #[must_use]
    pub fn server_count(&self) -> u32 {
        self.servers[0] * self.servers[1]
    }

    /// The channel of the cell that a place lies in; `None` outside all.
    #[must_use]
    pub fn cell_at(&self, place: Vector) -> Option<u32> {
        let cell_cm = self.cell_m * 100.0;
        let along = |coordinate: f64, cells: u32| {
            let low = -0.5 * f64::from(cells) * cell_cm;
            let index = ((coordinate - low) / cell_cm).floor();
            (index >= 0.0 && index < f64::from(cells)).then_some(index as u32)
        };
        let column = along(place.x, self.cells[0])?;
        let row = along(place.y, self.cells[1])?;
        Some(FIRST_CHANNEL + column + row * self.cells[0])
    }

    /// The server, counted from 0, whose block a cell's channel is in.
    #[must_use]
    pub fn server_of(&self, channel_id: u32) -> Option<u32> {
        let cell = channel_id.checked_sub(FIRST_CHANNEL)?;
        let (column, row) = (cell % self.cells[0], cell / self.cells[0]);
        if row >= self.cells[1] {
            return None;
        }
        let block = |index: u32, cells: u32, servers: u32| index / cells.div_ceil(servers);
        let [across, up] = [
            block(column, self.cells[0], self.servers[0]),
            block(row, self.cells[1], self.servers[1]),
        ];
        Some(across + up * self.servers[0])
    }

    /// Whether a channel is one of the grid's.
    #[must_use]
    pub fn is_cell(&self, channel_id: u32) -> bool {
        self.server_of(channel_id).is_some()
    }

    /// The lowest corner of a cell's channel, centimetres.
    pub(crate) fn corner_of(&self, channel_id: u32) -> Option<Vector> {
        let cell = channel_id.checked_sub(FIRST_CHANNEL)?;
        let low = |index: u32, cells: u32| {
            (f64::from(index) - 0.5 * f64::from(cells)) * self.cell_m * 100.0
        };
        self.is_cell(channel_id).then(|| {
            Vector::on_ground(
                low(cell % self.cells[0], self.cells[0]),
                low(cell / self.cells[0], self.cells[1]),
            )
        })
    }

    /// The file that describes this grid to a gateway, for its flag `-scc`.
    #[must_use]
    pub fn controller_json(&self) -> String {
        let cell_cm = self.cell_m * 100.0;
        let low = |cells: u32| -0.5 * f64::from(cells) * cell_cm;
        let json = serde_json::json!({
            "SpatialControllerType": "StaticGrid2DSpatialController",
            "Config": {
                "WorldOffsetX": low(self.cells[0]),
                "WorldOffsetZ": low(self.cells[1]),
                "GridWidth": cell_cm,
                "GridHeight": cell_cm,
                "GridCols": self.cells[0],
                "GridRows": self.cells[1],
                "ServerCols": self.servers[0],
                "ServerRows": self.servers[1],
                "ServerInterestBorderSize": 0,
            }
        });
        format!("{json:#}\n")
    }

    /// Checks what no type does; `side_m` is the ground's. The key that is
    /// wrong, and what is expected of it.
    pub(crate) fn check(&self, side_m: f64) -> Result<(), (&'static str, String)> {
        let [columns, rows] = self.cells;
        if columns.min(rows) < 1 || columns.max(rows) > MOST_CELLS {
            return Err((
                "cells",
                format!("`cells` is {columns} by {rows}; 1 to {MOST_CELLS} is possible each way"),
            ));
        }
        let divides = |servers: u32, cells: u32| servers > 0 && cells.is_multiple_of(servers);
        if !divides(self.servers[0], columns) || !divides(self.servers[1], rows) {
            return Err((
                "servers",
                format!(
                    "`servers` is {} by {}; they must share {columns} by {rows} cells evenly",
                    self.servers[0], self.servers[1]
                ),
            ));
        }
        let metres = |key, value: f64| {
            if (1.0..=20_000.0).contains(&value) {
                Ok(())
            } else {
                Err((key, format!("`{key}` is {value}; 1 to 20000 is possible")))
            }
        };
        metres("cell-m", self.cell_m)?;
        metres("interest-radius-m", self.interest_radius_m)?;
        if let Some(follow_m) = self.follow_m {
            metres("follow-m", follow_m)?;
        }
        let covered_m = f64::from(columns.min(rows)) * self.cell_m;
        if side_m > covered_m {
            return Err((
                "side-m",
                format!("`side-m` is {side_m}, and the cells cover {covered_m} m"),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The grid of the published tests.
    const PUBLISHED: Space = Space {
        cells: [15, 15],
        cell_m: 20.0,
        servers: [3, 3],
        interest_radius_m: 30.0,
        follow_m: None,
    };

    fn at(x: f64, y: f64) -> Vector {
        Vector::on_ground(x, y)
    }

    #[test]
    fn cells_are_counted_from_the_lowest_corner() {
        let cell = |x, y| PUBLISHED.cell_at(at(x, y));
        assert_eq!(cell(-15_000.0, -15_000.0), Some(0x1_0000));
        assert_eq!(cell(-13_000.0, -15_000.0), Some(0x1_0001));
        assert_eq!(cell(-15_000.0, -13_000.0), Some(0x1_000f));
        assert_eq!(cell(14_999.9, 14_999.9), Some(0x1_0000 + 224));
        for outside in [(15_000.0, 0.0), (0.0, 15_000.0), (-15_000.1, 0.0)] {
            assert_eq!(cell(outside.0, outside.1), None);
        }
    }

    #[test]
    fn servers_have_blocks_of_cells() {
        let server = |x, y| PUBLISHED.server_of(PUBLISHED.cell_at(at(x, y)).unwrap());
        assert_eq!(server(-15_000.0, -15_000.0), Some(0));
        assert_eq!(server(-4_999.0, -15_000.0), Some(1));
        assert_eq!(server(-15_000.0, -4_999.0), Some(3));
        assert_eq!(server(14_999.0, 14_999.0), Some(8));
        assert_eq!(PUBLISHED.server_of(0x1_0000 + 225), None);
        assert_eq!(PUBLISHED.server_of(7), None);
    }

    #[test]
    fn the_gateway_is_given_the_published_grid() {
        let published: serde_json::Value =
            serde_json::from_str(&PUBLISHED.controller_json()).unwrap();
        let config = &published["Config"];
        assert_eq!(config["WorldOffsetX"], -15_000.0);
        assert_eq!(config["GridWidth"], 2_000.0);
        assert_eq!(
            (&config["GridCols"], &config["ServerRows"]),
            (&15.into(), &3.into())
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let wrong = |change: fn(&mut Space), side_m| {
            let mut space = PUBLISHED;
            change(&mut space);
            space.check(side_m).unwrap_err().0
        };
        assert_eq!(PUBLISHED.check(300.0), Ok(()));
        assert_eq!(wrong(|space| space.servers = [2, 3], 300.0), "servers");
        assert_eq!(wrong(|space| space.servers = [0, 3], 300.0), "servers");
        assert_eq!(wrong(|space| space.cells = [0, 15], 300.0), "cells");
        assert_eq!(wrong(|space| space.cell_m = f64::NAN, 300.0), "cell-m");
        assert_eq!(wrong(|_| {}, 301.0), "side-m");
    }

    proptest! {
        #[test]
        fn a_place_lies_in_the_cell_it_is_said_to(x in -15_000.0..15_000.0_f64, y in -15_000.0..15_000.0_f64) {
            let corner = PUBLISHED.corner_of(PUBLISHED.cell_at(at(x, y)).unwrap()).unwrap();
            prop_assert!((0.0..2_000.0).contains(&(x - corner.x)));
            prop_assert!((0.0..2_000.0).contains(&(y - corner.y)));
        }
    }
}
