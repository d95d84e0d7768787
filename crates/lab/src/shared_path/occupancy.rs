//! Who fills a queue, over time.

use std::time::Duration;

use lagometer_units::Time;

use crate::outcome::{PartyUse, WayUse};

/// Stretches of a run at most for which the mean filling is kept.
const STEPS_AT_MOST: u32 = 300;
/// The shortest such stretch.
const SHORTEST_STEP: Duration = Duration::from_millis(50);

/// How long the stretches are, of a run that measures for `measured`.
pub(super) fn step(measured: Duration) -> Duration {
    (measured / STEPS_AT_MOST).max(SHORTEST_STEP)
}

/// One direction's queue: what each party has in it, and what it got through.
#[derive(Debug)]
pub(super) struct Occupancy {
    from: Time,
    until: Time,
    step: Duration,
    parties: Vec<Party>,
    /// When all other traffic is on, in order, within what is measured.
    together: Vec<(Time, Time)>,
}

#[derive(Debug)]
struct Party {
    used: PartyUse,
    waiting: u64,
    since: Time,
    /// Bytes times nanoseconds of each step.
    filled: Vec<u128>,
}

/// What became of a packet of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It was sent.
    Sent,
    /// It was sent with a mark.
    Marked,
    /// It was dropped.
    Dropped,
}

impl Occupancy {
    /// A queue of `parties` (name, and whether it has data in this direction),
    /// watched from `from` for `measured`; all other traffic of this direction is on
    /// in the stretches `together`.
    pub(super) fn new(
        parties: &[(String, bool)],
        from: Time,
        measured: Duration,
        together: Vec<(Time, Time)>,
    ) -> Self {
        let step = step(measured);
        let steps = measured.as_nanos().div_ceil(step.as_nanos()) as usize;
        Self {
            from,
            until: from + measured,
            step,
            together,
            parties: parties
                .iter()
                .map(|(name, contends)| Party {
                    used: PartyUse {
                        name: name.clone(),
                        contends: *contends,
                        ..PartyUse::default()
                    },
                    waiting: 0,
                    since: Time::ZERO,
                    filled: vec![0; steps],
                })
                .collect(),
        }
    }

    /// A packet of `party` comes.
    pub(super) fn enter(&mut self, now: Time, party: usize, bytes: u64) {
        self.advance(now, party);
        self.parties[party].waiting += bytes;
    }

    /// A packet of `party` is out of the queue.
    pub(super) fn leave(&mut self, now: Time, party: usize, bytes: u64, left: Left) {
        self.advance(now, party);
        let is_measured = (self.from..self.until).contains(&now);
        let is_together = self.is_together(now);
        let party = &mut self.parties[party];
        party.waiting = party.waiting.saturating_sub(bytes);
        if !is_measured {
            return;
        }
        let used = &mut party.used;
        if left == Left::Dropped {
            used.dropped += 1;
            return;
        }
        used.packets += 1;
        used.bytes += bytes;
        if is_together {
            used.bytes_together += bytes;
        }
        used.marked += u64::from(left == Left::Marked);
    }

    /// What was found by `now`.
    pub(super) fn used(&mut self, now: Time) -> WayUse {
        for party in 0..self.parties.len() {
            self.advance(now, party);
        }
        let step = self.step.as_nanos().max(1);
        let parties = self.parties.iter().map(|party| PartyUse {
            waiting_bytes: party
                .filled
                .iter()
                .map(|filled| (filled / step) as u64)
                .collect(),
            ..party.used.clone()
        });
        WayUse {
            parties: parties.collect(),
            together: self.together_until(now),
        }
    }

    fn is_together(&self, now: Time) -> bool {
        let after = self.together.partition_point(|(_, end)| *end <= now);
        let stretch = self.together.get(after);
        stretch.is_some_and(|(start, _)| *start <= now)
    }

    fn together_until(&self, now: Time) -> Duration {
        let begun = self.together.iter().filter(|(start, _)| *start < now);
        begun
            .map(|(start, end)| (*end).min(now).since(*start))
            .sum()
    }

    /// Adds what has waited since the party's last change to the steps it fell
    /// into.
    fn advance(&mut self, now: Time, party: usize) {
        let Self {
            from, until, step, ..
        } = *self;
        let party = &mut self.parties[party];
        let mut at = party.since.max(from);
        party.since = now;
        let now = now.min(until);
        if party.waiting == 0 {
            return;
        }
        while at < now {
            let nth = at.since(from).as_nanos() / step.as_nanos().max(1);
            let end = (from + step.saturating_mul(nth as u32 + 1)).min(now);
            if let Some(filled) = party.filled.get_mut(nth as usize) {
                *filled += u128::from(party.waiting) * end.since(at).as_nanos();
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_filling_of_each_step_is_kept_from_the_start_to_the_end() {
        let at = Time::from_millis;
        let parties = [("game".to_owned(), true), ("film".to_owned(), false)];
        let mut queue = Occupancy::new(&parties, at(1000), Duration::from_millis(200), Vec::new());
        queue.enter(at(0), 0, 500);
        queue.leave(at(1075), 0, 500, Left::Sent);
        queue.enter(at(1150), 1, 80);
        queue.leave(at(1160), 1, 80, Left::Dropped);
        queue.enter(at(1170), 1, 40);
        let used = queue.used(at(5000));
        assert_eq!(used.parties[0].waiting_bytes, [500, 250, 0, 0]);
        assert_eq!(used.parties[1].waiting_bytes, [0, 0, 0, 40]);
        let counts = |nth: usize| {
            let party = &used.parties[nth];
            (party.packets, party.bytes, party.dropped)
        };
        assert_eq!(counts(0), (1, 500, 0));
        assert_eq!(counts(1), (0, 0, 1));
    }
}
