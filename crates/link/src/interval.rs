//! Spells of impairment: outages, stalls and loss bursts as intervals that
//! are a function of seed and time alone, produced one after the other and
//! never stored.

use crate::keyed::Stream;

/// A stretch of impairment time in nanoseconds; `end` is the first instant after
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// When the intervals of one source begin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Onset {
    /// At a given instant, and again after each period if there is one.
    At { first: u64, every: Option<u64> },
    /// Once in each period, the first at an instant of the first period that the seed
    /// draws evenly; none is under way at the beginning.
    Every(u64),
    /// After an exponentially distributed quiet time since the last one's end
    /// (since the beginning, for the first).
    AfterGap { mean: f64 },
}

/// How long the intervals of one source last.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Fixed(u64),
    Uniform { from: u64, to: u64 },
    Exponential { mean: f64 },
}

/// One rule that makes intervals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) onset: Onset,
    pub(crate) length: Length,
    pub(crate) stream: Stream,
}

/// The intervals of several sources in the order of their starts, merged where
/// they touch.
///
/// The sources together must leave some time free (a profile is checked for
/// that), otherwise a merged interval might never end.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    heads: Vec<Head>,
}

/// Where a traveller who only moves forward stands among the intervals.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    union: Union,
    /// The first interval that had not ended when last asked.
    current: Option<Interval>,
}

/// One source and the next interval it makes.
#[derive(Clone, Debug)]
struct Head {
    source: Source,
    made: u64,
    next: Option<Interval>,
}

impl Source {
    /// When the first interval begins, if that does not depend on what came before: at a
    /// given instant, or at one that the seed draws within the period.
    pub(crate) fn first(&self) -> Option<u64> {
        match self.onset {
            Onset::At { first, .. } => Some(first),
            // A draw is below one, but its product may round up to the period.
            Onset::Every(every) => {
                let drawn = (self.stream.unit(0, 2) * every as f64) as u64;
                Some(drawn.min(every.saturating_sub(1)))
            }
            Onset::AfterGap { .. } => None,
        }
    }

    /// The `k`-th interval, given the end of the one before.
    fn interval(&self, k: u64, previous_end: u64) -> Option<Interval> {
        let start = match self.onset {
            Onset::At { first, every: None } => (k == 0).then_some(first)?,
            Onset::At {
                every: Some(every), ..
            }
            | Onset::Every(every) => self.first()?.checked_add(every.checked_mul(k)?)?,
            Onset::AfterGap { mean } => {
                previous_end.checked_add(exponential(mean, self.stream.unit(k, 0)))?
            }
        };
        let length = match self.length {
            Length::Fixed(length) => length,
            Length::Uniform { from, to } => {
                from + (self.stream.unit(k, 1) * (to - from) as f64) as u64
            }
            Length::Exponential { mean } => exponential(mean, self.stream.unit(k, 1)),
        };
        Some(Interval {
            start,
            end: start.checked_add(length.max(1))?,
        })
    }
}

/// The quantile `unit` of the exponential distribution, in whole nanoseconds
/// and at least one. As `unit` has 52 bits, no more than 37 times the mean.
fn exponential(mean: f64, unit: f64) -> u64 {
    ((-libm::log(unit) * mean).round() as u64).max(1)
}

impl Union {
    pub(crate) fn new(sources: &[Source]) -> Self {
        let heads = sources
            .iter()
            .map(|&source| Head {
                source,
                made: 1,
                next: source.interval(0, 0),
            })
            .collect();
        Self { heads }
    }

    fn earliest(&mut self) -> Option<&mut Head> {
        self.heads
            .iter_mut()
            .filter(|head| head.next.is_some())
            .min_by_key(|head| head.next.map(|interval| interval.start))
    }
}

impl Iterator for Union {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        let mut merged = self.earliest()?.take()?;
        while let Some(head) = self.earliest() {
            let Some(next) = head.next.filter(|next| next.start <= merged.end) else {
                break;
            };
            merged.end = merged.end.max(next.end);
            head.take();
        }
        Some(merged)
    }
}

impl Head {
    /// Hands out the next interval and makes the one after it.
    fn take(&mut self) -> Option<Interval> {
        let taken = self.next?;
        self.next = self.source.interval(self.made, taken.end);
        self.made += 1;
        Some(taken)
    }
}

impl Cursor {
    pub(crate) fn new(sources: &[Source]) -> Self {
        let mut union = Union::new(sources);
        let current = union.next();
        Self { union, current }
    }

    /// The first interval that ends after `instant`; it holds `instant` if it
    /// has started. Instants must not decrease from call to call.
    #[inline]
    pub(crate) fn ahead(&mut self, instant: u64) -> Option<Interval> {
        while let Some(interval) = self.current {
            if interval.end > instant {
                return Some(interval);
            }
            self.current = self.union.next();
        }
        None
    }

    /// The interval that holds `instant`, if one does. Instants must not
    /// decrease from call to call.
    #[inline]
    pub(crate) fn holding(&mut self, instant: u64) -> Option<Interval> {
        self.ahead(instant)
            .filter(|interval| interval.start <= instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::{Purpose, Scope};

    const SECOND: u64 = 1_000_000_000;

    fn scheduled(first: u64, every: Option<u64>, length: u64) -> Source {
        Source {
            onset: Onset::At { first, every },
            length: Length::Fixed(length),
            stream: Stream::new(1, Scope::Both, Purpose::Outages),
        }
    }

    fn random(length: Length) -> Source {
        Source {
            onset: Onset::AfterGap {
                mean: 10.0 * SECOND as f64,
            },
            length,
            stream: Stream::new(1, Scope::Both, Purpose::Stalls),
        }
    }

    #[test]
    fn a_schedule_repeats_and_a_single_event_does_not() {
        let once: Vec<_> = Union::new(&[scheduled(5, None, 2)]).collect();
        assert_eq!(once, [Interval { start: 5, end: 7 }]);
        let starts: Vec<_> = Union::new(&[scheduled(5, Some(10), 2)])
            .take(3)
            .map(|interval| interval.start)
            .collect();
        assert_eq!(starts, [5, 15, 25]);
    }

    #[test]
    fn what_comes_once_in_a_period_begins_anywhere_in_it_by_the_seed() {
        let seeds = 4_000;
        let (period, mut tenths) = (120 * SECOND, [0_u32; 10]);
        for seed in 0..seeds {
            let source = Source {
                onset: Onset::Every(period),
                length: Length::Fixed(SECOND),
                stream: Stream::new(seed, Scope::Both, Purpose::Stalls),
            };
            let starts: Vec<_> = Union::new(&[source]).take(3).map(|it| it.start).collect();
            assert_eq!(Some(starts[0]), source.first());
            assert!(starts[0] < period);
            assert_eq!(
                [starts[1], starts[2]].map(|it| it - starts[0]),
                [period, 2 * period]
            );
            tenths[(starts[0] * 10 / period) as usize] += 1;
        }
        // Five deviations of a binomial count: 5 * sqrt(4000 * 0.1 * 0.9) = 95.
        assert!(
            tenths.iter().all(|count| count.abs_diff(400) < 95),
            "{tenths:?}"
        );
    }

    #[test]
    fn intervals_that_touch_are_merged() {
        let merged: Vec<_> = Union::new(&[
            scheduled(0, None, 10),
            scheduled(4, None, 20),
            scheduled(24, None, 1),
        ])
        .collect();
        assert_eq!(merged, [Interval { start: 0, end: 25 }]);
    }

    #[test]
    fn gaps_and_lengths_have_the_means_asked_for() {
        let n = 20_000;
        for length in [
            Length::Fixed(2 * SECOND),
            Length::Uniform {
                from: SECOND,
                to: 3 * SECOND,
            },
            Length::Exponential {
                mean: 2.0 * SECOND as f64,
            },
        ] {
            let intervals: Vec<_> = Union::new(&[random(length)]).take(n).collect();
            let covered: u64 = intervals.iter().map(|i| i.end - i.start).sum();
            let mean_length = covered as f64 / n as f64 / SECOND as f64;
            let mean_gap = (intervals[n - 1].end - covered) as f64 / n as f64 / SECOND as f64;
            // Four deviations of the mean of an exponential: 4 / sqrt(20 000).
            assert!((mean_length / 2.0 - 1.0).abs() < 0.03, "{mean_length}");
            assert!((mean_gap / 10.0 - 1.0).abs() < 0.03, "{mean_gap}");
        }
    }

    #[test]
    fn a_cursor_sees_what_a_scan_sees() {
        let sources = [
            random(Length::Exponential {
                mean: 3.0 * SECOND as f64,
            }),
            scheduled(SECOND, Some(7 * SECOND), SECOND / 3),
        ];
        let all: Vec<_> = Union::new(&sources).take(500).collect();
        let mut cursor = Cursor::new(&sources);
        let mut instant = 0;
        while instant < all[499].start {
            let scanned = all.iter().find(|i| i.start <= instant && instant < i.end);
            assert_eq!(cursor.holding(instant).as_ref(), scanned);
            instant += SECOND / 7;
        }
    }
}
