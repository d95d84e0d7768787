//! The local end of the paced echo: sends on schedule, waits for nothing,
//! and keeps one record for each message.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_results::MessageRecord;
use lagometer_transport::{Messenger, Refused, State};
use lagometer_units::Time;

use super::{ClientApplication, Findings, Misdeliveries, PacedEcho, Payload, RemoteArrival};

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
    worst: Option<Duration>,
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
            worst: None,
            misdeliveries: Misdeliveries::default(),
            buffer: Vec::new(),
        }
    }

    /// When the next message is meant to leave.
    fn next_due(&self) -> Option<Time> {
        (self.next < self.end).then(|| self.workload.intended(self.start, self.next))
    }

    fn receive(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
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
            self.worst = self.worst.max(record.rtt());
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
        while let Some(intended) = self.next_due().filter(|&intended| intended <= now) {
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

    fn send(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
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

impl ClientApplication for EchoClient {
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let received = self.receive(now, side);
        self.fall_due(now);
        let sent = self.send(now, side);
        received || sent
    }

    fn abandon(&mut self) {
        self.fall_due(Time::MAX);
    }

    fn next_send(&self) -> Option<Time> {
        self.next_due()
    }

    fn has_sent_all(&self) -> bool {
        self.next == self.end && self.waiting.is_empty()
    }

    fn returned(&self) -> u32 {
        self.next - self.outstanding
    }

    fn awaited(&self) -> Option<Time> {
        let next = self.newest_returned.map_or(0, |newest| newest + 1);
        let is_left = next < self.end;
        Some(if is_left {
            self.workload.intended(self.start, next)
        } else {
            Time::MAX
        })
    }

    fn take_worst(&mut self) -> Option<Duration> {
        self.worst.take()
    }

    fn is_complete(&self) -> bool {
        self.next == self.end && self.outstanding == 0
    }

    fn findings(&self, arrivals: &[RemoteArrival]) -> Findings {
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
        Findings {
            records,
            ..Findings::default()
        }
    }

    fn payload_bytes(&self) -> u64 {
        let taken = self
            .records
            .iter()
            .filter(|record| record.accepted.is_some());
        taken.count() as u64 * self.payload.size_bytes() as u64
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.misdeliveries
    }
}
