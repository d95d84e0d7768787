//! How a node that stands by follows the owner, so that it can go on with the channels
//! should the owner die.
//!
//! What becomes of the channels follows from what comes to them. So the owner writes itself
//! down once, goes on, and from then on sends the node that follows all that it does, in
//! numbered messages on a [route](super::route) of its own. That node does the same with
//! its replica, and compares a digest of what comes out.
//!
//! **What an owner has done and the follower may not know of, nobody may know of**: what it
//! caused, and that it was taken, waits in the owner's ends of the routes until the follower
//! has acknowledged it. An edge sends again what was not acknowledged, so that nothing is
//! lost with the owner, and nothing comes twice, for pieces have the same numbers in the
//! replica.
//!
//! While the follower is in sync, the [lease](super::lease)'s entry names it. An owner that
//! goes on without its follower removes the name before: a replica that has missed something
//! is never gone on with.

mod log;
mod loss;
mod replica;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::SideId;

use super::NodeTimes;
use super::bus::{Address, NodeId};
use super::route::{Position, RouteEnd};
use super::sides::Sides;

pub(super) use log::{Batch, Check, Digest, Entry, encode_snapshot};
pub(super) use loss::Loss;
pub(super) use replica::Following;

/// What the node that follows answers: it has the channels; it cannot read them, or what it
/// has is no longer the same.
pub(super) const READY: &[u8] = b"ready";
pub(super) const UNLIKE: &[u8] = b"unlike";

/// From so many bytes on that wait for it, a node is too slow to follow.
const BEHIND_BYTES: usize = 8 << 20;

/// How far a node has come in following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The channels are to be written down for it.
    Wanted,
    /// They are on their way.
    Crossing,
    /// It has them, and does what was done meanwhile, up to this message.
    CatchesUp(u64),
    /// It has: from now on what is done waits for it. What was done until then is to be
    /// acknowledged, up to this message.
    Settles(u64),
    /// The lease's entry is to name it.
    InSync,
    /// The entry is to name it no longer. What it does not know of waits until then.
    Leaves,
}

/// How far a route had come once the owner had done what is in the log up to there.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The end of that in the log.
    logged: u64,
    side: SideId,
    position: Position,
}

/// A frame for an edge that waits until the follower knows of what it says.
#[derive(Debug)]
struct HeldFrame {
    logged: u64,
    to: Address,
    frame: Bytes,
}

/// The node that follows, as the owner has it.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) node: NodeId,
    pub(super) session: u32,
    pub(super) phase: Phase,
    pub(super) end: RouteEnd,
    began_at: Time,
    batch: Batch,
    digest: Digest,
    marks: VecDeque<Mark>,
    /// The last of them of each route.
    marked: BTreeMap<SideId, Position>,
    /// What it has not acknowledged: up to where, and since when.
    logged_at: VecDeque<(u64, Time)>,
    held: VecDeque<HeldFrame>,
    /// It never goes on with what it has: nothing more is logged for it.
    is_gone: bool,
}

impl Follower {
    pub(super) fn new(now: Time, times: NodeTimes, node: NodeId, session: u32) -> Self {
        Self {
            node,
            session,
            phase: Phase::Wanted,
            end: RouteEnd::new(now, times),
            began_at: now,
            batch: Batch::default(),
            digest: Digest::default(),
            marks: VecDeque::new(),
            marked: BTreeMap::new(),
            logged_at: VecDeque::new(),
            held: VecDeque::new(),
            is_gone: false,
        }
    }

    /// Whether it has all that is done, or has had no more than this to acknowledge the rest.
    pub(super) fn keeps_up(&self, now: Time, within: Duration) -> bool {
        let oldest = self.logged_at.front();
        self.phase == Phase::InSync && oldest.is_none_or(|&(_, at)| now.since(at) < within)
    }

    /// Whether it never goes on with what it has.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Whether it is sent what is done.
    pub(super) fn is_logged(&self) -> bool {
        self.phase != Phase::Wanted && !self.is_gone
    }

    /// Whether what is done waits for it.
    pub(super) fn holds(&self) -> bool {
        !matches!(
            self.phase,
            Phase::Wanted | Phase::Crossing | Phase::CatchesUp(_)
        )
    }

    /// Something is done, at an instant of the channels' clock.
    pub(super) fn record(&mut self, now: Time, at: Time, entry: &Entry, has_global_owner: bool) {
        if !self.is_logged() {
            return;
        }
        if !self.batch.takes(at) {
            self.finish_batch(now, has_global_owner);
        }
        self.batch.add(at, entry);
    }

    /// The channel manager has this to say.
    pub(super) fn on_said(&mut self, side: SideId, message: &[u8]) {
        if self.is_logged() {
            self.digest.add(side, message);
        }
    }

    /// Whether something is done that is not on its way to it.
    pub(super) fn is_behind(&self) -> bool {
        let is_logged = |held: &HeldFrame| held.logged != u64::MAX;
        self.is_logged() && !(self.batch.is_empty() && self.held.iter().all(is_logged))
    }

    fn finish_batch(&mut self, now: Time, has_global_owner: bool) {
        if self.batch.is_empty() {
            return;
        }
        let check = Check {
            digest: self.digest.value(),
            has_global_owner,
        };
        let bytes = self.batch.finish(check);
        self.end.push(now, &bytes, None);
        self.logged_at.push_back((self.end.position().pushed, now));
    }

    /// A frame that says something of what was done is sent once it knows of that.
    pub(super) fn hold_frame(&mut self, to: Address, frame: Bytes) {
        let logged = u64::MAX;
        self.held.push_back(HeldFrame { logged, to, frame });
    }

    /// A route is no more.
    pub(super) fn forget(&mut self, side: SideId) {
        self.marks.retain(|mark| mark.side != side);
        self.marked.remove(&side);
    }

    /// It has the channels, and has yet to do what was done while they crossed: nobody waits
    /// for that.
    pub(super) fn on_ready(&mut self, now: Time, has_global_owner: bool) {
        if self.phase == Phase::Crossing {
            self.finish_batch(now, has_global_owner);
            self.phase = Phase::CatchesUp(self.end.position().pushed);
        }
    }

    /// All that was done has led to what it leads to: logs what of it was not, and
    /// notes how far routes have come with that.
    pub(super) fn record_rest(&mut self, now: Time, sides: &Sides, has_global_owner: bool) {
        if !self.is_logged() {
            return;
        }
        self.finish_batch(now, has_global_owner);
        if !self.holds() {
            return;
        }
        let logged = self.end.position().pushed;
        for held in self.held.iter_mut().rev() {
            if held.logged != u64::MAX {
                break;
            }
            held.logged = logged;
        }
        for (&side, it) in &sides.by_id {
            let position = it.end.position();
            if Some(position) != it.end.held_from()
                && self.marked.insert(side, position) != Some(position)
            {
                self.marks.push_back(Mark {
                    logged,
                    side,
                    position,
                });
            }
        }
    }

    /// Lets go what it has acknowledged. Returns the frames that were held until then.
    pub(super) fn release(&mut self, now: Time, sides: &mut Sides) -> Vec<(Address, Bytes)> {
        let known = self.end.acknowledged_to();
        while self.logged_at.front().is_some_and(|&(to, _)| to <= known) {
            self.logged_at.pop_front();
        }
        match self.phase {
            // What is in no message yet is marked with the next.
            Phase::CatchesUp(to) if to <= known && self.batch.is_empty() => {
                self.phase = Phase::Settles(self.end.position().pushed);
                // Nobody has waited for it until now.
                self.logged_at.iter_mut().for_each(|(_, at)| *at = now);
                for side in sides.by_id.values_mut() {
                    let position = side.end.position();
                    side.end.hold_from(position);
                }
            }
            Phase::Settles(to) if to <= known => self.phase = Phase::InSync,
            _ => {}
        }
        while self.marks.front().is_some_and(|mark| mark.logged <= known)
            && let Some(mark) = self.marks.pop_front()
        {
            if let Some(side) = sides.by_id.get_mut(&mark.side) {
                side.end.hold_from(mark.position);
            }
        }
        let mut frames = Vec::new();
        while self.held.front().is_some_and(|held| held.logged <= known)
            && let Some(held) = self.held.pop_front()
        {
            frames.push((held.to, held.frame));
        }
        frames
    }

    /// It is followed no longer, or not by this node: nothing waits for it any more.
    pub(super) fn open(self, sides: &mut Sides) -> Vec<(Address, Bytes)> {
        for side in sides.by_id.values_mut() {
            side.end.open();
            side.end.has_follower(false);
        }
        let held = self.held.into_iter();
        held.map(|held| (held.to, held.frame)).collect()
    }

    /// It is to follow no longer. Until it is named no longer what is done still waits for it,
    /// and goes on where it acknowledges that after all.
    pub(super) fn leave(&mut self, why: Loss) {
        self.phase = Phase::Leaves;
        if why.is_final() {
            self.is_gone = true;
            self.batch.clear();
        }
    }

    /// Why it is to follow no longer, if it is not.
    pub(super) fn is_lost(&self, now: Time, times: NodeTimes) -> Option<Loss> {
        let silent = now.since(self.end.received_at());
        let (most_silent, latest, most_bytes) = match self.phase {
            Phase::Wanted | Phase::Leaves => return None,
            Phase::Crossing | Phase::CatchesUp(_) => (
                times.route_timeout,
                None,
                BEHIND_BYTES + super::handover::MOST_BYTES,
            ),
            Phase::Settles(_) => (times.route_timeout, Some(times.follow), BEHIND_BYTES),
            Phase::InSync => (3 * times.heartbeat, Some(times.follow), BEHIND_BYTES),
        };
        let crosses = matches!(self.phase, Phase::Crossing | Phase::CatchesUp(_));
        let oldest = self.logged_at.front().map(|&(_, at)| now.since(at));
        if self.end.waiting() > most_bytes {
            Some(Loss::Behind)
        } else if crosses && now.since(self.began_at) >= 3 * times.route_timeout {
            Some(Loss::Slow)
        } else if oldest.zip(latest).is_some_and(|(it, latest)| it >= latest) {
            Some(Loss::Late)
        } else {
            (silent >= most_silent).then_some(Loss::Silent)
        }
    }

    /// When [`is_lost`](Self::is_lost) is to be asked.
    pub(super) fn next_deadline(&self, now: Time, times: NodeTimes) -> Time {
        if self.is_behind() {
            return now;
        }
        let due = self.end.next_deadline(now);
        // As often as it takes to notice in time that nothing is acknowledged.
        due.min(now + times.follow / 4)
    }
}
