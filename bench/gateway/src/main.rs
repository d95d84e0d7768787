//! Drives channel gateways, this project's and others that speak its protocol,
//! with the same traffic from one thread, and says what each carries.
//!
//! Every command starts the gateways it is given, one after the other and
//! alternating between them, pins them to one core, and reads what they use
//! from `/proc`. Pin this program to another core: `taskset -c 1 gateway-bench …`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lagometer_client::SendError;
use lagometer_client::swarm::EndReason;
use thiserror::Error;

mod abuse;
mod churn;
mod cli;
mod compare;
mod counters;
mod crowd;
mod entities;
mod outcome;
mod peer;
mod process;
mod raw;
mod receiving;
mod states;
mod table;
mod ticks;

/// Why there is no figure.
#[derive(Debug, Error)]
enum BenchError {
    /// The system lacks something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The generator wanted to send more than it may hold.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The address belongs to somebody else.
    #[error("{0} is taken: stop what listens there")]
    Taken(SocketAddr),
    /// A gateway did not start.
    #[error("`{command}` does not listen; its output is in {log}")]
    NotStarted {
        /// What was run.
        command: String,
        /// Where its output went.
        log: String,
    },
    /// A connection ended during the setting up.
    #[error("waiting for {what}: {reason}")]
    Ended {
        /// What was waited for.
        what: &'static str,
        /// Why it ended.
        reason: EndReason,
    },
    /// The setting up took too long.
    #[error("waited in vain for {0}")]
    TooSlow(&'static str),
    /// There is no such abuse.
    #[error("there is no abuse `{0}`: `gateway-bench abuse --list` says which there are")]
    UnknownAbuse(String),
    /// The figures could not be written.
    #[error("{path}: {source}", path = path.display())]
    Unwritable {
        /// Where to.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn main() -> ExitCode {
    match cli::run(cli::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gateway-bench: {error}");
            ExitCode::from(3)
        }
    }
}
