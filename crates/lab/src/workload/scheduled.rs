//! Messages both ways at instants that both sides know beforehand, each on its own: nothing
//! is answered, and what is found of a message is how long it took one way.
//!
//! [`Replay`](super::Replay) lays a recording out so, and [`StreamTraffic`](super::StreamTraffic)
//! a stream.

mod client;
mod sender;
mod server;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use lagometer_link::Direction;
use lagometer_transport::Delivery;
use lagometer_units::{Time, mix};

use super::payload::{Damaged, Payload};
use super::stream::Steady;
use crate::plan::Plan;
use crate::traffic::Traffic;

pub use client::ScheduledClient;
pub use server::ScheduledServer;

/// The smallest message that can carry its number and its check; those that are smaller
/// are filled up to it.
pub const SMALLEST_BYTES: u32 = 8;

/// What both sides send when.
#[derive(Clone, Debug)]
pub struct Script {
    way: [Way; 2],
    delivery: Delivery,
    /// From how late on a message is of no use.
    within: Duration,
    /// What is meant to leave from here on does not.
    played: Duration,
    seed: u64,
}

/// What one side sends.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Nothing.
    Silent,
    /// A stream.
    Steady(Steady),
    /// What is recorded of a direction, over and over where `again` says after how long.
    Recorded {
        traffic: Arc<Traffic>,
        direction: Direction,
        again: Option<Duration>,
    },
}

/// A message that is meant to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// When, from the start of measuring.
    pub(super) at: Duration,
    pub(super) bytes: u32,
}

impl Script {
    /// That of a plan, with what each side sends, up first.
    pub(super) fn new(way: [Way; 2], delivery: Delivery, within: Duration, plan: &Plan) -> Self {
        Self {
            way,
            delivery,
            within,
            played: plan.duration,
            seed: plan.seed,
        }
    }

    /// Message `number` of a direction; none once the play is over.
    fn due(&self, direction: Direction, number: u32) -> Option<Due> {
        let due = self.way[direction.index()].due(number)?;
        (due.at < self.played).then_some(due)
    }

    /// Writes a message into `buffer`, replacing what it held.
    fn write(&self, direction: Direction, number: u32, bytes: u32, buffer: &mut Vec<u8>) {
        self.payload(direction, bytes as usize)
            .write(number, buffer);
    }

    /// The number of a message of a direction that is exactly what was sent.
    fn read(&self, direction: Direction, message: &[u8]) -> Result<u32, Damaged> {
        let number = self.payload(direction, message.len()).read(message)?;
        let due = self.due(direction, number).ok_or(Damaged)?;
        let is_whole = due.bytes.max(SMALLEST_BYTES) as usize == message.len();
        is_whole.then_some(number).ok_or(Damaged)
    }

    fn payload(&self, direction: Direction, bytes: usize) -> Payload {
        Payload::new(mix(self.seed ^ (direction.index() as u64 + 1)), bytes)
    }
}

impl Way {
    /// Message `number`, if there is one.
    fn due(&self, number: u32) -> Option<Due> {
        match self {
            Self::Silent => None,
            Self::Steady(steady) => {
                let (at, bytes) = steady.due(number);
                Some(Due { at, bytes })
            }
            Self::Recorded {
                traffic,
                direction,
                again,
            } => {
                let messages = traffic.way(*direction);
                let count = u32::try_from(messages.len())
                    .ok()
                    .filter(|&count| count > 0)?;
                let (round, place) = (number / count, number % count);
                let begins = match again {
                    Some(length) => length.checked_mul(round)?,
                    None if round == 0 => Duration::ZERO,
                    None => return None,
                };
                let message = messages[place as usize];
                Some(Due {
                    at: begins + message.at,
                    bytes: message.bytes,
                })
            }
        }
    }
}

/// An offset as an instant from the start of measuring.
const fn instant(offset: Duration) -> Time {
    Time::from_nanos(offset.as_nanos() as u64)
}
