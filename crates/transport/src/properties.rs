//! What a transport promises and what it costs, so that lanes can be read
//! side by side without one being silently advantaged.

use std::fmt;
use std::time::Duration;

use lagometer_units::Span;

/// How long a peer may be silent, while something is meant for it, before its
/// connection is given up: the same in every preset whose library lets it be set, so
/// that no lane dies of a silence that another is spared. QUIC's customary idle
/// timeout (RFC 9308, section 3.2), and the most that ENet waits by default
/// (`ENET_PEER_TIMEOUT_MAXIMUM`).
pub const PEER_TIMEOUT: Span = Span::from_millis(30_000);

/// When a side gives its peer up for gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerTimeout {
    /// Never: there is no connection to give up.
    NoConnection,
    /// Never: it does not look.
    Never,
    /// After so long without a sign of the peer.
    After(Duration),
    /// After about so long, which its library decides and nobody can set.
    Fixed(Duration),
}

impl fmt::Display for PeerTimeout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoConnection | Self::Never => formatter.write_str("never"),
            Self::After(silence) => write!(formatter, "{}", Span(silence)),
            Self::Fixed(silence) => write!(formatter, "{}, fixed", Span(silence)),
        }
    }
}

/// Where messages wait that were sent behind one that is lost, until it is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOfLine {
    /// Nowhere: each is delivered as it comes.
    Nowhere,
    /// At the receiver, which delivers them in order.
    AtReceiver,
    /// At the sender, which keeps them back after a loss: what arrives has nothing to
    /// wait for, and comes late all the same.
    AtSender,
}

impl HeadOfLine {
    /// That of a transport without a reason of its own to keep anything back.
    #[must_use]
    pub const fn of(reliable: bool, ordered: bool) -> Self {
        if reliable && ordered {
            Self::AtReceiver
        } else {
            Self::Nowhere
        }
    }
}

impl fmt::Display for HeadOfLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nowhere => "nothing waits",
            Self::AtReceiver => "waits at the receiver",
            Self::AtSender => "waits at the sender",
        })
    }
}

/// What a transport promises and what it costs, with the settings it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportProperties {
    /// Whether every message arrives while the connection lives.
    pub reliable: bool,
    /// Whether messages arrive in the order sent.
    pub ordered: bool,
    /// Where what was sent behind a lost message waits for it.
    pub head_of_line: HeadOfLine,
    /// Whether the wire is encrypted.
    pub encrypted: bool,
    /// Largest packet the transport makes, with IP and UDP or TCP headers.
    pub mtu_bytes: u32,
    /// Bytes on the wire beyond the payload for one message that fits one
    /// datagram, IP and UDP or TCP headers included.
    pub header_bytes: u32,
    /// When acknowledgements are sent, in a few words.
    pub acks: String,
    /// What it costs on the wire, in a few words, if the application answers
    /// after the turn in which it took a message in rather than within it: the
    /// acknowledgement, which would have travelled with the answer, may by then
    /// have left alone.
    pub late_answer: String,
    /// Congestion control, in a few words.
    pub congestion_control: String,
    /// When the peer is given up for gone.
    pub peer_timeout: PeerTimeout,
    /// What of it cannot be set, and so not be made equal to others, in a few
    /// words: timers and habits of the library.
    pub fixed: String,
    /// What of its packets is another whenever the same seed is played again in virtual
    /// time, in a few words. Empty where every byte is the same; nothing of it may reach
    /// the size or the time of a packet.
    pub varies: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_timeout_says_how_long_and_whether_it_can_be_set() {
        let silence = Duration::from_secs(45);
        assert_eq!(PeerTimeout::After(silence).to_string(), "45 s");
        assert_eq!(PeerTimeout::Fixed(silence).to_string(), "45 s, fixed");
    }
}
