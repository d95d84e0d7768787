//! Which number of players to play next, to learn how many are carried.

use std::collections::{BTreeMap, VecDeque};

use crate::sim::scenario::MOST_PLAYERS;

/// So many steps in a row that did not hold end the climb: one alone may be
/// the machine's doing.
const FALLS: usize = 2;

/// The search for the bottleneck ends where what is between is this share of what is
/// carried, as the divisor: an eighth. Two runs of one number differ by less
/// only on a very quiet machine.
const FINE: u32 = 8;

/// Numbers of players from few to many, and after them, where that is asked
/// for, those between which the world saturates.
///
/// Ask for the [`next_step`](Self::next_step), play it, and
/// [`note`](Self::note) whether it held.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    asked: VecDeque<u32>,
    until_saturated: bool,
    found: BTreeMap<u32, bool>,
    falls: usize,
}

impl CapacitySearch {
    /// A climb over the numbers `asked`, fewest first, each once. With
    /// `until_saturated` it goes on after them: twice as many as long as all
    /// hold, half as many as long as none does, and then into the middle, until
    /// no more than an eighth is between what held and what did not.
    #[must_use]
    pub fn new(asked: &[u32], until_saturated: bool) -> Self {
        let mut asked = asked.to_vec();
        asked.sort_unstable();
        asked.dedup();
        Self {
            asked: asked.into(),
            until_saturated,
            found: BTreeMap::new(),
            falls: 0,
        }
    }

    /// What to play next; `None` when enough is known.
    #[must_use]
    pub fn next_step(&self) -> Option<u32> {
        if self.falls < FALLS
            && let Some(&asked) = self.asked.front()
        {
            return Some(asked);
        }
        if self.until_saturated {
            self.towards_saturation()
        } else {
            None
        }
    }

    /// Records whether a world of so many `players` met its targets (`held`).
    pub fn note(&mut self, players: u32, held: bool) {
        if self.asked.front() == Some(&players) {
            self.asked.pop_front();
        }
        self.falls = if held { 0 } else { self.falls + 1 };
        self.found.insert(players, held);
    }

    /// What was asked for and is not played, because too many steps in a row
    /// did not hold.
    #[must_use]
    pub fn left_out(&self) -> Vec<u32> {
        self.asked.iter().copied().collect()
    }

    fn towards_saturation(&self) -> Option<u32> {
        let of = |held| self.found.iter().filter(move |step| *step.1 == held);
        let carried = of(true).map(|(&players, _)| players).next_back();
        let Some(carried) = carried else {
            let (&fewest, _) = self.found.first_key_value()?;
            return (fewest > 1).then_some(fewest / 2);
        };
        let mut too_many = of(false).map(|(&players, _)| players);
        let Some(too_many) = too_many.find(|players| *players > carried) else {
            let twice = carried.saturating_mul(2).min(MOST_PLAYERS);
            return (twice > carried).then_some(twice);
        };
        let between = too_many - carried;
        (between > 1 && between > carried / FINE).then_some(carried + between / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Climbs with a gateway that carries so many; returns what was played.
    fn climb(capacity_search: &mut CapacitySearch, carries: u32) -> Vec<u32> {
        let mut played = Vec::new();
        while let Some(players) = capacity_search.next_step() {
            played.push(players);
            assert!(played.len() < 100, "{played:?}");
            capacity_search.note(players, players <= carries);
        }
        played
    }

    #[test]
    fn a_list_is_played_from_few_to_many_until_two_in_a_row_fail() {
        let mut capacity_search = CapacitySearch::new(&[800, 100, 200, 400, 1600, 100], false);
        assert_eq!(climb(&mut capacity_search, 150), [100, 200, 400]);
        assert_eq!(capacity_search.left_out(), [800, 1600]);
        let mut capacity_search = CapacitySearch::new(&[100, 200], false);
        assert_eq!(climb(&mut capacity_search, 150), [100, 200]);
        assert!(capacity_search.left_out().is_empty());
    }

    #[test]
    fn one_that_fails_between_two_that_hold_ends_nothing() {
        let mut capacity_search = CapacitySearch::new(&[1, 2, 3, 4], false);
        for (players, held) in [(1, true), (2, false), (3, true), (4, false)] {
            assert_eq!(capacity_search.next_step(), Some(players));
            capacity_search.note(players, held);
        }
        assert_eq!(capacity_search.next_step(), None);
    }

    #[test]
    fn saturation_is_found_from_either_side() {
        let found = |from: u32, carries: u32| {
            let mut capacity_search = CapacitySearch::new(&[from], true);
            let mut played = climb(&mut capacity_search, carries);
            played.sort_unstable();
            let held = played.iter().rev().find(|players| **players <= carries);
            let failed = played.iter().find(|players| **players > carries);
            (*held.unwrap(), *failed.unwrap())
        };
        for carries in [1, 7, 100, 333, 5000, 99_999] {
            for from in [1, 100, 2000] {
                let (held, failed) = found(from, carries);
                assert!(
                    failed - held <= (held / FINE).max(1),
                    "{carries} from {from}: {held} to {failed}"
                );
            }
        }
    }

    #[test]
    fn a_search_ends_where_nothing_bends_or_holds() {
        let mut capacity_search = CapacitySearch::new(&[60_000], true);
        assert_eq!(
            climb(&mut capacity_search, u32::MAX),
            [60_000, MOST_PLAYERS]
        );
        let mut capacity_search = CapacitySearch::new(&[5], true);
        assert_eq!(climb(&mut capacity_search, 0), [5, 2, 1]);
    }
}
