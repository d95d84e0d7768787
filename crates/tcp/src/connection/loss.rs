//! What happens when no acknowledgement comes: tail-loss probes (RFC 8985,
//! section 7), retransmission timeouts (RFC 6298, F-RTO of RFC 5682),
//! zero-window probes (RFC 9293, section 3.8.6.1), and giving up.

use super::Connection;
use super::timers::{TIMEOUT_MIN_US, Waiting};
use super::transmit::Push;
use crate::congestion::{CongestionEvent, CongestionState};
use crate::sent::Marks;
use crate::state::{CloseReason, State};
use crate::wire::Flags;

/// Timeouts without backoff of a thin stream (`TCP_THIN_LINEAR_RETRIES`).
const LINEAR_TIMEOUTS: u32 = 6;
/// Retransmissions after which the path is doubted (`tcp_retries1`).
const DOUBT_RETRANSMISSIONS: u32 = 3;
/// The most times a probe's timeout doubles: from 200 ms to 120 s.
const PROBE_BACKOFF: u32 = 10;

impl Connection {
    /// Arms a probe for two round trips after the last transmission; 200 ms
    /// more for a lone packet, whose acknowledgement may be delayed (Linux 6.1
    /// `tcp_schedule_loss_probe`). Returns whether it did.
    pub(super) fn schedule_loss_probe(&mut self, has_progress: bool) -> bool {
        let is_calm = matches!(
            self.flow.state,
            CongestionState::Open | CongestionState::WindowReduced
        );
        if !self.config.tail_loss_probe || self.flow.packets_out == 0 || !self.rcv.sack || !is_calm
        {
            return false;
        }
        let mut timeout = if self.flow.srtt_us_x8 > 0 {
            let mut us = u64::from(self.flow.srtt_us_x8 >> 2);
            us += if self.flow.packets_out == 1 {
                self.config.rto_min.as_micros() as u64
            } else {
                TIMEOUT_MIN_US
            };
            self.ticks.of_micros(us)
        } else {
            self.flow.hz
        };
        let until_us = if has_progress {
            self.ticks.to_micros(self.timers.rto).cast_signed()
        } else {
            self.until_rto_us()
        };
        if until_us > 0 {
            timeout = timeout.min(self.ticks.of_micros(until_us.cast_unsigned()));
        }
        self.arm(Waiting::LossProbe, timeout);
        true
    }

    /// Sends new data, or else the last segment again, to provoke an
    /// acknowledgement (Linux 6.1 `tcp_send_loss_probe`).
    pub(super) fn send_loss_probe(&mut self) {
        // The timer still counts as the probe's, so that the timeout is
        // reckoned from the transmission.
        let timer = self.timer(0);
        self.timers.waiting = Some((Waiting::LossProbe, timer));
        if self.rec.probe_high.is_none() && self.try_loss_probe() {
            self.counters.tail_loss_probes += 1;
            self.rec.probe_high = Some(self.flow.next);
            self.timers.waiting = None;
        }
        self.rearm_rto();
    }

    fn try_loss_probe(&mut self) -> bool {
        self.rec.probe_was_retransmission = false;
        let mss = self.current_mss();
        if let Some(piece) = self.snd.unsent.first() {
            let end = self.flow.next + piece.length.min(mss);
            if !end.after(self.window_end()) {
                let before = self.flow.packets_out;
                self.transmit(Push::Probe, mss);
                return self.flow.packets_out > before;
            }
        }
        let Some(last) = self.snd.sent.len().checked_sub(1) else {
            return false;
        };
        let index = self.last_of_buffer(last, mss);
        if self.send_again(index, 1) == 0 {
            return false;
        }
        self.rec.probe_was_retransmission = true;
        true
    }

    /// The segment by which the last buffer is probed: as many as it has but one
    /// stay before it, cut as long as they may be now; if nothing is left then, the
    /// first.
    fn last_of_buffer(&mut self, last: usize, mss: u32) -> usize {
        let before = self.snd.sent.together_before(last);
        let first = last - before;
        let payload: u32 = (first..=last)
            .filter_map(|index| self.snd.sent.get(index))
            .map(|sent| sent.payload)
            .sum();
        if before == 0 || payload <= before as u32 * mss {
            return first;
        }
        self.cut_anew(first, mss);
        let split = first + before;
        self.end_buffer(split - 1);
        split
    }

    /// Linux 6.1 `tcp_retransmit_timer`.
    pub(super) fn on_retransmission_timeout(&mut self) {
        if self.state == State::SynReceived && self.passive {
            self.retransmit_syn_ack();
            return;
        }
        if self.flow.packets_out == 0 || self.snd.sent.is_empty() {
            return;
        }
        if self.snd.window == 0 && !self.orphaned && self.state.is_synchronized() {
            // The peer shrank its window: these are probes in truth.
            if self.has_probed_too_long() {
                self.give_up();
                return;
            }
            self.enter_loss();
            self.retransmit(0, 1);
            self.back_off();
            return;
        }
        self.counters.timeouts += 1;
        if self.is_hopeless() {
            self.give_up();
            return;
        }
        self.enter_loss();
        self.timers.retransmits += 1;
        self.retransmit(0, 1);
        self.timers.backoff += 1;
        self.back_off();
    }

    fn has_probed_too_long(&self) -> bool {
        let since_ms = self
            .rec
            .first_retransmission_ms
            .unwrap_or_else(|| self.now_ms());
        let retransmitting_ms = self.now_ms().saturating_sub(since_ms);
        let silent = self.flow.ticks.saturating_sub(self.last_received_ticks);
        let silent_ms = silent * 1_000 / self.flow.hz;
        let mut limit_ms = 240_000;
        if let Some(limit) = self.config.user_timeout {
            let user_ms = limit.as_millis() as u64;
            if retransmitting_ms > user_ms {
                return true;
            }
            limit_ms = limit_ms.min(user_ms);
        }
        silent_ms > limit_ms && retransmitting_ms > limit_ms
    }

    /// Doubles the timeout, except for a thin stream that wants it linear.
    fn back_off(&mut self) {
        let is_thin =
            self.flow.packets_out < 4 && self.flow.ssthresh < crate::congestion::INFINITE_SSTHRESH;
        if self.state == State::Established
            && self.config.thin_linear_timeouts
            && is_thin
            && self.timers.retransmits <= LINEAR_TIMEOUTS
        {
            self.timers.backoff = 0;
            let rto = self.rtt.rto_ticks(self.ticks);
            self.timers.rto = rto.clamp(self.rto_min(), self.rto_max());
        } else {
            self.timers.rto = (self.timers.rto << 1).min(self.rto_max());
        }
        let rto = self.clamped_rto();
        self.arm_unpaced(Waiting::Retransmission, rto);
    }

    /// Whether it has gone on for too long (Linux 6.1 `tcp_write_timeout`); on
    /// the way there a black hole for large packets is looked for.
    fn is_hopeless(&mut self) -> bool {
        if !self.state.is_synchronized() {
            let most = self.config.syn_retries;
            return self.timers.retransmits >= most
                || self.has_retransmitted_for(most, self.config.user_timeout);
        }
        if self.has_retransmitted_for(DOUBT_RETRANSMISSIONS, None) {
            self.on_black_hole();
        }
        let mut most = self.config.retries;
        if self.orphaned {
            most = if self.timers.rto < self.rto_max() {
                8
            } else {
                0
            };
        }
        self.has_retransmitted_for(most, self.config.user_timeout)
    }

    pub(super) fn give_up(&mut self) {
        self.done(CloseReason::TimedOut);
    }

    /// Linux 6.1 `tcp_enter_loss`.
    pub(super) fn enter_loss(&mut self) {
        let state = self.flow.state;
        let is_new = state < CongestionState::Recovery;
        self.mark_all_lost();
        if state <= CongestionState::Disorder
            || !self.rec.high.after(self.flow.una)
            || (state == CongestionState::Loss && self.timers.retransmits == 0)
        {
            self.rec.prior_ssthresh = self.flow.current_ssthresh();
            self.flow.prior_cwnd = self.flow.cwnd;
            self.flow.ssthresh = self.control.threshold_after_loss(&mut self.flow);
            self.control.on_event(&mut self.flow, CongestionEvent::Loss);
            self.init_undo();
        }
        self.flow.cwnd = self.flow.in_flight() + 1;
        self.flow.cwnd_count = 0;
        self.snd.cwnd_stamp = self.flow.ticks;
        if state <= CongestionState::Disorder && self.flow.sacked_out >= 3 {
            self.rec.reordering = self.rec.reordering.min(3);
        }
        self.set_state(CongestionState::Loss);
        self.rec.high = self.flow.next;
        self.rec.probe_high = None;
        self.snd.queue_cwr |= self.snd.ecn;
        self.rec.frto =
            self.config.frto && (is_new || self.timers.retransmits > 0) && !self.mtu.is_probing();
    }

    /// Everything is lost but what was sent so recently that it may still be
    /// under way (Linux 6.1 `tcp_timeout_mark_lost`).
    fn mark_all_lost(&mut self) {
        let reneged = self
            .snd
            .sent
            .first()
            .is_some_and(|sent| sent.marks.has(Marks::SACKED));
        if reneged {
            self.flow.sacked_out = 0;
            self.rec.reneging = true;
            for sent in self.snd.sent.iter_mut() {
                sent.marks.clear(Marks::SACKED);
            }
        } else if !self.rcv.sack {
            self.flow.sacked_out = 0;
        }
        let head = self.snd.sent.buffer_rest(0);
        for index in 0..self.snd.sent.len() {
            let is_recent = !reneged
                && index >= head
                && self
                    .snd
                    .sent
                    .get(index)
                    .is_some_and(|sent| self.rack_wait_us(sent.at_us(), 0) > 0);
            if !is_recent {
                self.mark_lost(index);
            }
        }
        self.rec.hint = None;
    }

    /// The timeout of the first zero-window probe.
    pub(super) fn probe_base(&self) -> u64 {
        self.timers.rto.max(self.rto_min())
    }

    /// The timeout of the next, doubled for each sent.
    pub(super) fn probe_timeout(&self) -> u64 {
        let timeout = self.probe_base() << self.timers.backoff.min(PROBE_BACKOFF);
        let timeout = timeout.min(self.rto_max());
        let (Some(limit), Some(since)) = (self.config.user_timeout, self.timers.probes_since)
        else {
            return timeout;
        };
        let elapsed = self.flow.ticks.saturating_sub(since);
        let left = self.ticks.of_duration(limit).saturating_sub(elapsed);
        timeout.min(left.max(1))
    }

    /// Linux 6.1 `tcp_probe_timer`.
    pub(super) fn on_window_probe_timeout(&mut self) {
        if self.flow.packets_out > 0 || self.snd.unsent.is_empty() {
            self.timers.probes_out = 0;
            self.timers.probes_since = None;
            return;
        }
        let since = *self.timers.probes_since.get_or_insert(self.flow.ticks);
        let is_over = self.config.user_timeout.is_some_and(|limit| {
            self.flow.ticks > since && self.flow.ticks - since >= self.ticks.of_duration(limit)
        });
        let most = if self.orphaned {
            8
        } else {
            self.config.retries
        };
        if is_over || self.timers.probes_out >= most || self.is_forsaken() {
            self.give_up();
            return;
        }
        self.counters.window_probes += 1;
        self.write_wakeup();
        if self.flow.packets_out > 0 || self.snd.unsent.is_empty() {
            self.timers.probes_out = 0;
            self.timers.backoff = 0;
            self.timers.probes_since = None;
            return;
        }
        self.timers.probes_out += 1;
        if self.orphaned || self.timers.backoff < self.config.retries {
            self.timers.backoff += 1;
        }
        let timeout = self.probe_timeout();
        self.arm(Waiting::WindowProbe, timeout);
    }

    /// Whether the application has closed, and the window has stayed closed until the
    /// probes are as far apart as they may be. A peer that answers each of them would
    /// keep the connection for ever otherwise: every answer counts as progress (Linux
    /// 6.1 `tcp_probe_timer`).
    fn is_forsaken(&self) -> bool {
        let doubled = 1 << self.timers.backoff.min(40);
        self.orphaned && self.timers.rto.max(1).saturating_mul(doubled) >= self.rto_max()
    }

    /// Sends what the window still takes, or a probe (Linux 6.1
    /// `tcp_write_wakeup`).
    fn write_wakeup(&mut self) {
        let window = self.window_end().distance(self.flow.next);
        let mss = self.current_mss();
        if window > 0
            && let Some(piece) = self.snd.unsent.first_mut()
        {
            let length = piece.length.min(window.cast_unsigned()).min(mss);
            if length > 0 || piece.fin {
                piece.push = true;
                self.send_burst(length, mss, true);
                return;
            }
        }
        self.send_window_probe();
    }

    /// A segment without data below what was acknowledged, so that the peer
    /// answers.
    pub(super) fn send_window_probe(&mut self) {
        self.send_empty(self.flow.una - 1, Flags::ACK);
    }
}
