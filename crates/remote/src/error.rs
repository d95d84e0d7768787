//! What can go wrong between the two ends, as the local end sees it.

use std::io;

use thiserror::Error;

/// Why the remote end cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The address cannot be understood or found.
    #[error("cannot find `{address}`: {source}; write it as HOST or HOST:PORT")]
    Address {
        /// What was asked for.
        address: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// Nobody is there.
    #[error(
        "cannot reach `{address}`: {source}; does `lagometer serve` run there, and may its port be reached?"
    )]
    Unreachable {
        /// What was asked for.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else is there.
    #[error("what answers at `{address}` is no Lagometer; does `lagometer serve` run there?")]
    UnknownProtocol {
        /// What was asked for.
        address: String,
    },
    /// The remote end speaks another version.
    #[error(
        "the remote end speaks version {theirs} of the protocol, this end version {ours}; install the same release on both"
    )]
    OtherVersion {
        /// What it speaks.
        theirs: u16,
        /// What this end speaks.
        ours: u16,
    },
    /// The two ends do not have the same secret.
    #[error("the remote end has another secret; give both ends the same")]
    OtherSecret,
    /// The remote end serves as many as it can.
    #[error(
        "the remote end serves as many as it can already; try again, or raise its --max-sessions"
    )]
    Busy,
    /// The remote end does not want to do what it was asked.
    #[error("the remote end refuses `{service}`: {why}")]
    Refused {
        /// The service that was asked for.
        service: String,
        /// Why it does not want to.
        why: String,
    },
    /// The control connection broke.
    #[error("the remote end is gone: {why}")]
    Gone {
        /// How that was noticed.
        why: String,
    },
    /// The data socket could not be had, or nobody let it in.
    #[error(
        "the remote end's data port {port} cannot be reached: {why}; a firewall may have to let it through"
    )]
    NotAdmitted {
        /// The port of the remote end.
        port: u16,
        /// What happened instead, in words.
        why: String,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    /// Wraps the error, with `doing` as in "binding a socket".
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::System {
            doing,
            source: error.into(),
        })
    }
}
