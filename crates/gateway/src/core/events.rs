//! What the core has to say to whoever keeps the log.

use std::collections::VecDeque;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::bus::CloseReason;
use super::ids::{ChannelId, ConnId, Peer};
use super::settings::channel_type_name;

/// Something worth a line in a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Event {
    /// A connection was opened.
    #[error("a {peer} connected{}", from(*.address))]
    Opened {
        /// The kind of peer, by the listener that accepted it.
        peer: Peer,
        /// The peer's IP address; `None` where it is not known.
        address: Option<IpAddr>,
    },
    /// A connection was let in.
    #[error("{id} is player {player:?}{}", if *.recovers { ", who came back" } else { "" })]
    Admitted {
        /// The connection.
        id: ConnId,
        /// The player's identifier ("PIT").
        player: String,
        /// It takes up what it had before it broke off.
        recovers: bool,
    },
    /// A login was refused. One line a second at most.
    #[error("login of player {player:?} refused{}", more(*.suppressed))]
    LoginRefused {
        /// The player's identifier ("PIT") in the login.
        player: String,
        /// Logins refused since the last line that were not logged.
        suppressed: u64,
    },
    /// A connection was closed.
    #[error("a {peer} is gone ({}): {why}", .id.map_or("never let in".to_owned(), |id| id.to_string()))]
    Closed {
        /// The connection, if it had a number.
        id: Option<ConnId>,
        /// The kind of peer, by the listener that accepted it.
        peer: Peer,
        /// The reason that the connection was closed for.
        why: CloseReason,
    },
    /// An address was banned.
    #[error("{0} is banned")]
    AddressBanned(IpAddr),
    /// A player was banned.
    #[error("player {0:?} is banned")]
    PlayerBanned(String),
    /// A channel was made.
    #[error("{channel} of type {} is made", channel_type_name(*.channel_type))]
    ChannelMade {
        /// The channel.
        channel: ChannelId,
        /// The number of its type.
        channel_type: i32,
    },
    /// A channel was removed.
    #[error("{0} is removed")]
    ChannelRemoved(ChannelId),
    /// A channel lost its owner.
    #[error("{channel} has lost its owner, {owner}")]
    OwnerLost {
        /// The channel.
        channel: ChannelId,
        /// The connection that owned it.
        owner: ConnId,
    },
    /// A message was dropped.
    #[error("message of type {msg_type} from {from} to {channel} dropped: {why}")]
    Dropped {
        /// The sender.
        from: ConnId,
        /// The channel it was for.
        channel: ChannelId,
        /// The message's type, as on the wire.
        msg_type: u32,
        /// The rule it broke.
        why: &'static str,
    },
    /// A message, or a single field or entry of a channel's data, was too long
    /// to be sent.
    #[error("{size_bytes} bytes of {channel} that cannot be cut not sent: longer than a frame")]
    TooLong {
        /// The channel.
        channel: ChannelId,
        /// The size of the message, field or entry.
        size_bytes: usize,
    },
    /// A message was dropped because its sender's state does not allow it.
    #[error(
        "message of type {msg_type} of a {peer} ({}) dropped: its state does not allow it",
        .id.map_or("not let in".to_owned(), |id| id.to_string())
    )]
    Refused {
        /// The sender, if it had logged in and so has an identifier.
        id: Option<ConnId>,
        /// The kind of peer, by the listener that accepted it.
        peer: Peer,
        /// The message's type, as on the wire.
        msg_type: u32,
    },
    /// A peer asked for more than a budget allows. One line of each budget a
    /// second at most, for each part of the gateway that enforces it.
    #[error(
        "{peer} {} is over its budget of {budget}{}",
        .id.map_or("connection before login".to_owned(), |id| id.to_string()),
        more(*.suppressed)
    )]
    OverBudget {
        /// The connection, if it has logged in.
        id: Option<ConnId>,
        /// The kind of peer, by the listener that accepted it.
        peer: Peer,
        /// The budget that was exceeded.
        budget: Budget,
        /// How often this budget was exceeded since its last line, by anybody.
        suppressed: u64,
    },
    /// A slow reader's updates are merged from now on.
    #[error("{0} reads slowly: its updates are merged")]
    SlowReader(ConnId),
    /// An entity went from one spatial channel to another.
    #[error("entity {} went from {from} to {to}", .entity.0)]
    HandedOver {
        /// The entity's channel.
        entity: ChannelId,
        /// The spatial channel that it left.
        from: ChannelId,
        /// The spatial channel that it is in now.
        to: ChannelId,
    },
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Of interest when looking for a mistake.
    Debug,
    /// The ordinary course of things.
    Info,
    /// Somebody made a mistake, or is slow.
    Warning,
}

impl Event {
    /// How much it matters.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::Opened { .. }
            | Self::HandedOver { .. }
            | Self::Dropped { .. }
            | Self::Refused { .. }
            // Who was never let in may come and go a thousand times a second.
            | Self::Closed { id: None, .. } => Severity::Debug,
            Self::Admitted { .. }
            | Self::Closed { .. }
            | Self::ChannelMade { .. }
            | Self::ChannelRemoved(_) => Severity::Info,
            Self::LoginRefused { .. }
            | Self::AddressBanned(_)
            | Self::PlayerBanned(_)
            | Self::OwnerLost { .. }
            | Self::TooLong { .. }
            | Self::OverBudget { .. }
            | Self::SlowReader(_) => Severity::Warning,
        }
    }
}

fn from(address: Option<IpAddr>) -> String {
    address.map_or(String::new(), |address| format!(" from {address}"))
}

fn more(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(" ({count} more in between)"),
    }
}

/// Events waiting to be read; bounded, for nobody may be reading.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Events {
    /// Not saved: whoever saves has read them.
    #[serde(skip)]
    waiting: VecDeque<Event>,
    lost: u64,
}

impl Events {
    const LIMIT: usize = 4096;

    pub(super) fn push(&mut self, event: Event) {
        if self.waiting.len() < Self::LIMIT {
            self.waiting.push_back(event);
        } else {
            self.lost += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }

    /// Events that found no room.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}
