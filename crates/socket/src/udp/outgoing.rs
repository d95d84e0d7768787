//! Datagrams on their way out.

use std::net::SocketAddr;

use super::system::{MOST_RUN_BYTES, MOST_RUN_DATAGRAMS};

/// Datagrams that wait to be sent, in order.
///
/// Each lies in a buffer of its own, so that whoever makes datagrams in
/// buffers (an endpoint) can swap them in without a copy. The buffers are used
/// again.
#[derive(Debug)]
pub struct Outgoing {
    slots: Vec<Slot>,
    /// The first that is not sent.
    sent: usize,
    /// The end of those that are filled.
    filled: usize,
}

#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    to: Option<SocketAddr>,
}

impl Outgoing {
    /// Room for so many datagrams, at least one.
    #[must_use]
    pub fn new(datagrams: usize) -> Self {
        let mut slots = Vec::new();
        slots.resize_with(datagrams.max(1), Slot::default);
        Self {
            slots,
            sent: 0,
            filled: 0,
        }
    }

    /// Datagrams that wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.filled - self.sent
    }

    /// Whether no datagram waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.filled == self.sent
    }

    /// Whether there is no room for another datagram.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled == self.slots.len() && self.sent == 0
    }

    /// Appends a copy of a datagram, to go to `to`, or to the peer of a
    /// connected socket. Returns whether there was room.
    pub fn push(&mut self, datagram: &[u8], to: Option<SocketAddr>) -> bool {
        self.fill(to, |buffer| {
            buffer.clear();
            buffer.extend_from_slice(datagram);
            true
        })
    }

    /// Has `make` put a datagram in place of what the buffer holds, to go to
    /// `to`, or to the peer of a connected socket. Returns whether there was
    /// room and `make` made one, as it says itself.
    pub fn fill(
        &mut self,
        to: Option<SocketAddr>,
        make: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        if self.filled == self.slots.len() {
            if self.sent == 0 {
                return false;
            }
            self.slots.rotate_left(self.sent);
            self.filled -= self.sent;
            self.sent = 0;
        }
        let slot = &mut self.slots[self.filled];
        let is_there = make(&mut slot.bytes);
        if is_there {
            slot.to = to;
            self.filled += 1;
        }
        is_there
    }

    /// Forgets what waits.
    pub fn clear(&mut self) {
        self.filled = 0;
        self.sent = 0;
    }

    /// Bytes of the first datagram that waits.
    pub(super) fn first_bytes(&self) -> Option<&[u8]> {
        self.waiting().first().map(|slot| slot.bytes.as_slice())
    }

    /// Where the first datagram that waits goes.
    pub(super) fn first_to(&self) -> Option<SocketAddr> {
        self.waiting().first().and_then(|slot| slot.to)
    }

    /// So many of the first are done with.
    pub(super) fn advance(&mut self, datagrams: usize) {
        self.sent = (self.sent + datagrams).min(self.filled);
        if self.sent == self.filled {
            self.clear();
        }
    }

    /// What waits, cut into runs: datagrams for one address, of one size but
    /// for the last, which may be shorter; as short as the kernel demands.
    /// Where a datagram is longer than `longest`, or `longest` is zero, it is
    /// a run by itself.
    pub(super) fn runs(&self, longest: usize) -> impl Iterator<Item = Run<'_>> + Clone {
        let mut rest = self.waiting();
        std::iter::from_fn(move || {
            let datagrams = run_length(rest, longest)?;
            let (run, after) = rest.split_at(datagrams);
            rest = after;
            Some(Run { slots: run })
        })
    }

    fn waiting(&self) -> &[Slot] {
        &self.slots[self.sent..self.filled]
    }
}

/// Datagrams that may leave in one write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    slots: &'a [Slot],
}

#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "runs leave as one write on Linux alone")
)]
impl<'a> Run<'a> {
    /// How many; at least one.
    pub(super) const fn datagrams(self) -> usize {
        self.slots.len()
    }

    /// The size of each but the last, in bytes.
    pub(super) fn segment_bytes(self) -> usize {
        self.slots[0].bytes.len()
    }

    /// All their bytes.
    pub(super) fn bytes(self) -> usize {
        self.slots.iter().map(|slot| slot.bytes.len()).sum()
    }

    /// Where they go.
    pub(super) fn to(self) -> Option<SocketAddr> {
        self.slots[0].to
    }

    /// Each of them.
    pub(super) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.slots.iter().map(|slot| slot.bytes.as_slice())
    }
}

/// How many of `slots` the first run has; `None` when there are none.
fn run_length(slots: &[Slot], longest: usize) -> Option<usize> {
    let first = slots.first()?;
    let size = first.bytes.len();
    if size == 0 || size > longest {
        return Some(1);
    }
    let most = (MOST_RUN_BYTES / size).clamp(1, MOST_RUN_DATAGRAMS);
    let mut count = 1;
    for slot in slots[1..].iter().take(most - 1) {
        let fits = slot.to == first.to && (1..=size).contains(&slot.bytes.len());
        if !fits {
            break;
        }
        count += 1;
        if slot.bytes.len() < size {
            break;
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lengths(outgoing: &Outgoing, longest: usize) -> Vec<usize> {
        outgoing.runs(longest).map(Run::datagrams).collect()
    }

    #[test]
    fn equal_sizes_and_a_shorter_last_make_a_run() {
        let mut outgoing = Outgoing::new(16);
        for size in [9, 9, 9, 4, 9, 12, 12, 0, 0, 12] {
            outgoing.push(&vec![1; size], None);
        }
        assert_eq!(lengths(&outgoing, 1400), [4, 1, 2, 1, 1, 1]);
        assert_eq!(lengths(&outgoing, 9), [4, 1, 1, 1, 1, 1, 1]);
        assert_eq!(lengths(&outgoing, 0), [1; 10]);
    }

    #[test]
    fn another_address_ends_a_run() {
        let mut outgoing = Outgoing::new(4);
        let here = Some("127.0.0.1:1".parse().unwrap());
        for to in [None, None, here, None] {
            outgoing.push(&[1; 8], to);
        }
        assert_eq!(lengths(&outgoing, 100), [2, 1, 1]);
    }

    #[test]
    fn room_is_used_again_and_order_kept() {
        let mut outgoing = Outgoing::new(3);
        for byte in 0..3 {
            assert!(outgoing.push(&[byte], None));
        }
        assert!(outgoing.is_full() && !outgoing.push(&[9], None));
        outgoing.advance(2);
        assert!(outgoing.push(&[3], None));
        let left: Vec<u8> = outgoing
            .waiting()
            .iter()
            .map(|slot| slot.bytes[0])
            .collect();
        assert_eq!(left, [2, 3]);
    }

    proptest! {
        #[test]
        fn runs_hold_everything_in_order_within_the_kernels_limits(
            sizes in prop::collection::vec(prop_oneof![Just(1200_usize), 0..2000_usize], 0..200),
            longest in prop_oneof![Just(0_usize), Just(1452), 1..70_000_usize],
        ) {
            let mut outgoing = Outgoing::new(200);
            for &size in &sizes {
                outgoing.push(&vec![7; size], None);
            }
            let mut seen = Vec::new();
            for run in outgoing.runs(longest) {
                let of_run: Vec<usize> = run.iter().map(<[u8]>::len).collect();
                if of_run.len() > 1 {
                    prop_assert!(of_run.len() <= MOST_RUN_DATAGRAMS);
                    prop_assert!(run.bytes() <= MOST_RUN_BYTES);
                    prop_assert!(run.segment_bytes() <= longest);
                    let (last, others) = of_run.split_last().unwrap();
                    prop_assert!(others.iter().all(|&size| size == run.segment_bytes()));
                    prop_assert!((1..=run.segment_bytes()).contains(last));
                }
                seen.extend(of_run);
            }
            prop_assert_eq!(seen, sizes);
        }
    }
}
