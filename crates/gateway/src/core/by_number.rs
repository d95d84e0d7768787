//! What is kept of things that have numbers, in the order of the numbers.
//!
//! Connections and channels get their numbers one after the other, and those
//! who subscribe to one mostly subscribe to its neighbours too. So entries lie
//! in *pages* of neighbouring numbers: where numbers have no large gaps, looking
//! one up is a subtraction and two reads, whatever there is of them. Where the
//! numbers turn out to lie far apart, as drawn ones do, a page would hold one entry
//! and much room: then all entries move to a tree.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ids::{ChannelId, ConnId};

/// Entries of one page.
const PAGE: u32 = 16;

/// From so many pages on they must be worth their room: at least
/// [`LEAST_FILL`] entries in each, on average.
const MANY_PAGES: usize = 8;
const LEAST_FILL: usize = 3;

/// A number that names something.
pub(super) trait Numbered: Copy {
    /// The thing of a number.
    fn numbered(number: u32) -> Self;
    /// Its number.
    fn number(self) -> u32;
}

impl Numbered for ConnId {
    fn numbered(number: u32) -> Self {
        Self(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

impl Numbered for ChannelId {
    fn numbered(number: u32) -> Self {
        Self(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

/// A map from numbers. Its names are those of `BTreeMap`, and so is its order.
#[derive(Clone, Debug)]
pub(super) struct ByNumber<K, V> {
    /// In the order of their numbers; none is empty.
    pages: Vec<Page<V>>,
    /// All entries, once the numbers were found to lie far apart; there are no
    /// pages then.
    #[expect(
        clippy::box_collection,
        reason = "most maps have none: a word, not three"
    )]
    tree: Option<Box<BTreeMap<u32, V>>>,
    len: usize,
    of: PhantomData<K>,
}

#[derive(Clone, Debug)]
struct Page<V> {
    /// That of its entries divided by [`PAGE`].
    number: u32,
    taken: u32,
    entries: Box<[Option<V>; PAGE as usize]>,
}

impl<K, V> Default for ByNumber<K, V> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            tree: None,
            len: 0,
            of: PhantomData,
        }
    }
}

impl<K: Numbered, V> ByNumber<K, V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let number = key.number();
        if let Some(tree) = &self.tree {
            return tree.get(&number);
        }
        let page = self.find(number / PAGE).ok()?;
        self.pages[page].entries[(number % PAGE) as usize].as_ref()
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let number = key.number();
        if self.tree.is_some() {
            return self.tree.as_mut()?.get_mut(&number);
        }
        let page = self.find(number / PAGE).ok()?;
        self.pages[page].entries[(number % PAGE) as usize].as_mut()
    }

    pub(super) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Returns what was there before.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let number = key.number();
        if let Some(tree) = &mut self.tree {
            let before = tree.insert(number, value);
            self.len += usize::from(before.is_none());
            return before;
        }
        let place = self.find(number / PAGE);
        let is_sparse = self.pages.len() >= MANY_PAGES && self.len < self.pages.len() * LEAST_FILL;
        if place.is_err() && is_sparse {
            self.move_to_tree();
            return self.insert(key, value);
        }
        let page = place.unwrap_or_else(|index| {
            let page = Page {
                number: number / PAGE,
                taken: 0,
                entries: Box::new([const { None }; PAGE as usize]),
            };
            self.pages.insert(index, page);
            index
        });
        let page = &mut self.pages[page];
        let before = page.entries[(number % PAGE) as usize].replace(value);
        if before.is_none() {
            page.taken += 1;
            self.len += 1;
        }
        before
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let number = key.number();
        if let Some(tree) = &mut self.tree {
            let removed = tree.remove(&number)?;
            self.len -= 1;
            return Some(removed);
        }
        let index = self.find(number / PAGE).ok()?;
        let page = &mut self.pages[index];
        let removed = page.entries[(number % PAGE) as usize].take()?;
        page.taken -= 1;
        self.len -= 1;
        if page.taken == 0 {
            self.pages.remove(index);
        }
        Some(removed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let of_pages = self.pages.iter().flat_map(|page| {
            let first = page.number * PAGE;
            // To the last number there is, and no further.
            (first..=first + (PAGE - 1))
                .zip(page.entries.iter())
                .filter_map(|(number, entry)| Some((K::numbered(number), entry.as_ref()?)))
        });
        let tree = self.tree.iter().flat_map(|tree| tree.iter());
        of_pages.chain(tree.map(|(&number, entry)| (K::numbered(number), entry)))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    fn move_to_tree(&mut self) {
        let pages = std::mem::take(&mut self.pages);
        let entries = pages.into_iter().flat_map(|page| {
            let first = page.number * PAGE;
            (first..)
                .zip(*page.entries)
                .filter_map(|(number, entry)| Some((number, entry?)))
        });
        self.tree = Some(Box::new(entries.collect()));
    }

    /// Where a page is, or where it would be.
    fn find(&self, number: u32) -> Result<usize, usize> {
        let Some(last) = self.pages.last() else {
            return Err(0);
        };
        // Without gaps the last page says where all others are.
        let behind = last.number.wrapping_sub(number) as usize;
        let guess = (self.pages.len() - 1).wrapping_sub(behind);
        match self.pages.get(guess) {
            Some(page) if page.number == number => Ok(guess),
            _ => self.pages.binary_search_by_key(&number, |page| page.number),
        }
    }
}

/// Written as a list of numbers with their entries.
impl<K: Numbered, V: Serialize> Serialize for ByNumber<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries: Vec<(u32, &V)> = self
            .iter()
            .map(|(key, entry)| (key.number(), entry))
            .collect();
        entries.serialize(serializer)
    }
}

impl<'de, K: Numbered, V: Deserialize<'de>> Deserialize<'de> for ByNumber<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Vec::<(u32, V)>::deserialize(deserializer)?;
        let mut all = Self::default();
        for (number, entry) in entries {
            all.insert(K::numbered(number), entry);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_number_there_is_may_be_walked_over() {
        let mut all: ByNumber<ConnId, ()> = ByNumber::default();
        all.insert(ConnId(u32::MAX), ());
        assert_eq!(all.keys().collect::<Vec<_>>(), [ConnId(u32::MAX)]);
    }

    proptest! {
        #[test]
        fn it_is_a_map_in_order(
            changes in proptest::collection::vec(
                (prop_oneof![0..200_u32, 0x8_0000..0x8_0040_u32, any::<u32>()], any::<bool>()),
                0..300,
            ),
        ) {
            let mut ours: ByNumber<ConnId, u32> = ByNumber::default();
            let mut plain: BTreeMap<ConnId, u32> = BTreeMap::new();
            for (value, (number, is_insert)) in (0..).zip(changes) {
                let key = ConnId(number);
                if is_insert {
                    prop_assert_eq!(ours.insert(key, value), plain.insert(key, value));
                } else {
                    prop_assert_eq!(ours.remove(&key), plain.remove(&key));
                }
                prop_assert_eq!(ours.get(&key), plain.get(&key));
                prop_assert_eq!(ours.get_mut(&key), plain.get_mut(&key));
                prop_assert_eq!(ours.contains_key(&key), plain.contains_key(&key));
                prop_assert_eq!(ours.len(), plain.len());
            }
            let listed: Vec<(ConnId, u32)> = ours.iter().map(|(key, &value)| (key, value)).collect();
            let wanted: Vec<(ConnId, u32)> = plain.iter().map(|(&key, &value)| (key, value)).collect();
            prop_assert_eq!(listed, wanted);
            prop_assert!(ours.keys().eq(plain.keys().copied()));
            prop_assert!(ours.values().eq(plain.values()));
            prop_assert!(ours.pages.iter().all(|page| page.taken > 0));
        }
    }
}
