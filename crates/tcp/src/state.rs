//! The states of a connection (RFC 9293, section 3.3.2), and how it ends.

/// The state of a connection. LISTEN is a listener's, not a connection's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// Our FIN was sent, not yet acknowledged.
    FinWait1,
    /// Our FIN was acknowledged.
    FinWait2,
    /// The peer's FIN was received.
    CloseWait,
    /// Both FINs were sent; ours is not acknowledged.
    Closing,
    /// The peer's FIN came first, ours is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; late packets die out.
    TimeWait,
    /// It is over.
    Closed,
}

impl State {
    /// Whether the handshake is over and the connection is not.
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether the application may still write.
    #[must_use]
    pub const fn can_write(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// Both sides ended it in order.
    #[error("connection ended in order by both sides")]
    Finished,
    /// The application aborted it.
    #[error("connection aborted by the application")]
    Aborted,
    /// The peer refused it (RST in answer to a SYN).
    #[error("connection refused by the peer: does anything listen on that port?")]
    Refused,
    /// The peer reset it.
    #[error("connection reset by the peer")]
    Reset,
    /// The peer no longer answered.
    #[error("connection timed out: the peer no longer answers; is the path down?")]
    TimedOut,
}
