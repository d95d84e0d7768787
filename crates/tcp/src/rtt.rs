//! Round-trip time and retransmission timeout as Linux reckons them.
//!
//! Not RFC 6298's formula: Linux keeps the largest deviation of a round trip,
//! holds it at 200 ms at least, lets it fall by a quarter a round trip, and
//! counts deviations towards shorter times an eighth (Linux 6.1
//! `tcp_rtt_estimator`, `tcp_set_rto`).

use crate::Seq;
use crate::time::Ticks;
use crate::windowed::Windowed;

/// The longest retransmission timeout, in seconds (Linux 6.1 `TCP_RTO_MAX`).
pub(crate) const RTO_MAX_SECONDS: u64 = 120;

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// Eight times the smoothed round-trip time, in microseconds; 0 before the
    /// first sample.
    srtt_us_x8: u32,
    /// Four times the mean deviation, in microseconds.
    mdev_us: u32,
    mdev_max_us: u32,
    /// What is added to the smoothed time for the timeout, in microseconds.
    rttvar_us: u32,
    round_end: Seq,
    rto_min_us: u32,
    /// The minimum over the last five minutes, in microseconds.
    minimum: Windowed,
    seen: bool,
}

impl RttEstimator {
    /// An estimator without a sample; `rto_min_us` is the floor under the
    /// variance, 200 ms in Linux.
    pub(crate) fn new(rto_min_us: u32) -> Self {
        Self {
            srtt_us_x8: 0,
            mdev_us: 1_000_000,
            mdev_max_us: 0,
            rttvar_us: 0,
            round_end: Seq(0),
            rto_min_us,
            minimum: Windowed::new(0, u64::from(u32::MAX)),
            seen: false,
        }
    }

    /// The handshake gave no sample, as of what was sent again none is taken without time
    /// stamps: the timeout is 3 s until there is one (RFC 6298, section 5.7; Linux 6.1
    /// `TCP_TIMEOUT_FALLBACK`).
    pub(crate) fn fall_back(&mut self) {
        self.rttvar_us = 3_000_000;
        self.mdev_us = self.rttvar_us;
        self.mdev_max_us = self.rttvar_us;
    }

    /// Takes a sample in microseconds; `una` and `next` are the send
    /// sequence's ends.
    pub(crate) fn sample(&mut self, rtt_us: u32, una: Seq, next: Seq) {
        let rtt = i64::from(rtt_us);
        if self.srtt_us_x8 == 0 {
            self.mdev_us = saturate(rtt * 2);
            self.rttvar_us = self.mdev_us.max(self.rto_min_us);
            self.mdev_max_us = self.rttvar_us;
            self.round_end = next;
            self.srtt_us_x8 = saturate(rtt * 8).max(1);
            return;
        }
        let error = rtt - i64::from(self.srtt_us_x8 >> 3);
        self.srtt_us_x8 = saturate(i64::from(self.srtt_us_x8) + error).max(1);
        let mut change = error.abs() - i64::from(self.mdev_us >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev_us = saturate(i64::from(self.mdev_us) + change);
        if self.mdev_us > self.mdev_max_us {
            self.mdev_max_us = self.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
        if una.after(self.round_end) {
            if self.mdev_max_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
            }
            self.round_end = next;
            self.mdev_max_us = self.rto_min_us;
        }
    }

    /// Takes a sample into the minimum over `window_ticks` (Linux 6.1
    /// `tcp_update_rtt_min`; 300 s). A sample that a delayed acknowledgement
    /// may have lengthened counts only if it is no longer than the minimum.
    pub(crate) fn sample_minimum(
        &mut self,
        rtt_us: u32,
        maybe_delayed: bool,
        window_ticks: u64,
        ticks: u64,
    ) {
        if maybe_delayed && rtt_us > self.min_us() {
            return;
        }
        if self.seen {
            self.minimum.minimum(window_ticks, ticks, u64::from(rtt_us));
        } else {
            self.minimum = Windowed::new(ticks, u64::from(rtt_us));
            self.seen = true;
        }
    }

    /// Eight times the smoothed round-trip time in microseconds; 0 before the
    /// first sample.
    pub(crate) const fn srtt_us_x8(&self) -> u32 {
        self.srtt_us_x8
    }

    /// The mean deviation in microseconds.
    pub(crate) const fn deviation_us(&self) -> u32 {
        self.mdev_us >> 2
    }

    /// The minimum in microseconds; `u32::MAX` before the first sample.
    pub(crate) const fn min_us(&self) -> u32 {
        self.minimum.get() as u32
    }

    /// The timeout in ticks, without backoff, at most 120 s.
    pub(crate) fn rto_ticks(&self, ticks: Ticks) -> u64 {
        let microseconds = u64::from(self.srtt_us_x8 >> 3) + u64::from(self.rttvar_us);
        ticks
            .of_micros(microseconds)
            .min(RTO_MAX_SECONDS * ticks.hz())
    }
}

fn saturate(microseconds: i64) -> u32 {
    u32::try_from(microseconds.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::RttEstimator;
    use crate::Seq;
    use crate::time::Ticks;

    fn ticks() -> Ticks {
        Ticks::new(1000, false)
    }

    #[test]
    fn the_first_sample_makes_the_timeout_three_times_itself() {
        let mut rtt = RttEstimator::new(200_000);
        rtt.sample(300_000, Seq(0), Seq(100));
        assert_eq!(rtt.rto_ticks(ticks()), 900);
    }

    #[test]
    fn the_timeout_of_a_steady_path_is_200_ms_above_its_round_trip() {
        for path_ms in [1, 20, 80, 400] {
            let mut rtt = RttEstimator::new(200_000);
            for i in 0..200 {
                rtt.sample(path_ms * 1000, Seq(i * 10), Seq(i * 10 + 5));
            }
            let rto = rtt.rto_ticks(ticks());
            assert!(
                (200 + u64::from(path_ms)..=202 + u64::from(path_ms)).contains(&rto),
                "{rto}"
            );
        }
    }

    #[test]
    fn a_sudden_long_round_trip_raises_the_timeout_at_once_and_a_short_one_hardly() {
        let mut rtt = RttEstimator::new(200_000);
        for i in 0..100 {
            rtt.sample(100_000, Seq(i * 10), Seq(i * 10 + 5));
        }
        let mut longer = rtt.clone();
        longer.sample(1_100_000, Seq(1000), Seq(1005));
        assert!(longer.rto_ticks(ticks()) > 1_000);
        // 99 ms off, of which an eighth counts, is below the floor of the variance.
        rtt.sample(1_000, Seq(1000), Seq(1005));
        assert_eq!(rtt.rto_ticks(ticks()), 288);
    }

    /// Linux 6.1 `tcp_rtt_estimator`: the first sample R makes the deviation R/2 (kept four
    /// times); one of R/4 then is 3/4 R off, R/4 more than the deviation, of which an eighth
    /// counts.
    #[test]
    fn a_deviation_towards_shorter_times_counts_an_eighth() {
        let mut rtt = RttEstimator::new(200_000);
        rtt.sample(400_000, Seq(0), Seq(100));
        rtt.sample(100_000, Seq(50), Seq(100));
        // 400 - 300 / 8 and 800 + 100 / 8 ms.
        assert_eq!(rtt.rto_ticks(ticks()), 1_175);
        // Towards longer times all of it counts: 362.5 + 437.5 / 8 and 812.5 + (437.5 - 203.125).
        rtt.sample(800_000, Seq(50), Seq(100));
        assert_eq!(rtt.rto_ticks(ticks()), 1_465);
    }

    /// The same function: at the end of each round trip the variance falls by a quarter of
    /// what it is above the largest deviation of that round trip.
    #[test]
    fn the_variance_falls_by_a_quarter_each_round_trip() {
        let mut rtt = RttEstimator::new(200_000);
        let mut found = Vec::new();
        for round in 0..4 {
            rtt.sample(320_000, Seq(round * 100 + 1), Seq(round * 100 + 100));
            found.push(rtt.rto_ticks(ticks()));
        }
        // 320 ms and 640, then still (the first round's largest was as much), then
        // 640 - (640 - 360) / 4, then 570 - (570 - 270) / 4.
        assert_eq!(found, [960, 960, 890, 815]);
    }

    #[test]
    fn a_round_trip_delayed_by_the_peer_does_not_raise_the_minimum() {
        let mut rtt = RttEstimator::new(200_000);
        rtt.sample_minimum(20_000, false, 300_000, 0);
        rtt.sample_minimum(60_000, true, 300_000, 400_000);
        assert_eq!(rtt.min_us(), 20_000);
        rtt.sample_minimum(60_000, false, 300_000, 400_000);
        assert_eq!(rtt.min_us(), 60_000);
    }

    #[test]
    fn no_sample_overflows() {
        let mut rtt = RttEstimator::new(200_000);
        for sample in [u32::MAX, 0, u32::MAX, 1, 0, 0] {
            rtt.sample(sample, Seq(10), Seq(5));
            assert!(rtt.rto_ticks(ticks()) <= 120_000);
        }
    }
}
