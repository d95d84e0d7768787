//! How shards send each other messages: numbered and acknowledged, through edges.
//!
//! A shard has no way to another but edges, which have routes to both and
//! [pass on](crate::core::bus::ToConnections::Relay) what they are handed. An edge may end in
//! the middle, so each message is kept until the other shard has acknowledged it, sent again
//! through another edge where that takes long, and taken once and in order there.
//!
//! A shard that was lost with all it had begins anew, in another *incarnation*: the epoch in
//! which it began. What was meant for an earlier one is dropped, and whoever had to do with
//! that learns that it is gone ([`Taken::begun_anew`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::ids::SideId;
use crate::core::shards::ShardId;

/// After so long without an acknowledgement the first message that waits is sent again, and
/// after twice as long each further time.
const PROBE_AFTER: Duration = Duration::from_millis(500);

/// Probes are not further apart than this many times [`PROBE_AFTER`].
const PROBE_BACKOFF_AT_MOST: u32 = 16;

/// So many bytes of messages, or one message, are under way at once.
const WINDOW_BYTES: usize = 256 << 10;

/// The epoch in which a shard's channels began; 0 is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Incarnation(u64);

/// What crosses.
#[derive(Debug, Serialize, Deserialize)]
struct Frame {
    from: Incarnation,
    to: Incarnation,
    /// The message's number, from 1; 0 where there is none.
    number: u64,
    /// All messages up to this one have come.
    taken: u64,
    message: Bytes,
}

/// One shard's end of the way to another.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Link {
    theirs: Incarnation,
    /// What was not acknowledged, in order; the first has the number after `acknowledged`.
    waiting: VecDeque<Bytes>,
    acknowledged: u64,
    /// How many of those that wait were sent.
    sent: usize,
    /// How many of the other's messages have come.
    taken: u64,
    relay: Option<SideId>,
    /// When the first is sent again, or the other, which this one has not met, greeted.
    due: Option<Time>,
    /// How often it was since the last acknowledgement. Until there is one no other is sent.
    probes: u32,
}

/// The links to all other shards.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ShardLinks {
    own: Incarnation,
    links: BTreeMap<ShardId, Link>,
}

/// A frame for a shard, and the edge that is to pass it on.
pub(super) type Outgoing = (SideId, ShardId, Bytes);

/// What a frame came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// The shard has lost all it had, and has begun anew.
    pub(super) begun_anew: bool,
    /// The next message, in order.
    pub(super) message: Option<Bytes>,
    /// Messages for it that it has not acknowledged, or that came too late for it.
    pub(super) lost: Vec<Bytes>,
    /// To be sent.
    pub(super) frames: Vec<Outgoing>,
}

impl ShardLinks {
    /// The epoch in which another shard's channels began, 0 if that is not known yet.
    pub(super) fn epoch_of(&self, shard: ShardId) -> u64 {
        self.links.get(&shard).map_or(0, |link| link.theirs.0)
    }

    /// The channels began in this epoch, from 1.
    pub(super) fn began_in(&mut self, epoch: u64) {
        self.own = Incarnation(epoch);
    }

    /// Sends a message to another shard, through one of these edges.
    pub(super) fn send(
        &mut self,
        now: Time,
        to: ShardId,
        message: Bytes,
        edges: &BTreeSet<SideId>,
    ) -> Vec<Outgoing> {
        let own = self.own;
        let link = self.links.entry(to).or_default();
        link.waiting.push_back(message);
        link.due.get_or_insert(now + PROBE_AFTER);
        link.send_more(own, to, edges)
    }

    /// Makes this shard known to another, through an edge that has just come. What waits
    /// need not wait any longer.
    pub(super) fn greeting(&mut self, now: Time, to: ShardId, edge: SideId) -> Outgoing {
        let own = self.own;
        let link = self.links.entry(to).or_default();
        if link.probes > 0 {
            link.due = Some(now);
        } else if link.theirs == Incarnation::default() {
            // Until it has answered.
            link.due.get_or_insert(now + PROBE_AFTER);
        }
        (edge, to, link.encode(own, None))
    }

    /// Takes a frame of another shard that an edge has passed on. One that cannot be read is
    /// dropped: it is not of a shard.
    pub(super) fn take(
        &mut self,
        now: Time,
        from: ShardId,
        edge: SideId,
        frame: &[u8],
        edges: &BTreeSet<SideId>,
    ) -> Taken {
        let mut taken = Taken::default();
        let Ok(frame) = postcard::from_bytes::<Frame>(frame) else {
            return taken;
        };
        let own = self.own;
        let link = self.links.entry(from).or_default();
        // The past.
        if frame.from < link.theirs {
            return taken;
        }
        if frame.from > link.theirs {
            taken.begun_anew = link.theirs != Incarnation::default();
            taken.lost = link.meet(frame.from);
            taken.frames = link.send_more(own, from, edges);
        }
        // It does not know this one yet: what it has sent it sends again once it does.
        if frame.to != own {
            taken.frames.push((edge, from, link.encode(own, None)));
            return taken;
        }
        if link.acknowledge(now, frame.taken) {
            taken.frames.extend(link.send_more(own, from, edges));
        } else if link.probes > 0 {
            // It can be reached again, by this edge at least.
            link.relay = Some(edge);
            link.due = link.due.map(|due| due.min(now + PROBE_AFTER));
        }
        if frame.number > 0 {
            if frame.number == link.taken + 1 {
                link.taken += 1;
                taken.message = Some(frame.message);
            }
            taken.frames.push((edge, from, link.encode(own, None)));
        }
        taken
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.links.values().filter_map(|link| link.due).min()
    }

    /// Sends again what has waited for too long.
    pub(super) fn handle_deadline(&mut self, now: Time, edges: &BTreeSet<SideId>) -> Vec<Outgoing> {
        let own = self.own;
        let mut frames = Vec::new();
        for (&to, link) in &mut self.links {
            if link.due.is_none_or(|due| due > now) {
                continue;
            }
            link.use_next_relay(edges);
            let backoff = (1 << link.probes.min(u32::BITS - 1)).min(PROBE_BACKOFF_AT_MOST);
            link.probes += 1;
            link.due = Some(now + PROBE_AFTER * backoff);
            link.sent = link.waiting.len().min(1);
            let first = (!link.waiting.is_empty()).then_some(0);
            frames.extend(link.frame(own, to, first, edges));
        }
        frames
    }

    /// An edge is gone: what it carried may be lost.
    pub(super) fn edge_is_gone(&mut self, now: Time, edge: SideId) {
        for link in self.links.values_mut() {
            if link.relay == Some(edge) {
                link.relay = None;
                if !link.waiting.is_empty() {
                    link.due = Some(now);
                }
            }
        }
    }
}

impl Link {
    /// The other shard is in an incarnation that this one has not met. Returns what waited for
    /// an earlier one; what waits for one that it never met is for whichever it meets first.
    fn meet(&mut self, theirs: Incarnation) -> Vec<Bytes> {
        let mut lost = Vec::new();
        if self.theirs != Incarnation::default() {
            lost.extend(std::mem::take(&mut self.waiting));
            self.acknowledged = 0;
        }
        if self.waiting.is_empty() {
            self.due = None;
        }
        self.theirs = theirs;
        self.taken = 0;
        self.sent = 0;
        self.probes = 0;
        lost
    }

    /// The other has taken so many messages. Returns whether it is news.
    fn acknowledge(&mut self, now: Time, taken: u64) -> bool {
        let last = self.acknowledged + self.waiting.len() as u64;
        if taken <= self.acknowledged || taken > last {
            return false;
        }
        while self.acknowledged < taken {
            self.waiting.pop_front();
            self.acknowledged += 1;
            self.sent = self.sent.saturating_sub(1);
        }
        self.due = (!self.waiting.is_empty()).then_some(now + PROBE_AFTER);
        self.probes = 0;
        true
    }

    /// Sends what the window has room for. While it is not known whether anything arrives,
    /// nothing.
    fn send_more(
        &mut self,
        own: Incarnation,
        to: ShardId,
        edges: &BTreeSet<SideId>,
    ) -> Vec<Outgoing> {
        let mut frames = Vec::new();
        if self.probes > 0 {
            return frames;
        }
        let mut under_way: usize = self.waiting.iter().take(self.sent).map(Bytes::len).sum();
        while let Some(next) = self.waiting.get(self.sent) {
            under_way += next.len();
            if self.sent > 0 && under_way > WINDOW_BYTES {
                break;
            }
            let Some(frame) = self.frame(own, to, Some(self.sent), edges) else {
                break;
            };
            frames.push(frame);
            self.sent += 1;
        }
        frames
    }

    fn frame(
        &mut self,
        own: Incarnation,
        to: ShardId,
        place: Option<usize>,
        edges: &BTreeSet<SideId>,
    ) -> Option<Outgoing> {
        if self.relay.is_none_or(|relay| !edges.contains(&relay)) {
            // Another one for each shard, as far as there are.
            let place = usize::from(to.0) % edges.len().max(1);
            self.relay = edges.iter().nth(place).copied();
        }
        Some((self.relay?, to, self.encode(own, place)))
    }

    fn encode(&self, own: Incarnation, place: Option<usize>) -> Bytes {
        let message = place.and_then(|place| self.waiting.get(place));
        let frame = Frame {
            from: own,
            to: self.theirs,
            number: place.map_or(0, |place| self.acknowledged + 1 + place as u64),
            taken: self.taken,
            message: message.cloned().unwrap_or_default(),
        };
        // Writing to memory does not fail.
        postcard::to_allocvec(&frame).unwrap_or_default().into()
    }

    /// Goes on through the next edge.
    fn use_next_relay(&mut self, edges: &BTreeSet<SideId>) {
        let after = self.relay.and_then(|relay| {
            let mut later = edges.iter().filter(|&&edge| edge > relay);
            later.next().copied()
        });
        self.relay = after.or_else(|| edges.first().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: ShardId = ShardId::HOME;
    const AWAY: ShardId = ShardId(1);

    fn edges<const N: usize>(edges: [u16; N]) -> BTreeSet<SideId> {
        edges.into_iter().map(SideId).collect()
    }

    fn links(epoch: u64) -> ShardLinks {
        let mut links = ShardLinks::default();
        links.began_in(epoch);
        links
    }

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Hands over frames until both have nothing to say. Returns what `to` was sent.
    fn exchange(
        now: Time,
        (from, to): (&mut ShardLinks, &mut ShardLinks),
        frames: impl IntoIterator<Item = Outgoing>,
    ) -> Vec<Bytes> {
        let mut messages = Vec::new();
        let mut under_way: VecDeque<Outgoing> = frames.into_iter().collect();
        let edges = edges([1, 2]);
        while let Some((edge, shard, frame)) = under_way.pop_front() {
            let (taker, sender) = match shard {
                AWAY => (&mut *to, HOME),
                _ => (&mut *from, AWAY),
            };
            let came = taker.take(now, sender, edge, &frame, &edges);
            under_way.extend(came.frames);
            messages.extend(came.message.filter(|_| shard == AWAY));
        }
        messages
    }

    /// Both know each other.
    fn met() -> (ShardLinks, ShardLinks) {
        let (mut home, mut away) = (links(1), links(1));
        let hello = home.greeting(ms(0), AWAY, SideId(1));
        exchange(ms(0), (&mut home, &mut away), [hello]);
        (home, away)
    }

    fn send(links: &mut ShardLinks, text: &'static str) -> Vec<Outgoing> {
        let message = Bytes::from_static(text.as_bytes());
        links.send(ms(0), AWAY, message, &edges([1, 2]))
    }

    #[test]
    fn messages_come_once_and_in_order_though_an_edge_loses_some_and_repeats_others() {
        let (mut home, mut away) = met();
        let first = send(&mut home, "first");
        let lost = send(&mut home, "second");
        let third = send(&mut home, "third");
        assert_eq!(lost[0].0, SideId(2), "the edge for that shard");
        let again = first.clone();
        let frames = first.into_iter().chain(again).chain(third);
        let came = exchange(ms(1), (&mut home, &mut away), frames);
        assert_eq!(came, ["first"], "the third waits for the second");
        assert_eq!(home.next_deadline(), Some(ms(501)));
        let probe = home.handle_deadline(ms(501), &edges([1, 2]));
        assert_eq!(probe.len(), 1);
        assert_eq!(probe[0].0, SideId(1), "by another edge");
        let came = exchange(ms(502), (&mut home, &mut away), probe);
        assert_eq!(came, ["second", "third"]);
        assert_eq!(home.next_deadline(), None, "all is acknowledged");
    }

    #[test]
    fn what_was_carried_by_an_edge_that_is_gone_is_sent_again_at_once() {
        let (mut home, mut away) = met();
        let lost = send(&mut home, "carried");
        home.edge_is_gone(ms(5), lost[0].0);
        assert_eq!(home.next_deadline(), Some(ms(5)));
        let again = home.handle_deadline(ms(5), &edges([1]));
        assert_eq!(exchange(ms(6), (&mut home, &mut away), again), ["carried"]);
    }

    #[test]
    fn no_more_than_a_window_is_under_way() {
        let (mut home, mut away) = met();
        let edges = edges([1, 2]);
        let mut frames = Vec::new();
        for _ in 0..10 {
            let message = Bytes::from(vec![7; WINDOW_BYTES / 4 + 1]);
            frames.extend(home.send(ms(0), AWAY, message, &edges));
        }
        assert_eq!(frames.len(), 3);
        let came = exchange(ms(1), (&mut home, &mut away), frames);
        assert_eq!(came.len(), 10, "each acknowledgement makes room");
        let long = Bytes::from(vec![7; 2 * WINDOW_BYTES]);
        assert_eq!(home.send(ms(2), AWAY, long, &edges).len(), 1);
    }

    #[test]
    fn a_shard_that_begins_anew_gets_nothing_of_the_past_and_is_noticed() {
        let (mut home, mut away) = met();
        let first = send(&mut home, "met");
        assert_eq!(exchange(ms(0), (&mut home, &mut away), first), ["met"]);
        let mut anew = links(2);
        let late = send(&mut home, "late");
        // It comes to the new one, which says who it is.
        let (edge, _, frame) = &late[0];
        let refused = anew.take(ms(1), HOME, *edge, frame, &edges([1]));
        assert_eq!((refused.message, refused.frames.len()), (None, 1));
        let (edge, _, hello) = &refused.frames[0];
        let met = home.take(ms(1), AWAY, *edge, hello, &edges([1]));
        assert!(met.begun_anew);
        assert_eq!(met.lost, ["late"]);
        let next = send(&mut home, "next");
        assert_eq!(exchange(ms(2), (&mut home, &mut anew), next), ["next"]);
        // What the old one had still to say.
        let (edge, _, stale) = away.greeting(ms(3), HOME, SideId(1));
        let stale = home.take(ms(3), AWAY, edge, &stale, &edges([1]));
        assert_eq!(stale, Taken::default());
    }

    #[test]
    fn what_is_sent_before_the_other_is_met_is_for_the_first_that_is() {
        let (mut home, mut away) = (links(4), links(7));
        let none = home.send(ms(0), AWAY, Bytes::from_static(b"early"), &edges([]));
        assert_eq!(none, [], "there is no edge");
        let hello = away.greeting(ms(1), HOME, SideId(1));
        let came = exchange(ms(1), (&mut home, &mut away), [hello]);
        assert_eq!(came, ["early"]);
        // Likewise where it was sent: it is not taken before both know each other.
        let (mut home, mut away) = (links(4), links(7));
        let early = send(&mut home, "early");
        let came = exchange(ms(1), (&mut home, &mut away), early);
        assert_eq!(came, ["early"]);
        assert_eq!(home.next_deadline(), None);
    }

    #[test]
    fn nonsense_is_dropped() {
        let taken = links(1).take(ms(0), AWAY, SideId(1), &[0xff; 40], &edges([1]));
        assert_eq!(taken, Taken::default());
    }
}
