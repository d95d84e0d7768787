//! UDT, the real library: messages, or a stream with lengths in front.
//!
//! It is linked where the cargo feature `udt` asks for it. Without, its presets
//! are known all the same, and whoever asks for one is told what to install.
//!
//! - `settings`: what can be chosen, as in 2015 and as it serves a game
//! - `connection`: the connection behind [`SocketConnection`](crate::SocketConnection)
//! - `inbox`: a thread that waits in UDT, since UDT has no file to wait on
//!
//! What a reader of its figures should know. UDT reports a loss once, when it
//! first sees the gap; should the report be lost, or what is sent upon it, only
//! a timer helps, and everything that arrives puts that timer off. A direction
//! with a hole can so stand still for as long as the other is lively. The presets
//! for a game report losses again; those of the library and of 2015 do not. UDT's
//! own rate control takes the rate at which messages arrive for what the path can
//! carry, slows down with every loss from there, and recovers by steps made for
//! gigabits.

#[cfg(feature = "udt")]
mod connection;
#[cfg(feature = "udt")]
mod inbox;
mod settings;

pub use settings::{RateControl, Settings, Waiting};

use lagometer_transport::Preset;

use crate::catalogue::checked;
use crate::spec::SocketSpec;

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset<SocketSpec>] = &[
    Preset::new(
        "udt",
        "UDT's stream, everything as the library has it: what it was made for, bulk",
        || checked(Settings::BULK),
    ),
    Preset::new(
        "udt-dgram",
        "UDT's messages in order, its rate control replaced by a window of 16 packets \
         and loss reports that are repeated",
        || checked(Settings::DGRAM),
    ),
    Preset::new(
        "udt-stream",
        "UDT's stream, its rate control replaced by a window of 16 packets and loss \
         reports that are repeated",
        || checked(Settings::STREAM),
    ),
    Preset::new("udt-epoll", "`udt-dgram` waited for by UDT's epoll", || {
        checked(Settings::EPOLL)
    }),
    Preset::new(
        "udt-default",
        "UDT's messages in order, everything as the library has it",
        || checked(Settings::DEFAULT),
    ),
    Preset::new(
        "udt-dgram-2015",
        "UDT's messages as compared in 2015: its rate control, 63 packets of buffer",
        || checked(Settings::DGRAM_2015),
    ),
    Preset::new(
        "udt-stream-2015",
        "UDT's stream as compared in 2015: its rate control, 634 packets of buffer",
        || checked(Settings::STREAM_2015),
    ),
    Preset::new(
        "udt-epoll-2015",
        "UDT as compared in 2015 with epoll: release 4.10's rate control, 63 packets of buffer",
        || checked(Settings::EPOLL_2015),
    ),
];
