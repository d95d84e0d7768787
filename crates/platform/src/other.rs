//! Systems that keep to POSIX and are not Linux: macOS.

use std::io;
use std::time::Duration;

use rustix::net::SendFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

pub(crate) use std::thread::yield_now as yield_thread;

pub(crate) use crate::instant::monotonic_ns;
pub(crate) use crate::loopback::{Reserve, Waker, let_reads_end};

/// No signal comes: the standard library sees to it.
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

pub(crate) fn thread_cpu_time() -> Duration {
    of_clock(ClockId::ThreadCPUTime)
}

pub(crate) fn process_cpu_time() -> Duration {
    of_clock(ClockId::ProcessCPUTime)
}

fn of_clock(clock: ClockId) -> Duration {
    let used = clock_gettime(clock);
    // Neither is ever negative.
    Duration::new(used.tv_sec.cast_unsigned(), used.tv_nsec as u32)
}

pub(crate) const fn be_punctual() -> io::Result<()> {
    Ok(())
}

pub(crate) const fn timer_slack() -> Option<Duration> {
    None
}

pub(crate) const fn processors() -> Vec<usize> {
    Vec::new()
}

pub(crate) fn place_thread(_: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

pub(crate) fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    let _ = setrlimit(Resource::Nofile, most);
}

pub(crate) fn release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

pub(crate) fn call_kernel() {
    std::hint::black_box(rustix::process::getppid());
}
