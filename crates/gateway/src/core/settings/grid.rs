//! The world's static grid: which cell is where, and which server has it.

use lagometer_protocol::messages::channeldpb::{SpatialInfo, SpatialRegion};
use serde::{Deserialize, Serialize};

use super::json::{Object, SettingsError, parse, wrong};

/// The most cells a grid may have: each is a channel with a number of its own,
/// and all of them are listed in one message.
const MAX_CELLS: u32 = 0x0007_0000;

/// The lowest and highest of a cell, for all of them: half of what a `float`
/// holds.
const HEIGHT: f64 = 3.402_823_47e38 / 2.0;

/// A world cut into equal cells along x and z, shared out to servers in equal
/// blocks. Cells are numbered from 0, rows along x first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    offset: Position,
    cell_width: f64,
    cell_height: f64,
    cols: u32,
    rows: u32,
    server_cols: u32,
    server_rows: u32,
    border: u32,
}

/// A position on the ground, in the game's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Distance to the east of the origin, in the game's unit of length.
    pub x: f64,
    /// Distance to the north of the origin, in the game's unit of length.
    pub z: f64,
}

impl Grid {
    /// Reads a settings file.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] names the key that is wrong.
    pub fn from_json(text: &str) -> Result<Self, SettingsError> {
        let value = parse(text)?;
        let file = Object::new(&value, "")?;
        let config = file
            .object("Config")?
            .ok_or_else(|| wrong("Config", "is missing"))?;
        let size = |key| match config.float(key)? {
            size if size > 0.0 => Ok(size),
            _ => Err(wrong(&config.path_of(key), "must be greater than 0")),
        };
        let count = |key| match config.unsigned(key)? {
            0 => Err(wrong(&config.path_of(key), "must be at least 1")),
            count => Ok(count),
        };
        let grid = Self {
            offset: Position {
                x: config.float("WorldOffsetX")?,
                z: config.float("WorldOffsetZ")?,
            },
            cell_width: size("GridWidth")?,
            cell_height: size("GridHeight")?,
            cols: count("GridCols")?,
            rows: count("GridRows")?,
            server_cols: count("ServerCols")?,
            server_rows: count("ServerRows")?,
            border: config.unsigned("ServerInterestBorderSize")?,
        };
        if grid
            .cols
            .checked_mul(grid.rows)
            .is_none_or(|cells| cells > MAX_CELLS)
        {
            return Err(wrong(
                "Config.GridCols",
                format!("more than {MAX_CELLS} cells"),
            ));
        }
        for (servers, cells, key) in [
            (grid.server_cols, grid.cols, "ServerCols"),
            (grid.server_rows, grid.rows, "ServerRows"),
        ] {
            if cells % servers != 0 {
                return Err(wrong(
                    &config.path_of(key),
                    format!("{servers} does not divide the grid's {cells} cells evenly"),
                ));
            }
        }
        Ok(grid)
    }

    /// The cell a position lies in; `None` outside the world.
    #[must_use]
    pub fn cell(&self, position: Position) -> Option<u32> {
        let index = |at: f64, offset: f64, size: f64, count: u32| {
            let index = ((at - offset) / size).floor();
            (index >= 0.0 && index < f64::from(count)).then_some(index as u32)
        };
        let col = index(position.x, self.offset.x, self.cell_width, self.cols)?;
        let row = index(position.z, self.offset.z, self.cell_height, self.rows)?;
        Some(col + row * self.cols)
    }

    /// How many cells there are.
    #[must_use]
    pub fn cells(&self) -> u32 {
        self.cols * self.rows
    }

    /// How many servers share the world.
    #[must_use]
    pub fn servers(&self) -> u32 {
        self.server_cols * self.server_rows
    }

    /// A cell's sides along x and z.
    #[must_use]
    pub fn cell_size(&self) -> (f64, f64) {
        (self.cell_width, self.cell_height)
    }

    /// A cell's diagonal, by which distances are counted for damping.
    #[must_use]
    pub fn diagonal(&self) -> f64 {
        length(self.cell_width, self.cell_height)
    }

    /// The world's lowest and highest corner.
    #[must_use]
    pub fn bounds(&self) -> (Position, Position) {
        let far = Position {
            x: self.offset.x + self.cell_width * f64::from(self.cols),
            z: self.offset.z + self.cell_height * f64::from(self.rows),
        };
        (self.offset, far)
    }

    /// The server that has a cell.
    #[must_use]
    pub fn server_of(&self, cell: u32) -> u32 {
        let (cols, rows) = self.block();
        let (col, row) = self.col_row(cell);
        col / cols + row / rows * self.server_cols
    }

    /// The cells of a server's block, row by row.
    pub fn cells_of(&self, server: u32) -> impl Iterator<Item = u32> {
        let (cols, rows) = self.block();
        let first_col = server % self.server_cols * cols;
        let first_row = server / self.server_cols * rows;
        let width = self.cols;
        (first_row..first_row + rows)
            .flat_map(move |row| (first_col..first_col + cols).map(move |col| col + row * width))
    }

    /// The cells beyond a server's block that it is to see too: the border's
    /// columns on the left and right, then its rows below and above; no
    /// corners, and nothing outside the world.
    #[must_use]
    pub fn border_of(&self, server: u32) -> Vec<u32> {
        let (cols, rows) = self.block();
        let first_col = server % self.server_cols * cols;
        let first_row = server / self.server_cols * rows;
        let (last_col, last_row) = (first_col + cols, first_row + rows);
        let before = |first: u32| first.saturating_sub(self.border)..first;
        let beyond = |last: u32, count: u32| last..last.saturating_add(self.border).min(count);
        let mut cells = Vec::new();
        for columns in [before(first_col), beyond(last_col, self.cols)] {
            for row in first_row..last_row {
                cells.extend(columns.clone().map(|col| col + row * self.cols));
            }
        }
        for rows in [before(first_row), beyond(last_row, self.rows)] {
            for row in rows {
                cells.extend((first_col..last_col).map(|col| col + row * self.cols));
            }
        }
        cells
    }

    /// The up to eight cells around one, row by row.
    pub fn neighbours(&self, cell: u32) -> impl Iterator<Item = u32> {
        let (col, row) = self.col_row(cell);
        let around = |at: u32, count: u32| at.saturating_sub(1)..(at + 2).min(count);
        let (columns, width) = (around(col, self.cols), self.cols);
        around(row, self.rows)
            .flat_map(move |row| columns.clone().map(move |col| col + row * width))
            .filter(move |&other| other != cell)
    }

    /// All cells as the protocol describes them; cell 0 is channel
    /// `first_channel`.
    #[must_use]
    pub fn regions(&self, first_channel: u32) -> Vec<SpatialRegion> {
        let corner = |col: u32, row: u32, y: f64| SpatialInfo {
            x: self.offset.x + self.cell_width * f64::from(col),
            y,
            z: self.offset.z + self.cell_height * f64::from(row),
        };
        (0..self.cells())
            .map(|cell| {
                let (col, row) = self.col_row(cell);
                SpatialRegion {
                    min: Some(corner(col, row, -HEIGHT)),
                    max: Some(corner(col + 1, row + 1, HEIGHT)),
                    channel_id: first_channel + cell,
                    server_index: self.server_of(cell),
                }
            })
            .collect()
    }

    fn col_row(&self, cell: u32) -> (u32, u32) {
        (cell % self.cols, cell / self.cols)
    }

    /// Columns and rows of one server's block.
    fn block(&self) -> (u32, u32) {
        (self.cols / self.server_cols, self.rows / self.server_rows)
    }
}

impl Position {
    /// How far it is to another, along the ground.
    #[must_use]
    pub fn distance(self, other: Self) -> f64 {
        length(self.x - other.x, self.z - other.z)
    }
}

/// The length of a vector, to the same bit on every machine: a square root is
/// exact by IEEE 754, the platform's `hypot` is not.
fn length(x: f64, z: f64) -> f64 {
    (x * x + z * z).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(cols: u32, rows: u32, server_cols: u32, server_rows: u32, border: u32) -> Grid {
        Grid::from_json(&format!(
            r#"{{ "SpatialControllerType": "Static2DSpatialController", "Config": {{
                "WorldOffsetX": -20, "WorldOffsetZ": -10, "GridWidth": 10, "GridHeight": 5,
                "GridCols": {cols}, "GridRows": {rows}, "ServerCols": {server_cols},
                "ServerRows": {server_rows}, "ServerInterestBorderSize": {border} }} }}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_cell_owns_its_lower_edges() {
        let grid = grid(4, 4, 2, 2, 0);
        let cell = |x, z| grid.cell(Position { x, z });
        assert_eq!(cell(-20.0, -10.0), Some(0));
        assert_eq!(cell(-10.0, -10.0), Some(1));
        assert_eq!(cell(-10.01, -5.0), Some(4));
        assert_eq!(cell(19.99, 9.99), Some(15));
        for outside in [(-20.01, 0.0), (20.0, 0.0), (0.0, 10.0), (f64::NAN, 0.0)] {
            assert_eq!(cell(outside.0, outside.1), None, "{outside:?}");
        }
    }

    #[test]
    fn servers_have_blocks_and_borders() {
        let grid = grid(4, 4, 2, 2, 1);
        assert_eq!(grid.cells_of(1).collect::<Vec<_>>(), [2, 3, 6, 7]);
        assert_eq!(grid.cells_of(2).collect::<Vec<_>>(), [8, 9, 12, 13]);
        assert_eq!(grid.border_of(1), [1, 5, 10, 11]);
        assert_eq!(grid.border_of(2), [10, 14, 4, 5]);
        for server in 0..grid.servers() {
            assert!(
                grid.cells_of(server)
                    .all(|cell| grid.server_of(cell) == server)
            );
        }
    }

    #[test]
    fn neighbours_end_at_the_world() {
        let grid = grid(4, 4, 1, 1, 0);
        assert_eq!(grid.neighbours(0).collect::<Vec<_>>(), [1, 4, 5]);
        assert_eq!(
            grid.neighbours(5).collect::<Vec<_>>(),
            [0, 1, 2, 4, 6, 8, 9, 10]
        );
        assert_eq!(grid.neighbours(15).collect::<Vec<_>>(), [10, 11, 14]);
    }

    #[test]
    fn regions_are_the_cells() {
        let regions = grid(4, 4, 2, 2, 0).regions(65_536);
        assert_eq!(regions.len(), 16);
        let seventh = &regions[7];
        assert_eq!((seventh.channel_id, seventh.server_index), (65_543, 1));
        let (min, max) = (seventh.min.as_ref().unwrap(), seventh.max.as_ref().unwrap());
        assert_eq!((min.x, min.z, max.x, max.z), (10.0, -5.0, 20.0, 0.0));
        assert_eq!(max.y.to_bits(), HEIGHT.to_bits());
    }

    #[test]
    fn a_grid_that_cannot_be_shared_out_is_refused() {
        let text = r#"{ "Config": { "GridWidth": 1, "GridHeight": 1, "GridCols": 3, "GridRows": 1,
            "ServerCols": 2, "ServerRows": 1 } }"#;
        assert_eq!(
            Grid::from_json(text).unwrap_err().to_string(),
            "Config.ServerCols: 2 does not divide the grid's 3 cells evenly"
        );
        assert_eq!(
            Grid::from_json("{}").unwrap_err().to_string(),
            "Config: is missing"
        );
    }
}
