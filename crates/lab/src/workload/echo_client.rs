//! The local end of the paced echo: sends on schedule, waits for nothing,
//! and keeps one record for each message.

use std::collections::VecDeque;

use lagometer_stats::MessageRecord;
use lagometer_transport::{Messenger, Refused, State};
use lagometer_units::Time;

use super::{Misdeliveries, PacedEcho, Payload, RemoteArrival};

/// Sends the schedule's messages and notes what becomes of each.
///
/// A message that the transport refuses for now stays at the head of a queue
/// and is offered again at every turn; its delay counts from its intended
/// time all the same.
#[derive(Debug)]
pub struct EchoClient {
    workload: PacedEcho,
    payload: Payload,
    start: Time,
    records: Vec<MessageRecord>,
    /// Messages whose time has come, from here to `next`, wait to be taken.
    waiting: VecDeque<u32>,
    next: u32,
    end: u32,
    outstanding: u32,
    newest_returned: Option<u32>,
    misdeliveries: Misdeliveries,
    buffer: Vec<u8>,
}

impl EchoClient {
    /// A client that sends `messages` messages, the first at `start`.
    #[must_use]
    pub fn new(workload: PacedEcho, payload: Payload, start: Time, messages: u32) -> Self {
        Self {
            workload,
            payload,
            start,
            records: Vec::with_capacity(messages as usize),
            waiting: VecDeque::new(),
            next: 0,
            end: messages,
            outstanding: 0,
            newest_returned: None,
            misdeliveries: Misdeliveries::default(),
            buffer: Vec::new(),
        }
    }

    /// Does all there is to do at `now`: takes out what has arrived, then
    /// sends what is due. Returns whether anything was sent or received.
    pub fn turn(&mut self, now: Time, side: &mut (impl Messenger + ?Sized)) -> bool {
        let received = self.receive(now, side);
        self.fall_due(now);
        let sent = self.send(now, side);
        received || sent
    }

    /// Counts every message that has not left yet as meant to leave and lost:
    /// the connection is gone.
    pub fn abandon(&mut self) {
        self.fall_due(Time::MAX);
    }

    /// When the next message is meant to leave.
    #[must_use]
    pub fn next_send(&self) -> Option<Time> {
        (self.next < self.end).then(|| self.workload.intended(self.start, self.next))
    }

    /// Whether the transport has taken every message.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.next == self.end && self.waiting.is_empty()
    }

    /// How many messages came back.
    #[must_use]
    pub fn returned(&self) -> u32 {
        self.next - self.outstanding
    }

    /// Whether every message was meant to leave already and came back.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.next == self.end && self.outstanding == 0
    }

    /// The records so far joined with what arrived at the remote end, by this
    /// end's clock; with times from the start of measuring.
    #[must_use]
    pub fn records(&self, arrivals: &[RemoteArrival]) -> Vec<MessageRecord> {
        let mut records = self.records.clone();
        for arrival in arrivals {
            if let Some(record) = records.get_mut(arrival.number as usize) {
                record.arrived = Some(self.since_start(arrival.at));
                record.blocked = match (record.blocked, arrival.blocked) {
                    (Some(down), Some(up)) => Some(up + down),
                    (None, up) if record.returned.is_none() => up,
                    _ => None,
                };
            }
        }
        records
    }

    /// What the client saw that it should not have seen.
    #[must_use]
    pub fn misdeliveries(&self) -> Misdeliveries {
        self.misdeliveries
    }

    fn receive(&mut self, now: Time, side: &mut (impl Messenger + ?Sized)) -> bool {
        let mut any = false;
        while let Some(message) = side.receive(now) {
            any = true;
            let returned_at = self.since_start(now);
            let record = self
                .payload
                .read(&message.bytes)
                .ok()
                .and_then(|number| Some((number, self.records.get_mut(number as usize)?)));
            let Some((number, record)) = record else {
                self.misdeliveries.damaged += 1;
                continue;
            };
            if record.returned.is_some() {
                self.misdeliveries.duplicated += 1;
                continue;
            }
            record.returned = Some(returned_at);
            record.blocked = message.blocked;
            self.outstanding -= 1;
            if self.newest_returned.is_some_and(|newest| number < newest) {
                self.misdeliveries.out_of_order += 1;
            } else {
                self.newest_returned = Some(number);
            }
        }
        any
    }

    /// Moves the messages whose time has come into the queue.
    fn fall_due(&mut self, now: Time) {
        while let Some(intended) = self.next_send().filter(|&intended| intended <= now) {
            self.records.push(MessageRecord {
                intended: self.since_start(intended),
                accepted: None,
                arrived: None,
                returned: None,
                refused: false,
                blocked: None,
            });
            self.waiting.push_back(self.next);
            self.next += 1;
            self.outstanding += 1;
        }
    }

    fn send(&mut self, now: Time, side: &mut (impl Messenger + ?Sized)) -> bool {
        let mut any = false;
        if side.state() != State::Ready {
            return any;
        }
        let now_since_start = self.since_start(now);
        while let Some(&number) = self.waiting.front() {
            self.payload.write(number, &mut self.buffer);
            let record = &mut self.records[number as usize];
            match side.send(now, &self.buffer) {
                Ok(()) => {
                    record.accepted = Some(now_since_start);
                    any = true;
                }
                Err(Refused::BufferFull | Refused::NotOpen) => {
                    record.refused = true;
                    break;
                }
                // It will never be taken: the record stands as refused and
                // lost, and the messages behind it have their turn.
                Err(Refused::TooLarge { .. }) => record.refused = true,
            }
            self.waiting.pop_front();
        }
        any
    }

    fn since_start(&self, at: Time) -> Time {
        Time::ZERO + at.since(self.start)
    }
}
