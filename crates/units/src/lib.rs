//! The ground floor of Lagometer: instants of a run, quantities with their
//! units, reading files that may never end, and reading TOML so that a mistake is
//! answered with file and line, a name that is nearly right with the right one.
//!
//! Every crate above works in [`Time`], an instant of a run that knows nothing
//! of a wall clock, and in [`std::time::Duration`]; what lives in real time takes
//! its instants from a [`Clock`]. Quantities that people
//! write in profiles and experiments ("20 ms", "10 Mbit/s", "64 KiB", "1 %")
//! are typed: a bare number where a unit belongs is refused, not guessed. What the
//! headers around a datagram add to it on the wire is an [`Encapsulation`]. What looks
//! like chance follows from a seed: [`SplitMix64`].

mod clock;
mod encapsulation;
mod file;
mod input;
mod quantity;
mod rate;
mod share;
mod size;
mod span;
mod split_mix;
mod suggest;
mod time;

pub use clock::Clock;
pub use encapsulation::Encapsulation;
pub use file::{
    MOST_DATA, MOST_SETTINGS, check_private_file, create_new_private_file, create_private_file,
    create_private_folder, read_file, read_text_file,
};
pub use input::{BadInput, from_toml, line_of_key};
pub use quantity::BadQuantity;
pub use rate::Rate;
pub use share::Share;
pub use size::Size;
pub use span::Span;
pub use split_mix::{GOLDEN, SplitMix64, mix};
pub use suggest::suggest;
pub use time::Time;
