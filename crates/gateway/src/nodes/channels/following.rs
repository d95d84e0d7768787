//! How a node that stands by follows the owner, and goes on should the owner die: what both
//! have to do for it. What that is, [`follow`](super::super::follow) says.

use std::time::Duration;

use lagometer_units::Time;

use crate::core::bus::ToConnections;
use crate::core::{AuthVerdict, SideId, Ticket};

use super::super::bus::{Address, NodeId, Note};
use super::super::follow::{
    Entry, Follower, Following, Loss, Phase, READY, UNLIKE, encode_snapshot,
};
use super::super::frame::{Content, Data, Follow, Frame};
use super::super::handover::Shift;
use super::super::lease::Standing;
use super::super::route::Position;
use super::super::sides::{Joined, Sides};
use super::{ChannelsEvent, ChannelsNode, Replayed};

/// Where the channels cannot be written, it is tried again after this.
const NOT_WRITTEN: Duration = Duration::from_secs(30);

/// So often the pause after a follower is lost may double: writing all down again and again
/// is work, and what is done waits for a follower that is slow.
const LONGEST_PAUSE: u32 = 64;

/// What a node goes on with: whose it was, the epoch since which it was not lost, whether
/// GLOBAL has an owner, the clock and the routes.
pub(super) type Resumed = (NodeId, u64, bool, Shift, Sides);

/// What an owner does for the node that follows it.
impl ChannelsNode {
    /// The node that has all that was ever sent from here, if there is one.
    pub(super) fn complete_follower(&self) -> Option<NodeId> {
        let gone = self.follower.as_ref().filter(|it| it.is_gone());
        let gone = gone.map(|it| it.node);
        let named = self.lease.may_name().filter(|node| gone != Some(*node));
        self.in_sync().or(named)
    }

    fn in_sync(&self) -> Option<NodeId> {
        let follower = self.follower.as_ref();
        let in_sync = follower.filter(|it| it.phase == Phase::InSync);
        in_sync.map(|it| it.node)
    }

    /// Whether another node would go on with the channels, should this one die.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.in_sync().is_some() && self.in_sync() == self.lease.names()
    }

    /// How often a node that followed this one had something else than this one.
    #[must_use]
    pub fn resyncs(&self) -> u64 {
        self.resyncs
    }

    /// The channel manager as it has [written](crate::core::ChannelManager::snapshot)
    /// itself, after all that it had to say was [sent](Self::send); `None` if it could not.
    pub fn be_followed(&mut self, now: Time, channels: Option<Vec<u8>>) {
        let is_wanted = |it: &Follower| it.phase == Phase::Wanted;
        if !self.follower.as_ref().is_some_and(is_wanted) {
            return;
        }
        // What has come and is not handled would be in none of both.
        if !self.events.is_empty() {
            self.follower = None;
            return;
        }
        let package = channels.and_then(|channels| self.package(now, channels).encode());
        let (Some(package), Some(follower)) = (package, &mut self.follower) else {
            self.follower = None;
            self.follow_at = now + NOT_WRITTEN;
            self.notes.push_back(Note::NotFollowed);
            return;
        };
        follower.end.push(now, &encode_snapshot(&package), None);
        follower.phase = Phase::Crossing;
        for side in self.sides.by_id.values_mut() {
            side.end.has_follower(true);
        }
    }

    /// The channel manager does what is due at once.
    pub fn record_deadline(&mut self, now: Time) {
        self.record(now, &Entry::Deadline);
    }

    /// The channel manager gets a verdict about a login at once.
    pub fn record_verdict(&mut self, now: Time, ticket: Ticket, verdict: AuthVerdict) {
        self.record(now, &Entry::Verdict { ticket, verdict });
    }

    pub(super) fn record(&mut self, now: Time, entry: &Entry) {
        if let Some(follower) = &mut self.follower {
            let at = self.shift.to_channels(now);
            follower.record(now, at, entry, self.has_global_owner);
        }
    }

    /// What of a frame's content the follower is to be logged, if it is taken.
    pub(super) fn news_for_follower(&self, id: SideId, data: &Data) -> Option<Data> {
        self.follower.as_ref().filter(|it| it.is_logged())?;
        self.sides.by_id.get(&id)?.end.news(data)
    }

    pub(super) fn on_joined(&mut self, now: Time, side: SideId, joined: Joined) {
        self.record(now, &Entry::Joined { side, joined });
        if let (Some(follower), Some(it)) = (&self.follower, self.sides.by_id.get_mut(&side)) {
            it.end.has_follower(follower.is_logged());
            if follower.holds() {
                it.end.hold_from(Position {
                    pushed: 0,
                    taken: 0,
                });
            }
        }
    }

    pub(super) fn on_lost(&mut self, now: Time, side: SideId) {
        self.record(now, &Entry::Lost { side });
        if let Some(follower) = &mut self.follower {
            follower.forget(side);
        }
    }

    /// Says to an edge that its route stands, once the follower knows of it.
    pub(super) fn welcome(&mut self, epoch: u64, edge: NodeId, welcome: Content) {
        let to = Address::Node(edge);
        match &mut self.follower {
            Some(follower) if follower.holds() => {
                let frame = Frame {
                    from: self.node,
                    epoch,
                    content: welcome,
                };
                follower.hold_frame(to, frame.encode());
            }
            _ => self.post(epoch, to, welcome),
        }
    }

    /// A frame of the node that follows.
    fn on_follower(&mut self, now: Time, from: NodeId, session: u32, data: Data) {
        let is_it = |it: &&mut Follower| it.node == from && it.session == session;
        let Some(follower) = self.follower.as_mut().filter(is_it) else {
            return;
        };
        let mut messages = Vec::new();
        if follower.end.take(now, data, &mut messages).is_err() {
            self.lose_follower(now, Loss::Nonsense);
            return;
        }
        for message in messages {
            if message == READY {
                if let Some(follower) = &mut self.follower {
                    follower.on_ready(now, self.has_global_owner);
                }
            } else if message == UNLIKE {
                self.resyncs += 1;
                self.lose_follower(now, Loss::Unlike);
            }
        }
        self.release(now);
    }

    fn release(&mut self, now: Time) {
        let Some(follower) = &mut self.follower else {
            return;
        };
        let was_in_sync = follower.phase == Phase::InSync;
        self.frames.extend(follower.release(now, &mut self.sides));
        if follower.phase == Phase::InSync && !was_in_sync {
            self.in_sync_since = now;
            self.lease.set_successor(now, Some(follower.node));
            self.notes.push_back(Note::Followed(follower.node));
        }
    }

    /// The node that follows does not any more: nothing is done of which it does not know
    /// until the lease's entry names it no longer.
    pub(super) fn lose_follower(&mut self, now: Time, why: Loss) {
        let Some(follower) = &mut self.follower else {
            return;
        };
        let (node, phase) = (follower.node, follower.phase);
        follower.leave(why);
        if phase == Phase::Leaves {
            return;
        }
        let (first, longest) = (self.times.renew, LONGEST_PAUSE * self.times.renew);
        if phase == Phase::InSync && now.since(self.in_sync_since) >= longest {
            self.follow_pause = first;
        }
        if why == Loss::Ended {
            self.follow_at = now + first;
        } else {
            self.follow_at = now + self.follow_pause;
            self.follow_pause = (2 * self.follow_pause).min(longest);
        }
        self.notes.push_back(Note::FollowerLost {
            node,
            why: why.text(),
        });
        if phase == Phase::InSync {
            self.lease.set_successor(now, None);
        } else {
            self.go_on_alone();
        }
    }

    fn go_on_alone(&mut self) {
        if let Some(follower) = self.follower.take() {
            self.frames.extend(follower.open(&mut self.sides));
        }
    }

    /// Has a node that stands by follow, if none does.
    fn choose_follower(&mut self, now: Time) {
        if self.follower.is_some()
            || self.is_ending
            || now < self.follow_at
            || !self.events.is_empty()
            || self.lease.may_name().is_some()
        {
            return;
        }
        let nodes: Vec<NodeId> = self.in_touch(now).collect();
        // In turns, so that one that cannot keeps no other from it.
        let turn = self.sessions as usize;
        let Some(&node) = nodes.get(turn % nodes.len().max(1)) else {
            return;
        };
        self.sessions += 1;
        self.follower = Some(Follower::new(now, self.times, node, self.sessions));
        self.events.push_back(ChannelsEvent::BeFollowed);
    }

    /// Sends the follower what was done, and releases what it knows of.
    pub(super) fn drive_follower(&mut self, now: Time, epoch: u64) {
        self.choose_follower(now);
        let follower = self.follower.as_ref();
        if let Some(why) = follower.and_then(|it| it.is_lost(now, self.times)) {
            self.lose_follower(now, why);
        }
        let Some(follower) = &mut self.follower else {
            return;
        };
        let to = follower.node;
        if follower.phase == Phase::Leaves && self.lease.may_name() != Some(to) {
            self.go_on_alone();
            return;
        }
        if self.events.is_empty() {
            follower.record_rest(now, &self.sides, self.has_global_owner);
        }
        if follower.phase != Phase::Wanted {
            let session = follower.session;
            let revision = self.lease.revision().unwrap_or_default();
            for data in follower.end.poll_all(now) {
                let follow = Follow {
                    session,
                    revision,
                    data,
                };
                self.post(epoch, Address::Node(to), Content::Follow(follow));
            }
        }
        self.release(now);
    }

    pub(super) fn follower_deadline(&self, now: Time) -> Option<Time> {
        match &self.follower {
            Some(follower) => Some(follower.next_deadline(now, self.times)),
            None if self.lease.may_name().is_some() || self.is_ending => None,
            None => (self.standbys(now) > 0).then_some(self.follow_at),
        }
    }
}

/// What a node does that follows an owner.
impl ChannelsNode {
    /// A frame between an owner and the node that follows it, in either direction.
    pub(super) fn on_follow(&mut self, now: Time, from: NodeId, epoch: u64, follow: Follow) {
        let (session, data) = (follow.session, follow.data);
        match self.standing {
            Standing::StandsBy if !self.is_ending => {
                self.lease.note_epoch(epoch);
                if self.lease.holder() == Some((from, epoch)) {
                    self.lease.note_renewal(now, follow.revision);
                }
                self.on_owner(now, (from, epoch, session), data);
            }
            Standing::Owns(own) | Standing::Rests(own) if own == epoch => {
                self.on_follower(now, from, session, data);
            }
            _ => {}
        }
    }

    fn on_owner(&mut self, now: Time, of: (NodeId, u64, u32), data: Data) {
        let (owner, epoch, session) = of;
        let known = self.following.as_ref();
        if known.map(|it| (it.owner, it.epoch, it.session)) != Some(of) {
            // A frame of the past would make a replica of the past.
            if (epoch, session) <= self.followed || epoch < self.lease.newest() {
                return;
            }
            // Who speaks for an owner that is none would have it forget what it has.
            let holder = self.lease.holder();
            if holder.is_some_and(|holder| holder != (owner, epoch)) {
                return;
            }
            self.followed = (epoch, session);
            self.following = Some(Following::new(now, self.times, (owner, epoch, session)));
        }
        let following = self.following.as_mut();
        if let Some(channels) = following.and_then(|it| it.on_data(now, self.times, data)) {
            self.events.push_back(ChannelsEvent::Replica(channels));
        }
    }

    /// What the replica of the channel manager has to say at an instant of its clock.
    pub fn on_replica_said(&mut self, at: Time, side: SideId, message: &ToConnections) {
        if let Some(following) = &mut self.following {
            following.on_said(at, side, message);
        }
    }

    /// What the replica of the channel manager is to do next.
    pub(super) fn next_replayed(&mut self) -> Option<ChannelsEvent> {
        let (at, what): (Time, Replayed) = self.following.as_mut()?.next()?;
        Some(ChannelsEvent::Replay(at, what))
    }

    /// What this node has followed, if nothing was done of which it does not know.
    pub(super) fn take_followed(
        &mut self,
        now: Time,
        predecessor: Option<(NodeId, u64)>,
    ) -> Option<Resumed> {
        let following = self.following.take()?;
        let owner = following.owner;
        if predecessor != Some((owner, following.epoch)) || !self.lease.is_named() {
            return None;
        }
        let mut replica = following.into_replica()?;
        for side in replica.sides.by_id.values_mut() {
            side.end.take_over(now);
        }
        let (since, has_owner) = (replica.since, replica.has_global_owner);
        Some((owner, since, has_owner, replica.shift, replica.sides))
    }

    /// Sends what is due to the owner that this node follows.
    pub(super) fn drive_following(&mut self, now: Time) {
        let lease = &self.lease;
        self.following.take_if(|it| lease.is_past(it.epoch));
        let has_replica = self.following.as_ref().is_some_and(Following::has_replica);
        self.lease.set_can_succeed(has_replica);
        let Some(following) = &mut self.following else {
            return;
        };
        let Some(end) = &mut following.end else {
            return;
        };
        if end.is_lost(now).is_some() {
            following.end = None;
            return;
        }
        let (to, epoch, session) = (following.owner, following.epoch, following.session);
        for data in end.poll_all(now) {
            let follow = Follow {
                session,
                revision: 0,
                data,
            };
            self.post(epoch, Address::Node(to), Content::Follow(follow));
        }
    }

    pub(super) fn following_deadline(&self, now: Time) -> Option<Time> {
        let end = self.following.as_ref()?.end.as_ref()?;
        Some(end.next_deadline(now))
    }
}
