//! SRT, UDT's descendant that is looked after, in message mode.
//!
//! It is linked where the cargo feature `srt` asks for it. Without, its presets
//! are known all the same, and whoever asks for one is told what to install.
//!
//! - `settings`: what can be chosen
//! - `side`: the connection behind [`Side`](crate::Side)

mod settings;
#[cfg(feature = "srt")]
mod side;

pub use settings::Settings;
