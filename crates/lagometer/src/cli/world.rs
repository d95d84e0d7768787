//! Options of `lagometer world`.

use std::path::PathBuf;

use clap::Args;
use lagometer_testbed::Testbed;
use lagometer_units::Span;
use lagometer_world::PlayerTransport;

use super::{ClusterArguments, GuestFlags, LiveArguments, PricesArguments, testbeds};

#[derive(Debug, Args)]
pub(crate) struct WorldArguments {
    /// A built-in scenario's name (single, spatial, lod), or a TOML file
    #[arg(default_value = "single")]
    pub(crate) scenario: String,
    /// The gateway's address for players, or those of its edges, separated by commas, over which
    /// they are spread; a gateway of our own is started otherwise
    #[arg(long, value_name = "HOST:PORT,…")]
    pub(crate) gateway: Option<String>,
    /// Its address for game servers; port 11288 of the (first) host by default
    #[arg(long, value_name = "HOST:PORT", requires = "gateway")]
    pub(crate) servers: Option<String>,
    /// Its address for metrics, to ask what it costs; not asked by default
    #[arg(long, value_name = "HOST:PORT", requires = "gateway")]
    pub(crate) metrics: Option<String>,
    /// Answer Prometheus here with the world's own metrics while it is played
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) export: Option<String>,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
    /// How many players come; several numbers, separated by commas, are played
    /// one after the other, from few to many until two in a row are too many
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pub(crate) players: Vec<u32>,
    /// After the given numbers, double the players until the world saturates, then
    /// bisect until the limit is known to within an eighth
    #[arg(long, alias = "until-it-bends", conflicts_with_all = ["testbed", "network", "transport", "coordinate"])]
    pub(crate) until_saturated: bool,
    /// From one player's coming to the next, as in `50ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) join_every: Option<Span>,
    /// How long to measure once all are in, as in `30s`
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// The seed of the map, of starting places and of what players do
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How many players' views are sampled, where all share one channel
    #[arg(long)]
    pub(crate) observers: Option<u32>,
    /// Write the result document here; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Where players and gateway are; on this machine's loopback device by
    /// default, or in virtual time with --network or --transport
    #[arg(long, value_parser = testbeds([Testbed::Sim, Testbed::Emu, Testbed::Kernel]))]
    pub(crate) testbed: Option<Testbed>,
    #[command(flatten)]
    pub(crate) guest: GuestFlags,
    /// The networks between players and gateway: built-in ones' names or TOML
    /// files, separated by commas; each player has a link of its own
    #[arg(long, value_delimiter = ',', value_name = "NAME|FILE,…")]
    pub(crate) network: Vec<String>,
    // Its help is made of the table of transports.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        help = format!(
            "How players reach the gateway: {}, separated by commas",
            PlayerTransport::names()
        )
    )]
    pub(crate) transport: Vec<PlayerTransport>,
    /// Write every packet on players' links and its fate here, for Wireshark; of several
    /// worlds, those of the first
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Worlds in virtual time that are played at once; as many as there are
    /// processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
    #[command(flatten)]
    pub(crate) prices: PricesArguments,
    /// Write the page here; `lagometer-world-SCENARIO.html` by default
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,
}
