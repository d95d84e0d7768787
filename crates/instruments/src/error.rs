//! Why an instrument has nothing to show.

use std::io;

use thiserror::Error;

use crate::placement::BadPin;

/// Why an instrument has nothing to show.
#[derive(Debug, Error)]
pub enum Error {
    /// What is asked for cannot be measured.
    #[error("{0}")]
    Settings(String),
    /// The placement cannot be had.
    #[error("--pin: {0}")]
    Pin(#[from] BadPin),
    /// The remote end cannot be used.
    #[error(transparent)]
    Remote(#[from] lagometer_remote::Error),
    /// The remote end was reached but no message came back.
    #[error(
        "none of {sent} messages came back: {why}; does a firewall let the remote end's data ports through?"
    )]
    Silent {
        /// Messages sent and given up.
        sent: u64,
        /// What happened instead, in words.
        why: String,
    },
    /// The system lacks something.
    #[error("{0}: {1}")]
    System(&'static str, #[source] io::Error),
}
