//! Putting packets together: header, options, congestion marks, pacing stamps
//! (Linux 6.1 `__tcp_transmit_skb`).

use super::Connection;
use crate::Seq;
use crate::congestion::CongestionEvent;
use crate::sent::Sent;
use crate::state::State;
use crate::wire::{Ecn, Flags, IpHeader, SackBlocks, Segment, TcpOptions, build_packet};

/// Packets after which pacing begins: the initial window is not paced.
const UNPACED_SEGMENTS: u64 = 10;

impl Connection {
    /// Options of a segment without SYN.
    pub(super) fn options(&self) -> TcpOptions {
        let mut options = TcpOptions::default();
        if self.rcv.timestamps {
            options.timestamps = Some((self.timestamp(), self.rcv.ts_recent));
        }
        let mut sack = SackBlocks::default();
        for block in self.rcv.duplicate.iter().chain(&self.rcv.sacks) {
            sack.push(*block);
        }
        options.sack = sack;
        options
    }

    fn timestamp(&self) -> u32 {
        let at = self.flow.next_departure.max(self.flow.now);
        ((at.as_nanos() / 1_000_000) as u32).wrapping_add(self.ts_offset)
    }

    /// Bytes of a header sent now, options included.
    pub(super) fn header_length(&self) -> u32 {
        let sacks = self.rcv.sacks.len() + usize::from(self.rcv.duplicate.is_some());
        let mut length = if self.rcv.timestamps { 32 } else { 20 };
        if sacks > 0 {
            let most = if self.rcv.timestamps { 3 } else { 4 };
            length += 4 + 8 * sacks.min(most) as u32;
        }
        length
    }

    /// Sends an acknowledgement without data.
    pub(super) fn send_ack(&mut self) {
        if self.state == State::Closed {
            return;
        }
        let seq = self.acceptable_seq();
        self.send_empty(seq, Flags::ACK);
    }

    /// The sequence number for a segment without data: inside the peer's window
    /// (Linux 6.1 `tcp_acceptable_seq`).
    fn acceptable_seq(&self) -> Seq {
        let end = self.window_end();
        let beyond = self.flow.next.distance(end);
        if beyond <= 0 || beyond.cast_unsigned() < 1 << self.rcv.scale {
            self.flow.next
        } else {
            end
        }
    }

    /// The end of the peer's window.
    pub(super) fn window_end(&self) -> Seq {
        self.flow.una + self.snd.window
    }

    /// Sends a segment without data.
    pub(super) fn send_empty(&mut self, seq: Seq, flags: Flags) {
        let options = self.options();
        let window = self.advertise_window();
        self.stamp();
        self.emit(seq, flags, window, options, 0, Ecn::NotCapable);
        self.after_ack(flags);
    }

    /// Resets the peer (RFC 9293, section 3.10.7).
    pub(super) fn send_reset(&mut self) {
        let seq = self.acceptable_seq();
        let options = self.options();
        let window = self.advertise_window();
        self.emit(
            seq,
            Flags::RST.with(Flags::ACK),
            window,
            options,
            0,
            Ecn::NotCapable,
        );
    }

    /// Answers a segment that belongs to nothing with a reset.
    pub(super) fn send_reset_for(&mut self, segment: &Segment<'_>) {
        if segment.has(Flags::RST) {
            return;
        }
        let header = IpHeader {
            source: self.local.ip(),
            destination: self.remote.ip(),
            ecn: Ecn::NotCapable,
        };
        let packet = crate::endpoint::reset_for(&header, segment);
        self.push(packet);
    }

    /// Takes the departure time of a packet (Linux's `tcp_wstamp_ns`).
    pub(super) fn stamp(&mut self) {
        self.flow.next_departure = self.flow.next_departure.max(self.flow.now);
    }

    fn after_ack(&mut self, flags: Flags) {
        if flags.contains(Flags::ACK) {
            self.feedback.sent();
            self.rcv.duplicate = None;
        }
    }

    /// Sends a segment of the retransmission queue, the first time or again.
    /// `is_new` says which, for ECN; `more` follow in the same burst, which
    /// leaves as one.
    pub(super) fn send_segment(&mut self, sent: &mut Sent, is_new: bool, more: bool) {
        let (prior, bytes) = self
            .snd
            .burst
            .take()
            .unwrap_or((self.flow.next_departure, 0));
        self.stamp();
        sent.at = self.flow.next_departure;
        sent.turn = self.turn;
        let (flags, options, window, ecn) = if sent.syn {
            let (flags, options) = self.syn_options();
            (
                flags,
                options,
                self.rcv.window.min(65_535) as u16,
                Ecn::NotCapable,
            )
        } else {
            let (flags, ecn) = self.data_flags(sent, is_new);
            (flags, self.options(), self.advertise_window(), ecn)
        };
        let in_flight = self.flow.in_flight();
        if flags.contains(Flags::ACK) {
            self.feedback.sent();
        }
        if sent.payload > 0 {
            self.data_sent(in_flight);
        }
        self.emit(sent.seq, flags, window, options, sent.payload, ecn);
        if more {
            self.snd.burst = Some((prior, bytes + sent.payload));
        } else {
            // All segments of a burst have the same options.
            self.rcv.duplicate = None;
            self.pace(bytes + sent.payload, prior);
        }
        self.note_sent(sent);
    }

    fn data_flags(&mut self, sent: &Sent, is_new: bool) -> (Flags, Ecn) {
        let mut flags = Flags::ACK;
        if sent.push {
            flags = flags.with(Flags::PSH);
        }
        if sent.fin {
            flags = flags.with(Flags::FIN);
        }
        let mut ecn = Ecn::NotCapable;
        if self.snd.ecn && is_new && sent.payload > 0 {
            ecn = Ecn::Capable0;
            if std::mem::take(&mut self.snd.queue_cwr) {
                flags = flags.with(Flags::CWR);
            }
        }
        (flags, ecn)
    }

    /// Linux 6.1 `tcp_event_data_sent`.
    fn data_sent(&mut self, in_flight: u32) {
        if in_flight == 0 {
            self.control
                .on_event(&mut self.flow, CongestionEvent::TransmitStart);
        }
        self.flow.last_sent_ticks = self.flow.ticks;
        self.feedback.data_sent(self.flow.ticks);
        self.snd.data_segments += 1;
    }

    /// Moves the next departure on by the time the packet takes at the pacing
    /// rate (Linux 6.1 `tcp_update_skb_after_send`).
    fn pace(&mut self, payload: u32, prior: crate::Instant) {
        let rate = self.flow.pacing_rate;
        if !self.flow.pacing
            || rate == u64::MAX
            || rate == 0
            || self.snd.data_segments < UNPACED_SEGMENTS
        {
            return;
        }
        let time_ns = u64::from(payload) * 1_000_000_000 / rate;
        let credit = self.flow.next_departure.as_nanos() - prior.as_nanos();
        let time_ns = time_ns - credit.min(time_ns / 2);
        let next = self.flow.next_departure.as_nanos().saturating_add(time_ns);
        self.flow.next_departure = crate::Instant::from_nanos(next);
    }

    pub(super) fn emit(
        &mut self,
        seq: Seq,
        flags: Flags,
        window: u16,
        options: TcpOptions,
        payload: u32,
        ecn: Ecn,
    ) {
        let mut flags = flags;
        if self.snd.ecn && self.rcv.demand_ece && !flags.contains(Flags::SYN) {
            flags = flags.with(Flags::ECE);
        }
        let segment = Segment {
            source_port: self.local.port(),
            destination_port: self.remote.port(),
            seq,
            ack: if flags.contains(Flags::ACK) {
                self.rcv.next
            } else {
                Seq(0)
            },
            flags,
            window,
            options,
            payload: &[],
        };
        let header = IpHeader {
            source: self.local.ip(),
            destination: self.remote.ip(),
            ecn,
        };
        let payload = self.snd.unsent.slice(seq, payload);
        let packet = build_packet(&header, self.identification, &segment, payload);
        self.identification = self.identification.wrapping_add(1);
        self.push(packet);
    }

    fn push(&mut self, packet: Vec<u8>) {
        if self.outbox.len() < self.config.transmit_queue_packets {
            self.counters.packets_sent += 1;
            self.outbox.push_back(packet);
        } else {
            self.counters.overflows += 1;
        }
    }
}
