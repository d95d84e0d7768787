//! How many more packets are acknowledged at once than the bandwidth explains
//! (aggregation, as on Wi-Fi), at most over the last five to ten round trips
//! (Linux 6.1 `bbr_update_ack_aggregation`).

use super::{Flow, RateSample};

/// Round trips of each half of the window.
const ROUNDS: u32 = 5;
/// Packets after which an epoch begins anew.
const EPOCH_LIMIT: u64 = 1 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct ExtraAcked {
    epoch_us: u64,
    epoch_acked: u64,
    most: [u32; 2],
    rounds: u32,
    index: usize,
}

impl ExtraAcked {
    /// The most packets in excess.
    pub(super) fn most(&self) -> u32 {
        self.most[0].max(self.most[1])
    }

    /// Counts anew from `now_us`.
    pub(super) const fn begin_epoch(&mut self, now_us: u64) {
        self.epoch_us = now_us;
        self.epoch_acked = 0;
    }

    /// Takes a sample at a bandwidth in packets a microsecond times 2^24.
    pub(super) fn update(
        &mut self,
        flow: &Flow,
        sample: &RateSample,
        bandwidth: u64,
        round_start: bool,
    ) {
        let valid = sample.delivered.is_some() && sample.interval_us.is_some_and(|us| us > 0);
        if sample.acked_sacked == 0 || !valid {
            return;
        }
        if round_start {
            self.rounds = (self.rounds + 1).min(31);
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.index ^= 1;
                self.most[self.index] = 0;
            }
        }
        let epoch_us = flow.delivered_us.saturating_sub(self.epoch_us);
        let mut expected = ((u128::from(bandwidth) * u128::from(epoch_us)) >> 24) as u64;
        let acked = u64::from(sample.acked_sacked);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_LIMIT {
            self.begin_epoch(flow.delivered_us);
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(EPOCH_LIMIT - 1);
        let more = self.epoch_acked.saturating_sub(expected);
        let more = more.min(u64::from(flow.cwnd)) as u32;
        self.most[self.index] = self.most[self.index].max(more);
    }
}
