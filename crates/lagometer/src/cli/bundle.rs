//! A run in one file, to be played again.

use std::path::PathBuf;

use clap::Args;

use super::GuestFlags;

#[derive(Debug, Args)]
pub(crate) struct BundleArguments {
    /// What `run --bundle` wrote
    #[arg(value_name = "FILE")]
    pub(crate) bundle: PathBuf,
    #[command(flatten)]
    pub(crate) guest: GuestFlags,
    /// Threads that play; as many as there are processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write the result document here; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page here
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
}
