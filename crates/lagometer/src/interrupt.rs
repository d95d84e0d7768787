//! Ctrl-C and the signals that ask to end: the first asks the command to stop
//! where it is, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::failure::Failure;
use crate::live;

static STOP: AtomicBool = AtomicBool::new(false);
static WAITING: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// Starts listening; returns the flag that Ctrl-C raises.
pub(crate) fn listen() -> Result<&'static AtomicBool, Failure> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            live::give_back();
            std::process::exit(130);
        }
        drop(WAITING.0.lock());
        WAITING.1.notify_all();
        note!("lagometer: stopping; press Ctrl-C again to leave at once");
    })
    .map_err(|why| Failure::Environment(format!("cannot listen for Ctrl-C: {why}")))?;
    Ok(&STOP)
}

/// Waits for it.
pub(crate) fn wait() {
    let guard = WAITING.0.lock().unwrap_or_else(PoisonError::into_inner);
    let _ended = WAITING
        .1
        .wait_while(guard, |()| !STOP.load(Ordering::Relaxed));
}
