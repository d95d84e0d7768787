//! Options of `lagometer kernel`, and of the commands that run within a guest.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use lagometer_guest::DEFAULT_HZ;
use lagometer_units::Span;

use super::{EchoArguments, Preset, SpeedArguments, SweepArguments, WorldArguments};

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
        /// A version or a name, as `status` has it
        #[arg(value_name = "VERSION|NAME", required_unless_present = "all")]
        name: Option<String>,
        /// All kernels
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
}

/// Which kernel guests have, and how long they may take.
#[derive(Clone, Debug, Args)]
pub(crate) struct GuestFlags {
    /// The kernel of `--testbed kernel`, by version or name; the last one built
    /// by default
    #[arg(long, value_name = "VERSION|NAME")]
    pub(crate) kernel: Option<String>,
    /// How long a guest of `--testbed kernel` may take in real time
    #[arg(long, value_name = "TIME", default_value = "1 h", value_parser = real_limit)]
    pub(crate) real_limit: Span,
}

/// A limit in real time, which leaves a guest the time to boot.
fn real_limit(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|why| format!("{why}"))?;
    if span.duration() < Duration::from_secs(1) {
        return Err("a guest needs a second to boot: at least `1 s`".to_owned());
    }
    Ok(span)
}

/// What is done within a guest.
#[derive(Debug, Args)]
pub(crate) struct GuestArguments {
    #[command(subcommand)]
    pub(crate) job: GuestJob,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuestJob {
    /// Play one seed of an experiment
    Run(GuestRunArguments),
    /// Run commands behind links
    Shape(GuestShapeArguments),
    /// Play worlds behind links
    World(Box<WorldArguments>),
    /// Measure echoes over a link
    Echo(Box<EchoArguments>),
    /// Measure by size over a link
    Sweep(Box<SweepArguments>),
    /// Measure bulk speed over a link
    Speed(Box<SpeedArguments>),
}

/// Commands within a guest.
#[derive(Debug, Args)]
pub(crate) struct GuestShapeArguments {
    /// The network
    #[arg(long)]
    pub(crate) network: String,
    /// The server's command
    #[arg(long)]
    pub(crate) remote: Option<OsString>,
    /// The first client's seed
    #[arg(long)]
    pub(crate) seed: u64,
    /// How many clients
    #[arg(long)]
    pub(crate) clients: u8,
    /// Where the log of packets will be
    #[arg(long)]
    pub(crate) pcap: Option<PathBuf>,
    /// Log packets even without `--pcap`
    #[arg(long)]
    pub(crate) log: bool,
    /// The client's command
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// One seed of an experiment, within a guest.
#[derive(Debug, Args)]
pub(crate) struct GuestRunArguments {
    /// Lanes use IPv6
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// Only these transports
    #[arg(long, value_delimiter = ',')]
    pub(crate) lanes: Vec<String>,
    /// With these presets of each
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) presets: Vec<Preset>,
    /// Another network
    #[arg(long)]
    pub(crate) network: Option<String>,
    /// How long to play
    #[arg(long = "for")]
    pub(crate) duration: Option<Span>,
    /// A game tick
    #[arg(long)]
    pub(crate) tick: Option<Span>,
    /// Log packets
    #[arg(long)]
    pub(crate) log: bool,
    /// Have transports write logs of their connections
    #[arg(long)]
    pub(crate) qlog: bool,
    /// The seed
    #[arg(long)]
    pub(crate) seed: u64,
    /// Play what the bundle in this file holds, or the recipe of one
    #[arg(long)]
    pub(crate) bundle: Option<PathBuf>,
    /// The experiment
    #[arg(required_unless_present = "bundle")]
    pub(crate) experiment: Option<String>,
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
