//! What goes between the connection managers and the channel manager.
//!
//! The bus is narrow on purpose. Everything on it is owned data; neither side
//! assumes that it shares memory, a clock or a process with the other. What it
//! asks of whoever carries it is this: between one connection manager and the
//! channel manager messages arrive in the order they were sent, each once.
//!
//! A channel's window crosses it once for every connection manager that has
//! subscribers in the group concerned, however many they are. The side knows
//! the group's members ([`ToConnections::Join`], [`ToConnections::Leave`]) and
//! cuts out of the window what a member sent itself.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lagometer_protocol::merge::MergeOptions;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

mod checked;
mod payload;

use super::budget::Budget;
use super::ids::{ChannelId, ConnId, ConnKey, GroupId, Peer};
use super::shards::ShardId;

pub use checked::{CheckedEnvelope, CheckedMessages};

/// From a connection manager to the channel manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToChannels {
    /// A connection wants to be let in.
    Auth(AuthAttempt),
    /// What a packet of a connection that was let in holds, as far as its state
    /// machine allows it.
    Messages {
        /// Who sent them.
        from: ConnId,
        /// The messages.
        messages: CheckedMessages,
    },
    /// To a shard that is not home: a connection that was let in there. Answered with
    /// [`ToConnections::Known`].
    Admitted(AdmittedConnection),
    /// To all shards: each knows of a connection that was let in, and it has its answer.
    Introduced {
        /// The connection.
        key: ConnKey,
    },
    /// What another shard has for this one, as it was handed to this connection manager by
    /// [`ToConnections::Relay`].
    Relayed {
        /// Which one.
        from: ShardId,
        /// To be read by the shard.
        frame: Bytes,
    },
    /// The way to this connection manager is lost: it takes part no longer. Comes after
    /// [`Closed`](Self::Closed) of all its connections.
    RouteLost,
    /// To a shard that is not home: who owns GLOBAL, as home has said.
    GlobalOwner {
        /// The owner, if there is one.
        owner: Option<ConnId>,
        /// By which the newest is known.
        version: HomeVersion,
    },
    /// A connection that attempted to be let in when its address might have been
    /// another's was shown to be there.
    AddressProven {
        /// Which one.
        key: ConnKey,
    },
    /// A connection is gone. Comes once for each that attempted to be let in.
    Closed {
        /// Which one.
        key: ConnKey,
        /// It broke off rather than being asked to go: a server may come back
        /// and recover.
        broke_off: bool,
    },
    /// A client misbehaved.
    Misbehaved(Misbehaviour),
    /// What a client caused waits for a server that cannot keep up: the client
    /// is not to be read for a while.
    Congested {
        /// The client.
        sender: ConnId,
        /// The server.
        receiver: ConnId,
        /// How long the client is not to be read.
        pause: Duration,
    },
    /// The pause of a client of this connection manager has ended: is the server still
    /// congested with what the client caused? Answered with
    /// [`ToConnections::Pause`] or [`ToConnections::Resume`].
    AskCongestion {
        /// The client.
        sender: ConnId,
        /// The server.
        receiver: ConnId,
    },
    /// The answer of the server's side where it is not.
    Relieved {
        /// The client.
        sender: ConnId,
        /// The server.
        receiver: ConnId,
    },
    /// What a client has caused was not queued for a server, for which too much
    /// waits already.
    Undelivered {
        /// The client.
        sender: ConnId,
        /// How many bytes it was.
        bytes: usize,
        /// It was no message of the game but a notice of what came of the
        /// client's request, without which the server knows the client wrongly.
        is_notice: bool,
    },
    /// What a slow reader had not read of a channel grew too large to be
    /// merged: it needs all of the channel's data again.
    Resync {
        /// The reader.
        id: ConnId,
        /// The channel.
        channel: ChannelId,
    },
}

/// Which of home's decisions is meant, of those that edges make known to other shards: later
/// ones are greater. Edges may make them known out of turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HomeVersion {
    /// The epoch of the node that has home.
    pub epoch: u64,
    /// How many there were before, in this epoch and the earlier ones that it goes on with.
    pub number: u64,
}

/// What a client did that counts against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It did not log in in time.
    NoLogin {
        /// Where it comes from.
        address: IpAddr,
    },
    /// It was let in, and sent too many messages that its state does not allow.
    Refused {
        /// Who it is.
        player: String,
        /// Where it comes from, if that has an address.
        address: Option<IpAddr>,
    },
}

/// A connection's attempt to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthAttempt {
    /// The connection on its side.
    pub key: ConnKey,
    /// Which listener it came in on.
    pub peer: Peer,
    /// Where it comes from, if that has an address.
    pub address: Option<IpAddr>,
    /// The address may be another's, as that of a datagram may: a failure
    /// bars nobody.
    pub is_address_forgeable: bool,
    /// To be returned with the answer.
    pub stub_id: u32,
    /// To be returned with the answer.
    pub broadcast: u32,
    /// Who the player says it is ("PIT").
    pub player: String,
    /// What is to prove it ("LT").
    pub login_token: String,
}

/// A connection that home has let in, as its edge makes it known to the other shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedConnection {
    /// The connection on its side.
    pub key: ConnKey,
    /// The number that home gave it.
    pub id: ConnId,
    /// Which listener it came in on.
    pub peer: Peer,
    /// Where it comes from, if that has an address.
    pub address: Option<IpAddr>,
    /// The address may be another's.
    pub is_address_forgeable: bool,
    /// Who it logged in as.
    pub player: String,
    /// By which it is known who had the number last.
    pub version: HomeVersion,
    /// A server has come back for what it left under that number.
    pub recovers: bool,
}

/// From the channel manager to one connection manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToConnections {
    /// The answer to an [`AuthAttempt`].
    AuthAnswer {
        /// Who asked.
        key: ConnKey,
        /// Its number from now on.
        id: ConnId,
        /// Whether it is let in.
        admitted: bool,
        /// The player it is, for bans.
        player: String,
        /// The answer, encoded as one of a packet's messages.
        message: Bytes,
        /// Of this decision, where there are several shards.
        number: u64,
        /// A server has come back for what it left.
        recovers: bool,
    },
    /// A shard that is not home knows of a connection that was let in there.
    Known {
        /// The connection.
        key: ConnKey,
    },
    /// Home, of several shards: who owns GLOBAL. The edge makes it known to the others.
    GlobalOwner {
        /// The owner, if there is one.
        owner: Option<ConnId>,
        /// Of this decision.
        number: u64,
    },
    /// One of several shards: to be handed to another as [`ToChannels::Relayed`].
    Relay {
        /// Which one.
        to: ShardId,
        /// To be read by that shard.
        frame: Bytes,
    },
    /// One of several shards: its part of the channels that a connection asked for. The edge
    /// puts the answer together once it has all parts.
    ListPart {
        /// Who asked.
        to: ConnId,
        /// An encoded `ListChannelResultMessage`, of any length; none where the shard refused
        /// to answer.
        channels: Option<Bytes>,
    },
    /// One message for one connection, encoded as one of a packet's messages.
    Send {
        /// The recipient.
        to: ConnId,
        /// The message.
        message: Bytes,
    },
    /// One message for a server that a client has caused: its own, passed on, or
    /// a notice of what came of its request.
    Forward {
        /// The client.
        cause: ConnId,
        /// Where it comes from, if that has an address, as
        /// [`source_prefix`](super::source_prefix) gives it.
        source_prefix: Option<IpAddr>,
        /// The recipient.
        to: ConnId,
        /// The message.
        message: Bytes,
    },
    /// A client is not to be read for a while: what it caused waits for a server
    /// that cannot keep up.
    Pause {
        /// The client.
        id: ConnId,
        /// The server.
        receiver: ConnId,
        /// How long.
        pause: Duration,
    },
    /// Is a server of this connection manager still congested with what a client caused?
    /// Answered with [`ToChannels::Congested`] or [`ToChannels::Relieved`].
    AskCongestion {
        /// The client.
        sender: ConnId,
        /// The server.
        receiver: ConnId,
    },
    /// A client is no longer paused for a server's sake.
    Resume {
        /// The client.
        id: ConnId,
        /// The server.
        receiver: ConnId,
    },
    /// One message for several.
    SendMany {
        /// The recipients, in order.
        to: Arc<[ConnId]>,
        /// The message.
        message: Bytes,
    },
    /// All of a channel's data. What a recipient has not been sent yet of the
    /// channel is thereby out of date.
    State {
        /// The recipients, in order.
        to: Arc<[ConnId]>,
        /// The channel.
        channel: ChannelId,
        /// The messages that together are the state, each encoded as one of a
        /// packet's.
        messages: Vec<Bytes>,
    },
    /// A subscriber gets the windows of a group from now on.
    Join {
        /// The group.
        group: GroupId,
        /// Its channel.
        channel: ChannelId,
        /// The subscriber.
        member: Member,
    },
    /// … and from now on no longer.
    Leave {
        /// The group.
        group: GroupId,
        /// The subscriber.
        id: ConnId,
    },
    /// A subscription has ended: what was not sent yet of the channel's data
    /// is not to be sent.
    Forget {
        /// Who was subscribed.
        id: ConnId,
        /// To which channel.
        channel: ChannelId,
    },
    /// What happened in a channel.
    Window(Window),
    /// Windows for these were left out on the way, for they were too old: each needs all
    /// of the channel's data again.
    Missed {
        /// Who would have got them.
        to: Recipients,
        /// The channel.
        channel: ChannelId,
    },
    /// A connection is to be closed once what was sent to it is written.
    Close {
        /// The connection.
        key: ConnKey,
        /// Why.
        why: CloseReason,
    },
    /// No client from this address is to be accepted for a time.
    Ban {
        /// The address, as [`source_prefix`](super::source_prefix) gives it.
        address: IpAddr,
        /// Until when.
        until: Time,
    },
}

/// A subscriber in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The subscriber.
    pub id: ConnId,
    /// It does not want its own updates back.
    pub skip_self: bool,
}

/// The updates of one window of time, merged and encoded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Who gets it.
    pub to: Recipients,
    /// The channel.
    pub channel: ChannelId,
    /// The URL of the data's type.
    pub type_url: Arc<str>,
    /// The channel's merge options, for whoever cannot send it at once.
    pub merge_options: Option<MergeOptions>,
    /// The encoded data.
    pub value: Bytes,
    /// What each sender sent, in order of the senders.
    pub own: Arc<[Own]>,
    /// Members that get another window in its place if they do not want their
    /// own updates, in order: they and others changed the same thing, so that
    /// theirs cannot be cut out.
    pub except: Arc<[ConnId]>,
}

/// Who gets a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// All members of a group.
    Group(GroupId),
    /// These, in order.
    These(Arc<[Member]>),
}

/// A sender's own part of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// The sender.
    pub id: ConnId,
    /// Which bytes of the value are its own.
    pub range: Range<usize>,
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum CloseReason {
    /// The peer went.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// The transport failed.
    #[error("the transport failed")]
    TransportFailed,
    /// The bytes were no frames, or a frame was no packet.
    #[error("the bytes are not the protocol's")]
    BadBytes,
    /// AUTH went to another channel than GLOBAL.
    #[error("AUTH to another channel than GLOBAL")]
    BadAuth,
    /// The player or the address is banned.
    #[error("banned")]
    Banned,
    /// It was not let in in time.
    #[error("not let in in time")]
    AuthTimeout,
    /// It sent too many messages that its state does not allow.
    #[error("too many messages that its state does not allow")]
    TooManyRefused,
    /// It asked for more than a budget allows.
    #[error("over its budget of {0}")]
    OverBudget(Budget),
    /// Another needed its place before it had logged in.
    #[error("another needed its place before it had logged in")]
    Evicted,
    /// It said nothing for too long.
    #[error("silent for too long")]
    Silent,
    /// It read too slowly: more waited for it than is allowed.
    #[error("a slow reader: too much waits for it")]
    TooMuchWaiting,
    /// It read nothing for too long while something waited for it.
    #[error("a slow reader: it has read nothing for too long")]
    NotReading,
    /// Another asked for it with DISCONNECT.
    #[error("disconnected by a server")]
    Disconnected,
    /// It asked for its own end with DISCONNECT. To channeld that is a breaking
    /// off: where servers may come back, such a one may too.
    #[error("it disconnected itself")]
    LeftByItself,
    /// The authentication provider failed.
    #[error("the authentication provider failed")]
    ProviderFailed,
    /// All connection numbers are taken.
    #[error("all connection numbers are taken")]
    NoNumberLeft,
    /// The gateway is shutting down.
    #[error("the gateway is shutting down")]
    Shutdown,
    /// The channels are on another node, and what they held of the connection is lost.
    #[error("the node with the channels was lost: connect again")]
    ChannelsLost,
}

impl CloseReason {
    /// Whether the connection broke off rather than being asked to go: what
    /// makes a server's return a recovery.
    #[must_use]
    pub fn broke_off(self) -> bool {
        !matches!(self, Self::Disconnected | Self::Banned | Self::Shutdown)
    }
}
