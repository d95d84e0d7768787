//! Logs of connections, as their libraries write them: qlog.
//!
//! An endpoint knows no file. Whoever makes it may hand it a place to write to; what is
//! written there follows from what the endpoint is given and changes nothing of what it
//! does.

use std::fmt;
use std::io::Write;

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// It opens the connection.
    Client,
    /// It waits for it.
    Server,
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// Where an endpoint writes its log. It is dropped with the endpoint.
pub type LogWriter = Box<dyn Write + Send + Sync>;

/// Opens the logs of connections.
pub trait ConnectionLogs: Send + Sync {
    /// The log of one end of the connection of this seed; none where there is to be
    /// none.
    fn open(&self, seed: u64, end: End) -> Option<LogWriter>;
}
