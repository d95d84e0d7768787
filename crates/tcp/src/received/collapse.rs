//! Making room in a receive buffer that is full: packets are copied together,
//! and if that does not help the furthest are dropped (Linux 6.1
//! `tcp_prune_queue`).

use std::collections::VecDeque;

use super::{BUFFER_COST, Packet, Received, SHARED_COST, payload_room};
use crate::Seq;
use crate::reserve::Reserve;

/// Bytes copied into one new block: what a page holds (Linux 6.1
/// `SKB_MAX_ORDER(0, 0)`).
const BLOCK_BYTES: u32 = 4_096 - SHARED_COST;

/// Whether copying starts at a packet: its memory is badly used, a part of it is
/// known, or it overlaps with the next.
fn is_bloated(packet: &Packet, next: Option<&Packet>, start: Seq) -> bool {
    let wastes =
        !packet.fin && (payload_room(packet.memory) > packet.length || packet.seq.before(start));
    wastes || next.is_some_and(|next| packet.end() != next.seq)
}

impl Received {
    /// Makes room up to `limit` bytes of memory; `copied` to `next` are the bytes
    /// in order. Returns whether packets out of order were dropped.
    pub(crate) fn prune(
        &mut self,
        limit: u32,
        copied: Seq,
        next: Seq,
        reserve: &mut Reserve,
    ) -> bool {
        self.collapse_late(limit, reserve);
        let mut held = std::mem::take(&mut self.held);
        let count = held.len();
        self.collapse(&mut held, 0, count, copied, next, reserve);
        self.held = held;
        self.memory > limit && self.drop_furthest(limit, reserve)
    }

    /// Drops the furthest packets, an eighth of the limit at least (Linux 6.1
    /// `tcp_prune_ofo_queue`).
    fn drop_furthest(&mut self, limit: u32, reserve: &mut Reserve) -> bool {
        let mut goal = i64::from(limit >> 3);
        let mut dropped = false;
        while let Some(last) = self.late.pop_back() {
            dropped = true;
            goal -= i64::from(last.memory);
            self.release(last.memory, reserve);
            if goal <= 0 {
                if self.memory <= limit {
                    break;
                }
                goal = i64::from(limit >> 3);
            }
        }
        dropped
    }

    /// Copies packets out of order together, range by range (Linux 6.1
    /// `tcp_collapse_ofo_queue`).
    fn collapse_late(&mut self, limit: u32, reserve: &mut Reserve) {
        let mut late = std::mem::take(&mut self.late);
        let mut tiny = 0;
        let mut head = 0;
        while let Some(first) = late.get(head) {
            let (mut start, mut end, first_memory) = (first.seq, first.end(), first.memory);
            let mut memory = first_memory;
            let mut tail = head + 1;
            while let Some(packet) = late.get(tail)
                && !packet.seq.after(end)
                && !packet.end().before(start)
            {
                memory += packet.memory;
                start = start.earliest(packet.seq);
                end = end.latest(packet.end());
                tail += 1;
            }
            if memory != first_memory || end - start >= BLOCK_BYTES {
                head = self.collapse(&mut late, head, tail, start, end, reserve);
            } else {
                tiny += memory;
                if tiny > limit >> 3 {
                    break;
                }
                head = tail;
            }
        }
        self.late = late;
    }

    /// Copies the packets `head..tail`, of which the bytes `start..end` count,
    /// into blocks that hold as much as a page; returns where they end now (Linux
    /// 6.1 `tcp_collapse`).
    fn collapse(
        &mut self,
        packets: &mut VecDeque<Packet>,
        head: usize,
        mut tail: usize,
        mut start: Seq,
        end: Seq,
        reserve: &mut Reserve,
    ) -> usize {
        let mut at = head;
        loop {
            let Some(packet) = packets.get(at).filter(|_| at < tail) else {
                return tail;
            };
            if !start.before(packet.end()) {
                self.discard(packets, at, reserve);
                tail -= 1;
                continue;
            }
            let next = packets.get(at + 1).filter(|_| at + 1 < tail);
            if is_bloated(packet, next, start) {
                break;
            }
            start = packet.end();
            at += 1;
        }
        if packets.get(at).is_some_and(|packet| packet.fin) {
            return tail;
        }
        while start.before(end) {
            let room = BLOCK_BYTES.min(end - start);
            let block = (room.next_multiple_of(64) + SHARED_COST).next_power_of_two();
            let mut new = Packet {
                seq: start,
                length: 0,
                fin: false,
                memory: block + BUFFER_COST,
                spare: block - SHARED_COST,
                bytes: Vec::new(),
            };
            self.charge(new.memory, reserve);
            let mut is_over = false;
            while new.length < room && !is_over {
                let Some(packet) = packets.get(at) else {
                    is_over = true;
                    break;
                };
                let skip = start.distance(packet.seq).max(0).cast_unsigned();
                let count = packet.length.saturating_sub(skip).min(room - new.length);
                if count == 0 && start.before(packet.end()) {
                    // Nothing but a FIN is left of it.
                    is_over = true;
                    break;
                }
                let from = (skip as usize).min(packet.bytes.len());
                let to = (from + count as usize).min(packet.bytes.len());
                new.bytes.extend_from_slice(&packet.bytes[from..to]);
                new.length += count;
                start += count;
                if !start.before(packet.end()) {
                    self.discard(packets, at, reserve);
                    tail -= 1;
                    is_over = at >= tail || packets.get(at).is_none_or(|packet| packet.fin);
                }
            }
            if new.length == 0 {
                self.release(new.memory, reserve);
                break;
            }
            new.spare -= new.length;
            packets.insert(at, new);
            at += 1;
            tail += 1;
            if is_over {
                break;
            }
        }
        tail
    }

    fn discard(&mut self, packets: &mut VecDeque<Packet>, at: usize, reserve: &mut Reserve) {
        if let Some(packet) = packets.remove(at) {
            self.release(packet.memory, reserve);
        }
    }
}
