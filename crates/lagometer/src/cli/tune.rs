//! What is searched for, on what, and how much.

use std::path::PathBuf;

use clap::Args;
use lagometer_testbed::Testbed;
use lagometer_units::{Size, Span};

use super::{GuestFlags, NatsArguments, PricesArguments, testbeds};

#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    /// What is played: a built-in experiment's name, or a TOML file. Its network and
    /// its budgets are taken where no others are named
    #[arg(default_value = "pvp-500")]
    pub(crate) experiment: String,
    /// The players' networks, built-in ones' names or TOML files, each with its share
    /// of the players if they differ
    #[arg(long, value_delimiter = ',', value_name = "NAME[=WEIGHT],…")]
    pub(crate) network: Vec<String>,
    /// Keep these networks from the search, to see what its findings are worth there;
    /// `each` does so with one after the other, by a search of its own on the others
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) hold_out: Vec<String>,
    /// These lanes: presets, or own lanes of the experiment; by default the
    /// `game` preset of each transport that has settings worth searching
    #[arg(long, value_delimiter = ',', value_name = "LANE,…")]
    pub(crate) lanes: Vec<String>,
    /// The figure that is to become best, as in `within 100 ms`, `lag`, `freezes`,
    /// `lost`, `p99`, `overhead`, `bytes per player hour` or `money per player hour`; by
    /// default the share within the first limit that budgets name, or within 150 ms
    #[arg(long, value_name = "FIGURE")]
    pub(crate) goal: Option<String>,
    /// Where candidates are played
    #[arg(long, value_parser = testbeds([Testbed::Sim, Testbed::Kernel]), default_value = "sim")]
    pub(crate) testbed: Testbed,
    #[command(flatten)]
    pub(crate) guest: GuestFlags,
    /// A limit that settings must keep, as in `overhead=2`, `p99=200ms` or `within
    /// 150 ms=99%`; beside the experiment's budgets, or in place of one on the same
    /// figure
    #[arg(long, value_name = "FIGURE=LIMIT")]
    pub(crate) budget: Vec<String>,
    /// Settings to try, of all lanes together
    #[arg(long, value_name = "N", default_value_t = 240, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) trials: u32,
    /// How long the best play on each network, under all seeds together; most are
    /// dropped long before
    #[arg(long = "for", value_name = "TIME", default_value = "10 min")]
    pub(crate) duration: Span,
    /// Into how many seeds that is cut; as many others judge what was found
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub(crate) seeds: u32,
    /// The first seed of the network conditions, and what the search draws from
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Another message size, as in `200B`
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,
    /// Another time from one message to the next, as in `33ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<Span>,
    /// Drive the endpoints only at a game's tick, as in `16ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) tick: Option<Span>,
    /// Threads, or guests, that play at once; as many as there are processors by default.
    /// They change nothing of what is found
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Have workers on any machines play, joined by these NATS servers, as in
    /// `nats://10.0.0.1:4222` or `tls://nats.example`, separated by commas; start them
    /// with `lagometer worker`. They change nothing of what is found
    #[arg(long, value_name = "URL,…", conflicts_with = "jobs")]
    pub(crate) nats: Option<String>,
    #[command(flatten)]
    pub(crate) reached: NatsArguments,
    /// Keep what was played in this file, and go on from it if it is there
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) prices: PricesArguments,
    /// Write the lanes that were found here, to be put into an experiment
    #[arg(long, value_name = "PATH")]
    pub(crate) toml: Option<PathBuf>,
    /// Write the result document here; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page here; `lagometer-tune-EXPERIMENT.html` by default
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,
}
