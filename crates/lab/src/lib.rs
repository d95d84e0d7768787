//! The lab: experiments as data, workloads, testbeds, and the runner that
//! puts lanes side by side and hands back one result document.
//!
//! An [`Experiment`] is read from TOML and *resolved* against the catalogues
//! of networks and transports; the runner plays every lane of every seed in
//! the testbed; what they did is assembled into a
//! [`Document`](lagometer_stats::Document). Nothing here knows of a command
//! line or of how a document is shown.

mod assemble;
pub mod catalogue;
mod digest;
mod experiment;
mod plan;
mod resolve;
mod runner;
pub mod sim;
mod weather;
pub mod workload;

pub use assemble::{RunContext, assemble, assemble_import};
pub use digest::digest;
pub use experiment::{Experiment, OwnLane, RegimeName, Workload};
pub use plan::Plan;
pub use resolve::{ResolveError, Resolved, RunnableLane, UnrunnableLane, resolve, suggest};
pub use runner::{LaneRun, RunOptions, SeedRun, play};
