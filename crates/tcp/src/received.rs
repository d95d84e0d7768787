//! The receive buffer: bytes in order, bytes out of order, and what both cost
//! in memory, which is what the window follows.

use std::collections::VecDeque;

use crate::Seq;
use crate::wire::SackBlock;

/// Bytes of memory a received packet costs beside its bytes: the kernel's
/// buffer (256), the shared information at the buffer's end (320).
const BUFFER_COST: u32 = 256;
const SHARED_COST: u32 = 320;
/// Packets whose memory is held together (the kernel's `MAX_SKB_FRAGS`).
const PACKETS_TOGETHER: u32 = 17;

/// Memory that a packet with so much payload holds, headers included, in the
/// kernel's cache lines.
pub(crate) const fn memory_of(payload: u32) -> u32 {
    (payload + 64 + 66).next_multiple_of(64) + SHARED_COST + BUFFER_COST
}

/// Packets received in order and held together.
#[derive(Clone, Copy, Debug)]
struct Held {
    bytes: u32,
    memory: u32,
    packets: u32,
}

/// Bytes beyond a hole.
#[derive(Clone, Debug)]
struct Island {
    seq: Seq,
    bytes: Vec<u8>,
    fin: bool,
    memory: u32,
    packets: u32,
}

impl Island {
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

    /// Whether nothing is out of order.
    pub(crate) fn has_no_islands(&self) -> bool {
        self.islands.is_empty()
    }

    /// Appends bytes that came in order, at a cost of `memory`.
    pub(crate) fn append(&mut self, bytes: &[u8], memory: u32) {
        self.hold(bytes.len() as u32, memory);
        self.memory += memory;
        self.ready.extend(bytes);
    }

    fn hold(&mut self, bytes: u32, memory: u32) {
        match self.held.back_mut() {
            Some(last) if last.packets < PACKETS_TOGETHER => {
                let memory = memory.saturating_sub(BUFFER_COST);
                last.bytes += bytes;
                last.memory += memory;
                last.packets += 1;
                // The caller adds the whole of it.
                self.memory = self.memory.saturating_sub(BUFFER_COST);
            }
            _ => self.held.push_back(Held {
                bytes,
                memory,
                packets: 1,
            }),
        }
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
    pub(crate) fn insert(&mut self, seq: Seq, bytes: &[u8], fin: bool) -> Placed {
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
        self.add_island(
            at,
            seq + skip as u32,
            fresh,
            fin,
            memory_of(bytes.len() as u32),
        );
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
            self.memory = self.memory.saturating_sub(after.memory);
            self.islands.remove(at);
        }
        at
    }

    fn add_island(&mut self, at: usize, seq: Seq, bytes: &[u8], fin: bool, memory: u32) {
        if let Some(before) = at
            .checked_sub(1)
            .and_then(|index| self.islands.get_mut(index))
            && before.end() == seq
            && !before.fin
            && before.packets < PACKETS_TOGETHER
        {
            let memory = memory - BUFFER_COST;
            before.bytes.extend_from_slice(bytes);
            before.fin = fin;
            before.memory += memory;
            before.packets += 1;
            self.memory += memory;
            return;
        }
        self.memory += memory;
        self.islands.insert(
            at,
            Island {
                seq,
                bytes: bytes.to_vec(),
                fin,
                memory,
                packets: 1,
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
                self.memory = self.memory.saturating_sub(island.memory);
                continue;
            }
            let known = ((*next - island.seq) as usize).min(island.bytes.len());
            self.hold((island.bytes.len() - known) as u32, island.memory);
            self.ready.extend(&island.bytes[known..]);
            *next = island.end();
            if island.fin {
                advanced.fin = true;
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
            self.memory = self.memory.saturating_sub(last.memory);
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
                packets: PACKETS_TOGETHER,
            });
            memory += cost;
        }
        for island in &mut self.islands {
            island.memory = packed(island.bytes.len() as u32).min(island.memory);
            memory += island.memory;
        }
        self.memory = memory;
    }

    /// Drops everything out of order.
    pub(crate) fn clear_islands(&mut self) {
        for island in self.islands.drain(..) {
            self.memory = self.memory.saturating_sub(island.memory);
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
    use super::Received;
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
        received.insert(Seq(3), b"def", false);
        received.insert(Seq(6), b"ghi", true);
        let mut next = Seq(0);
        received.append(b"abc", 700);
        next += 3;
        assert!(received.advance(&mut next).fin);
        assert_eq!(next, Seq(10));
        assert_eq!(read_all(&mut received), b"abcdefghi");
        assert_eq!(received.memory(), 0);
    }

    #[test]
    fn overlaps_are_kept_once_and_reported() {
        let mut received = Received::default();
        received.insert(Seq(10), b"aaaa", false);
        received.insert(Seq(20), b"cccc", false);
        let placed = received.insert(Seq(12), b"aabbbbbbcc", false);
        assert!(placed.is_new);
        assert_eq!(
            placed.duplicate,
            Some(SackBlock {
                start: Seq(12),
                end: Seq(14)
            })
        );
        let again = received.insert(Seq(12), b"aa", false);
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
            received.insert(Seq(10 + i * 10), b"x", false);
        }
        assert!(received.prune(received.memory() / 2));
        let mut next = Seq(10);
        received.advance(&mut next);
        assert_eq!(next, Seq(11));
    }
}
