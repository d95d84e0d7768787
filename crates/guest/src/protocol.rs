//! What a guest and who started it agree on: names of files, and how lines of
//! the guest's programs are told from the kernel's.

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
/// What is to run, in the guest's folder.
pub(crate) const JOB: &str = "job.json";
/// The shared folder, in the guest's folder.
pub(crate) const SHARE_OUTSIDE: &str = "share";
/// How the program ended, in the shared folder.
pub(crate) const ENDED: &str = ".ended.json";

/// The working directory of the kernel, seen through the machine's `/proc`.
/// The guest's folder is known by no other name, so that the kernel's command
/// line is the same for every guest, however the folder is called.
pub(crate) const OUTSIDE: &str = "/proc/self/cwd";

/// The longest line that is taken at once.
const LINE_BYTES: u64 = 16 << 10;

/// How lines begin that the guest's program said.
const SAID: &str = "@said ";

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
}

/// As whom it runs: who started the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// What is in [`JOB`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Errand {
    pub(crate) job: Job,
    pub(crate) user: User,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Its exit code; 128 and the signal's number where a signal ended it.
    pub(crate) code: i32,
    /// By the guest's clock, since it booted.
    pub(crate) at: Duration,
}

/// A line that the guest's program said, as it is put on the console.
pub(crate) fn said(at: Duration, line: &str) -> String {
    format!("{SAID}{} {line}\n", at.as_nanos())
}

/// When a line from the console was said and what it was; nothing where it is
/// the kernel's.
pub(crate) fn heard(line: &str) -> Option<(Duration, &str)> {
    let (nanos, line) = line.strip_prefix(SAID)?.split_once(' ')?;
    Some((Duration::from_nanos(nanos.parse().ok()?), line))
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
    fn what_is_said_is_heard_and_the_kernels_lines_are_not() {
        let at = Duration::from_millis(1500);
        let line = said(at, "a b  c");
        assert_eq!(heard(line.trim_end()), Some((at, "a b  c")));
        assert_eq!(heard("reboot: System halted"), None);
        assert_eq!(heard("@said soon x"), None);
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
        };
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
    }
}
