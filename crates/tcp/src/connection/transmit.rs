//! Sending what was written: how much the windows allow, what Nagle's algorithm
//! holds back (Minshall's variant), bursts, and the validation of the
//! congestion window (Linux 6.1 `tcp_write_xmit`).

use super::Connection;
use super::mtu::Probe;
use super::timers::Waiting;
use crate::congestion::{CongestionEvent, CongestionState};
use crate::received::{BUFFER_COST, SHARED_COST};
use crate::sent::{Marks, Sent};
use crate::state::State;
use crate::unsent::Piece;

/// The most bytes of a burst, its headers included (the kernel's TSO packet).
const BURST_BYTES: u32 = 65_536;
/// A burst of more is deferred while it would be small (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u32 = 3;
/// How a push is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// As the application set Nagle and cork.
    AsSet,
    /// Nothing is held back.
    All,
    /// One burst, nothing held back.
    One,
    /// One segment even beyond the congestion window: a tail-loss probe.
    Probe,
}

impl Connection {
    /// The maximum segment now: less what options beyond time stamps take.
    pub(super) fn current_mss(&self) -> u32 {
        let extra = self.header_length().saturating_sub(self.snd.header);
        self.flow.mss.saturating_sub(extra).max(1)
    }

    /// Bytes of payload in a burst at most (Linux 6.1 `sk_gso_max_size`).
    pub(super) const fn largest_burst(&self) -> u32 {
        BURST_BYTES.saturating_sub(self.config.header_room.saturating_add(1))
    }

    /// Memory of a buffer beside its payload: the kernel's buffer and a block
    /// with room for headers (Linux 6.1 `tcp_stream_alloc_skb`).
    pub(super) const fn piece_cost(&self) -> u32 {
        self.linear_cost(0)
    }

    /// Memory of a buffer whose so many bytes lie beside their header.
    pub(super) const fn linear_cost(&self, bytes: u32) -> u32 {
        let room = if self.config.header_room < BURST_BYTES {
            self.config.header_room
        } else {
            BURST_BYTES
        };
        let block = (room + bytes).next_multiple_of(64) + SHARED_COST;
        block.next_power_of_two() + BUFFER_COST
    }

    /// Segments of a burst at the pacing rate: about a millisecond's (Linux 6.1
    /// `tcp_tso_autosize`).
    pub(super) fn burst_segments(&self, mss: u32) -> u32 {
        let most = u64::from(self.largest_burst());
        let mut bytes = self.flow.pacing_rate >> 10;
        let far = self.flow.min_rtt_us >> 9;
        if far < 32 {
            bytes = bytes.saturating_add(most >> far);
        }
        let segments = (bytes.min(most) / u64::from(mss)) as u32;
        segments
            .max(self.control.min_burst_segments(&self.flow))
            .min(65_535)
    }

    /// Sends what may be sent; if nothing is in flight and nothing may be, the
    /// window is probed.
    pub(super) fn push_pending(&mut self, push: Push) {
        self.push_segments(push, self.current_mss());
    }

    /// The same in segments of `mss`.
    pub(super) fn push_segments(&mut self, push: Push, mss: u32) {
        if self.state == State::Closed || self.snd.unsent.is_empty() {
            return;
        }
        if self.transmit(push, mss) && self.flow.packets_out == 0 && self.timers.waiting.is_none() {
            let base = self.probe_base();
            self.arm(Waiting::WindowProbe, base);
        }
    }

    /// Sends as much as both windows, pacing and Nagle allow. Returns whether
    /// nothing is in flight although something waits.
    pub(super) fn transmit(&mut self, push: Push, mss: u32) -> bool {
        let mut sent = 0;
        if push == Push::AsSet || push == Push::All {
            match self.probe_mtu() {
                Probe::Wait => return false,
                Probe::Sent => sent = 1,
                Probe::None => {}
            }
        }
        let burst = self.burst_segments(mss);
        let mut is_cwnd_limited = false;
        while let Some(length) = self.next_burst(mss, burst, push, &mut is_cwnd_limited) {
            sent += self.send_burst(length, mss, false);
            if push == Push::One || push == Push::Probe {
                break;
            }
        }
        is_cwnd_limited |= self.flow.in_flight() >= self.flow.cwnd;
        if sent > 0 || is_cwnd_limited {
            self.validate_cwnd(is_cwnd_limited);
        }
        if sent > 0 {
            if self.flow.in_reduction() {
                self.rec.prr_out += sent;
            }
            if push != Push::Probe {
                self.schedule_loss_probe(false);
            }
            return false;
        }
        self.flow.packets_out == 0 && !self.snd.unsent.is_empty()
    }

    /// Whether pacing holds packets back; arms its timer if so.
    pub(super) fn is_paced(&mut self) -> bool {
        if !self.flow.pacing || self.flow.next_departure <= self.flow.now {
            return false;
        }
        self.timers.pacing = Some(self.flow.next_departure);
        true
    }

    /// Bytes of the next burst; none if it must wait.
    fn next_burst(
        &mut self,
        mss: u32,
        burst: u32,
        push: Push,
        is_cwnd_limited: &mut bool,
    ) -> Option<u32> {
        if self.snd.unsent.is_empty() || self.is_paced() {
            return None;
        }
        // What pacing holds back is not counted yet.
        let first = self.snd.unsent.first_mut()?;
        let segments = first.segments(mss);
        let piece = *first;
        let is_last = self.snd.unsent.count() == 1;
        let mut quota = self.cwnd_quota(piece.fin && segments == 1);
        if quota == 0 {
            if push != Push::Probe {
                return None;
            }
            quota = 1;
        }
        let window = self
            .window_end()
            .distance(self.flow.next)
            .max(0)
            .cast_unsigned();
        if window < piece.length.min(mss) + u32::from(piece.fin && piece.length <= mss) {
            return None;
        }
        let hold = push == Push::AsSet;
        if segments == 1 {
            let is_held = hold && !self.snd.released && is_last && !piece.fin && piece.length < mss;
            return (!is_held || !self.nagle_holds()).then_some(piece.length.min(mss));
        }
        let one = push == Push::One || push == Push::Probe;
        if !one && self.should_defer(piece.length, piece.fin, is_last, window, burst) {
            *is_cwnd_limited |=
                self.cwnd_bytes_left() < window && self.cwnd_bytes_left() <= piece.length;
            return None;
        }
        let most = mss * quota.min(burst);
        let needed = piece.length.min(window);
        if (most <= window && !is_last) || most <= needed {
            return Some(most.min(piece.length));
        }
        let partial = needed % mss;
        if partial > 0 && hold && self.nagle_holds() {
            return Some(needed - partial);
        }
        Some(needed)
    }

    /// Whether Nagle's algorithm (RFC 9293, section 3.7.4), in Minshall's
    /// variant that waits only for an unacknowledged small segment, or a cork
    /// holds a partial segment back.
    fn nagle_holds(&self) -> bool {
        if self.snd.corked {
            return true;
        }
        let small = self.snd.small_end;
        !self.snd.nodelay
            && !self.snd.released
            && self.flow.packets_out > 0
            && small.after(self.flow.una)
            && !small.after(self.flow.next)
    }

    /// Segments the congestion window allows, at most half of it at once (Linux
    /// 6.1 `tcp_cwnd_test`); a lone FIN always goes.
    fn cwnd_quota(&self, is_fin: bool) -> u32 {
        if is_fin {
            return 1;
        }
        let left = self.flow.cwnd.saturating_sub(self.flow.in_flight());
        left.min((self.flow.cwnd >> 1).max(1))
    }

    fn cwnd_bytes_left(&self) -> u32 {
        self.flow
            .cwnd
            .saturating_sub(self.flow.in_flight())
            .saturating_mul(self.flow.mss)
    }

    /// Whether a small burst had better wait for the next acknowledgement
    /// (Linux 6.1 `tcp_tso_should_defer`).
    fn should_defer(&self, length: u32, fin: bool, is_last: bool, window: u32, burst: u32) -> bool {
        if self.flow.state >= CongestionState::Recovery {
            return false;
        }
        let now_ns = self.flow.now.as_nanos();
        if now_ns > self.flow.next_departure.as_nanos() + 1_000_000 {
            return false;
        }
        let cwnd_bytes = self.cwnd_bytes_left();
        let limit = window.min(cwnd_bytes);
        let whole = self.flow.cwnd.saturating_mul(self.flow.mss);
        if limit >= burst.saturating_mul(self.flow.mss)
            || (!is_last && limit >= length)
            || limit >= self.snd.window.min(whole) / WINDOW_DIVISOR
        {
            return false;
        }
        let Some(first) = self.snd.sent.first() else {
            return false;
        };
        let srtt_ns = u64::from(self.flow.srtt_us_x8) * 125;
        let expected = first.at.as_nanos() + srtt_ns;
        if expected > now_ns + (srtt_ns >> 1).min(1_000_000) {
            return false;
        }
        if cwnd_bytes < window {
            if cwnd_bytes <= length {
                return true;
            }
        } else if window <= length {
            return true;
        }
        !fin
    }

    /// Sends the first `length` bytes waiting, in segments of `mss`; returns
    /// their number. The peer is to hurry, if `push`.
    pub(super) fn send_burst(&mut self, length: u32, mss: u32, push: bool) -> u32 {
        let Some(mut piece) = self.take_piece(length, mss) else {
            return 0;
        };
        piece.push |= push;
        let count = piece.length.div_ceil(mss).max(1);
        let prior_packets = self.flow.packets_out;
        let mut left = piece.length;
        for _ in 0..count {
            let payload = left.min(mss);
            left -= payload;
            let is_last = left == 0;
            let fin = piece.fin && is_last;
            let seq = self.flow.next;
            let mut sent = Sent {
                seq,
                end: seq + payload + u32::from(fin),
                payload,
                syn: false,
                fin,
                // What makes a burst hurry is not remembered with it (Linux 6.1
                // `__tcp_transmit_skb`).
                push: is_last && (piece.push || count > 1),
                ends_buffer: is_last,
                is_linear: false,
                unit: mss,
                marks: Marks::default(),
                is_timed: true,
                at: self.flow.now,
                turn: self.turn,
                // The buffer is let go with its last byte.
                overhead: if is_last {
                    self.piece_cost() + piece.held
                } else {
                    0
                },
                delivered_us: None,
                first_sent_us: 0,
                delivered: 0,
                is_app_limited: false,
            };
            self.send_segment(&mut sent, true, !is_last);
            sent.push &= piece.push;
            self.enqueue(sent);
        }
        self.rearm_after_new(prior_packets);
        self.check_send_space();
        // What a probe sends nobody waits for (Linux 6.1 `tcp_write_wakeup`).
        if !push && piece.length < count * mss {
            self.snd.small_end = self.flow.next;
        }
        count
    }

    /// Takes the first bytes waiting; what is left of their piece needs a buffer
    /// of its own (Linux 6.1 `tso_fragment`).
    fn take_piece(&mut self, length: u32, mss: u32) -> Option<Piece> {
        let is_cut = self.snd.unsent.first()?.length > length;
        let taken = self.snd.unsent.take(length);
        if is_cut {
            self.charge_piece();
            self.snd.unsent.first_mut()?.count(mss);
        }
        taken
    }

    /// A new segment left: it waits for its acknowledgement.
    pub(super) fn enqueue(&mut self, sent: Sent) {
        self.flow.next = sent.end;
        self.flow.packets_out += 1;
        self.snd.sent.push(sent);
    }

    pub(super) fn rearm_after_new(&mut self, prior_packets: u32) {
        if prior_packets == 0 || self.is_waiting(Waiting::LossProbe) {
            self.rearm_rto();
        }
    }

    /// Notes whether the window is used, and shrinks one that was not for a
    /// timeout (RFC 2861; Linux 6.1 `tcp_cwnd_validate`).
    fn validate_cwnd(&mut self, is_limited: bool) {
        let flow = &mut self.flow;
        if !flow.una.before(self.snd.cwnd_usage)
            || is_limited
            || (!flow.is_cwnd_limited && flow.packets_out > flow.max_packets_out)
        {
            flow.is_cwnd_limited = is_limited;
            flow.max_packets_out = flow.packets_out;
            self.snd.cwnd_usage = flow.next;
        }
        if flow.is_limited_by_cwnd() {
            self.snd.cwnd_used = 0;
            self.snd.cwnd_stamp = flow.ticks;
            return;
        }
        self.snd.cwnd_used = self.snd.cwnd_used.max(flow.packets_out);
        if self.config.slow_start_after_idle
            && flow.ticks >= self.snd.cwnd_stamp + self.timers.rto
            && !self.control.controls_all()
        {
            self.application_limited();
        }
    }

    fn application_limited(&mut self) {
        let may_write_more = !self.snd.no_space && !self.orphaned;
        if self.flow.state == CongestionState::Open && may_write_more {
            let used = self.snd.cwnd_used.max(self.config.initial_cwnd);
            if used < self.flow.cwnd {
                self.flow.ssthresh = self.flow.current_ssthresh();
                self.flow.cwnd = u32::midpoint(self.flow.cwnd, used);
            }
            self.snd.cwnd_used = 0;
        }
        self.snd.cwnd_stamp = self.flow.ticks;
    }

    /// Restarts from the initial window after an idle time: half the window for
    /// each timeout that passed (RFC 2861; Linux 6.1
    /// `tcp_cwnd_restart`).
    pub(super) fn restart_after_idle(&mut self) {
        if !self.config.slow_start_after_idle
            || self.flow.packets_out > 0
            || self.control.controls_all()
        {
            return;
        }
        let idle = self.flow.ticks.saturating_sub(self.flow.last_sent_ticks);
        let rto = self.timers.rto.max(1);
        if idle <= rto {
            return;
        }
        self.control
            .on_event(&mut self.flow, CongestionEvent::WindowRestart);
        self.flow.ssthresh = self.flow.current_ssthresh();
        let least = self.config.initial_cwnd.min(self.flow.cwnd);
        let mut left = idle.saturating_sub(rto);
        while left > 0 && self.flow.cwnd > least {
            self.flow.cwnd >>= 1;
            left = left.saturating_sub(rto);
        }
        self.flow.cwnd = self.flow.cwnd.max(least);
        self.snd.cwnd_stamp = self.flow.ticks;
        self.snd.cwnd_used = 0;
    }

    /// The pacing timer fired: retransmissions first, then new data.
    pub(super) fn on_pacing_timer(&mut self) {
        if self.state.is_synchronized() {
            if self.flow.lost_out > self.flow.retransmitted_out
                && self.flow.cwnd > self.flow.in_flight()
            {
                self.retransmit_lost();
            }
            self.push_pending(Push::AsSet);
        }
    }
}
