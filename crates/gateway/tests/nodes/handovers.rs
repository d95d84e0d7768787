//! Two nodes for channels, one of which ends: what becomes of the channels where the other
//! takes them, cannot, or is not there. What they are is of no matter here.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use lagometer_gateway::core::{ShardCount, ShardId};
use lagometer_gateway::nodes::{
    BusEvent, ChannelsEvent, ChannelsNode, LeaseRequest, NodeId, NodeTimes, Note, Standing,
};
use lagometer_units::Time;

use crate::bus::{Bus, MS};
use crate::random::Random;

const NODES: [NodeId; 2] = [NodeId(1), NodeId(2)];

/// How far the clock of the second is ahead.
const AHEAD: u64 = 500_000 * MS;

/// Two nodes on a bus.
struct Pair {
    now: u64,
    bus: Bus,
    nodes: Vec<ChannelsNode>,
    /// What the owner writes down, if it can.
    written: Option<Vec<u8>>,
    /// Whether the other can read it back.
    can_read: bool,
    /// Whether the owner lets itself be followed.
    follows: bool,
    read: Vec<Bytes>,
    /// Whether the other is cut off the moment that it asks to be the owner.
    is_cut_at_take: bool,
    /// What each was to do with its channels, and said.
    events: [Vec<ChannelsEvent>; 2],
    notes: [Vec<Note>; 2],
}

impl Pair {
    /// The first owns the channels, and the other stands by.
    fn new(written: Option<Vec<u8>>, can_read: bool) -> Self {
        Self::with(written, can_read, false)
    }

    fn with(written: Option<Vec<u8>>, can_read: bool, follows: bool) -> Self {
        let mut bus = Bus::new(Random(3), ShardCount::ONE);
        for node in NODES {
            bus.add(0, node);
        }
        let at = |index: u64| Time::from_nanos(index * AHEAD);
        let node =
            |index: usize| ChannelsNode::new(at(index as u64), NODES[index], NodeTimes::default());
        let mut pair = Self {
            now: 0,
            bus,
            nodes: vec![node(0)],
            written,
            can_read,
            follows,
            read: Vec::new(),
            is_cut_at_take: false,
            events: Default::default(),
            notes: Default::default(),
        };
        pair.pass(1_000);
        pair.nodes.push(node(1));
        pair.pass(2_000);
        assert_eq!(pair.nodes[0].standing(pair.local(0)), Standing::Owns(1));
        assert_eq!(pair.nodes[0].standbys(pair.local(0)), 1);
        pair
    }

    fn local(&self, index: usize) -> Time {
        Time::from_nanos(self.now + index as u64 * AHEAD)
    }

    fn pass(&mut self, millis: u64) {
        let end = self.now + millis * MS;
        while self.now < end {
            self.now += MS;
            let mut came: [VecDeque<BusEvent>; 2] = Default::default();
            while let Some((node, _, event)) = self.bus.arrive(self.now) {
                let index = NODES.iter().position(|id| *id == node).expect("a node");
                came[index].push_back(event);
            }
            let there = self.nodes.len();
            for (index, events) in came.into_iter().enumerate().take(there) {
                let now = self.local(index);
                for event in events {
                    match event {
                        BusEvent::Frame(frame) => self.nodes[index].on_frame(now, frame),
                        BusEvent::Lease(number, answer) => {
                            self.nodes[index].on_lease(now, number, answer);
                        }
                        BusEvent::Up => self.nodes[index].on_up(),
                        BusEvent::Down => {}
                    }
                    self.work(index);
                }
                self.nodes[index].handle_deadline(now);
                self.work(index);
                self.nodes[index].handle_deadline(now);
                self.send(index);
            }
        }
    }

    fn work(&mut self, index: usize) {
        let now = self.local(index);
        while let Some(event) = self.nodes[index].poll_event() {
            match &event {
                ChannelsEvent::HandOver => {
                    self.nodes[index].hand_over(now, self.written.take());
                }
                ChannelsEvent::BeFollowed if self.follows => {
                    self.nodes[index].be_followed(now, self.written.clone());
                }
                ChannelsEvent::Replica(bytes) => {
                    self.read.push(bytes.clone());
                    self.nodes[index].on_replica(now, self.can_read);
                }
                _ => {}
            }
            self.events[index].push(event);
        }
    }

    fn send(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        while let Some((to, frame)) = node.poll_frame() {
            self.bus
                .publish(self.now, NODES[index], ShardId::HOME, to, &frame);
        }
        while let Some(task) = node.poll_task() {
            let takes = index == 1 && matches!(task.request, LeaseRequest::Update(..));
            self.bus.ask(self.now, NODES[index], ShardId::HOME, task);
            if takes && std::mem::take(&mut self.is_cut_at_take) {
                self.bus.cut(self.now, NODES[1], self.now + 100 * MS);
            }
        }
        while let Some(note) = node.poll_note() {
            self.notes[index].push(note);
        }
    }

    /// The first ends.
    fn end(&mut self) {
        let now = self.local(0);
        self.nodes[0].end(now);
        self.work(0);
    }

    /// The first dies.
    fn kill(&mut self) {
        self.bus.remove(NODES[0]);
        self.nodes[0] = ChannelsNode::new(self.local(0), NodeId(9), NodeTimes::default());
    }

    /// The channels were lost, and the other owns new ones within so long.
    fn are_lost_within(&mut self, millis: u64, because: &str) {
        self.end();
        self.pass(millis);
        assert!(self.nodes[0].is_over());
        assert_eq!(self.nodes[1].standing(self.local(1)), Standing::Owns(2));
        assert_eq!(self.events[1].last(), Some(&ChannelsEvent::Begin(2)));
        let said = |note: &Note| matches!(note, Note::NotHandedOver(why) if why.contains(because));
        assert!(self.notes[0].iter().any(said), "{:?}", self.notes[0]);
    }
}

#[test]
fn who_stands_by_goes_on_with_the_channels_and_their_clock_at_once() {
    let channels: Vec<u8> = (0..5_000_000_u32).map(|n| n as u8).collect();
    let mut pair = Pair::new(Some(channels.clone()), true);
    let before = pair.nodes[0].channels_time(pair.local(0));
    pair.end();
    // It has done its last.
    assert_eq!(pair.nodes[0].standing(pair.local(0)), Standing::Rests(1));
    pair.pass(300);
    assert!(pair.nodes[0].is_over());
    assert_eq!(pair.read, [Bytes::from(channels)]);
    assert_eq!(pair.events[1].last(), Some(&ChannelsEvent::Resume(2)));
    assert_eq!(pair.nodes[1].standing(pair.local(1)), Standing::Owns(2));
    let after = pair.nodes[1].channels_time(pair.local(1));
    assert!(before < after && after.since(before) < Duration::from_millis(300));
    assert_eq!(pair.nodes[1].node_time(after), pair.local(1));
}

#[test]
fn channels_that_the_other_node_cannot_read_are_lost_and_the_lease_is_given_up() {
    let mut pair = Pair::new(Some(vec![1, 2, 3]), false);
    pair.are_lost_within(1_200, "can read them");
}

#[test]
fn channels_that_are_too_large_or_cannot_be_written_are_lost_and_the_lease_is_given_up() {
    for written in [Some(vec![0; 49 << 20]), None] {
        Pair::new(written, true).are_lost_within(1_200, "cannot be written, or there is too much");
    }
}

#[test]
fn a_node_that_stands_by_and_does_not_answer_is_not_waited_for_longer_than_three_seconds() {
    let mut pair = Pair::new(Some(vec![1, 2, 3]), true);
    let until = pair.now + 3_100 * MS;
    pair.bus.cut(pair.now, NODES[1], until);
    pair.are_lost_within(8_000, "in time");
}

#[test]
fn an_owner_that_dies_once_it_has_handed_over_is_succeeded_with_its_channels() {
    let mut pair = Pair::new(Some(vec![1, 2, 3]), true);
    pair.end();
    // Long enough for the channels to cross, and not for the answer to come back.
    while pair.read.is_empty() {
        pair.pass(1);
    }
    pair.kill();
    pair.pass(4_500);
    assert_eq!(pair.events[1].last(), Some(&ChannelsEvent::Resume(2)));
}

/// The store writes that the other owns the channels, and its answer is lost.
#[test]
fn a_successor_that_is_not_notified_that_it_owns_the_channels_goes_on_with_them_all_the_same() {
    let mut pair = Pair::new(Some(vec![1, 2, 3]), true);
    pair.is_cut_at_take = true;
    pair.end();
    pair.pass(4_000);
    assert!(!pair.is_cut_at_take);
    assert_eq!(pair.events[1].last(), Some(&ChannelsEvent::Resume(3)));
}

#[test]
fn who_follows_goes_on_with_the_channels_and_their_clock_once_the_lease_is_over() {
    let channels = vec![1, 2, 3];
    let mut pair = Pair::with(Some(channels.clone()), true, true);
    assert!(pair.nodes[0].is_followed());
    assert_eq!(pair.read, [Bytes::from(channels)]);
    let before = (pair.now, pair.nodes[0].channels_time(pair.local(0)));
    pair.kill();
    pair.pass(3_900);
    assert_eq!(pair.events[1].last(), Some(&ChannelsEvent::Resume(2)));
    let passed = Duration::from_nanos(pair.now - before.0);
    let after = pair.nodes[1].channels_time(pair.local(1)).since(before.1);
    assert!(
        after.abs_diff(passed) < Duration::from_millis(20),
        "{after:?}"
    );
}

/// At once: the lease is given up in its favour.
#[test]
fn an_owner_that_cannot_hand_over_is_succeeded_by_who_follows_as_if_it_had_died() {
    let mut pair = Pair::with(Some(vec![1, 2, 3]), true, true);
    assert!(pair.nodes[0].is_followed());
    pair.written = None;
    pair.end();
    pair.pass(1_200);
    assert!(pair.nodes[0].is_over());
    assert_eq!(pair.events[1].last(), Some(&ChannelsEvent::Resume(2)));
}

#[test]
fn channels_that_cannot_be_read_are_not_gone_on_with_and_are_written_again() {
    let mut pair = Pair::with(Some(vec![1, 2, 3]), false, true);
    pair.pass(3_000);
    assert!(!pair.nodes[0].is_followed());
    assert!(pair.nodes[0].resyncs() > 1);
    pair.kill();
    pair.pass(4_500);
    assert_eq!(pair.events[1].last(), Some(&ChannelsEvent::Begin(2)));
}

#[test]
fn who_has_missed_something_is_named_no_longer_and_does_not_go_on() {
    let mut pair = Pair::with(Some(vec![1, 2, 3]), true, true);
    assert!(pair.nodes[0].is_followed());
    // Nothing comes from or to it, and the owner does something.
    let until = pair.now + 1_900 * MS;
    pair.bus.cut(pair.now, NODES[1], until);
    let now = pair.local(0);
    pair.nodes[0].record_deadline(now);
    pair.pass(800);
    assert!(!pair.nodes[0].is_followed());
    assert_eq!(pair.nodes[0].standing(pair.local(0)), Standing::Owns(1));
    pair.kill();
    pair.pass(7_000);
    assert_eq!(pair.events[1].last(), Some(&ChannelsEvent::Begin(2)));
}
