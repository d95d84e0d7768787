//! The words of `lagometer kernel`, and of what runs within one.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use lagometer_guest::DEFAULT_HZ;
use lagometer_units::Span;

#[derive(Debug, Args)]
pub(crate) struct KernelArguments {
    #[command(subcommand)]
    pub(crate) command: KernelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Build a kernel from its source, in minutes
    Build(KernelBuildArguments),
    /// Say which kernels there are
    Status,
    /// Remove a kernel, or all
    Remove {
        /// A version or a name, as `status` has it; all kernels by default
        #[arg(value_name = "VERSION|NAME")]
        name: Option<String>,
    },
}

/// What is played within a guest: one seed of an experiment.
#[derive(Debug, Args)]
pub(crate) struct GuestArguments {
    /// Lanes use IPv6
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// Only these transports
    #[arg(long, value_delimiter = ',')]
    pub(crate) lanes: Vec<String>,
    /// Another network
    #[arg(long)]
    pub(crate) network: Option<String>,
    /// How long to play
    #[arg(long = "for")]
    pub(crate) duration: Option<Span>,
    /// A game tick
    #[arg(long)]
    pub(crate) tick: Option<Span>,
    /// The seed
    #[arg(long)]
    pub(crate) seed: u64,
    /// The experiment
    pub(crate) experiment: String,
}

#[derive(Debug, Args)]
pub(crate) struct KernelBuildArguments {
    /// A kernel's source, a tarball or a tree, of any version from 6.1 on; the
    /// distribution's package by default
    #[arg(long, value_name = "TARBALL|TREE")]
    pub(crate) source: Option<PathBuf>,
    /// The kernel's tick: 100, 250, 300 or 1000 times a second
    #[arg(long, value_name = "N", default_value_t = DEFAULT_HZ, hide_possible_values = true,
          value_parser = PossibleValuesParser::new(["100", "250", "300", "1000"]).try_map(|text| text.parse::<u16>()))]
    pub(crate) hz: u16,
}
