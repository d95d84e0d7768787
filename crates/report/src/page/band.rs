//! A series of ranges over time, drawn as a band: round trips between their
//! smallest and largest, or the link's delay, thinned to what a screen shows.

use super::markup::coordinate;

/// Width of the drawing in its own units; stretched to whatever room it has.
pub(crate) const WIDTH: f64 = 1000.0;

/// Columns a drawing is thinned to: about one for each two pixels of a wide
/// screen.
pub(crate) const COLUMNS: usize = 600;

/// Ranges at equal steps of time; none where nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Band {
    /// Seconds from one range to the next.
    pub(crate) step_s: f64,
    /// Smallest and largest value in each step.
    pub(crate) ranges: Vec<Option<(f64, f64)>>,
}

impl Band {
    /// The band between two series; where one is shorter, the rest is unknown.
    pub(crate) fn between(step_s: f64, low: &[Option<f64>], high: &[Option<f64>]) -> Self {
        let ranges = low.iter().zip(high).map(|(low, high)| match (low, high) {
            (Some(low), Some(high)) if low.is_finite() && high.is_finite() => Some((*low, *high)),
            _ => None,
        });
        Self {
            step_s,
            ranges: ranges.collect(),
        }
    }

    /// The band of a single series.
    pub(crate) fn along(step_s: f64, values: &[f64]) -> Self {
        let ranges = values
            .iter()
            .map(|&value| value.is_finite().then_some((value, value)));
        Self {
            step_s,
            ranges: ranges.collect(),
        }
    }

    /// The band in at most `most` steps, each as wide as the extremes within.
    pub(crate) fn thinned(&self, most: usize) -> Self {
        let joined = self.ranges.len().div_ceil(most.max(1)).max(1);
        if joined == 1 {
            return self.clone();
        }
        let ranges = self.ranges.chunks(joined).map(|chunk| {
            chunk
                .iter()
                .flatten()
                .copied()
                .reduce(|(low, high), (next_low, next_high)| {
                    (low.min(next_low), high.max(next_high))
                })
        });
        Self {
            step_s: self.step_s * joined as f64,
            ranges: ranges.collect(),
        }
    }

    /// The band's outline as path data, [`WIDTH`] units for `span_s` seconds;
    /// `y` places a value on the vertical axis. Gaps stay open.
    pub(crate) fn path(&self, span_s: f64, y: impl Fn(f64) -> f64) -> String {
        let mut data = String::new();
        let x = |index: usize| coordinate((index as f64 * self.step_s / span_s * WIDTH).min(WIDTH));
        let mut start = 0;
        for stretch in self.ranges.split(Option::is_none) {
            if !stretch.is_empty() {
                let ranges: Vec<(f64, f64)> = stretch.iter().flatten().copied().collect();
                append!(data, "M{}", x(start));
                let mut last = String::new();
                for (offset, (_, high)) in ranges.iter().enumerate() {
                    let level = coordinate(y(*high));
                    if offset == 0 {
                        append!(data, " {level}");
                    } else if level != last {
                        append!(data, "H{}V{level}", x(start + offset));
                    }
                    last = level;
                }
                append!(data, "H{}", x(start + ranges.len()));
                last.clear();
                for (offset, (low, _)) in ranges.iter().enumerate().rev() {
                    let level = coordinate(y(*low));
                    if level != last {
                        if !last.is_empty() {
                            append!(data, "H{}", x(start + offset + 1));
                        }
                        append!(data, "V{level}");
                    }
                    last = level;
                }
                append!(data, "H{}Z", x(start));
            }
            start += stretch.len() + 1;
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_every_extreme() {
        let low: Vec<Option<f64>> = (0..10).map(|i| Some(f64::from(i))).collect();
        let high: Vec<Option<f64>> = (0..10).map(|i| Some(f64::from(i * i))).collect();
        let thin = Band::between(0.5, &low, &high).thinned(3);
        assert_eq!(
            thin.ranges,
            [Some((0.0, 9.0)), Some((4.0, 49.0)), Some((8.0, 81.0))]
        );
        assert!((thin.step_s - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_outline_goes_along_the_top_and_back_along_the_bottom() {
        let band = Band {
            step_s: 1.0,
            ranges: vec![Some((1.0, 2.0)), Some((1.0, 3.0)), None, Some((4.0, 4.0))],
        };
        assert_eq!(
            band.path(4.0, |y| y),
            "M0 2H250V3H500V1H0ZM750 4H1000V4H750Z"
        );
        assert_eq!(Band::default().path(4.0, |y| y), "");
    }

    #[test]
    fn series_of_unlike_length_or_with_nonsense_do_no_harm() {
        let band = Band::between(1.0, &[Some(1.0), Some(f64::NAN)], &[Some(2.0)]);
        assert_eq!(band.ranges, [Some((1.0, 2.0))]);
        assert_eq!(
            Band::along(1.0, &[f64::INFINITY, 1.0]).ranges,
            [None, Some((1.0, 1.0))]
        );
    }
}
