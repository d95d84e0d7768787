//! Several streams of messages with promises of their own on one connection: what a
//! game asks for, and what a transport has for it.

use std::fmt;

/// What is promised of one message, whatever the others of its connection want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Sent once. For state, of which the next message has a newer one.
    Unreliable,
    /// Sent until it has arrived. For events, of which each matters.
    Reliable,
}

/// What a transport with its settings offers to a game whose streams want different
/// deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// One pipe that loses nothing, whatever is asked for.
    Pipe,
    /// Datagrams that may be lost, whatever is asked for. What must arrive is the
    /// application's to send again.
    Datagrams,
    /// A reliable, ordered channel and an unreliable one beside it.
    Channels,
    /// One reliable, ordered stream and unreliable datagrams beside it.
    StreamAndDatagrams,
    /// A reliable stream for each message and unreliable datagrams beside them.
    StreamsAndDatagrams,
}

impl Offer {
    /// That of a transport which knows one kind of message.
    #[must_use]
    pub const fn of(reliable: bool) -> Self {
        if reliable {
            Self::Pipe
        } else {
            Self::Datagrams
        }
    }

    /// Whether messages for which [`Delivery::Unreliable`] is asked may get lost.
    #[must_use]
    pub const fn may_lose(self) -> bool {
        !matches!(self, Self::Pipe)
    }

    /// Whether messages for which [`Delivery::Reliable`] is asked all arrive while the
    /// connection lives.
    #[must_use]
    pub const fn has_reliable(self) -> bool {
        !matches!(self, Self::Datagrams)
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pipe => "one pipe",
            Self::Datagrams => "datagrams",
            Self::Channels => "channels",
            Self::StreamAndDatagrams => "stream + datagrams",
            Self::StreamsAndDatagrams => "streams + datagrams",
        })
    }
}
