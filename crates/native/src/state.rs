//! Where a socket of UDT or of SRT, UDT's descendant, is in its life.

/// Where a socket is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Made or bound.
    Idle,
    /// Waiting for connections.
    Listening,
    /// Asking for a connection.
    Connecting,
    /// Connected.
    Connected,
    /// The connection was lost, refused or closed by the peer.
    Broken,
    /// Closed.
    Closed,
}

impl State {
    /// From the libraries' number (`udt.h`, `enum UDTSTATUS`; `srt.h`,
    /// `enum SRT_SOCKSTATUS`).
    pub(crate) const fn from_code(code: i32) -> Self {
        match code {
            1 | 2 => Self::Idle,
            3 => Self::Listening,
            4 => Self::Connecting,
            5 => Self::Connected,
            6 => Self::Broken,
            _ => Self::Closed,
        }
    }
}
