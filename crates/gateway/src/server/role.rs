//! What of a gateway a process is, and what each has between its connection loops and the
//! channels.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use rustix::io::Errno;

use crate::core::SideId;
use crate::nodes::{ChannelsNode, EdgeNode, NodeBus, NodeId, NodeTimes};

use super::ServerError;
use super::bus_adapter::{BusAdapter, Mail};
use super::channel_loop::ChannelLoop;
use super::channel_worker::ChannelWorker;
use super::command::Commands;
use super::config::Config;
use super::edge_loop::EdgeLoop;
use super::mailbox::{Exchange, Queue};
use super::node_inbox::NodeInbox;
use super::node_loop::NodeLoop;
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

/// Makes what joins a node with the others.
pub struct Join(Box<MakesBus>);

/// Begins to bring what is for a node into its inbox; says why if it cannot.
type MakesBus = dyn FnOnce(NodeId, NodeInbox) -> Result<Box<dyn NodeBus>, String> + Send;

impl Join {
    /// What joins a node with the others, made once the node has a name.
    #[must_use]
    pub fn new(
        make: impl FnOnce(NodeId, NodeInbox) -> Result<Box<dyn NodeBus>, String> + Send + 'static,
    ) -> Self {
        Self(Box::new(make))
    }

    /// Joins a node that is woken by its ends.
    fn join(self, ends: &Ends) -> Result<(NodeId, NodeInbox, Box<dyn NodeBus>), ServerError> {
        let node = NodeId(u64::from_le_bytes(unforeseeable()));
        let inbox = NodeInbox::new(ends.waker.clone());
        let bus = (self.0)(node, inbox.clone()).map_err(ServerError::Join)?;
        Ok((node, inbox, bus))
    }
}

impl fmt::Debug for Join {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Join")
    }
}

/// The thread between connections and channels, or of the channels.
pub(super) enum Middle {
    Channels(Box<ChannelLoop>),
    Edge(Box<EdgeLoop>),
    Node(Box<NodeLoop>),
}

impl Middle {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Channels(_) | Self::Node(_) => "channels",
            Self::Edge(_) => "edge",
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

/// Each connection loop's way to the channels, and the thread they lead to, unless there
/// is a single loop for all.
pub(super) fn middle(
    role: Role,
    config: &Arc<Config>,
    shared: &Arc<Shared>,
    ends: &[Ends],
) -> Result<(Vec<BusAdapter>, Option<Middle>), ServerError> {
    if matches!(role, Role::All) && config.threads.connections == 0 {
        let worker = ChannelWorker::new(config, shared.clock, &ends[0].waker);
        return Ok((vec![BusAdapter::Here(Box::new(worker), 0)], None));
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
    let (now, times) = (shared.clock.now(), NodeTimes::default());
    let middle = match role {
        Role::All => Middle::Channels(Box::new(ChannelLoop {
            worker: ChannelWorker::new(config, shared.clock, &own.waker),
            poller: own.poller,
            exchange,
            waker: own.waker,
            shared: Arc::clone(shared),
            commands: own.commands,
            report: own.report,
        })),
        Role::Edge(join) => {
            let (node, inbox, bus) = join.join(&own)?;
            Middle::Edge(Box::new(EdgeLoop {
                node: EdgeNode::new(now, node, ends.len() as u16, times),
                bus,
                inbox,
                exchange,
                poller: own.poller,
                waker: own.waker,
                shared: Arc::clone(shared),
                commands: own.commands,
                report: own.report,
            }))
        }
        Role::Channels(join) => {
            let (node, inbox, bus) = join.join(&own)?;
            Middle::Node(Box::new(NodeLoop {
                node: ChannelsNode::new(now, node, times),
                worker: ChannelWorker::new(config, shared.clock, &own.waker),
                replica: None,
                config: Arc::clone(config),
                bus,
                inbox,
                poller: own.poller,
                waker: own.waker,
                shared: Arc::clone(shared),
                commands: own.commands,
                report: own.report,
            }))
        }
    };
    Ok((adapters, Some(middle)))
}
