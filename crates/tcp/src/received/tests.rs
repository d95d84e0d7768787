//! Tests of the receive buffer.

use super::{Cost, Placed, Received, Storage};
use crate::Seq;
use crate::reserve::Reserve;
use crate::wire::SackBlock;

/// A buffer, the next byte expected and the next to be read.
#[derive(Default)]
struct Held {
    received: Received,
    reserve: Reserve,
    next: Seq,
    copied: Seq,
}

impl Held {
    fn append(&mut self, payload: &[u8]) {
        let cost = Cost::of(52 + payload.len() as u32);
        let (seq, reserve) = (self.next, &mut self.reserve);
        self.received
            .append(seq, payload, seq, false, cost, reserve);
        self.next += payload.len() as u32;
    }

    fn insert(&mut self, seq: u32, payload: &[u8], fin: bool) -> Placed {
        let cost = Cost::of(52 + payload.len() as u32);
        let reserve = &mut self.reserve;
        let placed = self.received.insert(Seq(seq), payload, fin, cost, reserve);
        if placed.storage == Storage::Own {
            self.received.charge(cost.memory, &mut self.reserve);
        }
        placed
    }

    fn advance(&mut self) -> bool {
        let (next, reserve) = (&mut self.next, &mut self.reserve);
        self.received.advance(next, reserve).fin
    }

    fn read_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut out = [0; 1_000];
        let (received, reserve) = (&mut self.received, &mut self.reserve);
        while let Some(piece) = received.read(self.copied, &mut out, reserve) {
            all.extend(&out[..piece.bytes]);
            self.copied += piece.bytes as u32;
        }
        all
    }

    fn prune(&mut self, limit: u32) -> bool {
        let (copied, next) = (self.copied, self.next);
        self.received.prune(limit, copied, next, &mut self.reserve)
    }
}

#[test]
fn a_filled_hole_brings_what_lies_behind_it_and_frees_its_memory() {
    let mut held = Held::default();
    held.insert(3, b"def", false);
    assert_eq!(held.insert(6, b"ghi", true).storage, Storage::Shared);
    held.append(b"abc");
    assert!(held.advance());
    assert_eq!(held.next, Seq(10));
    assert_eq!(held.read_all(), b"abcdefghi");
    assert_eq!(held.received.memory(), 0);
}

#[test]
fn small_packets_lie_in_the_block_of_the_one_before_as_far_as_it_goes() {
    // Linux 6.1 `tcp_try_coalesce`; a block of 512 holds 75 bytes more.
    let mut held = Held::default();
    held.append(&[1]);
    assert_eq!(held.received.memory(), 768);
    held.append(&[2; 50]);
    assert_eq!(held.received.memory(), 768);
    held.append(&[3; 50]);
    assert_eq!(held.received.memory(), 1_536);
    assert_eq!(Cost::of(1_500).memory, 2_304);
    held.read_all();
    assert_eq!(held.received.memory(), 0);
}

#[test]
fn a_lone_fin_holds_memory_until_it_is_read() {
    let mut held = Held::default();
    let (cost, reserve) = (Cost::of(52), &mut held.reserve);
    held.received
        .append(Seq(0), b"", Seq(0), true, cost, reserve);
    assert_eq!(held.received.memory(), 768);
    let piece = held.received.read(Seq(0), &mut [0; 9], &mut held.reserve);
    assert!(piece.is_some_and(|piece| piece.fin && piece.bytes == 0));
    assert_eq!(held.received.memory(), 0);
}

#[test]
fn overlaps_are_read_once_and_reported() {
    let mut held = Held::default();
    held.insert(10, b"aaaa", false);
    held.insert(20, b"cccc", false);
    // Linux 6.1 reports the end of the one before, and widens the report only
    // by what touches it.
    let placed = held.insert(12, b"aabbbbbbcc", false);
    assert_eq!(placed.storage, Storage::Own);
    assert_eq!(
        placed.duplicate,
        Some(SackBlock {
            start: Seq(12),
            end: Seq(14)
        })
    );
    assert_eq!(held.insert(12, b"aa", false).storage, Storage::None);
    held.next = Seq(10);
    held.copied = Seq(10);
    held.advance();
    assert_eq!(held.read_all(), b"aaaabbbbbbcccc");
    assert_eq!(held.next, Seq(24));
}

#[test]
fn pruning_drops_the_furthest_first() {
    let mut held = Held::default();
    for index in 0..100 {
        held.insert(10 + index * 10, b"x", false);
    }
    let half = held.received.memory() / 2;
    assert!(held.prune(half));
    assert!(held.received.memory() <= half);
    held.next = Seq(10);
    held.copied = Seq(10);
    held.advance();
    assert_eq!(held.next, Seq(11));
}

#[test]
fn pruning_copies_packets_together_and_keeps_every_byte() {
    // Linux 6.1 `tcp_collapse`: blocks of a page hold 3,776 bytes.
    let mut held = Held::default();
    let spoken: Vec<u8> = (0..8_000_u32).map(|place| place as u8).collect();
    for part in spoken[..4_000].chunks(500) {
        held.append(part);
    }
    for (index, part) in spoken[4_000..].chunks(500).enumerate().skip(1) {
        held.insert(4_000 + 500 * index as u32, part, false);
    }
    let before = held.received.memory();
    assert!(!held.prune(before));
    assert_eq!(before, 15 * 1_280);
    assert_eq!(held.received.memory(), 4_352 + 1_280 + 4_352);
    held.append(&spoken[4_000..4_500]);
    held.advance();
    assert_eq!(held.read_all(), spoken);
    assert_eq!(held.received.memory(), 0);
}
