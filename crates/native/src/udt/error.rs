//! What can go wrong in UDT, by kind rather than by number.

use std::fmt;

use thiserror::Error;

/// An error of UDT's, or of this layer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("UDT: {doing}: {kind}")]
pub struct Error {
    doing: &'static str,
    kind: Kind,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing to read, or no room to write, at the moment.
    WouldBlock,
    /// The wait ended without an event.
    TimedOut,
    /// Nobody answered the request to connect.
    NoServer,
    /// The server refused the connection.
    Rejected,
    /// The connection is gone.
    Lost,
    /// There is no connection yet.
    NotConnected,
    /// The socket is closed.
    Closed,
    /// The message does not fit into the send buffer.
    TooLarge,
    /// An option or argument is out of its range, or comes too late.
    BadArgument,
    /// Another socket of this process has the same port number, at another
    /// address or in another network namespace; UDT looks its UDP sockets up by
    /// their port alone.
    PortTaken(u16),
    /// The system refused a socket, a thread or memory; its error number, 0
    /// where it gave none.
    System(i32),
    /// Another of UDT's codes.
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
        matches!(self.kind, Kind::WouldBlock | Kind::TimedOut)
    }
}

impl Kind {
    /// From UDT's code: a thousand for each class of errors, and within it a
    /// number for each error (`udt.h`, class `CUDTException`).
    pub(crate) const fn from_code(code: i32, system_error: i32) -> Self {
        match code {
            1001 => Self::NoServer,
            1002 | 1004 => Self::Rejected,
            1000 | 1003 | 3000..4000 => Self::System(system_error),
            2001 => Self::Lost,
            2000 | 2002 => Self::NotConnected,
            5004 => Self::Closed,
            5012 => Self::TooLarge,
            5000..6000 => Self::BadArgument,
            6000..=6002 => Self::WouldBlock,
            6003 => Self::TimedOut,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldBlock => formatter.write_str("it would have to wait"),
            Self::TimedOut => formatter.write_str("nothing happened in time"),
            Self::NoServer => formatter.write_str("nobody answered"),
            Self::Rejected => formatter.write_str("the server refused"),
            Self::Lost => formatter.write_str("the connection is lost"),
            Self::NotConnected => formatter.write_str("there is no connection"),
            Self::Closed => formatter.write_str("the socket is closed"),
            Self::TooLarge => formatter.write_str("the message is larger than the send buffer"),
            Self::BadArgument => formatter.write_str("an option or argument is not allowed here"),
            Self::PortTaken(port) => write!(
                formatter,
                "another UDT socket of this process has port {port}; choose another"
            ),
            Self::System(0) => formatter.write_str("the system refused a socket, thread or memory"),
            Self::System(error) => write!(
                formatter,
                "the system refused: {}",
                std::io::Error::from_raw_os_error(*error)
            ),
            Self::Other(code) => write!(formatter, "error {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds() {
        assert_eq!(Kind::from_code(6002, 0), Kind::WouldBlock);
        assert_eq!(Kind::from_code(2001, 0), Kind::Lost);
        assert_eq!(Kind::from_code(5003, 0), Kind::BadArgument);
        assert_eq!(Kind::from_code(3001, 11), Kind::System(11));
        assert_eq!(Kind::from_code(7000, 0), Kind::Other(7000));
    }

    #[test]
    fn an_error_says_what_was_being_done() {
        let error = Error::new("connecting", Kind::NoServer);
        assert_eq!(error.to_string(), "UDT: connecting: nobody answered");
        assert!(!error.would_block());
    }
}
