//! How the router waits for the next packet or the next release.

use std::time::Duration;

use lagometer_units::Time;

/// How the router waits.
///
/// A sleeping thread is woken late: by some fifty microseconds on a virtual
/// machine, by ten on good hardware, and now and then by far more. A spinning
/// one is on time, and has a core to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Sleep until the moment itself, and be late where the machine is: for
    /// clocks that stand still while anybody computes.
    Sleep,
    /// Sleep until `spin` before it, then spin.
    Hybrid {
        /// How long before the moment spinning starts.
        spin: Duration,
    },
    /// Never sleep.
    Spin,
}

impl Default for Waiting {
    /// Spinning for the last 100 microseconds.
    fn default() -> Self {
        Self::Hybrid {
            spin: Duration::from_micros(100),
        }
    }
}

impl Waiting {
    /// The way of waiting in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Hybrid { .. } => "hybrid",
            Self::Spin => "spin",
        }
    }

    /// Until when to sleep at `now` when something is due `at`, if at all.
    /// Never for longer than [`LONGEST_SLEEP`], so that a router that the
    /// machine does not let run finds out about it; where the clock waits for
    /// the router, never for longer than a hundred times that.
    pub(super) fn sleep_until(self, now: Time, at: Option<Time>) -> Option<Time> {
        let longest = now
            + match self {
                // Its clock waits for it: there is nothing to find out.
                Self::Sleep => LONGEST_SLEEP * 100,
                Self::Hybrid { .. } | Self::Spin => LONGEST_SLEEP,
            };
        let wake = match self {
            Self::Spin => return None,
            Self::Sleep => at.unwrap_or(longest),
            Self::Hybrid { spin } => at.map_or(longest, |at| at - spin),
        };
        (wake > now).then(|| wake.min(longest))
    }
}

/// The longest the router sleeps at a time.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1000);

    #[test]
    fn hybrid_wakes_early_and_does_not_sleep_when_it_is_local() {
        let waiting = Waiting::Hybrid {
            spin: Duration::from_micros(100),
        };
        let at = NOW + Duration::from_millis(5);
        assert_eq!(
            waiting.sleep_until(NOW, Some(at)),
            Some(NOW + Duration::from_micros(4900))
        );
        let local = NOW + Duration::from_micros(100);
        assert_eq!(waiting.sleep_until(NOW, Some(local)), None);
    }

    #[test]
    fn no_way_of_waiting_sleeps_past_the_longest_sleep() {
        let remote = NOW + Duration::from_secs(1);
        for at in [None, Some(remote)] {
            let waiting = Waiting::default();
            assert_eq!(waiting.sleep_until(NOW, at), Some(NOW + LONGEST_SLEEP));
            assert_eq!(Waiting::Sleep.sleep_until(NOW, at), Some(remote));
            assert_eq!(Waiting::Spin.sleep_until(NOW, at), None);
        }
    }
}
