//! Asking the scheduler for precedence: `sched_setscheduler(2)`.

use std::io;

use nix::libc;

/// Puts the calling thread into the first-in first-out real-time class at its
/// lowest priority: it runs before every ordinary thread of its core.
///
/// # Errors
///
/// What the system says; without privilege or an `RLIMIT_RTPRIO`, that it is
/// not permitted.
pub(crate) fn become_first() -> io::Result<()> {
    // SAFETY: a structure of numbers, for each of which zero is a value. musl has more
    // of them than other C libraries, and uses none.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // SAFETY: the pointer is to a whole `sched_param` that the call only
    // reads; 0 names the calling thread.
    let outcome = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
