//! The machine a run is made on, and how noisy it is.

use std::time::{Duration, Instant};

use lagometer_stats::{Host, Noise, NoiseQuantiles};

/// Sleeps that are timed.
const SLEEPS: usize = 50;

/// Long enough that the sleeping thread leaves its processor, short enough
/// that all sleeps take a tenth of a second.
const SLEEP: Duration = Duration::from_millis(2);

/// Time spent spinning.
const SPIN: Duration = Duration::from_millis(50);

/// A step of the clock longer than this means that the spinning thread did
/// not run.
const GAP: Duration = Duration::from_micros(2);

/// What the machine is, with its noise measured now: about 150 ms.
pub(crate) fn measured() -> Host {
    Host {
        noise: Some(Noise {
            wake_us: wake_lateness(),
            steal_pct: lost_to_gaps_pct(),
        }),
        ..named()
    }
}

/// What the machine is, for figures that it had no part in.
pub(crate) fn named() -> Host {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Host {
        os: std::env::consts::OS.to_owned(),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map(|release| release.trim().to_owned())
            .unwrap_or_default(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        noise: None,
    }
}

/// How late a sleeping thread wakes.
fn wake_lateness() -> NoiseQuantiles {
    let mut late_us: Vec<f64> = (0..SLEEPS)
        .map(|_| {
            let asleep = Instant::now();
            std::thread::sleep(SLEEP);
            asleep.elapsed().saturating_sub(SLEEP).as_secs_f64() * 1e6
        })
        .collect();
    late_us.sort_by(f64::total_cmp);
    let at = |share: f64| {
        (late_us[(share * (SLEEPS - 1) as f64).round() as usize] * 10.0).round() / 10.0
    };
    NoiseQuantiles {
        p50: at(0.5),
        p99: at(0.99),
    }
}

/// Share of a spinning thread's time in which it did not run.
fn lost_to_gaps_pct() -> f64 {
    let began = Instant::now();
    let mut before = began;
    let mut lost = Duration::ZERO;
    while before.duration_since(began) < SPIN {
        let now = Instant::now();
        let step = now.duration_since(before);
        if step > GAP {
            lost += step;
        }
        before = now;
    }
    let share = lost.as_secs_f64() / before.duration_since(began).as_secs_f64();
    (share * 1e4).round() / 1e2
}
