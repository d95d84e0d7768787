//! One world played by several processes, on one host or many.
//!
//! A *coordinator* has the gateway's address, the scenario and the game
//! servers; *workers* have the players, cut by their numbers: what a player
//! does follows from the seed and its number, so that who plays it changes
//! nothing. Workers reach the coordinator over the control conversation of
//! `lagometer-far`: both prove that they know the same secret, and the worker
//! learns how far apart their clocks are. The run's time is the coordinator's;
//! a worker's is set right by that, so that the stamps of servers and the
//! instants of players far away are of one clock.
//!
//! ```text
//! worker                          coordinator
//!   open "world" ────────────────▶  a seat, if one is free
//!   ◀──────────────── scenario, part, gateway
//!   ready (its clock is known) ──▶  once all are: servers connect
//!   ◀──────────────── start, at an instant of the coordinator's clock
//!   note, every half second ─────▶  merged, shown
//!                                   all stand still
//!   ◀──────────────── truth: where everybody is
//!   what was found ──────────────▶  merged
//!   ◀──────────────── over, once all have told
//! ```
//!
//! A worker that leaves before it has told what it found ends the run for all;
//! nobody waits for ever.
//!
//! # Map
//!
//! - `words`: what is said
//! - `roll`: who has come and what they said
//! - [`Coordinator`], [`join`]: the two sides

mod coordinator;
mod error;
mod roll;
mod words;
mod worker;

pub use coordinator::{Coordinator, Settings};
pub use error::Error;
pub use worker::{Joined, join};
