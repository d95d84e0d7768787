//! What the program's allocator does with memory that is freed.

#![allow(unsafe_code, reason = "the allocator's options have no safe wrapper")]

use std::ffi::{c_int, c_long};

use libmimalloc_sys::mi_option_set;

/// `mi_option_purge_delay` of mimalloc 3 (`mi_option_e` in its `mimalloc.h`): for how
/// many milliseconds freed pages are kept, 1000 unless set.
const PURGE_DELAY: c_int = 15;

/// Has memory go back to the system when it is freed, not some time after.
///
/// The allocator looks for what is due only where it is asked for more: what a burst
/// took stayed for as long as nothing as large came again, with many small messages
/// going on all the time. To be called before there are other threads.
pub fn give_back_freed_memory_at_once() {
    const AT_ONCE: c_long = 0;
    // SAFETY: it stores a number. The option is read whenever pages are freed, and no
    // other thread is there to set it.
    unsafe { mi_option_set(PURGE_DELAY, AT_ONCE) }
}
