//! One gateway in several nodes: edges, which own connections, and nodes for channels,
//! which share the channels out among them and stand by for each other's.
//!
//! ```text
//! edge A: connection loops ─┐                      ┌─ owner: a shard's channel manager
//! edge B: connection loops ─┼──── frames, NATS ────┤
//! edge C: connection loops ─┘                      └─ others stand by for the lease
//! ```
//!
//! Everything here is without I/O: [`ShardedEdge`], [`ChannelsNode`] and the [`Lease`] take
//! frames, answers and instants, and give back frames and requests. What carries them is
//! a [`NodeBus`], which may lose, repeat and delay frames, and reorder those of different
//! senders.
//!
//! - **The channels are divided into [shards](crate::core::ShardCount)**, each with an owner of
//!   its own; what follows is of one shard. Nodes that own more than others
//!   [hand some over](ShardShare).
//! - **Who owns the channels** is decided by compare-and-set on one key-value entry. Each
//!   change of owner has a higher epoch, which every frame bears: what is of an older one
//!   is dropped.
//! - **A route** joins one connection loop of an edge with the owner. Its messages are
//!   numbered both ways, sent again until they are acknowledged, and handled in order,
//!   each once.
//! - **What waits for a slow edge is bounded.** Windows that are too old are left out at
//!   the sender and [`Missed`](crate::core::bus::ToConnections::Missed) takes their
//!   place, which leads to a full state; if more waits than that, the route is given up.
//! - **An owner that ends hands the channels over** to a node that stands by: the channel
//!   manager and its ends of all routes, written down. Edges learn from the next owner since
//!   which epoch the channels have not been lost, and keep their routes where that is no
//!   later than theirs.
//! - **An owner that dies is gone on with** by the node that follows it, if one is in sync:
//!   it receives all that the owner does, and what the owner sends waits until it has that.
//! - **A route that is given up is never silent**: the edge closes its connections
//!   ([`ChannelsLost`](crate::core::CloseReason::ChannelsLost)), and for the owner they
//!   have broken off.

mod balance;
mod bus;
mod channels;
mod codec;
mod edge;
mod follow;
mod frame;
mod handover;
mod lease;
mod pending;
mod route;
mod sharded_edge;
mod sides;
mod wire;

pub use balance::{ShardLoad, ShardShare};
pub use bus::{Address, BusEvent, NodeBus, NodeId, Note};
pub use channels::{ChannelsEvent, ChannelsNode, Replayed};
pub use edge::Delivery;
pub use frame::PROTOCOL;
pub use lease::{Lease, LeaseAnswer, LeaseRequest, LeaseTask, Standing};
pub use route::RouteCounters;
pub use sharded_edge::ShardedEdge;

use std::time::Duration;

/// The times by which nodes notice each other's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeTimes {
    /// How long the channels belong to an owner that does not renew its lease. Those that
    /// stand by wait as long before they take over.
    pub lease: Duration,
    /// How often the lease is renewed, or read by those that stand by.
    pub renew: Duration,
    /// A node with nothing to say says so this often.
    pub heartbeat: Duration,
    /// A route on which nothing comes, or nothing is acknowledged, is given up after this.
    pub route_timeout: Duration,
    /// The first time after which what is not acknowledged is sent again; it doubles up
    /// to the heartbeat's fourfold.
    pub resend: Duration,
    /// An owner that ends waits for so long at most until another has its channels.
    pub handover: Duration,
    /// An owner waits for so long for the node that follows it to acknowledge what is done:
    /// then it goes on without.
    pub follow: Duration,
    /// Windows that have waited for so long are left out, for a full state.
    pub window_age: Duration,
}

impl Default for NodeTimes {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(3),
            renew: Duration::from_secs(1),
            heartbeat: Duration::from_millis(500),
            route_timeout: Duration::from_secs(5),
            resend: Duration::from_millis(300),
            handover: Duration::from_secs(3),
            follow: Duration::from_millis(500),
            window_age: Duration::from_secs(1),
        }
    }
}
