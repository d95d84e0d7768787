//! A stream of bytes in a KCP conversation, as channel gateways speak it.
//!
//! There is no handshake: the first datagram opens the conversation under the
//! number that is in it. There is no goodbye either: a peer that is silent
//! while something was sent to it counts as gone once a segment was sent as
//! often as the profile allows.
//!
//! What is written is cut into pieces of a segment each, which the peer joins;
//! the borders of the pieces mean nothing.

use std::time::Duration;

use lagometer_kcp::{
    Command, Config, Engine, HEADER_BYTES, Rules, Work, segment_bytes, split_segment,
};
use lagometer_units::{Span, Time};

use crate::{ByteStream, Closed, Encapsulation, State};

/// How conversations with a gateway behave, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProfile {
    /// As a kcp-go session is where nothing is set, which is what channeld's
    /// peers speak to: windows of 32 segments, congestion control, a flush
    /// after each write, at the nearest timeout, and every 100 ms. The same
    /// datagrams at the same times as kcp-go 5.4.20.
    KcpGo,
    /// For play: a flush every 10 ms, resends after two skips, no congestion
    /// control, windows of 256 segments.
    Tuned,
}

impl StreamProfile {
    /// What an engine of this profile is made from.
    #[must_use]
    pub fn config(self) -> Config {
        match self {
            Self::KcpGo => Config::kcp_go(),
            Self::Tuned => Config {
                nodelay: 1,
                interval_ms: 10,
                resend: 2,
                congestion_control: false,
                send_window: 256,
                receive_window: 256,
                dead_link: 40,
                rules: Rules {
                    first_probe: Span(Duration::from_millis(500)),
                    longest_probe: Span(Duration::from_secs(5)),
                    ..Rules::default()
                },
                ..Config::default()
            },
        }
    }
}

/// The most bytes taken from one call of [`Stream::write`] under kcp-go's
/// rules, where a write is taken whole or not at all: channeld's longest frame.
const LONGEST_WRITE_BYTES: usize = 5 + u16::MAX as usize;

/// Segments that can be among the first: the largest window of a profile.
const FIRST_WINDOW: u32 = 256;

/// One side of a conversation that carries bytes.
#[derive(Debug)]
pub struct Stream {
    engine: Engine,
    conversation: u32,
    segment_bytes: usize,
    window: usize,
    /// What a kcp-go session has beside its engine, where this is one.
    session: Option<Session>,
    /// What the engine's clock is ahead of the time handed in.
    clock_offset_ms: u32,
    /// The most bytes that writes take from now on.
    write_limit: Option<usize>,
    message: Vec<u8>,
}

/// The timer of a kcp-go session: it flushes when it goes off, and is then set
/// to the nearest timeout, or an interval later. Other flushes leave it alone.
#[derive(Debug)]
struct Session {
    next_wake: Time,
    /// Nothing is in flight nor waits: the timer goes off for nothing, and
    /// nobody need be woken.
    is_idle: bool,
}

impl Session {
    /// After idling, puts the timer to where it would stand at `now`.
    fn resume(&mut self, now: Time, interval_ms: u32) {
        if std::mem::take(&mut self.is_idle) && self.next_wake < now {
            let interval = Duration::from_millis(u64::from(interval_ms)).as_nanos();
            let behind = now.since(self.next_wake).as_nanos();
            let wakes = behind.div_ceil(interval) * interval;
            self.next_wake += Duration::from_nanos(wakes as u64);
        }
    }
}

impl Stream {
    /// A side of the conversation so numbered, at `now`.
    #[must_use]
    pub fn new(conversation: u32, profile: StreamProfile, now: Time) -> Self {
        Self::with_config(conversation, &profile.config(), now)
    }

    /// A side of the conversation so numbered, at `now`, with other settings
    /// than those of a profile. It is a kcp-go session if the rules are
    /// kcp-go's.
    #[must_use]
    pub fn with_config(conversation: u32, config: &Config, now: Time) -> Self {
        Self::new_at(conversation, config, now, 0)
    }

    /// The same with a peer that may not be where it says, and a clock that shows
    /// `clock_offset_ms` more than the time handed in. Where nobody can foresee that,
    /// an acknowledgement proves that the peer receives what is sent to it, and none
    /// counts before one does: see [`is_peer_proven`](Self::is_peer_proven).
    #[must_use]
    pub fn with_clock(conversation: u32, config: &Config, now: Time, clock_offset_ms: u32) -> Self {
        let mut stream = Self::new_at(conversation, config, now, clock_offset_ms);
        stream.engine.await_proof();
        stream
    }

    fn new_at(conversation: u32, config: &Config, now: Time, clock_offset_ms: u32) -> Self {
        let mut engine = Engine::new(conversation, config);
        engine.limit_acknowledgements(config.most_acknowledgements());
        let is_session = config.rules.early_resend;
        let clock = millis(now).wrapping_add(clock_offset_ms);
        if is_session {
            engine.start(clock);
        } else {
            engine.update(clock, |_| {});
        }
        Self {
            engine,
            conversation,
            segment_bytes: segment_bytes(config.bounded_mtu()),
            window: usize::from(config.send_window),
            session: is_session.then_some(Session {
                next_wake: now,
                is_idle: false,
            }),
            clock_offset_ms,
            write_limit: None,
            message: Vec::new(),
        }
    }

    /// Sets the engine's clock to `now`, and the timer of a session that was
    /// idle to where it stands.
    fn resume(&mut self, now: Time) {
        if let Some(session) = &mut self.session {
            session.resume(now, self.engine.interval_ms());
        }
        self.engine.set_clock(self.clock(now));
    }

    /// What the engine's clock shows at `now`.
    fn clock(&self, now: Time) -> u32 {
        millis(now).wrapping_add(self.clock_offset_ms)
    }

    /// Whether the peer has acknowledged something under the time at which it
    /// was sent, and so receives what is sent to its address.
    #[must_use]
    pub const fn is_peer_proven(&self) -> bool {
        self.engine.is_peer_proven()
    }

    /// The peer was shown to receive what is sent to it by other means, as by a
    /// cookie: every acknowledgement counts.
    pub const fn set_peer_proven(&mut self) {
        self.engine.set_peer_proven();
    }

    /// How many flushes have sent something again that was lost or taken for
    /// lost. The number wraps.
    #[must_use]
    pub const fn resending_flushes(&self) -> u32 {
        self.engine.resending_flushes()
    }

    /// Bytes that have come and were not read, those included that wait for
    /// earlier ones.
    #[must_use]
    pub const fn unread_bytes(&self) -> usize {
        self.engine.unread_bytes()
    }

    /// Bytes of memory that what has come takes, with the buffers kept for it;
    /// what waits to be sent is not among them.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.engine.held_bytes() + self.message.capacity()
    }

    /// Asks the peer, with the next flush, to say that it is there. Any KCP
    /// answers with its window.
    pub fn ask_for_sign_of_life(&mut self) {
        self.engine.ask_window();
    }

    /// Lets writes take no more than `bytes` from now on, together; `None`: as
    /// many as there is room for.
    pub fn limit_writes(&mut self, bytes: Option<usize>) {
        self.write_limit = bytes;
    }

    /// Takes in a datagram that was lost and is recovered, as
    /// [`input`](ByteStream::input) does one that came.
    pub(super) fn input_recovered(&mut self, now: Time, datagram: &[u8]) {
        self.resume(now);
        // As in `input`.
        let _ = self.engine.input_recovered(now, datagram);
    }

    /// Whether what is written now is taken.
    fn takes_more(&self) -> bool {
        let waiting = self.engine.waiting();
        let peer_has_room = || waiting < self.engine.remote_window() as usize;
        waiting < self.window && (self.session.is_none() || peer_has_room())
    }

    /// The conversation's number.
    #[must_use]
    pub const fn conversation(&self) -> u32 {
        self.conversation
    }

    /// The number of the conversation a datagram is of; `None` for what is no
    /// datagram of KCP's.
    #[must_use]
    pub fn conversation_of(datagram: &[u8]) -> Option<u32> {
        let header = datagram.first_chunk::<HEADER_BYTES>()?;
        let [a, b, c, d, ..] = *header;
        Some(u32::from_le_bytes([a, b, c, d]))
    }

    /// Whether a datagram can be among the first of a conversation: whole, and
    /// with data in a segment of the first window. A peer that begins has
    /// something to say, and nothing need be kept for one that has not.
    #[must_use]
    pub fn opens(datagram: &[u8]) -> bool {
        let Some(conversation) = Self::conversation_of(datagram) else {
            return false;
        };
        let mut rest = datagram;
        let mut has_data = false;
        while let Ok(Some(piece)) = split_segment(conversation, rest) {
            let header = piece.header;
            has_data |= header.command == Command::Push
                && header.sequence < FIRST_WINDOW
                && !piece.payload.is_empty();
            rest = piece.following;
        }
        rest.is_empty() && has_data
    }
}

impl ByteStream for Stream {
    /// As with kcp-go, a session takes all of a write or nothing; but no more
    /// than 65,540 bytes.
    fn write(&mut self, _now: Time, bytes: &[u8]) -> usize {
        let mut taken = 0;
        let is_session = self.session.is_some();
        let of_one_write = if is_session {
            LONGEST_WRITE_BYTES
        } else {
            usize::MAX
        };
        let limit = self.write_limit.unwrap_or(usize::MAX);
        let most = bytes.len().min(of_one_write).min(limit);
        for piece in bytes[..most].chunks(self.segment_bytes) {
            let is_begun = is_session && taken > 0;
            if !(is_begun || self.takes_more()) || self.engine.send(piece).is_err() {
                break;
            }
            taken += piece.len();
        }
        self.write_limit = self.write_limit.map(|limit| limit - taken);
        taken
    }

    fn send(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        self.resume(now);
        self.engine.flush(output);
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) {
        while self.engine.receive(&mut self.message).is_some() {
            take(&self.message);
        }
    }

    /// What is not of this conversation is passed over. Acknowledgements wait
    /// for the next flush.
    fn input(&mut self, now: Time, datagram: &[u8], _output: &mut dyn FnMut(&[u8])) {
        self.resume(now);
        // The pieces before a bad one have been taken; the rest is noise.
        let _ = self.engine.input(now, datagram);
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        self.resume(now);
        let is_idle = self.engine.next_work() == Work::Never;
        if let Some(session) = &mut self.session {
            session.is_idle = is_idle;
            return (!is_idle).then_some(session.next_wake);
        }
        if is_idle {
            return None;
        }
        let wait = self.engine.next_flush().unwrap_or(0);
        Some(now + Duration::from_millis(u64::from(wait.max(1))))
    }

    fn tick(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        let clock = self.clock(now);
        let Some(session) = &mut self.session else {
            return self.engine.update(clock, output);
        };
        session.resume(now, self.engine.interval_ms());
        if session.next_wake <= now {
            let wait_ms = self.engine.wake(clock, output);
            session.next_wake = now + Duration::from_millis(u64::from(wait_ms));
        }
    }

    fn state(&self) -> State {
        if self.engine.is_dead() {
            State::Closed(Closed::DeadLink)
        } else {
            State::Ready
        }
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }
}

/// KCP's clock: it may wrap.
fn millis(now: Time) -> u32 {
    now.as_millis() as u32
}

#[cfg(test)]
mod tests;
