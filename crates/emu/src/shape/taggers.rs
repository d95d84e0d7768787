//! Puts what the commands say on this process's standard output, tagged.

use std::io::{self, BufRead as _, BufReader, PipeWriter, Read, Write as _};
use std::process::Command;
use std::thread::JoinHandle;

use lagometer_platform::spawn_first;

use super::output::{Speaker, TaggedLine};

/// Pieces of longer lines have so many bytes.
const PIECE_BYTES: u64 = 8 << 10;

/// The line as it is written, its end included.
fn written(tagged: &TaggedLine<'_>) -> Vec<u8> {
    let number = match tagged.speaker {
        Speaker::Server => 0,
        Speaker::Client(number) => number,
    };
    let stream = if tagged.is_error { 'e' } else { 'o' };
    let end = if tagged.is_whole { '.' } else { '+' };
    let mut line = format!("{number} {stream}{end}").into_bytes();
    line.extend_from_slice(tagged.text);
    line.push(b'\n');
    line
}

/// Threads that tag what processes say. They end when nobody holds the
/// processes' outputs any more.
#[derive(Debug, Default)]
pub(super) struct Taggers(Vec<JoinHandle<()>>);

impl Taggers {
    /// Has what `command` will say tagged.
    pub(super) fn listen(&mut self, speaker: Speaker, command: &mut Command) -> io::Result<()> {
        command.stdout(self.start(speaker, false)?);
        command.stderr(self.start(speaker, true)?);
        Ok(())
    }

    /// Starts a thread that tags what is said into the pipe, and waits until it listens.
    fn start(&mut self, speaker: Speaker, is_error: bool) -> io::Result<PipeWriter> {
        let (from, to) = io::pipe()?;
        // In a guest what a command said is handed on before it goes on, for it may
        // compute for ever.
        let tagger = spawn_first("output", move || tag(speaker, is_error, from))?;
        self.0.push(tagger);
        Ok(to)
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
        say(&written(&tagged));
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
            let written = written(&line);
            let bare = written.strip_suffix(b"\n").unwrap();
            assert_eq!(TaggedLine::parse(bare), Some(line));
        }
    }
}
