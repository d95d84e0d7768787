//! Whether a segment may be believed: window, time stamp (PAWS, RFC 7323), and RFC
//! 5961 against blind attacks (Linux 6.1 `tcp_validate_incoming`).

use super::{Connection, State};
use crate::state::CloseReason;
use crate::wire::{Flags, SackBlock, Segment};

/// An echo of a time stamp is worth nothing after 24 days (RFC 7323, 5.5).
const PAWS_SECONDS: u64 = 24 * 24 * 60 * 60;
/// The least time between answers to segments that are out of place, in
/// milliseconds (`tcp_invalid_ratelimit`).
const ANSWER_MS: u64 = 500;
impl Connection {
    /// Whether the window, the time stamp and the flags allow to believe a
    /// segment (Linux 6.1 `tcp_validate_incoming`); what does not is answered
    /// here.
    pub(super) fn is_acceptable(&mut self, segment: &Segment<'_>) -> bool {
        let is_reset = segment.has(Flags::RST);
        if self.is_stale(segment) && !is_reset {
            self.answer_out_of_place(segment);
            return false;
        }
        let is_in_window = !segment.end().before(self.rcv.advertised)
            && !segment.seq.after(self.rcv.next + self.window_left());
        if !is_in_window {
            if is_reset {
                if self.is_reset_of_closing(segment) {
                    self.on_reset();
                }
            } else if segment.has(Flags::SYN) {
                self.challenge();
            } else {
                self.answer_out_of_place(segment);
            }
            return false;
        }
        if is_reset {
            // RFC 5961, section 3.2: only an exact one is believed; the end of
            // the highest block acknowledged is as good.
            let highest = self
                .rcv
                .sacks
                .iter()
                .map(|block| block.end)
                .reduce(crate::Seq::latest);
            if segment.seq == self.rcv.next
                || Some(segment.seq) == highest
                || self.is_reset_of_closing(segment)
            {
                self.on_reset();
            } else {
                self.challenge();
            }
            return false;
        }
        if segment.has(Flags::SYN) {
            // RFC 5961, section 4.2; but both may have opened at once.
            let is_both = self.state == State::SynReceived
                && segment.has(Flags::ACK)
                && segment.seq + 1 == self.rcv.next
                && segment.sequence_length() == 1
                && segment.ack == self.flow.next;
            if !is_both {
                self.challenge();
            }
            return is_both;
        }
        true
    }

    fn is_reset_of_closing(&self, segment: &Segment<'_>) -> bool {
        segment.seq == self.rcv.next - 1
            && matches!(
                self.state,
                State::CloseWait | State::LastAck | State::Closing
            )
    }

    fn on_reset(&mut self) {
        let reason = match self.state {
            State::SynSent => CloseReason::Refused,
            _ => CloseReason::Reset,
        };
        self.done(reason);
    }

    /// Protection against wrapped sequence numbers (RFC 7323, section 5).
    fn is_stale(&self, segment: &Segment<'_>) -> bool {
        let Some((value, _)) = segment.options.timestamps.filter(|_| self.rcv.timestamps) else {
            return false;
        };
        let behind = self.rcv.ts_recent.wrapping_sub(value).cast_signed();
        if behind <= 1 || self.rcv.ts_recent == 0 || self.is_ts_recent_old() {
            return false;
        }
        // A pure acknowledgement that was merely overtaken is let through.
        let window = u32::from(segment.window) << self.snd.scale;
        let is_plain = segment.has(Flags::ACK)
            && segment.sequence_length() == 0
            && segment.seq == self.rcv.next
            && segment.ack == self.flow.una
            && segment.seq == self.snd.wl1
            && window <= self.snd.window;
        let rto = u64::from(behind.unsigned_abs()) <= self.timers.rto * 1_024 / self.flow.hz;
        !(is_plain && rto)
    }

    fn is_ts_recent_old(&self) -> bool {
        self.rcv
            .ts_recent_at
            .is_none_or(|at| self.flow.now.saturating_since(at).as_secs() >= PAWS_SECONDS)
    }

    /// Whether a SYN in TIME-WAIT belongs to a new connection: its time stamp or
    /// its sequence number is later than all that was seen, and the time stamp is not
    /// earlier.
    pub(crate) fn is_newer_than_seen(&self, syn: &Segment<'_>) -> bool {
        let value = syn.options.timestamps.filter(|_| self.rcv.timestamps);
        let later = value.map_or(0, |(value, _)| {
            value.wrapping_sub(self.rcv.ts_recent).cast_signed()
        });
        later > 0 || (later == 0 && syn.seq.after(self.rcv.next))
    }

    /// Linux 6.1 `tcp_replace_ts_recent` (RFC 7323, section 4.3).
    pub(super) fn update_ts_recent(&mut self, segment: &Segment<'_>) {
        let Some((value, _)) = segment.options.timestamps.filter(|_| self.rcv.timestamps) else {
            return;
        };
        let is_newer = self.rcv.ts_recent.wrapping_sub(value).cast_signed() <= 0;
        if !segment.seq.after(self.rcv.advertised)
            && (is_newer || self.rcv.ts_recent == 0 || self.is_ts_recent_old())
        {
            self.rcv.ts_recent = value;
            self.rcv.ts_recent_at = Some(self.flow.now);
        }
    }

    /// At most one answer in half a second to what is out of place.
    pub(super) fn is_answer_allowed(&mut self) -> bool {
        let limit = self.ticks.of_millis(ANSWER_MS);
        if self
            .rcv
            .last_out_of_window
            .is_some_and(|last| self.flow.ticks - last < limit)
        {
            return false;
        }
        self.rcv.last_out_of_window = Some(self.flow.ticks);
        true
    }

    /// Answers a segment outside of the window with what is expected (Linux 6.1
    /// `tcp_send_dupack`); one without data at a limited rate.
    fn answer_out_of_place(&mut self, segment: &Segment<'_>) {
        let has_data = segment.sequence_length() > 0 && !segment.has(Flags::SYN);
        if !has_data && !self.is_answer_allowed() {
            return;
        }
        if segment.sequence_length() > 0 && segment.seq.before(self.rcv.next) {
            self.enter_quick(None);
            let end = segment.end().earliest(self.rcv.next);
            self.report_duplicate(SackBlock {
                start: segment.seq,
                end,
            });
            self.counters.duplicates_received += 1;
        }
        self.send_ack();
    }

    /// A challenge acknowledgement (RFC 5961, sections 3.2, 4.2 and 5.2).
    pub(super) fn challenge(&mut self) {
        if self.is_answer_allowed() {
            self.counters.challenge_acks += 1;
            self.send_ack();
        }
    }
}
