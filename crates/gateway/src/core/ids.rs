//! The names by which the halves of the gateway speak of things.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use lagometer_limits::source_prefix;

/// A connection's number on the wire, 1 and up; servers and clients share one
/// range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConnId(pub u32);

/// A channel's number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChannelId(pub u32);

impl ChannelId {
    /// The channel that always is.
    pub const GLOBAL: Self = Self(0);
}

/// One connection manager; the channel manager numbers its answers with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SideId(pub u16);

/// A connection on one connection manager, from its opening to its closing. Never
/// used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConnKey {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl ConnKey {
    /// The place of the connection among those of its side: small, and used
    /// again after it has closed. Fit to index a table of sockets.
    #[must_use]
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Subscribers of one channel who get the same windows at the same times. The
/// number is used again once the group is dissolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupId(pub u32);

/// Which listener a connection came in on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Peer {
    /// The one for game servers.
    Server,
    /// The one for game clients.
    Client,
}

impl Peer {
    /// Both, in the order of their [`index`](Self::index).
    pub const ALL: [Self; 2] = [Self::Server, Self::Client];

    /// The number on the wire.
    #[must_use]
    pub fn wire(self) -> i32 {
        match self {
            Self::Server => 1,
            Self::Client => 2,
        }
    }

    /// A place in an array of two.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The label that metrics bear.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Server => "SERVER",
            Self::Client => "CLIENT",
        }
    }
}

impl fmt::Display for ConnId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "connection {}", self.0)
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "channel {}", self.0)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}
