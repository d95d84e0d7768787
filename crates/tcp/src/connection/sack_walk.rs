//! The walk over what was sent, for the blocks of one acknowledgement: where it begins, what
//! the last acknowledgement's blocks let it pass over, and how buffers are cut and joined on
//! it (Linux 6.1 `tcp_sacktag_write_queue`, `tcp_sacktag_walk`).
//!
//! It goes forward alone: a duplicate before the place where it stands is not counted.

use super::Connection;
use super::ack::AckContext;
use crate::Seq;
use crate::sent::{Marks, Shift};
use crate::wire::SackBlock;

/// What is marked on the way.
#[derive(Clone, Copy)]
struct Stretch {
    block: SackBlock,
    is_duplicate: bool,
    /// A duplicate that the next block reports, and that may lie within this one.
    duplicate_within: Option<SackBlock>,
}

/// The buffer at which the walk stands, by a sequence number in it; none before it begins
/// and behind the last.
type WalkPosition = Option<Seq>;

impl Connection {
    /// Marks what blocks, in order and with whether they report a duplicate, say has
    /// arrived. What the `known` blocks of the last acknowledgement cover is passed over, but
    /// nothing is behind the end of all that has arrived.
    pub(super) fn mark_blocks(
        &mut self,
        mut blocks: &[(SackBlock, bool)],
        mut known: &[SackBlock],
        context: &mut AckContext,
    ) {
        let mut position = None;
        while let [(block, is_duplicate), rest @ ..] = blocks {
            let (block, is_duplicate) = (*block, *is_duplicate);
            let next = rest.first().filter(|(_, is_duplicate)| *is_duplicate);
            let stretch = Stretch {
                block,
                is_duplicate,
                duplicate_within: next.map(|(block, _)| *block),
            };
            known = without_those_before(known, block.start);
            if let [first, later @ ..] = known
                && !is_duplicate
                && block.end.after(first.start)
            {
                position = self.mark_until(position, stretch, first.start, context);
                if !block.end.after(first.end) {
                    blocks = rest;
                    continue;
                }
                position = self.mark_duplicate_before(position, stretch, first.end, context);
                known = later;
                if self.fack() != first.end {
                    position = self.skip(position, first.end);
                    continue;
                }
                position = self.highest();
            } else {
                if !block.start.before(self.fack()) {
                    position = self.highest();
                    if position.is_none() {
                        return;
                    }
                }
                position = self.skip(position, block.start);
            }
            position = self.walk(position, stretch, context);
            blocks = rest;
        }
    }

    /// What of a block lies before `end`, where the last acknowledgement's begins.
    fn mark_until(
        &mut self,
        position: WalkPosition,
        stretch: Stretch,
        end: Seq,
        context: &mut AckContext,
    ) -> WalkPosition {
        let start = stretch.block.start;
        if !start.before(end) {
            return position;
        }
        let position = self.skip(position, start);
        let block = SackBlock { start, end };
        self.walk(position, Stretch { block, ..stretch }, context)
    }

    /// A duplicate within what is passed over (Linux 6.1 `tcp_maybe_skipping_dsack`).
    fn mark_duplicate_before(
        &mut self,
        position: WalkPosition,
        stretch: Stretch,
        end: Seq,
        context: &mut AckContext,
    ) -> WalkPosition {
        let within = stretch.duplicate_within;
        let Some(block) = within.filter(|block| block.start.before(end)) else {
            return position;
        };
        let position = self.skip(position, block.start);
        let duplicate = Stretch {
            block,
            is_duplicate: true,
            duplicate_within: None,
        };
        self.walk(position, duplicate, context)
    }

    /// The buffer behind all that has arrived (Linux 6.1 `tcp_highest_sack`).
    fn highest(&self) -> WalkPosition {
        let index = self.snd.sent.find(self.fack());
        self.snd.sent.get(index).map(|_| self.fack())
    }

    /// Goes on to the buffer that holds `seq`, unless the walk is beyond it (Linux 6.1
    /// `tcp_sacktag_skip`).
    fn skip(&self, position: WalkPosition, seq: Seq) -> WalkPosition {
        if position.is_some_and(|position| position.after(seq)) {
            return position;
        }
        let found = self.snd.sent.get(self.snd.sent.find(seq));
        found.filter(|sent| !sent.seq.after(seq)).map(|_| seq)
    }

    /// Marks what of a stretch lies in whole segments, buffer by buffer; returns where it
    /// ends (Linux 6.1 `tcp_sacktag_walk`).
    fn walk(
        &mut self,
        position: WalkPosition,
        stretch: Stretch,
        context: &mut AckContext,
    ) -> WalkPosition {
        let mut index = self.snd.sent.buffer_begin(self.snd.sent.find(position?));
        while let Some(sent) = self.snd.sent.get(index) {
            let begin = sent.seq;
            if !begin.before(stretch.block.end) {
                return Some(begin);
            }
            let within = stretch.duplicate_within;
            let within = within.filter(|block| begin.before(block.end));
            if within.is_some_and(|block| self.cut_at(index, block) == Some(true)) {
                index = self.mark_buffer(index, true, context);
                continue;
            }
            match self.shift_of(index, stretch.block, stretch.is_duplicate) {
                Shift::Move(count) => {
                    self.mark_sacked(index, count, stretch.is_duplicate, context);
                    index = self.move_back(index, count);
                }
                Shift::Leave => index += self.snd.sent.buffer_rest(index),
                Shift::Cut => match self.cut_at(index, stretch.block) {
                    Some(true) => index = self.mark_buffer(index, stretch.is_duplicate, context),
                    Some(false) => index += self.snd.sent.buffer_rest(index),
                    None => return Some(begin),
                },
            }
        }
        None
    }

    fn mark_buffer(&mut self, index: usize, duplicate: bool, context: &mut AckContext) -> usize {
        let count = self.snd.sent.buffer_rest(index);
        self.mark_sacked(index, count, duplicate, context);
        index + count
    }

    /// Cuts a buffer where a block begins or ends in it; whether its first part lies in the
    /// block, or nothing if that is less than a segment (Linux 6.1 `tcp_match_skb_to_sack`).
    fn cut_at(&mut self, index: usize, block: SackBlock) -> Option<bool> {
        let (count, is_covered) = self.snd.sent.covered(index, (block.start, block.end))?;
        let unit = self.snd.sent.get(index).map_or(0, |sent| sent.unit);
        if (1..self.snd.sent.buffer_rest(index)).contains(&count) && unit > 0 {
            self.end_buffer(index + count - 1);
            let first = self.cut_anew(index, unit);
            self.cut_anew(index + first, unit);
        }
        Some(is_covered)
    }

    /// Whether a buffer moves into the one before. What was sent again without being
    /// lost stays by itself.
    fn shift_of(&self, index: usize, block: SackBlock, duplicate: bool) -> Shift {
        let marks = self.snd.sent.get(index).map(|sent| sent.marks);
        let is_again = marks.is_some_and(|it| it.has(Marks::RETRANSMITTED) && !it.has(Marks::LOST));
        if is_again && !duplicate {
            return Shift::Cut;
        }
        let range = (block.start, block.end);
        self.snd.sent.shift(index, range, self.flow.una)
    }

    /// Moves segments into the buffer before, and the buffer behind them, too, if that
    /// fills a hole; returns what follows.
    fn move_back(&mut self, index: usize, count: usize) -> usize {
        let is_all = count == self.snd.sent.buffer_rest(index);
        let freed = self.snd.sent.move_back(index, count);
        self.release_sent(freed);
        let next = index + count;
        if !is_all || !self.snd.sent.closes_a_hole(next) {
            return next;
        }
        let more = self.snd.sent.buffer_rest(next);
        let freed = self.snd.sent.move_back(next, more);
        self.release_sent(freed);
        next + more
    }
}

/// The blocks that do not end before `start`.
fn without_those_before(mut blocks: &[SackBlock], start: Seq) -> &[SackBlock] {
    while let [first, later @ ..] = blocks
        && !start.before(first.end)
    {
        blocks = later;
    }
    blocks
}
