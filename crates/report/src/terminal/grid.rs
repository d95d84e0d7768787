//! Columns of text, aligned: the one way tables are laid out on a terminal.

use super::paint::{Paint, Style, width, wrap};

/// Blanks between two columns.
pub(crate) const GAP: usize = 2;

/// One column: its heading and which way its cells lean.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// First line of the heading.
    pub(crate) heading: String,
    /// Second line of the heading: the unit.
    pub(crate) unit: String,
    /// Numbers lean right, words left.
    pub(crate) right: bool,
    /// Words beyond this width continue on the next line.
    pub(crate) widest: usize,
}

impl Column {
    /// A column of words.
    pub(crate) fn words(heading: &str) -> Self {
        Self {
            heading: heading.to_owned(),
            unit: String::new(),
            right: false,
            widest: usize::MAX,
        }
    }

    /// A column of numbers.
    pub(crate) fn numbers(heading: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            unit: unit.into(),
            right: true,
            widest: usize::MAX,
        }
    }
}

/// One cell; a newline in it begins another line of the same row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// The cell's text, without colours.
    pub(crate) text: String,
    /// The colour and weight of the text.
    pub(crate) style: Style,
}

impl Cell {
    /// A cell in `style`.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }

    /// Columns its widest line takes.
    pub(crate) fn width(&self) -> usize {
        self.text.lines().map(width).max().unwrap_or(0)
    }
}

/// One line of a grid.
#[derive(Clone, Debug)]
pub(crate) enum Row {
    /// A line across all columns.
    Label(String, Style),
    /// One cell for each column.
    Cells(Vec<Cell>),
}

/// Columns and rows, not yet laid out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    /// The columns.
    pub(crate) columns: Vec<Column>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
}

impl Grid {
    /// Appends the grid to `out`, every line ending in a newline and none in
    /// a blank.
    pub(crate) fn render(&self, paint: Paint, out: &mut String) {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|index| self.width_of(index))
            .collect();
        let has_units = self.columns.iter().any(|column| !column.unit.is_empty());
        let headings = self
            .columns
            .iter()
            .map(|column| Cell::new(&*column.heading, Style::Bold));
        self.line(&headings.collect::<Vec<_>>(), &widths, paint, out);
        if has_units {
            let units = self
                .columns
                .iter()
                .map(|column| Cell::new(&*column.unit, Style::Dim));
            self.line(&units.collect::<Vec<_>>(), &widths, paint, out);
        }
        for row in &self.rows {
            match row {
                Row::Label(text, style) => {
                    *out += &paint.apply(*style, text);
                    out.push('\n');
                }
                Row::Cells(cells) => self.wrapped(cells, &widths, paint, out),
            }
        }
    }

    /// Columns the grid takes on the terminal.
    pub(crate) fn width(&self) -> usize {
        let cells: usize = (0..self.columns.len())
            .map(|index| self.width_of(index))
            .sum();
        cells + GAP * self.columns.len().saturating_sub(1)
    }

    fn width_of(&self, index: usize) -> usize {
        let column = &self.columns[index];
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.get(index).map(Cell::width),
            Row::Label(..) => None,
        });
        cells
            .max()
            .unwrap_or(0)
            .min(column.widest)
            .max(width(&column.heading))
            .max(width(&column.unit))
    }

    fn wrapped(&self, cells: &[Cell], widths: &[usize], paint: Paint, out: &mut String) {
        let parts: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(cell, &room)| {
                let lines = cell.text.lines();
                lines
                    .flat_map(|line| {
                        if width(line) > room {
                            wrap(line, room)
                        } else {
                            vec![line.to_owned()]
                        }
                    })
                    .collect()
            })
            .collect();
        let height = parts.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let cells: Vec<Cell> = cells
                .iter()
                .zip(&parts)
                .map(|(cell, parts)| {
                    Cell::new(parts.get(line).map_or("", String::as_str), cell.style)
                })
                .collect();
            self.line(&cells, widths, paint, out);
        }
    }

    fn line(&self, cells: &[Cell], widths: &[usize], paint: Paint, out: &mut String) {
        let mut line = String::new();
        let mut owed = 0;
        for ((cell, column), &room) in cells.iter().zip(&self.columns).zip(widths) {
            let blank = room.saturating_sub(width(&cell.text));
            let (before, after) = if column.right { (blank, 0) } else { (0, blank) };
            if cell.text.is_empty() {
                owed += blank + GAP;
                continue;
            }
            line.extend(std::iter::repeat_n(' ', owed + before));
            line += &paint.apply(cell.style, &cell.text);
            owed = after + GAP;
        }
        *out += &line;
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lean_right_and_words_continue_below() {
        let mut words = Column::words("acks");
        words.widest = 10;
        let grid = Grid {
            columns: vec![Column::words("lane"), Column::numbers("p50", "ms"), words],
            rows: vec![
                Row::Label("reliable".into(), Style::Dim),
                Row::Cells(vec![
                    Cell::new("kcp", Style::Plain),
                    Cell::new("62.1", Style::Plain),
                    Cell::new("with every flush", Style::Plain),
                ]),
            ],
        };
        let mut out = String::new();
        grid.render(Paint { colour: false }, &mut out);
        assert_eq!(
            out,
            "lane   p50  acks\n        ms\nreliable\nkcp   62.1  with every\n            flush\n"
        );
        assert_eq!(grid.width(), 22);
    }
}
