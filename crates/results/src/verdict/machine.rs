//! What a machine's noise means for what is measured on it, in words.

use std::fmt::Write as _;

use crate::document::Noise;

/// The latency in microseconds below which figures of threads that sleep
/// cannot be distinguished from the machine's own noise: what the worse of a hundred
/// wake-ups takes, of whatever kind, to two digits.
fn floor_us(noise: &Noise) -> f64 {
    let floor = noise.floor.as_ref();
    let worst = [
        Some(noise.wake_us.p99),
        floor.map(|floor| floor.short_sleep_us.p99),
        floor.and_then(|floor| Some(floor.wake_same_core_us.as_ref()?.p99)),
        floor.and_then(|floor| Some(floor.wake_cross_core_us.as_ref()?.p99)),
    ]
    .into_iter()
    .flatten()
    .fold(0.0, f64::max);
    two_digits(worst)
}

/// What to expect of measurements on a machine this noisy.
#[must_use]
pub fn machine_verdict(noise: &Noise) -> String {
    let mut words = format!(
        "Latencies under {} cannot be told from this machine's noise where a thread sleeps \
         between packets.",
        span(floor_us(noise))
    );
    let Some(floor) = &noise.floor else {
        return words;
    };
    if let (Some(same), Some(cross)) = (&floor.wake_same_core_us, &floor.wake_cross_core_us)
        && cross.p50 >= 3.0 * same.p50
    {
        let _ = write!(
            words,
            " Waking a thread on another core takes {}, on the same core {}: a comparison must \
             place its threads alike.",
            span(two_digits(cross.p50)),
            span(two_digits(same.p50)),
        );
    }
    let _ = write!(
        words,
        " A thread that spins was interrupted {} % of the time, once for {}: compare medians and \
         99th percentiles, not maxima.",
        noise.steal_pct,
        span(two_digits(floor.longest_gap_us)),
    );
    if noise.steal_pct >= 20.0 {
        words.push_str(
            " Other programs use the processors now: measure when the machine has nothing else to \
             do.",
        );
    }
    if floor.stolen_pct.is_some_and(|stolen| stolen >= 1.0) {
        words.push_str(
            " The host takes processor time away: no figure is sure while it does; measure at \
             another time or on another machine.",
        );
    }
    if floor.clock_read_ns >= 200.0 {
        let _ = write!(
            words,
            " Reading the clock `{}` goes through the kernel and costs {:.0} ns; `tsc` would be \
             cheaper.",
            floor.clock_source, floor.clock_read_ns
        );
    }
    words
}

/// Microseconds as people write them.
fn span(micros: f64) -> String {
    if micros >= 1000.0 {
        format!("{} ms", micros / 1000.0)
    } else {
        format!("{micros} µs")
    }
}

fn two_digits(figure: f64) -> f64 {
    if figure <= 0.0 || !figure.is_finite() {
        return figure.max(0.0);
    }
    let mut step = 0.01;
    while figure >= step * 100.0 {
        step *= 10.0;
    }
    let rounded = (figure / step).round() * step;
    // Steps of a tenth and less are not exact in binary.
    (rounded * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{NoiseFloor, NoiseQuantiles};

    fn of(p50: f64, p99: f64) -> NoiseQuantiles {
        NoiseQuantiles { p50, p99 }
    }

    fn noise() -> Noise {
        Noise {
            wake_us: of(90.0, 163.0),
            steal_pct: 1.4,
            floor: Some(NoiseFloor {
                clock_source: "tsc".to_owned(),
                clock_read_ns: 18.9,
                system_call_ns: 86.9,
                timer_slack_us: Some(50.0),
                short_sleep_us: of(40.0, 120.0),
                wake_same_core_us: Some(of(1.0, 1.2)),
                wake_cross_core_us: Some(of(47.0, 204.0)),
                longest_gap_us: 28_412.0,
                udp_loopback_per_s: Some(900_000.0),
                stolen_pct: Some(0.0),
            }),
        }
    }

    #[test]
    fn the_worst_wake_up_is_the_floor() {
        assert!((floor_us(&noise()) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn the_words_fit_the_figures() {
        let words = machine_verdict(&noise());
        assert!(
            words.starts_with("Latencies under 200 µs cannot"),
            "{words}"
        );
        assert!(
            words.contains("takes 47 µs, on the same core 1 µs"),
            "{words}"
        );
        assert!(
            words.contains("1.4 % of the time, once for 28 ms"),
            "{words}"
        );
        assert!(!words.contains("host takes"), "{words}");

        let mut worse = noise();
        worse.steal_pct = 50.0;
        let floor = worse.floor.as_mut().unwrap();
        floor.stolen_pct = Some(7.0);
        floor.clock_read_ns = 700.0;
        floor.wake_cross_core_us = None;
        let words = machine_verdict(&worse);
        assert!(words.contains("host takes processor time"), "{words}");
        assert!(words.contains("Other programs use"), "{words}");
        assert!(words.contains("through the kernel"), "{words}");
        assert!(!words.contains("another core takes"), "{words}");
    }

    #[test]
    fn an_older_document_has_a_floor_too() {
        let mut old = noise();
        old.floor = None;
        assert!((floor_us(&old) - 160.0).abs() < 1e-9);
        assert!(machine_verdict(&old).contains("160 µs"));
    }
}
