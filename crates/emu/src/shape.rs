//! Any program behind a link: a command in the client host, or several each in one
//! of its own, their peer in the server host, and the links between them.

#[cfg(target_os = "linux")]
mod listening;
mod output;
#[cfg(target_os = "linux")]
mod processes;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/running.rs")]
mod running;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod taggers;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use lagometer_link::{Profile, Regime};
use thiserror::Error;

use crate::error::Error;
use crate::settings::{Outcome, Settings};

pub use output::{Output, Speaker, TaggedLine};

/// What is to run behind which link.
#[derive(Clone, Debug)]
pub struct Shape<'a> {
    /// How the link behaves; its impairments start when the command does.
    pub profile: &'a Profile,
    /// The seed of its impairments.
    pub seed: u64,
    /// For whom the impairments are the same.
    pub regime: Regime,
    /// How the network is made.
    pub settings: Settings,
    /// The command for the client host and its arguments.
    pub command: &'a [OsString],
    /// How many of it are run, at least one: each in a client host of its own
    /// behind a link of its own, the first with `seed`, the others with those
    /// after it.
    pub clients: u8,
    /// Where the commands' output goes.
    pub output: Output,
    /// The command for the server host, run by `sh -c`.
    pub remote: Option<&'a OsStr>,
    /// How long the clients wait for the server command to listen on any port.
    pub timeout: Duration,
    /// A file that asks the commands to end when it appears, as `SIGTERM` would.
    pub stop: Option<&'a Path>,
}

/// What came of it.
#[derive(Debug)]
pub struct Shaped {
    /// The client command's exit code; 128 and the signal's number where a
    /// signal ended it, as shells have it. Of several, the first code that is
    /// not 0.
    pub exit_code: i32,
    /// How the server command ended, if it did so before the clients.
    pub remote_ended: Option<ExitStatus>,
    /// What the network did.
    pub network: Outcome,
}

/// Why a command could not be run behind a link.
#[derive(Debug, Error)]
pub enum ShapeError {
    /// The network could not be made, or broke.
    #[error(transparent)]
    Network(#[from] Error),
    /// A command could not be started.
    #[error("cannot start `{command}`: {source}")]
    CannotStart {
        /// The command.
        command: String,
        /// What the system said.
        source: io::Error,
    },
}

/// The environment variables with both hosts' addresses.
pub const VARIABLES: [&str; 4] = [
    "LAGOMETER_LOCAL",
    "LAGOMETER_SERVER",
    "LAGOMETER_LOCAL_V6",
    "LAGOMETER_SERVER_V6",
];

/// What the same were called before, set for scripts that read them.
pub const FORMER_VARIABLES: [&str; 4] = [
    "LAGOMETER_NEAR",
    "LAGOMETER_FAR",
    "LAGOMETER_NEAR_V6",
    "LAGOMETER_FAR_V6",
];

/// The environment variable with a client's number, from 1 on.
pub const CLIENT: &str = "LAGOMETER_CLIENT";

impl Shape<'_> {
    /// Runs the commands until the clients have ended.
    ///
    /// To be called early in `main`, while the process has a single thread
    /// (see [`Permission::acquire`](crate::Permission::acquire)). Signals that ask to end are passed on to
    /// the commands. The server command's output goes to standard error; when
    /// the clients have ended, it is ended too.
    ///
    /// # Errors
    ///
    /// [`ShapeError`], [`Error::Refused`] in it where the system permits no
    /// namespaces.
    pub fn run(&self) -> Result<Shaped, ShapeError> {
        self.play()
    }
}
