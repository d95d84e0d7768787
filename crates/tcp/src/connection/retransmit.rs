//! Sending again: one segment, or what is thought lost as far as the window
//! allows (Linux 6.1 `__tcp_retransmit_skb`, `tcp_xmit_retransmit_queue`).

use super::Connection;
use super::timers::Waiting;
use crate::sent::Marks;

/// Where a segment stands that is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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

    /// Cuts a segment in two and keeps the counts right.
    pub(super) fn split_sent(&mut self, index: usize, payload: u32) {
        let Some(marks) = self.snd.sent.get(index).map(|sent| sent.marks) else {
            return;
        };
        if self.snd.sent.split(index, payload) {
            self.count_packet(marks, true);
        }
    }

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
    }

    /// Sends a segment again without counting it as a retransmission in flight;
    /// false when the peer's window does not allow it.
    pub(super) fn send_again(&mut self, index: usize, place: Place) -> bool {
        self.mtu.abandon_probe();
        self.trim_acknowledged(index);
        let mss = self.current_mss();
        let Some(sent) = self.snd.sent.get(index) else {
            return false;
        };
        let room = self.window_end().distance(sent.seq);
        let mut most = mss;
        if !sent.syn {
            if room <= 0 {
                if sent.seq != self.flow.una {
                    return false;
                }
            } else {
                most = mss.min(room.cast_unsigned());
            }
        }
        let (payload, syn) = (sent.payload, sent.syn);
        if payload > most {
            self.split_sent(index, most);
        } else if !syn && payload < most {
            self.join_following(index, most);
        }
        let Some(mut sent) = self.snd.sent.get(index).copied() else {
            return false;
        };
        let push = sent.push;
        sent.push |= place == Place::Last;
        self.send_segment(&mut sent, false, place == Place::Within);
        sent.push = push;
        if place != Place::Within && !sent.ends_buffer {
            // The rest of its buffer gets one of its own.
            sent.ends_buffer = true;
            sent.overhead += self.piece_cost();
            self.charge_piece();
        }
        sent.marks.set(Marks::EVER_RETRANSMITTED);
        if let Some(kept) = self.snd.sent.get_mut(index) {
            *kept = sent;
        }
        self.snd.sent.stamped(index);
        self.snd.retransmissions += 1;
        self.counters.retransmissions += 1;
        true
    }

    /// Takes from a segment what of it was acknowledged meanwhile: small ones that
    /// were joined to it may have been (Linux 6.1 `tcp_trim_head`).
    fn trim_acknowledged(&mut self, index: usize) {
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

    /// Retransmits a segment (Linux 6.1 `tcp_retransmit_skb`).
    pub(super) fn retransmit(&mut self, index: usize) -> bool {
        self.retransmit_at(index, Place::Alone)
    }

    fn retransmit_at(&mut self, index: usize, place: Place) -> bool {
        let is_sent = self.send_again(index, place);
        if is_sent && let Some(sent) = self.snd.sent.get_mut(index) {
            if !sent.marks.has(Marks::RETRANSMITTED) {
                sent.marks.set(Marks::RETRANSMITTED);
                self.flow.retransmitted_out += 1;
            }
            let at_ms = sent.at.as_nanos() / 1_000_000;
            self.rec.first_retransmission_ms.get_or_insert(at_ms);
        }
        let count = self.rec.undo_retransmissions.unwrap_or(0);
        self.rec.undo_retransmissions = Some(count + 1);
        is_sent
    }

    /// How many segments from `index` on leave in one burst: those of one buffer
    /// that are lost, as far as the window and the pacing rate allow.
    fn lost_together(&self, index: usize) -> u32 {
        let room = self.flow.cwnd.saturating_sub(self.flow.in_flight());
        let most = room.min(self.burst_segments(self.current_mss())).max(1);
        let mut count = 1;
        let mut at = index;
        while count < most
            && self.snd.sent.get(at).is_some_and(|sent| !sent.ends_buffer)
            && let Some(next) = self.snd.sent.get(at + 1)
            && next.marks.has(Marks::LOST)
            && !next.marks.has(Marks::SACKED | Marks::RETRANSMITTED)
        {
            count += 1;
            at += 1;
        }
        count
    }

    /// Retransmits what is marked lost, in order, as far as the congestion
    /// window allows.
    pub(super) fn retransmit_lost(&mut self) {
        if self.flow.packets_out == 0 {
            return;
        }
        let mut index = self.rec.hint.map_or(0, |hint| self.snd.sent.find(hint));
        let mut has_hole = false;
        let mut rearm = false;
        let (mut together, mut left) = (0, 0);
        while let Some(sent) = self.snd.sent.get(index) {
            if !has_hole {
                self.rec.hint = Some(sent.seq);
            }
            let marks = sent.marks;
            if left == 0
                && (self.is_paced()
                    || self.flow.cwnd <= self.flow.in_flight()
                    || self.flow.retransmitted_out >= self.flow.lost_out)
            {
                break;
            }
            if !marks.has(Marks::LOST) {
                has_hole |= !marks.has(Marks::SACKED | Marks::RETRANSMITTED);
            } else if !marks.has(Marks::SACKED | Marks::RETRANSMITTED) {
                if left == 0 {
                    together = self.lost_together(index);
                    left = together;
                }
                left -= 1;
                let place = match (together, left) {
                    (1, _) => Place::Alone,
                    (_, 0) => Place::Last,
                    _ => Place::Within,
                };
                if !self.retransmit_at(index, place) {
                    return;
                }
                if self.flow.in_reduction() {
                    self.rec.prr_out += 1;
                }
                rearm |= index == 0 && !self.is_waiting(Waiting::Reordering);
            }
            index += 1;
        }
        if rearm {
            let rto = self.timers.rto;
            self.arm(Waiting::Retransmission, rto);
        }
    }
}
