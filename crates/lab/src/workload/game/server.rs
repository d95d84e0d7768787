//! The server's end of a game: steps, sends snapshots, and notes which inputs it had when.

use lagometer_transport::{Delivery, Messenger, State};
use lagometer_units::Time;

use super::client::Voice;
use super::events::{EventReceiver, EventSender};
use super::message::{Codec, Header, Kind};
use super::schedule::Schedule;
use crate::workload::{Misdeliveries, RemoteArrival, ServerApplication, Stream};

/// A game's server, of one player.
#[derive(Debug)]
pub struct GameServer {
    schedule: Schedule,
    codec: Codec,
    /// When the client's first input is due, once that is known.
    start: Option<Time>,
    arrivals: Vec<RemoteArrival>,
    /// The newest input, plus one.
    newest: u32,
    /// The next step.
    step: u32,
    /// The newest state that the client is known to have, plus one; on one pipe the newest
    /// that was sent.
    base: u32,
    events: EventSender,
    received: EventReceiver,
    voice: Voice,
    payload_bytes: u64,
    misdeliveries: Misdeliveries,
    buffer: Vec<u8>,
}

impl GameServer {
    /// A server that waits for its game to begin.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let traffic = schedule.traffic();
        let event_bytes = traffic
            .events
            .map_or(0, |events| events.size.bytes() as usize);
        let sends_again = !schedule.offer().has_reliable();
        Self {
            codec: Codec::new(schedule.seed()),
            start: None,
            arrivals: Vec::new(),
            newest: 0,
            step: 0,
            base: 0,
            events: EventSender::new(schedule.events_down(), event_bytes, sends_again),
            received: EventReceiver::default(),
            voice: Voice::recorded_by(&schedule),
            payload_bytes: 0,
            misdeliveries: Misdeliveries::default(),
            buffer: Vec::new(),
            schedule,
        }
    }
}

impl GameServer {
    fn receive(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = false;
        while let Some(message) = side.receive(now) {
            any = true;
            let Ok(header) = self.codec.read(&message.bytes) else {
                self.misdeliveries.damaged += 1;
                continue;
            };
            self.events.acknowledged(header.events);
            match header.kind {
                Kind::Inputs => self.take_inputs(now, &header),
                Kind::Event => match self.received.receive(header.number) {
                    Some(delivered) => {
                        let stream = Stream::Events;
                        self.arrivals.extend(delivered.map(|number| RemoteArrival {
                            stream,
                            ..RemoteArrival::new(number, now)
                        }));
                    }
                    None if !self.events.sends_again() => self.misdeliveries.duplicated += 1,
                    None => {}
                },
                Kind::Voice => {
                    if self.voice.note(header.number, now, &mut self.misdeliveries) {
                        self.arrivals.push(RemoteArrival {
                            stream: Stream::Voice,
                            ..RemoteArrival::new(header.number, now)
                        });
                    }
                }
                Kind::Snapshot => self.misdeliveries.damaged += 1,
            }
        }
        any
    }

    /// Takes the inputs of a message that are newer than all before: the simulation has
    /// gone on past others.
    fn take_inputs(&mut self, now: Time, header: &Header) {
        let is_acknowledged = header.ack > self.base;
        if is_acknowledged && self.schedule.offer().may_lose() {
            self.base = header.ack.min(self.step);
            if let (Some(start), Some(state)) = (self.start, self.schedule.state(header.ack - 1)) {
                self.events.answered_after(now.since(start + state));
            }
        }
        let end = header.number.saturating_add(1);
        if end <= self.newest {
            self.misdeliveries.out_of_order += 1;
            return;
        }
        let first = end.saturating_sub(header.span).max(self.newest);
        let numbers = first..end;
        self.arrivals
            .extend(numbers.map(|number| RemoteArrival::new(number, now)));
        self.newest = end;
    }

    fn send(&mut self, now: Time, start: Time, side: &mut dyn Messenger) -> bool {
        if side.state() != State::Ready {
            return false;
        }
        let before = self.payload_bytes;
        while let Some(offset) = self.schedule.state(self.step)
            && start + offset <= now
        {
            self.send_snapshot(now, side);
            self.step += 1;
        }
        let header = self.header(Kind::Event, 0, 0);
        let message = (self.codec, header);
        self.payload_bytes += self
            .events
            .send(now, start, message, side, &mut self.buffer);
        self.payload_bytes +=
            self.voice
                .send(now, start, &self.schedule, message, side, &mut self.buffer);
        let has_sent = self.payload_bytes > before;
        if now >= start + self.schedule.played() {
            // The game goes on until last inputs have had their effect; that is no play.
            self.payload_bytes = before;
        }
        has_sent
    }

    /// Sends the state of this step. One that is refused is left out: the next is newer.
    fn send_snapshot(&mut self, now: Time, side: &mut dyn Messenger) {
        let snapshots = self.schedule.traffic().snapshots;
        let (span, body) = if snapshots.repeat > 0 {
            let count = snapshots.repeat as usize + 1;
            (0, count * snapshots.delta.bytes() as usize)
        } else {
            // The newest state that the client has is before this one.
            let span = if self.base == 0 {
                0
            } else {
                self.step + 1 - self.base
            };
            (span, self.schedule.state_bytes(self.step, span))
        };
        let header = self.header(Kind::Snapshot, self.step, span);
        self.codec.write(&header, body, &mut self.buffer);
        if side
            .send_as(now, Delivery::Unreliable, &self.buffer)
            .is_ok()
        {
            self.payload_bytes += self.buffer.len() as u64;
            if !self.schedule.offer().may_lose() {
                self.base = self.step + 1;
            }
        }
    }

    fn header(&self, kind: Kind, number: u32, span: u32) -> Header {
        Header {
            kind,
            number,
            ack: self.newest,
            span,
            events: self.received.delivered(),
        }
    }
}

impl ServerApplication for GameServer {
    fn begin(&mut self, start: Time) {
        self.start = Some(start);
    }

    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let received = self.receive(now, side);
        let sent = self.start.is_some_and(|start| self.send(now, start, side));
        received || sent
    }

    fn next_send(&self) -> Option<Time> {
        let start = self.start?;
        let state = self.schedule.state(self.step);
        let voice = self.schedule.voice(self.voice.sent);
        let due = [state, voice]
            .into_iter()
            .flatten()
            .map(|offset| start + offset);
        // After the last step the game is over.
        state.and_then(|_| due.chain(self.events.next(start)).min())
    }

    fn arrivals(&self) -> &[RemoteArrival] {
        &self.arrivals
    }

    fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.misdeliveries
    }
}
