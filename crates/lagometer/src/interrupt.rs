//! Ctrl-C: the first asks the run to stop where it is, the second ends the
//! program.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static STOP: AtomicBool = AtomicBool::new(false);

/// Starts listening; returns the flag that Ctrl-C raises.
pub(crate) fn listen() -> Result<&'static AtomicBool, Failure> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("lagometer: stopping; press Ctrl-C again to leave at once");
    })
    .map_err(|why| Failure::Environment(format!("cannot listen for Ctrl-C: {why}")))?;
    Ok(&STOP)
}
