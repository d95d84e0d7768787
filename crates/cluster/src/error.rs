//! Why a world is not played together.

use lagometer_world::PlayError;
use thiserror::Error;

/// Why a world is not played together.
#[derive(Debug, Error)]
pub enum Error {
    /// Nobody waits for workers there.
    #[error("no coordinator at {address}: {why}")]
    NoCoordinator {
        /// The address at which the coordinator should listen.
        address: String,
        /// What there was instead.
        why: String,
    },
    /// Workers did not come in time.
    #[error("{came} of {asked} workers came within {within_s} s")]
    Missing {
        /// The number of workers that were ready.
        came: u32,
        /// The number of workers that were asked for.
        asked: u32,
        /// How long they were waited for, seconds.
        within_s: u64,
    },
    /// There are not as many game servers as workers for them.
    #[error("{asked} workers have {shared} game servers to share")]
    TooFewServers {
        /// Workers that were asked for.
        asked: u32,
        /// Servers that simulate beside others.
        shared: u32,
    },
    /// The two ends do not understand each other.
    #[error("the coordinator said what this release does not understand: {0}")]
    NotUnderstood(String),
    /// The coordinator's clock is not known.
    #[error("the coordinator does not send its time")]
    NoClock,
    /// The world could not be played.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// The connection to the other end, or the address to listen at.
    #[error(transparent)]
    Remote(#[from] lagometer_remote::Error),
}
