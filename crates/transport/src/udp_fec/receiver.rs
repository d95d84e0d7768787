//! The receiver: messages as they come, and those that parity brings back.

use std::collections::VecDeque;
use std::time::Duration;

use super::Settings;
use super::history::History;
use super::wire::{LENGTH_BYTES, Parity, message_of, shard_of};
use crate::Message;
use crate::byte_queue::ByteQueue;
use crate::erasure::ErasureCode;
use crate::replay_window::ReplayWindow;

/// Groups that are waited for at most. Beyond it the oldest is given up.
const MOST_GROUPS: usize = 256;

/// Makes messages of datagrams.
#[derive(Debug)]
pub(super) struct Receiver {
    data: u8,
    parity_most: u8,
    interleave: u32,
    seen: ReplayWindow,
    arrived: ByteQueue<Message>,
    history: History,
    /// Groups with parity and more messages missing than it makes up for.
    groups: VecDeque<Group>,
    held_bytes: usize,
    limit_bytes: usize,
}

/// A group that misses messages, and its parity.
#[derive(Debug)]
struct Group {
    first: u32,
    count: u8,
    /// The shards, all of one length, by their indices.
    parity: Vec<(u8, Vec<u8>)>,
}

impl Receiver {
    pub(super) fn new(settings: &Settings) -> Self {
        let buffer_bytes = settings.buffer.bytes() as usize;
        Self {
            data: settings.data,
            parity_most: settings.parity_most(),
            interleave: u32::from(settings.interleave),
            seen: ReplayWindow::new(),
            arrived: ByteQueue::new(buffer_bytes),
            // The group before the one that is being filled, for what is late.
            history: History::new(2 * settings.group_span(), buffer_bytes),
            groups: VecDeque::new(),
            held_bytes: 0,
            limit_bytes: buffer_bytes,
        }
    }

    /// Bytes of parity that wait for messages.
    #[cfg(test)]
    pub(super) const fn held_parity_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The next message.
    pub(super) fn receive(&mut self) -> Option<Message> {
        self.arrived.pop()
    }

    /// A message came.
    pub(super) fn on_message(&mut self, code: Option<&ErasureCode>, number: u32, message: &[u8]) {
        if self.deliver(number, message)
            && let Some(code) = code
        {
            self.settle(code, vec![number]);
        }
    }

    /// Parity came. What no sender with these settings makes changes nothing.
    pub(super) fn on_parity(&mut self, code: &ErasureCode, parity: Parity<'_>) {
        let is_sound = (2..=self.data).contains(&parity.count)
            && parity.index < self.parity_most
            && parity.shard.len() >= LENGTH_BYTES;
        if !is_sound {
            return;
        }
        let is_its = |group: &Group| (group.first, group.count) == (parity.first, parity.count);
        let mut group = match self.groups.iter().position(is_its) {
            Some(at) => self.take(at),
            None => Group {
                first: parity.first,
                count: parity.count,
                parity: Vec::new(),
            },
        };
        if group.wants(&parity) {
            group.parity.push((parity.index, parity.shard.to_vec()));
        }
        match self.missing(&group) {
            0 => {}
            missing if missing <= group.parity.len() => {
                let recovered = self.solve(code, &group);
                self.settle(code, recovered);
            }
            _ => self.keep(group),
        }
    }

    /// Hands a message out unless it was before. Returns whether it was new.
    fn deliver(&mut self, number: u32, message: &[u8]) -> bool {
        let is_new = self.seen.accept(number);
        if is_new {
            self.history.insert(number, message.to_vec());
            self.arrived.push(Message {
                bytes: message.to_vec(),
                blocked: Some(Duration::ZERO),
            });
        }
        is_new
    }

    /// Looks which groups the messages in `fresh` complete, and which those that
    /// are computed then, and so on.
    fn settle(&mut self, code: &ErasureCode, mut fresh: Vec<u32>) {
        while let Some(number) = fresh.pop() {
            let mut at = 0;
            while let Some(group) = self.groups.get(at) {
                let is_ripe = group.contains(number, self.interleave)
                    && self.missing(group) <= group.parity.len();
                if is_ripe {
                    let group = self.take(at);
                    fresh.extend(self.solve(code, &group));
                } else {
                    at += 1;
                }
            }
        }
    }

    /// Computes what a group misses and hands it out. Returns the numbers.
    fn solve(&mut self, code: &ErasureCode, group: &Group) -> Vec<u32> {
        let Some((_, shard)) = group.parity.first() else {
            return Vec::new();
        };
        let numbers = group.numbers(self.interleave);
        let message = |number| self.history.get(number).map(shard_of);
        let mut shards: Vec<_> = numbers.clone().map(message).collect();
        let is_missing: Vec<_> = shards.iter().map(Option::is_none).collect();
        if !code.recover(&mut shards, &group.parity, shard.len()) {
            return Vec::new();
        }
        let mut recovered = Vec::new();
        for ((number, shard), is_missing) in numbers.zip(shards).zip(is_missing) {
            if is_missing
                && let Some(message) = shard.as_deref().and_then(message_of)
                && self.deliver(number, message)
            {
                recovered.push(number);
            }
        }
        recovered
    }

    /// How many messages of a group have not come.
    fn missing(&self, group: &Group) -> usize {
        let is_missing = |&number: &u32| self.history.get(number).is_none();
        group.numbers(self.interleave).filter(is_missing).count()
    }

    /// Keeps a group for what may still come, in place of the oldest where there
    /// is no room.
    fn keep(&mut self, group: Group) {
        self.held_bytes += group.held_bytes();
        self.groups.push_back(group);
        while self.groups.len() > MOST_GROUPS || self.held_bytes > self.limit_bytes {
            self.take(0);
        }
    }

    fn take(&mut self, at: usize) -> Group {
        let group = self.groups.remove(at).expect("the caller found it there");
        self.held_bytes -= group.held_bytes();
        group
    }
}

impl Group {
    /// The numbers of its messages.
    fn numbers(&self, interleave: u32) -> impl Iterator<Item = u32> + Clone + use<> {
        let first = self.first;
        (0..u32::from(self.count)).map(move |at| first.wrapping_add(at * interleave))
    }

    fn contains(&self, number: u32, interleave: u32) -> bool {
        let ahead = number.wrapping_sub(self.first);
        ahead.is_multiple_of(interleave) && ahead / interleave < u32::from(self.count)
    }

    /// Whether a shard of parity is one more of this group.
    fn wants(&self, parity: &Parity<'_>) -> bool {
        let mut there = self.parity.iter();
        there.all(|(index, shard)| *index != parity.index && shard.len() == parity.shard.len())
    }

    fn held_bytes(&self) -> usize {
        let shards = self.parity.iter();
        size_of::<Self>() + shards.map(|(_, shard)| 32 + shard.len()).sum::<usize>()
    }
}
