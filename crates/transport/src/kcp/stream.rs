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

use lagometer_units::{Span, Time};

use super::config::segment_bytes;
use super::wire::split_segment;
use super::{Command, Config, Engine, HEADER_BYTES, Rules, Work};
use crate::{ByteStream, Carrier, Closed, State};

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
        Self::with_clock(conversation, config, now, 0)
    }

    /// The same with a clock that shows `clock_offset_ms` more than the time
    /// handed in. Where nobody can foresee that, an acknowledgement proves that
    /// the peer receives what is sent to it: see
    /// [`is_peer_proven`](Self::is_peer_proven).
    #[must_use]
    pub fn with_clock(conversation: u32, config: &Config, now: Time, clock_offset_ms: u32) -> Self {
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

    fn carrier(&self) -> Carrier {
        Carrier::Udp
    }
}

/// KCP's clock: it may wrap.
fn millis(now: Time) -> u32 {
    now.as_millis() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries everything both sides have for each other until `until_ms`, a
    /// datagram a millisecond later; every `lost_of`-th of the first side's is
    /// lost.
    fn carry(sides: &mut [Stream; 2], until_ms: u64, lost_of: usize) -> Vec<u8> {
        let (mut arrived, mut sent) = (Vec::new(), 0_usize);
        let mut on_the_way: [Vec<Vec<u8>>; 2] = Default::default();
        for ms in 0..until_ms {
            let now = Time::from_millis(ms);
            let due = std::mem::take(&mut on_the_way);
            for (to, datagrams) in [1, 0].into_iter().zip(due) {
                for datagram in datagrams {
                    sides[to].input(now, &datagram, &mut |_| {});
                }
            }
            for (from, side) in sides.iter_mut().enumerate() {
                if side.next_deadline(now).is_some() {
                    side.tick(now, &mut |datagram| {
                        sent += 1;
                        if from == 1 || lost_of == 0 || sent % lost_of != 0 {
                            on_the_way[from].push(datagram.to_vec());
                        }
                    });
                }
            }
            sides[1].read(&mut |bytes| arrived.extend_from_slice(bytes));
        }
        arrived
    }

    #[test]
    fn bytes_arrive_in_order_whatever_is_lost() {
        for profile in [StreamProfile::KcpGo, StreamProfile::Tuned] {
            let side = || Stream::new(7, profile, Time::ZERO);
            let mut sides = [side(), side()];
            let bytes: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
            assert_eq!(sides[0].write(Time::ZERO, &bytes), bytes.len());
            assert_eq!(carry(&mut sides, 20_000, 5), bytes, "{profile:?}");
        }
    }

    #[test]
    fn flushes_that_send_again_are_counted_and_those_that_need_not_are_not() {
        for profile in [StreamProfile::KcpGo, StreamProfile::Tuned] {
            let side = || Stream::new(7, profile, Time::ZERO);
            for (lost_of, any) in [(0, false), (5, true)] {
                let mut sides = [side(), side()];
                sides[0].write(Time::ZERO, &vec![7; 20_000]);
                carry(&mut sides, 20_000, lost_of);
                let resending = sides[0].resending_flushes();
                assert_eq!(resending > 0, any, "{profile:?}: {resending}");
                assert_eq!(sides[1].resending_flushes(), 0, "it sent nothing");
            }
        }
    }

    #[test]
    fn what_the_window_has_no_room_for_is_not_taken() {
        let mut side = Stream::new(7, StreamProfile::Tuned, Time::ZERO);
        let segment = side.segment_bytes;
        let bytes = vec![0; segment * 300];
        assert_eq!(side.write(Time::ZERO, &bytes), segment * 256);
        assert_eq!(side.write(Time::ZERO, &bytes), 0);
    }

    #[test]
    fn a_kcp_go_session_takes_one_frame_whole_and_then_none_while_its_window_is_full() {
        let mut side = Stream::new(7, StreamProfile::KcpGo, Time::ZERO);
        assert_eq!(
            side.write(Time::ZERO, &vec![0; 100_000]),
            LONGEST_WRITE_BYTES
        );
        assert_eq!(side.write(Time::ZERO, &[0; 1]), 0);
    }

    #[test]
    fn asking_again_does_not_put_a_deadline_off() {
        let mut side = Stream::new(7, StreamProfile::KcpGo, Time::ZERO);
        assert_eq!(side.next_deadline(Time::ZERO), Some(Time::ZERO));
        side.tick(Time::ZERO, &mut |_| {});
        side.write(Time::ZERO, b"x");
        let deadlines = [1, 20, 60, 99].map(|ms| side.next_deadline(Time::from_millis(ms)));
        assert_eq!(deadlines, [Some(Time::from_millis(100)); 4]);
    }

    #[test]
    fn only_what_can_be_a_beginning_opens_a_conversation() {
        let mut side = Stream::new(0x0102_0304, StreamProfile::Tuned, Time::ZERO);
        side.write(Time::ZERO, b"x");
        let mut datagrams = Vec::new();
        side.send(Time::ZERO, &mut |datagram| {
            datagrams.push(datagram.to_vec());
        });
        let first = &datagrams[0];
        assert_eq!(Stream::conversation_of(first), Some(0x0102_0304));
        assert!(Stream::opens(first));
        assert_eq!(Stream::conversation_of(b"short"), None);
        assert!(!Stream::opens(b"short"));
        assert!(!Stream::opens(&first[..24]), "cut off");
        let with = |at: usize, byte: u8| {
            let mut changed = first.clone();
            changed[at] = byte;
            changed
        };
        assert!(!Stream::opens(&with(13, 1)), "a segment of later on");
        assert!(!Stream::opens(&with(4, 82)), "an acknowledgement");
        let empty = &with(20, 0)[..24];
        assert!(!Stream::opens(empty), "24 bytes that say nothing");
    }

    #[test]
    fn a_peer_is_proven_by_the_time_in_its_acknowledgement_alone() {
        let accept = || Stream::with_clock(7, &Config::kcp_go(), Time::ZERO, 0xdead_beef);
        let acknowledge = |side: &mut Stream, timestamp: u32| {
            side.tick(Time::ZERO, &mut |_| {});
            side.write(Time::ZERO, b"x");
            side.send(Time::ZERO, &mut |_| {});
            let header = super::super::Header {
                conversation: 7,
                command: Command::Acknowledge,
                fragment: 0,
                window: 32,
                timestamp,
                sequence: 0,
                unacknowledged: 1,
                length: 0,
            };
            side.input(Time::from_millis(50), &header.to_bytes(), &mut |_| {});
            side.is_peer_proven()
        };
        for foreseen in [0, 50, 0xdead_bef0, 0xdead_beee] {
            assert!(!acknowledge(&mut accept(), foreseen));
        }
        assert!(acknowledge(&mut accept(), 0xdead_beef));
    }

    #[test]
    fn a_segment_that_waits_long_makes_its_acknowledgement_no_easier_to_guess() {
        let mut right = Vec::new();
        for guess_ms in (0..20_000).step_by(50) {
            let mut side = Stream::with_clock(7, &Config::kcp_go(), Time::ZERO, 0xdead_0000);
            side.write(Time::ZERO, b"x");
            let mut sent = 0;
            for ms in (0..20_000).step_by(10) {
                side.tick(Time::from_millis(ms), &mut |_| sent += 1);
            }
            assert!(sent > 3, "{sent}");
            let header = super::super::Header {
                conversation: 7,
                command: Command::Acknowledge,
                fragment: 0,
                window: 32,
                timestamp: 0xdead_0000 + guess_ms,
                sequence: 0,
                unacknowledged: 0,
                length: 0,
            };
            side.input(Time::from_secs(20), &header.to_bytes(), &mut |_| {});
            right.extend(side.is_peer_proven().then_some(guess_ms));
        }
        assert!(right.len() <= 2, "{right:?}");
    }
}
