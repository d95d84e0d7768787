//! Which settings of a transport serve a game best: a search in virtual time.
//!
//! - [`Space`]: what may be chosen of a lane, from what its transport declares.
//! - [`Aim`]: the figure that is to become best and the limits that are to be kept.
//! - [`search`]: successive halving over candidates that all play the same seeds.
//! - [`sensitivity`]: what each setting does around the best.
//! - [`frontier`]: of which candidates none is better in two ways at once.
//! - [`Evaluator`]: has candidates played in the lab, and remembers what was played, so that
//!   a search that was interrupted goes on.
//! - [`Runner`]: who plays them: [`Threads`] of this machine, or others.
//! - [`tune()`]: all of it, and what was found held against play that the search never
//!   saw.
//!
//! The search is a function of its seed and of what is reported to it of candidates. It
//! reads no clock and no file.

mod aim;
mod evaluator;
mod findings;
pub mod frontier;
mod lane;
mod memory;
mod phrasing;
mod runner;
pub mod search;
pub mod sensitivity;
mod space;
mod tuning;

pub use aim::{Aim, BadAim};
pub use evaluator::{Evaluator, Network};
pub use lane::{BadLane, TunableLane};
pub use memory::{BadMemory, Memory};
pub use runner::{Runner, Setup, SinglePlay, Threads};
pub use space::{Candidate, Space, Start};
pub use tuning::{Ask, HeldOut, Stopped, planned_plays, tune};
