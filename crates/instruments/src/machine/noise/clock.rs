//! What it costs to ask for the time, and to ask the kernel for anything.

use std::hint::black_box;
use std::time::Instant;

use super::tenths;

/// Enough for a millisecond or two.
const TIMES: u32 = 20_000;
/// The least of so many rounds, so that an interruption does not count.
const ROUNDS: u32 = 5;

/// Which clock the kernel reads; empty where it does not say.
pub(super) fn source() -> String {
    std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .map(|source| source.trim().to_owned())
        .unwrap_or_default()
}

/// Nanoseconds that reading the monotonic clock takes.
pub(super) fn read_ns() -> f64 {
    least_ns(|| {
        black_box(Instant::now());
    })
}

/// Nanoseconds that the simplest system call takes.
pub(super) fn system_call_ns() -> f64 {
    least_ns(lagometer_platform::call_kernel)
}

fn least_ns(what: impl Fn()) -> f64 {
    let round = |_| {
        let began = Instant::now();
        for _ in 0..TIMES {
            what();
        }
        began.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    };
    tenths((0..ROUNDS).map(round).fold(f64::INFINITY, f64::min))
}
