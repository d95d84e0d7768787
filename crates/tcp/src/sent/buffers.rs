//! Segments that lie in one buffer of the kernel's (`sk_buff`): they are marked, sent
//! again and charged together.

use super::{Departure, Marks, Sent, SentQueue};
use crate::Seq;

impl SentQueue {
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

    /// Cuts the first `payload` bytes off a segment, into one of their own in the same
    /// buffer. Returns false when there is nothing to cut.
    pub(crate) fn cut_off(&mut self, index: usize, payload: u32) -> bool {
        let Some(first) = self.segments.get(index).copied() else {
            return false;
        };
        if !self.split(index, payload) {
            return false;
        }
        if let Some(cut) = self.segments.get_mut(index) {
            cut.ends_buffer = false;
            cut.overhead = 0;
        }
        if let Some(rest) = self.segments.get_mut(index + 1) {
            rest.overhead = first.overhead;
        }
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
                    unit: mss,
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

    /// Where the buffer of a segment begins.
    pub(crate) fn buffer_begin(&self, index: usize) -> usize {
        let mut begin = index;
        while let Some(before) = begin.checked_sub(1)
            && self.segments.get(before).is_some_and(|it| !it.ends_buffer)
        {
            begin = before;
        }
        begin
    }

    /// How many segments of its buffer there are from `index` on; 0 if there is no such
    /// segment.
    pub(crate) fn buffer_rest(&self, index: usize) -> usize {
        let rest = self.segments.iter().skip(index);
        let count = rest.take_while(|sent| !sent.ends_buffer).count();
        (count + 1).min(self.segments.len().saturating_sub(index))
    }

    /// The sequence number after the buffer of a segment.
    pub(crate) fn buffer_end(&self, index: usize) -> Option<Seq> {
        let last = (index + self.buffer_rest(index)).checked_sub(1)?;
        self.segments.get(last).map(|sent| sent.end)
    }

    /// When a segment was sent, and as part of which buffer.
    pub(crate) fn departure(&self, index: usize) -> Option<Departure> {
        let sent = self.segments.get(index)?;
        let end = self.buffer_end(index)?;
        Some(Departure {
            end,
            ..sent.departure()
        })
    }

    /// How long the segments of the buffer that begins at `index` are (Linux 6.1
    /// `tcp_skb_seglen`).
    pub(crate) fn segment_length(&self, index: usize) -> Option<u32> {
        let first = self.segments.get(index)?;
        Some(if first.ends_buffer {
            first.payload
        } else {
            first.unit
        })
    }

    /// The same of the buffer that ends before `index`.
    fn segment_length_before(&self, index: usize) -> Option<u32> {
        let last = self.segments.get(index.checked_sub(1)?)?;
        let is_alone = index
            .checked_sub(2)
            .and_then(|before| self.segments.get(before))
            .is_none_or(|before| before.ends_buffer);
        Some(if is_alone { last.payload } else { last.unit })
    }

    /// Whether the buffer that ends before `index` is selectively acknowledged, and
    /// nothing else, and its segments are as long as those of the one that begins there.
    fn may_move_back(&self, index: usize) -> bool {
        self.has_sacked_before(index)
            && self.segment_length(index) == self.segment_length_before(index)
    }

    /// What becomes of the buffer that begins at `index` when bytes from `start` to
    /// `end` arrived (Linux 6.1 `tcp_shift_skb_data`).
    pub(crate) fn shift(&self, index: usize, (start, end): (Seq, Seq), una: Seq) -> Shift {
        let (Some(first), Some(last)) = (self.segments.get(index), self.buffer_end(index)) else {
            return Shift::Cut;
        };
        let count = self.buffer_rest(index);
        let is_within = !start.after(first.seq) && !end.before(last);
        if !last.after(una) || !self.has_sacked_before(index) {
            return Shift::Cut;
        }
        if is_within {
            return if self.may_move_back(index) {
                Shift::Move(count)
            } else {
                Shift::Cut
            };
        }
        if !last.after(start) || count <= 1 {
            return Shift::Leave;
        }
        if start.after(first.seq) || !self.may_move_back(index) {
            return Shift::Cut;
        }
        let whole = (end - first.seq) / first.unit.max(1);
        if whole == 0 {
            return Shift::Leave;
        }
        if !(first.seq + whole * first.unit).after(una) {
            return Shift::Cut;
        }
        Shift::Move((whole as usize).min(count - 1))
    }

    /// Whether the buffer before the one that begins at `index` is selectively
    /// acknowledged, and this one holds bytes that can be moved.
    fn has_sacked_before(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|it| self.segments.get(it));
        let first = self.segments.get(index);
        first.is_some_and(|first| first.payload > 0 && !first.is_linear)
            && before.is_some_and(|before| before.marks.is_only_sacked())
    }

    /// Moves `count` segments from `index` on, which begin a buffer, into the buffer
    /// before; returns the memory that becomes free with theirs, if they were all.
    pub(crate) fn move_back(&mut self, index: usize, count: usize) -> u32 {
        let is_all = count == self.buffer_rest(index);
        let unit = self.segment_length_before(index).unwrap_or_default();
        let Some(before) = index
            .checked_sub(1)
            .and_then(|it| self.segments.get_mut(it))
        else {
            return 0;
        };
        before.ends_buffer = false;
        before.unit = unit;
        let freed = std::mem::take(&mut before.overhead);
        let last = (index + count).saturating_sub(1);
        for sent in self.segments.range_mut(index..=last) {
            sent.unit = unit;
        }
        let begin = self.buffer_begin(index);
        let mut all = self.segments.range(begin..=last);
        if all.any(|sent| sent.marks.has(Marks::EVER_RETRANSMITTED)) {
            for sent in self.segments.range_mut(begin..=last) {
                sent.marks.set(Marks::EVER_RETRANSMITTED);
            }
        }
        if is_all {
            return freed;
        }
        if let Some(last) = self.segments.get_mut(last) {
            last.ends_buffer = true;
            last.overhead = freed;
        }
        0
    }

    /// Whether the buffer that begins at `index` may be moved into the one before, as
    /// both are selectively acknowledged.
    pub(crate) fn closes_a_hole(&self, index: usize) -> bool {
        let first = self.segments.get(index);
        self.may_move_back(index) && first.is_some_and(|first| first.marks.is_only_sacked())
    }

    /// After how many segments the buffer that begins at `index` is to be cut, and
    /// whether its beginning arrived, when bytes from `start` to `end` did (Linux 6.1
    /// `tcp_match_skb_to_sack`). Nothing when they are less than a segment of it.
    pub(crate) fn covered(&self, index: usize, (start, end): (Seq, Seq)) -> Option<(usize, bool)> {
        let first = self.segments.get(index)?;
        let last = self.buffer_end(index)?;
        let count = self.buffer_rest(index);
        if !start.after(first.seq) && !end.before(last) {
            return Some((count, true));
        }
        if count <= 1 || !last.after(start) {
            return Some((count, false));
        }
        let unit = first.unit.max(1);
        if start.after(first.seq) {
            let before = (start - first.seq).div_ceil(unit);
            return Some(((before as usize).min(count), false));
        }
        let whole = (end - first.seq) / unit;
        (whole > 0).then_some(((whole as usize).min(count), true))
    }
}

/// What becomes of a buffer beside one that is selectively acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    /// So many segments of it move into the buffer before.
    Move(usize),
    /// It stays as it is, and is not marked.
    Leave,
    /// It stays where it is, and is cut where it has to be.
    Cut,
}
