//! This program started again within a guest: what the commands with a testbed
//! `kernel` share.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_guest::{Cache, Ended, Guest, Job, Kernel, Limits, Said, Traps};
use lagometer_units::create_private_file;

use super::kernel::failure;
use crate::cli::GuestFlags;
use crate::failure::{Failure, Missing};
use crate::guest::PACKETS;

/// Memory of a guest, in MiB: what it does not use the machine does not give.
const MEMORY_MIB: u32 = 2048;

/// The kernel that was asked for.
pub(super) fn kernel(flags: &GuestFlags) -> Result<Kernel, Failure> {
    let cache = Cache::of_user().map_err(failure)?;
    cache.find(flags.kernel.as_deref()).map_err(failure)
}

/// Refuses the choice of a kernel where nothing is played in guests.
pub(super) fn check_kernel(flags: &GuestFlags, is_guest: bool) -> Result<(), Failure> {
    match flags.kernel {
        Some(_) if !is_guest => Err(Failure::Input(
            "--kernel is for `--testbed kernel`".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// This program within a guest.
pub(super) struct Visit<'a> {
    pub(super) kernel: &'a Kernel,
    /// The seed of the kernel's random numbers.
    pub(super) seed: u64,
    /// How its system calls are caught.
    pub(super) traps: Traps,
    /// What it is to do there: the words after its name.
    pub(super) words: Vec<OsString>,
    /// The longest it may take in real time.
    pub(super) limit: Duration,
    /// The longest it may say nothing, in real time.
    pub(super) silence: Duration,
    /// Its environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Whether the files that are written there are kept.
    pub(super) keeps_files: bool,
}

impl Visit<'_> {
    /// Starts it and reads from it to its end.
    pub(super) fn run(
        self,
        on_line: &mut dyn FnMut(&Said<'_>),
        stop: &AtomicBool,
    ) -> Result<Ended, Failure> {
        let system = |what: &str, why: io::Error| Failure::Environment(format!("{what}: {why}"));
        let own_program = env::current_exe().map_err(|why| system("finding this program", why))?;
        let directory = env::current_dir().map_err(|why| system("finding this folder", why))?;
        let mut command = vec![OsString::from(&own_program)];
        command.extend(self.words);
        let job = Job {
            command,
            directory: directory.into(),
            environment: self.environment,
            keeps_files: self.keeps_files,
        };
        let guest = Guest {
            kernel: self.kernel,
            own_program: &own_program,
            job: &job,
            seed: self.seed,
            traps: self.traps,
            limits: Limits {
                memory_mib: MEMORY_MIB,
                time: self.limit,
                silence: self.silence,
            },
        };
        guest.run(on_line, stop).map_err(failure)
    }
}

/// The thread that computed when a guest was cut, for a sentence.
pub(super) fn who_computes(ended: &Ended) -> String {
    ended.busy.as_ref().map_or_else(
        || "something in it".to_owned(),
        |name| format!("its thread `{name}`"),
    )
}

/// The guest's log of packets; empty where it left none.
pub(super) fn packets(ended: &Ended) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = ended
        .open_shared(PACKETS)
        .and_then(|mut file| file.read_to_end(&mut bytes));
    // Without it there is nothing to be seen of packets.
    if read.is_err() {
        bytes.clear();
    }
    bytes
}

/// Makes the file that a log of packets goes to, before anything is played.
pub(super) fn make_capture(path: &Path) -> Result<(), Failure> {
    create_private_file(path)
        .map(drop)
        .map_err(|why| Failure::Write {
            path: path.to_owned(),
            why,
        })
}

/// Writes a guest's log of packets to where the user wants it.
pub(super) fn save_packets(log: &[u8], path: &Path) -> Result<(), Failure> {
    if log.is_empty() {
        note!("lagometer: there is no log of packets: the guest left none");
        return Ok(());
    }
    create_private_file(path)
        .and_then(|mut file| file.write_all(log))
        .map_err(|why| Failure::Cut {
            path: path.to_owned(),
            why: why.to_string(),
            missing: Missing(None),
        })
}
