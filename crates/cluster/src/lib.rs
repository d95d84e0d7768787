//! One world played by several processes, on one host or many.
//!
//! A *coordinator* has the gateway's address and the scenario; *workers* have
//! the players, cut by their numbers: what a player does follows from the seed
//! and its number, so that who plays it changes nothing. Game servers that
//! simulate a part of the world each may be workers' too, cut likewise. Workers
//! reach the coordinator over the control connection of
//! `lagometer-remote`: both prove that they know the same secret, and the worker
//! learns how far apart their clocks are. The run's time is the coordinator's;
//! a worker's is set right by that, so that the stamps of servers and the
//! instants of players far away are of one clock.
//!
//! ```text
//! worker                          coordinator
//!   open "world" ────────────────▶  a slot, if one is free
//!   ◀──────────────── scenario, shard, gateway
//!   ready (its clock is known) ──▶  once all are: servers here connect
//!   ◀───────────────── open         who has game servers connects them
//!   opened ──────────────────────▶  once all are
//!   ◀──────────────── start, at an instant of the coordinator's clock
//!   note, every half second ─────▶  merged, shown
//!   report of its servers' claims▶  held against each other
//!                                   all stand still
//!   where its servers' are ──────▶  put together
//!   ◀──────────────── truth: where everybody is
//!   what was found ──────────────▶  merged
//!   ◀──────────────── over, once all have reported
//! ```
//!
//! A worker that leaves before it has reported what it found is replaced: the one
//! that is assigned its slot is sent the start at once, its players log in anew,
//! its servers get from the gateway what they had, and what the lost one found up
//! to its last note is merged with the rest. Every wait has a timeout.
//!
//! Worlds in real time need Linux: elsewhere this crate is empty.
//!
//! # Map
//!
//! - `messages`: the protocol
//! - `registry`: the workers and their reports; `slot`: one worker's slot
//! - [`Coordinator`], [`join`]: the two sides

#![cfg(target_os = "linux")]

mod coordinator;
mod error;
mod messages;
mod registry;
mod slot;
mod worker;

pub use coordinator::{Coordinator, Settings};
pub use error::Error;
pub use registry::Event;
pub use worker::{Joined, join};
