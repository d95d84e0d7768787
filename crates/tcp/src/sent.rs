//! What was sent and is not yet acknowledged: a segment each, in order.

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
    pub(crate) marks: Marks,
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

impl SentRange {
    /// Its departure as far as its first byte is concerned.
    const fn first(&self) -> Departure {
        Departure {
            at_us: self.at_us,
            turn: self.turn,
            end: self.start,
        }
    }
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

    /// Takes the ranges from the order by time of which a part left before.
    pub(crate) fn take_sent_before(&mut self, departure: Departure) -> Vec<SentRange> {
        let mut ranges = Vec::new();
        while let Some(range) = self.by_time.front()
            && departure.is_after(range.first())
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

    /// Cuts a segment in two after `payload` bytes; the second part follows it.
    /// Returns false when there is nothing to cut.
    pub(crate) fn split(&mut self, index: usize, payload: u32) -> bool {
        let Some(first) = self.segments.get_mut(index) else {
            return false;
        };
        if payload == 0 || payload >= first.payload {
            return false;
        }
        let mut second = *first;
        let begin = first.seq + u32::from(first.syn) + payload;
        first.end = begin;
        first.payload = payload;
        first.fin = false;
        first.push = false;
        first.ends_buffer = true;
        second.seq = begin;
        second.payload -= payload;
        second.syn = false;
        second.overhead = 0;
        self.segments.insert(index + 1, second);
        true
    }

    /// How many segments from `index` on lie in one buffer and are marked alike:
    /// what the kernel has in one `sk_buff`.
    pub(crate) fn together(&self, index: usize) -> usize {
        let mut count = 1;
        let mut rest = self.segments.iter().skip(index);
        let Some(mut last) = rest.next() else {
            return 0;
        };
        for next in rest {
            if last.ends_buffer || !last.marks.is_tagged_as(next.marks) {
                break;
            }
            count += 1;
            last = next;
        }
        count
    }

    /// How many segments before `index` lie in one buffer with it and are marked
    /// alike.
    pub(crate) fn together_before(&self, index: usize) -> usize {
        let mut count = 0;
        while let Some(before) = (index - count).checked_sub(1)
            && let (Some(first), Some(next)) =
                (self.segments.get(before), self.segments.get(before + 1))
            && !first.ends_buffer
            && first.marks.is_tagged_as(next.marks)
        {
            count += 1;
        }
        count
    }

    /// Cuts the bytes of `count` segments anew, into segments of `mss`; returns
    /// how many they are now (Linux 6.1 `tcp_set_skb_tso_segs`).
    pub(crate) fn cut_anew(&mut self, index: usize, count: usize, mss: u32) -> usize {
        let mut payload = 0;
        let mut is_cut = true;
        for at in index..index + count {
            let Some(sent) = self.segments.get(at) else {
                return count;
            };
            payload += sent.payload;
            is_cut &= sent.payload == mss || (at + 1 == index + count && sent.payload < mss);
        }
        let (Some(first), Some(last)) = (
            self.segments.get(index).copied(),
            self.segments
                .get((index + count).saturating_sub(1))
                .copied(),
        ) else {
            return count;
        };
        if is_cut || first.syn {
            return count;
        }
        let now = payload.div_ceil(mss).max(1) as usize;
        for _ in now..count {
            self.segments.remove(index);
        }
        for _ in count..now {
            self.segments.insert(index, first);
        }
        let mut seq = first.seq;
        for at in 0..now {
            let is_last = at + 1 == now;
            let length = payload.min(mss);
            payload -= length;
            let fin = is_last && last.fin;
            if let Some(place) = self.segments.get_mut(index + at) {
                *place = Sent {
                    seq,
                    end: seq + length + u32::from(fin),
                    payload: length,
                    fin,
                    push: is_last && last.push,
                    ends_buffer: is_last && last.ends_buffer,
                    overhead: if is_last { last.overhead } else { 0 },
                    ..first
                };
            }
            seq += length;
        }
        now
    }

    /// Joins a segment with the one after it, whose buffer is let go.
    pub(crate) fn join(&mut self, index: usize) -> Option<Sent> {
        let next = self.segments.remove(index + 1)?;
        let first = self.segments.get_mut(index)?;
        first.end = next.end;
        first.payload += next.payload;
        first.fin |= next.fin;
        first.push |= next.push;
        first.ends_buffer |= next.ends_buffer;
        if next.marks.has(Marks::EVER_RETRANSMITTED) {
            first.marks.set(Marks::EVER_RETRANSMITTED);
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::{Departure, Marks, Sent, SentQueue};
    use crate::{Instant, Seq};

    fn sent(seq: u32, payload: u32, ends_buffer: bool) -> Sent {
        Sent {
            seq: Seq(seq),
            end: Seq(seq + payload),
            payload,
            syn: false,
            fin: false,
            push: ends_buffer,
            ends_buffer,
            marks: Marks::default(),
            at: Instant::from_millis(1),
            turn: 1,
            overhead: if ends_buffer { 768 } else { 0 },
            delivered_us: None,
            first_sent_us: 0,
            delivered: 0,
            is_app_limited: false,
        }
    }

    fn lengths(queue: &SentQueue) -> Vec<u32> {
        (0..queue.len())
            .filter_map(|index| queue.get(index))
            .map(|sent| sent.payload)
            .collect()
    }

    #[test]
    fn a_buffer_is_cut_anew_and_its_neighbour_is_not() {
        let mut queue = SentQueue::default();
        for (index, ends) in [false, false, true, true].into_iter().enumerate() {
            queue.push(sent(1_000 * index as u32, 1_000, ends));
        }
        assert_eq!(queue.together(0), 3);
        assert_eq!(queue.together_before(2), 2);
        assert_eq!(queue.cut_anew(0, 3, 1_400), 3);
        assert_eq!(lengths(&queue), [1_400, 1_400, 200, 1_000]);
        assert_eq!(queue.cut_anew(0, 3, 3_000), 1);
        assert_eq!(lengths(&queue), [3_000, 1_000]);
        let whole = queue.first().unwrap();
        assert!(whole.ends_buffer && whole.push && whole.overhead == 768);
        assert_eq!((whole.seq, whole.end), (Seq(0), Seq(3_000)));
    }

    #[test]
    fn what_is_marked_otherwise_is_not_sent_together() {
        let mut queue = SentQueue::default();
        for index in 0..3 {
            queue.push(sent(1_000 * index, 1_000, index == 2));
        }
        queue.get_mut(1).unwrap().marks.set(Marks::SACKED);
        assert_eq!((queue.together(0), queue.together_before(2)), (1, 0));
        // That it was retransmitted long ago makes no difference.
        let first = &mut queue.get_mut(1).unwrap().marks;
        first.clear(Marks::SACKED);
        first.set(Marks::EVER_RETRANSMITTED);
        assert_eq!((queue.together(0), queue.together_before(2)), (3, 2));
    }

    #[test]
    fn what_one_packet_let_go_is_ordered_by_number_and_the_rest_by_turn() {
        let departure = |at_us, turn, end| Departure {
            at_us,
            turn,
            end: Seq(end),
        };
        let retransmission = departure(5, 2, 100);
        assert!(departure(5, 2, 900).is_after(retransmission));
        assert!(retransmission.is_after(departure(5, 1, 900)));
        assert!(retransmission.is_after(departure(4, 3, 900)));
        assert!(!retransmission.is_after(retransmission));
    }
}
