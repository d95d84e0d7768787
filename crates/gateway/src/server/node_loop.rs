//! The thread of a node for channels, which owns them while it has the lease.

use std::sync::Arc;
use std::time::Duration;

use lagometer_units::Time;
use rustix::io::Errno;

use crate::core::Shard;
use crate::nodes::{
    BusEvent, ChannelsEvent, ChannelsNode, NodeBus, NodeTimes, Note, Replayed, ShardShare, Standing,
};

use super::channel_worker::ChannelWorker;
use super::command::{Command, Commands};
use super::config::Config;
use super::edge_loop::write;
use super::node_inbox::NodeInbox;
use super::poller::{Events, Poller, Waker};
use super::report::{Numbers, Report, RouteNumbers};
use super::shared::Shared;

/// A node that ends waits this long to hear that it has given up the lease, from when it
/// has handed the channels over or knows that it cannot.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// The loop over frames of edges, and fan-out ticks.
pub(super) struct NodeLoop {
    pub(super) node: ChannelsNode,
    /// The channels of this epoch; not looked at while the node does not own them.
    pub(super) worker: ChannelWorker,
    /// Those of an owner that ends, to go on with.
    pub(super) replica: Option<ChannelWorker>,
    pub(super) config: Arc<Config>,
    pub(super) shard: Shard,
    pub(super) share: ShardShare,
    pub(super) bus: Arc<dyn NodeBus>,
    pub(super) inbox: NodeInbox,
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: Arc<Commands>,
    pub(super) report: Arc<Report>,
}

impl NodeLoop {
    /// Runs until asked to end, and gives up the lease then.
    pub(super) fn run(mut self) -> Result<(), Errno> {
        let mut ready = Events::new();
        let (mut answered, mut turns, mut busy_ns) = (0, 0, 0);
        let mut ends_at = None;
        loop {
            let before = self.shared.clock.now();
            let due = self.next_deadline(before).into_iter().chain(ends_at).min();
            let rest = due.map(|due| due.since(before));
            self.poller.wait(rest, &mut ready)?;
            if ready.iter().next().is_some() {
                self.waker.silence();
            }
            let now = self.shared.clock.now();
            while let Some(command) = self.commands.take() {
                match command {
                    Command::End | Command::Drain if ends_at.is_none() => {
                        let owns = self.node.standing(now) != Standing::StandsBy;
                        self.node.end(now);
                        let most = NodeTimes::default().handover + LAST_ANSWER;
                        ends_at = Some(if owns { now + most } else { now });
                    }
                    Command::Reload(config) => {
                        self.worker.reload(&config, &self.waker);
                        if let Some(replica) = &mut self.replica {
                            replica.reload(&config, &self.waker);
                        }
                        self.config = config;
                    }
                    _ => {}
                }
            }
            self.turn(now);
            if ends_at.is_none() {
                self.share.balance(now, &mut self.node);
            }
            if ends_at.is_some_and(|at| at <= now || self.node.is_over()) {
                return Ok(());
            }
            turns += 1;
            busy_ns += self.shared.clock.now().since(now).as_nanos() as u64;
            let asked = self.report.asked();
            self.report
                .answer(asked, &mut answered, || self.numbers(now, turns, busy_ns));
        }
    }

    fn next_deadline(&self, now: Time) -> Option<Time> {
        let of_channels = match self.node.standing(now) {
            Standing::Owns(_) => {
                let due = self.worker.next_deadline();
                due.map(|due| self.node.node_time(due))
            }
            Standing::StandsBy | Standing::Rests(_) => None,
        };
        let of_node = self.node.next_deadline(now);
        [of_channels, of_node].into_iter().flatten().min()
    }

    fn turn(&mut self, now: Time) {
        for event in self.inbox.take() {
            match event {
                BusEvent::Frame(frame) => self.node.on_frame(now, frame),
                BusEvent::Up => self.node.on_up(),
                BusEvent::Down => {}
                BusEvent::Lease(number, answer) => self.node.on_lease(now, number, answer),
            }
            self.work(now);
        }
        self.node.handle_deadline(now);
        self.work(now);
        if matches!(self.node.standing(now), Standing::Owns(_)) {
            let channels_now = self.node.channels_time(now);
            self.settle(now);
            if self.worker.is_due(channels_now) {
                self.node.record_deadline(now);
                self.worker.handle_deadline(channels_now);
            }
            self.settle(now);
            self.pass_on(now);
            let has_owner = self.worker.has_owner();
            self.node.set_has_global_owner(now, has_owner);
            // What the channels have just said is sent with this turn.
            self.node.handle_deadline(now);
            // What that led to is done at the instant with which it is in the log.
            self.work(now);
        }
        while let Some((to, frame)) = self.node.poll_frame() {
            self.bus.publish(self.shard.id, to, frame);
        }
        while let Some(task) = self.node.poll_task() {
            self.bus.ask(self.shard.id, task);
        }
        while let Some(note) = self.node.poll_note() {
            write(self.shard, &note);
        }
        let is_ready = self.node.is_ready(now);
        self.shared.joined.set(self.shard.id.index(), is_ready);
    }

    /// Lets logins be decided.
    fn settle(&mut self, now: Time) {
        let (channels_now, node) = (self.node.channels_time(now), &mut self.node);
        self.worker
            .settle_and_report(channels_now, |ticket, verdict| {
                node.record_verdict(now, ticket, verdict);
            });
    }

    /// Does what the node has for the channels.
    fn work(&mut self, now: Time) {
        while let Some(event) = self.node.poll_event() {
            match event {
                ChannelsEvent::Begin(epoch) => {
                    self.begin_anew();
                    self.worker.begin_in_epoch(epoch);
                }
                ChannelsEvent::End => self.begin_anew(),
                ChannelsEvent::Message(side, message) => {
                    let channels_now = self.node.channels_time(now);
                    self.worker.handle(channels_now, side, message);
                    self.pass_on(now);
                }
                ChannelsEvent::HandOver => {
                    let written = self.write_down(now);
                    self.node.hand_over(now, written);
                }
                ChannelsEvent::BeFollowed => {
                    let written = self.write_down(now);
                    self.node.be_followed(now, written);
                }
                ChannelsEvent::Replay(at, what) => self.replay(at, what),
                ChannelsEvent::Replica(bytes) => self.read_back(now, &bytes),
                ChannelsEvent::Resume(_) => {
                    if let Some(mut replica) = self.replica.take() {
                        // What the settings have become since.
                        replica.reload(&self.config, &self.waker);
                        replica.go_on(self.node.channels_ahead_ns());
                        self.worker = replica;
                    }
                }
            }
        }
    }

    fn begin_anew(&mut self) {
        let clock = self.shared.clock;
        self.worker = ChannelWorker::new(&self.config, self.shard, clock, &self.waker);
        self.replica = None;
    }

    /// Says the last of what the channels have to say, and writes them down for another
    /// node. Providers that have logins in hand are not waited for: that node asks again.
    fn write_down(&mut self, now: Time) -> Option<Vec<u8>> {
        self.settle(now);
        self.pass_on(now);
        self.worker.snapshot()
    }

    /// Has the replica do what the owner has done, and says what it has to say.
    fn replay(&mut self, at: Time, what: Replayed) {
        if let Some(replica) = &mut self.replica {
            replica.replay(at, what);
            while let Some((side, message)) = replica.poll_bus() {
                self.node.on_replica_said(at, side, &message);
            }
        }
    }

    fn read_back(&mut self, now: Time, bytes: &[u8]) {
        let clock = self.shared.clock;
        let read = ChannelWorker::restore(&self.config, self.shard, clock, &self.waker, bytes);
        self.node.on_replica(now, read.is_ok());
        self.replica = match read {
            Ok(replica) => Some(replica),
            Err(error) => {
                write(self.shard, &Note::ReplicaRefused(error.to_string()));
                None
            }
        };
    }

    /// Hands the edges what the channels have for them.
    fn pass_on(&mut self, now: Time) {
        while let Some((side, message)) = self.worker.poll_bus() {
            self.node.send(now, side, &message);
        }
    }

    fn numbers(&self, now: Time, turns: u64, busy_ns: u64) -> Numbers {
        let (counters, lost) = self.node.counters();
        let standing = self.node.standing(now);
        Numbers {
            // One that stands by has none.
            channels: (standing != Standing::StandsBy).then(|| self.worker.report()),
            turns,
            busy_ns,
            routes: Some(RouteNumbers {
                open: self.node.edges() as u64,
                lost,
                counters,
                epoch: match standing {
                    Standing::StandsBy => None,
                    Standing::Owns(epoch) | Standing::Rests(epoch) => Some(epoch),
                },
                shards: 1,
                owned: u64::from(matches!(standing, Standing::Owns(_))),
                standbys: (standing != Standing::StandsBy).then(|| self.node.standbys(now) as u64),
                followed: u64::from(self.node.is_followed()),
                resyncs: self.node.resyncs(),
            }),
            ..Numbers::default()
        }
    }
}
