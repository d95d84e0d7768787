//! Figures with their history, one below the other, and a table beneath them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::draw::{Theme, Tone, bar, graph, left, line, right, width};
use crate::{History, View};

/// One figure.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The figure's name, in front of its row.
    pub name: String,
    /// Earlier values, the latest last, drawn as a line.
    pub history: History,
    /// The present value, with its unit.
    pub value: String,
    /// The value is not as it should be, and is drawn in the colour of a problem.
    pub is_bad: bool,
}

/// What is watched: a title, how far it is, figures and a table.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The title of the board: what is watched.
    pub title: String,
    /// How it stands, in words.
    pub state: String,
    /// The share that is done, 0 to 1, where there is an end.
    pub done: Option<f64>,
    /// The figures.
    pub rows: Vec<Row>,
    /// The table's rows, their heads first; columns but the first are numbers.
    pub table: Vec<Vec<String>>,
    /// What Ctrl-C does.
    pub ends: &'static str,
}

impl Row {
    /// A figure of which nothing is known.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Notes what it is now: a number, how it is written, and whether it is bad.
    pub fn note(&mut self, value: Option<f64>, written: String, is_bad: bool) {
        self.history.push(value);
        self.value = written;
        self.is_bad = is_bad;
    }
}

impl Board {
    fn in_a_line(&self) -> String {
        let row = |row: &Row| format!("{} {}", row.name, row.value);
        let rows: Vec<String> = self.rows.iter().take(3).map(row).collect();
        format!("{}  {}", self.state, rows.join(", "))
    }

    fn draw_rows(&self, buffer: &mut Buffer, area: Rect, theme: Theme) -> u16 {
        let names = self.rows.iter().map(|row| width(&row.name)).max();
        let values = self.rows.iter().map(|row| width(&row.value)).max();
        let names = names.unwrap_or(0).min(area.width / 2) + 2;
        let values = values.unwrap_or(0).max(12).min(area.width - names) + 1;
        let shown = (self.rows.len() as u16).min(area.height);
        let each = area.height.checked_div(shown).unwrap_or(1).clamp(1, 3);
        let height = if each > 2 { each - 1 } else { each };
        for (nth, row) in self.rows.iter().take(usize::from(shown)).enumerate() {
            let top = area.y + nth as u16 * each;
            let base = Rect {
                y: top + height - 1,
                height: 1,
                ..area
            };
            let style = theme.style(if row.is_bad { Tone::Bad } else { Tone::Plain });
            left(
                buffer,
                Rect {
                    width: names - 2,
                    ..base
                },
                &row.name,
                theme.style(Tone::Dim),
            );
            let place = Rect {
                x: area.x + names,
                width: area.width.saturating_sub(names + values),
                y: top,
                height,
            };
            let most = row.history.largest(usize::from(place.width)).max(1e-9);
            let tone = if row.is_bad { Tone::Fair } else { Tone::Good };
            graph(buffer, place, &row.history, most, |_| theme.style(tone));
            right(buffer, base, &row.value, style);
        }
        shown * each
    }

    fn draw_table(&self, buffer: &mut Buffer, area: Rect, theme: Theme) {
        let columns = self.table.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in &self.table {
            for (most, cell) in widths.iter_mut().zip(row) {
                *most = (*most).max(width(cell));
            }
        }
        let room = usize::from(area.height);
        let hidden = self.table.len().saturating_sub(room);
        for (nth, row) in self.table.iter().take(room).enumerate() {
            let place = line(area, nth as u16);
            if hidden > 0 && nth + 1 == room {
                let words = format!("and {} more", hidden + 1);
                left(buffer, place, &words, theme.style(Tone::Dim));
                return;
            }
            let style = theme.style(if nth == 0 { Tone::Dim } else { Tone::Plain });
            let mut x = area.x;
            for (column, (cell, &most)) in row.iter().zip(&widths).enumerate() {
                if x >= area.right() {
                    break;
                }
                let cell_area = Rect {
                    x,
                    width: most.min(area.right() - x),
                    ..place
                };
                if column == 0 {
                    left(buffer, cell_area, cell, style);
                } else {
                    right(buffer, cell_area, cell, style);
                }
                x = x.saturating_add(most + 3);
            }
        }
    }
}

impl View for Board {
    fn draw(&self, buffer: &mut Buffer, theme: Theme, notes: &[String]) {
        let area = buffer.area;
        if is_tiny(area) {
            in_a_line(buffer, area, theme, &self.in_a_line());
            return;
        }
        head(buffer, area, theme, &self.title);
        let top = line(area, 1);
        left(buffer, top, &self.state, theme.style(Tone::Plain));
        if let Some(done) = self.done {
            let from = (width(&self.state) + 2).min(top.width);
            bar(
                buffer,
                Rect {
                    x: top.x + from,
                    width: top.width - from,
                    ..top
                },
                done,
                theme,
            );
        }
        let notes_height = (notes.len() as u16).min(2) + 1;
        let mut below = Rect {
            y: area.y + 3,
            height: area.height - 3 - notes_height,
            ..area
        };
        let table = (self.table.len() as u16 + 1).min(below.height / 2);
        let rows = Rect {
            height: below.height - table,
            ..below
        };
        let used = self.draw_rows(buffer, rows, theme);
        let gap = u16::from(below.height > used);
        below.y += used + gap;
        below.height -= used + gap;
        self.draw_table(buffer, below, theme);
        foot(buffer, area, theme, notes, self.ends);
    }
}

/// Whether there is room for a line alone.
pub(crate) const fn is_tiny(area: Rect) -> bool {
    area.height < 6 || area.width < 40
}

/// All that there is room for.
pub(crate) fn in_a_line(buffer: &mut Buffer, area: Rect, theme: Theme, words: &str) {
    left(buffer, line(area, 0), words, theme.style(Tone::Plain));
}

/// The program's name and what is watched, at the top of `area`, which is not tiny.
pub(crate) fn head(buffer: &mut Buffer, area: Rect, theme: Theme, title: &str) {
    let top = line(area, 0);
    left(buffer, top, "lagometer", theme.style(Tone::Good));
    let beside = Rect {
        x: area.x + 11,
        width: area.width - 11,
        ..top
    };
    left(buffer, beside, title, theme.style(Tone::Strong));
}

/// The newest lines that were said, and how to end, at the bottom of `area`.
pub(crate) fn foot(buffer: &mut Buffer, area: Rect, theme: Theme, notes: &[String], ends: &str) {
    let dim = theme.style(Tone::Dim);
    let shown = notes.len().min(2);
    for (nth, note) in notes[notes.len() - shown..].iter().enumerate() {
        let row = (area.height - 1).saturating_sub((shown - nth) as u16);
        left(buffer, line(area, row), note, dim);
    }
    right(buffer, line(area, area.height - 1), ends, dim);
}
