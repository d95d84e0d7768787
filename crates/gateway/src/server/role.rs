//! What of a gateway a process is, and what each has between its connection loops and the
//! channels.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use rustix::io::Errno;

use crate::core::{Shard, ShardCount, ShardMap, SideId};
use crate::nodes::{ChannelsNode, NodeBus, NodeId, NodeTimes, ShardLoad, ShardShare, ShardedEdge};

use super::ServerError;
use super::bus_adapter::{BusAdapter, Mail};
use super::channel_loop::{ChannelLoop, Mailboxes};
use super::channel_worker::ChannelWorker;
use super::command::Commands;
use super::config::Config;
use super::edge_loop::EdgeLoop;
use super::mailbox::{Exchange, Queue};
use super::node_inbox::NodeInbox;
use super::node_loop::NodeLoop;
use super::poller::Waker;
use super::randomness::unforeseeable;
use super::report::Report;
use super::shared::Shared;
use super::start::Ends;

/// What of a gateway a process is.
#[derive(Debug)]
pub enum Role {
    /// All of it.
    All,
    /// Connections, joined with channels on another node.
    Edge(Join),
    /// Channels, for connections on other nodes.
    Channels(Join),
}

impl Role {
    /// How many threads join a node with the others; none where one process is all.
    pub(super) fn middles(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Edge(_) => 1,
            Self::Channels(join) => usize::from(join.shards.get()),
        }
    }
}

/// Makes what joins a node with the others.
pub struct Join {
    shards: ShardCount,
    make: Box<MakesBus>,
}

/// Begins to bring what is for a node's shards into their inboxes; says why if it cannot.
type MakesBus = dyn FnOnce(NodeId, Vec<NodeInbox>) -> Result<Arc<dyn NodeBus>, String> + Send;

/// The node's name, the inbox of each of its shards, and the bus.
type Joined = (NodeId, Vec<NodeInbox>, Arc<dyn NodeBus>);

impl Join {
    /// What joins a node with the others, made once the node has a name and an inbox for
    /// each of so many shards. All nodes of a gateway have as many.
    #[must_use]
    pub fn new(
        shards: ShardCount,
        make: impl FnOnce(NodeId, Vec<NodeInbox>) -> Result<Arc<dyn NodeBus>, String> + Send + 'static,
    ) -> Self {
        let make = Box::new(make);
        Self { shards, make }
    }

    /// Joins a node whose shards are woken so.
    fn join<'a>(self, wakers: impl Iterator<Item = &'a Waker>) -> Result<Joined, ServerError> {
        let node = NodeId(u64::from_le_bytes(unforeseeable()));
        let inboxes: Vec<NodeInbox> = wakers.map(|waker| NodeInbox::new(waker.clone())).collect();
        let bus = (self.make)(node, inboxes.clone()).map_err(ServerError::Join)?;
        Ok((node, inboxes, bus))
    }
}

impl fmt::Debug for Join {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Join")
    }
}

/// A thread between connections and channels, or of channels.
pub(super) enum Middle {
    Channels(Box<ChannelLoop>),
    Edge(Box<EdgeLoop>),
    Node(Box<NodeLoop>),
}

impl Middle {
    /// The thread's name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Channels(_) => "channels".to_owned(),
            Self::Node(it) if it.shard.is_whole() => "channels".to_owned(),
            Self::Node(it) => format!("channels-{}", it.shard.id.0),
            Self::Edge(_) => "edge".to_owned(),
        }
    }

    pub(super) fn commands(&self) -> &Arc<Commands> {
        match self {
            Self::Channels(it) => &it.commands,
            Self::Edge(it) => &it.commands,
            Self::Node(it) => &it.commands,
        }
    }

    pub(super) fn report(&self) -> &Arc<Report> {
        match self {
            Self::Channels(it) => &it.report,
            Self::Edge(it) => &it.report,
            Self::Node(it) => &it.report,
        }
    }

    pub(super) fn run(self) -> Result<(), Errno> {
        match self {
            Self::Channels(it) => it.run(),
            Self::Edge(it) => it.run(),
            Self::Node(it) => it.run(),
        }
    }
}

/// Each connection loop's way to the channels, and the threads they lead to, unless there
/// is a single loop for all.
pub(super) fn middle(
    role: Role,
    config: &Arc<Config>,
    shared: &Arc<Shared>,
    ends: &[Ends],
) -> Result<(Vec<BusAdapter>, Vec<Middle>), ServerError> {
    if let Role::Channels(join) = role {
        return Ok((Vec::new(), of_channels(join, config, shared)?));
    }
    if matches!(role, Role::All) && config.threads.connections == 0 {
        let worker = ChannelWorker::new(config, Shard::WHOLE, shared.clock, &ends[0].waker);
        return Ok((vec![BusAdapter::Here(Box::new(worker), 0)], Vec::new()));
    }
    let own = Ends::new()?;
    let inbox = Arc::new(Queue::new(config.threads.queue, own.waker.clone()));
    let (mut adapters, mut outboxes) = (Vec::new(), Vec::new());
    for (number, ends) in ends.iter().enumerate() {
        let from_channels = Arc::new(Queue::new(config.threads.queue, ends.waker.clone()));
        outboxes.push(Arc::clone(&from_channels));
        adapters.push(BusAdapter::There(Mail {
            side: SideId(number as u16),
            to_channels: Arc::clone(&inbox),
            from_channels,
            unsent: VecDeque::new(),
            waker: ends.waker.clone(),
            taken: VecDeque::new(),
            probe_returned: 0,
        }));
    }
    let exchange = Exchange::new(inbox, outboxes, own.waker.clone());
    let middle = if let Role::Edge(join) = role {
        let loops = ends.len() as u16;
        Middle::Edge(Box::new(of_edge(
            join, config, shared, exchange, own, loops,
        )?))
    } else {
        Middle::Channels(Box::new(ChannelLoop {
            worker: ChannelWorker::new(config, Shard::WHOLE, shared.clock, &own.waker),
            poller: own.poller,
            exchange,
            waker: own.waker,
            shared: Arc::clone(shared),
            commands: own.commands,
            report: own.report,
        }))
    };
    Ok((adapters, vec![middle]))
}

/// What joins an edge's connection loops with the channels of all shards.
fn of_edge(
    join: Join,
    config: &Config,
    shared: &Arc<Shared>,
    exchange: Mailboxes,
    own: Ends,
    loops: u16,
) -> Result<EdgeLoop, ServerError> {
    let map = ShardMap {
        count: join.shards,
        ..config.channels.shard_map()
    };
    let (node, inboxes, bus) = join.join(map.count.all().map(|_| &own.waker))?;
    let (now, times) = (shared.clock.now(), NodeTimes::default());
    Ok(EdgeLoop {
        node: ShardedEdge::new(now, node, loops, times, map),
        count: map.count,
        bus,
        inboxes,
        exchange,
        poller: own.poller,
        waker: own.waker,
        shared: Arc::clone(shared),
        commands: own.commands,
        report: own.report,
    })
}

/// A thread for each shard, which owns it while it has its lease.
fn of_channels(
    join: Join,
    config: &Arc<Config>,
    shared: &Arc<Shared>,
) -> Result<Vec<Middle>, ServerError> {
    let count = join.shards;
    let ends = count.all().map(|_| Ends::new());
    let ends = ends.collect::<Result<Vec<_>, _>>()?;
    let (node, inboxes, bus) = join.join(ends.iter().map(|ends| &ends.waker))?;
    let (now, times) = (shared.clock.now(), NodeTimes::default());
    let load = Arc::new(ShardLoad::default());
    let shards = count.all().zip(inboxes).zip(ends);
    let nodes = shards.map(|((id, inbox), own)| {
        let of_node = Shard { id, count };
        Middle::Node(Box::new(NodeLoop {
            node: ChannelsNode::new(now, node, times),
            worker: ChannelWorker::new(config, of_node, shared.clock, &own.waker),
            replica: None,
            config: Arc::clone(config),
            shard: of_node,
            share: ShardShare::new(Arc::clone(&load)),
            bus: Arc::clone(&bus),
            inbox,
            poller: own.poller,
            waker: own.waker,
            shared: Arc::clone(shared),
            commands: own.commands,
            report: own.report,
        }))
    });
    Ok(nodes.collect())
}
