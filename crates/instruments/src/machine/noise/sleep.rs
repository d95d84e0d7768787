//! How late a sleeping thread wakes.

use std::time::{Duration, Instant};

use lagometer_stats::NoiseQuantiles;

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
                #[cfg(target_os = "linux")]
                let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
                exceeding(SHORT_SLEEP, times)
            })
            .join()
    });
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// By how much the kernel may put off a thread's timers, in microseconds.
pub(super) fn slack_us() -> Option<f64> {
    #[cfg(target_os = "linux")]
    {
        let nanos = rustix::thread::current_timer_slack().ok()?;
        Some(tenths(nanos as f64 / 1e3))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

fn exceeding(span: Duration, times: usize) -> NoiseQuantiles {
    let late = |_| {
        let asleep = Instant::now();
        std::thread::sleep(span);
        micros(asleep.elapsed().saturating_sub(span))
    };
    quantiles((0..times).map(late).collect())
}
