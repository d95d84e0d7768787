//! What joins nodes, and what they ask of it.

use std::fmt;

use bytes::Bytes;

use crate::core::ShardId;

use super::lease::{LeaseAnswer, LeaseTask};

/// A node, from its start to its end. Drawn at the start: a process that is started again
/// is another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// To every node.
    All,
    /// To one node.
    Node(NodeId),
}

/// What the bus brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent {
    /// Somebody's frame for this node, or for all.
    Frame(Bytes),
    /// The answer to the [`LeaseTask`] with this number. Every task is answered, late
    /// ones with [`LeaseAnswer::Failed`].
    Lease(u64, LeaseAnswer),
    /// The bus is there, for the first time or again.
    Up,
    /// The bus is not there. What is sent meanwhile is lost.
    Down,
}

/// What carries frames between nodes. It may lose, repeat and delay them, and reorder
/// those of different senders; those of one sender to one address come in order, but for
/// those that are lost.
///
/// What is of one shard never comes to another.
pub trait NodeBus: fmt::Debug + Send + Sync {
    /// Sends a frame of a shard, or drops it: never waits.
    fn publish(&self, shard: ShardId, to: Address, frame: Bytes);

    /// Has something done with the entry of a shard's lease; the answer comes as
    /// [`BusEvent::Lease`].
    fn ask(&self, shard: ShardId, task: LeaseTask);
}

/// What a node has to say in its log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// No message of an owner was received.
    #[error("no node owns the channels yet; waiting for one: `lagometer gateway --role channels`")]
    NoOwner,
    /// A route to an owner stands.
    #[error("joined the channels of node {node} in epoch {epoch}")]
    Joined {
        /// The owner.
        node: NodeId,
        /// Its epoch.
        epoch: u64,
    },
    /// A route was given up.
    #[error("lost the channels: {why}; everyone of loop {number} is asked to connect again")]
    Lost {
        /// Which connection loop of the edge.
        number: u16,
        /// Why.
        why: &'static str,
    },
    /// This node owns the channels.
    #[error("owns the channels in epoch {0}")]
    Owner(u64),
    /// This node does not, any more.
    #[error("no longer owns the channels: {0}")]
    OwnerNoMore(&'static str),
    /// This node goes on with the channels of another, which has ended.
    #[error("goes on with the channels of node {0}")]
    Resumed(NodeId),
    /// This node ends, and another has its channels.
    #[error("handed the channels over to node {node}, in {bytes} bytes")]
    HandedOver {
        /// The node that goes on.
        node: NodeId,
        /// How much crossed, bytes.
        bytes: usize,
    },
    /// This node was to hand its channels over to one that has fewer, and keeps them.
    #[error("keeps the channels, for another node did not take them: {0}")]
    NotYielded(&'static str),
    /// This node ends, and its channels with it unless another node follows it.
    #[error("the channels were not handed over, and end with this node if none follows it: {0}")]
    NotHandedOver(&'static str),
    /// The channels that another node handed over cannot be used.
    #[error("the channels that another node handed over are passed over: {0}")]
    ReplicaRefused(String),
    /// A node that stands by has all that this one has, and goes on should this one die.
    #[error("node {0} follows: it goes on with the channels should this one die")]
    Followed(NodeId),
    /// It does not any more.
    #[error("node {node} follows no longer: {why}")]
    FollowerLost {
        /// The node.
        node: NodeId,
        /// Why.
        why: &'static str,
    },
    /// The channels cannot be written for a node that stands by.
    #[error("no node can follow: the channels cannot be written, or there is too much of them")]
    NotFollowed,
    /// Another node has the channels from now on, with all that is in them.
    #[error("node {node} goes on with the channels, in epoch {epoch}")]
    GoesOnAt {
        /// The owner.
        node: NodeId,
        /// Its epoch.
        epoch: u64,
    },
    /// The lease could not be renewed in time; nobody has taken it yet.
    #[error("the lease was not renewed in time: the channels rest until it is")]
    Resting,
    /// It was renewed after all.
    #[error("the lease is renewed: the channels go on")]
    GoesOn,
    /// The lease's entry cannot be read or written.
    #[error("the lease: {0}")]
    LeaseFailed(String),
    /// An edge joined.
    #[error("edge {edge} joined with loop {number}")]
    EdgeJoined {
        /// The edge.
        edge: NodeId,
        /// Which of its connection loops.
        number: u16,
    },
    /// An edge's route was given up.
    #[error(
        "edge {edge} lost with loop {number}: {why}; its {connections} connections have broken off"
    )]
    EdgeLost {
        /// The edge.
        edge: NodeId,
        /// Which of its connection loops.
        number: u16,
        /// Why.
        why: &'static str,
        /// How many had attempted to log in.
        connections: usize,
    },
    /// A peer speaks another version.
    #[error(
        "a node speaks version {theirs} of the protocol between nodes, this one {ours}: refused; \
         start the same lagometer on all nodes, or another --nats-prefix"
    )]
    OtherProtocol {
        /// The peer's.
        theirs: u16,
        /// Its own.
        ours: u16,
    },
}
