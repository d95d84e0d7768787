//! Who holds how much of something of which there is only so much, and who has
//! to make room.

use std::collections::BTreeSet;

use crate::ranked::{Held, Ranked};

/// Things held, each by one key, which is an address where peers are meant.
/// The ids of later things are greater.
///
/// Every operation takes time in the logarithm of the number of things.
#[derive(Clone, Debug)]
pub struct Shares<K, I: Ord + Copy> {
    of: Ranked<K, Things<I>>,
}

#[derive(Clone, Debug)]
struct Things<I>(BTreeSet<I>);

impl<I> Default for Things<I> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<I: Ord + Copy> Held for Things<I> {
    type Id = I;

    fn rank(&self) -> Option<(usize, I)> {
        Some((self.0.len(), *self.0.first()?))
    }
}

impl<K, I: Ord + Copy> Default for Shares<K, I> {
    fn default() -> Self {
        Self { of: Ranked::new() }
    }
}

impl<K: Ord + Clone, I: Ord + Copy> Shares<K, I> {
    /// The key holds one more.
    pub fn insert(&mut self, key: K, id: I) {
        self.of.change(key, |held| {
            held.0.insert(id);
        });
    }

    /// The key holds that one no more; nothing changes if it did not.
    pub fn remove(&mut self, key: K, id: I) {
        self.of.change(key, |held| {
            held.0.remove(&id);
        });
    }

    /// How many a key holds.
    #[must_use]
    pub fn count(&self, key: &K) -> usize {
        self.of.get(key).map_or(0, |held| held.0.len())
    }

    /// The oldest that a key holds.
    #[must_use]
    pub fn oldest(&self, key: &K) -> Option<I> {
        self.of.get(key)?.0.first().copied()
    }

    /// Which has to go so that there is room for one more: the oldest of the key
    /// that holds most, of several with as many the one that is oldest. A
    /// `newcomer` pays with its own unless another holds more.
    #[must_use]
    pub fn first_to_go(&self, newcomer: Option<K>) -> Option<I> {
        let (_, most, oldest) = self.of.most()?;
        let own = newcomer.filter(|key| self.count(key) >= most);
        own.and_then(|key| self.oldest(&key)).or(Some(oldest))
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_holds_as_many_as_any_makes_room_for_itself() {
        let mut shares = Shares::default();
        for (key, id) in [('a', 1), ('b', 2), ('b', 3), ('a', 4)] {
            shares.insert(key, id);
        }
        assert_eq!(shares.first_to_go(None), Some(1));
        assert_eq!(shares.first_to_go(Some('b')), Some(2));
        assert_eq!(shares.first_to_go(Some('c')), Some(1));
        shares.insert('b', 5);
        assert_eq!(shares.first_to_go(Some('a')), Some(2));
    }

    proptest! {
        #[test]
        fn the_oldest_of_who_holds_most_goes_as_a_search_through_all_finds_it(
            steps in proptest::collection::vec((any::<bool>(), 0_u8..5), 0..200),
        ) {
            let mut shares = Shares::default();
            let mut all: Vec<(u8, usize)> = Vec::new();
            for (id, (comes, key)) in steps.into_iter().enumerate() {
                if comes {
                    shares.insert(key, id);
                    all.push((key, id));
                } else if let Some(at) = all.iter().position(|(of, _)| *of == key) {
                    let (key, id) = all.remove(at);
                    shares.remove(key, id);
                }
                let count = |key: u8| all.iter().filter(|(of, _)| *of == key).count();
                let most = (0..5).map(count).max().unwrap_or(0);
                let first = all.iter().find(|(key, _)| count(*key) == most);
                prop_assert_eq!(shares.first_to_go(None), first.map(|(_, id)| *id));
                prop_assert_eq!(shares.is_empty(), all.is_empty());
                prop_assert_eq!(shares.count(&key), count(key));
            }
        }
    }
}
