//! Both ends of one connection, and what carries their datagrams.

use crate::Endpoint;

/// An endpoint that may move to the thread that plays its lane.
pub type BoxedEndpoint = Box<dyn Endpoint + Send>;

/// Two endpoints of one transport that were made for each other.
pub struct Pair {
    /// The side that opens the connection.
    pub client: BoxedEndpoint,
    /// The side that waits for it.
    pub server: BoxedEndpoint,
}

/// What carries an endpoint's datagrams, and so what a testbed must add to
/// their size to know the bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A datagram is the payload of one UDP datagram over IPv4. The host
    /// checks it: a damaged one never reaches the endpoint.
    Udp,
    /// A datagram is a whole IPv4 packet. The endpoint checks it itself.
    Ip,
}

impl Carrier {
    /// Bytes on the wire beyond the datagram itself: an IPv4 header without
    /// options (20, RFC 791) and a UDP header (8, RFC 768), or nothing.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::Udp => 28,
            Self::Ip => 0,
        }
    }
}
