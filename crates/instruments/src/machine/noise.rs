//! How noisy the machine is.

mod clock;
mod gaps;
mod loopback;
mod sleep;
mod stolen;
mod wake;

use std::time::Duration;

use lagometer_results::{Noise, NoiseFloor, NoiseQuantiles};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Sleeps of two milliseconds that are timed.
    sleeps: usize,
    /// Sleeps of 50 µs that are timed.
    short_sleeps: usize,
    /// Wake-ups from one thread to another and back that are timed.
    wakes: usize,
    /// Time spent spinning.
    spin: Duration,
    /// Time in which datagrams are counted.
    loopback: Duration,
}

impl Effort {
    /// About half a second.
    pub(crate) const BRIEF: Self = Self {
        sleeps: 50,
        short_sleeps: 200,
        wakes: 200,
        spin: Duration::from_millis(50),
        loopback: Duration::from_millis(50),
    };

    /// About three seconds.
    pub(crate) const CAREFUL: Self = Self {
        sleeps: 250,
        short_sleeps: 2000,
        wakes: 2000,
        spin: Duration::from_secs(1),
        loopback: Duration::from_millis(300),
    };
}

/// Measures it now, one thing after the other.
pub(crate) fn measure(effort: Effort) -> Noise {
    let before = stolen::Ticks::now();
    let wake_us = sleep::lateness_us(effort.sleeps);
    let gaps = gaps::while_spinning(effort.spin);
    let floor = NoiseFloor {
        clock_source: clock::source(),
        clock_read_ns: clock::read_ns(),
        system_call_ns: clock::system_call_ns(),
        timer_slack_us: sleep::slack_us(),
        short_sleep_us: sleep::overshoot_us(effort.short_sleeps),
        wake_same_core_us: wake::same_core_us(effort.wakes),
        wake_cross_core_us: wake::cross_core_us(effort.wakes),
        longest_gap_us: gaps.longest_us,
        udp_loopback_per_s: loopback::datagrams_per_second(effort.loopback),
        stolen_pct: stolen::Ticks::now()
            .zip(before)
            .and_then(|(after, before)| after.stolen_pct_since(before)),
    };
    Noise {
        wake_us,
        steal_pct: gaps.lost_pct,
        floor: Some(floor),
    }
}

/// Median and 99th percentile of some microseconds, which may be in any
/// order; none gives zeros.
fn quantiles(mut micros: Vec<f64>) -> NoiseQuantiles {
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (share * micros.len().saturating_sub(1) as f64).round() as usize;
        micros.get(index).copied().map_or(0.0, tenths)
    };
    NoiseQuantiles {
        p50: at(0.5),
        p99: at(0.99),
    }
}

/// Rounded to tenths.
fn tenths(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}

/// A duration in microseconds.
fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_any_order_and_of_nothing() {
        let found = quantiles((0..=100).rev().map(f64::from).collect());
        assert_eq!(
            found,
            NoiseQuantiles {
                p50: 50.0,
                p99: 99.0
            }
        );
        assert_eq!(quantiles(Vec::new()), NoiseQuantiles { p50: 0.0, p99: 0.0 });
    }

    #[test]
    fn a_brief_look_finds_every_figure() {
        let noise = measure(Effort::BRIEF);
        assert!(noise.wake_us.p99 >= noise.wake_us.p50);
        assert!((0.0..=100.0).contains(&noise.steal_pct), "{noise:?}");
        let floor = noise.floor.unwrap();
        assert!(floor.clock_read_ns > 0.0);
        assert!(floor.system_call_ns > 0.0);
        assert!(floor.udp_loopback_per_s.unwrap() > 1000.0);
        assert!(floor.wake_same_core_us.is_some());
    }
}
