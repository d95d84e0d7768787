//! Who holds how much of something of which there is only so much, where not
//! all hold alike, and who has to let go.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ranked::{Held, Ranked};

/// Amounts held, bytes of memory for instance, each by one id of one key, which
/// is an address where peers are meant. The ids of later ones are greater.
///
/// Keys are held against each other in steps: who holds only a little more than others
/// holds as much, and of those the oldest goes. Where many hold alike, one who has just
/// come is else the first to hold a little more than all of them.
///
/// Every operation takes time in the logarithm of the number of ids.
#[derive(Clone, Debug)]
pub struct Weights<K, I: Ord + Copy> {
    of: BTreeMap<I, (K, usize)>,
    by_key: Ranked<K, Amounts<I>>,
    step: usize,
    total: usize,
}

/// What one key holds.
#[derive(Clone, Debug)]
struct Amounts<I> {
    sum: usize,
    /// How much of it holds alike.
    step: usize,
    /// The last is the id with most, of several with as much the oldest.
    ids: BTreeSet<(usize, Reverse<I>)>,
    by_age: BTreeSet<I>,
}

impl<I> Default for Amounts<I> {
    fn default() -> Self {
        Self {
            sum: 0,
            step: 1,
            ids: BTreeSet::new(),
            by_age: BTreeSet::new(),
        }
    }
}

impl<I: Ord + Copy> Held for Amounts<I> {
    type Id = I;

    fn rank(&self) -> Option<(usize, I)> {
        Some((self.sum / self.step, *self.by_age.first()?))
    }
}

impl<K: Ord + Clone, I: Ord + Copy> Weights<K, I> {
    /// Nothing is held yet. Keys that hold as many whole `step`s, one at least, hold
    /// alike.
    #[must_use]
    pub const fn new(step: usize) -> Self {
        Self {
            of: BTreeMap::new(),
            by_key: Ranked::new(),
            step: if step == 0 { 1 } else { step },
            total: 0,
        }
    }

    /// From now on that id of the key holds so much.
    pub fn set(&mut self, key: K, id: I, amount: usize) {
        self.remove(id);
        self.of.insert(id, (key.clone(), amount));
        let step = self.step;
        self.by_key.change(key, |held| {
            held.step = step;
            held.sum = held.sum.saturating_add(amount);
            held.ids.insert((amount, Reverse(id)));
            held.by_age.insert(id);
        });
        self.total = self.total.saturating_add(amount);
    }

    /// That id holds nothing any more; nothing changes if it did not.
    pub fn remove(&mut self, id: I) {
        let Some((key, amount)) = self.of.remove(&id) else {
            return;
        };
        self.by_key.change(key, |held| {
            held.sum = held.sum.saturating_sub(amount);
            held.ids.remove(&(amount, Reverse(id)));
            held.by_age.remove(&id);
        });
        self.total = self.total.saturating_sub(amount);
    }

    /// How much one is, if it is held.
    #[must_use]
    pub fn amount(&self, id: I) -> Option<usize> {
        Some(self.of.get(&id)?.1)
    }

    /// How much is held in all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Which has to go where too much is held: of the key that holds most, in steps,
    /// and of several that with the oldest id, the id with most, of several with as much
    /// the oldest.
    #[must_use]
    pub fn first_to_go(&self) -> Option<I> {
        let (key, ..) = self.by_key.most()?;
        let &(_, Reverse(id)) = self.by_key.get(key)?.ids.last()?;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_of_the_key_with_most_goes_however_small_those_of_others_are() {
        let mut weights = Weights::new(1);
        for (key, id, amount) in [('a', 1, 50), ('b', 2, 20), ('b', 3, 40), ('b', 4, 40)] {
            weights.set(key, id, amount);
        }
        assert_eq!((weights.total(), weights.first_to_go()), (150, Some(3)));
        weights.set('b', 3, 1);
        assert_eq!((weights.total(), weights.first_to_go()), (111, Some(4)));
        weights.remove(4);
        assert_eq!(weights.first_to_go(), Some(1));
        weights.remove(1);
        weights.remove(1);
        assert_eq!((weights.total(), weights.first_to_go()), (21, Some(2)));
    }

    /// Sixteen thousand who hold a little less each made every newcomer the first to go.
    #[test]
    fn of_those_who_hold_about_as_much_the_oldest_goes_and_not_who_has_just_come() {
        let mut weights = Weights::new(64);
        for key in 0..100 {
            weights.set(key, key, 15);
        }
        weights.set(100, 100, 63);
        assert_eq!(weights.first_to_go(), Some(0));
        weights.remove(0);
        assert_eq!(weights.first_to_go(), Some(1));
        // Who holds more than that goes before all of them.
        weights.set(100, 100, 64);
        assert_eq!(weights.first_to_go(), Some(100));
    }

    proptest! {
        #[test]
        fn totals_and_who_goes_are_as_a_search_through_all_finds_them(
            step in 1_usize..100,
            steps in proptest::collection::vec((0_u8..4, 0_u16..20, 0_usize..100), 0..200),
        ) {
            let mut weights = Weights::new(step);
            let mut all: BTreeMap<u16, (u8, usize)> = BTreeMap::new();
            for (key, id, amount) in steps {
                if amount < 20 {
                    weights.remove(id);
                    all.remove(&id);
                } else {
                    weights.set(key, id, amount);
                    all.insert(id, (key, amount));
                }
                let of = |key: u8| -> usize {
                    all.values().filter(|it| it.0 == key).map(|it| it.1).sum()
                };
                prop_assert_eq!(weights.total(), all.values().map(|it| it.1).sum::<usize>());
                let oldest = |key: u8| all.iter().filter(|(_, it)| it.0 == key).map(|it| *it.0).min();
                let holders = (0..4).filter_map(|key| Some((key, oldest(key)?)));
                let most = holders.max_by_key(|(key, oldest)| (of(*key) / step, Reverse(*oldest)));
                let key = most.map(|(key, _)| key);
                let largest = all.iter().filter(|(_, it)| Some(it.0) == key);
                let first = largest.max_by_key(|(id, it)| (it.1, Reverse(**id)));
                let first = first.map(|(id, _)| *id);
                prop_assert_eq!(weights.first_to_go(), first);
            }
        }
    }
}
