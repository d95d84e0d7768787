//! What an acknowledgement takes off the retransmission queue, and the round trips it
//! measures (Linux 6.1 `tcp_clean_rtx_queue`).

use super::Connection;
use super::ack::{AckContext, echo_before};
use crate::Seq;
use crate::congestion::AckSample;
use crate::sent::{Departure, Marks, Sent};

/// Times gathered from the segments an acknowledgement removed.
#[derive(Default)]
struct Removed {
    packets: u32,
    first_us: Option<u64>,
    last_us: u64,
    /// The lowest never retransmitted and not sacked before.
    lowest: Option<Seq>,
    /// Where the buffer of the last one began.
    buffer_begin: Option<Seq>,
    /// The end of that buffer.
    buffer_end: Option<Seq>,
    /// Whether that buffer was acknowledged to its end.
    is_whole: bool,
}

impl Connection {
    /// Removes what was acknowledged and takes the round-trip time from it.
    pub(super) fn remove_acked(
        &mut self,
        prior_una: Seq,
        prior_fack: Seq,
        echo: Option<u32>,
        context: &mut AckContext,
    ) {
        let prior_sacked = self.flow.sacked_out;
        let mut removed = Removed::default();
        while let Some(sent) = self.snd.sent.first().copied() {
            if sent.end.after(self.flow.una) {
                break;
            }
            // What remains of a buffer still ends where it did.
            let known = removed.buffer_end.filter(|end| !sent.end.after(*end));
            let end = known.or_else(|| self.snd.sent.buffer_end(0));
            if known.is_none() {
                removed.buffer_begin = Some(sent.seq);
            }
            removed.buffer_end = end;
            let end = end.unwrap_or(sent.end);
            removed.is_whole = sent.end == end;
            self.remove_one(&sent, end, echo, context, &mut removed);
            self.snd.sent.pop_first();
            self.release_sent(sent.payload + sent.overhead);
        }
        self.trim_first_buffer(echo, context, &mut removed);
        self.move_hint(&removed);
        let first = self.snd.sent.first();
        if first.is_some_and(|sent| sent.marks.has(Marks::SACKED)) {
            context.found.reneging = true;
        }
        let now_us = self.flow.now_us();
        let mut rtt_us = None;
        let mut control_rtt_us = None;
        if let Some(first_us) = removed.first_us
            && !context.found.retransmitted_acked
        {
            rtt_us = Some(now_us.saturating_sub(first_us));
            control_rtt_us = Some(now_us.saturating_sub(removed.last_us));
            // Nothing else arrived since it was sent: a lone packet, whose answer may wait.
            context.found.maybe_delayed = removed.packets == 1
                && removed.is_whole
                && prior_sacked == 0
                && self.flow.una - prior_una < self.flow.mss
                && context.sample.prior_delivered + 1 == self.flow.delivered
                && !context.found.syn_acked;
        }
        let sacked_us = context.first_sacked_us.map(|us| now_us.saturating_sub(us));
        if let Some(last_us) = context.last_sacked_us {
            control_rtt_us = Some(now_us.saturating_sub(last_us));
        }
        let has_sample = self.take_rtt(rtt_us.or(sacked_us), control_rtt_us, echo, context);
        if context.found.acked() {
            self.after_acked(prior_fack, &removed, context);
        } else if has_sample
            && let (Some(sacked_us), Some(first)) = (sacked_us, self.snd.sent.first())
            && sacked_us > now_us.saturating_sub(first.at_us())
        {
            context.found.set_timer = true;
        }
        self.forget_leaks();
        let sample = AckSample {
            packets: removed.packets,
            rtt_us: context.sample.rtt_us,
        };
        self.control.on_packets_acked(&mut self.flow, &sample);
    }

    /// Where the search for lost packets goes on: in what remains of the buffer it was in,
    /// otherwise from the front.
    fn move_hint(&mut self, removed: &Removed) {
        if let Some(first) = self.snd.sent.first()
            && self.rec.hint.is_some_and(|hint| hint.before(first.seq))
        {
            let is_rest = removed.buffer_end.is_some_and(|end| !first.end.after(end));
            let begins = removed.buffer_begin.filter(|_| is_rest);
            self.rec.hint = self
                .rec
                .hint
                .zip(begins)
                .and_then(|(hint, begins)| (!hint.before(begins)).then_some(first.seq));
        } else if self.snd.sent.is_empty() {
            self.rec.hint = None;
        }
    }

    /// Packets have been acknowledged: what that says of probes, reordering and, without
    /// selective acknowledgements, of those counted as such.
    fn after_acked(&mut self, prior_fack: Seq, removed: &Removed, context: &mut AckContext) {
        context.found.set_timer = true;
        self.check_mtu_probe();
        if self.rcv.sack {
            if let Some(lowest) = removed.lowest.filter(|lowest| lowest.before(prior_fack)) {
                self.on_reordering(lowest);
            }
        } else {
            self.remove_reno_sacks(removed.packets);
            if context.found.retransmitted_acked {
                context.found.original_acked = false;
            }
        }
    }

    /// With nothing out nothing can be lost, arrived or sent again: what was counted
    /// twice is forgotten (Linux 6.1 `tcp_clean_rtx_queue`, `FASTRETRANS_DEBUG`).
    const fn forget_leaks(&mut self) {
        if self.flow.packets_out == 0 && self.rcv.sack {
            self.flow.lost_out = 0;
            self.flow.sacked_out = 0;
            self.flow.retransmitted_out = 0;
        }
    }

    /// What remains of a buffer that was acknowledged in part begins where that part ends,
    /// and is cut into segments anew: one more may count as acknowledged (Linux 6.1
    /// `tcp_tso_acked`). A buffer of one segment stays as it is.
    fn trim_first_buffer(
        &mut self,
        echo: Option<u32>,
        context: &mut AckContext,
        removed: &mut Removed,
    ) {
        let Some(first) = self.snd.sent.first().copied() else {
            return;
        };
        let is_rest = removed.buffer_end.is_some_and(|end| !first.end.after(end));
        let count = self.snd.sent.together(0);
        let is_partly = first.seq.before(self.flow.una) && count > 1;
        if !(is_rest || is_partly) || first.unit == 0 {
            return;
        }
        let end = self.snd.sent.buffer_end(0).unwrap_or(first.end);
        self.trim_acknowledged(0);
        let now = self.snd.sent.cut_anew(0, count, first.unit);
        for _ in now..count {
            removed.is_whole = false;
            self.remove_one(&first, end, echo, context, removed);
        }
        removed.buffer_begin.get_or_insert(first.seq);
        removed.buffer_end = Some(end);
    }

    fn remove_one(
        &mut self,
        sent: &Sent,
        end: Seq,
        echo: Option<u32>,
        context: &mut AckContext,
        removed: &mut Removed,
    ) {
        let marks = sent.marks;
        let departure = Departure {
            end,
            ..sent.departure()
        };
        let found = &mut context.found;
        if marks.was_retransmitted() {
            if marks.has(Marks::RETRANSMITTED) {
                self.flow.retransmitted_out -= 1;
            }
            found.retransmitted_acked = true;
        } else if !marks.has(Marks::SACKED) {
            removed.last_us = sent.at_us();
            removed.first_us.get_or_insert(sent.at_us());
            removed.lowest.get_or_insert(sent.seq);
            if !end.after(self.rec.high) {
                found.original_acked = true;
            }
        }
        if marks.has(Marks::SACKED) {
            self.flow.sacked_out -= 1;
        } else if self.rcv.sack {
            self.flow.delivered += 1;
            if !is_echo_before(echo, sent) {
                self.rack_advance(marks, departure);
            }
        }
        if marks.has(Marks::LOST) {
            self.flow.lost_out -= 1;
        }
        self.flow.packets_out -= 1;
        removed.packets += 1;
        self.count_delivered(sent, departure, &mut context.sample);
        if sent.syn {
            found.syn_acked = true;
            self.rec.first_retransmission_ms = None;
        } else {
            found.data_acked = true;
        }
    }
}

/// Whether the echoed time stamp is older than a retransmission: it answers the
/// original (Eifel detection, RFC 3522).
fn is_echo_before(echo: Option<u32>, sent: &Sent) -> bool {
    sent.marks.was_retransmitted() && echo_before(echo, sent.at.as_nanos() / 1_000_000)
}
