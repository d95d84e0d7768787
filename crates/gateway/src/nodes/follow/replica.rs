//! The channels of an owner at the node that follows it.

use std::collections::VecDeque;

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::SideId;
use crate::core::bus::{ToChannels, ToConnections};

use super::super::NodeTimes;
use super::super::bus::NodeId;
use super::super::channels::Replayed;
use super::super::codec::encode_to_connections;
use super::super::frame::Data;
use super::super::handover::{Package, Shift};
use super::super::route::RouteEnd;
use super::super::sides::Sides;
use super::log::{Check, Digest, Entries, Entry, LogMessage};
use super::{READY, UNLIKE};

/// An owner that this node follows.
#[derive(Debug)]
pub(in crate::nodes) struct Following {
    pub(in crate::nodes) owner: NodeId,
    pub(in crate::nodes) epoch: u64,
    pub(in crate::nodes) session: u32,
    /// Absent once nothing comes of that owner any more.
    pub(in crate::nodes) end: Option<RouteEnd>,
    /// Absent until it has come, and once it is not the same any more.
    replica: Option<Replica>,
}

/// What is the owner's, but for the channel manager.
#[derive(Debug)]
pub(in crate::nodes) struct Replica {
    pub(in crate::nodes) sides: Sides,
    pub(in crate::nodes) since: u64,
    pub(in crate::nodes) has_global_owner: bool,
    /// How far the clock of the channels is ahead of this node's.
    pub(in crate::nodes) shift: Shift,
    /// The channel manager was read back.
    is_ready: bool,
    digest: Digest,
    /// What is to be done yet, and when it was.
    batches: VecDeque<(Time, Entries)>,
    messages: VecDeque<(Time, SideId, ToChannels)>,
}

impl Following {
    pub(in crate::nodes) fn new(
        now: Time,
        times: NodeTimes,
        (owner, epoch, session): (NodeId, u64, u32),
    ) -> Self {
        Self {
            owner,
            epoch,
            session,
            end: Some(RouteEnd::new(now, times)),
            replica: None,
        }
    }

    /// A frame of the owner. Returns a channel manager to be read back, if there is one.
    pub(in crate::nodes) fn on_data(
        &mut self,
        now: Time,
        times: NodeTimes,
        data: Data,
    ) -> Option<Bytes> {
        let end = self.end.as_mut()?;
        let mut messages = Vec::new();
        let mut is_sound = end.take(now, data, &mut messages).is_ok();
        let mut restore = None;
        for message in messages {
            match LogMessage::decode(message) {
                Ok(LogMessage::Snapshot(package)) => {
                    let read = Package::decode(&package);
                    let channels = read.and_then(|package| self.on_package(now, times, package));
                    is_sound &= channels.is_some();
                    restore = channels;
                }
                Ok(LogMessage::Batch(at, entries)) => {
                    if let Some(replica) = &mut self.replica {
                        replica.shift = Shift::new(now, at);
                        replica.batches.push_back((at, entries));
                    }
                }
                Err(_) => is_sound = false,
            }
        }
        if !is_sound {
            self.is_unlike(now);
            return None;
        }
        restore
    }

    fn on_package(&mut self, now: Time, times: NodeTimes, package: Package) -> Option<Bytes> {
        let mut sides = Sides::restore(now, times, package.sides)?;
        for side in sides.by_id.values_mut() {
            side.end.has_follower(true);
        }
        self.replica = Some(Replica {
            sides,
            since: package.since,
            has_global_owner: package.has_global_owner,
            shift: Shift::new(now, package.channels_at),
            is_ready: false,
            digest: Digest::default(),
            batches: VecDeque::new(),
            messages: VecDeque::new(),
        });
        Some(package.channels)
    }

    /// The channel manager was read back, or could not be.
    pub(in crate::nodes) fn on_restored(&mut self, now: Time, is_sound: bool) {
        match &mut self.replica {
            Some(replica) if is_sound => {
                replica.is_ready = true;
                self.answer(now, READY);
            }
            _ => self.is_unlike(now),
        }
    }

    /// The replica is not as the owner is any more: it is of no use.
    pub(in crate::nodes) fn is_unlike(&mut self, now: Time) {
        self.replica = None;
        self.answer(now, UNLIKE);
    }

    fn answer(&mut self, now: Time, answer: &'static [u8]) {
        if let Some(end) = &mut self.end {
            end.push(now, &Bytes::from_static(answer), None);
        }
    }

    /// Whether there is something to go on with.
    pub(in crate::nodes) fn has_replica(&self) -> bool {
        self.replica.as_ref().is_some_and(|it| it.is_ready)
    }

    /// The replica, once the owner is gone. None if something was not done yet.
    pub(in crate::nodes) fn into_replica(self) -> Option<Replica> {
        let is_done = |it: &Replica| it.is_ready && it.batches.is_empty() && it.messages.is_empty();
        self.replica.filter(is_done)
    }

    /// What is to be done next with the channel manager, after the last was done.
    pub(in crate::nodes) fn next(&mut self) -> Option<(Time, Replayed)> {
        let replica = self.replica.as_mut().filter(|it| it.is_ready)?;
        let next = replica.next();
        let at = replica.shift.to_node(replica.at());
        next.unwrap_or_else(|Unlike| {
            self.is_unlike(at);
            None
        })
    }

    /// The replica of the channel manager has this to say, at an instant of its clock.
    pub(in crate::nodes) fn on_said(&mut self, at: Time, side: SideId, message: &ToConnections) {
        if let Some(replica) = &mut self.replica {
            let bytes = encode_to_connections(at, message);
            let now = replica.shift.to_node(at);
            if replica.sides.push(now, side, message, &bytes) {
                replica.digest.add(side, &bytes);
            }
        }
    }
}

/// What the owner did cannot be done here, or does not lead to the same.
struct Unlike;

impl Replica {
    /// When what is done next was done.
    fn at(&self) -> Time {
        self.batches.front().map_or(Time::ZERO, |(at, _)| *at)
    }

    fn next(&mut self) -> Result<Option<(Time, Replayed)>, Unlike> {
        loop {
            if let Some((at, side, message)) = self.messages.pop_front() {
                return Ok(Some((at, Replayed::Message(side, message))));
            }
            let Some((at, entries)) = self.batches.front_mut() else {
                return Ok(None);
            };
            let at = *at;
            match entries.next().map_err(|_| Unlike)? {
                None => {
                    self.batches.pop_front();
                }
                Some(Entry::Deadline) => return Ok(Some((at, Replayed::Deadline))),
                Some(Entry::Verdict { ticket, verdict }) => {
                    return Ok(Some((at, Replayed::Verdict(ticket, verdict))));
                }
                Some(Entry::Check(check)) => self.compare(check)?,
                Some(entry) => self.do_again(at, entry)?,
            }
        }
    }

    fn compare(&mut self, check: Check) -> Result<(), Unlike> {
        self.has_global_owner = check.has_global_owner;
        if check.digest == self.digest.value() {
            Ok(())
        } else {
            Err(Unlike)
        }
    }

    /// Does with a route what the owner did.
    fn do_again(&mut self, at: Time, entry: Entry) -> Result<(), Unlike> {
        let now = self.shift.to_node(at);
        let (side, messages) = match entry {
            Entry::Joined { side, joined } => {
                self.sides.join(now, side, joined);
                if let Some(side) = self.sides.by_id.get_mut(&side) {
                    side.end.has_follower(true);
                }
                return Ok(());
            }
            Entry::Data { side, data } => {
                let taken = self.sides.replay(now, side, data);
                if !taken.fits {
                    return Err(Unlike);
                }
                (side, taken.messages)
            }
            Entry::Lost { side } => {
                let (_, closed) = self.sides.remove(side).ok_or(Unlike)?;
                (side, closed)
            }
            Entry::Deadline | Entry::Verdict { .. } | Entry::Check(_) => return Ok(()),
        };
        let messages = messages.into_iter().map(|message| (at, side, message));
        self.messages.extend(messages);
        Ok(())
    }
}
