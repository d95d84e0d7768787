//! The receive buffer: bytes in order, bytes out of order, and what both cost
//! in memory, which is what the window follows.

use std::collections::VecDeque;

use crate::Seq;
use crate::reserve::Reserve;
use crate::wire::SackBlock;

mod collapse;
#[cfg(test)]
mod tests;

/// Bytes of memory that a packet costs beside its bytes: the kernel's
/// `sk_buff`, what its fragments share at the end of its block
/// (`skb_shared_info`), and what is left free before a received packet.
pub(crate) const BUFFER_COST: u32 = 256;
pub(crate) const SHARED_COST: u32 = 320;
const HEADROOM: u32 = 64;

/// Room for payload in so much memory: half of it (`tcp_adv_win_scale` 1; Linux
/// 6.1 `tcp_win_from_space`).
pub(crate) const fn payload_room(memory: u32) -> u32 {
    memory - (memory >> 1)
}

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

/// A packet as it lies in memory (Linux's `sk_buff`).
#[derive(Clone, Debug)]
struct Packet {
    seq: Seq,
    /// Bytes of payload, those included that were known before or are read.
    length: u32,
    fin: bool,
    memory: u32,
    /// What is free at the end of its block.
    spare: u32,
    /// Its payload; empty for a packet in order, whose bytes lie with the others.
    bytes: Vec<u8>,
}

impl Packet {
    const fn new(seq: Seq, length: u32, fin: bool, cost: Cost) -> Self {
        Self {
            seq,
            length,
            fin,
            memory: cost.memory,
            spare: cost.spare,
            bytes: Vec::new(),
        }
    }

    fn end(&self) -> Seq {
        self.seq + self.length + u32::from(self.fin)
    }

    /// Copies a packet that follows without a hole into the rest of the block, if
    /// it fits (Linux 6.1 `tcp_try_coalesce`).
    fn takes(&mut self, seq: Seq, bytes: &[u8], length: u32, fin: bool) -> bool {
        let fits = seq == self.end() && length <= self.spare;
        if fits {
            self.spare -= length;
            self.length += length;
            self.fin |= fin;
            self.bytes.extend_from_slice(bytes);
        }
        fits
    }
}

/// How a packet that came out of order is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// It has a place of its own; its memory is to be counted with
    /// [`Received::charge`].
    Own,
    /// It was copied behind the one before it and costs nothing.
    Shared,
    /// All of it was known.
    None,
}

/// What became of bytes that came out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Bytes that had been received before.
    pub(crate) duplicate: Option<SackBlock>,
    pub(crate) storage: Storage,
}

/// What the bytes that became in order brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Advanced {
    pub(crate) duplicate: Option<SackBlock>,
    pub(crate) fin: bool,
}

/// What reading from one packet gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: usize,
    /// The end of the stream was reached.
    pub(crate) fin: bool,
}

/// The receive buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// The bytes of the packets in order that are not read.
    ready: VecDeque<u8>,
    held: VecDeque<Packet>,
    /// Packets out of order, by their first byte; they may overlap.
    late: VecDeque<Packet>,
    memory: u32,
}

impl Received {
    /// Bytes of memory in use (Linux 6.1 `sk_rmem_alloc`).
    pub(crate) const fn memory(&self) -> u32 {
        self.memory
    }

    /// Bytes the application may read.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Whether no packet in order waits to be read, not even a FIN.
    pub(crate) fn has_none_in_order(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether nothing is out of order.
    pub(crate) fn has_no_late(&self) -> bool {
        self.late.is_empty()
    }

    /// Counts the memory of a packet; the reserve holds it.
    pub(crate) fn charge(&mut self, memory: u32, reserve: &mut Reserve) {
        self.memory += memory;
        reserve.charge(memory);
    }

    fn release(&mut self, memory: u32, reserve: &mut Reserve) {
        self.memory = self.memory.saturating_sub(memory);
        reserve.release(memory);
    }

    /// Appends a packet of this cost that brings the byte `next` and those after
    /// it (Linux 6.1 `tcp_queue_rcv`).
    pub(crate) fn append(
        &mut self,
        seq: Seq,
        payload: &[u8],
        next: Seq,
        fin: bool,
        cost: Cost,
        reserve: &mut Reserve,
    ) {
        let known = ((next - seq) as usize).min(payload.len());
        self.ready.extend(&payload[known..]);
        let length = payload.len() as u32;
        let is_taken = self
            .held
            .back_mut()
            .is_some_and(|last| last.takes(seq, &[], length, fin));
        if !is_taken {
            self.charge(cost.memory, reserve);
            self.held.push_back(Packet::new(seq, length, fin, cost));
        }
    }

    /// Copies out the bytes of the first packet from `copied` on, as many as fit;
    /// none when there is no packet (Linux 6.1 `tcp_recvmsg_locked`).
    pub(crate) fn read(
        &mut self,
        copied: Seq,
        out: &mut [u8],
        reserve: &mut Reserve,
    ) -> Option<Piece> {
        let first = self.held.front()?;
        let left = (first.seq + first.length).distance(copied).max(0);
        let length = out
            .len()
            .min(left.cast_unsigned() as usize)
            .min(self.ready.len());
        let (front, back) = self.ready.as_slices();
        let from_front = length.min(front.len());
        out[..from_front].copy_from_slice(&front[..from_front]);
        out[from_front..length].copy_from_slice(&back[..length - from_front]);
        self.ready.drain(..length);
        let mut fin = false;
        if length as u32 == left.cast_unsigned()
            && let Some(done) = self.held.pop_front()
        {
            fin = done.fin;
            self.release(done.memory, reserve);
        }
        Some(Piece { bytes: length, fin })
    }

    /// Takes a packet that came out of order (Linux 6.1 `tcp_data_queue_ofo`).
    pub(crate) fn insert(
        &mut self,
        seq: Seq,
        payload: &[u8],
        fin: bool,
        cost: Cost,
        reserve: &mut Reserve,
    ) -> Placed {
        let length = payload.len() as u32;
        let end = seq + length + u32::from(fin);
        let at = self.late.partition_point(|packet| !packet.seq.after(seq));
        let mut duplicate = None;
        let mut at = at;
        if let Some(before) = at.checked_sub(1)
            && let Some(packet) = self.late.get_mut(before)
        {
            if seq.before(packet.end()) {
                if !end.after(packet.end()) {
                    return Placed {
                        duplicate: Some(SackBlock { start: seq, end }),
                        storage: Storage::None,
                    };
                }
                let known = packet.end();
                duplicate = Some(SackBlock {
                    start: seq,
                    end: known,
                });
                if seq == packet.seq {
                    // The new one covers it.
                    self.remove_late(before, reserve);
                    at = before;
                }
            } else if packet.takes(seq, payload, length, fin) {
                return Placed {
                    duplicate,
                    storage: Storage::Shared,
                };
            }
        }
        self.late.insert(
            at,
            Packet {
                bytes: payload.to_vec(),
                ..Packet::new(seq, length, fin, cost)
            },
        );
        self.remove_covered(at + 1, end, &mut duplicate, reserve);
        Placed {
            duplicate,
            storage: Storage::Own,
        }
    }

    fn remove_late(&mut self, index: usize, reserve: &mut Reserve) {
        if let Some(packet) = self.late.remove(index) {
            self.release(packet.memory, reserve);
        }
    }

    /// Removes the packets from `at` on that lie before `end`.
    fn remove_covered(
        &mut self,
        at: usize,
        end: Seq,
        duplicate: &mut Option<SackBlock>,
        reserve: &mut Reserve,
    ) {
        while let Some(after) = self.late.get(at)
            && end.after(after.seq)
        {
            if end.before(after.end()) {
                extend(duplicate, after.seq, end);
                break;
            }
            extend(duplicate, after.seq, after.end());
            self.remove_late(at, reserve);
        }
    }

    /// Moves what follows `next` without a hole to the bytes in order (Linux 6.1
    /// `tcp_ofo_queue`).
    pub(crate) fn advance(&mut self, next: &mut Seq, reserve: &mut Reserve) -> Advanced {
        let high = *next;
        let mut advanced = Advanced::default();
        while let Some(first) = self.late.front()
            && !first.seq.after(*next)
            && let Some(mut packet) = self.late.pop_front()
        {
            if packet.seq.before(high) {
                let end = high.earliest(packet.end());
                extend(&mut advanced.duplicate, packet.seq, end);
            }
            if !packet.end().after(*next) {
                self.release(packet.memory, reserve);
                continue;
            }
            let known = ((*next - packet.seq) as usize).min(packet.bytes.len());
            self.ready.extend(&packet.bytes[known..]);
            packet.bytes = Vec::new();
            *next = packet.end();
            advanced.fin = packet.fin;
            let is_taken = self
                .held
                .back_mut()
                .is_some_and(|last| last.takes(packet.seq, &[], packet.length, packet.fin));
            if is_taken {
                self.release(packet.memory, reserve);
            } else {
                self.held.push_back(packet);
            }
            if advanced.fin {
                break;
            }
        }
        advanced
    }

    /// Drops everything in order: nobody will read it.
    pub(crate) fn clear_ready(&mut self, reserve: &mut Reserve) {
        self.ready.clear();
        while let Some(packet) = self.held.pop_front() {
            self.release(packet.memory, reserve);
        }
    }

    /// Drops everything out of order.
    pub(crate) fn clear_late(&mut self, reserve: &mut Reserve) {
        while let Some(packet) = self.late.pop_front() {
            self.release(packet.memory, reserve);
        }
    }
}

/// Widens a range of duplicates; ranges that do not touch are not joined, as
/// Linux 6.1 `tcp_sack_extend` has it.
pub(crate) fn extend(duplicate: &mut Option<SackBlock>, start: Seq, end: Seq) {
    match duplicate {
        None => *duplicate = Some(SackBlock { start, end }),
        Some(block) if !start.after(block.end) && !block.start.after(end) => {
            block.start = block.start.earliest(start);
            block.end = block.end.latest(end);
        }
        Some(_) => {}
    }
}
