//! Colour and emphasis on a terminal, or none, and text made safe to print
//! there: names come from files, and a file must not command the terminal.

use unicode_width::UnicodeWidthStr;

/// How a piece of text is set off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Stands out: the best of a group, a verdict.
    Bold,
    /// Steps back: units, spreads, explanations.
    Dim,
    /// A budget met.
    Good,
    /// Something to know.
    Notice,
    /// A budget missed, a lane that failed.
    Bad,
}

/// Whether text is painted or left plain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    /// Whether escape sequences may be written.
    pub(crate) colour: bool,
}

impl Paint {
    /// `text` in `style`.
    pub(crate) fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Notice => "33",
            Style::Bad => "31",
        };
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Columns `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` with every control character replaced, on one line.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            // Bidirectional overrides reorder what follows them on the line.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                '\u{fffd}'
            }
            c => c,
        })
        .collect()
}

/// `text` cut to `columns`, with an ellipsis where something was cut.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        let longer = format!("{cut}{c}");
        if width(&longer) + 1 > columns {
            break;
        }
        cut = longer;
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// `text` in lines of at most `columns`, broken between words, and inside a
/// word only where one alone is too long. A number and its unit stay together.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    for mut word in words(text) {
        if !line.is_empty() && width(&line) + 1 + width(&word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        while width(&word) > columns {
            let mut head = String::new();
            let mut rest = word.chars().peekable();
            while let Some(c) = rest.next_if(|c| width(&format!("{head}{c}")) <= columns) {
                head.push(c);
            }
            word = rest.collect();
            lines.push(head);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += &word;
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The words of `text`, a unit with the number before it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        let is_unit = matches!(bare, "%" | "×" | "ms" | "s" | "min");
        match words.last_mut() {
            Some(last) if is_unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_nothing_is_added() {
        assert_eq!(Paint { colour: false }.apply(Style::Bad, "x"), "x");
        assert_eq!(
            Paint { colour: true }.apply(Style::Bad, "x"),
            "\x1b[31mx\x1b[0m"
        );
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc\u{202e}"), "a\u{fffd}[2Jb c\u{fffd}");
    }

    #[test]
    fn text_is_cut_and_wrapped_by_columns_not_bytes() {
        assert_eq!(fit("größer", 4), "grö…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("0123456789ab", 8), ["01234567", "89ab"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(
            wrap("about 98.2 %, or 3 ms", 10),
            ["about", "98.2 %, or", "3 ms"]
        );
    }
}
