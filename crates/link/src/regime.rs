//! For whom the impairments are the same: by the clock, or by the packet.

use std::time::Duration;

/// What decides which impairments a packet meets, and which coin is its own.
///
/// Under both regimes the impairments are a function of the seed and never of the
/// traffic, and what *serves* packets (rate, queue, stalls) works in real time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Regime {
    /// The same impairments at the same time for everyone. Outages, bursts,
    /// correlated jitter, handovers and recordings are met at the instant a
    /// packet enters. Its coins (loss, jitter without correlation,
    /// duplication, reordering, damage) are those of the millisecond in which
    /// it enters and of its place among the packets its direction was offered
    /// in that millisecond: the first packet of a millisecond has the same
    /// coins in every lane, whatever was sent before.
    #[default]
    Time,
    /// The same impairments for the same packet. The n-th packet that a direction
    /// is offered after the impairments start (n from 0) meets the outages,
    /// bursts, correlated jitter, handovers and recorded delay and loss of the
    /// instant n × `spacing`, and has the n-th coins, in every lane and
    /// whenever it is sent. The truth the link reports is in that nominal
    /// time too, stalls excepted.
    Packet {
        /// The nominal time between two packets; where it is the workload's
        /// own, nominal and real time agree for a lane that sends one packet
        /// for each message. Zero is taken as one nanosecond.
        spacing: Duration,
    },
}

/// Where a packet stands in the impairments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The instant whose impairments it meets, in nanoseconds of impairment time.
    pub(crate) instant: u64,
    /// The name of its coins.
    pub(crate) slot: u64,
    pub(crate) index: u64,
}

/// Gives each packet its place in the impairments.
#[derive(Clone, Debug)]
pub(crate) enum Turnstile {
    Time { slot: u64, entered: u64 },
    Packet { spacing_ns: u64, entered: u64 },
}

/// The length of a time slot: a millisecond.
const SLOT_NS: u64 = 1_000_000;

impl Turnstile {
    pub(crate) fn new(regime: Regime) -> Self {
        match regime {
            Regime::Time => Self::Time {
                slot: 0,
                entered: 0,
            },
            Regime::Packet { spacing } => Self::Packet {
                spacing_ns: u64::try_from(spacing.as_nanos()).unwrap_or(u64::MAX).max(1),
                entered: 0,
            },
        }
    }

    /// The place of the packet that enters at `instant` of impairment time.
    #[inline]
    pub(crate) const fn enter(&mut self, instant: u64) -> Entry {
        match self {
            Self::Time { slot, entered } => {
                let current = instant / SLOT_NS;
                if current != *slot {
                    *slot = current;
                    *entered = 0;
                }
                let index = *entered;
                *entered += 1;
                Entry {
                    instant,
                    slot: current,
                    index,
                }
            }
            Self::Packet {
                spacing_ns,
                entered,
            } => {
                let nth = *entered;
                *entered += 1;
                Entry {
                    instant: nth.saturating_mul(*spacing_ns),
                    slot: nth,
                    index: 0,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_the_clock_packets_are_numbered_within_their_millisecond() {
        let mut turnstile = Turnstile::new(Regime::Time);
        let places = [0, 999_999, 1_000_000, 7_300_000, 7_900_000].map(|instant| {
            let entry = turnstile.enter(instant);
            assert_eq!(entry.instant, instant);
            (entry.slot, entry.index)
        });
        assert_eq!(places, [(0, 0), (0, 1), (1, 0), (7, 0), (7, 1)]);
    }

    #[test]
    fn by_the_packet_the_clock_is_not_looked_at() {
        let spacing = Duration::from_millis(50);
        let mut turnstile = Turnstile::new(Regime::Packet { spacing });
        for nth in 0..3 {
            let entry = turnstile.enter(12_345);
            assert_eq!((entry.slot, entry.index), (nth, 0));
            assert_eq!(entry.instant, nth * 50_000_000);
        }
    }
}
