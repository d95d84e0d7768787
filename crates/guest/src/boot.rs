//! The step from a process of the machine to the kernel in it.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::personality::{self, Persona};
use nix::sys::resource::{Resource, setrlimit};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::protocol::MEMORY_PLACE;

/// Variables of the machine that the kernel is left with.
const KEPT: [&str; 1] = [MEMORY_PLACE];

/// Becomes the kernel: the process that was started with
/// [`BOOT`](crate::BOOT), `kernel` and `arguments` calls this. Returns only if
/// that fails, and why.
///
/// The kernel dies with the thread that started the process, and with it all
/// that runs in the guest. Its addresses are not randomised.
#[must_use]
pub fn boot(kernel: &Path, arguments: &[OsString]) -> io::Error {
    let prepared = || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
        // A kernel that panics would leave a core file as large as its memory.
        setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
        Ok(())
    };
    if let Err(error) = prepared() {
        return error;
    }
    let mut command = Command::new(kernel);
    // A kernel finds by its environment where its stack ends: there must be some.
    command.args(arguments).env_clear().env("HOME", "/");
    command.envs(
        KEPT.iter()
            .filter_map(|&key| Some((key, env::var_os(key)?))),
    );
    command.exec()
}
