//! BBR, version 1 (Cardwell and others, "BBR: Congestion-Based Congestion
//! Control", ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00),
//! in the kernel's integers (Linux 6.1 `tcp_bbr.c`).
//!
//! It models the path by the largest delivery rate of ten round trips and the
//! smallest round-trip time of ten seconds, and paces at the one while keeping
//! about twice their product in flight. The model of a policed path ("long-term
//! bandwidth") is in [`policer`].

mod aggregation;
mod policer;

use aggregation::ExtraAcked;
use policer::Policer;

use super::flow::INFINITE_SSTHRESH;
use super::{CongestionControl, CongestionEvent, CongestionState, Flow, RateSample};
use crate::windowed::Windowed;

/// Bandwidths are packets a microsecond, times 2^24.
const BW_UNIT: u64 = 1 << 24;
/// Gains are in 256ths.
const UNIT: u64 = 1 << 8;
/// 2/ln 2: doubles the delivery rate every round trip.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Drains in one round trip what the start left in the queue.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Two bandwidth-delay products, for delayed and aggregated acknowledgements.
const CWND_GAIN: u64 = 2 * UNIT;
const CYCLE: [u64; 8] = [
    UNIT * 5 / 4,
    UNIT * 3 / 4,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
];
/// The window of the bandwidth filter, in round trips.
const BW_ROUNDS: u64 = 10;
/// The window of the round-trip filter, in seconds.
const MIN_RTT_SECONDS: u64 = 10;
/// How long the queue is kept drained to measure, in milliseconds.
const PROBE_RTT_MS: u64 = 200;
/// Below this rate in bytes a second bursts are one segment.
const MIN_BURST_RATE: u64 = 1_200_000 / 8;
const MIN_CWND: u32 = 4;
/// Rounds without a quarter's growth after which the pipe is full.
const FULL_ROUNDS: u32 = 3;
/// The longest a bandwidth of excess acknowledgements counts, in microseconds.
const EXTRA_ACKED_MAX_US: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Mode {
    /// Rises fast to fill the pipe.
    #[default]
    Startup,
    /// Drains the queue that the start made.
    Drain,
    /// Discovers and shares bandwidth.
    ProbeBandwidth,
    /// Cuts what is in flight to measure the round trip.
    ProbeRtt,
}

/// The state of one connection (Linux 6.1 `struct bbr`).
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent findings about the path"
)]
pub struct Bbr {
    mode: Mode,
    min_rtt_us: u32,
    min_rtt_ticks: u64,
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    bandwidth: Windowed,
    rounds: u64,
    round_end: u64,
    round_start: bool,
    cycle_us: u64,
    cycle: usize,
    previous_state: Option<CongestionState>,
    packet_conservation: bool,
    idle_restart: bool,
    pacing_gain: u64,
    cwnd_gain: u64,
    full: bool,
    full_bandwidth: u64,
    full_rounds: u32,
    has_seen_rtt: bool,
    prior_cwnd: u32,
    extra: ExtraAcked,
    policer: Policer,
}

/// Bytes a second of a bandwidth at a gain, one per cent below it so that no
/// queue stands (Linux 6.1 `bbr_rate_bytes_per_sec`).
fn bytes_per_second(flow: &Flow, bandwidth: u64, gain: u64) -> u64 {
    let rate = (u128::from(bandwidth) * u128::from(flow.mss) * u128::from(gain)) >> 8;
    u64::try_from((rate * 990_000) >> 24).unwrap_or(u64::MAX)
}

impl Bbr {
    /// Phases in which it may begin: all but the one that drains.
    pub(crate) const PHASES: u8 = CYCLE.len() as u8 - 1;

    const fn max_bandwidth(&self) -> u64 {
        self.bandwidth.get()
    }

    fn bandwidth(&self) -> u64 {
        self.policer
            .bandwidth()
            .unwrap_or_else(|| self.max_bandwidth())
    }

    fn init_pacing_rate(&mut self, flow: &mut Flow) {
        let rtt_us = if flow.srtt_us_x8 > 0 {
            self.has_seen_rtt = true;
            u64::from(flow.srtt_us_x8 >> 3).max(1)
        } else {
            1_000
        };
        let bandwidth = u64::from(flow.cwnd) * BW_UNIT / rtt_us;
        flow.pacing_rate = bytes_per_second(flow, bandwidth, HIGH_GAIN).min(flow.max_pacing_rate);
    }

    fn set_pacing_rate(&mut self, flow: &mut Flow, gain: u64) {
        let rate = bytes_per_second(flow, self.bandwidth(), gain).min(flow.max_pacing_rate);
        if !self.has_seen_rtt && flow.srtt_us_x8 > 0 {
            self.init_pacing_rate(flow);
        }
        if self.full || rate > flow.pacing_rate {
            flow.pacing_rate = rate;
        }
    }

    fn burst_goal(&self, flow: &Flow) -> u32 {
        let bytes = (flow.pacing_rate >> 10).min(65_536 - 1 - 320);
        let segments = (bytes / u64::from(flow.mss.max(1))) as u32;
        segments.max(self.min_burst_segments(flow)).min(127)
    }

    fn save_cwnd(&mut self, flow: &Flow) {
        let calm = self.previous_state < Some(CongestionState::Recovery);
        if calm && self.mode != Mode::ProbeRtt {
            self.prior_cwnd = flow.cwnd;
        } else {
            self.prior_cwnd = self.prior_cwnd.max(flow.cwnd);
        }
    }

    /// The bandwidth-delay product at a gain, in packets.
    fn bdp(&self, bandwidth: u64, gain: u64) -> u32 {
        if self.min_rtt_us == u32::MAX {
            return 10;
        }
        let product = u128::from(bandwidth) * u128::from(self.min_rtt_us) * u128::from(gain);
        let packets = (product >> 8).div_ceil(u128::from(BW_UNIT));
        u32::try_from(packets).unwrap_or(u32::MAX / 2)
    }

    /// Room for bursts at both ends and for delayed acknowledgements.
    fn with_budget(&self, flow: &Flow, cwnd: u32) -> u32 {
        let cwnd = cwnd.saturating_add(3 * self.burst_goal(flow));
        let even = cwnd.saturating_add(1) & !1;
        if self.mode == Mode::ProbeBandwidth && self.cycle == 0 {
            even + 2
        } else {
            even
        }
    }

    fn inflight_goal(&self, flow: &Flow, bandwidth: u64, gain: u64) -> u32 {
        self.with_budget(flow, self.bdp(bandwidth, gain))
    }

    /// Packets in the network when the next one departs.
    fn in_network_at_departure(&self, flow: &Flow, in_flight: u32) -> u32 {
        let wait_us = flow.next_departure.saturating_since(flow.now).as_micros();
        let delivered = (u128::from(self.bandwidth()) * wait_us) >> 24;
        let mut at_departure = u128::from(in_flight);
        if self.pacing_gain > UNIT {
            at_departure += u128::from(self.burst_goal(flow));
        }
        at_departure.saturating_sub(delivered) as u32
    }

    fn aggregation_window(&self) -> u32 {
        if !self.full {
            return 0;
        }
        let most = (u128::from(self.bandwidth()) * u128::from(EXTRA_ACKED_MAX_US)) >> 24;
        u128::from(self.extra.most()).min(most) as u32
    }

    /// Recovery begins with packet conservation for a round trip and ends with
    /// the window from before. Returns the window and whether it is final.
    fn recover_or_restore(&mut self, flow: &Flow, sample: &RateSample) -> (u32, bool) {
        let previous = self.previous_state.unwrap_or(CongestionState::Open);
        let mut cwnd = flow.cwnd;
        if sample.losses > 0 {
            cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        let conserved = flow.in_flight() + sample.acked_sacked;
        if flow.state == CongestionState::Recovery && previous != CongestionState::Recovery {
            self.packet_conservation = true;
            self.round_end = flow.delivered;
            cwnd = conserved;
        } else if previous >= CongestionState::Recovery && flow.state < CongestionState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.previous_state = Some(flow.state);
        if self.packet_conservation {
            return (cwnd.max(conserved), true);
        }
        (cwnd, false)
    }

    fn set_cwnd(&mut self, flow: &mut Flow, sample: &RateSample) {
        let acked = sample.acked_sacked;
        let mut cwnd = flow.cwnd;
        if acked > 0 {
            let (recovered, last) = self.recover_or_restore(flow, sample);
            cwnd = recovered;
            if !last {
                let target = self.bdp(self.bandwidth(), self.cwnd_gain) + self.aggregation_window();
                let target = self.with_budget(flow, target);
                if self.full {
                    cwnd = (cwnd + acked).min(target);
                } else if cwnd < target || flow.delivered < 10 {
                    cwnd += acked;
                }
                cwnd = cwnd.max(MIN_CWND);
            }
        }
        flow.cwnd = cwnd.min(flow.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            flow.cwnd = flow.cwnd.min(MIN_CWND);
        }
    }

    fn is_next_phase(&self, flow: &Flow, sample: &RateSample) -> bool {
        let elapsed = flow.delivered_us.saturating_sub(self.cycle_us);
        let is_full_length = elapsed > u64::from(self.min_rtt_us);
        if self.pacing_gain == UNIT {
            return is_full_length;
        }
        let in_flight = self.in_network_at_departure(flow, sample.prior_in_flight);
        let bandwidth = self.max_bandwidth();
        if self.pacing_gain > UNIT {
            let goal = self.inflight_goal(flow, bandwidth, self.pacing_gain);
            return is_full_length && (sample.losses > 0 || in_flight >= goal);
        }
        is_full_length || in_flight <= self.inflight_goal(flow, bandwidth, UNIT)
    }

    fn advance_phase(&mut self, flow: &Flow) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_us = flow.delivered_us;
    }

    fn enter_probe_bandwidth(&mut self, flow: &mut Flow) {
        self.mode = Mode::ProbeBandwidth;
        self.cycle = CYCLE.len() - 1 - usize::from(flow.draw_phase(Self::PHASES));
        self.advance_phase(flow);
    }

    fn reset_mode(&mut self, flow: &mut Flow) {
        if self.full {
            self.enter_probe_bandwidth(flow);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_policer(&mut self, flow: &mut Flow, sample: &RateSample) {
        let probing = self.mode == Mode::ProbeBandwidth;
        match self.policer.update(flow, sample, self.round_start, probing) {
            policer::Finding::Nothing => {}
            // At once, before this acknowledgement ends a phase of the cycle.
            policer::Finding::Policed => self.pacing_gain = UNIT,
            policer::Finding::GivenUp => self.enter_probe_bandwidth(flow),
        }
    }

    fn update_bandwidth(&mut self, flow: &mut Flow, sample: &RateSample) {
        self.round_start = false;
        let (Some(delivered), Some(interval_us)) = (sample.delivered, sample.interval_us) else {
            return;
        };
        if interval_us == 0 {
            return;
        }
        if sample.prior_delivered >= self.round_end {
            self.round_end = flow.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.update_policer(flow, sample);
        let bandwidth = delivered * BW_UNIT / interval_us;
        if !sample.is_app_limited || bandwidth >= self.max_bandwidth() {
            self.bandwidth.maximum(BW_ROUNDS, self.rounds, bandwidth);
        }
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.full || !self.round_start || sample.is_app_limited {
            return;
        }
        if self.max_bandwidth() >= self.full_bandwidth * 5 / 4 {
            self.full_bandwidth = self.max_bandwidth();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, flow: &mut Flow) {
        let goal = self.inflight_goal(flow, self.max_bandwidth(), UNIT);
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            flow.ssthresh = goal;
        }
        let in_network = self.in_network_at_departure(flow, flow.in_flight());
        if self.mode == Mode::Drain && in_network <= goal {
            self.enter_probe_bandwidth(flow);
        }
    }

    fn check_probe_rtt_done(&mut self, flow: &mut Flow) {
        if self.probe_rtt_done.is_some_and(|done| flow.ticks > done) {
            self.min_rtt_ticks = flow.ticks;
            flow.cwnd = flow.cwnd.max(self.prior_cwnd);
            self.reset_mode(flow);
        }
    }

    fn update_min_rtt(&mut self, flow: &mut Flow, sample: &RateSample) {
        let expired = flow.ticks > self.min_rtt_ticks + MIN_RTT_SECONDS * flow.hz;
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < self.min_rtt_us || (expired && !sample.is_ack_delayed))
        {
            self.min_rtt_us = rtt_us;
            self.min_rtt_ticks = flow.ticks;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            // In this order, so that a larger window from before the last loss is kept.
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(flow);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(flow);
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, flow: &mut Flow) {
        flow.app_limited = (flow.delivered + u64::from(flow.in_flight())).max(1);
        if self.probe_rtt_done.is_none() {
            if flow.in_flight() <= MIN_CWND {
                self.probe_rtt_done = Some(flow.ticks + (PROBE_RTT_MS * flow.hz).div_ceil(1000));
                self.probe_rtt_round_done = false;
                self.round_end = flow.delivered;
            }
        } else {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(flow);
            }
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.bandwidth().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn init(&mut self, flow: &mut Flow) {
        flow.ssthresh = INFINITE_SSTHRESH;
        *self = Self {
            round_end: flow.delivered,
            previous_state: Some(CongestionState::Open),
            min_rtt_us: flow.min_rtt_us,
            min_rtt_ticks: flow.ticks,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            ..Self::default()
        };
        self.init_pacing_rate(flow);
        self.policer.reset(flow);
        self.extra.begin_epoch(flow.now_us());
        flow.pacing = true;
    }

    fn threshold_after_loss(&mut self, flow: &mut Flow) -> u32 {
        self.save_cwnd(flow);
        flow.ssthresh
    }

    fn window_after_undo(&mut self, flow: &mut Flow) -> u32 {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
        self.policer.reset(flow);
        flow.cwnd
    }

    fn on_state(&mut self, flow: &mut Flow, state: CongestionState) {
        if state == CongestionState::Loss {
            self.previous_state = Some(CongestionState::Loss);
            self.full_bandwidth = 0;
            // A timeout begins a round.
            self.round_start = true;
            let sample = RateSample {
                losses: 1,
                ..RateSample::default()
            };
            self.update_policer(flow, &sample);
        }
    }

    fn on_event(&mut self, flow: &mut Flow, event: CongestionEvent) {
        if event == CongestionEvent::TransmitStart && flow.app_limited > 0 {
            self.idle_restart = true;
            self.extra.begin_epoch(flow.now_us());
            match self.mode {
                Mode::ProbeBandwidth => self.set_pacing_rate(flow, UNIT),
                Mode::ProbeRtt => self.check_probe_rtt_done(flow),
                Mode::Startup | Mode::Drain => {}
            }
        }
    }

    fn controls_all(&self) -> bool {
        true
    }

    fn control(&mut self, flow: &mut Flow, sample: &RateSample) {
        self.update_bandwidth(flow, sample);
        let bandwidth = self.bandwidth();
        self.extra.update(flow, sample, bandwidth, self.round_start);
        if self.mode == Mode::ProbeBandwidth && self.is_next_phase(flow, sample) {
            self.advance_phase(flow);
        }
        self.check_full(sample);
        self.check_drain(flow);
        self.update_min_rtt(flow, sample);
        self.update_gains();
        self.set_pacing_rate(flow, self.pacing_gain);
        self.set_cwnd(flow, sample);
    }

    fn min_burst_segments(&self, flow: &Flow) -> u32 {
        if flow.pacing_rate < MIN_BURST_RATE {
            1
        } else {
            2
        }
    }

    fn send_buffer_windows(&self) -> u32 {
        3
    }
}

#[cfg(test)]
mod tests;
