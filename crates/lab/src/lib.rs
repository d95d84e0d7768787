//! The lab: experiments as data, workloads of lanes, how lanes are played on each testbed, and
//! the runner that puts lanes side by side and hands back one result document.
//!
//! An [`Experiment`] is read from TOML and *resolved* against the catalogues
//! of networks and transports; the runner plays every lane of every seed in
//! the testbed; what they did is assembled into a
//! [`Document`](lagometer_results::Document). Nothing here knows of a command
//! line or of how a document is shown.

mod assemble;
mod bottleneck;
pub mod bundle;
pub mod catalogue;
mod digest;
mod draw;
pub mod emu;
mod experiment;
mod impairments;
pub mod live;
pub mod net;
mod outcome;
mod plan;
mod qlog;
mod remarks;
mod resolve;
mod runner;
pub mod saved;
mod shared_path;
pub mod sim;
pub mod traffic;
pub mod workload;

pub use assemble::{RunContext, assemble, assemble_import, seed_figures};
pub use bundle::Bundle;
pub use digest::digest;
pub use experiment::{Experiment, OwnLane, RegimeName};
pub use outcome::{
    BottleneckUse, Cost, LaneEnd, LaneOutcome, PartyUse, PlayBytes, WayUse, WireCounts,
};
pub use plan::Plan;
pub use qlog::{QlogError, QlogFolder};
pub use remarks::{Each, Play, Unmet};
pub use resolve::{PlayedPresets, ResolveError, Resolved, RunnableLane, UnrunnableLane, resolve};
pub use runner::{LaneRun, RunOptions, SeedRun, packets_of, play, play_captured};
pub use workload::Workload;
