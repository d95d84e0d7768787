//! What can go wrong while a network is set up or run.

use std::io;

use thiserror::Error;

use crate::refusal::Refusal;

/// Why the emulated network could not be set up, or broke.
#[derive(Debug, Error)]
pub enum Error {
    /// The system does not let this process have namespaces of its own.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// More lanes than there are addresses for.
    #[error("{lanes} lanes are too many: the addresses reach for {most}")]
    TooManyLanes {
        /// The number of lanes that were asked for.
        lanes: usize,
        /// The largest number of lanes.
        most: usize,
    },
    /// An MTU no device can have.
    #[error("an MTU of {mtu} B is not possible: it must be between {least} B and {most} B")]
    Mtu {
        /// The MTU that was asked for, in bytes.
        mtu: usize,
        /// The least that IPv6 permits.
        least: usize,
        /// The most a packet can be.
        most: usize,
    },
    /// A thread of the network ended before it was asked to.
    #[error("the thread of the {0} ended early")]
    ThreadGone(&'static str),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    /// Wraps the error, with `doing` as in "creating the device lane0".
    fn doing(self, doing: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, doing: impl Into<String>) -> Result<T, Error> {
        self.map_err(|error| Error::System {
            doing: doing.into(),
            source: error.into(),
        })
    }
}
