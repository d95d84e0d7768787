//! Asking Linux' scheduler for precedence: `sched_setscheduler(2)`.

#![expect(unsafe_code, reason = "the call has no safe wrapper")]

use std::io;

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
