//! What [`crate`] has of Windows; what Windows lacks says so.

#[path = "windows/tick.rs"]
mod tick;

use std::time::Duration;

use winsafe::co::RRF;
use winsafe::{FILETIME, HKEY, HPROCESS, HTHREAD, RegistryValue};

pub(crate) use crate::absent::{
    NO_SIGNAL, become_first, place_thread, processors, timer_slack, yield_thread,
};
pub(crate) use crate::instant::monotonic_ns;
pub(crate) use crate::loopback::{Reserve, Waker, let_reads_end};
pub(crate) use tick::{be_punctual, timer_resolution};

/// What the system counts processor time in, in nanoseconds.
const TICK_NS: u64 = 100;

/// Windows' address translation and its virtual machines take hundreds of ports each time
/// that it starts.
pub(crate) const RESERVED_PORTS: &str = "Windows or its firewall keeps that port: `netsh interface ipv4 show excludedportrange tcp` (or udp) lists those it keeps, choose another";

pub(crate) fn thread_cpu_time() -> Duration {
    // Asking for one's own fails nowhere.
    HTHREAD::GetCurrentThread()
        .GetThreadTimes()
        .map_or(Duration::ZERO, |(_, _, kernel, user)| sum(kernel, user))
}

pub(crate) fn process_cpu_time() -> Duration {
    HPROCESS::GetCurrentProcess()
        .GetProcessTimes()
        .map_or(Duration::ZERO, |(_, _, kernel, user)| sum(kernel, user))
}

fn sum(kernel: FILETIME, user: FILETIME) -> Duration {
    Duration::from_nanos((u64::from(kernel) + u64::from(user)) * TICK_NS)
}

pub(crate) const fn open_files() -> Option<u64> {
    None
}

pub(crate) const fn raise_open_files() {}

pub(crate) const fn set_echo(_is_on: bool) -> bool {
    false
}

pub(crate) fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

/// Major version, minor version and build, as the registry has them: what programs
/// are reported otherwise depends on their manifest.
pub(crate) fn release() -> String {
    let value = |name| {
        let key = "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";
        HKEY::LOCAL_MACHINE.RegGetValue(Some(key), Some(name), RRF::RT_ANY)
    };
    let number = |name| match value(name) {
        Ok(RegistryValue::Dword(number)) => Some(number),
        _ => None,
    };
    let text = |name| match value(name) {
        Ok(RegistryValue::Sz(text)) => Some(text),
        _ => None,
    };
    // Windows before 10 has the first two in one text alone.
    let version = number("CurrentMajorVersionNumber")
        .zip(number("CurrentMinorVersionNumber"))
        .map(|(major, minor)| format!("{major}.{minor}"))
        .or_else(|| text("CurrentVersion"));
    [version, text("CurrentBuildNumber")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(".")
}

pub(crate) fn call_kernel() {
    // What reads a page that is mapped everywhere is no call; this is one.
    let _ = std::hint::black_box(HPROCESS::GetCurrentProcess().GetProcessTimes());
}
