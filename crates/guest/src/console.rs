//! What comes out of a guest: what its job says, and what its kernel does, which is
//! looked at where the guest ends without having said how.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::output::Output;
use crate::protocol::{MEMORY_PLACE, Said};

/// How many of the kernel's lines are kept, to say why it ended.
const LAST_LINES: usize = 20;
/// How much is read of what the process says that becomes the kernel.
const MOST_ERRORS: u64 = 64 << 10;

/// Reads what a guest writes: the records of its job, and its console.
#[derive(Debug)]
pub(crate) struct ConsoleReader {
    /// The guest's clock when it last said anything.
    at: Duration,
    /// The kernel's last lines.
    last: VecDeque<String>,
    /// What the job says.
    output: Output,
}

impl ConsoleReader {
    /// A reader of a guest whose job's records are in `output`.
    pub(crate) const fn new(output: Output) -> Self {
        Self {
            at: Duration::ZERO,
            last: VecDeque::new(),
            output,
        }
    }

    /// The guest's clock when it last said anything, since it booted.
    pub(crate) const fn at(&self) -> Duration {
        self.at
    }

    /// Hands on what the job has said; whether there was anything.
    pub(crate) fn listen(&mut self, said: &mut dyn FnMut(&Said<'_>)) -> bool {
        let mut has_received = false;
        while let Some(record) = self.output.next_record() {
            if let Some(received) = Said::of_record(&record) {
                has_received = true;
                self.at = received.at;
                said(&received);
            }
        }
        has_received
    }

    /// Takes a line from the console, which is the kernel's.
    pub(crate) fn take(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        // The kernel's level of what is urgent, as in `<0>`.
        let line = line.trim().trim_start_matches("<0>");
        if !line.is_empty() {
            self.last.truncate(LAST_LINES - 1);
            self.last.push_front(line.to_owned());
        }
    }

    /// Why the guest ended without saying how; `errors` has what the process said that
    /// was to become its kernel.
    pub(crate) fn broke_off(&self, errors: &Path) -> Error {
        // The signal by which the machine says that a file that is mapped cannot grow.
        let had_no_room = |line: &String| line.contains("Kernel mode signal 7");
        if self.last.iter().any(had_no_room) {
            return Error::NoRoom {
                place: memory_place(),
            };
        }
        let last = self.last_line().or_else(|| last_line_of(errors));
        Error::Guest {
            last: last.unwrap_or_else(|| "nothing".to_owned()),
        }
    }

    /// The kernel's line that most likely says why it ended.
    fn last_line(&self) -> Option<String> {
        // A stack trace, which follows, has the word in other words.
        let says_why = |line: &&String| line.contains("panic - ") || line.contains("could not be");
        let says_more = |line: &&String| !line.starts_with("reboot:");
        let mut lines = self.last.iter();
        lines
            .clone()
            .find(says_why)
            .or_else(|| lines.find(says_more))
            .cloned()
    }
}

/// The last line of a file's first bytes that is not empty.
fn last_line_of(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MOST_ERRORS).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::trim);
    lines.rfind(|line| !line.is_empty()).map(str::to_owned)
}

/// Where a kernel keeps its memory: in `TMPDIR`, or in the machine's memory.
fn memory_place() -> String {
    std::env::var_os(MEMORY_PLACE).map_or_else(
        || "/dev/shm".to_owned(),
        |place| PathBuf::from(place).display().to_string(),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn console(folder: &Path) -> ConsoleReader {
        ConsoleReader::new(Output::open(&folder.join("output")).unwrap())
    }

    #[test]
    fn the_kernels_panic_is_what_is_said_of_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut console = console(folder.path());
        let lines = [
            "Kernel panic - not syncing: no init\r\n",
            "\r\n",
            "CPU: 0 PID: 1\n",
            "reboot: System halted\n",
        ];
        for line in lines {
            console.take(line.as_bytes());
        }
        let panic = "Kernel panic - not syncing: no init";
        assert_eq!(console.last_line().as_deref(), Some(panic));
        let errors = folder.path().join("none");
        assert!(matches!(console.broke_off(&errors), Error::Guest { .. }));
        console.take(b"<0>Kernel panic - not syncing: Kernel mode signal 7\n");
        let panic = "Kernel panic - not syncing: Kernel mode signal 7";
        assert_eq!(console.last_line().as_deref(), Some(panic));
        assert!(matches!(console.broke_off(&errors), Error::NoRoom { .. }));
    }

    #[test]
    fn of_a_kernel_that_said_nothing_the_reason_is_what_kept_it_from_starting() {
        let folder = tempfile::tempdir().unwrap();
        let console = console(folder.path());
        let errors = folder.path().join("errors");
        fs::write(&errors, "a guest cannot be: Permission denied\n\n").unwrap();
        let said = console.broke_off(&errors).to_string();
        assert!(
            said.ends_with("a guest cannot be: Permission denied"),
            "{said}"
        );
    }
}
