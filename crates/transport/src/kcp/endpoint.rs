//! KCP as an [`Endpoint`]: an engine together with the habits of the
//! application around it.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_kcp::{Engine, HEADER_BYTES, Pool, Work, ahead, segment_bytes};
use lagometer_units::{Span, Time};

use super::fec::Fec;
use super::framing::{LENGTH_BYTES, Reassembly, frame};
use super::settings::{Settings, Side};
use crate::{BadSetting, Closed, Endpoint, Message, Refused, State, Transport};

/// Datagram buffers kept for reuse.
const SPARE_DATAGRAMS: usize = 64;

/// One side of a KCP connection.
///
/// There is no handshake: both ends know the conversation's number, and are
/// ready from the start. Nor is there a farewell: an end whose peer falls
/// silent closes with [`Closed::DeadLink`] after `peer_timeout`, or once a segment
/// has been sent `dead_link` times, and one that has nothing to send never notices.
///
/// The engine's clock starts at the settings' `phase` and counts whole
/// milliseconds from there. Updates are made when the flush is due, or from a
/// timer. While there is nothing to do no deadline is set, and the updates
/// left out are made up for, so that the flushes keep their phase.
#[derive(Debug)]
pub struct KcpEndpoint {
    engine: Engine,
    habits: Habits,
    limits: Limits,
    /// When the engine's clock shows zero.
    origin: Time,
    next_update: Time,
    pending: Pending,
    /// What makes groups of the datagrams, where that is set.
    fec: Option<Box<Fec>>,
    outgoing: VecDeque<Vec<u8>>,
    spare: Pool,
    /// Messages read for datagrams, where only so many are read.
    read: VecDeque<Message>,
    reassembly: Option<Reassembly>,
    /// Kept for its memory.
    scratch: Vec<u8>,
    /// The later of the last sign of the peer and of when something began to wait
    /// for it.
    silent_since: Time,
    /// How long that may be; none for ever.
    peer_timeout: Option<Duration>,
    closed: Option<Closed>,
}

/// What the application around the engine does.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a habit of its own")]
struct Habits {
    flush_on_send: bool,
    flush_on_input: bool,
    ack_no_delay: bool,
    fresh_clock: bool,
    update_timer: Option<Duration>,
    wake_at_timeouts: bool,
    one_receive_per_datagram: bool,
}

/// What the endpoint takes from its application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    segment_bytes: usize,
    /// The most segments of one message, or of one call in stream mode.
    segments: usize,
    queued_segments: usize,
    pub(crate) message_bytes: usize,
}

/// What is to be flushed when datagrams are next asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    Nothing,
    Acknowledgements,
    All,
}

/// Both ends of the conversation so numbered, the client first, at the instant
/// `start`.
///
/// # Errors
///
/// [`BadSetting`] when no endpoint can have the settings.
pub fn pair(
    settings: &Settings,
    conversation: u32,
    start: Time,
) -> Result<(KcpEndpoint, KcpEndpoint), BadSetting> {
    let end = |side| KcpEndpoint::new(settings, side, conversation, start);
    Ok((end(Side::Client)?, end(Side::Server)?))
}

impl KcpEndpoint {
    /// One end of the conversation so numbered, at the instant `start`; the
    /// other end must have the same number and the other side.
    ///
    /// # Errors
    ///
    /// [`BadSetting`] when no endpoint can have the settings.
    pub fn new(
        settings: &Settings,
        side: Side,
        conversation: u32,
        start: Time,
    ) -> Result<Self, BadSetting> {
        settings.check()?;
        let peer = settings.of(side.other());
        let phase = match side {
            Side::Client => settings.client_phase,
            Side::Server => settings.server_phase,
        };
        let settings = settings.of(side);
        let config = settings.config();
        let origin = start + phase.duration();
        Ok(Self {
            engine: Engine::new(conversation, &config),
            habits: Habits {
                flush_on_send: settings.flush_on_send,
                flush_on_input: settings.flush_on_input,
                ack_no_delay: settings.ack_no_delay,
                fresh_clock: settings.fresh_clock,
                update_timer: settings.update_timer.map(Span::duration),
                wake_at_timeouts: settings.wake_at_timeouts,
                one_receive_per_datagram: settings.one_receive_per_datagram,
            },
            limits: Limits::new(&settings, &peer),
            origin,
            next_update: origin,
            pending: Pending::Nothing,
            fec: settings
                .fec
                .map(|group| Box::new(Fec::new(group, settings.mtu.bytes() as usize))),
            outgoing: VecDeque::new(),
            spare: Pool::new(SPARE_DATAGRAMS),
            read: VecDeque::new(),
            reassembly: settings
                .stream
                .then(|| Reassembly::new(stream_message_bytes(&settings))),
            scratch: Vec::new(),
            silent_since: start,
            peer_timeout: Some(settings.peer_timeout.0).filter(|it| !it.is_zero()),
            closed: None,
        })
    }

    /// The engine, to look at.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Makes the updates that are due.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now && self.closed.is_none() {
            // An update with nothing to do was not asked for; it is made up
            // for at its own time. Otherwise the driver is late, and a
            // process that is late knows only the present.
            let at = if self.has_work(self.next_update) {
                now
            } else {
                self.next_update
            };
            self.update(at);
        }
    }

    fn update(&mut self, at: Time) {
        let clock = self.clock(at);
        let (fec, outgoing, spare) = (&mut self.fec, &mut self.outgoing, &mut self.spare);
        let output = |bytes: &[u8]| send(fec, outgoing, spare, bytes);
        if self.habits.wake_at_timeouts {
            let wait_ms = self.engine.wake(clock as u32, output);
            self.next_update = at + Duration::from_millis(u64::from(wait_ms));
        } else {
            self.engine.update(clock as u32, output);
            self.next_update = match self.habits.update_timer {
                Some(period) => at + period,
                None => self.after_clock(clock, self.engine.next_flush().unwrap_or(0)),
            };
        }
        self.look_for_death();
    }

    /// What waits to be flushed out of turn is flushed.
    fn flush_pending(&mut self, now: Time) {
        let pending = std::mem::replace(&mut self.pending, Pending::Nothing);
        if pending == Pending::Nothing {
            return;
        }
        self.freshen(now);
        let (fec, outgoing, spare) = (&mut self.fec, &mut self.outgoing, &mut self.spare);
        let output = |bytes: &[u8]| send(fec, outgoing, spare, bytes);
        if pending == Pending::All {
            self.engine.flush(output);
        } else {
            self.engine.flush_acknowledgements(output);
        }
        self.look_for_death();
    }

    /// Hands a datagram to the engine, and those that it helps to recover.
    /// Returns whether there was one of this conversation.
    fn take_in(&mut self, now: Time, datagram: &[u8]) -> bool {
        let Some(fec) = &mut self.fec else {
            return self.engine.input(now, datagram).is_ok();
        };
        let decoded = fec.receive(now, datagram);
        let regular = decoded.regular.map(|it| self.engine.input(now, it));
        let recovered = decoded.recovered.iter();
        let recovered = recovered.map(|it| self.engine.input_recovered(now, it));
        // All of them, not up to the first.
        regular.into_iter().chain(recovered).flatten().count() > 0
    }

    /// Whether an update at `at` would send anything.
    fn has_work(&mut self, at: Time) -> bool {
        let clock = self.clock(at) as u32;
        match self.engine.next_work() {
            Work::Now => true,
            Work::At(due) => ahead(clock, due) >= 0,
            Work::Never => false,
        }
    }

    fn freshen(&mut self, now: Time) {
        if self.habits.fresh_clock {
            self.engine.set_clock(self.clock(now) as u32);
        }
    }

    fn look_for_death(&mut self) {
        if self.engine.is_dead() && self.closed.is_none() {
            self.close(Closed::DeadLink);
        }
    }

    /// When the peer is given up, unless something comes of it.
    fn silent_until(&self) -> Option<Time> {
        let timeout = self.peer_timeout.filter(|_| self.engine.waiting() > 0)?;
        Some(self.silent_since + timeout)
    }

    fn close(&mut self, why: Closed) {
        self.closed = Some(why);
        self.outgoing.clear();
        self.pending = Pending::Nothing;
    }

    /// The next message that the engine has.
    fn read_message(&mut self) -> Option<Message> {
        let Some(reassembly) = &mut self.reassembly else {
            let mut bytes = Vec::new();
            let arrival = self.engine.receive(&mut bytes)?;
            return Some(Message {
                bytes,
                blocked: Some(arrival.blocked()),
            });
        };
        loop {
            match reassembly.pop() {
                Ok(Some((bytes, arrival))) => {
                    return Some(Message {
                        bytes,
                        blocked: Some(arrival.blocked()),
                    });
                }
                Ok(None) => {
                    let arrival = self.engine.receive(&mut self.scratch)?;
                    reassembly.push(&self.scratch, arrival);
                }
                Err(_) => {
                    let why = "the peer's stream announces a message beyond the limit";
                    self.close(Closed::Failed(why.to_owned()));
                    return None;
                }
            }
        }
    }

    /// Hands a whole stream frame to the engine, in as many calls as it needs.
    fn send_frame(&mut self, message: &[u8]) {
        self.scratch.clear();
        frame(message, &mut self.scratch);
        let mut rest = &self.scratch[..];
        while !rest.is_empty() {
            let most = self.limits.segments * self.limits.segment_bytes;
            // So few segments are never refused.
            let Ok(taken) = self.engine.send(&rest[..rest.len().min(most)]) else {
                return;
            };
            rest = &rest[taken..];
        }
    }

    /// The first update at which the engine's clock shows `due` or later.
    fn first_update_from(&self, due: u32) -> Time {
        let next = self.clock(self.next_update);
        let wait = ahead(due, next as u32);
        let period = match self.habits.update_timer {
            Some(period) => period,
            None => Duration::from_millis(u64::from(self.engine.interval_ms())),
        };
        let wait = Duration::from_millis(u64::try_from(wait).unwrap_or(0));
        let updates = wait.as_nanos().div_ceil(period.as_nanos());
        self.next_update + Duration::from_nanos((updates * period.as_nanos()) as u64)
    }

    /// Milliseconds that the engine's clock shows at `now`, before it wraps.
    fn clock(&self, now: Time) -> u64 {
        now.since(self.origin).as_millis() as u64
    }

    /// When the engine's clock shows `wait` more than `clock`.
    fn after_clock(&self, clock: u64, wait: u32) -> Time {
        self.origin + Duration::from_millis(clock + u64::from(wait))
    }
}

impl Endpoint for KcpEndpoint {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        if self.closed.is_some() {
            return Err(Refused::NotOpen);
        }
        self.catch_up(now);
        let framed = self.reassembly.is_some();
        let bytes = message.len() + if framed { LENGTH_BYTES } else { 0 };
        Refused::if_larger(message, self.limits.message_bytes)?;
        let segments = bytes.div_ceil(self.limits.segment_bytes).max(1);
        if self.engine.waiting() + segments > self.limits.queued_segments {
            return Err(Refused::BufferFull);
        }
        if self.engine.waiting() == 0 {
            self.silent_since = now;
        }
        if framed {
            self.send_frame(message);
        } else {
            let too_large = |_| Refused::TooLarge {
                size_bytes: message.len(),
                limit_bytes: self.limits.message_bytes,
            };
            self.engine.send(message).map_err(too_large)?;
        }
        if self.habits.flush_on_send {
            self.pending = Pending::All;
        }
        Ok(())
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        self.catch_up(now);
        if self.habits.one_receive_per_datagram {
            self.read.pop_front()
        } else {
            self.read_message()
        }
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        if self.closed.is_some() {
            return;
        }
        self.catch_up(now);
        self.freshen(now);
        if !self.take_in(now, datagram) {
            // Not ours, or damaged: the reference's caller has nobody to report to
            // either.
            return;
        }
        self.silent_since = now;
        let room = self.read.len() < self.limits.queued_segments;
        if self.habits.one_receive_per_datagram && room {
            let message = self.read_message();
            self.read.extend(message);
        }
        if self.habits.flush_on_input {
            self.pending = Pending::All;
        } else if self.habits.ack_no_delay && self.engine.owes_acknowledgement() {
            self.pending = self.pending.max(Pending::Acknowledgements);
        }
    }

    fn poll_datagram(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        self.flush_pending(now);
        let Some(datagram) = self.outgoing.pop_front() else {
            return false;
        };
        self.spare.give(std::mem::replace(buffer, datagram));
        true
    }

    fn next_deadline(&mut self) -> Option<Time> {
        if self.closed.is_some() {
            return None;
        }
        let update = match self.engine.next_work() {
            Work::Now => Some(self.next_update),
            Work::At(_) if self.habits.wake_at_timeouts => Some(self.next_update),
            Work::At(due) => Some(self.first_update_from(due)),
            Work::Never => None,
        };
        [update, self.silent_until()].into_iter().flatten().min()
    }

    fn handle_deadline(&mut self, now: Time) {
        let is_silent = self.silent_until().is_some_and(|until| until <= now);
        if is_silent && self.closed.is_none() {
            self.close(Closed::DeadLink);
        }
        self.catch_up(now);
    }

    fn state(&self) -> State {
        match &self.closed {
            None => State::Ready,
            Some(why) => State::Closed(why.clone()),
        }
    }
}

impl Limits {
    /// Those of a side, both sides' settings being resolved.
    pub(crate) fn new(settings: &Settings, peer: &Settings) -> Self {
        let rules = &settings.rules;
        let segment_bytes = segment_bytes(settings.config().bounded_mtu());
        let queued_segments = settings.send_queue_limit as usize;
        let peer_window = peer.receive_window.max(peer.rules.receive_window_floor);
        // A message of more segments than the peer keeps would never be whole.
        let segments = usize::from((rules.fragment_limit - 1).min(peer_window));
        let message_bytes = if settings.stream {
            let queue_bytes = queued_segments.saturating_mul(segment_bytes);
            stream_message_bytes(settings).min(queue_bytes - LENGTH_BYTES)
        } else {
            segments.min(queued_segments) * segment_bytes
        };
        Self {
            segment_bytes,
            segments,
            queued_segments,
            message_bytes,
        }
    }
}

/// The longest message in stream mode.
fn stream_message_bytes(settings: &Settings) -> usize {
    usize::try_from(settings.stream_message_limit.bytes()).unwrap_or(usize::MAX)
}

/// Puts a datagram of the engine's on its way, and the parity it completes.
fn send(
    fec: &mut Option<Box<Fec>>,
    outgoing: &mut VecDeque<Vec<u8>>,
    spare: &mut Pool,
    bytes: &[u8],
) {
    match fec {
        None => post(outgoing, spare, bytes),
        Some(fec) => fec.send(bytes, &mut |shard| post(outgoing, spare, shard)),
    }
}

/// Puts a datagram at the end of those that wait for the wire.
fn post(outgoing: &mut VecDeque<Vec<u8>>, spare: &mut Pool, bytes: &[u8]) {
    let mut datagram = spare.take(bytes.len().max(HEADER_BYTES));
    datagram.extend_from_slice(bytes);
    outgoing.push_back(datagram);
}
