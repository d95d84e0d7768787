//! Set-up: actively, passively and from both sides at once (RFC 9293, section
//! 3.5; Linux 6.1 `tcp_rcv_synsent_state_process`, `tcp_check_req`).

use std::net::SocketAddr;

use super::timers::Waiting;
use super::transmit::Push;
use super::{Connection, Origin, State};
use crate::config::{Config, EcnMode};
use crate::congestion::INFINITE_SSTHRESH;
use crate::sent::{Marks, Sent};
use crate::state::CloseReason;
use crate::wire::{Ecn, Flags, Segment, TcpOptions};
use crate::{Instant, Seq};

/// The most times the timeout of a SYN-ACK doubles: from 1 s to beyond 120 s.
const SYN_ACK_BACKOFF: u32 = 7;

impl Connection {
    /// Opens a connection: a SYN waits to be polled. Sequence numbers and all
    /// else that is random follow from `seed`.
    ///
    /// # Panics
    ///
    /// When the addresses are of different families.
    #[must_use]
    pub fn connect(
        config: &Config,
        local: SocketAddr,
        remote: SocketAddr,
        seed: u64,
        now: Instant,
    ) -> Self {
        assert_eq!(
            local.is_ipv4(),
            remote.is_ipv4(),
            "addresses of one connection are of one family"
        );
        Self::connect_from(config, local, remote, Origin::from_seed(seed), now)
    }

    /// Opens a connection whose numbers come from `origin`.
    pub(crate) fn connect_from(
        config: &Config,
        local: SocketAddr,
        remote: SocketAddr,
        origin: Origin,
        now: Instant,
    ) -> Self {
        let earlier = origin.earlier.and_then(|earlier| earlier.timestamp);
        let mut connection = Self::new(config, local, remote, now, origin);
        if let Some((value, at)) = earlier {
            connection.rcv.ts_recent = value;
            connection.rcv.ts_recent_at = Some(at);
        }
        connection.open();
        connection
    }

    fn open(&mut self) {
        self.state = State::SynSent;
        self.rcv.advertised_mss = self.mtu.advertised_mss();
        self.init_mtu_search();
        self.sync_mss();
        self.init_window();
        self.snd.ecn = self.config.ecn == EcnMode::Always;
        self.rec.first_retransmission_ms = Some(self.now_ms());
        let mut sent = Sent {
            seq: self.iss,
            end: self.iss + 1,
            payload: 0,
            syn: true,
            fin: false,
            push: false,
            ends_buffer: true,
            is_linear: false,
            unit: 0,
            marks: Marks::default(),
            is_timed: true,
            at: self.flow.now,
            turn: self.turn,
            overhead: 0,
            delivered_us: None,
            first_sent_us: 0,
            delivered: 0,
            is_app_limited: false,
        };
        self.send_segment(&mut sent, true, false);
        self.enqueue(sent);
        let rto = self.timers.rto;
        self.arm(Waiting::Retransmission, rto);
    }

    /// Takes a connection that a peer opens with `syn`: a SYN-ACK waits to be
    /// polled. Returns nothing unless the segment is a SYN and nothing else.
    #[must_use]
    pub fn accept(
        config: &Config,
        local: SocketAddr,
        remote: SocketAddr,
        syn: &Segment<'_>,
        seed: u64,
        now: Instant,
    ) -> Option<Self> {
        Self::accept_from(config, local, remote, syn, Origin::from_seed(seed), now)
    }

    /// Takes a connection whose numbers come from `origin`.
    pub(crate) fn accept_from(
        config: &Config,
        local: SocketAddr,
        remote: SocketAddr,
        syn: &Segment<'_>,
        origin: Origin,
        now: Instant,
    ) -> Option<Self> {
        let other = Flags::ACK.with(Flags::RST).with(Flags::FIN);
        if !syn.has(Flags::SYN) || syn.flags.0 & other.0 != 0 || local.is_ipv4() != remote.is_ipv4()
        {
            return None;
        }
        let mut connection = Self::new(config, local, remote, now, origin);
        connection.passive = true;
        connection.state = State::SynReceived;
        connection.rcv.advertised_mss = connection.mtu.advertised_mss();
        connection.take_syn(syn);
        connection.init_window();
        if syn.options.window_scale.is_none() {
            connection.rcv.scale = 0;
            connection.rcv.window_clamp = connection.rcv.window_clamp.min(65_535);
        }
        connection.sync_mss();
        connection.init_peer_mss();
        connection.flow.next = connection.iss + 1;
        connection.send_syn_ack();
        let rto = connection.timers.rto;
        connection.arm(Waiting::Retransmission, rto);
        Some(connection)
    }

    /// Takes the options that a SYN announces.
    fn take_syn(&mut self, syn: &Segment<'_>) {
        let options = &syn.options;
        self.irs = syn.seq;
        self.rcv.next = syn.seq + 1;
        self.rcv.advertised = self.rcv.next;
        self.rcv.copied = self.rcv.next;
        self.snd.wl1 = syn.seq;
        self.snd.window = u32::from(syn.window);
        self.snd.max_window = self.snd.window;
        self.snd.mss_clamp = options
            .mss
            .map_or(536, u32::from)
            .min(self.mtu.advertised_mss());
        self.rcv.sack = self.config.sack && options.sack_permitted;
        self.rcv.timestamps = self.config.timestamps && options.timestamps.is_some();
        self.snd.header = if self.rcv.timestamps { 32 } else { 20 };
        if let Some((value, _)) = options.timestamps.filter(|_| self.rcv.timestamps) {
            self.rcv.ts_recent = value;
            self.rcv.ts_recent_at = Some(self.flow.now);
        }
        self.snd.scale = match options.window_scale {
            Some(scale) if self.config.window_scaling => scale,
            _ => 0,
        };
        self.snd.scaling = options.window_scale.is_some();
        let asks = syn.has(Flags::ECE) && syn.has(Flags::CWR);
        let grants = syn.has(Flags::ECE) && !syn.has(Flags::CWR);
        self.snd.ecn = if syn.has(Flags::ACK) {
            self.snd.ecn && grants
        } else if self.passive {
            self.config.ecn != EcnMode::Off && asks
        } else {
            self.snd.ecn && asks
        };
    }

    /// Flags and options of our SYN, or SYN-ACK.
    pub(super) fn syn_options(&self) -> (Flags, TcpOptions) {
        let is_answer = self.state == State::SynReceived;
        let mut flags = Flags::SYN;
        let mut options = TcpOptions {
            mss: Some(self.rcv.advertised_mss as u16),
            window_scale: self.config.window_scaling.then_some(self.rcv.scale),
            sack_permitted: self.config.sack,
            ..TcpOptions::default()
        };
        let mut has_timestamps = self.config.timestamps;
        if is_answer {
            flags = flags.with(Flags::ACK);
            options.sack_permitted = self.rcv.sack;
            has_timestamps = self.rcv.timestamps;
            if self.passive {
                // Scaling is offered only to a peer who offered it, be its scale
                // or ours 0.
                options.window_scale = options.window_scale.filter(|_| self.snd.scaling);
            }
            if self.snd.ecn {
                flags = flags.with(Flags::ECE);
            }
        } else if self.snd.ecn && self.timers.retransmits == 0 {
            // A SYN that was lost is sent again without ECN (RFC 3168, 6.1.1.1).
            flags = flags.with(Flags::ECE).with(Flags::CWR);
        }
        if has_timestamps {
            let value = (self.now_ms() as u32).wrapping_add(self.ts_offset);
            options.timestamps = Some((value, self.rcv.ts_recent));
        }
        (flags, options)
    }

    pub(super) fn send_syn_ack(&mut self) {
        let (flags, options) = self.syn_options();
        let window = self.rcv.window.min(65_535) as u16;
        if self.timers.retransmits == 0 {
            self.rec.first_retransmission_ms = Some(self.now_ms());
            self.flow.delivered_us = self.flow.now_us();
        }
        let iss = self.iss;
        self.emit(iss, flags, window, options, 0, Ecn::NotCapable);
    }

    /// The SYN-ACK of a passive side was not answered (Linux 6.1
    /// `reqsk_timer_handler`).
    pub(super) fn retransmit_syn_ack(&mut self) {
        if self.timers.backoff >= self.config.synack_retries {
            self.give_up();
            return;
        }
        self.timers.backoff += 1;
        self.counters.timeouts += 1;
        self.repeat_syn_ack();
    }

    /// Sends the SYN-ACK again; its timer starts anew (Linux 6.1
    /// `inet_rtx_syn_ack`, `reqsk_timeout`).
    fn repeat_syn_ack(&mut self) {
        self.timers.retransmits += 1;
        self.snd.retransmissions += 1;
        self.counters.retransmissions += 1;
        self.send_syn_ack();
        let doubled = self.flow.hz << self.timers.backoff.min(SYN_ACK_BACKOFF);
        let timeout = doubled.min(self.rto_max());
        self.arm_unpaced(Waiting::Retransmission, timeout);
    }

    /// A segment while our SYN waits for its answer.
    pub(super) fn on_segment_in_syn_sent(&mut self, segment: &Segment<'_>) {
        let echo = self.echo_of(segment);
        if segment.has(Flags::ACK) {
            let is_ours = segment.ack.after(self.flow.una) && !segment.ack.after(self.flow.next);
            let is_echo_ours = self.rec.first_retransmission_ms.is_none_or(|first_ms| {
                echo.is_none_or(|echo| {
                    Seq(echo).between(Seq(first_ms as u32), Seq(self.now_ms() as u32))
                })
            });
            if !is_ours || !is_echo_ours {
                self.send_reset_for(segment);
                return;
            }
            if segment.has(Flags::RST) {
                self.done(CloseReason::Refused);
            } else if segment.has(Flags::SYN) {
                self.on_syn_ack(segment, echo);
            }
        } else if segment.has(Flags::SYN) && !segment.has(Flags::RST) {
            self.on_simultaneous_syn(segment);
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment<'_>, echo: Option<u32>) {
        // A SYN sent again needlessly costs no window: its echo shows it.
        let first_ms = self.rec.first_retransmission_ms.map(|ms| ms as u32);
        if self.rec.undo_marker.is_some() && first_ms.is_some() && first_ms == echo {
            self.rec.undo_marker = None;
        }
        self.take_syn(segment);
        if segment.options.window_scale.is_none() {
            self.rcv.scale = 0;
            self.rcv.window_clamp = self.rcv.window_clamp.min(65_535);
        }
        // The first window: with it comes the segment size that the pacing rate is taken of.
        (self.snd.window, self.snd.max_window) = (0, 0);
        let _ = self.on_ack(segment, echo);
        self.sync_mss();
        if self.rcv.timestamps {
            self.rcv.advertised_mss -= 12;
        }
        self.init_peer_mss();
        if self.snd.scale == 0 {
            self.predict();
        }
        self.establish();
        if self.snd.unsent.is_empty() {
            self.send_ack();
        } else {
            self.push_pending(Push::AsSet);
            if self.flow.packets_out == 0 {
                self.send_ack();
            }
        }
    }

    /// Both sides opened at once (RFC 9293, section 3.5, figure 8).
    fn on_simultaneous_syn(&mut self, segment: &Segment<'_>) {
        self.state = State::SynReceived;
        self.take_syn(segment);
        if segment.options.window_scale.is_none() {
            self.rcv.scale = 0;
            self.rcv.window_clamp = self.rcv.window_clamp.min(65_535);
        }
        self.init_mtu_search();
        self.sync_mss();
        self.init_peer_mss();
        self.send_syn_ack();
    }

    /// The handshake is over (Linux 6.1 `tcp_init_transfer`).
    pub(super) fn establish(&mut self) {
        self.state = if self.snd.fin_queued {
            State::FinWait1
        } else {
            State::Established
        };
        self.events.connected = true;
        self.events.writable = true;
        self.init_mtu_search();
        let again = if self.passive {
            u64::from(self.timers.retransmits)
        } else {
            self.counters.timeouts
        };
        self.flow.cwnd = if again > 1 && self.rec.undo_marker.is_some() {
            // The handshake was lost more than once (RFC 6298, section 5.7).
            1
        } else {
            self.config.initial_cwnd
        };
        // What a lost handshake took is given back (Linux 6.1 `tcp_init_metrics`).
        self.flow.ssthresh = INFINITE_SSTHRESH;
        self.rec.undo_marker = None;
        self.rec.first_retransmission_ms = None;
        self.timers.retransmits = 0;
        if self.passive {
            // Who opened keeps it until a round trip is measured (`tcp_finish_connect`).
            self.timers.backoff = 0;
        }
        self.snd.cwnd_stamp = self.flow.ticks;
        self.flow.last_sent_ticks = self.flow.ticks;
        self.last_received_ticks = self.flow.ticks;
        self.feedback.begin(self.flow.ticks);
        if self.rtt.srtt_us_x8() == 0 {
            self.rtt.fall_back();
            self.update_rto();
        }
        self.init_buffers();
        self.control.init(&mut self.flow);
        self.start_keep_alive();
    }

    /// The acknowledgement of our SYN-ACK, or anything else while it is
    /// awaited. Returns whether the segment is to be processed on.
    pub(super) fn on_segment_in_syn_received(&mut self, segment: &Segment<'_>) -> bool {
        if segment.has(Flags::SYN) && !segment.has(Flags::ACK) && segment.seq == self.irs {
            if self.passive {
                self.answer_syn_again();
            }
            return false;
        }
        let echo = self.echo_of(segment);
        if !self.is_acceptable(segment) {
            return false;
        }
        if !segment.has(Flags::ACK) {
            return false;
        }
        if segment.ack != self.iss + 1
            && (self.passive
                || segment.ack.after(self.flow.next)
                || !segment.ack.after(self.flow.una))
        {
            self.send_reset_for(segment);
            return false;
        }
        self.update_ts_recent(segment);
        if self.passive {
            self.flow.una = self.iss + 1;
            self.timers.waiting = None;
            // Answers to repeated SYNs were the request's, not the connection's.
            self.rcv.last_out_of_window = None;
            let first_ms = self.rec.first_retransmission_ms.map(|ms| ms as u32);
            if self.timers.backoff > 0 && first_ms != echo {
                // It was not sent again needlessly.
                self.rec.undo_marker = Some(self.iss);
            }
            self.take_handshake_rtt(echo);
        } else if self.on_ack(segment, echo).is_err() {
            return false;
        }
        self.flow.delivered += 1;
        self.snd.window = u32::from(segment.window) << self.snd.scale;
        self.snd.max_window = self.snd.max_window.max(self.snd.window);
        self.snd.wl1 = segment.seq;
        self.sync_mss();
        if self.rcv.timestamps {
            self.rcv.advertised_mss -= 12;
        }
        self.init_peer_mss();
        self.predict();
        self.establish();
        // Who opened has the rate that the SYN-ACK's acknowledgement left.
        if !self.control.controls_all() {
            self.flow.update_pacing_rate();
        }
        true
    }

    /// The round trip of our SYN-ACK; of one that was sent again only the time
    /// stamp shows it (Linux 6.1 `tcp_synack_rtt_meas`, `tcp_ack_update_rtt`).
    fn take_handshake_rtt(&mut self, echo: Option<u32>) {
        let rtt_us = if self.timers.retransmits == 0 {
            Some(self.flow.now_us().saturating_sub(self.flow.delivered_us))
        } else {
            echo.map(|echo| u64::from((self.now_ms() as u32).wrapping_sub(echo)))
                .filter(|ms| *ms < u64::from(u32::MAX) / 2_000)
                .map(|ms| ms.max(1) * 1_000)
        };
        if let Some(rtt_us) = rtt_us {
            let rtt_us = u32::try_from(rtt_us).unwrap_or(u32::MAX / 16);
            self.take_rtt_sample(rtt_us, Some(rtt_us), false);
        }
    }

    /// The peer's SYN came again (Linux 6.1 `tcp_check_req`).
    fn answer_syn_again(&mut self) {
        if self.is_answer_allowed() {
            self.repeat_syn_ack();
        }
    }
}
