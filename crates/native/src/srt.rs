//! SRT behind a safe layer: the system's `libsrt`, by way of the feature `srt`.
//!
//! SRT is UDT's descendant that is looked after: made to carry live video, it
//! reports a loss again until it is mended, has no use for UDT's rate control,
//! and can drop what comes too late. Like UDT it owns its sockets and threads.
//!
//! Its threads are made in `Socket::bind` by the calling thread, whose
//! network namespace they and the UDP socket share. It gives them names by
//! which they are found again, so that `Socket::cpu` knows what they cost.
//!
//! Without the feature this module is empty, and whoever asks for SRT is shown
//! what to install.

/// What Debian calls what the feature `srt` needs.
pub const PACKAGE: &str = "libsrt-openssl-dev";

#[cfg(feature = "srt")]
mod error;
#[cfg(feature = "srt")]
mod foreign;
#[cfg(feature = "srt")]
mod socket;
#[cfg(feature = "srt")]
mod threads;

#[cfg(feature = "srt")]
pub use {
    crate::state::State,
    error::{Error, Kind},
    socket::{Library, Options, Socket},
};
