//! The sender: messages, and the parity of their groups.

use std::collections::VecDeque;

use lagometer_units::Time;

use super::Settings;
use super::loss::{LossEstimate, Report, parity_for};
use super::wire::{Body, Parity, shard_of};
use crate::byte_queue::ByteQueue;
use crate::erasure::ErasureCode;
use crate::integrity::Integrity;
use crate::{Refused, Transport as _};

/// Makes datagrams of messages.
#[derive(Debug)]
pub(super) struct Sender {
    settings: Settings,
    outbound: Integrity,
    next_number: u32,
    /// The groups that are being filled, one for each turn.
    groups: Vec<Group>,
    /// Whose turn it is. No function of the number: where that wraps the distance
    /// between two messages of a group must not change.
    turn: usize,
    loss: LossEstimate,
    outgoing: ByteQueue,
    /// Parity that is held back, soonest first.
    held_back: ByteQueue<HeldBack>,
}

/// The latest messages of one turn.
#[derive(Debug, Default)]
struct Group {
    /// As shards.
    messages: VecDeque<Vec<u8>>,
    /// The number of the first.
    first: u32,
    /// How many of them, the latest, no parity has covered yet.
    uncovered: u8,
    /// When parity leaves at the latest.
    due: Option<Time>,
}

/// Parity that leaves later.
#[derive(Debug)]
struct HeldBack {
    due: Time,
    datagram: Vec<u8>,
}

impl AsRef<[u8]> for HeldBack {
    fn as_ref(&self) -> &[u8] {
        &self.datagram
    }
}

impl Sender {
    pub(super) fn new(settings: &Settings, outbound: Integrity) -> Self {
        let buffer_bytes = settings.buffer.bytes() as usize;
        let groups = (0..settings.interleave).map(|_| Group::default());
        Self {
            settings: settings.clone(),
            outbound,
            next_number: 0,
            groups: groups.collect(),
            turn: 0,
            loss: LossEstimate::default(),
            outgoing: ByteQueue::new(buffer_bytes),
            held_back: ByteQueue::new(buffer_bytes),
        }
    }

    /// Sends a message, and parity if it completes a group.
    pub(super) fn send(
        &mut self,
        now: Time,
        code: Option<&ErasureCode>,
        message: &[u8],
    ) -> Result<(), Refused> {
        Refused::if_larger(message, self.settings.largest_message_bytes())?;
        let number = self.next_number;
        let body = Body::Message {
            number,
            is_copy: false,
            message,
        };
        if !self.outgoing.push(body.to_datagram(self.outbound)) {
            return Err(Refused::BufferFull);
        }
        self.next_number = number.wrapping_add(1);
        let Some(code) = code else {
            return Ok(());
        };
        let turn = self.turn;
        self.turn = (turn + 1) % self.groups.len();
        let group = &mut self.groups[turn];
        if group.messages.is_empty() {
            group.first = number;
        }
        group.messages.push_back(shard_of(message));
        group.uncovered += 1;
        group.due.get_or_insert(now + self.settings.time_limit.0);
        if group.messages.len() > usize::from(self.settings.data) {
            group.drop_first(self.settings.interleave);
        }
        if group.uncovered >= self.settings.effective_every() {
            self.cover(now, turn, code);
        }
        Ok(())
    }

    /// Sends the parity of a group, and begins the next.
    fn cover(&mut self, now: Time, turn: usize, code: &ErasureCode) {
        let group = &self.groups[turn];
        let parity = self.parity_of(group.messages.len() as u8);
        for datagram in self.parity_datagrams(group, code, parity) {
            // What finds no room is lost, as it could be on its way.
            if self.settings.parity_delay.0.is_zero() {
                self.outgoing.push(datagram);
            } else {
                let due = now + self.settings.parity_delay.0;
                self.held_back.push(HeldBack { due, datagram });
            }
        }
        let group = &mut self.groups[turn];
        group.uncovered = 0;
        group.due = None;
        let kept = usize::from(self.settings.data - self.settings.effective_every());
        while group.messages.len() > kept {
            group.drop_first(self.settings.interleave);
        }
    }

    fn parity_datagrams(&self, group: &Group, code: &ErasureCode, parity: u8) -> Vec<Vec<u8>> {
        if parity == 0 {
            return Vec::new();
        }
        let shards: Vec<&[u8]> = group.messages.iter().map(Vec::as_slice).collect();
        if let [only] = shards[..] {
            let copy = Body::Message {
                number: group.first,
                is_copy: true,
                message: &only[super::wire::LENGTH_BYTES..],
            };
            return vec![copy.to_datagram(self.outbound); usize::from(parity)];
        }
        let encoded = code.encode(&shards, usize::from(parity));
        let datagram = |(index, shard): (u8, Vec<u8>)| {
            let parity = Parity {
                first: group.first,
                count: shards.len() as u8,
                index,
                shard: &shard,
            };
            Body::Parity(parity).to_datagram(self.outbound)
        };
        (0..).zip(encoded).map(datagram).collect()
    }

    /// How many parity datagrams a group of so many messages gets.
    fn parity_of(&self, messages: u8) -> u8 {
        let least = self.settings.parity;
        self.settings.adaptive.as_ref().map_or(least, |adaptive| {
            let range = least..=self.settings.parity_most();
            let residual = adaptive.residual_loss.fraction();
            parity_for(messages, self.loss.share(), residual, range)
        })
    }

    /// The peer says what was lost.
    pub(super) fn on_report(&mut self, report: Report) {
        // Nothing can have come that was not sent.
        if self.next_number.wrapping_sub(report.newest) < u32::MAX / 2 {
            self.loss.on_report(report);
        }
    }

    /// Sends a report of ours.
    pub(super) fn report(&mut self, report: Report) {
        self.outgoing
            .push(Body::Report(report).to_datagram(self.outbound));
    }

    pub(super) fn poll_datagram(&mut self, buffer: &mut Vec<u8>) -> bool {
        self.outgoing.pop_into(buffer)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let groups = self.groups.iter().filter_map(|group| group.due);
        let held_back = self.held_back.front().map(|held| held.due);
        groups.chain(held_back).min()
    }

    pub(super) fn handle_deadline(&mut self, now: Time, code: Option<&ErasureCode>) {
        for turn in 0..self.groups.len() {
            let is_due = self.groups[turn].due.is_some_and(|due| due <= now);
            if let Some(code) = code.filter(|_| is_due) {
                self.cover(now, turn, code);
            }
        }
        while self.held_back.front().is_some_and(|held| held.due <= now) {
            let held = self.held_back.pop();
            self.outgoing
                .push(held.map_or_else(Vec::new, |held| held.datagram));
        }
    }
}

impl Group {
    fn drop_first(&mut self, interleave: u8) {
        self.messages.pop_front();
        self.first = self.first.wrapping_add(u32::from(interleave));
    }
}
