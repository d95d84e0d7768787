//! The tick of Windows' clock: when waits with a time limit may end.

#![expect(unsafe_code, reason = "these calls have no safe wrapper")]

use std::io;
use std::time::Duration;

use crate::TimerResolution;

/// What the system counts time in, in nanoseconds.
const UNIT_NS: u64 = 100;

// SAFETY: the signatures are those of Windows' own headers (`timeapi.h`; `ntdll` as
// it has been since Windows 2000). The first is given a number alone, the second
// places to write to that live as long as the call.
#[link(name = "winmm", kind = "raw-dylib")]
unsafe extern "system" {
    safe fn timeBeginPeriod(milliseconds: u32) -> u32;
}

#[link(name = "ntdll", kind = "raw-dylib")]
unsafe extern "system" {
    safe fn NtQueryTimerResolution(coarsest: &mut u32, finest: &mut u32, current: &mut u32) -> i32;
}

/// Has the clock tick each millisecond until the process ends.
pub(crate) fn be_punctual() -> io::Result<()> {
    match timeBeginPeriod(1) {
        0 => Ok(()),
        // `TIMERR_NOCANDO` is the only other answer.
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the system's clock does not tick each millisecond",
        )),
    }
}

pub(crate) fn timer_resolution() -> Option<TimerResolution> {
    let [mut coarsest, mut finest, mut current] = [0; 3];
    let status = NtQueryTimerResolution(&mut coarsest, &mut finest, &mut current);
    let time = |units: u32| Duration::from_nanos(u64::from(units) * UNIT_NS);
    (status == 0).then(|| TimerResolution {
        coarsest: time(coarsest),
        finest: time(finest),
        current: time(current),
    })
}
