//! What the link model promises, asked of it from outside.

mod any_profile;
mod bookkeeping;
mod cross_refused;
mod golden;
mod impairments;
mod profiles;
mod shared;
mod statistics;
mod traces;

use lagometer_link::{Link, Profile, Regime};
use lagometer_units::Time;

/// The profile of `text`, which must be right.
fn profile(text: &str) -> Profile {
    let text = format!("summary = \"a test\"\n{text}");
    Profile::from_text("test", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A time-keyed link whose impairments start at once.
fn link(text: &str, seed: u64) -> Link {
    Link::new(&profile(text), seed, Regime::Time, Time::ZERO)
}
