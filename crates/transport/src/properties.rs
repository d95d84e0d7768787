//! What a transport promises and what it costs, so that lanes can be read
//! side by side without one being silently advantaged.

/// What a transport promises and what it costs, with the settings it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportProperties {
    /// Whether every message arrives while the connection lives.
    pub reliable: bool,
    /// Whether messages arrive in the order sent.
    pub ordered: bool,
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
}
