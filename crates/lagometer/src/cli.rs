//! The command line's words.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lagometer_units::Span;

/// Lagometer: a benchmark lab for the transports of real-time multiplayer
/// games.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play an experiment: transports side by side on the same network
    Run(RunArguments),
    /// Show result documents again, as a table or a page
    Report(ReportArguments),
    /// Set one run beside another
    Compare(CompareArguments),
    /// Turn other tools' logs into a result document
    Import(ImportArguments),
    /// List the built-in networks, experiments and transports
    List(ListArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A built-in experiment's name, or a TOML file
    #[arg(default_value = "pvp-500")]
    pub(crate) experiment: String,
    /// Where the lanes run: `sim` is virtual time
    #[arg(long, value_enum, default_value_t = Testbed::Sim)]
    pub(crate) testbed: Testbed,
    /// Only these transports, by preset, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "LANE,…")]
    pub(crate) lanes: Vec<String>,
    /// Another network: a built-in one's name, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) network: Option<String>,
    /// How long to play, as in `10min`
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// A game tick at which alone the endpoints are pumped, as in `16ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) tick: Option<Span>,
    /// The seed of the weather and of all that is drawn
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Play so many seeds, from the first on, and give every figure's spread
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,
    /// Threads that play; as many as there are processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Exit with 1 when a budget is missed
    #[arg(long = "assert")]
    pub(crate) assert_budgets: bool,
    /// Write the result document here; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page here; `lagometer-EXPERIMENT.html` by default
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,
}

/// Where lanes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Testbed {
    /// Virtual time: deterministic, faster than real time
    Sim,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Result documents
    #[arg(required = true, value_name = "RUN.json")]
    pub(crate) documents: Vec<PathBuf>,
    /// Write one page for all of them here
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The run to compare with
    #[arg(value_name = "A.json")]
    pub(crate) before: PathBuf,
    /// The run to compare
    #[arg(value_name = "B.json")]
    pub(crate) after: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Logs, each of which becomes a lane
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// From one message to the next in the logs
    #[arg(long, default_value = "50 ms", value_name = "TIME")]
    pub(crate) interval: Span,
    /// Write the result document here; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page here
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// What to list; everything by default
    #[arg(value_enum)]
    pub(crate) what: Option<Listed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Networks to play over
    Networks,
    /// Experiments to play
    Experiments,
    /// Transports to put on lanes
    Transports,
}
