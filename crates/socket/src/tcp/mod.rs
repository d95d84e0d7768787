//! The kernel's own TCP: messages with their length in front, on a stream.
//!
//! - `gather`: reading in large pieces
//! - `settings`: what can be chosen, and what the kernel offers
//! - `side`: the connection behind [`Side`](crate::Side)

mod gather;
mod settings;
mod side;

pub use gather::gather;
pub use settings::Settings;
