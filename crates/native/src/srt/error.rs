//! What can go wrong in SRT, by kind rather than by number.

use thiserror::Error;

/// An error of SRT's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("SRT: {doing}: {kind}")]
pub struct Error {
    doing: &'static str,
    kind: Kind,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Kind {
    /// Nothing to read, or no room to write, at the moment.
    #[error("it would have to wait")]
    WouldBlock,
    /// The connection is gone.
    #[error("the connection is lost")]
    Lost,
    /// There is no connection.
    #[error("there is no connection")]
    NotConnected,
    /// The socket is closed.
    #[error("the socket is closed")]
    Closed,
    /// The message is larger than a packet.
    #[error("the message is too large")]
    TooLarge,
    /// An option or argument is out of its range, or comes too late.
    #[error("an option or argument is not allowed here")]
    BadArgument,
    /// The system refused a socket, a thread or memory; its error number.
    #[error("the system refused, error {0}")]
    System(i32),
    /// Another of SRT's codes.
    #[error("error {0}")]
    Other(i32),
}

impl Error {
    pub(crate) const fn new(doing: &'static str, kind: Kind) -> Self {
        Self { doing, kind }
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it is only that the call would have had to wait.
    #[must_use]
    pub const fn would_block(&self) -> bool {
        matches!(self.kind, Kind::WouldBlock)
    }
}

impl Kind {
    /// From SRT's code: a thousand for each class of errors, and within it a
    /// number for each error (`srt.h`, `enum SRT_ERRNO`).
    pub(crate) const fn from_code(code: i32, system_error: i32) -> Self {
        match code {
            2001 => Self::Lost,
            2000 | 2002 => Self::NotConnected,
            1003 | 3000..4000 => Self::System(system_error),
            5004 => Self::Closed,
            5012 => Self::TooLarge,
            5000..6000 => Self::BadArgument,
            6000..7000 => Self::WouldBlock,
            other => Self::Other(other),
        }
    }
}
