//! KCP: our own engine, wire-compatible and behaviour-identical with the C
//! reference (`ikcp.c`), in safe Rust.
//!
//! What is measured here as KCP must be KCP. So the engine makes the same
//! datagrams at the same times as the reference, byte for byte, its defects
//! included; each defect has a name in [`Rules`] and a mend that can be asked
//! for. The tests hold the engine against the reference itself.
//!
//! What differs is the cost. The reference keeps segments in linked lists and
//! walks them on every flush and acknowledgement, so that its cost per
//! segment grows with the window. Here segments stand in rings indexed by
//! their number (`send_ring`, `receiver`), those due are found by their
//! deadline (`deadlines`), and those skipped by a tree over the instants of
//! transmission (`skips`).

mod clock;
mod config;
mod congestion;
mod cookie;
mod cutting;
mod deadlines;
mod endpoint;
mod engine;
mod fec;
mod fec_stream;
mod flush;
mod framing;
mod packer;
mod pool;
mod presets;
mod probe;
mod receiver;
mod round_trip;
mod rules;
mod send_ring;
mod sender;
mod settings;
mod skips;
mod stream;
mod transport;
mod wire;

pub use config::Config;
pub use cookie::{AddressProof, Cookie, Prover};
pub use cutting::TooManySegments;
pub use endpoint::{KcpEndpoint, pair};
pub use engine::Engine;
pub use fec::FecGroup;
pub use fec_stream::FecStream;
pub use flush::Work;
pub(crate) use presets::PRESETS;
pub use receiver::Arrival;
pub use rules::{Backoff, RtoMargin, RttSampling, Rules, SkipCounting, WindowGrowth};
pub use settings::{Overrides, Settings, Side};
pub use stream::{Stream, StreamProfile};
pub use wire::{BadDatagram, Command, HEADER_BYTES, Header};
