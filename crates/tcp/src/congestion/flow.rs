//! What a congestion control sees of a connection, and may set.

use crate::Seq;
use crate::random::Random;
use crate::sent::Departure;
use crate::time::Instant;

/// A slow-start threshold that was never set (Linux 6.1
/// `TCP_INFINITE_SSTHRESH`).
pub(crate) const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The state of loss recovery (Linux 6.1 `enum tcp_ca_state`), in the order in
/// which they grow more serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CongestionState {
    /// Nothing unusual.
    Open,
    /// Duplicate or selective acknowledgements were seen.
    Disorder,
    /// The window is being reduced for congestion notified (ECN).
    WindowReduced,
    /// Fast recovery.
    Recovery,
    /// A retransmission timeout.
    Loss,
}

/// The delivery rate over one acknowledgement (draft-cheng-iccrg-delivery-rate-
/// estimation; Linux 6.1 `struct rate_sample`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// [`Flow::delivered`] when the packet acknowledged was sent; 0 if none.
    pub prior_delivered: u64,
    /// When that count was made, in microseconds.
    pub(crate) prior_us: Option<u64>,
    /// Packets delivered over the interval; none for an invalid sample.
    pub delivered: Option<u64>,
    /// The interval in microseconds; none for an invalid sample.
    pub interval_us: Option<u64>,
    /// Round-trip time of the last packet acknowledged, in microseconds.
    pub rtt_us: Option<u32>,
    /// Packets newly marked lost.
    pub losses: u32,
    /// Packets newly acknowledged, also selectively.
    pub acked_sacked: u32,
    /// Packets in flight before the acknowledgement.
    pub prior_in_flight: u32,
    pub(crate) last: Departure,
    /// Whether the application, not the network, limited the rate.
    pub is_app_limited: bool,
    /// Whether the packet was a retransmission.
    pub is_retransmission: bool,
    /// Whether the acknowledgement was probably a delayed one.
    pub is_ack_delayed: bool,
}

/// A connection as its congestion control sees it. Packets are segments of up
/// to [`mss`](Self::mss) bytes.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The present.
    pub now: Instant,
    /// The present in ticks of the kernel's clock (jiffies).
    pub ticks: u64,
    /// Ticks a second.
    pub hz: u64,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Slow-start threshold in packets.
    pub ssthresh: u32,
    /// Packets counted towards the next growth of the window.
    pub cwnd_count: u32,
    /// The largest window in packets; four million, as far as CUBIC's integers
    /// reach.
    pub cwnd_clamp: u32,
    /// The window before the reduction under way, in packets.
    pub prior_cwnd: u32,
    /// Maximum segment size in bytes.
    pub mss: u32,
    /// Eight times the smoothed round-trip time in microseconds; 0 if unknown.
    pub srtt_us_x8: u32,
    /// Minimum round-trip time in microseconds; `u32::MAX` if unknown.
    pub min_rtt_us: u32,
    /// Packets between [`una`](Self::una) and [`next`](Self::next).
    pub packets_out: u32,
    /// Of those, packets selectively acknowledged.
    pub sacked_out: u32,
    /// Of those, packets thought lost.
    pub lost_out: u32,
    /// Retransmissions in flight.
    pub retransmitted_out: u32,
    /// The most packets out in the last round trip.
    pub max_packets_out: u32,
    /// Whether the window was full in the last round trip.
    pub is_cwnd_limited: bool,
    /// Packets delivered so far.
    pub delivered: u64,
    /// When the last was, in microseconds.
    pub delivered_us: u64,
    /// Packets marked lost so far.
    pub lost: u64,
    /// The count of [`delivered`](Self::delivered) up to which samples are
    /// limited by the application; 0 if none is.
    pub app_limited: u64,
    /// The first byte not yet acknowledged.
    pub una: Seq,
    /// The next byte to send.
    pub next: Seq,
    /// When data was last sent, in ticks.
    pub last_sent_ticks: u64,
    /// Pacing rate in bytes a second; `u64::MAX` if unset.
    pub pacing_rate: u64,
    /// The highest pacing rate the application allows.
    pub max_pacing_rate: u64,
    /// Whether packets are paced.
    pub pacing: bool,
    /// The earliest departure of the next packet, if paced.
    pub next_departure: Instant,
    /// State of loss recovery.
    pub state: CongestionState,
    random: Random,
    /// What is drawn before anything random.
    phases: std::vec::IntoIter<u8>,
    phases_drawn: usize,
}

impl Flow {
    #[cfg(test)]
    pub(crate) fn new(mss: u32, seed: u64) -> Self {
        Self::with_phases(mss, seed, Vec::new())
    }

    /// Phases are drawn from `phases` as long as there are any.
    pub(crate) fn with_phases(mss: u32, seed: u64, phases: Vec<u8>) -> Self {
        Self {
            now: Instant::ZERO,
            ticks: 0,
            hz: 1000,
            cwnd: 10,
            ssthresh: INFINITE_SSTHRESH,
            cwnd_count: 0,
            cwnd_clamp: 1 << 22,
            prior_cwnd: 0,
            mss,
            srtt_us_x8: 0,
            min_rtt_us: u32::MAX,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retransmitted_out: 0,
            max_packets_out: 0,
            is_cwnd_limited: false,
            delivered: 0,
            delivered_us: 0,
            lost: 0,
            app_limited: u64::MAX,
            una: Seq(0),
            next: Seq(0),
            last_sent_ticks: 0,
            pacing_rate: u64::MAX,
            max_pacing_rate: u64::MAX,
            pacing: false,
            next_departure: Instant::ZERO,
            state: CongestionState::Open,
            random: Random::new(seed),
            phases: phases.into_iter(),
            phases_drawn: 0,
        }
    }

    /// One of `count` phases.
    pub(crate) fn draw_phase(&mut self, count: u8) -> u8 {
        self.phases_drawn += 1;
        let given = self.phases.next().map(|phase| phase % count);
        given.unwrap_or_else(|| self.random.below(u32::from(count)) as u8)
    }

    /// How often a phase was drawn ([`Config::bbr_phases`](crate::Config::bbr_phases)).
    #[must_use]
    pub const fn phases_drawn(&self) -> usize {
        self.phases_drawn
    }

    /// The present in microseconds.
    #[must_use]
    pub const fn now_us(&self) -> u64 {
        self.now.as_micros()
    }

    /// Packets that left the network without being acknowledged cumulatively.
    #[must_use]
    pub const fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }

    /// Packets in flight, retransmissions included.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        (self.packets_out + self.retransmitted_out).saturating_sub(self.left_out())
    }

    /// Whether the window is below the slow-start threshold.
    #[must_use]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether the window is being reduced (PRR).
    #[must_use]
    pub const fn in_reduction(&self) -> bool {
        matches!(
            self.state,
            CongestionState::WindowReduced | CongestionState::Recovery
        )
    }

    /// Whether the window, not the application, limits what is sent; in slow
    /// start, where the window doubles, using half of it is enough (Linux 6.1
    /// `tcp_is_cwnd_limited`).
    #[must_use]
    pub const fn is_limited_by_cwnd(&self) -> bool {
        self.is_cwnd_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_packets_out)
    }

    /// The threshold to remember: after a reduction at least three quarters of
    /// the window (Linux 6.1 `tcp_current_ssthresh`).
    #[must_use]
    pub fn current_ssthresh(&self) -> u32 {
        if self.in_reduction() {
            self.ssthresh
        } else {
            self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
        }
    }

    /// Slow start over `acked` packets; returns those left when the threshold
    /// is reached (Linux 6.1 `tcp_slow_start`).
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let rest = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.cwnd_clamp);
        rest
    }

    /// Grows the window by one packet for every `per` acknowledged (Linux 6.1
    /// `tcp_cong_avoid_ai`).
    pub fn additive_increase(&mut self, per: u32, acked: u32) {
        if self.cwnd_count >= per {
            self.cwnd_count = 0;
            self.cwnd += 1;
        }
        self.cwnd_count += acked;
        if self.cwnd_count >= per {
            let growth = self.cwnd_count / per;
            self.cwnd_count -= growth * per;
            self.cwnd += growth;
        }
        self.cwnd = self.cwnd.min(self.cwnd_clamp);
    }

    /// Sets the pacing rate from window and round-trip time: twice their ratio
    /// in the first half of slow start, 1.2 times after (Linux 6.1
    /// `tcp_update_pacing_rate`).
    pub(crate) fn update_pacing_rate(&mut self) {
        let ratio = if self.cwnd < self.ssthresh / 2 {
            200
        } else {
            120
        };
        let mut rate = u64::from(self.mss) * (10_000 << 3) * ratio;
        rate = rate.saturating_mul(u64::from(self.cwnd.max(self.packets_out)));
        if self.srtt_us_x8 > 0 {
            rate /= u64::from(self.srtt_us_x8);
        }
        self.pacing_rate = rate.min(self.max_pacing_rate);
    }
}
