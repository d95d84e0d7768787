//! Running the programs of a build: everything they say goes to the log, and
//! they end with whatever they started when the build is interrupted.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::{Doing as _, Error};

/// How often is looked whether a program has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Variables that configure builds, and are not meant for this one.
const NOT_OURS: [&str; 12] = [
    "ARCH",
    "SUBARCH",
    "CROSS_COMPILE",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKEOVERRIDES",
    "MAKELEVEL",
    "KBUILD_OUTPUT",
    "KCFLAGS",
    "KCPPFLAGS",
    "CFLAGS",
    "LDFLAGS",
];

/// The log of a build.
pub(crate) struct Log {
    path: PathBuf,
}

impl Log {
    /// An empty log.
    pub(crate) fn new(path: PathBuf) -> Result<Self, Error> {
        File::create(&path).doing(format!("writing {}", path.display()))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `command` to its end; `watch` is shown what it says, as it comes.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] when `stop` becomes true, [`Error::Step`] if the
    /// command fails.
    pub(crate) fn run(
        &self,
        doing: &'static str,
        mut command: Command,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let open = || {
            File::options()
                .append(true)
                .open(&self.path)
                .doing(format!("writing {}", self.path.display()))
        };
        for variable in NOT_OURS {
            command.env_remove(variable);
        }
        command.env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(open()?).stderr(open()?);
        own_group(&mut command);
        let mut reader =
            File::open(&self.path).doing(format!("reading {}", self.path.display()))?;
        reader
            .seek(SeekFrom::End(0))
            .doing(format!("reading {}", self.path.display()))?;
        let child = command.spawn().doing(format!("starting {doing}"))?;
        let mut running = Running {
            child,
            has_ended: false,
        };
        let status = loop {
            let ended = running
                .child
                .try_wait()
                .doing(format!("waiting for {doing}"))?;
            let mut said = Vec::new();
            // What cannot be read back is still in the log.
            if reader.read_to_end(&mut said).is_ok() && !said.is_empty() {
                watch(&String::from_utf8_lossy(&said));
            }
            if let Some(status) = ended {
                running.has_ended = true;
                break status;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            thread::sleep(LOOK);
        };
        if status.success() {
            return Ok(());
        }
        Err(Error::Step {
            doing,
            last: self.reason().unwrap_or_else(|| status.to_string()),
            log: self.path.clone(),
        })
    }

    /// The line in the log that most likely says what went wrong: the last
    /// that speaks of an error, else the last of all.
    fn reason(&self) -> Option<String> {
        let bytes = fs::read(&self.path).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let lines = || {
            text.lines()
                .rev()
                .map(str::trim)
                .filter(|line| !line.is_empty())
        };
        let of_error = |line: &&str| {
            let lower = line.to_lowercase();
            lower.contains("error") && !lower.starts_with("make")
        };
        lines()
            .find(of_error)
            .or_else(|| lines().next())
            .map(str::to_owned)
    }
}

/// A program that ends, with all it started, when this is dropped.
struct Running {
    child: Child,
    has_ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            end_group(&mut self.child);
            let _ = self.child.wait();
        }
    }
}

/// Puts the command into a process group of its own: the terminal's Ctrl-C is
/// for the build, which ends the whole group.
#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

#[cfg(target_os = "linux")]
pub(crate) fn end_group(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may have ended by itself just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(target_os = "linux"))]
fn end_group(child: &mut Child) {
    let _ = child.kill();
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn log() -> (tempfile::TempDir, Log) {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::new(folder.path().join("log")).unwrap();
        (folder, log)
    }

    #[test]
    fn what_a_program_says_is_logged_and_shown() {
        let (_folder, log) = log();
        let go_on = AtomicBool::new(false);
        let mut shown = String::new();
        for word in ["one", "two"] {
            log.run(
                "trying",
                shell(&format!("echo {word} >&2")),
                &go_on,
                &mut |said| shown += said,
            )
            .unwrap();
        }
        assert_eq!(shown, "one\ntwo\n");
        assert_eq!(fs::read_to_string(log.path()).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_failure_names_the_error_and_the_log() {
        let (_folder, log) = log();
        let script = "echo 'x.c:1: error: no such thing'; echo 'make: *** [all] Error 2'; exit 2";
        let failed = log
            .run(
                "compiling",
                shell(script),
                &AtomicBool::new(false),
                &mut |_| {},
            )
            .unwrap_err()
            .to_string();
        assert!(
            failed.starts_with("compiling failed: x.c:1: error: no such thing; the log is /"),
            "{failed}"
        );
    }

    #[test]
    fn an_interrupted_program_ends_with_its_children() {
        let (folder, log) = log();
        let alive = folder.path().join("alive");
        let stop = AtomicBool::new(false);
        // The child holds the fifo open for as long as it lives.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &alive,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let script = format!("(echo up; exec sleep 1000) > '{}' & wait", alive.display());
        thread::scope(|scope| {
            let running = scope.spawn(|| log.run("waiting", shell(&script), &stop, &mut |_| {}));
            let mut fifo = File::open(&alive).unwrap();
            let mut said = [0; 3];
            fifo.read_exact(&mut said).unwrap();
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(running.join().unwrap(), Err(Error::Stopped)));
            // Ends only when nobody holds the other end.
            assert_eq!(fifo.read(&mut said).unwrap(), 0);
        });
    }
}
