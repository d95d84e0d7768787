//! What a real path does, recorded for replay.
//!
//! Both ends send small probes at an even cadence; each says when it left, and
//! the other end notes when it came. With the offset of the two clocks each
//! direction is known for itself: delay, loss, reordering, duplicates over
//! time; and its rate from trains of packets sent back to back, where asked.
//! [`record`] does all of it with a remote end's [`RecordService`]. What comes of
//! it is a [`Recorded`]: a trace that the link model plays, and a profile that
//! people can read and edit.
//!
//! # Map
//!
//! Without sockets and clocks:
//! - `probe`: what is on the wire
//! - `fates`: what became of each probe; `rate`: what trains show
//! - `trace`, `profile`: what is written; `summary`: what is shown
//!
//! With them:
//! - `player`: one end, sending and noting; `service`, `local`: the two ends
//! - `gathered`: the remote end's notes, fetched as they grow

mod fates;
mod gathered;
mod local;
mod player;
mod probe;
mod profile;
mod rate;
mod service;
mod summary;
mod trace;

pub use fates::{Fate, Way};
pub use local::{RecordError, Recorded, Settings, record};
pub use profile::profile_text;
pub use service::RecordService;
pub use summary::Summary;
pub use trace::recording;
