//! The client's end of messages by a schedule: sends its own, and notes when the server's
//! came.

use std::time::Duration;

use lagometer_link::Direction;
use lagometer_results::{FlowMessage, FlowRecords, MessageRecord};
use lagometer_transport::Messenger;
use lagometer_units::Time;

use super::sender::Sender;
use super::{SMALLEST_BYTES, Script, instant};
use crate::workload::{
    ClientApplication, Findings, Misdeliveries, Received, RemoteArrival, Stream,
};

/// A client that sends by a schedule and is sent to by one.
#[derive(Debug)]
pub struct ScheduledClient {
    script: Script,
    start: Time,
    sender: Sender,
    received: Received,
    /// When each of the server's messages came, and for how long it was kept back.
    arrivals: Vec<RemoteArrival>,
    worst: Option<Duration>,
    /// Whether the connection is gone before the end.
    is_abandoned: bool,
}

impl ScheduledClient {
    /// A client whose schedule begins at `start`.
    #[must_use]
    pub const fn new(script: Script, start: Time) -> Self {
        Self {
            script,
            start,
            sender: Sender::new(Direction::Up),
            received: Received::new(),
            arrivals: Vec::new(),
            worst: None,
            is_abandoned: false,
        }
    }

    fn receive(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = false;
        while let Some(message) = side.receive(now) {
            any = true;
            let number = self.script.read(Direction::Down, &message.bytes).ok();
            if let Some(number) = self.received.note(number) {
                let due = self.script.due(Direction::Down, number);
                let delay = due.map(|due| now.since(self.start + due.at));
                self.worst = self.worst.max(delay);
                self.arrivals.push(RemoteArrival {
                    blocked: message.blocked,
                    ..RemoteArrival::new(number, now)
                });
            }
        }
        any
    }

    /// All of a direction's messages with what became of each.
    fn way(&self, direction: Direction, sent: &[MessageRecord]) -> Vec<FlowMessage> {
        let bytes = |number: usize| {
            let due = self.script.due(direction, number as u32);
            due.map_or(0, |due| due.bytes.max(SMALLEST_BYTES))
        };
        let each = sent.iter().enumerate();
        each.map(|(number, &record)| FlowMessage {
            record,
            bytes: bytes(number),
        })
        .collect()
    }

    fn arrive(&self, records: &mut [MessageRecord], arrival: &RemoteArrival) {
        if let Some(record) = records.get_mut(arrival.number as usize) {
            record.returned = Some(instant(arrival.at.since(self.start)));
            record.blocked = arrival.blocked;
        }
    }
}

impl ClientApplication for ScheduledClient {
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let received = self.receive(now, side);
        let clock = (self.start, now);
        self.sender.send(&self.script, clock, side, |_, _| ()) || received
    }

    fn next_send(&self) -> Option<Time> {
        self.sender.next(&self.script, self.start)
    }

    fn abandon(&mut self) {
        self.is_abandoned = true;
        self.sender.fall_due(&self.script, self.start, Time::MAX);
    }

    fn has_sent_all(&self) -> bool {
        self.sender.has_sent_all(&self.script)
    }

    fn returned(&self) -> u32 {
        self.arrivals.len() as u32
    }

    fn awaited(&self) -> Option<Time> {
        // What the server has of this end's messages is not known here.
        self.script.due(Direction::Down, 0)?;
        let next = self.received.newest().map_or(0, |newest| newest + 1);
        let due = self.script.due(Direction::Down, next);
        Some(due.map_or(Time::MAX, |due| self.start + due.at))
    }

    fn take_worst(&mut self) -> Option<Duration> {
        self.worst.take()
    }

    fn is_complete(&self) -> bool {
        // Whether what it sent has arrived it does not know, unless there is none.
        let is_silent = self.script.due(Direction::Up, 0).is_none();
        let next = self.script.due(Direction::Down, self.returned());
        is_silent && next.is_none()
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.received.misdeliveries()
    }

    fn payload_bytes(&self) -> u64 {
        self.sender.payload_bytes()
    }

    fn findings(&self, arrivals: &[RemoteArrival]) -> Findings {
        let mut up = self.sender.records().to_vec();
        // Of the server's all that is due by now. Once all of the client's have fallen due,
        // whether or not the transport took them, or the lane has ended, that is all: of one
        // that was cut, those who assemble the run leave out what was not due yet.
        let is_all_due = self.sender.next(&self.script, self.start).is_none();
        let last = match up.last() {
            _ if is_all_due || self.is_abandoned => Time::MAX,
            Some(record) => record.intended,
            None => self
                .arrivals
                .last()
                .map_or(Time::ZERO, |last| instant(last.at.since(self.start))),
        };
        let mut down: Vec<MessageRecord> = (0..)
            .map_while(|number| self.script.due(Direction::Down, number))
            .map(|due| MessageRecord::due(instant(due.at)))
            .take_while(|record| record.intended <= last)
            .collect();
        for arrival in arrivals {
            match arrival.stream {
                Stream::Messages => self.arrive(&mut up, arrival),
                Stream::Taken => {
                    if let Some(record) = down.get_mut(arrival.number as usize) {
                        record.accepted = Some(instant(arrival.at.since(self.start)));
                        record.refused = arrival.blocked.is_some();
                    }
                }
                Stream::Events | Stream::Voice => {}
            }
        }
        for arrival in &self.arrivals {
            self.arrive(&mut down, arrival);
        }
        let ways = [
            self.way(Direction::Up, &up),
            self.way(Direction::Down, &down),
        ];
        up.append(&mut down);
        up.sort_by_key(|record| record.intended);
        Findings {
            records: up,
            flows: Some(FlowRecords {
                played: self.script.played,
                within: self.script.within,
                answers: false,
                ways,
            }),
            ..Findings::default()
        }
    }
}
