//! What was sent and is not yet acknowledged: a segment each, in order.

mod buffers;

pub(crate) use buffers::Shift;

use std::collections::VecDeque;

use crate::{Instant, Seq};

/// Marks of a segment sent (Linux 6.1 `TCPCB_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    /// Selectively acknowledged.
    pub(crate) const SACKED: u8 = 1;
    /// A retransmission of it is in flight.
    pub(crate) const RETRANSMITTED: u8 = 2;
    /// Thought lost.
    pub(crate) const LOST: u8 = 4;
    /// It was retransmitted at least once.
    pub(crate) const EVER_RETRANSMITTED: u8 = 8;

    pub(crate) const fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }

    pub(crate) const fn set(&mut self, marks: u8) {
        self.0 |= marks;
    }

    pub(crate) const fn clear(&mut self, marks: u8) {
        self.0 &= !marks;
    }

    /// Whether both are equal but for what was long ago (Linux's `TCPCB_TAGBITS`).
    pub(crate) const fn is_tagged_as(self, other: Self) -> bool {
        (self.0 ^ other.0) & (Self::SACKED | Self::RETRANSMITTED | Self::LOST) == 0
    }

    /// Whether it is selectively acknowledged and neither lost nor in flight again.
    pub(crate) const fn is_only_sacked(self) -> bool {
        self.is_tagged_as(Self(Self::SACKED))
    }

    /// Whether it was retransmitted, now or before (Linux's `TCPCB_RETRANS`).
    pub(crate) const fn was_retransmitted(self) -> bool {
        self.has(Self::RETRANSMITTED | Self::EVER_RETRANSMITTED)
    }
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one segment"
)]
pub(crate) struct Sent {
    pub(crate) seq: Seq,
    /// The sequence number after it, SYN and FIN included.
    pub(crate) end: Seq,
    pub(crate) payload: u32,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) push: bool,
    /// The last of those that left in one buffer: what is lost of a buffer is
    /// sent again in one burst.
    pub(crate) ends_buffer: bool,
    /// Its bytes lie beside their header, as a probe's for the path's MTU do, and not in
    /// pages: they are never moved to another buffer (Linux 6.1 `skb_shift`).
    pub(crate) is_linear: bool,
    /// How long the segments of its buffer are, if there are several (Linux's
    /// `tcp_gso_size`).
    pub(crate) unit: u32,
    pub(crate) marks: Marks,
    /// Whether RACK still looks at it: not after it found it lost, until it is sent
    /// again (Linux's `tcp_tsorted_anchor`).
    pub(crate) is_timed: bool,
    /// When it was last sent.
    pub(crate) at: Instant,
    /// What let it go then, counted.
    pub(crate) turn: u64,
    /// Bytes of memory its buffer costs beyond the payload.
    pub(crate) overhead: u32,
    /// For the delivery rate: the state when it was sent; `delivered_us` is
    /// none once it has been counted.
    pub(crate) delivered_us: Option<u64>,
    pub(crate) first_sent_us: u64,
    pub(crate) delivered: u64,
    pub(crate) is_app_limited: bool,
}

impl Sent {
    pub(crate) const fn at_us(&self) -> u64 {
        self.at.as_micros()
    }

    pub(crate) const fn departure(&self) -> Departure {
        Departure {
            at_us: self.at_us(),
            turn: self.turn,
            end: self.end,
        }
    }
}

/// When a segment was sent, and which one of those that left together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) at_us: u64,
    /// What let it go, counted: an acknowledgement, a timer, a write.
    pub(crate) turn: u64,
    /// The sequence number after it.
    pub(crate) end: Seq,
}

impl Departure {
    /// Whether it was later than another. What one acknowledgement lets go leaves at
    /// one time and counts in the order of its bytes (Linux 6.1
    /// `tcp_skb_sent_after`). The kernel does so with all that leaves in a
    /// microsecond; its clock moves between two acknowledgements, though, and in
    /// virtual time it need not.
    pub(crate) fn is_after(self, other: Self) -> bool {
        let (ours, theirs) = ((self.at_us, self.turn), (other.at_us, other.turn));
        ours > theirs || (ours == theirs && self.end.after(other.end))
    }
}

/// A range by the time it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentRange {
    pub(crate) at_us: u64,
    turn: u64,
    pub(crate) start: Seq,
    pub(crate) end: Seq,
}

/// The retransmission queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentQueue {
    segments: VecDeque<Sent>,
    /// Ranges by the time they were sent, for RACK: the oldest first. A range
    /// that was acknowledged, or sent again, is passed over.
    by_time: VecDeque<SentRange>,
}

impl SentQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Sent> {
        self.segments.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Sent> {
        self.segments.get_mut(index)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent> {
        self.segments.iter_mut()
    }

    pub(crate) fn push(&mut self, sent: Sent) {
        self.segments.push_back(sent);
        self.stamped(self.segments.len() - 1);
    }

    pub(crate) fn pop_first(&mut self) -> Option<Sent> {
        self.segments.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.by_time.clear();
    }

    /// The segment that holds `seq`, or the first after it.
    pub(crate) fn find(&self, seq: Seq) -> usize {
        self.segments.partition_point(|sent| !sent.end.after(seq))
    }

    /// A segment was sent just now: notes it at the end of the order by time.
    pub(crate) fn stamped(&mut self, index: usize) {
        // Ranges that no longer count are dropped before they pile up: there are
        // at most four for each segment.
        if self.by_time.len() > 4 * self.segments.len() + 64 {
            self.forget_stale_ranges();
        }
        let Some(sent) = self.segments.get_mut(index) else {
            return;
        };
        sent.is_timed = true;
        let range = SentRange {
            at_us: sent.at_us(),
            turn: sent.turn,
            start: sent.seq,
            end: sent.end,
        };
        match self.by_time.back_mut() {
            Some(last)
                if (last.at_us, last.turn) == (range.at_us, range.turn)
                    && last.end == range.start =>
            {
                last.end = range.end;
            }
            _ => self.by_time.push_back(range),
        }
    }

    fn forget_stale_ranges(&mut self) {
        let segments = &self.segments;
        self.by_time.retain(|range| {
            let first = segments.partition_point(|sent| !sent.end.after(range.start));
            segments
                .iter()
                .skip(first)
                .take_while(|sent| sent.seq.before(range.end))
                .any(|sent| sent.at_us() == range.at_us && !sent.marks.has(Marks::SACKED))
        });
    }

    /// Takes the ranges from the order by time of which a part may have left before: all
    /// but those that left later. Of what left together a later one may come first, which
    /// ends nothing if it is passed over.
    pub(crate) fn take_sent_before(&mut self, departure: Departure) -> Vec<SentRange> {
        let mut ranges = Vec::new();
        while let Some(range) = self.by_time.front()
            && (range.at_us, range.turn) <= (departure.at_us, departure.turn)
        {
            ranges.extend(self.by_time.pop_front());
        }
        ranges
    }

    /// Puts ranges back at the front, in their order.
    pub(crate) fn put_back(&mut self, ranges: Vec<SentRange>) {
        for range in ranges.into_iter().rev() {
            self.by_time.push_front(range);
        }
    }
}

#[cfg(test)]
mod tests;
