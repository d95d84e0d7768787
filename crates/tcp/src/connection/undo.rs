//! Taking a reduction of the window back when it proves mistaken: by time stamps
//! (Eifel, RFC 3522 and 4015) or by reports of duplicates (D-SACK, RFC 3708).

use super::Connection;
use super::ack::echo_before;
use super::rack::PERSIST;
use crate::Seq;
use crate::congestion::CongestionState;
use crate::sent::Marks;
use crate::state::State;

impl Connection {
    /// Whether nothing was retransmitted, or what was acknowledged was sent
    /// before (Eifel; Linux 6.1 `tcp_packet_delayed`). What answers a SYN clears the
    /// note of its retransmission, and says nothing.
    fn is_delayed_only(&self, echo: Option<u32>) -> bool {
        match self.rec.first_retransmission_ms {
            Some(first_ms) => echo_before(echo, first_ms),
            None if self.state == State::SynSent => false,
            None => self.rcv.sack || self.flow.una.before(self.rec.high),
        }
    }

    fn may_undo(&self, echo: Option<u32>) -> bool {
        self.rec.undo_marker.is_some()
            && (self.rec.undo_retransmissions == Some(0) || self.is_delayed_only(echo))
    }

    fn undo(&mut self, unmark: bool) {
        if unmark {
            for sent in self.snd.sent.iter_mut() {
                sent.marks.clear(Marks::LOST);
            }
            self.flow.lost_out = 0;
            self.rec.hint = None;
        }
        if self.rec.prior_ssthresh > 0 {
            self.flow.cwnd = self.control.window_after_undo(&mut self.flow);
            if self.rec.prior_ssthresh > self.flow.ssthresh {
                self.flow.ssthresh = self.rec.prior_ssthresh;
                self.snd.queue_cwr = false;
            }
        }
        self.snd.cwnd_stamp = self.flow.ticks;
        self.rec.undo_marker = None;
        self.rec.rack.advanced = true;
        self.counters.undos += 1;
    }

    /// Without SACK a recovery lasts until something beyond it is acknowledged
    /// (RFC 6582, section 4).
    fn must_not_reopen(&mut self) -> bool {
        if self.flow.una == self.rec.high && !self.rcv.sack {
            if !self.has_retransmitted() {
                self.rec.first_retransmission_ms = None;
            }
            return true;
        }
        false
    }

    pub(super) fn try_undo_recovery(&mut self, echo: Option<u32>) -> bool {
        if self.may_undo(echo) {
            self.undo(false);
        } else {
            let persist = &mut self.rec.rack.persist;
            *persist = persist.saturating_sub(1);
        }
        if self.must_not_reopen() {
            return true;
        }
        self.set_state(CongestionState::Open);
        self.rec.reneging = false;
        false
    }

    /// Every retransmission was reported a duplicate.
    pub(super) fn try_undo_duplicates(&mut self) -> bool {
        if self.rec.undo_marker.is_none() || self.rec.undo_retransmissions != Some(0) {
            return false;
        }
        let persist = &mut self.rec.rack.persist;
        *persist = (*persist + 1).min(PERSIST);
        self.undo(false);
        true
    }

    pub(super) fn try_undo_partial(&mut self, prior_una: Seq, echo: Option<u32>) -> bool {
        if self.rec.undo_marker.is_none() || !self.is_delayed_only(echo) {
            return false;
        }
        self.on_reordering(prior_una);
        if self.flow.retransmitted_out > 0 {
            return true;
        }
        if !self.has_retransmitted() {
            self.rec.first_retransmission_ms = None;
        }
        self.undo(true);
        self.try_keep_open();
        false
    }

    pub(super) fn try_undo_loss(&mut self, echo: Option<u32>, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo(echo) {
            return false;
        }
        self.undo(true);
        self.timers.retransmits = 0;
        if self.must_not_reopen() {
            return true;
        }
        if by_frto || self.rcv.sack {
            self.set_state(CongestionState::Open);
            self.rec.reneging = false;
        }
        true
    }
}
