//! The thread of an edge that joins its connection loops with the channels on another
//! node.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lagometer_units::Time;
use rustix::io::Errno;
use tracing::{debug, info, warn};

use crate::core::{Shard, ShardCount, ShardId};
use crate::nodes::{BusEvent, Delivery, NodeBus, Note, ShardedEdge};

use super::bus_adapter::{Delivered, Posted};
use super::channel_loop::Mailboxes;
use super::command::{Command, Commands};
use super::node_inbox::NodeInbox;
use super::poller::{Events, Poller, Waker};
use super::report::{Numbers, Report, RouteNumbers};
use super::shared::Shared;

/// The loop over frames, and messages of connection loops.
pub(super) struct EdgeLoop {
    pub(super) node: ShardedEdge,
    pub(super) count: ShardCount,
    pub(super) bus: Arc<dyn NodeBus>,
    /// Of each shard, in order.
    pub(super) inboxes: Vec<NodeInbox>,
    pub(super) exchange: Mailboxes,
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: Arc<Commands>,
    pub(super) report: Arc<Report>,
}

impl EdgeLoop {
    /// Runs until asked to end, which is when the connection loops have ended.
    pub(super) fn run(mut self) -> Result<(), Errno> {
        let mut ready = Events::new();
        let mut arrived = VecDeque::new();
        let (mut answered, mut turns, mut busy_ns) = (0, 0, 0);
        loop {
            let before = self.shared.clock.now();
            let due = self.node.next_deadline(before).map(|due| due.since(before));
            // Heartbeats are due while a connection loop has no room, too.
            let rest = if self.node.has_room() {
                self.exchange.rest(due).or(due)
            } else {
                due
            };
            self.poller.wait(rest, &mut ready)?;
            if ready.iter().next().is_some() {
                self.waker.silence();
            }
            let now = self.shared.clock.now();
            let mut ends = false;
            while let Some(command) = self.commands.take() {
                ends |= matches!(command, Command::End);
            }
            self.turn(now, &mut arrived);
            if ends {
                self.node.end();
                self.publish();
                return Ok(());
            }
            turns += 1;
            busy_ns += self.shared.clock.now().since(now).as_nanos() as u64;
            let asked = self.report.asked();
            let (is_joined, count) = (self.node.is_joined(), self.count.get());
            self.report.answer(asked, &mut answered, || {
                let (counters, lost) = self.node.counters();
                Numbers {
                    turns,
                    busy_ns,
                    queued: self.exchange.depth() as u64,
                    routes: Some(RouteNumbers {
                        open: u64::from(is_joined),
                        shards: u64::from(count),
                        lost,
                        counters,
                        epoch: self.node.epoch(),
                        ..RouteNumbers::default()
                    }),
                    ..Numbers::default()
                }
            });
        }
    }

    fn turn(&mut self, now: Time, arrived: &mut VecDeque<Posted>) {
        // While a connection loop has no room nothing is taken for it: what is not taken
        // is not acknowledged, and waits at the other node.
        if !self.exchange.is_blocked() {
            for (shard, inbox) in self.count.all().zip(&self.inboxes) {
                for event in inbox.take() {
                    match event {
                        BusEvent::Frame(frame) => self.node.on_frame(now, shard, frame),
                        // It is of all shards.
                        BusEvent::Up if shard == ShardId::HOME => self.node.on_up(now),
                        BusEvent::Up | BusEvent::Down | BusEvent::Lease(..) => {}
                    }
                }
            }
        }
        self.deliver();
        if self.node.has_room() && self.exchange.take(arrived) {
            for item in arrived.drain(..) {
                match item {
                    Posted::Message(side, message) => self.node.send(now, side.0, message),
                    Posted::Settled(side, number) => self.node.settled(now, side.0, number),
                    Posted::Probe(side, number) => {
                        let to = usize::from(side.0);
                        self.exchange.post(to, Delivered::Probe(number));
                    }
                }
            }
        }
        self.node.handle_deadline(now);
        self.deliver();
        self.publish();
        while let Some((id, note)) = self.node.poll_note() {
            let count = self.count;
            write(Shard { id, count }, &note);
        }
        self.shared.joined.set(0, self.node.is_joined());
        if self.node.has_global_owner() && !self.shared.owned.swap(true, Ordering::SeqCst) {
            self.shared.wake_all();
        }
    }

    fn deliver(&mut self) {
        while let Some((number, delivery)) = self.node.poll_delivery() {
            let item = match delivery {
                Delivery::Message(message) => Delivered::Message(message),
                Delivery::Lost(number) => Delivered::Lost(number),
            };
            self.exchange.post(usize::from(number), item);
        }
        self.exchange.deliver();
    }

    fn publish(&mut self) {
        while let Some((shard, to, frame)) = self.node.poll_frame() {
            self.bus.publish(shard, to, frame);
        }
    }
}

/// Writes a line of the log, with the shard it is of where there are several.
pub(super) fn write(shard: Shard, note: &Note) {
    let is_good = matches!(
        note,
        Note::Joined { .. }
            | Note::Owner(_)
            | Note::GoesOn
            | Note::EdgeJoined { .. }
            | Note::Resumed(_)
            | Note::HandedOver { .. }
            | Note::GoesOnAt { .. }
    );
    // All shards' leases are in one store: what is wrong with it is said once.
    if matches!(note, Note::LeaseFailed(_)) && !shard.is_home() {
        debug!("{}: {note}", shard.id);
        return;
    }
    match (shard.is_whole(), is_good) {
        (true, true) => info!("{note}"),
        (true, false) => warn!("{note}"),
        (false, true) => info!("{}: {note}", shard.id),
        (false, false) => warn!("{}: {note}", shard.id),
    }
}
