//! What views are drawn with: text that is cut to its room, bars, and colours that
//! nothing depends on.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::History;

/// Whether there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Colours of the terminal's own palette are used; else bold and dim alone.
    pub has_colours: bool,
}

/// What something is drawn as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As everything else.
    #[default]
    Plain,
    /// Of less weight.
    Dim,
    /// Of more weight.
    Strong,
    /// As it should be.
    Good,
    /// Not as it should be.
    Fair,
    /// As it should not be.
    Bad,
}

impl Theme {
    /// The style of a tone.
    #[must_use]
    pub fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        let coloured = |colour| {
            if self.has_colours {
                style.fg(colour)
            } else {
                style
            }
        };
        match tone {
            Tone::Plain => style,
            Tone::Dim => style.add_modifier(Modifier::DIM),
            Tone::Strong => style.add_modifier(Modifier::BOLD),
            Tone::Good => coloured(Color::Green),
            Tone::Fair => coloured(Color::Yellow),
            Tone::Bad => coloured(Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}

/// Eighths of a letter's height.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Columns of `text`.
pub(crate) fn width(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// What is no letter, as others' names and words may have it, is a question mark.
fn printable(text: &str) -> String {
    let letter = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(letter).collect()
}

/// `text` in at most `room` columns; what is cut off is said by an ellipsis.
pub(crate) fn cut(text: &str, room: u16) -> String {
    let text = printable(text);
    if width(&text) <= room {
        return text;
    }
    let mut short = String::new();
    for letter in text.chars() {
        let mut longer = short.clone();
        longer.push(letter);
        if width(&longer) + 1 > room {
            break;
        }
        short = longer;
    }
    if room > 0 {
        short.push('…');
    }
    short
}

/// Writes `text` from the left of `area`'s first line.
pub(crate) fn left(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    if area.is_empty() || !buffer.area.intersects(area) {
        return;
    }
    buffer.set_string(area.x, area.y, cut(text, area.width), style);
}

/// Writes `text` to the right of `area`'s first line.
pub(crate) fn right(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let text = cut(text, area.width);
    let at = area.x + area.width - width(&text).min(area.width);
    left(
        buffer,
        Rect {
            x: at,
            width: area.right() - at,
            ..area
        },
        &text,
        style,
    );
}

/// One line of `area`, counted from its top; empty where it has no such line.
pub(crate) fn line(area: Rect, nth: u16) -> Rect {
    let height = u16::from(nth < area.height);
    Rect {
        y: area.y.saturating_add(nth),
        height,
        ..area
    }
}

/// A bar over `area`'s first line, filled to `share` of it.
pub(crate) fn bar(buffer: &mut Buffer, area: Rect, share: f64, theme: Theme) {
    if area.is_empty() {
        return;
    }
    let filled = (share.clamp(0.0, 1.0) * f64::from(area.width)).round() as u16;
    let done = "━".repeat(usize::from(filled));
    let open = "─".repeat(usize::from(area.width - filled));
    left(buffer, area, &done, theme.style(Tone::Good));
    let rest = Rect {
        x: area.x + filled,
        width: area.width - filled,
        ..area
    };
    left(buffer, rest, &open, theme.style(Tone::Dim));
}

/// The history over all of `area`, the newest at its right; `most` is as high as it is,
/// and `style_of` says how a value is drawn. A look without a value is left empty.
pub(crate) fn graph(
    buffer: &mut Buffer,
    area: Rect,
    history: &History,
    most: f64,
    style_of: impl Fn(f64) -> Style,
) {
    let values: Vec<Option<f64>> = history.last(usize::from(area.width)).collect();
    let first = area.right() - values.len() as u16;
    let steps = f64::from(area.height) * 8.0;
    for (x, value) in (first..).zip(values) {
        let Some(value) = value else { continue };
        // Whatever there is shows.
        let height = (value / most.max(f64::MIN_POSITIVE) * steps)
            .clamp(1.0, steps)
            .round() as u16;
        for row in 0..area.height {
            let eighths = height.saturating_sub(row * 8).min(8);
            if eighths > 0 {
                let y = area.bottom() - 1 - row;
                buffer.set_string(x, y, EIGHTHS[usize::from(eighths)], style_of(value));
            }
        }
    }
}

/// Minutes and seconds, as in `01:05`; hours in front where there are any.
pub(crate) fn clock(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        return format!("{hours}:{minutes:02}:{seconds:02}");
    }
    format!("{minutes:02}:{seconds:02}")
}

/// A span in the unit that suits it, as in `38 ms` or `1.2 s`.
pub(crate) fn span(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1e3;
    match millis {
        _ if millis < 9.95 => format!("{millis:.1} ms"),
        _ if millis < 999.5 => format!("{millis:.0} ms"),
        _ if millis < 99_950.0 => format!("{:.1} s", millis / 1e3),
        _ => clock(span),
    }
}

/// A number in three digits or so, as in `1.25 M`.
pub(crate) fn number(value: f64) -> String {
    let units = [(1e9, " G"), (1e6, " M"), (1e4, " k")];
    for (unit, name) in units {
        if value >= unit {
            let scaled = value / if name == " k" { 1e3 } else { unit };
            let digits = usize::from(scaled < 100.0);
            return format!("{scaled:.digits$}{name}");
        }
    }
    let digits = usize::from(value < 10.0 && value.fract() > 0.0);
    format!("{value:.digits$}")
}

/// The letters of a buffer, a line for each row.
#[cfg(test)]
pub(crate) fn letters(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width.max(1)));
    let rows = rows.map(|row| {
        row.iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect::<String>()
    });
    rows.map(|row| row.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_its_room_and_says_so() {
        assert_eq!(cut("quic-datagram", 13), "quic-datagram");
        assert_eq!(cut("quic-datagram", 6), "quic-…");
        assert_eq!(cut("quic", 0), "");
        assert_eq!(cut("網路遊戲", 5), "網路…");
        assert_eq!(cut("a\u{1b}[2Jb", 9), "a?[2Jb");
    }

    #[test]
    fn spans_and_numbers_are_short() {
        let spans = [4, 38, 999, 1240, 99_000, 100_000].map(|ms| span(Duration::from_millis(ms)));
        assert_eq!(
            spans,
            ["4.0 ms", "38 ms", "999 ms", "1.2 s", "99.0 s", "01:40"]
        );
        assert_eq!(clock(Duration::from_secs(3725)), "1:02:05");
        let numbers = [0.0, 2.5, 640.0, 12_400.0, 1_250_000.0, 3e9].map(number);
        assert_eq!(numbers, ["0", "2.5", "640", "12.4 k", "1.2 M", "3.0 G"]);
    }

    #[test]
    fn a_graph_grows_from_below_and_ends_at_the_right() {
        let mut history = History::default();
        for value in [Some(0.0), None, Some(4.0), Some(8.0), Some(99.0)] {
            history.push(value);
        }
        let mut buffer = Buffer::empty(Rect::new(0, 0, 7, 2));
        let area = buffer.area;
        graph(&mut buffer, area, &history, 16.0, |_| Style::new());
        assert_eq!(letters(&buffer), "      █\n  ▁ ▄██\n");
    }
}
