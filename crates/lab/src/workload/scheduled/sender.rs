//! One side's sending: what falls due, and what of it the transport has taken.

use lagometer_link::Direction;
use lagometer_results::MessageRecord;
use lagometer_transport::{Messenger, Refused, State};
use lagometer_units::Time;

use super::{SMALLEST_BYTES, Script, instant};

/// Sends a direction's messages and keeps a record of each.
///
/// A message that the transport refuses for now waits and is offered again at every turn,
/// those behind it with it; its delay counts from its intended time all the same.
#[derive(Debug)]
pub(super) struct Sender {
    direction: Direction,
    /// One for each message that has fallen due.
    records: Vec<MessageRecord>,
    /// How many the transport has taken, or never will.
    done: usize,
    payload_bytes: u64,
    buffer: Vec<u8>,
}

impl Sender {
    pub(super) const fn new(direction: Direction) -> Self {
        Self {
            direction,
            records: Vec::new(),
            done: 0,
            payload_bytes: 0,
            buffer: Vec::new(),
        }
    }

    /// When the next message is meant to leave.
    pub(super) fn next(&self, script: &Script, start: Time) -> Option<Time> {
        let next = script.due(self.direction, self.records.len() as u32)?;
        Some(start + next.at)
    }

    /// Records the messages whose time has come.
    pub(super) fn fall_due(&mut self, script: &Script, start: Time, now: Time) {
        while let Some(due) = script.due(self.direction, self.records.len() as u32)
            && start + due.at <= now
        {
            self.records.push(MessageRecord::due(instant(due.at)));
        }
    }

    /// Offers what is due to the transport; returns whether anything was taken, and notifies
    /// `taken` of each message that was, with its number and record.
    pub(super) fn send(
        &mut self,
        script: &Script,
        (start, now): (Time, Time),
        side: &mut dyn Messenger,
        mut taken: impl FnMut(u32, &MessageRecord),
    ) -> bool {
        self.fall_due(script, start, now);
        if side.state() != State::Ready {
            return false;
        }
        let mut any = false;
        while let Some(record) = self.records.get_mut(self.done) {
            let number = self.done as u32;
            let Some(due) = script.due(self.direction, number) else {
                break;
            };
            let bytes = due.bytes.max(SMALLEST_BYTES);
            script.write(self.direction, number, bytes, &mut self.buffer);
            match side.send_as(now, script.delivery, &self.buffer) {
                Ok(()) => {
                    record.accepted = Some(instant(now.since(start)));
                    self.payload_bytes += u64::from(bytes);
                    taken(number, record);
                    any = true;
                }
                Err(Refused::BufferFull | Refused::NotOpen) => {
                    record.refused = true;
                    break;
                }
                // It will never be taken: those behind it have their turn.
                Err(Refused::TooLarge { .. }) => record.refused = true,
            }
            self.done += 1;
        }
        any
    }

    /// One record for each message that has fallen due.
    pub(super) fn records(&self) -> &[MessageRecord] {
        &self.records
    }

    /// Whether every message was meant to leave already and was taken, or never will be.
    pub(super) fn has_sent_all(&self, script: &Script) -> bool {
        let next = script.due(self.direction, self.records.len() as u32);
        next.is_none() && self.done == self.records.len()
    }

    /// Bytes of all messages that the transport took.
    pub(super) const fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }
}
