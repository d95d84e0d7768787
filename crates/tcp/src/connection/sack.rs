//! The scoreboard: which segments the peer has selectively acknowledged (RFC
//! 2018, RFC 2883 for duplicates; Linux 6.1 `tcp_sacktag_write_queue`).

use super::Connection;
use super::ack::AckContext;
use crate::Seq;
use crate::congestion::CongestionState;
use crate::sent::{Departure, Marks, Sent};
use crate::wire::{SackBlock, Segment};

/// The most packets of reordering believed (`tcp_max_reordering`).
pub(super) const MAX_REORDERING: u32 = 300;

impl Connection {
    /// The end of what is known to have arrived (Linux 6.1
    /// `tcp_highest_sack_seq`).
    pub(super) fn fack(&self) -> Seq {
        if self.flow.sacked_out == 0 || !self.rcv.sack {
            self.flow.una
        } else {
            self.rec.highest_sacked
        }
    }

    /// Takes the blocks of a segment.
    pub(super) fn take_sacks(
        &mut self,
        segment: &Segment<'_>,
        prior_una: Seq,
        context: &mut AckContext,
    ) {
        context.reordered = None;
        if self.flow.sacked_out == 0 {
            self.rec.highest_sacked = self.flow.una;
        }
        let wire = segment.options.sack.as_slice();
        let is_duplicate = self.check_duplicate(segment.ack, wire, prior_una, context);
        if segment.ack.before(prior_una - self.snd.max_window) || self.flow.packets_out == 0 {
            return;
        }
        let mut blocks = Vec::with_capacity(wire.len());
        for (index, block) in wire.iter().enumerate() {
            let duplicate = index == 0 && is_duplicate;
            if self.is_valid_block(*block, duplicate) && block.end.after(prior_una) {
                blocks.push((*block, duplicate));
            }
        }
        let una = self.flow.una;
        blocks.sort_by_key(|(block, _)| block.start.distance(una));
        let cached = if self.flow.sacked_out > 0 {
            std::mem::take(&mut self.rec.sack_cache)
        } else {
            Vec::new()
        };
        self.mark_blocks(&blocks, &cached, context);
        self.rec.sack_cache = blocks.into_iter().map(|(block, _)| block).collect();
        if let Some(reordered) = context.reordered
            && (self.flow.state != CongestionState::Loss || self.rec.undo_marker.is_some())
        {
            self.on_reordering(reordered);
        }
    }

    /// Whether a block lies in what was sent and not acknowledged, or is a
    /// duplicate of what matters for an undo (Linux 6.1
    /// `tcp_is_sackblock_valid`).
    fn is_valid_block(&self, block: SackBlock, duplicate: bool) -> bool {
        let SackBlock { start, end } = block;
        let next = self.flow.next;
        if end.after(next) || !start.before(end) || !start.before(next) {
            return false;
        }
        if start.after(self.flow.una) {
            return true;
        }
        let Some(marker) = self.rec.undo_marker.filter(|_| duplicate) else {
            return false;
        };
        if end.after(self.flow.una) {
            return false;
        }
        if !start.before(marker) {
            return true;
        }
        end.after(marker) && !start.before(end - self.snd.max_window)
    }

    /// Whether the first block reports a duplicate (RFC 2883, section 4).
    fn check_duplicate(
        &mut self,
        ack: Seq,
        wire: &[SackBlock],
        prior_una: Seq,
        context: &mut AckContext,
    ) -> bool {
        let Some(first) = wire.first() else {
            return false;
        };
        if !first.start.before(ack) {
            match wire.get(1) {
                Some(second)
                    if !first.end.after(second.end) && !first.start.before(second.start) => {}
                _ => return false,
            }
        }
        let count = self.count_duplicate_report(*first, context);
        if count == 0 {
            return false;
        }
        if let (Some(marker), Some(left)) = (self.rec.undo_marker, self.rec.undo_retransmissions)
            && !first.end.after(prior_una)
            && first.end.after(marker)
        {
            self.rec.undo_retransmissions = Some(left.saturating_sub(count));
        }
        true
    }

    /// Linux 6.1 `tcp_dsack_seen`: segments a report stands for, 0 if it is
    /// dubious.
    fn count_duplicate_report(&mut self, block: SackBlock, context: &mut AckContext) -> u32 {
        if !block.start.before(block.end) {
            return 0;
        }
        let length = block.end - block.start;
        if length > self.snd.max_window {
            return 0;
        }
        let mut count = 1;
        if length > self.flow.mss {
            count = length.div_ceil(self.flow.mss.max(1));
        } else if self.rec.probe_high == Some(block.end) {
            context.found.probe_duplicate = true;
        }
        self.rec.duplicates_reported += u64::from(count);
        if self.rec.duplicates_reported > self.snd.retransmissions {
            return 0;
        }
        if self.rec.reorder_seen > 0 && !context.found.probe_duplicate {
            self.rec.rack.duplicate_seen = true;
        }
        context.found.duplicate_reported = true;
        context.sack_delivered += count;
        count
    }

    /// Marks segments of one buffer (Linux 6.1 `tcp_sacktag_one`).
    pub(super) fn mark_sacked(
        &mut self,
        index: usize,
        count: usize,
        duplicate: bool,
        context: &mut AckContext,
    ) {
        let (Some(sent), Some(last), Some(departure)) = (
            self.snd.sent.get(index).copied(),
            self.snd.sent.get((index + count).saturating_sub(1)),
            self.snd.sent.departure(index),
        ) else {
            return;
        };
        let packets = count as u32;
        let end = last.end;
        let mut marks = sent.marks;
        if duplicate && marks.was_retransmitted() {
            if let (Some(marker), Some(left)) =
                (self.rec.undo_marker, self.rec.undo_retransmissions)
                && end.after(marker)
            {
                self.rec.undo_retransmissions = Some(left.saturating_sub(packets));
            }
            if marks.has(Marks::SACKED) {
                note_reordered(context, sent.seq);
            }
        }
        if !end.after(self.flow.una) {
            return;
        }
        if !marks.has(Marks::SACKED) {
            self.rack_advance(marks, Departure { end, ..departure });
            if marks.has(Marks::RETRANSMITTED) {
                if marks.has(Marks::LOST) {
                    marks.clear(Marks::LOST | Marks::RETRANSMITTED);
                    self.flow.lost_out -= packets;
                    self.flow.retransmitted_out -= packets;
                }
            } else {
                if !marks.was_retransmitted() {
                    self.note_first_sack(&sent, end, context);
                }
                if marks.has(Marks::LOST) {
                    marks.clear(Marks::LOST);
                    self.flow.lost_out -= packets;
                }
            }
            marks.set(Marks::SACKED);
            context.found.data_sacked = true;
            self.flow.sacked_out += packets;
            context.sack_delivered += packets;
            if self.flow.sacked_out == packets || end.after(self.rec.highest_sacked) {
                self.rec.highest_sacked = end;
            }
        }
        self.count_delivered(&sent, departure, &mut context.sample);
        if duplicate && marks.has(Marks::RETRANSMITTED) {
            marks.clear(Marks::RETRANSMITTED);
            self.flow.retransmitted_out -= packets;
        }
        for at in index..index + count {
            if let Some(place) = self.snd.sent.get_mut(at) {
                place.marks = marks;
                if marks.has(Marks::SACKED) {
                    place.delivered_us = None;
                }
            }
        }
    }

    fn note_first_sack(&self, sent: &Sent, end: Seq, context: &mut AckContext) {
        if sent.seq.before(self.fack()) {
            note_reordered(context, sent.seq);
        }
        if !end.after(self.rec.high) {
            context.found.original_acked = true;
        }
        context.first_sacked_us.get_or_insert(sent.at_us());
        context.last_sacked_us = Some(sent.at_us());
    }

    /// A segment was overtaken (Linux 6.1 `tcp_check_sack_reordering`).
    pub(super) fn on_reordering(&mut self, low: Seq) {
        let fack = self.fack();
        if !low.before(fack) {
            return;
        }
        let distance = fack - low;
        let mss = self.flow.mss.max(1);
        if distance > self.rec.reordering.saturating_mul(mss) {
            self.rec.reordering = distance.div_ceil(mss).min(MAX_REORDERING);
        }
        self.rec.reorder_seen += 1;
    }
}

fn note_reordered(context: &mut AckContext, seq: Seq) {
    match context.reordered {
        Some(known) if !seq.before(known) => {}
        _ => context.reordered = Some(seq),
    }
}
