//! What this machine is, how noisy it is, and what it permits: whatever is
//! measured in real time is measured on top of this.
//!
//! [`measured`] gives the figures that belong into every result made in real
//! time; [`examined`] takes longer for surer ones; [`permits`] says which of
//! the system's facilities are there, and what to do about those that are not.

mod noise;
mod permits;

use lagometer_results::{Host, Noise};

pub use permits::{Permit, permits};

use noise::Effort;

/// What the machine is, with its noise measured now: about half a second.
#[must_use]
pub fn measured() -> Host {
    with_noise(noise::measure(Effort::BRIEF))
}

/// What the machine is, with its noise measured with care: about three
/// seconds.
#[must_use]
pub fn examined() -> Host {
    with_noise(noise::measure(Effort::CAREFUL))
}

/// What the machine is, for figures that it had no part in.
#[must_use]
pub fn named() -> Host {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Host {
        os: std::env::consts::OS.to_owned(),
        kernel: lagometer_platform::release(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        noise: None,
    }
}

fn with_noise(noise: Noise) -> Host {
    Host {
        noise: Some(noise),
        ..named()
    }
}
