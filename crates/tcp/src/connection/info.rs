//! What an application or an administrator may ask of a connection (Linux 6.1
//! `tcp_get_info`, `TCP_INFO`).

use std::time::Duration;

use super::Connection;
use crate::congestion::CongestionState;
use crate::state::State;

/// A connection as `TCP_INFO` reports it. Counts are segments unless they say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Where the connection stands.
    pub state: State,
    /// State of loss recovery.
    pub congestion: CongestionState,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold; 2,147,483,647 before the first reduction.
    pub ssthresh: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rtt_deviation: Duration,
    /// The least round-trip time of the last five minutes; none before the first sample.
    pub rtt_least: Option<Duration>,
    /// Retransmission timeout, with backoff.
    pub rto: Duration,
    /// How often the timeout was doubled since the last progress.
    pub backoff: u32,
    /// Timeouts since the last progress.
    pub retransmits: u32,
    /// Probes of the peer's window, or for its life, without an answer.
    pub probes: u32,
    /// How long an acknowledgement is delayed; zero before the first data.
    pub delayed_ack: Duration,
    /// Sent and not acknowledged.
    pub unacked: u32,
    /// Of those, selectively acknowledged.
    pub sacked: u32,
    /// Of those, thought lost.
    pub lost: u32,
    /// Retransmissions in flight.
    pub retransmitted: u32,
    /// Retransmissions so far.
    pub total_retransmitted: u64,
    /// By how many segments the path reorders, as far as was seen; 3 at first.
    pub reordering: u32,
    /// How often reordering was seen.
    pub reordering_seen: u32,
    /// Duplicates of ours that the peer has reported.
    pub duplicates_reported: u64,
    /// Segments delivered, also selectively.
    pub delivered: u64,
    /// Largest segment sent, in bytes of payload.
    pub mss: u32,
    /// The peer's, as it is guessed from what came, in bytes.
    pub peer_mss: u32,
    /// The segment size we announced to the peer, in bytes, less what time stamps take.
    pub advertised_mss: u32,
    /// MTU of the path in bytes, as far as it is known.
    pub path_mtu: u32,
    /// Up to where the window that we advertise may grow now, in bytes.
    pub receive_threshold: u32,
    /// Round-trip time as the receiver sees it; zero before it was seen.
    pub receive_rtt: Duration,
    /// What the application read in such a time, in bytes.
    pub receive_space: u32,
    /// The peer's window in bytes.
    pub send_window: u32,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes written and never sent, a FIN among them.
    pub not_sent: u32,
    /// Pacing rate in bytes a second; the largest number if there is none.
    pub pacing_rate: u64,
}

impl Connection {
    /// What `TCP_INFO` would report.
    #[must_use]
    pub fn info(&self) -> Info {
        let flow = &self.flow;
        let microseconds = |count: u32| Duration::from_micros(count.into());
        let ticks = |count: u64| Duration::from_micros(self.ticks.to_micros(count));
        Info {
            state: self.state,
            congestion: flow.state,
            cwnd: flow.cwnd,
            ssthresh: flow.ssthresh,
            rtt: microseconds(flow.srtt_us_x8 >> 3),
            rtt_deviation: microseconds(self.rtt.deviation_us()),
            rtt_least: (flow.min_rtt_us < u32::MAX).then(|| microseconds(flow.min_rtt_us)),
            rto: ticks(self.timers.rto),
            backoff: self.timers.backoff,
            retransmits: self.timers.retransmits,
            probes: self.timers.probes_out,
            delayed_ack: ticks(self.feedback.delay_ticks()),
            unacked: flow.packets_out,
            sacked: flow.sacked_out,
            lost: flow.lost_out,
            retransmitted: flow.retransmitted_out,
            total_retransmitted: self.snd.retransmissions,
            reordering: self.rec.reordering,
            reordering_seen: self.rec.reorder_seen,
            duplicates_reported: self.rec.duplicates_reported,
            delivered: flow.delivered,
            mss: flow.mss,
            peer_mss: self.feedback.peer_mss,
            advertised_mss: self.rcv.advertised_mss,
            path_mtu: self.mtu.known(),
            receive_threshold: self.rcv.ssthresh,
            receive_rtt: microseconds(self.rcv.rtt_us_x8 >> 3),
            receive_space: self.rcv.space.2,
            send_window: self.snd.window,
            bytes_acked: self.snd.bytes_acked,
            not_sent: self.snd.write - flow.next,
            pacing_rate: flow.pacing_rate,
        }
    }
}
