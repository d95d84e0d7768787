//! How late a sleeping thread wakes.

use std::time::{Duration, Instant};

use lagometer_results::NoiseQuantiles;

use super::{micros, quantiles, tenths};

/// Long enough that the sleeping thread leaves its processor.
const SLEEP: Duration = Duration::from_millis(2);
/// What a precise sender asks for between packets.
const SHORT_SLEEP: Duration = Duration::from_micros(50);

/// By how much sleeps of two milliseconds are exceeded.
pub(super) fn lateness_us(times: usize) -> NoiseQuantiles {
    exceeding(SLEEP, times)
}

/// By how much sleeps of 50 µs are exceeded with the least timer slack that
/// the system grants.
pub(super) fn overshoot_us(times: usize) -> NoiseQuantiles {
    // The slack is the thread's own, and so it is of no consequence to others.
    let measured = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let _ = lagometer_platform::be_punctual();
                exceeding(SHORT_SLEEP, times)
            })
            .join()
    });
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// By how much the kernel may put off a thread's timers, in microseconds.
pub(super) fn slack_us() -> Option<f64> {
    lagometer_platform::timer_slack().map(|slack| tenths(micros(slack)))
}

fn exceeding(span: Duration, times: usize) -> NoiseQuantiles {
    let late = |_| {
        let asleep = Instant::now();
        std::thread::sleep(span);
        micros(asleep.elapsed().saturating_sub(span))
    };
    quantiles((0..times).map(late).collect())
}
