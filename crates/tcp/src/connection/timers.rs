//! Timers: the one for retransmissions, which has four meanings, and those for
//! delayed acknowledgements, keep-alive, pacing and the end.

use std::time::Duration;

use super::Connection;
use crate::Instant;
use crate::rtt::RTO_MAX_SECONDS;
use crate::sent::Sent;
use crate::state::{CloseReason, State};
use crate::time::Ticks;

/// What the retransmission timer waits for (Linux 6.1 `icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Retransmission,
    LossProbe,
    Reordering,
    WindowProbe,
}

/// A timer in ticks, and when it really fires.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) expires: u64,
    pub(super) fires: Instant,
}

#[derive(Debug)]
pub(super) struct Timers {
    pub(super) waiting: Option<(Waiting, Timer)>,
    /// Retransmission timeout in ticks, with backoff.
    pub(super) rto: u64,
    pub(super) backoff: u32,
    /// Timeouts since the last progress.
    pub(super) retransmits: u32,
    pub(super) probes_out: u32,
    pub(super) probes_since: Option<u64>,
    pub(super) keep_alive: Option<Timer>,
    pub(super) pacing: Option<Instant>,
    /// The end of TIME-WAIT, or of waiting for the peer's FIN.
    pub(super) linger: Option<Timer>,
    /// The tick at which one of those in ticks last fired.
    fired: Option<u64>,
}

impl Timers {
    pub(super) const fn new(hz: u64) -> Self {
        Self {
            waiting: None,
            rto: hz,
            backoff: 0,
            retransmits: 0,
            probes_out: 0,
            probes_since: None,
            keep_alive: None,
            pacing: None,
            linger: None,
            fired: None,
        }
    }

    pub(super) const fn clear(&mut self) {
        self.waiting = None;
        self.keep_alive = None;
        self.pacing = None;
        self.linger = None;
    }
}

/// 2 ms, the least time of RACK's and the tail-loss probe's timers (Linux 6.1
/// `TCP_TIMEOUT_MIN_US`).
pub(super) const TIMEOUT_MIN_US: u64 = 2_000;

/// How long a connection may retransmit `count` times from a timeout of 200 ms
/// (or `base`), in milliseconds (Linux 6.1 `tcp_model_timeout`).
fn model_timeout_ms(count: u32, base_ms: u64) -> u64 {
    let max_ms = RTO_MAX_SECONDS * 1_000;
    let linear = (max_ms / base_ms.max(1)).max(1).ilog2();
    if count <= linear {
        ((2 << count) - 1) * base_ms
    } else {
        ((2 << linear) - 1) * base_ms + u64::from(count - linear) * max_ms
    }
}

impl Connection {
    /// When [`handle_deadline`](Self::handle_deadline) is to be called next;
    /// none while nothing is awaited.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        [
            self.timers.waiting.map(|(_, timer)| timer.fires),
            self.timers.keep_alive.map(|timer| timer.fires),
            self.timers.linger.map(|timer| timer.fires),
            self.timers.pacing,
            self.feedback.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Handles every timer that has fired by `now`.
    pub fn handle_deadline(&mut self, now: Instant) {
        let before = self.flow.now;
        self.refresh(now);
        let due = |timer: Timer| timer.fires <= now;
        let in_ticks = [
            self.timers.waiting.map(|(_, timer)| timer),
            self.timers.keep_alive,
            self.timers.linger,
            self.feedback.delay(),
        ];
        if in_ticks.into_iter().flatten().any(due) {
            self.timers.fired = Some(self.flow.ticks);
        }
        if self.feedback.deadline().is_some_and(|fires| fires <= now) {
            self.on_feedback_timer(before);
        }
        if self.timers.pacing.is_some_and(|fires| fires <= now) {
            self.timers.pacing = None;
            self.on_pacing_timer();
            self.on_soft_interrupt(now);
        }
        if let Some((waiting, timer)) = self.timers.waiting
            && due(timer)
        {
            self.timers.waiting = None;
            match waiting {
                Waiting::Retransmission => self.on_retransmission_timeout(),
                Waiting::LossProbe => self.send_loss_probe(),
                Waiting::Reordering => self.on_reordering_timeout(),
                Waiting::WindowProbe => self.on_window_probe_timeout(),
            }
        }
        if self.timers.keep_alive.is_some_and(due) {
            self.timers.keep_alive = None;
            self.on_keep_alive();
        }
        if self.timers.linger.is_some_and(due) {
            self.done(CloseReason::Finished);
        }
    }

    /// The pacing timer of another connection of the same host has fired: a compressed
    /// acknowledgement that may leave a little earlier or later leaves with it.
    pub fn share_interrupt(&mut self, now: Instant) {
        if self.feedback.may_fire(now) {
            let before = self.flow.now;
            self.refresh(now);
            self.on_soft_interrupt(before);
        }
    }

    /// A timer of so many ticks. The wheel has turned on where one has fired at this
    /// tick (Linux 6.1 `forward_timer_base`).
    pub(super) fn timer(&self, ticks: u64) -> Timer {
        let expires = self.flow.ticks + ticks;
        let has_fired = self.timers.fired == Some(self.flow.ticks);
        let stands = self.flow.ticks + u64::from(has_fired);
        Timer {
            expires,
            fires: self.ticks.fires(stands, expires),
        }
    }

    /// The largest timeout in ticks.
    pub(super) const fn rto_max(&self) -> u64 {
        RTO_MAX_SECONDS * self.flow.hz
    }

    /// The smallest in ticks.
    pub(super) fn rto_min(&self) -> u64 {
        self.ticks.of_duration(self.config.rto_min)
    }

    /// Arms the retransmission timer; what is paced into the future is added
    /// (Linux 6.1 `tcp_reset_xmit_timer`).
    pub(super) fn arm(&mut self, waiting: Waiting, ticks: u64) {
        let paced = self.flow.next_departure.saturating_since(self.flow.now);
        // At a byte a second and a million ticks it is more than 64 bits hold.
        let paced = paced.as_nanos() * u128::from(self.flow.hz) / 1_000_000_000;
        let paced = u64::try_from(paced).unwrap_or(u64::MAX);
        self.arm_unpaced(waiting, ticks.saturating_add(paced).min(self.rto_max()));
    }

    pub(super) fn arm_unpaced(&mut self, waiting: Waiting, ticks: u64) {
        let mut timer = self.timer(ticks);
        // A timer that is set to the tick it waits for already stays in its
        // bucket (Linux 6.1 `mod_timer`).
        if let Some((_, before)) = self.timers.waiting
            && before.expires == timer.expires
        {
            timer.fires = before.fires;
        }
        self.timers.waiting = Some((waiting, timer));
    }

    pub(super) fn is_waiting(&self, waiting: Waiting) -> bool {
        self.timers.waiting.is_some_and(|(now, _)| now == waiting)
    }

    /// Microseconds until the first segment's timeout (Linux 6.1
    /// `tcp_rto_delta_us`).
    pub(super) fn until_rto_us(&self) -> i64 {
        let rto_us = self.ticks.to_micros(self.timers.rto);
        let sent_us = self
            .snd
            .sent
            .first()
            .map_or(self.flow.now_us(), Sent::at_us);
        (sent_us + rto_us).cast_signed() - self.flow.now_us().cast_signed()
    }

    /// Restarts the retransmission timer after progress (RFC 6298, 5.3; Linux
    /// 6.1 `tcp_rearm_rto`).
    pub(super) fn rearm_rto(&mut self) {
        if self.flow.packets_out == 0 {
            self.timers.waiting = None;
            return;
        }
        let mut rto = self.timers.rto;
        if self.is_waiting(Waiting::Reordering) || self.is_waiting(Waiting::LossProbe) {
            rto = self
                .ticks
                .of_micros(self.until_rto_us().max(1).cast_unsigned());
        }
        self.arm(Waiting::Retransmission, rto);
    }

    /// Sets the timeout from the estimate (Linux 6.1 `tcp_set_rto`).
    pub(super) fn update_rto(&mut self) {
        self.timers.rto = self.rtt.rto_ticks(self.ticks);
    }

    /// Milliseconds since the origin, the unit of time stamps.
    pub(super) const fn now_ms(&self) -> u64 {
        self.flow.now.as_nanos() / 1_000_000
    }

    /// Whether retransmissions have gone on for as long as `count` of them take
    /// from the smallest timeout, or for `limit` (Linux 6.1
    /// `retransmits_timed_out`).
    pub(super) fn has_retransmitted_for(&self, count: u32, limit: Option<Duration>) -> bool {
        if self.timers.retransmits == 0 {
            return false;
        }
        let Some(start_ms) = self.rec.first_retransmission_ms else {
            return false;
        };
        let base_ms = if self.state.is_synchronized() {
            self.config.rto_min.as_millis() as u64
        } else {
            1_000
        };
        let limit_ms = limit.map_or_else(
            || model_timeout_ms(count, base_ms),
            |limit| limit.as_millis() as u64,
        );
        self.now_ms() >= start_ms + limit_ms
    }

    /// The next timeout, no later than the application's limit (Linux 6.1
    /// `tcp_clamp_rto_to_user_timeout`).
    pub(super) fn clamped_rto(&self) -> u64 {
        let (Some(limit), Some(start_ms)) =
            (self.config.user_timeout, self.rec.first_retransmission_ms)
        else {
            return self.timers.rto;
        };
        let elapsed = self.now_ms().saturating_sub(start_ms);
        let left_ms = (limit.as_millis() as u64).saturating_sub(elapsed);
        self.timers.rto.min(self.ticks.of_millis(left_ms).max(1))
    }

    /// Starts TIME-WAIT, 60 s in Linux, or `time` of waiting for a FIN.
    pub(super) fn linger(&mut self, time: Duration) {
        let ticks = self.ticks.of_duration(time);
        self.timers.linger = Some(self.timer(ticks));
    }

    /// Keep-alive: arms the timer for the idle time.
    pub(super) fn start_keep_alive(&mut self) {
        if let Some(keep_alive) = self.keep_alive {
            let ticks = self.ticks.of_duration(keep_alive.idle);
            self.timers.keep_alive = Some(self.timer(ticks));
        }
    }

    /// Linux 6.1 `tcp_keepalive_timer`, `keepalive_time_elapsed`.
    fn on_keep_alive(&mut self) {
        let Some(keep_alive) = self.keep_alive else {
            return;
        };
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return;
        }
        let idle = self.ticks.of_duration(keep_alive.idle);
        let mut next = idle;
        if self.flow.packets_out == 0 && self.snd.unsent.is_empty() {
            // Data that acknowledges nothing new is a sign of life, too.
            let last = self.last_received_ticks.max(self.feedback.last_data());
            let elapsed = self.flow.ticks.saturating_sub(last);
            if elapsed >= idle {
                let has_expired = match self.config.user_timeout {
                    Some(limit) => {
                        elapsed >= self.ticks.of_duration(limit) && self.timers.probes_out > 0
                    }
                    None => self.timers.probes_out >= keep_alive.probes,
                };
                if has_expired {
                    self.send_reset();
                    self.done(CloseReason::TimedOut);
                    return;
                }
                self.send_window_probe();
                self.timers.probes_out += 1;
                next = self.ticks.of_duration(keep_alive.interval);
            } else {
                next = idle - elapsed;
            }
        }
        self.timers.keep_alive = Some(self.timer(next));
    }
}

/// Ticks of `milliseconds` at a rate, at least one.
pub(super) fn at_least_one(ticks: Ticks, milliseconds: u64) -> u64 {
    ticks.of_millis(milliseconds).max(1)
}
