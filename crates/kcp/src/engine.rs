//! The engine: one end of one conversation, call for call what the C
//! reference is.
//!
//! | reference | here |
//! | --- | --- |
//! | `ikcp_create`, `ikcp_nodelay`, `ikcp_wndsize`, `ikcp_setmtu` | [`Engine::new`] |
//! | `ikcp_send` | [`Engine::send`] |
//! | `ikcp_recv`, `ikcp_peeksize` | [`Engine::receive`], [`Engine::peek_bytes`] |
//! | `ikcp_input` | [`Engine::input`] |
//! | `ikcp_update`, `ikcp_flush`, `ikcp_check` | [`Engine::update`], [`Engine::flush`], [`Engine::check`] |
//! | `ikcp_waitsnd` | [`Engine::waiting`] |
//! | `kcp->state` | [`Engine::is_dead`] |
//!
//! The difference is the cost: the reference walks lists as long as the
//! window, here no step depends on it.

use lagometer_units::Time;

use crate::clock::{Clock, ahead};
use crate::config::{Config, LEAST_MTU, segment_bytes};
use crate::congestion::Congestion;
use crate::cutting::TooManySegments;
use crate::pool::Pool;
use crate::probe::Probe;
use crate::receiver::{Arrival, Receiver};
use crate::round_trip::RoundTrip;
use crate::rules::{RttSampling, SkipCounting};
use crate::sender::Sender;
use crate::wire::{BadDatagram, Command, split_segment};

/// One end of a KCP conversation.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub struct Engine {
    pub(crate) conversation: u32,
    pub(crate) clock: Clock,
    /// Whether the clock has been set; until then nothing is flushed.
    pub(crate) started: bool,
    /// When the next flush is due, in extended milliseconds.
    pub(crate) flush_due: i64,
    pub(crate) interval_ms: u32,
    pub(crate) mtu: usize,
    pub(crate) send_window: u32,
    pub(crate) remote_window: u32,
    pub(crate) congestion_control: bool,
    pub(crate) resend: u32,
    /// Which fraction of the timeout a first transmission waits longer, as a
    /// shift to the right; none where the mode has no such grace.
    pub(crate) grace_shift: Option<u32>,
    pub(crate) dead: bool,
    proof: Proof,
    /// Flushes that sent something again; it wraps.
    pub(crate) resending_flushes: u32,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Sequence numbers and timestamps to acknowledge at the next flush.
    pub(crate) acknowledgements: Vec<(u32, u32)>,
    /// How many may wait; the reference's list has no limit.
    most_acknowledgements: usize,
    pub(crate) probe: Probe,
    pub(crate) round_trip: RoundTrip,
    pub(crate) congestion: Congestion,
    pub(crate) pool: Pool,
    pub(crate) staging: Vec<u8>,
    pub(crate) brief_acknowledgements: bool,
    rtt_sampling: RttSampling,
    skip_counting: SkipCounting,
    receive_window_floor: u16,
}

/// Whether the peer was shown to receive what is sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// Nobody asks, and every acknowledgement counts.
    NotAsked,
    /// No acknowledgement counts before the one that proves it.
    Awaited,
    /// By an acknowledgement under the time at which a segment was sent, or otherwise.
    Given,
}

impl Engine {
    /// One end of the conversation so numbered; the other end must have the
    /// same number.
    #[must_use]
    pub fn new(conversation: u32, config: &Config) -> Self {
        let rules = &config.rules;
        let mtu = config.bounded_mtu();
        let interval_ms = config.bounded_interval_ms();
        let receive_window = config.receive_window.max(rules.receive_window_floor).max(1);
        let most_buffers = usize::from(config.send_window.max(receive_window));
        Self {
            conversation,
            clock: Clock::default(),
            started: false,
            flush_due: 0,
            interval_ms,
            mtu,
            send_window: u32::from(config.send_window.max(1)),
            remote_window: u32::from(rules.first_remote_window),
            congestion_control: config.congestion_control,
            resend: config.resend,
            grace_shift: (config.nodelay == 0 && !rules.no_first_grace).then_some(3),
            dead: false,
            proof: Proof::NotAsked,
            resending_flushes: 0,
            sender: Sender::new(config),
            receiver: Receiver::new(config.first_sequence, u32::from(receive_window)),
            acknowledgements: Vec::new(),
            most_acknowledgements: usize::MAX,
            probe: Probe::new(
                rules.first_probe.duration().as_millis() as u32,
                rules.longest_probe.duration().as_millis() as u32,
            ),
            round_trip: RoundTrip::new(config.least_rto_ms(), rules.rto_margin, rules.rtt_sampling),
            congestion: Congestion::new(
                u32::from(rules.first_congestion_window),
                segment_bytes(mtu) as u32,
                rules.window_growth,
            ),
            pool: Pool::new(most_buffers),
            staging: Vec::new(),
            brief_acknowledgements: rules.brief_acknowledgements,
            rtt_sampling: rules.rtt_sampling,
            skip_counting: rules.skip_counting,
            receive_window_floor: rules.receive_window_floor,
        }
    }

    /// Queues a message, or in stream mode bytes, for the next flush. Returns
    /// how many bytes were taken: all of them, save in stream mode where the
    /// rest is too long for one call.
    ///
    /// The queue has no limit here, as it has none in the reference; see
    /// [`waiting`](Self::waiting).
    ///
    /// # Errors
    ///
    /// [`TooManySegments`] when the message is too long; nothing was taken.
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, TooManySegments> {
        let segment_bytes = segment_bytes(self.mtu);
        self.sender.push(bytes, segment_bytes, &mut self.pool)
    }

    /// Takes out the next message, in stream mode the bytes of the next
    /// segment, in place of what `message` held. `None` when there is none;
    /// `message` is then untouched.
    pub fn receive(&mut self, message: &mut Vec<u8>) -> Option<Arrival> {
        let was_full = self.receiver.is_full();
        let arrival = self.receiver.take(message, &mut self.pool)?;
        if was_full && !self.receiver.is_full() {
            self.probe.announce_window();
        }
        Some(arrival)
    }

    /// Takes in a datagram that came at `now`, an instant that only
    /// [`receive`](Self::receive) says again; round trips are measured by the
    /// clock that [`update`](Self::update) sets.
    ///
    /// # Errors
    ///
    /// [`BadDatagram`] when the datagram, or the rest of it, is not one of
    /// this conversation. What came before in it has been taken.
    pub fn input(&mut self, now: Time, datagram: &[u8]) -> Result<(), BadDatagram> {
        self.take_in(now, datagram, true)
    }

    /// The same of a datagram that was lost and is recovered. It is older than
    /// it seems: it shows neither the peer's window as it is nor the round trip.
    ///
    /// # Errors
    ///
    /// As of [`input`](Self::input).
    pub fn input_recovered(&mut self, now: Time, datagram: &[u8]) -> Result<(), BadDatagram> {
        self.take_in(now, datagram, false)
    }

    fn take_in(&mut self, now: Time, datagram: &[u8], is_regular: bool) -> Result<(), BadDatagram> {
        if datagram.len() < crate::wire::HEADER_BYTES {
            return Err(BadDatagram::TooShort);
        }
        let before = self.sender.ring.first();
        let mut newest: Option<(u32, u32)> = None;
        let mut last_sent = None;
        let mut rest = datagram;
        while let Some(piece) = split_segment(self.conversation, rest)? {
            rest = piece.following;
            let header = piece.header;
            if is_regular {
                self.remote_window = u32::from(header.window);
            }
            if header.command == Command::Acknowledge {
                // Before the cumulative number takes the segment away.
                self.look_for_proof(header.sequence, header.timestamp);
            }
            // A segment stays until its acknowledgement is the proof that is awaited,
            // and is sent again if that was lost: nothing else asks for it once more.
            let counts = self.proof != Proof::Awaited;
            if counts {
                self.sender
                    .on_unacknowledged(header.unacknowledged, &mut self.pool);
            }
            match header.command {
                Command::Acknowledge if !counts => {}
                Command::Acknowledge => {
                    let (sequence, sent) = (header.sequence, header.timestamp);
                    if is_regular && self.rtt_sampling == RttSampling::EachAcknowledgement {
                        self.sample_round_trip(sent);
                    }
                    self.on_acknowledge(sequence, sent);
                    last_sent = Some(sent);
                    let counts = newest.is_none_or(|newest| self.displaces(newest, sequence, sent));
                    if counts {
                        newest = Some((sequence, sent));
                    }
                }
                Command::Push => {
                    let sequence = header.sequence;
                    if self.receiver.acknowledges(sequence) {
                        self.owe_acknowledgement(sequence, header.timestamp);
                        self.receiver.insert(
                            now,
                            sequence,
                            header.fragment,
                            piece.payload,
                            &mut self.pool,
                        );
                    }
                }
                Command::AskWindow => self.probe.announce_window(),
                Command::ReportWindow => {}
            }
        }
        if let Some((sequence, sent)) = newest {
            self.sender
                .on_datagram_read(sequence, self.clock.extend(sent));
        }
        if is_regular
            && self.rtt_sampling == RttSampling::LastInDatagram
            && let Some(sent) = last_sent
        {
            self.sample_round_trip(sent);
        }
        if ahead(self.sender.ring.first(), before) > 0 {
            let bytes = segment_bytes(self.mtu) as u32;
            self.congestion.on_progress(self.remote_window, bytes);
        }
        Ok(())
    }

    /// Changes the size of datagrams. Segments cut before keep theirs, and so
    /// may make datagrams larger than the new size, as with the reference.
    /// Returns `false`, changing nothing, for less than 50 bytes or more than
    /// 65 535.
    pub fn set_mtu(&mut self, mtu: usize) -> bool {
        let fits = (LEAST_MTU..=usize::from(u16::MAX)).contains(&mtu);
        if fits {
            self.mtu = mtu;
        }
        fits
    }

    /// Changes the windows, in segments; a zero leaves that one as it is.
    pub fn set_windows(&mut self, send: u16, receive: u16) {
        if send > 0 {
            self.send_window = u32::from(send);
        }
        if receive > 0 {
            let receive = receive.max(self.receive_window_floor);
            self.receiver.set_window(u32::from(receive));
        }
        self.pool.keep(usize::from(send.max(receive)));
    }

    /// Bytes of the message that [`receive`](Self::receive) would take out.
    #[must_use]
    pub fn peek_bytes(&self) -> Option<usize> {
        self.receiver.peek_bytes()
    }

    /// Bytes of segments that have come and were not taken out, those included
    /// that wait for an earlier one.
    #[must_use]
    pub const fn unread_bytes(&self) -> usize {
        self.receiver.waiting_bytes()
    }

    /// Bytes of memory that what has come takes, with the buffers kept for what
    /// comes and for acknowledgements. What waits to be sent is not among them.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let acknowledgements = self.acknowledgements.capacity() * size_of::<(u32, u32)>();
        self.receiver.held_bytes()
            + self.pool.held_bytes()
            + self.staging.capacity()
            + acknowledgements
    }

    /// Segments that the peer has not acknowledged, sent or not.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.sender.waiting()
    }

    /// Whether some segment has been sent as often as the settings allow. The
    /// engine goes on regardless, and the state stays.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        self.dead
    }

    /// How many flushes have sent something again that was lost or taken for
    /// lost. The number wraps.
    #[must_use]
    pub const fn resending_flushes(&self) -> u32 {
        self.resending_flushes
    }

    /// Whether the peer has acknowledged a segment under the time at which it
    /// was sent first or last. Where nobody can foresee the clock, only who
    /// receives what is sent can do that: a number of 32 bits has to be right.
    /// A time between the two does not count, for then the more of a flood of
    /// guesses would be right the longer the segment waits.
    #[must_use]
    pub const fn is_peer_proven(&self) -> bool {
        matches!(self.proof, Proof::Given)
    }

    /// Takes no acknowledgement until one proves the peer: see
    /// [`is_peer_proven`](Self::is_peer_proven).
    pub const fn await_proof(&mut self) {
        self.proof = Proof::Awaited;
    }

    /// The peer was shown to receive what is sent to it by other means.
    pub const fn set_peer_proven(&mut self) {
        self.proof = Proof::Given;
    }

    /// Asks the peer at the next flush how much room it has, to which a peer
    /// that is there answers.
    pub fn ask_window(&mut self) {
        self.probe.ask_window();
    }

    /// Room in the peer's receive window as it last said, in segments.
    #[must_use]
    pub const fn remote_window(&self) -> u32 {
        self.remote_window
    }

    /// The smoothed round-trip time in milliseconds; 0 before the first
    /// acknowledgement.
    #[must_use]
    pub const fn smoothed_rtt_ms(&self) -> u32 {
        self.round_trip.smoothed_ms()
    }

    /// The timeout of a segment sent now, in milliseconds.
    #[must_use]
    pub const fn timeout_ms(&self) -> u32 {
        self.round_trip.timeout_ms()
    }

    /// The congestion window in segments, kept whether or not it limits
    /// sending.
    #[must_use]
    pub const fn congestion_window(&self) -> u32 {
        self.congestion.window()
    }

    /// Lets no more than so many acknowledgements wait for a flush: a peer that
    /// repeats one segment fills the list at will.
    pub const fn limit_acknowledgements(&mut self, most: usize) {
        self.most_acknowledgements = most;
    }

    /// Notes that a segment is to be acknowledged. One that finds no room is
    /// acknowledged when it comes once more, as if that had been lost.
    fn owe_acknowledgement(&mut self, sequence: u32, timestamp: u32) {
        if self.acknowledgements.len() < self.most_acknowledgements {
            self.acknowledgements.push((sequence, timestamp));
        }
    }

    fn on_acknowledge(&mut self, sequence: u32, sent: u32) {
        let sent = self.clock.extend(sent);
        self.sender.on_acknowledge(sequence, sent, &mut self.pool);
    }

    /// Whether an acknowledgement shows that the peer has received a segment.
    fn look_for_proof(&mut self, sequence: u32, sent: u32) {
        let sent = self.clock.extend(sent);
        let segment = self.sender.ring.outstanding(sequence);
        if segment.is_some_and(|it| sent == it.sent || sent == it.first_sent) {
            self.proof = Proof::Given;
        }
    }

    /// Measures the round trip of a segment sent at `sent`; one in the future
    /// was not.
    fn sample_round_trip(&mut self, sent: u32) {
        let rtt = ahead(self.clock.on_wire(), sent);
        if rtt >= 0 {
            self.round_trip.sample(rtt, self.interval_ms);
        }
    }

    /// Whether an acknowledgement counts for skips instead of the one in the
    /// same datagram that has counted so far.
    const fn displaces(&self, newest: (u32, u32), sequence: u32, sent: u32) -> bool {
        let higher = ahead(sequence, newest.0) > 0;
        match self.skip_counting {
            SkipCounting::NewestInDatagram => higher && ahead(sent, newest.1) > 0,
            _ => higher,
        }
    }
}
