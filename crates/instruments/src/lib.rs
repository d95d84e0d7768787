//! The instruments: echo rate, latency and bandwidth by message size, bulk
//! speed, a path recorded for replay, and the machine that measures.
//!
//! Each but the last has a local end, which measures, and a remote end, which answers and is a
//! [`Service`](lagometer_remote::Service) of the remote end's server. Alone, an
//! instrument starts a remote end of its own and measures that.
//!
//! - [`echo`]: messages there and back
//! - [`sweep`]: latency and bandwidth by message size
//! - [`speed`]: as much as a transport carries
//! - [`record`]: what a path does to probes, as a trace and as a profile
//! - [`machine`]: how noisy this machine is and what it permits
//! - [`payload`]: what the messages of the first two hold
//! - [`placement`]: where both ends run
//! - [`wire`]: one message out, one message in, over UDP and TCP

mod calls;
mod choice;
mod clock;
pub mod echo;
mod error;
pub mod machine;
pub mod payload;
pub mod placement;
pub mod record;
pub mod speed;
pub mod sweep;
pub mod wire;

use lagometer_remote::Registry;

pub use error::Error;

/// The registry with the remote ends of all instruments.
#[must_use]
pub fn services(registry: Registry) -> Registry {
    registry
        .with(echo::EchoService)
        .with(sweep::SinkService)
        .with(speed::SpeedService)
        .with(record::RecordService)
}
