//! The state of loss recovery: when it begins and ends, how the window is
//! reduced meanwhile (proportional rate reduction, RFC 6937bis), and F-RTO (RFC
//! 5682). Linux 6.1 `tcp_fastretrans_alert` and what it calls.

use super::Connection;
use super::ack::{Findings, Resend};
use super::timers::Waiting;
use super::transmit::Push;
use crate::Seq;
use crate::congestion::{CongestionEvent, CongestionState, INFINITE_SSTHRESH};
use crate::sent::Marks;

impl Connection {
    pub(super) fn set_state(&mut self, state: CongestionState) {
        self.control.on_state(&mut self.flow, state);
        self.flow.state = state;
    }

    /// Linux 6.1 `tcp_fastretrans_alert`.
    pub(super) fn judge(
        &mut self,
        prior_una: Seq,
        duplicates: u32,
        echo: Option<u32>,
        found: &mut Findings,
        resend: &mut Resend,
    ) {
        if found.ece {
            self.rec.prior_ssthresh = 0;
        }
        if found.reneging && found.una_advanced {
            self.wait_for_reneging(found);
            return;
        }
        if self.flow.state == CongestionState::Open {
            self.rec.first_retransmission_ms = None;
        } else if !self.flow.una.before(self.rec.high) && self.leave(echo) {
            return;
        }
        match self.flow.state {
            CongestionState::Recovery => {
                if !self.judge_recovery(prior_una, duplicates, echo, found) {
                    return;
                }
            }
            CongestionState::Loss => {
                self.judge_loss(found, duplicates, echo, resend);
                self.find_losses(found);
                if self.flow.state != CongestionState::Open && !found.lost_retransmission {
                    return;
                }
                if !self.judge_calm(duplicates, found) {
                    return;
                }
            }
            _ => {
                if !self.judge_calm(duplicates, found) {
                    return;
                }
            }
        }
        *resend = Resend::Lost;
    }

    /// The peer may have thrown away what it had acknowledged: it gets half a
    /// round trip to correct itself.
    fn wait_for_reneging(&mut self, found: &mut Findings) {
        let half = self.ticks.of_micros(u64::from(self.flow.srtt_us_x8 >> 4));
        let ticks = half.max(self.ticks.of_millis(10));
        self.arm_unpaced(Waiting::Retransmission, ticks);
        found.set_timer = false;
    }

    /// The end of a reduction or recovery; true when nothing more is to be done.
    fn leave(&mut self, echo: Option<u32>) -> bool {
        match self.flow.state {
            CongestionState::WindowReduced if self.flow.una != self.rec.high => {
                self.end_reduction();
                self.set_state(CongestionState::Open);
            }
            CongestionState::Recovery => {
                if !self.rcv.sack {
                    self.flow.sacked_out = 0;
                }
                if self.try_undo_recovery(echo) {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    fn judge_recovery(
        &mut self,
        prior_una: Seq,
        duplicates: u32,
        echo: Option<u32>,
        found: &mut Findings,
    ) -> bool {
        if !found.una_advanced {
            if !self.rcv.sack {
                self.add_reno_sack(duplicates);
            }
        } else if self.try_undo_partial(prior_una, echo) {
            return false;
        }
        if self.try_undo_duplicates() {
            self.try_to_open(found.ece);
        }
        self.find_losses(found);
        if self.flow.state != CongestionState::Recovery {
            if self.flow.lost_out == 0 {
                return false;
            }
            self.enter_recovery(found.ece);
        }
        true
    }

    fn judge_calm(&mut self, duplicates: u32, found: &mut Findings) -> bool {
        if !self.rcv.sack {
            if found.una_advanced {
                self.flow.sacked_out = 0;
            }
            self.add_reno_sack(duplicates);
        }
        if self.flow.state <= CongestionState::Disorder {
            self.try_undo_duplicates();
        }
        self.find_losses(found);
        if self.flow.lost_out == 0 {
            self.try_to_open(found.ece);
            return false;
        }
        if self.flow.state < CongestionState::WindowReduced && self.is_mtu_probe_lost() {
            self.on_mtu_probe_lost();
            return false;
        }
        self.enter_recovery(found.ece);
        true
    }

    fn find_losses(&mut self, found: &mut Findings) {
        if self.snd.sent.is_empty() {
            return;
        }
        if !self.rcv.sack {
            self.mark_lost_by_duplicates(found.una_advanced);
            return;
        }
        let before = self.flow.retransmitted_out;
        if self.rack_mark_lost() {
            found.set_timer = false;
        }
        found.lost_retransmission |= before > self.flow.retransmitted_out;
    }

    /// `NewReno` (RFC 6582): the third duplicate, and each partial
    /// acknowledgement, mark the first segment lost.
    fn mark_lost_by_duplicates(&mut self, una_advanced: bool) {
        let state = self.flow.state;
        if (state < CongestionState::Recovery && self.flow.sacked_out >= self.rec.reordering)
            || (state == CongestionState::Recovery && una_advanced)
        {
            let is_marked = self
                .snd
                .sent
                .first()
                .is_some_and(|s| s.marks.has(Marks::LOST));
            if !is_marked {
                self.end_buffer(0);
                self.mark_lost(0);
            }
        }
    }

    /// Counts a duplicate acknowledgement as a segment delivered.
    fn add_reno_sack(&mut self, duplicates: u32) {
        if duplicates > 0 {
            let before = self.flow.sacked_out;
            self.flow.sacked_out += duplicates;
            self.check_reno_reordering(0);
            let delivered = self.flow.sacked_out.saturating_sub(before);
            self.flow.delivered += u64::from(delivered);
        }
    }

    /// Of what is in flight some must be missing; returns whether more was thought found
    /// (Linux 6.1 `tcp_limit_reno_sacked`).
    pub(super) fn limit_reno_sacked(&mut self) -> bool {
        let holes = self.flow.lost_out.max(1).min(self.flow.packets_out);
        let most = self.flow.packets_out - holes;
        let is_more = self.flow.sacked_out > most;
        self.flow.sacked_out = self.flow.sacked_out.min(most);
        is_more
    }

    /// More found than can be: packets were overtaken (Linux 6.1
    /// `tcp_check_reno_reordering`).
    fn check_reno_reordering(&mut self, more: u32) {
        if self.limit_reno_sacked() {
            self.rec.reordering = (self.flow.packets_out + more).min(super::sack::MAX_REORDERING);
            self.rec.reorder_seen += 1;
        }
    }

    pub(super) fn remove_reno_sacks(&mut self, acked: u32) {
        if acked > 0 {
            let delivered = acked.saturating_sub(self.flow.sacked_out).max(1);
            self.flow.delivered += u64::from(delivered);
            self.flow.sacked_out = self.flow.sacked_out.saturating_sub(acked - 1);
        }
        self.check_reno_reordering(acked);
    }

    pub(super) fn enter_recovery(&mut self, ece: bool) {
        if !self.has_retransmitted() {
            self.rec.first_retransmission_ms = None;
        }
        self.counters.fast_recoveries += 1;
        self.rec.prior_ssthresh = 0;
        self.init_undo();
        if !self.flow.in_reduction() {
            if !ece {
                self.rec.prior_ssthresh = self.flow.current_ssthresh();
            }
            self.init_reduction();
        }
        self.set_state(CongestionState::Recovery);
    }

    pub(super) fn init_undo(&mut self) {
        self.rec.undo_marker = Some(self.flow.una);
        let probe = self.rec.probe_high.is_some() && self.rec.probe_was_retransmission;
        let count = self.flow.retransmitted_out + u32::from(probe);
        self.rec.undo_retransmissions = (count > 0).then_some(count);
    }

    fn init_reduction(&mut self) {
        self.rec.high = self.flow.next;
        self.rec.probe_high = None;
        self.flow.cwnd_count = 0;
        self.flow.prior_cwnd = self.flow.cwnd;
        self.rec.prr_delivered = 0;
        self.rec.prr_out = 0;
        self.flow.ssthresh = self.control.threshold_after_loss(&mut self.flow);
        self.snd.queue_cwr |= self.snd.ecn;
    }

    /// Proportional rate reduction: above the threshold a share of what is
    /// delivered, below it as much, and one more while nothing new is lost
    /// (Linux 6.1 `tcp_cwnd_reduction`).
    pub(super) fn reduce_cwnd(&mut self, delivered: u32, newly_lost: u32, una_advanced: bool) {
        if delivered == 0 || self.flow.prior_cwnd == 0 {
            return;
        }
        self.rec.prr_delivered += delivered;
        let in_flight = self.flow.in_flight();
        let out = i64::from(self.rec.prr_out);
        let total = i64::from(self.rec.prr_delivered);
        let room = i64::from(self.flow.ssthresh) - i64::from(in_flight);
        let count = if room < 0 {
            let prior = i64::from(self.flow.prior_cwnd);
            (i64::from(self.flow.ssthresh) * total + prior - 1) / prior - out
        } else {
            let mut count = (total - out).max(i64::from(delivered));
            if una_advanced && newly_lost == 0 {
                count += 1;
            }
            count.min(room)
        };
        let count = count.max(i64::from(self.rec.prr_out == 0));
        self.flow.cwnd = (i64::from(in_flight) + count).max(1) as u32;
    }

    fn end_reduction(&mut self) {
        if self.control.controls_all() {
            return;
        }
        if self.flow.ssthresh < INFINITE_SSTHRESH
            && (self.flow.state == CongestionState::WindowReduced || self.rec.undo_marker.is_some())
        {
            self.flow.cwnd = self.flow.ssthresh.max(1);
            self.snd.cwnd_stamp = self.flow.ticks;
        }
        self.control
            .on_event(&mut self.flow, CongestionEvent::ReductionComplete);
    }

    /// Congestion was notified: the window is reduced, and for good.
    fn enter_reduction(&mut self) {
        self.rec.prior_ssthresh = 0;
        if self.flow.state < CongestionState::WindowReduced {
            self.rec.undo_marker = None;
            self.init_reduction();
            self.set_state(CongestionState::WindowReduced);
        }
    }

    /// Whether a retransmission is in flight or the first segment was one.
    pub(super) fn has_retransmitted(&self) -> bool {
        self.flow.retransmitted_out > 0
            || self
                .snd
                .sent
                .first()
                .is_some_and(|sent| sent.marks.has(Marks::EVER_RETRANSMITTED))
    }

    pub(super) fn try_keep_open(&mut self) {
        let mut state = CongestionState::Open;
        if self.flow.left_out() > 0 || self.has_retransmitted() {
            state = CongestionState::Disorder;
        }
        if self.flow.state != state {
            self.set_state(state);
            self.rec.high = self.flow.next;
        }
    }

    fn try_to_open(&mut self, ece: bool) {
        if !self.has_retransmitted() {
            self.rec.first_retransmission_ms = None;
        }
        if ece {
            self.enter_reduction();
        }
        if self.flow.state != CongestionState::WindowReduced {
            self.try_keep_open();
        }
    }

    /// Linux 6.1 `tcp_process_loss`, with F-RTO in its SACK-enhanced form (RFC
    /// 5682, section 3.1).
    fn judge_loss(
        &mut self,
        found: &Findings,
        duplicates: u32,
        echo: Option<u32>,
        resend: &mut Resend,
    ) {
        let recovered = !self.flow.una.before(self.rec.high);
        if found.una_advanced && self.try_undo_loss(echo, false) {
            return;
        }
        if self.rec.frto {
            if found.original_acked && self.try_undo_loss(echo, true) {
                return;
            }
            if self.flow.next.after(self.rec.high) {
                if found.data_sacked || duplicates > 0 {
                    self.rec.frto = false;
                }
            } else if found.una_advanced && !recovered {
                self.rec.high = self.flow.next;
                if !self.snd.unsent.is_empty() && self.window_end().after(self.flow.next) {
                    *resend = Resend::New;
                    return;
                }
                self.rec.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(echo);
            return;
        }
        if !self.rcv.sack {
            if self.flow.next.after(self.rec.high) && duplicates > 0 {
                self.add_reno_sack(duplicates);
            } else if found.una_advanced {
                self.flow.sacked_out = 0;
            }
        }
        *resend = Resend::Lost;
    }

    /// The end of a tail-loss probe (RFC 8985, section 7.4; Linux 6.1
    /// `tcp_process_tlp_ack`).
    pub(super) fn on_probe_ack(&mut self, ack: Seq, found: &Findings) {
        let Some(high) = self.rec.probe_high else {
            return;
        };
        if ack.before(high) {
            return;
        }
        if !self.rec.probe_was_retransmission || found.probe_duplicate {
            self.rec.probe_high = None;
        } else if ack.after(high) {
            // The probe repaired a loss, which is a sign of congestion.
            self.init_reduction();
            self.set_state(CongestionState::WindowReduced);
            self.end_reduction();
            self.try_keep_open();
        } else if !(found.una_advanced
            || found.has_data
            || found.window_updated
            || found.data_acked
            || found.data_sacked)
        {
            self.rec.probe_high = None;
        }
    }

    pub(super) fn resend(&mut self, resend: Resend) {
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.retransmit_lost(),
            Resend::New => {
                self.push_pending(Push::All);
                if !self.flow.next.after(self.rec.high) {
                    self.rec.frto = false;
                    self.retransmit_lost();
                }
            }
        }
    }
}
