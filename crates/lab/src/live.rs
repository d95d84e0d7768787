//! Lanes in real time: the two applications of a lane, each on a thread of
//! its own over one [`SocketConnection`](lagometer_socket::SocketConnection).
//!
//! One thread for each side, rather than one for all: a library that is slow
//! at something delays nobody but itself, and what a lane costs is what its
//! own threads used. The machine's scheduler is what lanes share, as programs
//! on one machine do; so that they do not all ask for it at the same instant,
//! the testbed starts each lane's schedule, and the impairments of its link, a
//! little after the one before.
//!
//! The threads have the clock; the applications and endpoints are handed it. What
//! lies between the ends, and where a server is, is a `Backend`: `emu` and `net` have
//! one each, and the rest of a run is the same.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::runner::panic_message;

mod client;
mod pace;
mod play;
mod server;
mod shared;
mod status;
mod supervisor;
mod timeline;
mod watch;

pub use client::{ClientOutcome, play_client};
pub use pace::LONGEST_WAIT;
pub(crate) use play::{Backend, Manner, OpenLane, ServerNotes, play_seed};
pub use server::{ServerOutcome, play_server};
pub(crate) use shared::Links;
pub use status::{Cue, LaneStatus, Role};
pub use watch::{LaneFigures, LaneMoment, RunWatch, WatchedSeed};

/// Does `play`; should it panic, the lane is over and the words are returned.
pub(crate) fn guarded<T>(status: &LaneStatus, play: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(play)).map_err(|panic| {
        status.give_up();
        panic_message(&*panic)
    })
}
