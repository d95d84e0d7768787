//! What remains of a connection that nobody reads any more: it waits for the
//! peer's FIN, or for the end of TIME-WAIT (Linux 6.1
//! `tcp_timewait_state_process`).

use std::time::Duration;

use super::{Connection, State};
use crate::Seq;
use crate::state::CloseReason;
use crate::wire::{Ecn, Flags, Segment};

/// How long TIME-WAIT lasts (Linux 6.1 `TCP_TIMEWAIT_LEN`).
const TIME_WAIT: Duration = Duration::from_mins(1);

impl Connection {
    /// Nobody reads any more, and the peer has yet to end its stream (Linux 6.1
    /// `tcp_time_wait` with `TCP_FIN_WAIT2`): no acknowledgement is owed, and unless the FIN
    /// is here ECN marks are no longer echoed.
    pub(super) fn await_fin(&mut self, is_here: bool) {
        self.rest();
        self.rcv.demand_ece &= is_here;
        self.linger(self.config.fin_timeout);
    }

    /// ECN marks are no longer echoed.
    pub(super) fn enter_time_wait(&mut self) {
        self.state = State::TimeWait;
        self.rest();
        self.rcv.demand_ece = false;
        self.linger(TIME_WAIT);
    }

    /// Timers are over, and the window stays as it is; of answers so far nothing is
    /// known.
    fn rest(&mut self) {
        self.timers.clear();
        self.feedback.clear();
        self.rcv.last_window = self.window_left();
        self.rcv.last_out_of_window = None;
    }

    /// A segment while the peer's FIN is awaited and nobody reads.
    pub(super) fn on_segment_awaiting_fin(&mut self, segment: &Segment<'_>) {
        let next = self.rcv.next;
        if self.is_before_last(segment) || !self.is_in_last_window(segment) {
            self.answer_late(segment);
        } else if segment.has(Flags::RST) {
            self.done(CloseReason::Reset);
        } else if segment.has(Flags::SYN) && !segment.seq.before(next) {
            self.refuse(segment);
        } else if !segment.has(Flags::ACK)
            || !segment.end().after(next)
            || segment.sequence_length() == 0
        {
            // Nothing new.
        } else if !segment.has(Flags::FIN) || segment.end() != next + 1 {
            self.refuse(segment);
        } else {
            self.rcv.next = segment.end();
            self.rcv.fin = true;
            self.note_last_timestamp(segment);
            self.state = State::TimeWait;
            self.linger(TIME_WAIT);
            self.send_late_ack();
        }
    }

    pub(super) fn on_segment_in_time_wait(&mut self, segment: &Segment<'_>) {
        let is_stale = self.is_before_last(segment);
        let is_reset = segment.has(Flags::RST);
        let is_bare = segment.seq == self.rcv.next && segment.sequence_length() == 0;
        if !is_stale && segment.seq == self.rcv.next && is_reset {
            self.done(CloseReason::Finished);
        } else if !is_stale && is_bare {
            self.linger(TIME_WAIT);
            self.note_last_timestamp(segment);
        } else if !is_reset {
            if is_stale || segment.has(Flags::ACK) {
                self.linger(TIME_WAIT);
            }
            self.answer_late(segment);
        }
    }

    /// Linux 6.1 `tcp_paws_reject`.
    fn is_before_last(&self, segment: &Segment<'_>) -> bool {
        segment.options.timestamps.is_some_and(|(value, _)| {
            self.rcv.timestamps && Seq(value).before(Seq(self.rcv.ts_recent))
        })
    }

    /// Linux 6.1 `tcp_in_window`.
    fn is_in_last_window(&self, segment: &Segment<'_>) -> bool {
        let (begin, end) = (self.rcv.next, self.rcv.next + self.rcv.last_window);
        segment.seq == begin
            || (segment.end().after(begin) && segment.seq.before(end))
            || (segment.seq == end && segment.sequence_length() == 0)
    }

    fn note_last_timestamp(&mut self, segment: &Segment<'_>) {
        if let Some((value, _)) = segment.options.timestamps.filter(|_| self.rcv.timestamps) {
            self.rcv.ts_recent = value;
            self.rcv.ts_recent_at = Some(self.flow.now);
        }
    }

    fn refuse(&mut self, segment: &Segment<'_>) {
        self.send_reset_for(segment);
        self.done(CloseReason::Aborted);
    }

    /// States what is expected; where no data came at a limited rate.
    fn answer_late(&mut self, segment: &Segment<'_>) {
        let has_data = segment.sequence_length() > 0 && !segment.has(Flags::SYN);
        if has_data || self.is_answer_allowed() {
            self.send_late_ack();
        }
    }

    /// An acknowledgement as what remains of a connection sends it: without SACK
    /// blocks and with its last window, of which 16 bits are advertised even where it is wider
    /// (Linux 6.1 `tcp_v4_timewait_ack`).
    fn send_late_ack(&mut self) {
        let mut options = self.options();
        options.sack = crate::wire::SackBlocks::default();
        let window = (self.rcv.last_window >> self.rcv.scale) as u16;
        self.emit(
            self.flow.next,
            Flags::ACK,
            window,
            options,
            0,
            Ecn::NotCapable,
        );
    }
}
