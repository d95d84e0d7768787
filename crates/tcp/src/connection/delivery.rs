//! The delivery rate (draft-cheng-iccrg-delivery-rate-estimation; Linux 6.1
//! `tcp_rate.c`), and how congestion control is asked.

use super::Connection;
use super::ack::AckContext;
use crate::congestion::RateSample;
use crate::sent::{Departure, Marks, Sent};

impl Connection {
    /// Notes in a segment just sent how much was delivered by then.
    pub(super) fn note_sent(&mut self, sent: &mut Sent) {
        if self.flow.packets_out == 0 {
            self.snd.first_sent_us = sent.at_us();
            self.flow.delivered_us = sent.at_us();
        }
        sent.first_sent_us = self.snd.first_sent_us;
        sent.delivered_us = Some(self.flow.delivered_us);
        sent.delivered = self.flow.delivered;
        sent.is_app_limited = self.flow.app_limited > 0;
    }

    /// A segment was delivered: the most recently sent one makes the sample. It left as
    /// part of the buffer of `departure`.
    pub(super) fn count_delivered(
        &mut self,
        sent: &Sent,
        departure: Departure,
        sample: &mut RateSample,
    ) {
        let Some(delivered_us) = sent.delivered_us else {
            return;
        };
        let is_first = sample.prior_us.is_none();
        if is_first || departure.is_after(sample.last) {
            sample.prior_delivered = sent.delivered;
            sample.prior_us = Some(delivered_us);
            sample.is_app_limited = sent.is_app_limited;
            sample.is_retransmission = sent
                .marks
                .has(Marks::RETRANSMITTED | Marks::EVER_RETRANSMITTED);
            sample.last = departure;
            self.snd.first_sent_us = sent.at_us();
            sample.interval_us = Some(sent.at_us().saturating_sub(sent.first_sent_us));
        }
    }

    /// Linux 6.1 `tcp_rate_gen`.
    pub(super) fn generate_rate(
        &mut self,
        delivered: u32,
        lost: u32,
        reneged: bool,
        sample: &mut RateSample,
    ) {
        if self.flow.app_limited > 0 && self.flow.delivered > self.flow.app_limited {
            self.flow.app_limited = 0;
        }
        if delivered > 0 {
            self.flow.delivered_us = self.flow.now_us();
        }
        sample.acked_sacked = delivered;
        sample.losses = lost;
        let Some(prior_us) = sample.prior_us.filter(|_| !reneged) else {
            sample.delivered = None;
            sample.interval_us = None;
            return;
        };
        sample.delivered = Some(self.flow.delivered - sample.prior_delivered);
        let ack_us = self.flow.now_us().saturating_sub(prior_us);
        let interval_us = sample.interval_us.unwrap_or(0).max(ack_us);
        // Faster than the minimum round trip is not to be believed.
        let is_plausible = interval_us >= u64::from(self.flow.min_rtt_us);
        sample.interval_us = is_plausible.then_some(interval_us);
    }

    /// Marks the rate as limited by the application when there is nothing to
    /// send (Linux 6.1 `tcp_rate_check_app_limited`).
    pub(super) fn check_app_limited(&mut self) {
        if self.snd.write - self.flow.next < self.flow.mss
            && self.flow.in_flight() < self.flow.cwnd
            && self.flow.lost_out <= self.flow.retransmitted_out
        {
            let limit = self.flow.delivered + u64::from(self.flow.in_flight());
            self.flow.app_limited = limit.max(1);
        }
    }

    /// Linux 6.1 `tcp_cong_control`.
    pub(super) fn control_congestion(&mut self, delivered: u32, context: &AckContext) {
        if self.control.controls_all() {
            self.control.control(&mut self.flow, &context.sample);
            return;
        }
        let found = &context.found;
        let may_grow =
            found.data_acked || (self.rec.reordering > 3 && (found.syn_acked || found.data_sacked));
        if self.flow.in_reduction() {
            self.reduce_cwnd(delivered, context.sample.losses, found.una_advanced);
        } else if may_grow {
            self.control.grow(&mut self.flow, delivered);
            self.snd.cwnd_stamp = self.flow.ticks;
        }
        self.flow.update_pacing_rate();
    }
}
