//! From a value to a place on an axis: logarithmic for round trips, nines for
//! shares, clock time for the run.

/// A logarithmic axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogScale {
    /// The value at position 0; above zero.
    pub(crate) low: f64,
    /// The value at position 1; above `low`.
    pub(crate) high: f64,
}

impl LogScale {
    /// An axis that holds all positive finite `values` and ends on round
    /// numbers (1, 2 or 5 times a power of ten). At least a factor of
    /// `at_least` long, so that noise does not fill it; at most nine powers of
    /// ten.
    pub(crate) fn covering(values: impl Iterator<Item = f64>, at_least: f64) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            least = least.min(value);
            most = most.max(value);
        }
        if most == 0.0 {
            return Self {
                low: 10.0,
                high: 1000.0,
            };
        }
        let most = most.min(1e12);
        let least = least.clamp(most / 1e9, most);
        let mut scale = Self {
            low: round_below(least),
            high: round_above(most),
        };
        if scale.high / scale.low < at_least {
            scale.high = round_above(scale.low * at_least);
        }
        scale
    }

    /// An axis that holds all positive finite `values` with some room on both
    /// sides, for points that are to be told apart.
    pub(crate) fn around(values: &[f64]) -> Self {
        let round = Self::covering(values.iter().copied(), 2.0);
        let known = || {
            values
                .iter()
                .copied()
                .filter(|value| value.is_finite() && *value > 0.0)
        };
        let least = known().fold(f64::INFINITY, f64::min);
        let most = known().fold(0.0, f64::max);
        if most == 0.0 || most / least >= 4.0 {
            return round;
        }
        let room = (2.0 * least / most).sqrt().max(1.15);
        Self {
            low: least / room,
            high: most * room,
        }
    }

    /// Where `value` stands between 0 and 1; outside values at the end.
    pub(crate) fn position(self, value: f64) -> f64 {
        if value.is_nan() || value <= self.low {
            return 0.0;
        }
        (libm::log(value / self.low) / libm::log(self.high / self.low)).min(1.0)
    }

    /// The powers of ten on the axis.
    pub(crate) fn decades(self) -> Vec<f64> {
        let first = libm::log10(self.low).ceil() as i32;
        let last = (libm::log10(self.high) + 1e-9).floor() as i32;
        (first..=last).map(power_of_ten).collect()
    }

    /// Labelled ticks: powers of ten, and 2 and 5 times them on a short axis.
    pub(crate) fn ticks(self) -> Vec<f64> {
        let steps: &[f64] = match self.high / self.low {
            long if long > 2e3 => &[1.0],
            short if short < 4.5 => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let first = libm::log10(self.low).floor() as i32;
        let last = libm::log10(self.high).ceil() as i32;
        (first..=last)
            .flat_map(|power| steps.iter().map(move |step| step * power_of_ten(power)))
            .filter(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick))
            .collect()
    }
}

fn power_of_ten(power: i32) -> f64 {
    libm::pow(10.0, f64::from(power))
}

fn round_below(value: f64) -> f64 {
    let power = power_of_ten(libm::log10(value).floor() as i32);
    let lead = value / power;
    let step = if lead >= 5.0 {
        5.0
    } else if lead >= 2.0 {
        2.0
    } else {
        1.0
    };
    step * power
}

/// The next 1, 2 or 5 times a power of ten; 1 for nothing at all.
pub(crate) fn round_above(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 1.0;
    }
    let power = power_of_ten(libm::log10(value).floor() as i32);
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|round| *round >= value * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// A label for a tick in milliseconds: `20 ms`, `1 s`, `1 min`.
pub(crate) fn tick_label(milliseconds: f64) -> String {
    let short = |value: f64| {
        let written = format!("{value:.3}");
        written
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    };
    if milliseconds < 1.0 {
        format!("{} µs", short(milliseconds * 1e3))
    } else if milliseconds < 1e3 {
        format!("{} ms", short(milliseconds))
    } else {
        format!("{} s", short(milliseconds / 1e3))
    }
}

/// How many nines a share has: 0.9 → 1, 0.99 → 2. All of them has as many as
/// one in `of` can show, and so has anything closer to all.
pub(crate) fn nines(share: f64, of: u64) -> f64 {
    let most = most_nines(of);
    let late = 1.0 - share.clamp(0.0, 1.0);
    if late <= 0.0 {
        most
    } else {
        (-libm::log10(late)).clamp(0.0, most)
    }
}

/// The nines that `of` messages can show: the last one of them, at least 1.
pub(crate) fn most_nines(of: u64) -> f64 {
    libm::log10(of.max(10) as f64)
}

/// The shares that mark an axis of nines which ends at `most`, with labels.
pub(crate) fn nines_ticks(most: f64) -> Vec<(f64, String)> {
    let mut ticks = vec![
        (0.0, "0 %".to_owned()),
        (std::f64::consts::LOG10_2, "50".to_owned()),
    ];
    for nines in 1..=9_i32 {
        if f64::from(nines) < most - 0.2 {
            let share = 100.0 - 100.0 / power_of_ten(nines);
            ticks.push((
                f64::from(nines),
                format!("{share:.*}", (nines - 2).max(0) as usize),
            ));
        }
    }
    ticks
}

/// At most `at_most` round instants from `from` to `to`, in seconds, with
/// their labels.
pub(crate) fn time_ticks(from: f64, to: f64, at_most: usize) -> Vec<(f64, String)> {
    const STEPS: [f64; 22] = [
        0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0,
        1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0, 86_400.0, 604_800.0,
    ];
    let span = to - from;
    if !span.is_finite() || span <= 0.0 || at_most == 0 {
        return Vec::new();
    }
    let fits = |step: &&f64| span / **step <= at_most as f64;
    let step = *STEPS.iter().find(fits).unwrap_or(&(span / at_most as f64));
    let first = (from / step).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|index| index as f64 * step)
        .map(|seconds| (seconds, clock(seconds, step)))
        .collect()
}

/// An instant of the run: `0:45`, `9:59.5`, `1:02:03`.
pub(crate) fn clock(seconds: f64, step: f64) -> String {
    // A century; no run is longer, and arithmetic stays exact.
    let whole = if seconds.is_nan() {
        0.0
    } else {
        seconds.clamp(0.0, 3.2e9)
    };
    let (decimals, scale) = if step < 0.1 {
        (2, 100.0)
    } else if step < 1.0 {
        (1, 10.0)
    } else {
        (0, 1.0)
    };
    // Rounded before it is taken apart: 59.96 is 1:00.0, not 0:60.0.
    let whole = (whole * scale).round() / scale;
    let minutes = (whole / 60.0).floor();
    let rest = whole - minutes * 60.0;
    let width = if decimals == 0 { 2 } else { 3 + decimals };
    let hours = (minutes / 60.0).floor();
    if hours > 0.0 {
        format!(
            "{hours:.0}:{:02.0}:{rest:0width$.decimals$}",
            minutes - hours * 60.0
        )
    } else {
        format!("{minutes:.0}:{rest:0width$.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_axis_ends_on_round_numbers_and_holds_all() {
        let scale = LogScale::covering([45.2, 8179.0, 0.0, f64::NAN].into_iter(), 10.0);
        assert_eq!(
            scale,
            LogScale {
                low: 20.0,
                high: 10_000.0
            }
        );
        assert!(scale.position(20.0).abs() < 1e-12);
        assert!((scale.position(10_000.0) - 1.0).abs() < 1e-9);
        assert!((scale.position(f64::INFINITY) - 1.0).abs() < 1e-12);
        assert_eq!(scale.decades(), [100.0, 1000.0, 10_000.0]);
        assert_eq!(
            LogScale::covering([50.0, 51.0].into_iter(), 10.0),
            LogScale {
                low: 50.0,
                high: 500.0
            }
        );
        let endless = LogScale::covering([f64::MIN_POSITIVE, f64::MAX].into_iter(), 10.0);
        assert!(endless.ticks().len() < 20);
        assert_eq!(
            LogScale::covering(std::iter::empty(), 10.0).ticks().len(),
            7
        );
    }

    #[test]
    fn an_axis_around_points_close_together_is_short() {
        let scale = LogScale::around(&[1257.0, 2001.0, f64::INFINITY]);
        assert!(scale.low < 1257.0 && scale.high > 2001.0, "{scale:?}");
        assert!(scale.high / scale.low < 3.0, "{scale:?}");
        assert!(scale.ticks().len() >= 2, "{:?}", scale.ticks());
        assert_eq!(
            LogScale::around(&[5.0, 500.0]),
            LogScale {
                low: 5.0,
                high: 500.0
            }
        );
    }

    #[test]
    fn nines_count_what_is_left() {
        assert!((nines(0.99, 12_000) - 2.0).abs() < 1e-9);
        assert!((nines(1.0, 12_000) - 12_000_f64.log10()).abs() < 1e-9);
        assert!(nines(0.0, 12_000).abs() < 1e-12);
        let labels: Vec<String> = nines_ticks(4.08)
            .into_iter()
            .map(|(_, label)| label)
            .collect();
        assert_eq!(labels, ["0 %", "50", "90", "99", "99.9"]);
    }

    #[test]
    fn time_has_round_ticks_at_every_zoom() {
        let labels = |from, to| -> Vec<String> {
            time_ticks(from, to, 8)
                .into_iter()
                .map(|(_, label)| label)
                .collect()
        };
        assert_eq!(
            labels(0.0, 600.0),
            ["0:00", "2:00", "4:00", "6:00", "8:00", "10:00"]
        );
        assert_eq!(
            labels(59.9, 60.4),
            ["0:59.9", "1:00.0", "1:00.1", "1:00.2", "1:00.3", "1:00.4"]
        );
        assert_eq!(labels(0.0, 7200.0)[4], "1:00:00");
        assert!(labels(0.0, f64::INFINITY).is_empty());
        assert!(labels(0.0, 1e15).len() <= 9);
    }

    #[test]
    fn ticks_are_labelled_in_the_unit_that_suits() {
        assert_eq!(tick_label(0.05), "50 µs");
        assert_eq!(tick_label(20.0), "20 ms");
        assert_eq!(tick_label(10_000.0), "10 s");
    }
}
