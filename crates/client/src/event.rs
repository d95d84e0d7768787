//! What a gateway's messages mean to a peer.

use lagometer_protocol::messages::channeldpb::auth_result_message::AuthResult;
use lagometer_protocol::{Broadcast, FromGateway};

use crate::outbox::{Outbox, Stub};

/// Something a gateway said, borrowing what may be large.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// The gateway has let this session in.
    LoggedIn {
        /// The login it answers.
        stub: Stub,
        /// The session's connection id.
        conn_id: u32,
        /// A server takes up what an earlier connection of its token owned:
        /// [`FromGateway::RecoveryChannelData`] follows for each channel and
        /// [`FromGateway::RecoveryEnd`] at the end, before which it should
        /// send nothing.
        should_recover: bool,
    },
    /// The gateway has not let this session in; it may try again.
    LoginRefused {
        /// The login it answers.
        stub: Stub,
        /// Why it was refused: an invalid player identifier or login token.
        result: AuthResult,
    },
    /// New data of a channel: all of it the first time, afterwards what has
    /// changed.
    Data {
        /// The channel.
        channel_id: u32,
        /// The URL of the data's type.
        type_url: &'a str,
        /// The encoded data.
        value: &'a [u8],
    },
    /// A message of the game's own.
    User {
        /// The channel it was sent in.
        channel_id: u32,
        /// The game's number of the message's type, 100 or more.
        msg_type: u32,
        /// The flags it was sent with.
        broadcast: Broadcast,
        /// The number its sender gave it.
        stub: Stub,
        /// At an owner the client that sent it, at others the addressee the
        /// server named, or 0.
        client_conn_id: u32,
        /// The game's bytes.
        payload: &'a [u8],
    },
    /// Any other message, decoded.
    Message {
        /// The channel it speaks of.
        channel_id: u32,
        /// The request it answers; 0 when it reports what another did.
        stub: Stub,
        /// The decoded message.
        message: FromGateway,
    },
    /// A message that this version does not know, or whose body is none of its
    /// type. The session goes on.
    Unknown {
        /// The channel it speaks of.
        channel_id: u32,
        /// The message's type, as on the wire.
        msg_type: u32,
        /// The message's body, not decoded.
        body: &'a [u8],
    },
}

/// An [`Event`] that owns its contents.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedEvent {
    /// [`Event::LoggedIn`].
    LoggedIn {
        /// The login it answers.
        stub: Stub,
        /// The session's connection id.
        conn_id: u32,
        /// Whether channels of an earlier connection follow.
        should_recover: bool,
    },
    /// [`Event::LoginRefused`].
    LoginRefused {
        /// The login it answers.
        stub: Stub,
        /// Why it was refused: an invalid player identifier or login token.
        result: AuthResult,
    },
    /// [`Event::Data`].
    Data {
        /// The channel.
        channel_id: u32,
        /// The URL of the data's type.
        type_url: String,
        /// The encoded data.
        value: Vec<u8>,
    },
    /// [`Event::User`].
    User {
        /// The channel it was sent in.
        channel_id: u32,
        /// The game's number of the message's type, 100 or more.
        msg_type: u32,
        /// The flags it was sent with.
        broadcast: Broadcast,
        /// The number its sender gave it.
        stub: Stub,
        /// The client that sent it or is addressed, or 0.
        client_conn_id: u32,
        /// The game's bytes.
        payload: Vec<u8>,
    },
    /// [`Event::Message`].
    Message {
        /// The channel it speaks of.
        channel_id: u32,
        /// The request it answers, or 0.
        stub: Stub,
        /// The decoded message.
        message: FromGateway,
    },
    /// [`Event::Unknown`].
    Unknown {
        /// The channel it speaks of.
        channel_id: u32,
        /// The message's type, as on the wire.
        msg_type: u32,
        /// The message's body, not decoded.
        body: Vec<u8>,
    },
}

/// Whoever wants to know what a gateway says.
///
/// Any `FnMut(&mut Outbox, Event<'_>)` is one. What it puts into the outbox
/// goes out with the driver's next write.
pub trait Handler {
    /// Bytes have arrived; what they mean follows, event by event. For whoever
    /// wants to know when: they all came at once.
    fn on_arrival(&mut self) {}

    /// Whether what it puts into its outbox on receiving a message goes out at
    /// once. Otherwise it waits for its driver's next flush, with all else that
    /// there is to say by then.
    fn answers_at_once(&self) -> bool {
        true
    }

    /// The gateway said something.
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>);
}

impl<F: FnMut(&mut Outbox, Event<'_>)> Handler for F {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        self(outbox, event);
    }
}

impl Event<'_> {
    /// The same, with what was borrowed copied.
    #[must_use]
    pub fn into_owned(self) -> OwnedEvent {
        match self {
            Self::LoggedIn {
                stub,
                conn_id,
                should_recover,
            } => OwnedEvent::LoggedIn {
                stub,
                conn_id,
                should_recover,
            },
            Self::LoginRefused { stub, result } => OwnedEvent::LoginRefused { stub, result },
            Self::Data {
                channel_id,
                type_url,
                value,
            } => OwnedEvent::Data {
                channel_id,
                type_url: type_url.to_owned(),
                value: value.to_vec(),
            },
            Self::User {
                channel_id,
                msg_type,
                broadcast,
                stub,
                client_conn_id,
                payload,
            } => OwnedEvent::User {
                channel_id,
                msg_type,
                broadcast,
                stub,
                client_conn_id,
                payload: payload.to_vec(),
            },
            Self::Message {
                channel_id,
                stub,
                message,
            } => OwnedEvent::Message {
                channel_id,
                stub,
                message,
            },
            Self::Unknown {
                channel_id,
                msg_type,
                body,
            } => OwnedEvent::Unknown {
                channel_id,
                msg_type,
                body: body.to_vec(),
            },
        }
    }
}

impl OwnedEvent {
    /// The channel it speaks of; logins speak of GLOBAL.
    #[must_use]
    pub fn channel_id(&self) -> u32 {
        match self {
            Self::LoggedIn { .. } | Self::LoginRefused { .. } => 0,
            Self::Data { channel_id, .. }
            | Self::User { channel_id, .. }
            | Self::Message { channel_id, .. }
            | Self::Unknown { channel_id, .. } => *channel_id,
        }
    }
}
