//! Systems that keep to POSIX and are not Linux: macOS.

use std::io;

use crate::TimerResolution;

pub(crate) use crate::absent::{
    NO_SIGNAL, become_first, place_thread, processors, timer_slack, yield_thread,
};
pub(crate) use crate::instant::monotonic_ns;
pub(crate) use crate::loopback::{Reserve, Waker, let_reads_end};
pub(crate) use crate::posix::{
    RESERVED_PORTS, call_kernel, host_name, open_files, process_cpu_time, raise_open_files,
    set_echo, thread_cpu_time,
};

pub(crate) fn release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// There is nothing to ask for.
#[expect(clippy::unnecessary_wraps, reason = "the shape that others have")]
pub(crate) const fn be_punctual() -> io::Result<()> {
    Ok(())
}

pub(crate) const fn timer_resolution() -> Option<TimerResolution> {
    None
}
