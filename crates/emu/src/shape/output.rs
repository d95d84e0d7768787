//! What the commands say: left to this process's own outputs, or put on its
//! standard output line by line with who said it, for a program that started
//! this one to take apart.

use std::fmt;

/// Where the commands' output goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The client's to this process's outputs, the server's to standard error.
    #[default]
    Inherited,
    /// All of it to standard output, each line as a [`TaggedLine`].
    Tagged,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speaker {
    /// The command in the server host.
    Server,
    /// A command in a client host, from 1 on.
    Client(u8),
}

/// A line that a command said, or a piece of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedLine<'a> {
    /// Who said it.
    pub speaker: Speaker,
    /// Whether it was said on standard error.
    pub is_error: bool,
    /// Whether the line ends here.
    pub is_whole: bool,
    /// The words, without the line's end.
    pub text: &'a [u8],
}

impl fmt::Display for Speaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => formatter.write_str("server"),
            Self::Client(number) => write!(formatter, "client {number}"),
        }
    }
}

impl<'a> TaggedLine<'a> {
    /// Reads a line without its end; nothing where it is none.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let space = line.iter().position(|&byte| byte == b' ')?;
        let number = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        let [stream @ (b'o' | b'e'), end @ (b'.' | b'+'), text @ ..] = &line[space + 1..] else {
            return None;
        };
        Some(Self {
            speaker: match number {
                0 => Speaker::Server,
                number => Speaker::Client(number),
            },
            is_error: *stream == b'e',
            is_whole: *end == b'.',
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_tagged_line_is_not_taken_for_one() {
        for line in [
            &b"words"[..],
            b"",
            b"1",
            b"1 x.a",
            b"256 o.a",
            b"1 o",
            b"-1 o.a",
        ] {
            assert_eq!(TaggedLine::parse(line), None, "{line:?}");
        }
    }
}
