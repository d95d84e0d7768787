//! What all systems have that keep to POSIX, Linux among them.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

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

pub(crate) fn host_name() -> Option<String> {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    Some(name).filter(|name| !name.is_empty())
}

pub(crate) fn call_kernel() {
    std::hint::black_box(rustix::process::getppid());
}
