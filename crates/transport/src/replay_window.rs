//! Distinguishing a datagram that was seen before from one that was not, in bounded
//! memory.

/// How far behind the newest number a late one may be and still be distinguished from
/// a repeated one.
const WINDOW: u32 = 1024;

/// Remembers which of the latest 1024 sequence numbers were seen.
///
/// A sliding bitmap, as IPsec uses against replay (RFC 6479). Numbers wrap
/// around at 2^32. A number more than 1024 behind the newest counts as seen:
/// delivering it could be delivering it twice.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    /// The newest number seen; `None` before the first.
    newest: Option<u32>,
    seen: [u64; (WINDOW / 64) as usize],
}

impl ReplayWindow {
    /// A window that has seen nothing.
    pub(crate) const fn new() -> Self {
        Self {
            newest: None,
            seen: [0; (WINDOW / 64) as usize],
        }
    }

    /// Marks `sequence` as seen and says whether it is new.
    pub(crate) fn accept(&mut self, sequence: u32) -> bool {
        let newest = *self.newest.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(newest);
        if ahead != 0 && ahead < u32::MAX / 2 {
            self.forget(newest.wrapping_add(1), ahead);
            self.newest = Some(sequence);
        } else if newest.wrapping_sub(sequence) >= WINDOW {
            return false;
        }
        let (word, bit) = Self::place(sequence);
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }

    /// Clears `count` numbers from `first` on, which take the places of those
    /// that fall out of the window.
    fn forget(&mut self, first: u32, count: u32) {
        if count >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for offset in 0..count {
            let (word, bit) = Self::place(first.wrapping_add(offset));
            self.seen[word] &= !bit;
        }
    }

    const fn place(sequence: u32) -> (usize, u64) {
        let index = sequence % WINDOW;
        ((index / 64) as usize, 1 << (index % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn late_numbers_are_new_once() {
        let mut window = ReplayWindow::new();
        assert!(window.accept(5));
        assert!(window.accept(3));
        assert!(!window.accept(5));
        assert!(!window.accept(3));
        assert!(window.accept(4));
        assert!(window.accept(2000));
        assert!(!window.accept(900), "too far behind to be told apart");
        assert!(window.accept(1000));
    }

    proptest! {
        #[test]
        fn agrees_with_a_memory_of_everything(
            base in any::<u32>(),
            steps in prop::collection::vec(-1500_i64..1500, 1..400),
        ) {
            let mut window = ReplayWindow::new();
            let mut seen = BTreeSet::new();
            let mut newest = 0_i64;
            window.accept(base);
            seen.insert(0_i64);
            for step in steps {
                let number = newest + step;
                let expected = newest - number < i64::from(WINDOW) && seen.insert(number);
                newest = newest.max(number);
                let sequence = base.wrapping_add(number as u32);
                prop_assert_eq!(window.accept(sequence), expected);
            }
        }
    }
}
