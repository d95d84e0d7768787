//! What a guest and who started it agree on: names of files, and how it is
//! written down what the guest's programs said.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{BufRead, Read as _};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first arguments by which a program that starts guests is asked to
/// become the kernel, and by the kernel to be the guest's first process.
pub const BOOT: [&str; 2] = ["guest", "boot"];
/// See [`BOOT`].
pub const INIT: [&str; 2] = ["guest", "init"];

/// The folder that guest and machine share, as the guest's programs see it.
pub const SHARE: &str = "/lagometer";

/// The file that appears in it when the guest's program is to end.
pub const STOP: &str = "stop";

/// The program that starts guests, in the guest's folder.
pub(crate) const INIT_LINK: &str = "init";
/// The variable that says where a kernel puts its memory.
pub(crate) const MEMORY_PLACE: &str = "TMPDIR";
/// What is to run, in the guest's folder.
pub(crate) const JOB: &str = "job.json";
/// The shared folder, in the guest's folder.
pub(crate) const SHARE_OUTSIDE: &str = "share";
/// The folder that the guest's first process writes to and its programs cannot
/// see, in the guest's folder.
pub(crate) const OWN_OUTSIDE: &str = "own";
/// How the program ended, in [`OWN_OUTSIDE`].
pub(crate) const ENDED: &str = "ended.json";
/// What the guest's programs said, in [`OWN_OUTSIDE`].
pub(crate) const OUTPUT: &str = "output";
/// What they wrote and was kept, in [`OWN_OUTSIDE`].
pub(crate) const KEPT: &str = "kept";

/// The working directory of the kernel, seen through the machine's `/proc`.
/// The guest's folder is known by no other name, so that the kernel's command
/// line is the same for every guest, however the folder is called.
pub(crate) const OUTSIDE: &str = "/proc/self/cwd";

/// The longest line that is taken at once.
const LINE_BYTES: u64 = 16 << 10;

/// What a guest's program said: a line, or a piece of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said<'a> {
    /// When, by the guest's clock, since it booted.
    pub at: Duration,
    /// On which of its outputs.
    pub stream: Stream,
    /// The line without its end.
    pub line: &'a [u8],
    /// Whether the line ends here; pieces have up to 16 KiB.
    pub is_whole: bool,
}

/// A program's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl<'a> Said<'a> {
    /// The line as text; what is no UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.line)
    }

    /// As the first process writes it down.
    pub(crate) fn record(&self) -> Vec<u8> {
        let stream = match self.stream {
            Stream::Output => 'o',
            Stream::Error => 'e',
        };
        let end = if self.is_whole { '.' } else { '+' };
        let mut record = format!("{} {stream}{end}", self.at.as_nanos()).into_bytes();
        record.extend_from_slice(self.line);
        record.push(b'\n');
        record
    }

    /// What was written down; nothing where it is no record.
    pub(crate) fn of_record(record: &'a [u8]) -> Option<Self> {
        let space = record.iter().position(|&byte| byte == b' ')?;
        let nanos = std::str::from_utf8(&record[..space]).ok()?.parse().ok()?;
        let [stream, end, line @ ..] = &record[space + 1..] else {
            return None;
        };
        Some(Self {
            at: Duration::from_nanos(nanos),
            stream: match stream {
                b'o' => Stream::Output,
                b'e' => Stream::Error,
                _ => return None,
            },
            line: line.strip_suffix(b"\n").unwrap_or(line),
            is_whole: *end == b'.',
        })
    }
}

/// What is to run in a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// A program and its arguments; a program without a slash is looked for in
    /// the `PATH` of the job's environment.
    pub command: Vec<OsString>,
    /// Where it runs.
    pub directory: OsString,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the files that it wrote are kept.
    pub keeps_files: bool,
}

/// As whom it runs: who started the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The supplementary groups.
    pub(crate) groups: Vec<u32>,
}

/// What is in [`JOB`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Errand {
    pub(crate) job: Job,
    pub(crate) user: User,
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Its exit code; 128 and the signal's number where a signal ended it.
    pub(crate) code: i32,
    /// Why it could not even be started.
    pub(crate) not_started: Option<String>,
    /// By the guest's clock, since it booted.
    pub(crate) at: Duration,
    /// Which of the files that were to be kept are not, and why.
    pub(crate) not_kept: Option<String>,
}

/// The next line, its end included, or as much of it as is taken at once;
/// nothing at the end, or where reading fails.
pub(crate) fn next_line(from: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let read = from.take(LINE_BYTES).read_until(b'\n', &mut line);
    read.is_ok_and(|bytes| bytes > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_written_down_and_read_again() {
        for (stream, line, is_whole) in [
            (Stream::Output, &b"a b  c"[..], true),
            (Stream::Error, &b""[..], true),
            (Stream::Output, &b"\xff no end \r"[..], false),
        ] {
            let said = Said {
                at: Duration::from_millis(1500),
                stream,
                line,
                is_whole,
            };
            assert_eq!(Said::of_record(&said.record()), Some(said));
        }
    }

    #[test]
    fn what_is_no_record_is_ignored() {
        for bytes in [
            &b""[..],
            b"12",
            b"x o.words",
            b"12 ",
            b"12 q.words",
            b"-1 o.x",
        ] {
            assert_eq!(Said::of_record(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn lines_are_taken_one_by_one_and_endless_ones_in_pieces() {
        let endless = vec![b'x'; LINE_BYTES as usize + 1];
        let text = [b"one\n", &endless[..]].concat();
        let mut from = &text[..];
        assert_eq!(next_line(&mut from).as_deref(), Some(&b"one\n"[..]));
        assert_eq!(
            next_line(&mut from).map(|line| line.len()),
            Some(LINE_BYTES as usize)
        );
        assert_eq!(next_line(&mut from).as_deref(), Some(&b"x"[..]));
        assert_eq!(next_line(&mut from), None);
    }

    #[test]
    fn a_job_of_any_bytes_survives_its_file() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = OsString::from_vec(vec![b'a', 0xff, b'"', b'\n', b' ']);
        let job = Job {
            command: vec![odd.clone()],
            directory: odd.clone(),
            environment: vec![(odd.clone(), odd)],
            keeps_files: true,
        };
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
    }
}
