//! Taking a segment that was found believable: what its data and its FIN do (RFC
//! 9293, section 3.10.7.4; Linux 6.1 `tcp_rcv_state_process`, `tcp_data_queue`).

use super::ack::BadAck;
use super::transmit::Push;
use super::{Connection, State};
use crate::Instant;
use crate::received::{Cost, Storage, extend};
use crate::state::CloseReason;
use crate::wire::{Ecn, Flags, IpHeader, SackBlock, Segment};

/// Holes reported at once: as many as fit without other options.
const MAX_SACKS: usize = 4;
/// As many arrive in all probability although acknowledgements are lost (Linux
/// 6.1 `TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED_SACKS: usize = 2;

/// What the packet costs that brought a segment.
fn cost_of(header: &IpHeader, segment: &Segment<'_>) -> Cost {
    let ip = if header.source.is_ipv4() { 20 } else { 40 };
    Cost::of(ip + 20 + segment.options_length() + segment.payload.len() as u32)
}

impl Connection {
    /// Takes a segment addressed to this connection, as
    /// [`parse_packet`](crate::wire::parse_packet) read it.
    pub fn receive(&mut self, now: Instant, header: &IpHeader, segment: &Segment<'_>) {
        self.refresh(now);
        match self.state {
            State::Closed => self.send_reset_for(segment),
            State::SynSent => self.on_segment_in_syn_sent(segment),
            State::TimeWait => self.on_segment_in_time_wait(segment),
            State::FinWait2 if self.orphaned => self.on_segment_awaiting_fin(segment),
            State::SynReceived => {
                if self.on_segment_in_syn_received(segment) {
                    self.process(header, segment, false);
                }
            }
            _ => {
                if segment.flags.0 & (Flags::ACK.0 | Flags::RST.0 | Flags::SYN.0) != 0 {
                    self.process(header, segment, true);
                }
            }
        }
    }

    /// The time stamp a segment echoes, by our clock.
    pub(super) fn echo_of(&self, segment: &Segment<'_>) -> Option<u32> {
        let (_, echo) = segment.options.timestamps?;
        let ours = self.rcv.timestamps || self.state == State::SynSent;
        (ours && echo != 0).then(|| echo.wrapping_sub(self.ts_offset))
    }

    fn process(&mut self, header: &IpHeader, segment: &Segment<'_>, validate: bool) {
        let echo = self.echo_of(segment);
        if validate && self.is_predicted(header, segment) {
            self.process_predicted(header, segment, echo);
            return;
        }
        let was_established = self.state == State::Established && validate;
        if validate {
            if !self.is_acceptable(segment) || !segment.has(Flags::ACK) {
                return;
            }
            // A forger has to guess the acknowledgement number, too, before the time stamp
            // counts, by which all others are judged (Linux 6.1 `tcp_ack`).
            if self.check_number(segment.ack).is_ok() {
                self.update_ts_recent(segment);
            }
            match self.on_ack(segment, echo) {
                Ok(_) => {}
                Err(BadAck::TooOld) => {
                    self.challenge();
                    return;
                }
                Err(BadAck::Unsent) => {
                    if self.state != State::Established {
                        self.challenge();
                    }
                    return;
                }
            }
        }
        if self.advance_close(segment) {
            return;
        }
        if let Some(echo) = echo.filter(|_| was_established) {
            self.measure_receive_rtt_by_echo(echo, segment.payload.len() as u32);
        }
        self.take_data(header, segment);
        if self.state == State::Closed {
            return;
        }
        self.push_pending(Push::AsSet);
        self.check_send_space();
        if self.state != State::TimeWait {
            self.check_feedback();
        }
    }

    /// Whether a segment is what is expected next, and nothing besides (Linux 6.1
    /// `tcp_rcv_established`, header prediction), and fits into memory that is
    /// set aside already.
    fn is_predicted(&self, header: &IpHeader, segment: &Segment<'_>) -> bool {
        let options = &segment.options;
        let is_fresh = match options.timestamps.filter(|_| self.rcv.timestamps) {
            Some((value, _)) => value.wrapping_sub(self.rcv.ts_recent).cast_signed() >= 0,
            None => !self.rcv.timestamps,
        };
        self.state == State::Established
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && self.rcv.predicted == Some(u32::from(segment.window))
            && segment.seq == self.rcv.next
            && !segment.ack.after(self.flow.next)
            && options.sack.is_empty()
            && !segment.ack.before(self.flow.una)
            && is_fresh
            && (segment.payload.is_empty() || self.reserve.holds(cost_of(header, segment).memory))
    }

    /// Packets with this window are predicted from now on (Linux 6.1
    /// `tcp_fast_path_on`).
    pub(super) const fn predict(&mut self) {
        self.rcv.predicted = Some(self.snd.window >> self.snd.scale);
    }

    /// The same, if nothing is out of order and there is room (Linux 6.1
    /// `tcp_fast_path_check`).
    pub(super) fn predict_if_calm(&mut self) {
        if self.rcv.buffer.has_no_late()
            && self.rcv.window > 0
            && self.rcv.buffer.memory() < self.rcv.buffer_limit
        {
            self.predict();
        }
    }

    /// What was expected is taken without further looks: data that acknowledges
    /// nothing new does not try to send what waits, and an acknowledgement alone
    /// does not hurry one of ours.
    fn process_predicted(&mut self, header: &IpHeader, segment: &Segment<'_>, echo: Option<u32>) {
        self.update_ts_recent(segment);
        if segment.payload.is_empty() {
            if self.on_ack(segment, echo).is_ok() {
                self.push_pending(Push::AsSet);
                self.check_send_space();
                self.rcv.last_echo = echo.unwrap_or(self.rcv.last_echo);
            }
            return;
        }
        if let Some(echo) = echo {
            self.measure_receive_rtt_by_echo(echo, segment.payload.len() as u32);
        }
        self.queue_in_order(header, segment, cost_of(header, segment));
        if segment.ack == self.flow.una {
            self.snd.wl1 = segment.seq;
        } else if self.on_ack(segment, echo).is_ok() {
            self.push_pending(Push::AsSet);
            self.check_send_space();
        }
        self.check_feedback();
    }

    pub(super) fn report_duplicate(&mut self, block: SackBlock) {
        if self.rcv.sack && block.start.before(block.end) {
            self.rcv.duplicate = Some(block);
        }
    }

    fn extend_duplicate(&mut self, block: SackBlock) {
        if self.rcv.sack && block.start.before(block.end) {
            extend(&mut self.rcv.duplicate, block.start, block.end);
        }
    }

    /// Our FIN may be acknowledged; returns whether nothing else is to be done.
    fn advance_close(&mut self, segment: &Segment<'_>) -> bool {
        let is_all_acked = self.snd.fin_queued && self.flow.una == self.snd.write;
        match self.state {
            State::FinWait1 if is_all_acked => {
                self.state = State::FinWait2;
                if self.orphaned {
                    // Data, or a FIN behind data that is missing.
                    let fin = u32::from(segment.has(Flags::FIN));
                    let brings_data =
                        segment.sequence_length() > 0 && (segment.end() - fin).after(self.rcv.next);
                    if brings_data {
                        self.send_reset_for(segment);
                        self.done(CloseReason::Aborted);
                        return true;
                    }
                    // A FIN is still taken here; for anything else what remains
                    // of the connection is enough.
                    self.await_fin(segment.has(Flags::FIN));
                    return !segment.has(Flags::FIN);
                }
                false
            }
            State::Closing if is_all_acked => {
                self.enter_time_wait();
                true
            }
            State::LastAck if is_all_acked => {
                self.done(CloseReason::Finished);
                true
            }
            _ => false,
        }
    }

    /// Takes the data of a segment (Linux 6.1 `tcp_data_queue`).
    fn take_data(&mut self, header: &IpHeader, segment: &Segment<'_>) {
        if segment.sequence_length() == 0 || self.rcv.fin {
            if segment.sequence_length() > 0 && !segment.end().after(self.rcv.next) {
                self.on_known_data(segment);
            }
            return;
        }
        if self.rcv.shut
            && segment
                .end()
                .after(self.rcv.next + u32::from(segment.has(Flags::FIN)))
            && !segment.payload.is_empty()
        {
            // Nobody will ever read it.
            self.send_reset_for(segment);
            self.done(CloseReason::Aborted);
            return;
        }
        self.rcv.duplicate = None;
        let next = self.rcv.next;
        if !segment.end().after(next) {
            self.on_known_data(segment);
        } else if !segment.seq.before(next + self.window_left()) && segment.seq != next {
            self.out_of_window();
        } else if segment.seq.after(next) {
            self.take_out_of_order(header, segment);
        } else {
            if segment.seq.before(next) {
                self.report_duplicate(SackBlock {
                    start: segment.seq,
                    end: next,
                });
            }
            if self.window_left() == 0 && !segment.payload.is_empty() {
                self.out_of_window();
                return;
            }
            self.take_in_order(header, segment);
        }
    }

    fn on_known_data(&mut self, segment: &Segment<'_>) {
        self.counters.duplicates_received += 1;
        self.report_duplicate(SackBlock {
            start: segment.seq,
            end: segment.end(),
        });
        self.out_of_window();
    }

    fn out_of_window(&mut self) {
        self.enter_quick(None);
        self.feedback.scheduled = true;
    }

    fn take_in_order(&mut self, header: &IpHeader, segment: &Segment<'_>) {
        let cost = cost_of(header, segment);
        if self.rcv.buffer.has_none_in_order() {
            self.reserve.schedule(cost.memory);
        } else if !self.make_room(cost.memory) {
            return;
        }
        self.queue_in_order(header, segment, cost);
        if !self.rcv.fin && !self.rcv.buffer.has_no_late() {
            self.fill_holes();
        }
        self.predict_if_calm();
    }

    /// Puts a packet with the others in order; memory is set aside for it.
    fn queue_in_order(&mut self, header: &IpHeader, segment: &Segment<'_>, cost: Cost) {
        let next = self.rcv.next;
        let fin = segment.has(Flags::FIN);
        let (seq, bytes) = (segment.seq, segment.payload);
        let reserve = &mut self.reserve;
        self.rcv.buffer.append(seq, bytes, next, fin, cost, reserve);
        self.rcv.next = segment.end();
        let payload = bytes.len() as u32;
        if payload > 0 {
            let header_length = 20 + segment.options_length();
            self.on_data(payload, header_length, segment.has(Flags::PSH));
            self.on_ecn(header.ecn);
            if payload >= 128 {
                self.grow_window(payload, cost.memory);
            }
            self.events.readable = true;
        }
        if fin {
            self.on_fin();
        }
    }

    fn fill_holes(&mut self) {
        let mut next = self.rcv.next;
        let advanced = self.rcv.buffer.advance(&mut next, &mut self.reserve);
        self.rcv.next = next;
        if let Some(block) = advanced.duplicate {
            self.extend_duplicate(block);
        }
        if advanced.fin {
            self.on_fin();
        }
        if self.rcv.buffer.has_no_late() {
            self.rcv.sacks.clear();
            self.feedback.at_once = true;
        } else {
            self.rcv.sacks.retain(|block| next.before(block.start));
        }
    }

    /// Linux 6.1 `tcp_data_queue_ofo`.
    fn take_out_of_order(&mut self, header: &IpHeader, segment: &Segment<'_>) {
        self.on_ecn(header.ecn);
        let cost = cost_of(header, segment);
        if !self.make_room(cost.memory) {
            return;
        }
        self.rcv.predicted = None;
        self.feedback.scheduled = true;
        let (seq, bytes) = (segment.seq, segment.payload);
        let fin = segment.has(Flags::FIN);
        let reserve = &mut self.reserve;
        let placed = self.rcv.buffer.insert(seq, bytes, fin, cost, reserve);
        if let Some(block) = placed.duplicate {
            self.report_duplicate(block);
        }
        let payload = bytes.len() as u32;
        if self.rcv.sack {
            if placed.storage == Storage::Shared {
                // A lone FIN has left nothing behind.
                let memory = if payload == 0 { 0 } else { cost.memory };
                self.grow_window(payload, memory);
            }
            self.add_sack(SackBlock {
                start: seq,
                end: segment.end(),
            });
            if placed.storage == Storage::Own {
                self.grow_window(payload, cost.memory);
            }
        } else if placed.storage == Storage::None {
            self.counters.duplicates_received += 1;
        }
        if placed.storage == Storage::Own {
            let reserve = &mut self.reserve;
            self.rcv.buffer.charge(cost.memory, reserve);
        }
    }

    /// Puts a block first among those to report (RFC 2018, section 4; Linux 6.1
    /// `tcp_sack_new_ofo_skb`).
    fn add_sack(&mut self, new: SackBlock) {
        if !new.start.before(new.end) {
            return;
        }
        let sacks = &mut self.rcv.sacks;
        let known = sacks
            .iter()
            .position(|block| !new.start.after(block.end) && !block.start.after(new.end));
        if let Some(block) = known.and_then(|index| sacks.get_mut(index)) {
            block.start = block.start.earliest(new.start);
            block.end = block.end.latest(new.end);
        }
        // A compressed acknowledgement must not lose a hole it would report; it
        // has the blocks where they were.
        if known.unwrap_or(sacks.len()) >= EXPECTED_SACKS {
            self.flush_compressed();
        }
        let mut first = match known {
            Some(index) => self.rcv.sacks.remove(index),
            None => new,
        };
        self.rcv.sacks.retain(|block| {
            let touches = !first.start.after(block.end) && !block.start.after(first.end);
            if touches {
                first.start = first.start.earliest(block.start);
                first.end = first.end.latest(block.end);
            }
            !touches
        });
        self.rcv.sacks.insert(0, first);
        self.rcv.sacks.truncate(MAX_SACKS);
    }

    /// The peer has ended its stream (Linux 6.1 `tcp_fin`).
    fn on_fin(&mut self) {
        self.feedback.scheduled = true;
        self.rcv.fin = true;
        self.events.peer_finished = true;
        self.events.readable = true;
        match self.state {
            State::Established | State::SynReceived => {
                self.state = State::CloseWait;
                self.feedback.enter_dialogue();
            }
            State::FinWait1 => {
                self.send_ack();
                self.state = State::Closing;
            }
            State::FinWait2 => {
                self.send_ack();
                self.enter_time_wait();
            }
            _ => {}
        }
        // The answer still acknowledged what came before the FIN.
        self.rcv.buffer.clear_late(&mut self.reserve);
        self.rcv.sacks.clear();
        self.rcv.duplicate = None;
    }

    /// Linux 6.1 `__tcp_ecn_check_ce`.
    fn on_ecn(&mut self, ecn: Ecn) {
        if !self.snd.ecn {
            return;
        }
        match ecn {
            Ecn::NotCapable => {
                // Probably a retransmission: the peer is in trouble.
                if self.rcv.ecn_seen {
                    self.enter_quick(Some(2));
                }
            }
            Ecn::CongestionExperienced => {
                if !self.rcv.demand_ece {
                    self.enter_quick(Some(2));
                    self.rcv.demand_ece = true;
                }
                self.rcv.ecn_seen = true;
            }
            Ecn::Capable0 | Ecn::Capable1 => self.rcv.ecn_seen = true,
        }
    }
}
