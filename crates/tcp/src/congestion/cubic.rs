//! CUBIC (RFC 9438) in the kernel's integers, with `HyStart` (Ha, Rhee,
//! "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks", 2008).
//!
//! The rules are Linux 6.1's `tcp_cubic.c`: β = 717/1024, C = 0.41 (41·10/1024
//! for a round trip of 100 ms), time in 1024ths of a second, fast convergence,
//! the Reno-friendly estimate, at most half a packet of growth for each packet
//! acknowledged.

use super::{AckSample, CongestionControl, CongestionEvent, CongestionState, Flow};
use crate::Seq;

/// β of RFC 9438, section 4.6, in 1024ths.
const BETA: u32 = 717;
const BETA_SCALE: u32 = 1024;
/// C of RFC 9438, section 5.1, times 1024, for a round trip of 100 ms.
const CUBE_RTT_SCALE: u64 = 41 * 10;
/// 2^40 over the scale above: what (Wmax − cwnd) is multiplied by to give K³.
const CUBE_FACTOR: u64 = (1 << 40) / CUBE_RTT_SCALE;
/// Packets to be acknowledged for a packet of Reno-friendly growth, in eighths
/// of the window: 8·(1024 + β)/3/(1024 − β).
const FRIENDLY_SCALE: u32 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);

/// `HyStart` begins at this window, in packets.
const HYSTART_LOW_WINDOW: u32 = 16;
/// Acknowledgements this close, in microseconds, belong to one train.
const HYSTART_ACK_SPACING_US: u64 = 2_000;
/// Samples of a round before its delay counts.
const HYSTART_SAMPLES: u32 = 8;
/// The growth of delay that ends slow start, in microseconds.
const HYSTART_DELAY_US: (u32, u32) = (4_000, 16_000);
/// The most bytes the kernel hands to a device at once (`GSO_LEGACY_MAX_SIZE`
/// less the room for headers).
const GSO_BYTES: u64 = 65_536 - 321;

/// The state of one connection (Linux 6.1 `struct bictcp`).
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// Packets to be acknowledged for a packet of growth.
    per: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_ticks: u64,
    origin: u32,
    /// Time from the beginning of the epoch to the origin, in 1024ths of a
    /// second.
    k: u32,
    /// Minimum round-trip time in microseconds, 0 if none.
    delay_min_us: u32,
    epoch_start: Option<u64>,
    ack_count: u32,
    friendly_cwnd: u32,
    hystart: HyStart,
}

/// The two detectors of `HyStart`.
#[derive(Clone, Debug, Default)]
struct HyStart {
    found: bool,
    samples: u32,
    round_start_us: u64,
    round_end: Seq,
    last_ack_us: u64,
    round_min_us: u32,
}

impl Cubic {
    fn reset(&mut self) {
        *self = Self {
            hystart: HyStart {
                found: false,
                ..self.hystart.clone()
            },
            ..Self::default()
        };
    }

    /// Sets how many packets must be acknowledged for a packet of growth
    /// (Linux 6.1 `bictcp_update`; RFC 9438, sections 4.2 to 4.5).
    fn update(&mut self, flow: &Flow, acked: u32) {
        let cwnd = flow.cwnd;
        self.ack_count += acked;
        if self.last_cwnd == cwnd && flow.ticks - self.last_ticks <= flow.hz / 32 {
            return;
        }
        // The curve is reckoned anew once a tick at most.
        if self.epoch_start.is_none() || flow.ticks != self.last_ticks {
            self.last_cwnd = cwnd;
            self.last_ticks = flow.ticks;
            self.update_curve(flow, acked);
        }
        self.update_friendly(cwnd);
        self.per = self.per.max(2);
    }

    fn update_curve(&mut self, flow: &Flow, acked: u32) {
        let cwnd = flow.cwnd;
        let start = *self.epoch_start.get_or_insert_with(|| {
            self.ack_count = acked;
            self.friendly_cwnd = cwnd;
            if self.last_max_cwnd <= cwnd {
                self.k = 0;
                self.origin = cwnd;
            } else {
                self.k = cubic_root(CUBE_FACTOR * u64::from(self.last_max_cwnd - cwnd));
                self.origin = self.last_max_cwnd;
            }
            flow.ticks
        });
        let delay_ticks = (u64::from(self.delay_min_us) * flow.hz).div_ceil(1_000_000);
        let time = ((flow.ticks.saturating_sub(start) + delay_ticks) << 10) / flow.hz;
        let target = self.target(time);
        self.per = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        };
        if self.last_max_cwnd == 0 {
            self.per = self.per.min(20);
        }
    }

    /// W(t) of RFC 9438, figure 1, at `time` in 1024ths of a second.
    fn target(&self, time: u64) -> u32 {
        let k = u64::from(self.k);
        // Four minutes: 64 bits hold the cube of that and not of much more.
        let offset = time.abs_diff(k).min(1 << 18);
        let delta = (CUBE_RTT_SCALE * offset * offset * offset) >> 40;
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        if time < k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        }
    }

    /// Where Reno would be (RFC 9438, section 4.3).
    fn update_friendly(&mut self, cwnd: u32) {
        let per = ((cwnd * FRIENDLY_SCALE) >> 3).max(1);
        if self.ack_count > per {
            let growth = (self.ack_count - 1) / per;
            self.ack_count -= growth * per;
            self.friendly_cwnd += growth;
        }
        if self.friendly_cwnd > cwnd {
            self.per = self.per.min(cwnd / (self.friendly_cwnd - cwnd));
        }
    }

    fn hystart_reset(&mut self, flow: &Flow) {
        self.hystart = HyStart {
            found: self.hystart.found,
            samples: 0,
            round_start_us: flow.now_us(),
            round_end: flow.next,
            last_ack_us: flow.now_us(),
            round_min_us: u32::MAX,
        };
    }

    /// Ends slow start when acknowledgements come in a train as long as half
    /// the round trip, or the delay has grown by an eighth (Linux 6.1
    /// `hystart_update`).
    fn hystart_update(&mut self, flow: &mut Flow, delay_us: u32) {
        if flow.una.after(self.hystart.round_end) {
            self.hystart_reset(flow);
        }
        if flow.cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        let now_us = flow.now_us();
        let hystart = &mut self.hystart;
        if now_us.saturating_sub(hystart.last_ack_us) <= HYSTART_ACK_SPACING_US {
            hystart.last_ack_us = now_us;
            let mut threshold = u64::from(self.delay_min_us) + ack_delay_us(flow);
            if !flow.pacing {
                threshold >>= 1;
            }
            if now_us.saturating_sub(hystart.round_start_us) > threshold {
                hystart.found = true;
                flow.ssthresh = flow.cwnd;
            }
        }
        hystart.round_min_us = hystart.round_min_us.min(delay_us);
        if hystart.samples < HYSTART_SAMPLES {
            hystart.samples += 1;
            return;
        }
        let growth = (self.delay_min_us >> 3).clamp(HYSTART_DELAY_US.0, HYSTART_DELAY_US.1);
        if hystart.round_min_us > self.delay_min_us + growth {
            hystart.found = true;
            flow.ssthresh = flow.cwnd;
        }
    }
}

/// What bursts may add to a train of acknowledgements, at most a millisecond
/// (Linux 6.1 `hystart_ack_delay`).
fn ack_delay_us(flow: &Flow) -> u64 {
    (GSO_BYTES * 4 * 1_000_000)
        .checked_div(flow.pacing_rate)
        .unwrap_or(0)
        .min(1_000)
}

/// The cube root, 0.2 % off in the mean: the shape of the result from a table of the six
/// highest bits, then one step of Newton and Raphson's (Linux 6.1
/// `cubic_root`).
fn cubic_root(a: u64) -> u32 {
    /// 64·∛x for x from 0 to 63, refined by hand in the kernel.
    const ROOTS: [u8; 64] = [
        0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164,
        168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209,
        211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229, 231, 232, 234, 236, 237, 239, 240,
        242, 244, 245, 246, 248, 250, 251, 252, 254,
    ];
    let bits = 64 - a.leading_zeros();
    if bits < 7 {
        return (u32::from(ROOTS[a as usize]) + 35) >> 6;
    }
    let shift = ((bits * 84) >> 8) - 1;
    let head = (a >> (shift * 3)) as usize;
    let first = ((u32::from(ROOTS[head.min(63)]) + 10) << shift) >> 6;
    let first = u64::from(first.max(2));
    let refined = 2 * first + a / (first * (first - 1));
    ((refined * 341) >> 10) as u32
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn init(&mut self, flow: &mut Flow) {
        self.reset();
        self.hystart_reset(flow);
    }

    fn threshold_after_loss(&mut self, flow: &mut Flow) -> u32 {
        self.epoch_start = None;
        self.last_max_cwnd = if flow.cwnd < self.last_max_cwnd {
            let kept = u64::from(flow.cwnd) * u64::from(BETA_SCALE + BETA);
            (kept / u64::from(2 * BETA_SCALE)) as u32
        } else {
            flow.cwnd
        };
        (flow.cwnd * BETA / BETA_SCALE).max(2)
    }

    fn grow(&mut self, flow: &mut Flow, mut acked: u32) {
        if !flow.is_limited_by_cwnd() {
            return;
        }
        if flow.in_slow_start() {
            acked = flow.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.update(flow, acked);
        flow.additive_increase(self.per, acked);
    }

    fn on_state(&mut self, flow: &mut Flow, state: CongestionState) {
        if state == CongestionState::Loss {
            self.reset();
            self.hystart_reset(flow);
        }
    }

    fn on_event(&mut self, flow: &mut Flow, event: CongestionEvent) {
        if event != CongestionEvent::TransmitStart {
            return;
        }
        // The time in which the application had nothing to send does not count.
        if let Some(start) = &mut self.epoch_start {
            let idle = flow.ticks.saturating_sub(flow.last_sent_ticks);
            *start = (*start + idle).min(flow.ticks);
        }
    }

    fn on_packets_acked(&mut self, flow: &mut Flow, sample: &AckSample) {
        let Some(rtt_us) = sample.rtt_us else {
            return;
        };
        // Right after a recovery, delays say little.
        if self
            .epoch_start
            .is_some_and(|start| flow.ticks - start < flow.hz)
        {
            return;
        }
        let delay_us = rtt_us.max(1);
        if self.delay_min_us == 0 || self.delay_min_us > delay_us {
            self.delay_min_us = delay_us;
        }
        if !self.hystart.found && flow.in_slow_start() {
            self.hystart_update(flow, delay_us);
        }
    }
}

#[cfg(test)]
mod tests;
