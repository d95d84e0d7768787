//! What all systems have that keep to POSIX, Linux among them.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getpgrp, getrlimit, setrlimit};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcsetattr};
use rustix::time::{ClockId, clock_gettime};

pub(crate) const RESERVED_PORTS: &str = "ports below 1024 are the administrator's: choose another";

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

pub(crate) fn set_echo(is_on: bool) -> bool {
    let stdin = std::io::stdin();
    // Who changes a terminal from its background is stopped by it.
    let is_in_front = tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
    let Some(mut modes) = tcgetattr(&stdin).ok().filter(|_| is_in_front) else {
        return false;
    };
    if modes.local_modes.contains(LocalModes::ECHO) == is_on {
        return false;
    }
    modes.local_modes.set(LocalModes::ECHO, is_on);
    tcsetattr(&stdin, OptionalActions::Now, &modes).is_ok()
}

pub(crate) fn call_kernel() {
    std::hint::black_box(rustix::process::getppid());
}
