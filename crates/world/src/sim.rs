//! The simulated world itself: its ground, the characters on it and how they move,
//! and the scenario that says who plays.

pub(crate) mod body;
pub(crate) mod bot;
pub(crate) mod crowd;
pub(crate) mod ground;
pub(crate) mod scenario;
pub(crate) mod seed;
pub(crate) mod space;
pub(crate) mod vector;
