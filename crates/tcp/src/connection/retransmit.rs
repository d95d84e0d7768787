//! Sending again: one segment, or what is thought lost as far as the window
//! allows (Linux 6.1 `__tcp_retransmit_skb`, `tcp_xmit_retransmit_queue`).

use super::Connection;
use super::timers::Waiting;
use crate::sent::Marks;

/// Where a segment stands that is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BurstPosition {
    /// By itself.
    Alone,
    /// In a burst, with more to follow.
    Within,
    /// At the end of a burst, which hurries.
    Last,
}

impl Connection {
    /// Marks a segment lost, unless it was acknowledged (Linux 6.1
    /// `tcp_mark_skb_lost`).
    pub(super) fn mark_lost(&mut self, index: usize) {
        let Some(sent) = self.snd.sent.get_mut(index) else {
            return;
        };
        if sent.marks.has(Marks::SACKED) {
            return;
        }
        let seq = sent.seq;
        let all_again = self.flow.retransmitted_out >= self.flow.lost_out;
        match self.rec.hint {
            None if all_again => self.rec.hint = Some(seq),
            Some(hint) if seq.before(hint) => self.rec.hint = Some(seq),
            _ => {}
        }
        if sent.marks.has(Marks::LOST) {
            if sent.marks.has(Marks::RETRANSMITTED) {
                // The retransmission was lost too.
                sent.marks.clear(Marks::RETRANSMITTED);
                self.flow.retransmitted_out -= 1;
                self.flow.lost += 1;
            }
        } else {
            sent.marks.set(Marks::LOST);
            self.flow.lost_out += 1;
            self.flow.lost += 1;
        }
    }

    /// A segment more or less (Linux 6.1 `tcp_adjust_pcount`).
    fn count_packet(&mut self, marks: Marks, more: bool) {
        let adjust = |count: &mut u32| {
            *count = if more {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        };
        adjust(&mut self.flow.packets_out);
        if marks.has(Marks::SACKED) {
            adjust(&mut self.flow.sacked_out);
        }
        if marks.has(Marks::RETRANSMITTED) {
            adjust(&mut self.flow.retransmitted_out);
        }
        if marks.has(Marks::LOST) {
            adjust(&mut self.flow.lost_out);
        }
        if !more && !self.rcv.sack {
            // Duplicates are counted as packets that arrived, whichever they were.
            adjust(&mut self.flow.sacked_out);
        }
    }

    /// Cuts what lies in one buffer with `index` and after it into segments as
    /// long as they may be now, and keeps the counts right; returns how many they
    /// are.
    pub(super) fn cut_anew(&mut self, index: usize, mss: u32) -> usize {
        let Some(marks) = self.snd.sent.get(index).map(|sent| sent.marks) else {
            return 0;
        };
        let count = self.snd.sent.together(index);
        let now = self.snd.sent.cut_anew(index, count, mss);
        for _ in count..now {
            self.count_packet(marks, true);
        }
        for _ in now..count {
            self.count_packet(marks, false);
        }
        now
    }

    /// Cuts what the window takes off a buffer: one piece, shorter than a segment. The
    /// rest stays in segments as long as they may be now, for a peer that opens its
    /// window by bytes must not make a segment of each (Linux 6.1 `tcp_fragment`).
    fn cut_off(&mut self, index: usize, room: u32, mss: u32) {
        self.cut_anew(index, mss);
        let Some(marks) = self.snd.sent.get(index).map(|sent| sent.marks) else {
            return;
        };
        if self.snd.sent.cut_off(index, room) {
            self.count_packet(marks, true);
            self.end_buffer(index);
            self.cut_anew(index + 1, mss);
        }
    }

    /// Sends what lies in one buffer from `index` on again, at most so many
    /// segments in one burst, without counting them as retransmissions in flight;
    /// returns how many left, none when the peer's window does not allow it (Linux
    /// 6.1 `__tcp_retransmit_skb`).
    pub(super) fn send_again(&mut self, index: usize, segments: u32) -> usize {
        self.mtu.abandon_probe();
        self.trim_acknowledged(index);
        let mss = self.current_mss();
        let Some(sent) = self.snd.sent.get(index) else {
            return 0;
        };
        let mut room = self.window_end().distance(sent.seq).max(0).cast_unsigned();
        if sent.syn {
            return usize::from(self.send_one_again(index, BurstPosition::Alone));
        }
        if room == 0 {
            if sent.seq != self.flow.una {
                return 0;
            }
            room = mss;
        }
        let count = self.fit_again(index, segments, room, mss);
        for at in 0..count {
            let position = match (count, count - at) {
                (1, _) => BurstPosition::Alone,
                (_, 1) => BurstPosition::Last,
                _ => BurstPosition::Within,
            };
            if !self.send_one_again(index + at, position) {
                return at;
            }
        }
        count
    }

    /// Cuts or joins what is sent again from `index` on, so that it fits; returns
    /// how many segments that is.
    fn fit_again(&mut self, index: usize, segments: u32, room: u32, mss: u32) -> usize {
        if room < mss {
            let count = self.snd.sent.together(index);
            let is_more = count > 1
                || self
                    .snd
                    .sent
                    .get(index)
                    .is_some_and(|sent| sent.payload > room);
            if is_more {
                self.cut_off(index, room, mss);
            } else {
                self.join_following(index, room);
            }
            return 1;
        }
        let now = self.cut_anew(index, mss);
        let most = segments.min(room / mss).max(1) as usize;
        if now == 1 {
            self.join_following(index, mss);
        }
        now.min(most)
    }

    /// Sends one segment again.
    fn send_one_again(&mut self, index: usize, position: BurstPosition) -> bool {
        let Some(mut sent) = self.snd.sent.get(index).copied() else {
            return false;
        };
        let push = sent.push;
        sent.push |= position == BurstPosition::Last;
        self.send_segment(&mut sent, false, position == BurstPosition::Within);
        sent.push = push;
        sent.marks.set(Marks::EVER_RETRANSMITTED);
        if let Some(kept) = self.snd.sent.get_mut(index) {
            *kept = sent;
        }
        if position != BurstPosition::Within {
            self.end_buffer(index);
        }
        self.snd.sent.stamped(index);
        self.snd.retransmissions += 1;
        self.counters.retransmissions += 1;
        true
    }

    /// A buffer ends with this segment: what follows of it gets one of its own
    /// (Linux 6.1 `tcp_fragment`).
    pub(super) fn end_buffer(&mut self, index: usize) {
        let cost = self.piece_cost();
        if let Some(sent) = self.snd.sent.get_mut(index)
            && !sent.ends_buffer
        {
            sent.ends_buffer = true;
            sent.overhead += cost;
            self.charge_piece();
        }
    }

    /// Takes from a segment what of it was acknowledged meanwhile: small ones that
    /// were joined to it may have been (Linux 6.1 `tcp_trim_head`).
    pub(super) fn trim_acknowledged(&mut self, index: usize) {
        let una = self.flow.una;
        if let Some(sent) = self.snd.sent.get_mut(index)
            && sent.seq.before(una)
            && !sent.syn
        {
            let known = sent.payload.min(una - sent.seq);
            sent.payload -= known;
            sent.seq = una;
            self.release_sent(known);
        }
    }

    /// Joins the small segments that follow to one, as far as they fit (Linux
    /// 6.1 `tcp_retrans_try_collapse`).
    fn join_following(&mut self, index: usize, most: u32) {
        let can_join = |sent: &crate::sent::Sent| !sent.marks.has(Marks::SACKED) && !sent.syn;
        while let (Some(first), Some(next)) =
            (self.snd.sent.get(index), self.snd.sent.get(index + 1))
        {
            if !can_join(first)
                || !can_join(next)
                || first.fin
                || next.is_linear
                || !next.ends_buffer
                || first.payload + next.payload > most
                || next.end.after(self.window_end())
            {
                break;
            }
            let (hint, next_seq, first_seq) = (self.rec.hint, next.seq, first.seq);
            let Some(joined) = self.snd.sent.join(index) else {
                break;
            };
            if hint == Some(next_seq) {
                self.rec.hint = Some(first_seq);
            }
            self.release_sent(joined.overhead);
            self.count_packet(joined.marks, false);
        }
    }

    /// Retransmits what lies in one buffer from `index` on, at most so many
    /// segments; returns how many left (Linux 6.1 `tcp_retransmit_skb`).
    pub(super) fn retransmit(&mut self, index: usize, segments: u32) -> usize {
        let count = self.send_again(index, segments);
        for at in index..index + count {
            if let Some(sent) = self.snd.sent.get_mut(at) {
                // Also one whose retransmission counts already: it was thought found,
                // by F-RTO, and timed out again.
                sent.marks.set(Marks::RETRANSMITTED);
                self.flow.retransmitted_out += 1;
                let at_ms = sent.at.as_nanos() / 1_000_000;
                self.rec.first_retransmission_ms.get_or_insert(at_ms);
            }
        }
        let before = self.rec.undo_retransmissions.unwrap_or(0);
        self.rec.undo_retransmissions = Some(before + count.max(1) as u32);
        count
    }

    /// Retransmits what is marked lost, in order, as far as the congestion
    /// window allows.
    pub(super) fn retransmit_lost(&mut self) {
        if self.flow.packets_out == 0 {
            return;
        }
        let mut index = self.rec.hint.map_or(0, |hint| self.snd.sent.find(hint));
        let most = self.burst_segments(self.current_mss());
        let mut has_hole = false;
        let mut rearm = false;
        while let Some(sent) = self.snd.sent.get(index) {
            let (seq, marks) = (sent.seq, sent.marks);
            if self.is_paced() {
                break;
            }
            if !has_hole {
                self.rec.hint = Some(seq);
            }
            if self.flow.cwnd <= self.flow.in_flight()
                || self.flow.retransmitted_out >= self.flow.lost_out
            {
                break;
            }
            if !marks.has(Marks::LOST) || marks.has(Marks::SACKED | Marks::RETRANSMITTED) {
                has_hole |= !marks.has(Marks::LOST | Marks::SACKED | Marks::RETRANSMITTED);
                index += 1;
                continue;
            }
            let room = self.flow.cwnd - self.flow.in_flight();
            let count = self.retransmit(index, room.min(most));
            if count == 0 {
                return;
            }
            if self.flow.in_reduction() {
                self.rec.prr_out += count as u32;
            }
            rearm |= index == 0 && !self.is_waiting(Waiting::Reordering);
            index += count;
        }
        if rearm {
            let rto = self.timers.rto;
            self.arm(Waiting::Retransmission, rto);
        }
    }
}
