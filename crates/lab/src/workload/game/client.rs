//! The player's end of a game: sends inputs, takes snapshots, and notes when each had its
//! effect and what could be shown.

use std::time::Duration;

use lagometer_results::{EventRecord, GameRecords, MessageRecord, StateRecord};
use lagometer_transport::{Delivery, Messenger, Refused, State};
use lagometer_units::Time;

use super::events::{EventReceiver, EventSender};
use super::message::{Codec, Header, Kind};
use super::schedule::{Schedule, instant};
use crate::workload::{ClientApplication, Findings, Misdeliveries, RemoteArrival, Stream};

/// How far back inputs are sent that the transport refused, on one pipe.
const MOST_INPUTS: u32 = 64;

/// A player.
///
/// An input's record is a round trip: *arrived* when the server first has it, in
/// whichever message; *returned* with the first snapshot that shows its effect.
#[derive(Debug)]
pub struct GameClient {
    schedule: Schedule,
    codec: Codec,
    start: Time,
    /// One for each input that is recorded and has fallen due.
    inputs: Vec<MessageRecord>,
    /// How many inputs have fallen due, recorded or not.
    made: u32,
    /// How many the transport has taken, each with all before it.
    sent: u32,
    /// How many the server is known to be done with.
    effective: u32,
    /// When each recorded state could be used.
    seen: Vec<Option<Time>>,
    /// The newest state, plus one.
    newest: u32,
    events: EventSender,
    received: EventReceiver,
    /// When each of the server's recorded events was delivered.
    events_down: Vec<Option<Time>>,
    voice: Voice,
    worst: Option<Duration>,
    payload_bytes: u64,
    misdeliveries: Misdeliveries,
    buffer: Vec<u8>,
}

/// One side's voice: what it sends, and when what the other sent came.
#[derive(Debug, Default)]
pub(super) struct Voice {
    pub(super) sent: u32,
    pub(super) arrived: Vec<Option<Time>>,
}

impl GameClient {
    /// A player whose first input is due at `start`.
    #[must_use]
    pub fn new(schedule: Schedule, start: Time) -> Self {
        let traffic = schedule.traffic();
        let event_bytes = traffic
            .events
            .map_or(0, |events| events.size.bytes() as usize);
        let sends_again = !schedule.offer().has_reliable();
        Self {
            codec: Codec::new(schedule.seed()),
            start,
            inputs: Vec::new(),
            made: 0,
            sent: 0,
            effective: 0,
            seen: vec![None; recorded(|number| schedule.state(number), schedule.played())],
            newest: 0,
            events: EventSender::new(schedule.events_up(), event_bytes, sends_again),
            received: EventReceiver::default(),
            events_down: vec![None; before(schedule.events_down(), schedule.played())],
            voice: Voice::recorded_by(&schedule),
            worst: None,
            payload_bytes: 0,
            misdeliveries: Misdeliveries::default(),
            buffer: Vec::new(),
            schedule,
        }
    }

    fn receive(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = false;
        while let Some(message) = side.receive(now) {
            any = true;
            let Ok(header) = self.codec.read(&message.bytes) else {
                self.misdeliveries.damaged += 1;
                continue;
            };
            self.events.acknowledged(header.events);
            let at = self.since_start(now);
            match header.kind {
                Kind::Snapshot => self.take_snapshot(at, &header),
                Kind::Event => match self.received.receive(header.number) {
                    Some(delivered) => note(&mut self.events_down, delivered, at),
                    None if !self.events.sends_again() => self.misdeliveries.duplicated += 1,
                    None => {}
                },
                Kind::Voice => {
                    self.voice.note(header.number, at, &mut self.misdeliveries);
                }
                Kind::Inputs => self.misdeliveries.damaged += 1,
            }
        }
        any
    }

    /// Uses a snapshot if it is newer than what was there, and the other player's inputs
    /// in any case.
    fn take_snapshot(&mut self, at: Time, header: &Header) {
        let repeat = self.schedule.traffic().snapshots.repeat;
        let first = header.number.saturating_sub(repeat);
        let is_newer = header.number >= self.newest;
        if is_newer || repeat > 0 {
            note(&mut self.seen, first..header.number.saturating_add(1), at);
        }
        if !is_newer {
            self.misdeliveries.out_of_order += 1;
            return;
        }
        self.newest = header.number.saturating_add(1);
        let done = header.ack.min(self.made);
        if done > self.effective {
            let all = self.inputs.len();
            for input in
                &mut self.inputs[(self.effective as usize).min(all)..(done as usize).min(all)]
            {
                input.returned = Some(at);
                self.worst = self.worst.max(input.rtt());
            }
            self.effective = done;
            if let Some(input) = self.schedule.input(done - 1) {
                self.events.answered_after(at.since(instant(input)));
            }
        }
    }

    /// Records the inputs whose time has come.
    fn fall_due(&mut self, now: Time) {
        while let Some(offset) = self.schedule.input(self.made)
            && self.start + offset <= now
        {
            if offset < self.schedule.played() {
                self.inputs.push(MessageRecord::due(instant(offset)));
            }
            self.made += 1;
        }
    }

    fn send(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        if side.state() != State::Ready {
            return false;
        }
        let before = self.payload_bytes;
        while self.sent < self.made && self.send_inputs(now, side) {}
        let header = self.header(Kind::Event, 0, 0);
        self.payload_bytes += self.events.send(
            now,
            self.start,
            (self.codec, header),
            side,
            &mut self.buffer,
        );
        self.payload_bytes += self.voice.send(
            now,
            self.start,
            &self.schedule,
            (self.codec, self.header(Kind::Voice, 0, 0)),
            side,
            &mut self.buffer,
        );
        let has_sent = self.payload_bytes > before;
        if now >= self.start + self.schedule.played() {
            // The game goes on until last inputs have had their effect; that is no play.
            self.payload_bytes = before;
        }
        has_sent
    }

    /// Sends the next input with those that go along; whether that was all there is to be
    /// said of it.
    fn send_inputs(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let inputs = self.schedule.traffic().inputs;
        let may_lose = self.schedule.offer().may_lose();
        // Nothing gets lost on a pipe, but it may be full: then all that waits goes at
        // once.
        let (newest, first) = if may_lose {
            (self.sent, self.sent.saturating_sub(inputs.repeat))
        } else {
            let newest = self.made - 1;
            (newest, self.sent.max(self.made.saturating_sub(MOST_INPUTS)))
        };
        let count = newest + 1 - first;
        let header = self.header(Kind::Inputs, newest, count);
        let body = count as usize * inputs.size.bytes() as usize;
        self.codec.write(&header, body, &mut self.buffer);
        let taken = side.send_as(now, Delivery::Unreliable, &self.buffer);
        let at = self.since_start(now);
        let all = self.inputs.len();
        let new = (self.sent as usize).min(all)..(newest as usize + 1).min(all);
        let new = &mut self.inputs[new];
        match taken {
            Ok(()) => {
                self.payload_bytes += self.buffer.len() as u64;
                for input in new {
                    input.accepted = Some(at);
                }
                self.sent = newest + 1;
                true
            }
            Err(refused) => {
                for input in new {
                    input.refused = true;
                }
                // Where it may get lost the next message brings it again; where it
                // never fits there is no use in waiting.
                if may_lose || matches!(refused, Refused::TooLarge { .. }) {
                    self.sent = newest + 1;
                    return true;
                }
                false
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

    fn since_start(&self, at: Time) -> Time {
        Time::ZERO + at.since(self.start)
    }
}

impl ClientApplication for GameClient {
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let received = self.receive(now, side);
        self.fall_due(now);
        let sent = self.send(now, side);
        received || sent
    }

    fn next_send(&self) -> Option<Time> {
        let inputs = self.schedule.input(self.made);
        let voice = self.schedule.voice(self.voice.sent);
        let due = [inputs, voice]
            .into_iter()
            .flatten()
            .map(|offset| self.start + offset);
        // Once the last input is made the game is over.
        inputs.and_then(|_| due.chain(self.events.next(self.start)).min())
    }

    fn abandon(&mut self) {
        self.fall_due(Time::MAX);
    }

    fn has_sent_all(&self) -> bool {
        self.schedule.input(self.made).is_none()
    }

    fn returned(&self) -> u32 {
        self.effective
    }

    fn awaited(&self) -> Option<Time> {
        let next = self.schedule.input(self.effective);
        Some(next.map_or(Time::MAX, |offset| self.start + offset))
    }

    fn take_worst(&mut self) -> Option<Duration> {
        self.worst.take()
    }

    fn is_complete(&self) -> bool {
        // The game goes on until it is stopped.
        false
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.misdeliveries
    }

    fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    fn findings(&self, arrivals: &[RemoteArrival]) -> Findings {
        let mut records = self.inputs.clone();
        let mut events_up = vec![None; before(self.schedule.events_up(), self.schedule.played())];
        let mut voice_up = vec![None; self.voice.arrived.len()];
        for arrival in arrivals {
            let at = self.since_start(arrival.at);
            let number = arrival.number as usize;
            match arrival.stream {
                Stream::Messages => {
                    if let Some(record) = records.get_mut(number) {
                        record.arrived = Some(at);
                    }
                }
                Stream::Events => note(&mut events_up, arrival.number..arrival.number + 1, at),
                Stream::Voice => note(&mut voice_up, arrival.number..arrival.number + 1, at),
                Stream::Taken => {}
            }
        }
        // What never came had no effect, though the server went on to later inputs.
        for record in &mut records {
            if record.arrived.is_none() {
                record.returned = None;
            }
        }
        let at = |offset: Option<Duration>| instant(offset.unwrap_or_default());
        let states = (0..).zip(&self.seen).map(|(number, &seen)| StateRecord {
            at: at(self.schedule.state(number)),
            seen,
        });
        let events = [
            (self.schedule.events_up(), &events_up),
            (self.schedule.events_down(), &self.events_down),
        ];
        let events = events.into_iter().flat_map(|(due, arrived)| {
            due.iter().zip(arrived).map(|(&at, &arrived)| EventRecord {
                at: instant(at),
                arrived,
            })
        });
        let voice = [&voice_up, &self.voice.arrived]
            .into_iter()
            .flat_map(|arrived| {
                (0..).zip(arrived).map(|(number, &arrived)| EventRecord {
                    at: at(self.schedule.voice(number)),
                    arrived,
                })
            });
        Findings {
            records,
            game: Some(GameRecords {
                played: self.schedule.played(),
                terms: self.schedule.terms(),
                states: states.collect(),
                events: events.collect(),
                voice: voice.collect(),
            }),
            flows: None,
        }
    }
}

impl Voice {
    /// With room for all of the peer's frames that are recorded.
    pub(super) fn recorded_by(schedule: &Schedule) -> Self {
        let frames = recorded(|number| schedule.voice(number), schedule.played());
        Self {
            sent: 0,
            arrived: vec![None; frames],
        }
    }

    /// The peer's frame `number` has come; whether it is recorded and new.
    pub(super) fn note(
        &mut self,
        number: u32,
        at: Time,
        misdeliveries: &mut Misdeliveries,
    ) -> bool {
        match self.arrived.get_mut(number as usize) {
            Some(arrived @ None) => {
                *arrived = Some(at);
                true
            }
            Some(Some(_)) => {
                misdeliveries.duplicated += 1;
                false
            }
            None => false,
        }
    }

    /// Sends the frames whose time has come; one that is refused is left out. Returns the
    /// bytes that were taken.
    pub(super) fn send(
        &mut self,
        now: Time,
        start: Time,
        schedule: &Schedule,
        (codec, header): (Codec, Header),
        side: &mut dyn Messenger,
        buffer: &mut Vec<u8>,
    ) -> u64 {
        let mut taken = 0;
        let bytes = schedule
            .traffic()
            .voice
            .map_or(0, |voice| voice.size.bytes() as usize);
        while let Some(offset) = schedule.voice(self.sent)
            && start + offset <= now
        {
            let header = Header {
                kind: Kind::Voice,
                number: self.sent,
                ..header
            };
            codec.write(&header, bytes, buffer);
            if side.send_as(now, Delivery::Unreliable, buffer).is_ok() {
                taken += buffer.len() as u64;
            }
            self.sent += 1;
        }
        taken
    }
}

/// Notes when the first of each of these came, as far as they are recorded.
fn note(arrived: &mut [Option<Time>], numbers: std::ops::Range<u32>, at: Time) {
    let all = arrived.len();
    let range = (numbers.start as usize).min(all)..(numbers.end as usize).min(all);
    for arrived in &mut arrived[range] {
        arrived.get_or_insert(at);
    }
}

/// How many of a schedule's messages are recorded.
fn recorded(offset: impl Fn(u32) -> Option<Duration>, played: Duration) -> usize {
    (0..)
        .map_while(offset)
        .take_while(|&offset| offset < played)
        .count()
}

/// How many of these are before the end.
fn before(offsets: &[Duration], end: Duration) -> usize {
    offsets.partition_point(|&offset| offset < end)
}
