//! BBR's model of a token-bucket policer: two intervals of at least four round
//! trips, both with a fifth of the packets lost and much the same throughput,
//! and BBR paces at that throughput for 48 round trips (Linux 6.1
//! `bbr_lt_bw_sampling`).

use super::{BW_UNIT, Flow, RateSample, UNIT, bytes_per_second};

/// The fewest round trips of an interval.
const INTERVAL_ROUNDS: u32 = 4;
/// The share of packets lost that looks like a policer, in 256ths.
const LOSS: u64 = 50;
/// How far two bandwidths may be apart: an eighth, or 4 kbit/s.
const RATIO: u64 = UNIT / 8;
const DIFFERENCE: u64 = 4_000 / 8;
/// How many round trips the estimate is used.
const USE_ROUNDS: u32 = 48;

/// What a sample showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing new.
    Nothing,
    /// The path is policed: from now on the estimate is used.
    Policed,
    /// The estimate was used for long enough; bandwidth is to be probed again.
    GivenUp,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    in_use: bool,
    rounds: u32,
    bandwidth: u64,
    last_delivered: u64,
    last_lost: u64,
    last_ms: u64,
}

impl Policer {
    /// The policed bandwidth, if BBR believes in one.
    pub(super) fn bandwidth(&self) -> Option<u64> {
        self.in_use.then_some(self.bandwidth)
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, flow: &Flow) {
        *self = Self::default();
        self.begin_interval(flow);
    }

    const fn begin_interval(&mut self, flow: &Flow) {
        self.last_ms = flow.delivered_us / 1_000;
        self.last_delivered = flow.delivered;
        self.last_lost = flow.lost;
        self.rounds = 0;
    }

    /// Takes a sample.
    pub(super) fn update(
        &mut self,
        flow: &Flow,
        sample: &RateSample,
        round_start: bool,
        probing: bool,
    ) -> Finding {
        if self.in_use {
            if probing && round_start {
                self.rounds += 1;
                if self.rounds >= USE_ROUNDS {
                    self.reset(flow);
                    return Finding::GivenUp;
                }
            }
            return Finding::Nothing;
        }
        if !self.is_sampling {
            if sample.losses == 0 {
                return Finding::Nothing;
            }
            self.begin_interval(flow);
            self.is_sampling = true;
        }
        if sample.is_app_limited {
            self.reset(flow);
            return Finding::Nothing;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < INTERVAL_ROUNDS {
            return Finding::Nothing;
        }
        if self.rounds > 4 * INTERVAL_ROUNDS {
            self.reset(flow);
            return Finding::Nothing;
        }
        if sample.losses > 0 {
            self.end_interval(flow);
        }
        if self.in_use {
            Finding::Policed
        } else {
            Finding::Nothing
        }
    }

    fn end_interval(&mut self, flow: &Flow) {
        let lost = flow.lost - self.last_lost;
        let delivered = flow.delivered - self.last_delivered;
        if delivered == 0 || lost << 8 < LOSS * delivered {
            return;
        }
        let ms = (flow.delivered_us / 1_000).saturating_sub(self.last_ms);
        if ms == 0 {
            return;
        }
        if ms >= u64::from(u32::MAX) / 1_000 {
            self.reset(flow);
            return;
        }
        let bandwidth = delivered * BW_UNIT / (ms * 1_000);
        if self.bandwidth > 0 {
            let difference = bandwidth.abs_diff(self.bandwidth);
            if difference * UNIT <= RATIO * self.bandwidth
                || bytes_per_second(flow, difference, UNIT) <= DIFFERENCE
            {
                self.bandwidth = u64::midpoint(bandwidth, self.bandwidth);
                self.in_use = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = bandwidth;
        self.begin_interval(flow);
    }
}
