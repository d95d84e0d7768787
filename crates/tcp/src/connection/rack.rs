//! Loss detection by time: RACK (RFC 8985, section 6; Linux 6.1
//! `tcp_recovery.c`).

use super::Connection;
use super::timers::{TIMEOUT_MIN_US, Waiting};
use crate::congestion::{CongestionState, RateSample};
use crate::sent::{Departure, Marks};

/// Recoveries for which a widened reordering window lasts.
pub(super) const PERSIST: u32 = 16;

/// The state of RACK.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The departure of the most recently sent packet that was delivered, and its
    /// round trip in microseconds.
    sent: Departure,
    rtt_us: u64,
    pub(super) advanced: bool,
    /// The reordering window in quarters of the minimum round trip.
    steps: u32,
    pub(super) persist: u32,
    pub(super) duplicate_seen: bool,
    last_delivered: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent: Departure::default(),
            rtt_us: 0,
            advanced: false,
            steps: 1,
            persist: 0,
            duplicate_seen: false,
            last_delivered: 0,
        }
    }
}

impl Connection {
    /// A packet was delivered (Linux 6.1 `tcp_rack_advance`). One that was
    /// retransmitted and comes back sooner than the minimum says nothing.
    pub(super) fn rack_advance(&mut self, marks: Marks, sent: Departure) {
        let rtt_us = self.flow.now_us().saturating_sub(sent.at_us);
        if rtt_us < u64::from(self.flow.min_rtt_us) && marks.was_retransmitted() {
            return;
        }
        let rack = &mut self.rec.rack;
        rack.advanced = true;
        rack.rtt_us = rtt_us;
        if sent.is_after(rack.sent) {
            rack.sent = sent;
        }
    }

    /// How long a packet may be overtaken, in microseconds.
    fn reordering_window_us(&self) -> u64 {
        if self.rec.reorder_seen == 0
            && (self.flow.state >= CongestionState::Recovery
                || self.flow.sacked_out >= self.rec.reordering)
        {
            return 0;
        }
        let quarter = u64::from(self.flow.min_rtt_us >> 2);
        (quarter * u64::from(self.rec.rack.steps)).min(u64::from(self.flow.srtt_us_x8 >> 3))
    }

    /// Microseconds until a packet sent at `sent_us` counts as lost; zero or
    /// less when it does.
    pub(super) fn rack_wait_us(&self, sent_us: u64, window_us: u64) -> i64 {
        let age = self.flow.now_us().saturating_sub(sent_us);
        (self.rec.rack.rtt_us + window_us).cast_signed() - age.cast_signed()
    }

    /// Marks lost what was sent long enough before something delivered; returns
    /// how many microseconds to wait for the rest, 0 for none.
    fn rack_detect(&mut self) -> u64 {
        let window_us = self.reordering_window_us();
        let latest = self.rec.rack.sent;
        let ranges = self.snd.sent.take_sent_before(latest);
        let mut waiting = Vec::new();
        let mut longest = 0;
        let mut is_over = false;
        for range in ranges {
            if is_over {
                waiting.push(range);
                continue;
            }
            let (at_us, start, end) = (range.at_us, range.start, range.end);
            let wait = self.rack_wait_us(at_us, window_us);
            let mut stays = false;
            let mut index = self.snd.sent.find(start);
            let mut buffer_end = start;
            while let Some(sent) = self.snd.sent.get(index).copied()
                && sent.seq.before(end)
            {
                if sent.end.after(buffer_end) {
                    buffer_end = self.snd.sent.buffer_end(index).unwrap_or(sent.end);
                }
                index += 1;
                if sent.at_us() != at_us || sent.marks.has(Marks::SACKED) || !sent.is_timed {
                    continue;
                }
                // What a timeout found lost may yet prove to be on its way.
                if sent.marks.has(Marks::LOST) && !sent.marks.has(Marks::RETRANSMITTED) {
                    stays = true;
                    continue;
                }
                let departure = Departure {
                    end: buffer_end,
                    ..sent.departure()
                };
                if !latest.is_after(departure) {
                    // Neither this nor what left after it.
                    stays = true;
                    is_over = true;
                    break;
                }
                if wait <= 0 {
                    self.mark_lost(index - 1);
                    if let Some(lost) = self.snd.sent.get_mut(index - 1) {
                        lost.is_timed = false;
                    }
                } else {
                    stays = true;
                    longest = longest.max(wait.cast_unsigned());
                }
            }
            if stays {
                waiting.push(range);
            }
        }
        self.snd.sent.put_back(waiting);
        longest
    }

    /// Linux 6.1 `tcp_rack_mark_lost`; returns whether the reordering timer was
    /// armed.
    pub(super) fn rack_mark_lost(&mut self) -> bool {
        if !std::mem::take(&mut self.rec.rack.advanced) {
            return false;
        }
        let wait_us = self.rack_detect();
        if wait_us == 0 {
            return false;
        }
        let ticks = self.ticks.of_micros(wait_us + TIMEOUT_MIN_US);
        self.arm_unpaced(Waiting::Reordering, ticks.min(self.timers.rto));
        true
    }

    /// Linux 6.1 `tcp_rack_reo_timeout`.
    pub(super) fn on_reordering_timeout(&mut self) {
        let timer = self.timer(0);
        self.timers.waiting = Some((Waiting::Reordering, timer));
        let lost = self.flow.lost;
        let before = self.flow.in_flight();
        self.rack_detect();
        if before != self.flow.in_flight() {
            if self.flow.state != CongestionState::Recovery {
                self.enter_recovery(false);
                if !self.control.controls_all() {
                    let newly_lost = (self.flow.lost - lost) as u32;
                    self.reduce_cwnd(1, newly_lost, false);
                }
            }
            self.retransmit_lost();
        }
        if !self.is_waiting(Waiting::Retransmission) {
            self.rearm_rto();
        }
    }

    /// Widens the window by a step for a round trip in which retransmissions
    /// proved needless, for the next 16 recoveries (RFC 8985, section 6.2, step
    /// 4).
    pub(super) fn update_reordering_window(&mut self, sample: &RateSample) {
        if sample.prior_delivered == 0 {
            return;
        }
        let rack = &mut self.rec.rack;
        if sample.prior_delivered < rack.last_delivered {
            rack.duplicate_seen = false;
        }
        if rack.duplicate_seen {
            rack.steps = (rack.steps + 1).min(0xff);
            rack.duplicate_seen = false;
            rack.last_delivered = self.flow.delivered;
            rack.persist = PERSIST;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }
}
