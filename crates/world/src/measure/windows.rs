//! Whether a player's windows came when they should.
//!
//! A gap lies between two windows. The time before the first that is counted and
//! after the last is part of a gap, too, which was at least that long: without it
//! the player that is cut off to the end, or gets nothing at all, would be the one
//! of whom nothing is said. Such a part counts for the longest gap as it is. Among
//! all gaps it counts only where it is longer than the player's median: of an even
//! stream it is some shorter piece, which says nothing of how far apart windows are
//! and would make the figures of whoever was measured briefly better than they are.

use std::time::Duration;

use hdrhistogram::Histogram;
use lagometer_units::Time;

/// The times between the windows of one channel that one player received.
#[derive(Clone, Debug)]
pub struct Windows {
    /// When the last window came; before there was any, when counting began.
    last: Time,
    /// From when counting began to the first window, once that has come.
    before_first: Option<Duration>,
    /// Microseconds between two.
    gaps_us: Histogram<u32>,
}

/// Two significant digits are enough for a gap, and thousands of players have
/// a histogram each; it grows with the longest gap.
fn empty() -> Histogram<u32> {
    let mut gaps_us = Histogram::new(2).unwrap_or_else(|_| unreachable!("two digits are allowed"));
    gaps_us.auto(true);
    gaps_us
}

impl Windows {
    /// None yet; what is waited for them counts from `began` on.
    #[must_use]
    pub fn since(began: Time) -> Self {
        Self {
            last: began,
            before_first: None,
            gaps_us: empty(),
        }
    }

    /// A window has come.
    pub fn note(&mut self, now: Time) {
        let gap = now.since(self.last);
        self.last = now;
        if self.before_first.is_none() {
            self.before_first = Some(gap);
        } else {
            record(&mut self.gaps_us, gap);
        }
    }

    /// How many gaps between two windows were seen.
    #[must_use]
    pub fn gaps(&self) -> u64 {
        self.gaps_us.len()
    }

    /// The gap that `share` of all gaps up to `now`, 0 to 1, do not exceed; without
    /// any window the whole time.
    #[must_use]
    pub fn gap(&self, share: f64, now: Time) -> Duration {
        let mut gaps_us = self.gaps_us.clone();
        // Where there is none every part is longer.
        let median = Duration::from_micros(self.gaps_us.value_at_quantile(0.5));
        for part in self.parts(now).filter(|part| *part > median) {
            record(&mut gaps_us, part);
        }
        Duration::from_micros(gaps_us.value_at_quantile(share))
    }

    /// The longest time up to `now` without a window.
    #[must_use]
    pub fn longest_gap(&self, now: Time) -> Duration {
        let between = Duration::from_micros(self.gaps_us.max());
        self.parts(now).fold(between, Duration::max)
    }

    /// The gaps of which only a part was seen: those that began before counting did,
    /// and that nothing has ended by `now`.
    fn parts(&self, now: Time) -> impl Iterator<Item = Duration> {
        self.before_first.into_iter().chain([now.since(self.last)])
    }
}

/// It grows as needed, so every gap has room.
fn record(gaps_us: &mut Histogram<u32>, gap: Duration) {
    let _ = gaps_us.record(gap.as_micros() as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Windows at these milliseconds, counted from the beginning of all time.
    fn windows(at: impl IntoIterator<Item = u64>) -> Windows {
        let mut windows = Windows::since(Time::ZERO);
        at.into_iter().for_each(|ms| windows.note(at_ms(ms)));
        windows
    }

    /// To the two digits that are kept.
    fn is_about(found: Duration, ms: u64) {
        let found = found.as_secs_f64() * 1e3;
        let ms = ms as f64;
        assert!((ms..=ms * 1.01).contains(&found), "{found} ms and not {ms}");
    }

    #[test]
    fn gaps_are_between_windows() {
        let windows = windows([15, 35, 55, 115]);
        assert_eq!(windows.gaps(), 3);
        is_about(windows.gap(0.5, at_ms(116)), 20);
        is_about(windows.gap(1.0, at_ms(116)), 60);
        is_about(windows.longest_gap(at_ms(116)), 60);
    }

    /// Its median would be less than 20 ms if the pieces at both ends were gaps.
    #[test]
    fn pieces_at_both_ends_of_an_even_stream_are_none() {
        let windows = windows((7..=1000).step_by(20));
        for share in [0.01, 0.5, 0.99, 1.0] {
            is_about(windows.gap(share, at_ms(1000)), 20);
        }
        is_about(windows.longest_gap(at_ms(1000)), 20);
    }

    #[test]
    fn a_player_cut_off_halfway_has_waited_for_the_other_half() {
        let windows = windows((20..=5000).step_by(20));
        let ended = at_ms(10_000);
        assert_eq!(windows.longest_gap(ended), Duration::from_secs(5));
        is_about(windows.gap(0.5, ended), 20);
        is_about(windows.gap(1.0, ended), 5000);
    }

    #[test]
    fn a_player_that_was_cut_off_at_first_has_waited_until_it_was_back() {
        let windows = windows((5000..=10_000).step_by(20));
        let ended = at_ms(10_000);
        assert_eq!(windows.longest_gap(ended), Duration::from_secs(5));
        is_about(windows.gap(0.5, ended), 20);
        is_about(windows.gap(1.0, ended), 5000);
    }

    #[test]
    fn without_any_window_the_gap_is_the_whole_time() {
        let windows = Windows::since(at_ms(2000));
        let ended = at_ms(12_000);
        assert_eq!(windows.longest_gap(ended), Duration::from_secs(10));
        is_about(windows.gap(0.01, ended), 10_000);
        is_about(windows.gap(0.99, ended), 10_000);
    }

    #[test]
    fn a_single_window_leaves_a_gap_on_either_side() {
        let windows = windows([3000]);
        let ended = at_ms(10_000);
        assert_eq!(windows.gaps(), 0);
        is_about(windows.gap(0.5, ended), 3000);
        is_about(windows.gap(0.99, ended), 7000);
        assert_eq!(windows.longest_gap(ended), Duration::from_secs(7));
    }
}
