//! Taking an acknowledgement (Linux 6.1 `tcp_ack`, `tcp_clean_rtx_queue`).

use super::Connection;
use super::timers::Waiting;
use crate::Seq;
use crate::congestion::{CongestionState, RateSample};
use crate::wire::{Flags, Segment};

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent findings about one packet"
)]
pub(super) struct Findings {
    pub(super) has_data: bool,
    pub(super) window_updated: bool,
    pub(super) data_acked: bool,
    pub(super) syn_acked: bool,
    pub(super) retransmitted_acked: bool,
    pub(super) data_sacked: bool,
    pub(super) ece: bool,
    pub(super) lost_retransmission: bool,
    /// Something sent before the recovery, and never again, was delivered.
    pub(super) original_acked: bool,
    pub(super) una_advanced: bool,
    pub(super) duplicate_reported: bool,
    pub(super) probe_duplicate: bool,
    pub(super) set_timer: bool,
    pub(super) reneging: bool,
    pub(super) maybe_delayed: bool,
}

impl Findings {
    pub(super) const fn acked(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    const fn is_no_duplicate(&self) -> bool {
        self.has_data || self.window_updated || self.acked()
    }

    const fn is_alert(&self) -> bool {
        self.data_sacked || self.ece || self.duplicate_reported
    }
}

/// What is gathered while an acknowledgement is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckContext {
    pub(super) found: Findings,
    pub(super) sample: RateSample,
    /// When the first and the last segment newly sacked, and never
    /// retransmitted, were sent, in microseconds.
    pub(super) first_sacked_us: Option<u64>,
    pub(super) last_sacked_us: Option<u64>,
    /// The lowest segment that was overtaken.
    pub(super) reordered: Option<Seq>,
    pub(super) sack_delivered: u32,
}

/// What to retransmit at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Resend {
    #[default]
    Nothing,
    Lost,
    /// New data first: F-RTO's test.
    New,
}

/// What is wrong with an acknowledgement number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadAck {
    TooOld,
    Unsent,
}

impl Connection {
    /// Takes the acknowledgement of a segment. `Ok(false)` means it was old.
    pub(super) fn on_ack(
        &mut self,
        segment: &Segment<'_>,
        echo: Option<u32>,
    ) -> Result<bool, BadAck> {
        let ack = segment.ack;
        let prior_una = self.flow.una;
        let mut context = AckContext::default();
        let reneged = self.rec.reneging;
        let (delivered, lost) = (self.flow.delivered, self.flow.lost);
        self.check_number(ack)?;
        if ack.before(prior_una) {
            self.on_old_ack(segment, prior_una, echo, context);
            return Ok(false);
        }
        if ack.after(prior_una) {
            context.found.una_advanced = true;
            self.timers.retransmits = 0;
        }
        let prior_fack = self.fack();
        let prior_packets = self.flow.packets_out;
        context.sample.prior_in_flight = self.flow.in_flight();
        context.found.has_data = segment.sequence_length() > 0;
        self.take_window_and_una(segment, &mut context.found);
        if !segment.options.sack.is_empty() && self.rcv.sack {
            self.take_sacks(segment, prior_una, &mut context);
        }
        context.found.ece = self.snd.ecn && segment.has(Flags::ECE) && !segment.has(Flags::SYN);
        self.flow.delivered += u64::from(context.sack_delivered);
        self.take_cwr(segment);
        self.timers.probes_out = 0;
        self.last_received_ticks = self.flow.ticks;
        if prior_packets == 0 {
            self.on_ack_of_nothing(segment, prior_una, echo, &mut context);
            return Ok(true);
        }
        self.remove_acked(prior_una, prior_fack, echo, &mut context);
        self.update_reordering_window(&context.sample);
        if self.rec.probe_high.is_some() {
            self.on_probe_ack(ack, &context.found);
        }
        let mut resend = Resend::Nothing;
        if !context.found.is_no_duplicate()
            || context.found.is_alert()
            || self.flow.state != CongestionState::Open
        {
            let duplicates = self.count_duplicate(&context.found);
            self.judge(prior_una, duplicates, echo, &mut context.found, &mut resend);
        }
        if context.found.set_timer && !self.schedule_loss_probe(true) {
            self.rearm_rto();
        }
        let newly_delivered = (self.flow.delivered - delivered) as u32;
        let newly_lost = (self.flow.lost - lost) as u32;
        context.sample.is_ack_delayed = context.found.maybe_delayed;
        self.generate_rate(newly_delivered, newly_lost, reneged, &mut context.sample);
        self.control_congestion(newly_delivered, &context);
        self.resend(resend);
        Ok(true)
    }

    /// Whether an acknowledgement number may be true: of something sent, and not older than
    /// what was under way at most (RFC 5961, section 5.2).
    pub(super) fn check_number(&self, ack: Seq) -> Result<(), BadAck> {
        let window = u64::from(self.snd.max_window).min(self.snd.bytes_acked) as u32;
        if ack.before(self.flow.una) && ack.before(self.flow.una - window) {
            Err(BadAck::TooOld)
        } else if ack.after(self.flow.next) {
            Err(BadAck::Unsent)
        } else {
            Ok(())
        }
    }

    fn count_duplicate(&self, found: &Findings) -> u32 {
        let is_duplicate =
            !(found.una_advanced || found.is_no_duplicate() || found.duplicate_reported);
        u32::from(is_duplicate && self.flow.packets_out > 0)
    }

    /// An acknowledgement overtaken by a later one may still reveal losses; what it
    /// reveals is not counted as delivered (Linux 6.1 `tcp_ack`, `old_ack`).
    fn on_old_ack(
        &mut self,
        segment: &Segment<'_>,
        prior_una: Seq,
        echo: Option<u32>,
        mut context: AckContext,
    ) {
        if segment.options.sack.is_empty() || !self.rcv.sack {
            return;
        }
        let mut resend = Resend::Nothing;
        self.take_sacks(segment, prior_una, &mut context);
        self.judge(prior_una, 0, echo, &mut context.found, &mut resend);
        self.resend(resend);
    }

    fn on_ack_of_nothing(
        &mut self,
        segment: &Segment<'_>,
        prior_una: Seq,
        echo: Option<u32>,
        context: &mut AckContext,
    ) {
        if context.found.duplicate_reported {
            let mut resend = Resend::Nothing;
            self.judge(prior_una, 0, echo, &mut context.found, &mut resend);
        }
        self.check_window_probe();
        if self.rec.probe_high.is_some() {
            self.on_probe_ack(segment.ack, &context.found);
        }
    }

    /// The window opened, or still does not suffice (Linux 6.1
    /// `tcp_ack_probe`).
    fn check_window_probe(&mut self) {
        let Some(piece) = self.snd.unsent.first() else {
            return;
        };
        let end = self.flow.next + piece.length + u32::from(piece.fin);
        if end.after(self.window_end()) {
            let timeout = self.probe_timeout();
            self.arm(Waiting::WindowProbe, timeout);
        } else {
            self.timers.backoff = 0;
            self.timers.probes_since = None;
            if self.is_waiting(Waiting::WindowProbe) {
                self.timers.waiting = None;
            }
        }
    }

    /// Linux 6.1 `tcp_ack_update_window`.
    fn take_window_and_una(&mut self, segment: &Segment<'_>, found: &mut Findings) {
        let scale = if segment.has(Flags::SYN) {
            0
        } else {
            self.snd.scale
        };
        let window = u32::from(segment.window) << scale;
        let una = self.flow.una;
        if segment.ack.after(una)
            || segment.seq.after(self.snd.wl1)
            || (segment.seq == self.snd.wl1 && window > self.snd.window)
        {
            found.window_updated = true;
            self.snd.wl1 = segment.seq;
            if self.snd.window != window {
                self.snd.window = window;
                self.rcv.predicted = None;
                self.predict_if_calm();
                if !self.snd.unsent.is_empty() {
                    self.restart_after_idle();
                }
                if window > self.snd.max_window {
                    self.snd.max_window = window;
                    self.sync_mss();
                }
            }
        }
        self.snd.bytes_acked += u64::from(segment.ack - una);
        self.flow.una = segment.ack;
        self.snd.unsent.acknowledge(segment.ack);
    }

    /// Linux 6.1 `tcp_ecn_accept_cwr`.
    fn take_cwr(&mut self, segment: &Segment<'_>) {
        if segment.has(Flags::CWR) {
            self.rcv.demand_ece = false;
            if segment.sequence_length() > 0 {
                self.feedback.at_once = true;
            }
        }
    }

    /// Linux 6.1 `tcp_ack_update_rtt`.
    pub(super) fn take_rtt(
        &mut self,
        mut rtt_us: Option<u64>,
        mut control_rtt_us: Option<u64>,
        echo: Option<u32>,
        context: &mut AckContext,
    ) -> bool {
        if rtt_us.is_none()
            && context.found.acked()
            && let Some(echo) = echo
        {
            let ms = (self.now_ms() as u32).wrapping_sub(echo);
            if ms < u32::MAX / 2 / 1_000 {
                rtt_us = Some(u64::from(ms.max(1)) * 1_000);
                control_rtt_us = rtt_us;
            }
        }
        context.sample.rtt_us = control_rtt_us.map(clamp);
        let Some(rtt_us) = rtt_us else {
            return false;
        };
        self.take_rtt_sample(
            clamp(rtt_us),
            context.sample.rtt_us,
            context.found.maybe_delayed,
        );
        true
    }

    pub(super) fn take_rtt_sample(
        &mut self,
        rtt_us: u32,
        control_rtt_us: Option<u32>,
        maybe_delayed: bool,
    ) {
        // A round trip below a microsecond counts as a tick.
        let least = match control_rtt_us.unwrap_or(rtt_us) {
            0 => self.ticks.to_micros(1) as u32,
            us => us,
        };
        self.rtt
            .sample_minimum(least, maybe_delayed, 300 * self.flow.hz, self.flow.ticks);
        self.rtt.sample(rtt_us, self.flow.una, self.flow.next);
        self.flow.srtt_us_x8 = self.rtt.srtt_us_x8();
        self.flow.min_rtt_us = self.rtt.min_us();
        self.update_rto();
        self.timers.backoff = 0;
    }
}

/// Whether an echo is older than a time in milliseconds.
pub(super) fn echo_before(echo: Option<u32>, at_ms: u64) -> bool {
    echo.is_some_and(|echo| Seq(echo).before(Seq(at_ms as u32)))
}

fn clamp(microseconds: u64) -> u32 {
    u32::try_from(microseconds)
        .unwrap_or(u32::MAX / 16)
        .min(u32::MAX / 16)
}
