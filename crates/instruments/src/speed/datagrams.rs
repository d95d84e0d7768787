//! Both ends of a lane whose transport carries messages.

use std::time::Duration;

use lagometer_socket::MidPageBuffer;
use lagometer_transport::Refused;
use lagometer_units::Time;

use super::gauge::{CpuGauge, Gauge};
use super::mover::{Drained, Mover};
use super::pace::Pace;
use super::payload::{NUMBER_BYTES, Payload};
use super::receive_tracker::{Counts, ReceiveTracker};
use super::signal::{Order, Signal};
use super::{Ended, Failed};
use crate::clock::Clock;

/// Bytes that are offered before the pump looks at what has come.
const BURST_BYTES: u64 = 128 << 10;
/// Bytes that may wait in the endpoint beyond what it sends at once. More
/// would only lie in memory and grow cold.
const AHEAD_BYTES: u64 = 256 << 10;
/// As above, where the endpoint sends by its own clock alone: what it may
/// find waiting at a tick.
const AHEAD_OF_TICK_BYTES: u64 = 8 << 20;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What both ends of a lane know.
pub(super) struct Terms {
    /// Bytes of a message.
    pub(super) chunk_bytes: usize,
    /// The seed of the payload.
    pub(super) seed: u64,
    /// From one message to the next.
    pub(super) every: Option<Duration>,
    /// How long messages are offered.
    pub(super) duration: Duration,
    /// Bytes of the transport's own in each datagram.
    pub(super) header_bytes: u64,
    /// Sleeps end when they should: nobody looks instead.
    pub(super) sleeps: bool,
}

/// Sends until it is asked to stop.
pub(super) fn send(
    mut pump: impl Mover,
    terms: &Terms,
    clock: Clock,
    gauge: &Gauge,
    signal: &Signal,
) -> Result<Ended, Failed> {
    let payload = Payload::new(terms.seed);
    shake_hands(&mut pump, clock, signal)?;
    let mut cpu = CpuGauge::start(clock.now());
    let start = clock.now();
    let pace = Pace::new(terms.every, start, start + terms.duration);
    // Engines copy it behind a header of theirs: see MidPageBuffer on where
    // that must not lie.
    let mut message = MidPageBuffer::new(terms.chunk_bytes.max(NUMBER_BYTES));
    let mut backlog = Backlog::new(terms.header_bytes);
    let mut counts = Counts::default();
    let mut refused = 0;
    gauge.show(counts, start);
    loop {
        let now = clock.now();
        let order = signal.order();
        if order == Order::Stop {
            break;
        }
        let came = pump.take_in(now, &mut drop)?;
        if let Some(why) = pump.closed() {
            return Err(Failed::Closed(why));
        }
        let mut offered = 0;
        if order == Order::Go && pump.is_clear() {
            while offered < BURST_BYTES
                && backlog.has_room(terms.chunk_bytes)
                && pace.permits(now, counts.messages)
            {
                payload.write(counts.messages, &mut message);
                match pump.offer(now, &message) {
                    Ok(()) => {}
                    Err(Refused::BufferFull | Refused::NotOpen) => {
                        refused += 1;
                        break;
                    }
                    Err(why @ Refused::TooLarge { .. }) => return Err(Failed::Refused(why)),
                }
                counts.messages += 1;
                counts.bytes += message.len() as u64;
                offered += message.len() as u64;
                backlog.grew(message.len());
            }
        }
        let drained = pump.put_out(now)?;
        backlog.shrank(drained, came || offered > 0);
        if offered > 0 {
            gauge.show(counts, now);
        }
        if came || offered > 0 || drained.datagrams > 0 {
            pump.was_busy();
        } else {
            pump.rest(now, next_offer(&pace, now, &counts))?;
        }
        cpu.look(now, gauge);
    }
    let totals = pump.totals();
    cpu.finish(gauge, totals.library_cpu);
    Ok(Ended {
        path: totals.path,
        calls: totals.calls,
        datagrams: totals.datagrams,
        intended: pace.total().unwrap_or(counts.messages).max(counts.messages),
        refused,
    })
}

/// Receives, and checks what comes, until it is asked to stop.
pub(super) fn receive(
    mut pump: impl Mover,
    terms: &Terms,
    clock: Clock,
    gauge: &Gauge,
    signal: &Signal,
) -> Result<Ended, Failed> {
    let payload = Payload::new(terms.seed);
    let mut tracker = ReceiveTracker::default();
    let mut cpu = CpuGauge::start(clock.now());
    while signal.order() != Order::Stop {
        let now = clock.now();
        let came = pump.take_in(now, &mut |message| match payload
            .check(&message.bytes, terms.chunk_bytes)
        {
            Ok(number) => tracker.enter(number, message.bytes.len()),
            Err(_) => tracker.enter_damaged(),
        })?;
        if came {
            gauge.show(tracker.counts(), now);
        }
        let drained = pump.put_out(now)?;
        if pump.closed().is_some() {
            // What came counts; why no more does is for the sender to report.
            break;
        }
        if came || drained.datagrams > 0 {
            pump.was_busy();
        } else {
            pump.rest(now, None)?;
        }
        cpu.look(now, gauge);
    }
    let totals = pump.totals();
    cpu.finish(gauge, totals.library_cpu);
    Ok(Ended {
        path: totals.path,
        calls: totals.calls,
        datagrams: totals.datagrams,
        intended: 0,
        refused: 0,
    })
}

/// Pumps until messages can be sent.
fn shake_hands(pump: &mut impl Mover, clock: Clock, signal: &Signal) -> Result<(), Failed> {
    let timeout = clock.now() + HANDSHAKE;
    while !pump.is_ready() {
        let now = clock.now();
        if now >= timeout || signal.order() == Order::Stop {
            return Err(Failed::NoAnswer);
        }
        let came = pump.take_in(now, &mut drop)?;
        if let Some(why) = pump.closed() {
            return Err(Failed::Closed(why));
        }
        if !came && pump.put_out(now)?.datagrams == 0 {
            pump.rest(now, None)?;
        }
    }
    Ok(())
}

/// When the next message is due, if that lies ahead.
fn next_offer(pace: &Pace, now: Time, counts: &Counts) -> Option<Time> {
    pace.next_due(counts.messages).filter(|&due| due > now)
}

/// An estimate of the bytes that wait in the endpoint, from what went in and
/// what came out. What is sent again counts as if it were new, so that the
/// truth may be more; the endpoint's own limit bounds it then.
#[derive(Debug)]
struct Backlog {
    bytes: u64,
    header_bytes: u64,
    most: u64,
}

impl Backlog {
    const fn new(header_bytes: u64) -> Self {
        Self {
            bytes: 0,
            header_bytes,
            most: AHEAD_OF_TICK_BYTES,
        }
    }

    fn has_room(&self, message_bytes: usize) -> bool {
        self.bytes == 0 || self.bytes + message_bytes as u64 <= self.most
    }

    fn grew(&mut self, message_bytes: usize) {
        self.bytes += message_bytes as u64;
    }

    /// Datagrams left; `at_once` where there was something to leave for.
    fn shrank(&mut self, drained: Drained, at_once: bool) {
        let headers = drained.datagrams * self.header_bytes;
        let payload = drained.bytes.saturating_sub(headers);
        self.bytes = self.bytes.saturating_sub(payload);
        if at_once && payload > 0 {
            self.most = AHEAD_BYTES;
        }
    }
}
