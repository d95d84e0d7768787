//! The remote end of the paced echo: sends every message back at once.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_transport::{Messenger, Refused, State};
use lagometer_units::Time;

use super::{Misdeliveries, Payload, RemoteArrival, ServerApplication};

/// Drains its endpoint fully at every turn and sends each message back.
///
/// Echoes that the endpoint refuses for now wait in a queue that holds at most
/// [`Self::QUEUE_LIMIT`]; beyond that the echo is dropped and counted, as no
/// server may grow without bound.
#[derive(Debug)]
pub struct EchoServer {
    payload: Payload,
    arrivals: Vec<RemoteArrival>,
    seen: Vec<u64>,
    newest: Option<u32>,
    waiting: VecDeque<Vec<u8>>,
    echoes_sent: u64,
    echoes_dropped: u64,
    misdeliveries: Misdeliveries,
}

impl EchoServer {
    /// Echoes that wait at most.
    pub const QUEUE_LIMIT: usize = 1 << 16;

    /// A server for a client that sends `messages` messages.
    #[must_use]
    pub fn new(payload: Payload, messages: u32) -> Self {
        Self {
            payload,
            arrivals: Vec::with_capacity(messages as usize),
            seen: vec![0; messages as usize / 64 + 1],
            newest: None,
            waiting: VecDeque::new(),
            echoes_sent: 0,
            echoes_dropped: 0,
            misdeliveries: Misdeliveries::default(),
        }
    }

    /// Echoes the endpoint took.
    #[must_use]
    pub fn echoes_sent(&self) -> u64 {
        self.echoes_sent
    }

    /// Echoes dropped because the queue was full.
    #[must_use]
    pub fn echoes_dropped(&self) -> u64 {
        self.echoes_dropped
    }

    /// Notes an arrival; says whether it is a message to echo.
    fn note(&mut self, now: Time, bytes: &[u8], blocked: Option<Duration>) -> bool {
        let Ok(number) = self.payload.read(bytes) else {
            self.misdeliveries.damaged += 1;
            return false;
        };
        let Some(word) = self.seen.get_mut(number as usize / 64) else {
            self.misdeliveries.damaged += 1;
            return false;
        };
        let bit = 1 << (number % 64);
        if *word & bit != 0 {
            self.misdeliveries.duplicated += 1;
            return false;
        }
        *word |= bit;
        if self.newest.is_some_and(|newest| number < newest) {
            self.misdeliveries.out_of_order += 1;
        } else {
            self.newest = Some(number);
        }
        self.arrivals.push(RemoteArrival {
            blocked,
            ..RemoteArrival::new(number, now)
        });
        true
    }

    fn flush(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = false;
        if side.state() != State::Ready {
            return any;
        }
        while let Some(echo) = self.waiting.front() {
            match side.send(now, echo) {
                Ok(()) => {
                    self.echoes_sent += 1;
                    any = true;
                }
                Err(Refused::BufferFull | Refused::NotOpen) => break,
                Err(Refused::TooLarge { .. }) => self.echoes_dropped += 1,
            }
            self.waiting.pop_front();
        }
        any
    }
}

impl ServerApplication for EchoServer {
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = self.flush(now, side);
        while let Some(message) = side.receive(now) {
            any = true;
            if !self.note(now, &message.bytes, message.blocked) {
                continue;
            }
            if self.waiting.len() >= Self::QUEUE_LIMIT {
                self.echoes_dropped += 1;
                continue;
            }
            self.waiting.push_back(message.bytes);
            self.flush(now, side);
        }
        any
    }

    fn arrivals(&self) -> &[RemoteArrival] {
        &self.arrivals
    }

    fn payload_bytes(&self) -> u64 {
        self.echoes_sent * self.payload.size_bytes() as u64
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.misdeliveries
    }
}
