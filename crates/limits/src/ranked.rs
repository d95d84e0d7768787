//! What keys hold, and which of them holds most: what [`Shares`](crate::Shares) and
//! [`Weights`](crate::Weights) have in common.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What one key holds.
pub(crate) trait Held: Default {
    /// What its things are known by; later ones are greater.
    type Id: Ord + Copy;

    /// How much it is, and the oldest of it; `None` where nothing is held.
    fn rank(&self) -> Option<(usize, Self::Id)>;
}

/// What each key holds, in order of how much that is.
#[derive(Clone, Debug)]
pub(crate) struct Ranked<K, H: Held> {
    of: BTreeMap<K, H>,
    /// The last is the key with most, of several with as much the one whose oldest is
    /// oldest.
    ranks: BTreeSet<(usize, Reverse<H::Id>, K)>,
}

impl<K, H: Held> Ranked<K, H> {
    /// Nothing is held.
    pub(crate) const fn new() -> Self {
        Self {
            of: BTreeMap::new(),
            ranks: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone, H: Held> Ranked<K, H> {
    /// What a key holds.
    pub(crate) fn get(&self, key: &K) -> Option<&H> {
        self.of.get(key)
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The key that holds most, how much that is, and the oldest of it.
    pub(crate) fn most(&self) -> Option<(&K, usize, H::Id)> {
        let (amount, Reverse(oldest), key) = self.ranks.last()?;
        Some((key, *amount, *oldest))
    }

    /// Changes what a key holds.
    pub(crate) fn change(&mut self, key: K, change: impl FnOnce(&mut H)) {
        let held = self.of.entry(key.clone()).or_default();
        if let Some((amount, oldest)) = held.rank() {
            self.ranks.remove(&(amount, Reverse(oldest), key.clone()));
        }
        change(held);
        match held.rank() {
            Some((amount, oldest)) => {
                self.ranks.insert((amount, Reverse(oldest), key));
            }
            None => {
                self.of.remove(&key);
            }
        }
    }
}
