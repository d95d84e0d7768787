//! The receive buffer: bytes in order, bytes out of order, and what both cost
//! in memory, which is what the window follows.

use std::collections::VecDeque;

use crate::Seq;
use crate::wire::SackBlock;

/// Bytes of memory that a packet costs beside its bytes: the kernel's
/// `sk_buff`, what its fragments share at the end of its block
/// (`skb_shared_info`), and what is left free before a received packet.
pub(crate) const BUFFER_COST: u32 = 256;
pub(crate) const SHARED_COST: u32 = 320;
const HEADROOM: u32 = 64;

/// What a packet costs in memory that came out of a TUN device (Linux 6.1
/// `tun_alloc_skb`, `__alloc_skb`): its bytes lie in one block, whose size is a
/// power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// All of it.
    pub(crate) memory: u32,
    /// What is free at the end of the block: smaller packets that follow are
    /// copied there and cost nothing (`skb_try_coalesce`).
    spare: u32,
}

impl Cost {
    /// Of a packet of so many bytes, headers included.
    pub(crate) const fn of(packet: u32) -> Self {
        let needed = (packet + HEADROOM).next_multiple_of(64) + SHARED_COST;
        let block = needed.next_power_of_two();
        Self {
            memory: block + BUFFER_COST,
            spare: block - SHARED_COST - HEADROOM - packet,
        }
    }
}

/// Packets held in one block of memory.
#[derive(Clone, Copy, Debug)]
struct Held {
    bytes: u32,
    memory: u32,
    spare: u32,
}

impl Held {
    /// Copies bytes that follow into the rest of the block, if they fit.
    const fn takes(&mut self, bytes: u32) -> bool {
        let fits = bytes <= self.spare;
        if fits {
            self.spare -= bytes;
            self.bytes += bytes;
        }
        fits
    }
}

/// Bytes beyond a hole.
#[derive(Clone, Debug)]
struct Island {
    seq: Seq,
    bytes: Vec<u8>,
    fin: bool,
    parts: Vec<Held>,
}

impl Island {
    fn memory(&self) -> u32 {
        self.parts.iter().map(|part| part.memory).sum()
    }

    fn end(&self) -> Seq {
        self.seq + self.bytes.len() as u32 + u32::from(self.fin)
    }
}

/// What became of bytes that came out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Bytes that had been received before.
    pub(crate) duplicate: Option<SackBlock>,
    /// Whether there was anything new.
    pub(crate) is_new: bool,
}

/// What the bytes that became in order brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Advanced {
    pub(crate) duplicate: Option<SackBlock>,
    pub(crate) fin: bool,
}

/// The receive buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    ready: VecDeque<u8>,
    held: VecDeque<Held>,
    /// Disjoint, in order.
    islands: VecDeque<Island>,
    memory: u32,
}

impl Received {
    /// Bytes of memory in use.
    pub(crate) const fn memory(&self) -> u32 {
        self.memory
    }

    /// Bytes the application may read.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Bytes that lie in one block at the front.
    pub(crate) fn first(&self) -> usize {
        self.held.front().map_or(0, |held| held.bytes as usize)
    }

    /// Whether nothing is out of order.
    pub(crate) fn has_no_islands(&self) -> bool {
        self.islands.is_empty()
    }

    /// Appends bytes that came in order in a packet of this cost.
    pub(crate) fn append(&mut self, bytes: &[u8], cost: Cost) {
        self.memory += cost.memory;
        self.hold(Held {
            bytes: bytes.len() as u32,
            memory: cost.memory,
            spare: cost.spare,
        });
        self.ready.extend(bytes);
    }

    /// Puts a packet last among those in order (Linux 6.1 `tcp_queue_rcv`); its
    /// memory is counted already.
    fn hold(&mut self, packet: Held) {
        if let Some(last) = self.held.back_mut()
            && last.takes(packet.bytes)
        {
            self.memory = self.memory.saturating_sub(packet.memory);
            return;
        }
        self.held.push_back(packet);
    }

    /// Copies out what is ready, as much as fits.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let length = out.len().min(self.ready.len());
        let (front, back) = self.ready.as_slices();
        let from_front = length.min(front.len());
        out[..from_front].copy_from_slice(&front[..from_front]);
        out[from_front..length].copy_from_slice(&back[..length - from_front]);
        self.ready.drain(..length);
        let mut left = length as u32;
        while left > 0
            && let Some(first) = self.held.front_mut()
        {
            if first.bytes > left {
                first.bytes -= left;
                break;
            }
            left -= first.bytes;
            self.memory = self.memory.saturating_sub(first.memory);
            self.held.pop_front();
        }
        length
    }

    /// Takes bytes that came out of order (Linux 6.1 `tcp_data_queue_ofo`). What
    /// overlaps is kept once.
    pub(crate) fn insert(&mut self, seq: Seq, bytes: &[u8], fin: bool, cost: Cost) -> Placed {
        let end = seq + bytes.len() as u32 + u32::from(fin);
        let mut at = self
            .islands
            .partition_point(|island| !island.seq.after(seq));
        let mut duplicate = None;
        let mut skip = 0;
        if let Some(before) = at
            .checked_sub(1)
            .and_then(|index| self.islands.get_mut(index))
        {
            if !end.after(before.end()) {
                return Placed {
                    duplicate: Some(SackBlock { start: seq, end }),
                    is_new: false,
                };
            }
            if seq.before(before.end()) {
                duplicate = Some(SackBlock {
                    start: seq,
                    end: before.end(),
                });
                skip = before.end() - seq;
            }
        }
        at = self.remove_covered(at, end, &mut duplicate);
        let mut cut = bytes.len();
        let mut fin = fin;
        if let Some(after) = self.islands.get(at)
            && end.after(after.seq)
        {
            extend(&mut duplicate, after.seq, end.earliest(after.end()));
            cut = (after.seq - seq) as usize;
            fin = false;
        }
        let skip = (skip as usize).min(cut);
        let fresh = &bytes[skip.min(bytes.len())..cut.min(bytes.len())];
        self.add_island(at, seq + skip as u32, fresh, fin, cost);
        Placed {
            duplicate,
            is_new: true,
        }
    }

    /// Removes the islands from `at` on that lie before `end`.
    fn remove_covered(&mut self, at: usize, end: Seq, duplicate: &mut Option<SackBlock>) -> usize {
        while let Some(after) = self.islands.get(at)
            && !after.end().after(end)
        {
            extend(duplicate, after.seq, after.end());
            self.memory = self.memory.saturating_sub(after.memory());
            self.islands.remove(at);
        }
        at
    }

    fn add_island(&mut self, at: usize, seq: Seq, bytes: &[u8], fin: bool, cost: Cost) {
        let part = Held {
            bytes: bytes.len() as u32,
            memory: cost.memory,
            spare: cost.spare,
        };
        if let Some(before) = at
            .checked_sub(1)
            .and_then(|index| self.islands.get_mut(index))
            && before.end() == seq
            && !before.fin
        {
            before.bytes.extend_from_slice(bytes);
            before.fin = fin;
            let is_taken = before
                .parts
                .last_mut()
                .is_some_and(|last| last.takes(part.bytes));
            if !is_taken {
                before.parts.push(part);
                self.memory += part.memory;
            }
            return;
        }
        self.memory += part.memory;
        self.islands.insert(
            at,
            Island {
                seq,
                bytes: bytes.to_vec(),
                fin,
                parts: vec![part],
            },
        );
    }

    /// Moves what follows `next` without a hole to the bytes in order (Linux 6.1
    /// `tcp_ofo_queue`).
    pub(crate) fn advance(&mut self, next: &mut Seq) -> Advanced {
        let high = *next;
        let mut advanced = Advanced::default();
        while let Some(first) = self.islands.front()
            && !first.seq.after(*next)
            && let Some(island) = self.islands.pop_front()
        {
            if island.seq.before(high) {
                extend(
                    &mut advanced.duplicate,
                    island.seq,
                    high.earliest(island.end()),
                );
            }
            if !island.end().after(*next) {
                self.memory = self.memory.saturating_sub(island.memory());
                continue;
            }
            let known = ((*next - island.seq) as usize).min(island.bytes.len());
            self.ready.extend(&island.bytes[known..]);
            *next = island.end();
            advanced.fin = island.fin;
            let mut skip = known as u32;
            for mut part in island.parts {
                let skipped = skip.min(part.bytes);
                skip -= skipped;
                part.bytes -= skipped;
                if part.bytes == 0 && skipped > 0 {
                    self.memory = self.memory.saturating_sub(part.memory);
                } else {
                    self.hold(part);
                }
            }
            if advanced.fin {
                break;
            }
        }
        advanced
    }

    /// Makes room up to `limit` bytes of memory: packs what is held, then drops
    /// the furthest islands (Linux 6.1 `tcp_prune_queue`). Returns whether
    /// islands were dropped.
    pub(crate) fn prune(&mut self, limit: u32) -> bool {
        self.pack();
        let mut dropped = false;
        while self.memory > limit
            && let Some(last) = self.islands.pop_back()
        {
            self.memory = self.memory.saturating_sub(last.memory());
            dropped = true;
        }
        dropped
    }

    /// Copies packets together so that only a page in 4096 bytes is wasted.
    fn pack(&mut self) {
        let packed = |bytes: u32| bytes + bytes.div_ceil(3_500) * (BUFFER_COST + SHARED_COST);
        let mut memory = 0;
        let bytes: u32 = self.held.iter().map(|held| held.bytes).sum();
        let held: u32 = self.held.iter().map(|held| held.memory).sum();
        if bytes > 0 {
            let cost = packed(bytes).min(held);
            self.held.clear();
            self.held.push_back(Held {
                bytes,
                memory: cost,
                spare: 0,
            });
            memory += cost;
        }
        for island in &mut self.islands {
            let bytes = island.bytes.len() as u32;
            let cost = packed(bytes).min(island.memory());
            island.parts = vec![Held {
                bytes,
                memory: cost,
                spare: 0,
            }];
            memory += cost;
        }
        self.memory = memory;
    }

    /// Drops everything in order: nobody will read it.
    pub(crate) fn clear_ready(&mut self) {
        self.ready.clear();
        for held in self.held.drain(..) {
            self.memory = self.memory.saturating_sub(held.memory);
        }
    }

    /// Drops everything out of order.
    pub(crate) fn clear_islands(&mut self) {
        for island in self.islands.drain(..) {
            self.memory = self.memory.saturating_sub(island.memory());
        }
    }
}

/// Widens a range of duplicates; ranges that do not touch are not joined, as
/// Linux 6.1 `tcp_sack_extend` has it.
fn extend(duplicate: &mut Option<SackBlock>, start: Seq, end: Seq) {
    match duplicate {
        None => *duplicate = Some(SackBlock { start, end }),
        Some(block) if !start.after(block.end) && !block.start.after(end) => {
            block.start = block.start.earliest(start);
            block.end = block.end.latest(end);
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Received};
    use crate::Seq;
    use crate::wire::SackBlock;

    fn read_all(received: &mut Received) -> Vec<u8> {
        let mut out = vec![0; received.ready()];
        received.read(&mut out);
        out
    }

    #[test]
    fn a_filled_hole_brings_what_lies_behind_it_and_frees_its_memory() {
        let mut received = Received::default();
        received.insert(Seq(3), b"def", false, Cost::of(60));
        received.insert(Seq(6), b"ghi", true, Cost::of(60));
        let mut next = Seq(0);
        received.append(b"abc", Cost::of(55));
        next += 3;
        assert!(received.advance(&mut next).fin);
        assert_eq!(next, Seq(10));
        assert_eq!(read_all(&mut received), b"abcdefghi");
        assert_eq!(received.memory(), 0);
    }

    #[test]
    fn small_packets_lie_in_the_block_of_the_one_before_as_far_as_it_goes() {
        // Linux 6.1 `tcp_try_coalesce`; a block of 512 holds 75 bytes more.
        let mut received = Received::default();
        received.append(&[1], Cost::of(53));
        assert_eq!(received.memory(), 768);
        received.append(&[2; 50], Cost::of(102));
        assert_eq!(received.memory(), 768);
        received.append(&[3; 50], Cost::of(102));
        assert_eq!(received.memory(), 1_536);
        assert_eq!(Cost::of(1_500).memory, 2_304);
        read_all(&mut received);
        assert_eq!(received.memory(), 0);
    }

    #[test]
    fn overlaps_are_kept_once_and_reported() {
        let mut received = Received::default();
        received.insert(Seq(10), b"aaaa", false, Cost::of(60));
        received.insert(Seq(20), b"cccc", false, Cost::of(60));
        let placed = received.insert(Seq(12), b"aabbbbbbcc", false, Cost::of(60));
        assert!(placed.is_new);
        assert_eq!(
            placed.duplicate,
            Some(SackBlock {
                start: Seq(12),
                end: Seq(14)
            })
        );
        let again = received.insert(Seq(12), b"aa", false, Cost::of(60));
        assert!(!again.is_new);
        let mut next = Seq(10);
        received.advance(&mut next);
        assert_eq!(read_all(&mut received), b"aaaabbbbbbcccc");
        assert_eq!(next, Seq(24));
    }

    #[test]
    fn pruning_drops_the_furthest_first() {
        let mut received = Received::default();
        for i in 0..100 {
            received.insert(Seq(10 + i * 10), b"x", false, Cost::of(60));
        }
        assert!(received.prune(received.memory() / 2));
        let mut next = Seq(10);
        received.advance(&mut next);
        assert_eq!(next, Seq(11));
    }
}
