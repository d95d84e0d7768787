//! A guest from outside: a kernel is started on a job, read from, and ended.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{self, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::Gid;

use crate::command::end_group;
use crate::console::ConsoleReader;
use crate::copy::copy_tree;
use crate::error::{Doing as _, Error};
use crate::folder::GuestFolder;
use crate::holder::busiest_thread;
use crate::outcome::{Cut, EPOCH_S, Outcome, Traps};
use crate::output::Output;
use crate::protocol::{
    BOOT, ENDED, End, Errand, INIT, INIT_LINK, JOB, KEPT, MEMORY_PLACE, OUTPUT, OUTSIDE,
    OWN_OUTSIDE, SHARE_OUTSIDE, STOP, Said, User, next_line,
};
use crate::start::Guest;

/// How often is looked whether a guest is to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long a guest that was asked to end has for it.
const FAREWELL: Duration = Duration::from_secs(15);
/// How long one has whose clock stands still: while a thread computes without ever
/// sleeping, nobody in it notices that it is to end.
const FAREWELL_OF_SPINNING: Duration = Duration::from_secs(3);
/// A guest that computes and has said nothing for so long is taken to stand still.
const STANDSTILL: Duration = Duration::from_secs(10);
/// What the process says that becomes the kernel, in the guest's folder.
const ERRORS: &str = "errors";
/// Lines that wait to be read.
const LINES_WAITING: usize = 1024;

/// What came of a guest.
#[derive(Debug)]
pub struct Ended {
    /// How its program ended.
    pub outcome: Outcome,
    /// When, by the guest's clock, since it booted; or the last that was read
    /// of it.
    pub at: Duration,
    /// The name of the thread that had the processor when the guest was cut, if
    /// one had and it is known: while a thread computes the clock stands
    /// still.
    pub busy: Option<String>,
    /// Which of the files that were to be kept the guest could not leave, and why.
    not_kept: Option<String>,
    folder: GuestFolder,
}

impl Ended {
    /// The folder that the guest shared, which goes when this is dropped.
    #[must_use]
    pub fn share(&self) -> PathBuf {
        self.folder.path().join(SHARE_OUTSIDE)
    }

    /// Opens a file at the top of the shared folder. Who is in a guest may put
    /// anything there: what is not a regular file is not opened.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn open_shared(&self, name: &str) -> io::Result<File> {
        open_regular(&self.share().join(name))
    }

    /// Whether the files that the job wrote are there: they were asked for, and
    /// the guest came to its end by itself.
    #[must_use]
    pub fn has_kept(&self) -> bool {
        self.kept().exists()
    }

    /// Copies the files that the job wrote into `folder`, each under the whole
    /// path it had; which of them could not be kept and why, if any. Device files and the
    /// like are left out. The owner of a copy may read and write it, whatever its mode was.
    ///
    /// # Errors
    ///
    /// What the system says where `folder` cannot be made.
    pub fn copy_kept(&self, folder: &Path) -> io::Result<Option<String>> {
        let omitted = copy_tree(&self.kept(), folder, &[])?.in_words();
        let both = self.not_kept.iter().cloned().chain(omitted);
        Ok(both.reduce(|one, other| format!("{one}; {other}")))
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join(OWN_OUTSIDE).join(KEPT)
    }
}

/// Opens a file for reading if it is one, and no link to one.
fn open_regular(path: &Path) -> io::Result<File> {
    // Not to wait for whoever opens the other end, if it is a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(file)
}

impl Guest<'_> {
    /// Runs the job to its end.
    ///
    /// `said` is handed every line of the job's standard output and error. When `stop` becomes true, or at a limit, the job is
    /// asked to end by the file [`STOP`] in the shared folder, and is ended if
    /// it does not.
    ///
    /// # Errors
    ///
    /// [`Error`]: what the system refuses, and a guest that ended without
    /// saying how, with the kernel's last line.
    pub fn run(&self, said: &mut dyn FnMut(&Said<'_>), stop: &AtomicBool) -> Result<Ended, Error> {
        let folder = self.lay_out()?;
        let own = folder.path().join(OWN_OUTSIDE);
        let said_there = Output::open(&own.join(OUTPUT)).doing("making a guest's folder")?;
        let mut child = Machine(
            self.command(folder.path())?
                .spawn()
                .doing("starting a guest")?,
        );
        let output = child.0.stdout.take();
        let lines = read_lines(output)?;
        let mut console = ConsoleReader::new(said_there);
        let cut = self.attend(
            &lines,
            &mut child.0,
            folder.path(),
            &mut console,
            said,
            stop,
        );
        child.0.wait().doing("waiting for a guest")?;
        console.listen(said);
        let end = fs::read(own.join(ENDED))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<End>(&bytes).ok());
        let (cut, busy) = cut.map(|cutting| (cutting.why, cutting.busy)).unzip();
        let (outcome, at) = match (cut, &end) {
            (Some(cut), end) => (
                Outcome::Cut(cut),
                end.as_ref().map_or(console.at(), |end| end.at),
            ),
            (None, Some(end)) => (Outcome::Exited(end.code), end.at),
            (None, None) => return Err(console.broke_off(&folder.path().join(ERRORS))),
        };
        let (not_started, not_kept) =
            end.map_or((None, None), |end| (end.not_started, end.not_kept));
        if let Some(why) = not_started {
            return Err(self.not_started(why));
        }
        Ok(Ended {
            outcome,
            at,
            busy: busy.flatten(),
            not_kept,
            folder,
        })
    }

    /// Why the job could not be started in the guest.
    fn not_started(&self, why: String) -> Error {
        let program = self.job.command.first().map(PathBuf::from);
        Error::NotStarted {
            program: program.unwrap_or_default(),
            directory: PathBuf::from(&self.job.directory),
            why,
        }
    }

    /// Makes the guest's folder.
    fn lay_out(&self) -> Result<GuestFolder, Error> {
        const DOING: &str = "making a guest's folder";
        let folder = GuestFolder::new().doing(DOING)?;
        for part in [SHARE_OUTSIDE, OWN_OUTSIDE, "uml"] {
            fs::create_dir(folder.path().join(part)).doing(DOING)?;
        }
        symlink(self.own_program, folder.path().join(INIT_LINK)).doing(DOING)?;
        let groups = rustix::process::getgroups().map_err(io::Error::from);
        let groups = groups.doing("reading the user's groups")?;
        let errand = Errand {
            job: self.job.clone(),
            user: User {
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
                groups: groups.into_iter().map(Gid::as_raw).collect(),
            },
        };
        let text = serde_json::to_vec(&errand)
            .map_err(io::Error::other)
            .doing(DOING)?;
        fs::write(folder.path().join(JOB), text).doing(DOING)?;
        Ok(folder)
    }

    /// The command that becomes the kernel.
    fn command(&self, folder: &Path) -> Result<Command, Error> {
        let mut command = Command::new(self.own_program);
        command.args(BOOT).arg(self.kernel.program());
        command.args(self.kernel_arguments());
        command.current_dir(folder).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // The kernel is started from its folder, and keeps its memory in this one.
        if let Some(place) = std::env::var_os(MEMORY_PLACE) {
            let place = path::absolute(place).doing("finding the folder of TMPDIR")?;
            command.env(MEMORY_PLACE, place);
        }
        let errors = File::create(folder.join(ERRORS)).doing("making a guest's folder")?;
        command.stderr(errors);
        Ok(command)
    }

    /// The kernel's command line. Nothing of it depends on the machine or the
    /// moment, for the kernel stirs it into its random numbers.
    fn kernel_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![
            format!("mem={}M", self.limits.memory_mib),
            "root=/dev/root".to_owned(),
            "rootfstype=hostfs".to_owned(),
            "ro".to_owned(),
            format!("init={OUTSIDE}/{INIT_LINK}"),
            "con=null".to_owned(),
            "con0=fd:0,fd:1".to_owned(),
            "uml_dir=uml/".to_owned(),
            "time-travel=inf-cpu".to_owned(),
            format!("time-travel-start={}", EPOCH_S * 1_000_000_000),
            "norandmaps".to_owned(),
            // Random numbers are there from the start: whoever asks for the first
            // would wait a quarter of a second for ticks to make them.
            "random.trust_cpu=1".to_owned(),
            format!("lagometer.seed={}", self.seed),
            "quiet".to_owned(),
        ];
        if self.traps == Traps::Trusted && self.kernel.does_without_tracing() {
            arguments.push("seccomp=auto".to_owned());
        }
        arguments.push("--".to_owned());
        arguments.extend(INIT.map(str::to_owned));
        arguments.into_iter().map(OsString::from).collect()
    }

    /// Reads from the guest until it has ended; how it was asked to, if it was.
    fn attend(
        &self,
        lines: &Receiver<Vec<u8>>,
        child: &mut Child,
        folder: &Path,
        console: &mut ConsoleReader,
        said: &mut dyn FnMut(&Said<'_>),
        stop: &AtomicBool,
    ) -> Option<Cutting> {
        let began = Instant::now();
        let mut last_output = began;
        let mut cut: Option<Cutting> = None;
        loop {
            let now = Instant::now();
            if console.listen(said) {
                last_output = now;
            }
            let why = if stop.load(Ordering::Relaxed) {
                Some(Cut::Stopped)
            } else if now - began >= self.limits.time {
                Some(Cut::Time)
            } else {
                (now - last_output >= self.limits.silence).then_some(Cut::Silence)
            };
            match (why, &cut) {
                (Some(why), None) => {
                    let busy = busiest_thread(&self.kernel.program(), child.id());
                    let standstill = STANDSTILL.min(self.limits.silence);
                    let stands_still = busy.is_some() && now - last_output >= standstill;
                    cut = Some(Cutting {
                        why,
                        busy,
                        ends: now
                            + if stands_still {
                                FAREWELL_OF_SPINNING
                            } else {
                                FAREWELL
                            },
                    });
                    ask_to_end(folder);
                }
                (_, Some(cutting)) if now >= cutting.ends => end_group(child),
                _ => {}
            }
            match lines.recv_timeout(LOOK) {
                Ok(line) => console.take(&line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        cut
    }
}

/// How a guest was asked to end.
struct Cutting {
    why: Cut,
    /// The thread that had the processor.
    busy: Option<String>,
    /// When it is ended if it has not by itself.
    ends: Instant,
}

/// Makes the file by which a job is asked to end. Whatever the job has put in
/// its place is left as it is, and not followed.
fn ask_to_end(folder: &Path) {
    // The folder is the job's, who may have seen to it that nobody makes a file there:
    // then it is ended without having been asked.
    let _ = File::create_new(folder.join(SHARE_OUTSIDE).join(STOP));
}

/// Reads lines on a thread of its own, so that a guest that says nothing can be
/// noticed.
fn read_lines(from: Option<impl Read + Send + 'static>) -> Result<Receiver<Vec<u8>>, Error> {
    let (send, lines) = mpsc::sync_channel(LINES_WAITING);
    let Some(from) = from else {
        return Ok(lines);
    };
    thread::Builder::new()
        .name("guest".to_owned())
        .spawn(move || {
            let mut reader = BufReader::new(from);
            while let Some(line) = next_line(&mut reader) {
                if send.send(line).is_err() {
                    return;
                }
            }
        })
        .doing("starting a thread")?;
    Ok(lines)
}

/// A kernel's process, which ends with all that belongs to it when this is
/// dropped.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // Nothing is left of the group if the guest ended by itself.
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            end_group(&mut self.0);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_whose_folder_takes_no_file_is_ended_without_being_asked() {
        let folder = tempfile::tempdir().unwrap();
        ask_to_end(folder.path());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_in_place_of_a_shared_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let share = folder.path().join(SHARE_OUTSIDE);
        let outside = folder.path().join("outside");
        fs::create_dir(&share).unwrap();
        fs::write(&outside, "mine").unwrap();
        for name in [STOP, "result"] {
            symlink(&outside, share.join(name)).unwrap();
        }
        ask_to_end(folder.path());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
        assert!(open_regular(&share.join("result")).is_err());
        assert!(open_regular(&share).is_err());
        assert!(open_regular(&outside).is_ok());
    }
}
