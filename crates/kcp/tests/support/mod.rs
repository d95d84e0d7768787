//! What the tests that hold the engine against the C reference share.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod beside;
pub(crate) mod damage;
pub(crate) mod scenario;
pub(crate) mod stats;
pub(crate) mod twin;
