//! The parts of commands that only the testbed `emu` has.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_emu::{Error, Permission};
use lagometer_lab::Resolved;
use lagometer_lab::emu::{EmuOptions, EmulatedRun, play_emulated};

use crate::failure::Failure;

/// Gets the right to have hosts; to be called while the process has a
/// single thread.
pub(crate) fn acquire_permission() -> Result<(), Failure> {
    match Permission::acquire() {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Failure::Environment(format!(
            "{refusal}; or do without with `--emu-mode proxy`"
        ))),
    }
}

/// Plays the experiment in real time.
pub(super) fn play(
    resolved: &Resolved,
    options: &EmuOptions,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<EmulatedRun, Failure> {
    let found = play_emulated(resolved, options, progress, stop).map_err(failure)?;
    if found.again > 0 {
        note!(
            "lagometer: the emulator was outside its band, and seeds were played again: {} times",
            found.again
        );
    }
    Ok(found)
}

/// Whether the user or the machine is to mend it.
pub(crate) fn failure(error: Error) -> Failure {
    match error {
        Error::TooManyLanes { .. } | Error::Mtu { .. } => Failure::input(error),
        error => Failure::Environment(error.to_string()),
    }
}
