//! The client's end: asks, by a rate or when it has its answer, and notes how long answers
//! took.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use lagometer_results::{FlowMessage, FlowRecords, MessageRecord};
use lagometer_transport::Messenger;
use lagometer_units::Time;

use super::RequestResponse;
use super::pieces::{Incoming, Outgoing, Sent};
use crate::plan::Plan;
use crate::workload::game::{Codec, Kind};
use crate::workload::{ClientApplication, Findings, Misdeliveries, RemoteArrival, Stream};

/// A client that asks.
///
/// A request's record is a round trip: *arrived* when the server has it whole, *returned*
/// when the client has all of its answer.
#[derive(Debug)]
pub struct RequestClient {
    terms: RequestResponse,
    seed: u64,
    start: Time,
    played: Duration,
    /// When places are free to ask again, with a pause; from the start.
    ready: BinaryHeap<Reverse<Duration>>,
    records: Vec<MessageRecord>,
    /// Requests that are due and wait for a place, at a rate.
    waiting: VecDeque<u32>,
    /// Requests that are under way, each with when it is given up, from the start.
    open: BTreeMap<u32, Duration>,
    outgoing: Outgoing,
    incoming: Incoming,
    answered: u32,
    /// The newest request that is answered, plus one.
    newest: u32,
    worst: Option<Duration>,
}

impl RequestClient {
    /// A client whose first request is due at `start`.
    #[must_use]
    pub fn new(terms: RequestResponse, plan: &Plan, start: Time) -> Self {
        let codec = Codec::new(plan.seed);
        let pause = terms.pause.map(lagometer_units::Span::duration);
        // Places begin one after the other.
        let ready = pause.into_iter().flat_map(|pause| {
            (0..terms.outstanding).map(move |place| Reverse(pause * place / terms.outstanding))
        });
        Self {
            seed: plan.seed,
            start,
            played: plan.duration,
            ready: ready.collect(),
            records: Vec::new(),
            waiting: VecDeque::new(),
            open: BTreeMap::new(),
            outgoing: Outgoing::new(codec, Kind::Inputs, terms.delivery.into()),
            incoming: Incoming::new(codec, Kind::Snapshot),
            answered: 0,
            newest: 0,
            worst: None,
            terms,
        }
    }

    /// When the next request is meant to leave, from the start.
    fn next_due(&self) -> Option<Duration> {
        let due = match self.terms.rate {
            Some(rate) => {
                let number = self.records.len() as f64;
                Some(Duration::from_nanos((number * 1e9 / rate) as u64))
            }
            None => self.ready.peek().map(|&Reverse(at)| at),
        };
        due.filter(|&due| due < self.played)
    }

    /// When the oldest request under way is given up.
    fn next_timeout(&self) -> Option<Duration> {
        // They begin in their order.
        self.open.first_key_value().map(|(_, &at)| at)
    }

    fn since_start(&self, at: Time) -> Duration {
        at.since(self.start)
    }

    fn receive(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = false;
        while let Some(message) = side.receive(now) {
            any = true;
            let (terms, seed, asked) = (self.terms, self.seed, self.records.len());
            let bytes_of = |number: u32| {
                ((number as usize) < asked).then(|| terms.response_bytes(seed, number))
            };
            let Some(number) = self.incoming.take(&message.bytes, bytes_of) else {
                continue;
            };
            let at = self.since_start(now);
            // Nobody waits any more for what was given up.
            if !self.free(number, at) {
                continue;
            }
            let record = &mut self.records[number as usize];
            record.returned = Some(Time::ZERO + at);
            record.blocked = message.blocked;
            self.answered += 1;
            self.worst = self.worst.max(record.rtt());
            self.newest = self.newest.max(number + 1);
        }
        any
    }

    /// A request is no longer under way since `at`: its place is free. Whether it was under
    /// way.
    fn free(&mut self, number: u32, at: Duration) -> bool {
        let was_open = self.open.remove(&number).is_some();
        if was_open && let Some(pause) = self.terms.pause {
            self.ready
                .push(Reverse(at.saturating_add(pause.duration())));
        }
        was_open
    }

    /// Gives up what has been under way for too long, and asks what is due.
    fn fall_due(&mut self, now: Duration) {
        self.begin(now);
        loop {
            let timeout = self.next_timeout().filter(|&at| at <= now);
            let due = self.next_due().filter(|&at| at <= now);
            let at = match (timeout, due) {
                (Some(at), due) if due.is_none_or(|due| at <= due) => {
                    if let Some((&oldest, _)) = self.open.first_key_value() {
                        self.free(oldest, at);
                    }
                    at
                }
                (_, Some(due)) => {
                    if self.terms.rate.is_none() {
                        self.ready.pop();
                    }
                    self.waiting.push_back(self.records.len() as u32);
                    self.records.push(MessageRecord::due(Time::ZERO + due));
                    due
                }
                _ => break,
            };
            self.begin(at);
        }
    }

    /// Has requests that wait take the places that are free at `at`.
    fn begin(&mut self, at: Duration) {
        while self.open.len() < self.terms.outstanding as usize
            && let Some(number) = self.waiting.pop_front()
        {
            let timeout = self.terms.timeout.duration();
            self.open.insert(number, at.saturating_add(timeout));
            let bytes = self.terms.request.bytes() as usize;
            self.outgoing.push(number, bytes);
        }
    }
}

impl ClientApplication for RequestClient {
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let received = self.receive(now, side);
        let at = self.since_start(now);
        if now >= self.start {
            self.fall_due(at);
        }
        let records = &mut self.records;
        let sent = self.outgoing.send(now, side, |number, sent| {
            let record = &mut records[number as usize];
            match sent {
                Sent::Whole => record.accepted = Some(Time::ZERO + at),
                Sent::Refused | Sent::Never => record.refused = true,
            }
        });
        received || sent
    }

    fn next_send(&self) -> Option<Time> {
        let next = [self.next_due(), self.next_timeout()];
        next.into_iter().flatten().min().map(|at| self.start + at)
    }

    fn abandon(&mut self) {
        self.fall_due(Duration::MAX);
        self.outgoing.clear();
    }

    fn has_sent_all(&self) -> bool {
        self.next_due().is_none() && self.waiting.is_empty() && self.outgoing.is_empty()
    }

    fn returned(&self) -> u32 {
        self.answered
    }

    fn awaited(&self) -> Option<Time> {
        let next = match self.records.get(self.newest as usize) {
            Some(record) => Some(record.intended.since(Time::ZERO)),
            None => self.next_due(),
        };
        Some(next.map_or(Time::MAX, |offset| self.start + offset))
    }

    fn take_worst(&mut self) -> Option<Duration> {
        self.worst.take()
    }

    fn is_complete(&self) -> bool {
        self.has_sent_all() && self.open.is_empty()
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.incoming.misdeliveries()
    }

    fn payload_bytes(&self) -> u64 {
        self.outgoing.payload_bytes()
    }

    fn findings(&self, arrivals: &[RemoteArrival]) -> Findings {
        let mut records = self.records.clone();
        for arrival in arrivals {
            if arrival.stream == Stream::Messages
                && let Some(record) = records.get_mut(arrival.number as usize)
            {
                record.arrived = Some(Time::ZERO + self.since_start(arrival.at));
            }
        }
        let requests = records.iter().map(|record| FlowMessage {
            record: MessageRecord {
                returned: record.arrived,
                ..*record
            },
            bytes: self.terms.request.bytes() as u32,
        });
        let answers = (0..).zip(&records).map(|(number, &record)| FlowMessage {
            record,
            bytes: self.terms.response_bytes(self.seed, number) as u32,
        });
        Findings {
            flows: Some(FlowRecords {
                played: self.played,
                within: self.terms.within.duration(),
                answers: true,
                ways: [requests.collect(), answers.collect()],
            }),
            records,
            ..Findings::default()
        }
    }
}
