//! Rate-limit debt that outlives its connection, so that reconnecting evades no
//! limit.
//!
//! A peer above its rate is made to wait until the excess is paid for. One that
//! reconnects would begin without debt. So the debt of a closed connection is kept
//! under its [`source_prefix`](crate::source_prefix) (an address, or a prefix of IPv6), and
//! the next connection from there takes it over: however often they reconnect, all
//! of a source prefix together get no more than those of them that were ever connected
//! at once.

use std::collections::BTreeMap;

/// Debts of type `T` that were left behind, by key (a source prefix) and by when each is
/// paid.
///
/// Instants `D` are counted from any one, always the same. Every operation takes
/// time in the logarithm of the number of debts, and those that are paid go by
/// themselves.
#[derive(Clone, Debug)]
pub struct Debts<K, D, T> {
    most: usize,
    last: u64,
    by_key: BTreeMap<(K, D, u64), T>,
    by_due: BTreeMap<(D, u64), K>,
}

impl<K, D, T> Default for Debts<K, D, T> {
    /// 16,384 at once: where each is forgotten after seconds and takes some hundred
    /// bytes, a few MiB.
    fn default() -> Self {
        Self::new(16_384)
    }
}

impl<K, D, T> Debts<K, D, T> {
    /// No more than `most` at once: beyond, the one that is paid first is forgotten.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            last: 0,
            by_key: BTreeMap::new(),
            by_due: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone, D: Ord + Copy, T> Debts<K, D, T> {
    /// Somebody goes who owes something until `paid_at`. What is paid `now` is not
    /// kept.
    pub fn leave(&mut self, now: D, key: K, paid_at: D, debt: T) {
        self.forget_paid(now);
        if paid_at <= now {
            return;
        }
        self.last += 1;
        self.by_due.insert((paid_at, self.last), key.clone());
        self.by_key.insert((key, paid_at, self.last), debt);
        while self.by_due.len() > self.most {
            self.forget_first();
        }
    }

    /// Somebody comes: the debt under its key that is paid first is its own now.
    pub fn take_over(&mut self, now: D, key: &K) -> Option<T> {
        self.forget_paid(now);
        let (first, _) = self.by_due.first_key_value()?;
        let from = (key.clone(), first.0, 0);
        let (found, _) = self.by_key.range(from..).next()?;
        let found = found.clone();
        if found.0 != *key {
            return None;
        }
        self.by_due.remove(&(found.1, found.2));
        self.by_key.remove(&found)
    }

    /// All debts: who owes, until when, and what; those that are paid first come first.
    /// They are the same again where they are [left](Self::leave) in this order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, D, &T)> {
        self.by_due.iter().filter_map(|(&(paid_at, number), key)| {
            let debt = self.by_key.get(&(key.clone(), paid_at, number))?;
            Some((key, paid_at, debt))
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_due.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_due.is_empty()
    }

    fn forget_paid(&mut self, now: D) {
        while let Some(((paid_at, _), _)) = self.by_due.first_key_value()
            && *paid_at <= now
        {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(((paid_at, number), key)) = self.by_due.pop_first() {
            self.by_key.remove(&(key, paid_at, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_comes_in_the_place_of_one_who_has_gone_takes_over_what_it_owed() {
        let mut debts = Debts::new(10);
        debts.leave(0, "home", 50, "large");
        debts.leave(0, "home", 20, "small");
        debts.leave(0, "home", 0, "paid");
        debts.leave(0, "elsewhere", 90, "another's");
        assert_eq!(debts.take_over(1, &"home"), Some("small"));
        assert_eq!(debts.take_over(1, &"home"), Some("large"));
        assert_eq!(debts.take_over(1, &"home"), None);
        assert_eq!(debts.take_over(90, &"elsewhere"), None, "it is paid");
        assert!(debts.is_empty());
    }

    #[test]
    fn debts_beyond_the_most_cost_the_one_that_matters_least() {
        let mut debts = Debts::new(2);
        for (key, paid_at) in [(1, 30), (2, 10), (3, 20)] {
            debts.leave(0, key, paid_at, ());
        }
        assert_eq!(debts.len(), 2);
        assert_eq!(debts.take_over(0, &2), None);
        assert_eq!(debts.take_over(0, &1), Some(()));
    }

    proptest! {
        #[test]
        fn debts_are_those_that_a_list_of_all_would_give(
            steps in proptest::collection::vec((any::<bool>(), 0_u8..3, 0_u32..30), 0..100),
        ) {
            let mut debts = Debts::new(usize::MAX);
            let mut all: Vec<(u32, u8, usize)> = Vec::new();
            for (number, (leaves, key, owes)) in steps.into_iter().enumerate() {
                let now = number as u32;
                all.retain(|&(paid_at, _, _)| paid_at > now);
                if leaves {
                    debts.leave(now, key, now + owes, number);
                    all.extend((owes > 0).then_some((now + owes, key, number)));
                } else {
                    let of_key = all.iter().filter(|(_, of, _)| *of == key);
                    let first = of_key.min().copied();
                    all.retain(|one| Some(*one) != first);
                    let expected = first.map(|(_, _, number)| number);
                    prop_assert_eq!(debts.take_over(now, &key), expected);
                }
                prop_assert_eq!(debts.len(), all.len());
                prop_assert_eq!(debts.by_key.len(), all.len());
            }
        }
    }
}
