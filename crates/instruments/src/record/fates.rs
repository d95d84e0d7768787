//! What became of each probe of one direction.

use std::time::Duration;

use lagometer_units::Time;

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// When it left, from the start of the recording.
    pub sent: Time,
    /// How long it was under way; `None` if it never came.
    pub delay: Option<Duration>,
    /// Whether one that left later came before it.
    pub was_overtaken: bool,
    /// How many copies came besides the first.
    pub copies: u32,
}

/// One direction: its probes in the order they left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// What became of each.
    pub fates: Vec<Fate>,
    /// The rate that trains met, in bits per second, where they were sent and
    /// tell.
    pub rate_bits_per_second: Option<u64>,
}

/// A probe's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) number: u32,
    pub(crate) at: Time,
}

impl Way {
    /// What became of the probes that left at `sent`, by their number, given
    /// what arrived, in the order it did. Both are of the same clock.
    pub(crate) fn of(sent: &[Time], arrivals: &[Arrival]) -> Self {
        let mut fates: Vec<Fate> = sent
            .iter()
            .map(|&sent| Fate {
                sent,
                delay: None,
                was_overtaken: false,
                copies: 0,
            })
            .collect();
        let mut newest = None;
        for arrival in arrivals {
            let Some(fate) = fates.get_mut(arrival.number as usize) else {
                continue;
            };
            if fate.delay.is_some() {
                fate.copies += 1;
                continue;
            }
            fate.delay = Some(arrival.at.since(fate.sent));
            fate.was_overtaken = newest.is_some_and(|newest| arrival.number < newest);
            newest = newest.max(Some(arrival.number));
        }
        Self {
            fates,
            rate_bits_per_second: None,
        }
    }

    /// The delays of those that came, ascending.
    #[must_use]
    pub fn delays(&self) -> Vec<Duration> {
        let mut delays: Vec<Duration> = self.fates.iter().filter_map(|fate| fate.delay).collect();
        delays.sort_unstable();
        delays
    }

    /// The share of probes that `is` holds for.
    pub(crate) fn share(&self, is: impl Fn(&Fate) -> bool) -> f64 {
        if self.fates.is_empty() {
            return 0.0;
        }
        self.fates.iter().filter(|fate| is(fate)).count() as f64 / self.fates.len() as f64
    }

    /// The share that never came.
    #[must_use]
    pub fn lost(&self) -> f64 {
        self.share(|fate| fate.delay.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(number: u32, millis: u64) -> Arrival {
        Arrival {
            number,
            at: Time::from_millis(millis),
        }
    }

    #[test]
    fn loss_copies_and_overtaking_are_distinguished() {
        let sent: Vec<Time> = (0..5).map(|index| Time::from_millis(index * 10)).collect();
        let arrivals = [
            arrival(0, 20),
            arrival(2, 41),
            arrival(1, 42),
            arrival(2, 43),
            arrival(4, 60),
            arrival(77, 61),
        ];
        let way = Way::of(&sent, &arrivals);
        let delays: Vec<Option<u128>> = way
            .fates
            .iter()
            .map(|fate| fate.delay.map(|delay| delay.as_millis()))
            .collect();
        assert_eq!(delays, [Some(20), Some(32), Some(21), None, Some(20)]);
        let overtaken: Vec<bool> = way.fates.iter().map(|fate| fate.was_overtaken).collect();
        assert_eq!(overtaken, [false, true, false, false, false]);
        assert_eq!(way.fates[2].copies, 1);
        assert!((way.lost() - 0.2).abs() < 1e-9);
    }
}
