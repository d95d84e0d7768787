//! What the commands say: left to this process's own outputs, or put on its
//! standard output line by line with who said it, for a program that started
//! this one to take apart.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::thread::{self, JoinHandle};

use super::processes::Process;

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

/// Pieces of longer lines have so many bytes.
const PIECE_BYTES: u64 = 8 << 10;

impl fmt::Display for Speaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => formatter.write_str("server"),
            Self::Client(number) => write!(formatter, "client {number}"),
        }
    }
}

impl<'a> TaggedLine<'a> {
    /// The line as it is written, its end included.
    fn written(&self) -> Vec<u8> {
        let number = match self.speaker {
            Speaker::Server => 0,
            Speaker::Client(number) => number,
        };
        let stream = if self.is_error { 'e' } else { 'o' };
        let end = if self.is_whole { '.' } else { '+' };
        let mut line = format!("{number} {stream}{end}").into_bytes();
        line.extend_from_slice(self.text);
        line.push(b'\n');
        line
    }

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

/// Threads that tag what processes say. They end when nobody holds the
/// processes' outputs any more.
#[derive(Debug, Default)]
pub(super) struct Taggers(Vec<JoinHandle<()>>);

impl Taggers {
    /// Tags what `process` says, whose outputs are pipes.
    pub(super) fn add(&mut self, speaker: Speaker, process: &mut Process) -> io::Result<()> {
        let (output, error) = process.take_outputs();
        if let Some(output) = output {
            self.start(speaker, false, output)?;
        }
        if let Some(error) = error {
            self.start(speaker, true, error)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        speaker: Speaker,
        is_error: bool,
        from: impl Read + Send + 'static,
    ) -> io::Result<()> {
        let tagger = thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || tag(speaker, is_error, from))?;
        self.0.push(tagger);
        Ok(())
    }

    /// Waits until all is said.
    pub(super) fn finish(self) {
        for tagger in self.0 {
            // It does nothing that panics; if it did, its words are lost.
            let _ = tagger.join();
        }
    }
}

fn tag(speaker: Speaker, is_error: bool, from: impl Read) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader
            .by_ref()
            .take(PIECE_BYTES)
            .read_until(b'\n', &mut line);
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        let tagged = TaggedLine {
            speaker,
            is_error,
            is_whole: line.ends_with(b"\n"),
            text: line.strip_suffix(b"\n").unwrap_or(&line),
        };
        say(&tagged.written());
    }
}

/// A line on standard output at once. If nobody reads it there is nobody to
/// complain to either.
fn say(line: &[u8]) {
    let mut output = io::stdout().lock();
    let _ = output.write_all(line).and_then(|()| output.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tagged_line_is_read_as_it_was_written() {
        for (speaker, is_error, is_whole, text) in [
            (Speaker::Server, false, true, &b"up"[..]),
            (Speaker::Client(1), true, false, b"\xff no end "),
            (Speaker::Client(100), false, true, b""),
        ] {
            let line = TaggedLine {
                speaker,
                is_error,
                is_whole,
                text,
            };
            let written = line.written();
            let bare = written.strip_suffix(b"\n").unwrap();
            assert_eq!(TaggedLine::parse(bare), Some(line));
        }
    }

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
