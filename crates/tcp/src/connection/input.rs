//! Taking a segment that was found believable: what its data and its FIN do (RFC
//! 9293, section 3.10.7.4; Linux 6.1 `tcp_rcv_state_process`, `tcp_data_queue`).

use super::ack::BadAck;
use super::transmit::Push;
use super::{Connection, State};
use crate::Instant;
use crate::received::Cost;
use crate::state::CloseReason;
use crate::wire::{Ecn, Flags, IpHeader, SackBlock, Segment};

/// Holes reported at once: as many as fit without other options.
const MAX_SACKS: usize = 4;

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
            if !self.is_acceptable(segment, echo) || !segment.has(Flags::ACK) {
                return;
            }
            self.update_ts_recent(segment);
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
        self.set_memory_aside();
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
            && u32::from(segment.window) << self.snd.scale == self.snd.window
            && segment.seq == self.rcv.next
            && !segment.ack.after(self.flow.next)
            && options.sack.is_empty()
            && is_fresh
            && self.rcv.buffer.has_no_islands()
            && self.rcv.window > 0
            && self.rcv.buffer.memory() < self.rcv.buffer_limit
            && (segment.payload.is_empty()
                || u64::from(cost_of(header, segment).memory) <= self.memory_left())
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
        self.take_data(header, segment);
        if self.state == State::Closed {
            return;
        }
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

    /// Our FIN may be acknowledged; returns whether nothing else is to be done.
    fn advance_close(&mut self, segment: &Segment<'_>) -> bool {
        let is_all_acked = self.snd.fin_queued && self.flow.una == self.snd.write;
        match self.state {
            State::FinWait1 if is_all_acked => {
                self.state = State::FinWait2;
                if self.orphaned {
                    let brings_data = segment.payload.len() as u32 > 0
                        && segment.seq.before(self.rcv.next + u32::MAX / 4)
                        && segment
                            .end()
                            .after(self.rcv.next + u32::from(segment.has(Flags::FIN)));
                    if brings_data {
                        self.send_reset_for(segment);
                        self.done(CloseReason::Aborted);
                        return true;
                    }
                    self.await_fin();
                    // A FIN is still taken here; for anything else what remains
                    // of the connection is enough.
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

    /// Nobody reads any more, and the peer has yet to end its stream (Linux 6.1
    /// `tcp_time_wait` with `TCP_FIN_WAIT2`): no acknowledgement is owed.
    pub(super) fn await_fin(&mut self) {
        self.timers.clear();
        self.feedback.clear();
        self.linger(self.config.fin_timeout);
    }

    fn enter_time_wait(&mut self) {
        self.state = State::TimeWait;
        self.timers.clear();
        self.feedback.clear();
        self.linger(std::time::Duration::from_mins(1));
    }

    fn on_segment_in_time_wait(&mut self, segment: &Segment<'_>) {
        if segment.has(Flags::RST) {
            if segment.seq == self.rcv.next {
                self.done(CloseReason::Finished);
            }
            return;
        }
        if segment.sequence_length() > 0 {
            if segment.has(Flags::FIN) {
                self.linger(std::time::Duration::from_mins(1));
            }
            self.send_ack();
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
        if self.rcv.buffer.ready() > 0 && !self.make_room() {
            return;
        }
        let known = ((self.rcv.next - segment.seq) as usize).min(segment.payload.len());
        let room = self.window_left() as usize;
        let fresh = &segment.payload[known..];
        // Beyond the window nothing is kept, whatever came with it.
        let kept = &fresh[..fresh.len().min(room.max(1))];
        let fin = segment.has(Flags::FIN) && kept.len() == fresh.len();
        let payload = segment.payload.len() as u32;
        let cost = cost_of(header, segment);
        self.rcv.buffer.append(kept, cost);
        self.rcv.next += kept.len() as u32;
        if payload > 0 {
            let header_length = 20 + segment.options_length();
            self.on_data(payload, header_length, segment.has(Flags::PSH));
            self.on_ecn(header.ecn);
            if payload >= 128 {
                self.grow_window(payload, cost);
            }
            self.events.readable = true;
        }
        if fin {
            self.rcv.next += 1;
            self.on_fin();
        } else if !self.rcv.buffer.has_no_islands() {
            self.fill_holes();
        }
    }

    fn fill_holes(&mut self) {
        let mut next = self.rcv.next;
        let advanced = self.rcv.buffer.advance(&mut next);
        self.rcv.next = next;
        if let Some(block) = advanced.duplicate {
            self.report_duplicate(block);
        }
        if advanced.fin {
            self.rcv.buffer.clear_islands();
            self.on_fin();
        }
        if self.rcv.buffer.has_no_islands() {
            self.rcv.sacks.clear();
            self.feedback.at_once = true;
        } else {
            self.rcv.sacks.retain(|block| next.before(block.start));
        }
    }

    fn take_out_of_order(&mut self, header: &IpHeader, segment: &Segment<'_>) {
        self.on_ecn(header.ecn);
        if !self.make_room() {
            return;
        }
        self.feedback.scheduled = true;
        let end = self.rcv.next + self.window_left();
        let room = (end - segment.seq) as usize;
        let kept = &segment.payload[..segment.payload.len().min(room)];
        let fin = segment.has(Flags::FIN) && kept.len() == segment.payload.len();
        let cost = cost_of(header, segment);
        let placed = self.rcv.buffer.insert(segment.seq, kept, fin, cost);
        if let Some(block) = placed.duplicate {
            self.report_duplicate(block);
        }
        if self.rcv.sack {
            let end = segment.seq + kept.len() as u32 + u32::from(fin);
            self.add_sack(SackBlock {
                start: segment.seq,
                end,
            });
            if placed.is_new {
                self.grow_window(segment.payload.len() as u32, cost);
            }
        } else if !placed.is_new {
            self.counters.duplicates_received += 1;
        }
    }

    /// Puts a block first among those to report (RFC 2018, section 4; Linux 6.1
    /// `tcp_sack_new_ofo_skb`).
    fn add_sack(&mut self, new: SackBlock) {
        if !new.start.before(new.end) {
            return;
        }
        let mut first = new;
        let position = self
            .rcv
            .sacks
            .iter()
            .position(|block| !new.start.after(block.end) && !block.start.after(new.end));
        if let Some(position) = position {
            let known = self.rcv.sacks.remove(position);
            first.start = first.start.earliest(known.start);
            first.end = first.end.latest(known.end);
        }
        // A compressed acknowledgement must not lose a hole it would report.
        if position.unwrap_or(self.rcv.sacks.len()) >= 2 {
            self.flush_compressed();
        }
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
        self.rcv.buffer.clear_islands();
        self.rcv.sacks.clear();
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
