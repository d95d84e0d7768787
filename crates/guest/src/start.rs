//! What a guest is started with, on whatever system it is asked for.

use std::path::Path;

use crate::cache::Kernel;
use crate::outcome::{Limits, Traps};
use crate::protocol::Job;

/// A guest to be.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// Its kernel.
    pub kernel: &'a Kernel,
    /// The program of whoever starts it, which answers to [`BOOT`](crate::BOOT) and
    /// [`INIT`](crate::INIT) with [`boot`](crate::boot) and [`init`](crate::init).
    pub own_program: &'a Path,
    /// What runs in it.
    pub job: &'a Job,
    /// The seed of its random numbers.
    pub seed: u64,
    /// How its processes' system calls are caught.
    pub traps: Traps,
    /// How much it may use of the machine.
    pub limits: Limits,
}
