//! How sure a figure is, as it is written beside it: ± half of its 95 % interval, or the
//! ends of that where ± would speak of what cannot be.

use lagometer_results::{Lane, interval};

use super::{Figure, LOST, Unit};
use crate::written;

/// A figure's 95 % interval as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spread {
    /// It is known to ± this. Infinite where the interval reaches what was lost.
    Half(f64),
    /// It lies between these: ± half of it would be less than none or more than all, as
    /// of a share near 100 %, whose interval reaches further down than up.
    Ends(f64, f64),
}

impl Figure {
    /// How sure the figure is.
    ///
    /// None where there is too little to judge by, and for facts of the run.
    pub(crate) fn spread(self, lane: &Lane) -> Option<Spread> {
        let value = self.of(lane)?;
        let (low, high) = interval(self.metric()?, lane)?;
        // Where every draw lost it there is nothing that varies.
        let half = low.is_finite().then_some((high - low) / 2.0)?;
        let [low, high, half] = [low, high, half].map(|it| it / self.counted_in(lane));
        let most = match self.unit() {
            Unit::Share => 1.0,
            _ => f64::INFINITY,
        };
        let passes = half.is_finite() && (value < half || value + half > most);
        Some(if passes {
            Spread::Ends(low, high)
        } else {
            Spread::Half(half)
        })
    }

    /// Half an interval as people read it, in the unit of the figure: `±0.05`; `to lost`
    /// where the interval reaches what was lost.
    pub(crate) fn written_spread(self, half: f64) -> String {
        if half.is_infinite() {
            return format!("to {LOST}");
        }
        let size = match self.unit() {
            Unit::Share => written::factor(half * 100.0),
            _ => self.written(half),
        };
        format!("±{size}")
    }

    /// The interval as people read it: `±0.05`, `to lost` or `94.1–99.6`, whose ends have so
    /// many digits of what lies between them.
    pub(crate) fn written_interval(self, spread: Spread, digits: u8) -> String {
        let (low, high) = match spread {
            Spread::Half(half) => return self.written_spread(half),
            Spread::Ends(low, high) => (low, high),
        };
        let scale = match self.unit() {
            Unit::Share => 100.0,
            Unit::Nanoseconds => 1e-3,
            _ => 1.0,
        };
        let (low, high) = (low * scale, high * scale);
        let decimals = decimals(high - low, digits);
        format!(
            "{}–{}",
            rounded(low, decimals, f64::floor),
            rounded(high, decimals, f64::ceil)
        )
    }
}

/// How many decimals show so many digits of this: two at most, as of any figure.
fn decimals(width: f64, digits: u8) -> usize {
    let leading = libm::log10(width.max(1e-9)).floor() as i32;
    (i32::from(digits) - 1 - leading).clamp(0, 2) as usize
}

/// Rounded outwards, so that what is written lies around what is meant.
fn rounded(value: f64, decimals: usize, outwards: fn(f64) -> f64) -> String {
    let step = [1.0, 10.0, 100.0][decimals];
    // To the millionth it is the same: 0.29 times 100 is 28.999…
    let scaled = (value * step * 1e6).round() / 1e6;
    let written = format!("{:.decimals$}", outwards(scaled) / step);
    // `0` and `100`, not `0.00` and `100.0`.
    match written.split_once('.') {
        Some((whole, rest)) if rest.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(figure: Figure, low: f64, high: f64) -> [String; 2] {
        [2, 1].map(|digits| figure.written_interval(Spread::Ends(low, high), digits))
    }

    #[test]
    fn ends_are_short_and_lie_around_the_interval() {
        let share = Figure::Within(150);
        assert_eq!(ends(share, 0.941_3, 0.995_5), ["94.1–99.6", "94–100"]);
        assert_eq!(ends(share, 0.995_61, 1.0), ["99.56–100", "99.5–100"]);
        assert_eq!(ends(share, 0.999_998, 1.0), ["99.99–100"; 2]);
        assert_eq!(ends(Figure::Lag, 0.021, 0.839), ["0.02–0.84", "0–0.9"]);
        assert_eq!(ends(Figure::Lag, 0.0, 12.3), ["0–13"; 2]);
        assert_eq!(ends(Figure::P99, 70.2, 570.9), ["70–571"; 2]);
        assert_eq!(ends(Figure::P99, 70.2, 17_000.0), ["70–17000"; 2]);
    }

    #[test]
    fn half_an_interval_is_written_as_ever() {
        let half = |figure: Figure, half| figure.written_interval(Spread::Half(half), 2);
        assert_eq!(half(Figure::Within(150), 0.003_6), "±0.36");
        assert_eq!(half(Figure::P99, 27.31), "±27.3");
        assert_eq!(half(Figure::P99, f64::INFINITY), "to lost");
    }
}
