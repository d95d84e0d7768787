//! Segment size and path MTU: what both ends allow (RFC 9293, section 3.7.1),
//! what routers refuse (RFC 1191, RFC 8201), and probing where they are silent
//! (RFC 4821; Linux 6.1 `tcp_mtu_probe`).

use super::Connection;
use crate::config::{Config, MtuProbing};
use crate::congestion::CongestionState;
use crate::sent::{Marks, Sent};
use crate::{Instant, Seq};

/// The smallest segment sent (`tcp_min_snd_mss`), the one to begin a search
/// with (`tcp_base_mss`), and the floor of the search (`tcp_mtu_probe_floor`).
const MIN_MSS: u32 = 48;
const BASE_MSS: u32 = 1_024;
const FLOOR_MSS: u32 = 48;
/// A search ends when its bounds are this close, and begins anew after 600 s.
const CLOSE: u32 = 8;
const AGAIN_SECONDS: u64 = 600;
/// The smallest MTU a router's message is believed of (`ip_rt_min_pmtu`, RFC 8200).
const LEAST_MTU: (u32, u32) = (552, 1_280);

/// The search for the largest packet.
#[derive(Debug)]
pub(super) struct PathMtu {
    ip_header: u32,
    /// The MTU as the first hop and routers report it.
    mtu: u32,
    is_searching: bool,
    low: u32,
    high: u32,
    /// The probe under way: its packet's size, and its range.
    probe: Option<(u32, Seq, Seq)>,
    since: u64,
}

/// What became of the wish to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    None,
    Wait,
    Sent,
}

impl PathMtu {
    pub(super) fn new(config: &Config, is_ipv4: bool) -> Self {
        let mtu = config.mtu.clamp(576, 65_535);
        Self {
            ip_header: if is_ipv4 { 20 } else { 40 },
            mtu,
            is_searching: false,
            low: 0,
            high: mtu,
            probe: None,
            since: 0,
        }
    }

    /// The segment size to advertise: what fits without options.
    pub(super) const fn advertised_mss(&self) -> u32 {
        self.mtu - self.ip_header - 20
    }

    /// The MTU as the first hop and routers report it.
    pub(super) const fn known(&self) -> u32 {
        self.mtu
    }

    pub(super) const fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    pub(super) const fn abandon_probe(&mut self) {
        self.probe = None;
    }
}

impl Connection {
    fn mtu_to_mss(&self, mtu: u32) -> u32 {
        let whole = mtu.saturating_sub(self.mtu.ip_header + 20);
        let whole = whole.min(self.snd.mss_clamp).max(MIN_MSS);
        whole.saturating_sub(self.snd.header - 20).max(8)
    }

    fn mss_to_mtu(&self, mss: u32) -> u32 {
        mss + self.snd.header + self.mtu.ip_header
    }

    /// Begins the search, if there is to be one: when a connection is opened, and again
    /// when the peer's limit is known. The segment size follows when it is next set, which
    /// for the side that was asked to connect is later (Linux 6.1 `tcp_mtup_init`).
    pub(super) fn init_mtu_search(&mut self) {
        self.mtu.is_searching = self.config.mtu_probing == MtuProbing::Always;
        self.mtu.high = (self.snd.mss_clamp + 20 + self.mtu.ip_header).min(self.mtu.mtu);
        self.mtu.low = self.mss_to_mtu(BASE_MSS);
        self.mtu.since = self.flow.ticks;
    }

    /// Sets the segment size (Linux 6.1 `tcp_sync_mss`): at most half of the
    /// largest window the peer ever advertised.
    pub(super) fn sync_mss(&mut self) {
        self.mtu.high = self.mtu.high.min(self.mtu.mtu);
        let mut mss = self.mtu_to_mss(self.mtu.mtu);
        let widest = self.snd.max_window;
        let most = if widest > 536 { widest >> 1 } else { widest };
        if most > 0 {
            mss = mss.min(most.max(68 - self.snd.header));
        }
        if self.mtu.is_searching {
            mss = mss.min(self.mtu_to_mss(self.mtu.low));
        }
        self.flow.mss = mss.max(1);
    }

    /// A router refused a packet as larger than `mtu` bytes. What is too large
    /// now is sent again at once, without a reduction of the window (Linux 6.1
    /// `tcp_v4_mtu_reduced`, `tcp_simple_retransmit`).
    ///
    /// The message counts only for a packet under way, `seq` being its sequence
    /// number (RFC 5927, section 4). For IPv4 it counts as at least 552 bytes; for
    /// IPv6 one of less than 1,280 does not count at all, nor one that the segments
    /// sent now keep to.
    ///
    /// The time it comes at goes into timers, but what is sent again is stamped with
    /// the time of what happened before: the kernel does not look at the clock here.
    pub fn on_packet_too_big(&mut self, now: Instant, seq: Seq, mtu: u32) {
        self.refresh_ticks(now);
        let is_ours = seq.between(self.flow.una, self.flow.next) && self.flow.packets_out > 0;
        if !self.state.is_synchronized() || !is_ours {
            return;
        }
        let mtu = if self.local.is_ipv4() {
            mtu.max(LEAST_MTU.0)
        } else if mtu < LEAST_MTU.1 || self.mtu_to_mss(mtu) >= self.flow.mss {
            return;
        } else {
            mtu
        };
        if mtu >= self.mtu.mtu {
            return;
        }
        self.mtu.mtu = mtu;
        self.sync_mss();
        self.retransmit_too_large();
    }

    /// Linux 6.1 `tcp_simple_retransmit`.
    fn retransmit_too_large(&mut self) {
        let mss = self.current_mss();
        let mut index = 0;
        while let Some(length) = self.snd.sent.segment_length(index) {
            let count = self.snd.sent.together(index);
            if length > mss {
                for at in index..index + count {
                    self.mark_lost(at);
                }
            }
            index += count;
        }
        self.rec.hint = None;
        if self.flow.lost_out == 0 {
            return;
        }
        if !self.rcv.sack {
            self.limit_reno_sacked();
        }
        if self.flow.state != CongestionState::Loss {
            self.rec.high = self.flow.next;
            self.flow.ssthresh = self.flow.current_ssthresh();
            self.rec.prior_ssthresh = 0;
            self.rec.undo_marker = None;
            self.set_state(CongestionState::Loss);
        }
        self.retransmit_lost();
    }

    /// Retransmissions vanish: perhaps only large packets do (Linux 6.1
    /// `tcp_mtu_probing`).
    pub(super) fn on_black_hole(&mut self) {
        if self.config.mtu_probing == MtuProbing::Off {
            return;
        }
        if self.mtu.is_searching {
            let mss = (self.mtu_to_mss(self.mtu.low) >> 1).clamp(FLOOR_MSS, BASE_MSS);
            self.mtu.low = self.mss_to_mtu(mss);
        } else {
            self.mtu.is_searching = true;
            self.mtu.since = self.flow.ticks;
        }
        self.sync_mss();
    }

    /// Sends a probe when the search goes on and there is enough to send.
    pub(super) fn probe_mtu(&mut self) -> Probe {
        if !self.mtu.is_searching
            || self.mtu.probe.is_some()
            || self.flow.state != CongestionState::Open
            || self.flow.cwnd < 11
            || !self.rcv.sacks.is_empty()
            || self.rcv.duplicate.is_some()
        {
            return Probe::None;
        }
        let size = self.mtu_to_mss(u32::midpoint(self.mtu.high, self.mtu.low));
        let needed = size + (self.rec.reordering + 1) * self.flow.mss;
        if size > self.mtu_to_mss(self.mtu.high)
            || self.mtu.high.saturating_sub(self.mtu.low) < CLOSE
        {
            self.search_again();
            return Probe::None;
        }
        if self.snd.write - self.flow.next < needed || self.snd.window < needed {
            return Probe::None;
        }
        if (self.flow.next + needed).after(self.window_end()) {
            return Probe::Wait;
        }
        if self.flow.in_flight() + 2 > self.flow.cwnd {
            return if self.flow.in_flight() == 0 {
                Probe::None
            } else {
                Probe::Wait
            };
        }
        self.send_mtu_probe(size);
        Probe::Sent
    }

    fn search_again(&mut self) {
        if self.flow.ticks - self.mtu.since >= AGAIN_SECONDS * self.flow.hz {
            self.mtu.high = (self.snd.mss_clamp + 20 + self.mtu.ip_header).min(self.mtu.mtu);
            self.mtu.low = self.mss_to_mtu(self.current_mss());
            self.mtu.since = self.flow.ticks;
        }
    }

    fn send_mtu_probe(&mut self, size: u32) {
        let mss = self.current_mss();
        let cost = self.linear_cost(size);
        self.charge_sent(cost);
        let mut payload = 0;
        let mut push = false;
        while payload < size
            && let Some(piece) = self.snd.unsent.first()
        {
            // A FIN is behind more than the probe takes.
            let length = piece.length;
            let Some(taken) = self.snd.unsent.take(size - payload) else {
                break;
            };
            if taken.length == length {
                // Its buffer is let go.
                self.release_sent(taken.length + taken.held + self.piece_cost());
            } else if let Some(rest) = self.snd.unsent.first_mut() {
                // The bytes are copied, and their pages stay with the rest.
                rest.held = taken.held + taken.length;
                rest.count(mss);
            }
            payload += taken.length;
            push |= taken.push;
        }
        let seq = self.flow.next;
        let mut sent = Sent {
            seq,
            end: seq + payload,
            payload,
            syn: false,
            fin: false,
            push,
            ends_buffer: true,
            is_linear: true,
            unit: payload,
            marks: Marks::default(),
            is_timed: true,
            at: self.flow.now,
            turn: self.turn,
            overhead: cost.saturating_sub(payload),
            delivered_us: None,
            first_sent_us: 0,
            delivered: 0,
            is_app_limited: false,
        };
        let prior_packets = self.flow.packets_out;
        self.send_segment(&mut sent, true, false);
        self.flow.cwnd -= 1;
        self.mtu.probe = Some((self.mss_to_mtu(payload), sent.seq, sent.end));
        self.enqueue(sent);
        self.rearm_after_new(prior_packets);
    }

    /// Something was acknowledged: perhaps the probe.
    pub(super) fn check_mtu_probe(&mut self) {
        let Some((size, _, end)) = self.mtu.probe else {
            return;
        };
        if end.after(self.flow.una) {
            return;
        }
        self.rec.prior_ssthresh = self.flow.current_ssthresh();
        let bytes = u64::from(self.flow.cwnd) * u64::from(self.mss_to_mtu(self.flow.mss));
        self.flow.cwnd = ((bytes / u64::from(size.max(1))) as u32).max(1);
        self.flow.cwnd_count = 0;
        self.snd.cwnd_stamp = self.flow.ticks;
        self.flow.ssthresh = self.flow.current_ssthresh();
        self.mtu.low = size;
        self.mtu.probe = None;
        self.sync_mss();
    }

    /// Whether what was lost is the probe.
    pub(super) fn is_mtu_probe_lost(&self) -> bool {
        self.mtu
            .probe
            .is_some_and(|(_, seq, _)| seq == self.flow.una)
    }

    /// The probe was too large: the rest of the path is not to blame.
    pub(super) fn on_mtu_probe_lost(&mut self) {
        if let Some((size, _, _)) = self.mtu.probe.take() {
            self.mtu.high = size - 1;
            self.flow.cwnd += 1;
            self.retransmit_too_large();
        }
    }
}
