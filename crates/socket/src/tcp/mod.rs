//! The kernel's own TCP: messages with their length in front, on a stream.
//!
//! - `settings`: what can be chosen, and what the kernel offers
//! - `side`: the connection behind [`Side`](crate::Side)

mod settings;
mod side;

pub use settings::Settings;
