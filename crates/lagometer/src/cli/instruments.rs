//! Options of `lagometer echo`, `sweep` and `speed`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lagometer_instruments::placement::Pin;
use lagometer_instruments::sweep::Test;
use lagometer_testbed::Testbed;
use lagometer_units::{Size, Span};

use super::{GuestFlags, RemoteArguments, testbeds};
use crate::instrument;

/// What lies between both ends of an instrument.
#[derive(Clone, Debug, Args)]
pub(crate) struct PathArguments {
    /// What lies between: a real path, or a network on a real kernel
    #[arg(
        long,
        value_parser = testbeds([Testbed::Net, Testbed::Kernel]),
        default_value = "net"
    )]
    pub(crate) testbed: Testbed,
    /// With `--testbed kernel`: the network between, a built-in one's name or a
    /// TOML file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) network: Option<String>,
    /// With `--testbed kernel`: the seed of the network conditions
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// With `--testbed kernel`: so many seeds, from the first on, each in a guest of
    /// its own; their figures are pooled, and each one's stands beside them
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,
    /// Guests that play at once; as many as there are processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// The seed that a guest plays
    #[arg(long, hide = true)]
    pub(crate) seed_within: Option<u64>,
    #[command(flatten)]
    pub(crate) guest: GuestFlags,
}

#[derive(Debug, Args)]
pub(crate) struct EchoArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
    #[command(flatten)]
    pub(crate) path: PathArguments,
    /// Bytes of a message; `k` is 1024
    #[arg(long, default_value = "8", value_name = "BYTES", value_parser = instrument::parse_size)]
    pub(crate) size: usize,
    /// How long to measure, as in `10s`
    #[arg(long = "for", default_value = "10s", value_name = "TIME")]
    pub(crate) duration: Span,
    /// Messages in flight
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) outstanding: usize,
    /// Over TCP instead of UDP
    #[arg(long)]
    pub(crate) tcp: bool,
    /// Busy-poll the socket instead of sleeping
    #[arg(long)]
    pub(crate) spin: bool,
    /// Where both ends run: `best` tries and chooses, `none` leaves them to
    /// the scheduler, `same` core, `cross` core, or processors: CLIENT or
    /// CLIENT,SERVER
    #[arg(long, default_value = "best", value_name = "PLACE")]
    pub(crate) pin: Pin,
    /// How long a message is waited for before it counts as lost
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub(crate) timeout: Span,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// What `sweep` measures where nothing is said.
pub(crate) const SWEEP_TESTS: &str = "tcp_lat,tcp_bw,udp_lat,udp_bw,tcp_bw_batched,udp_bw_batched";

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
    #[command(flatten)]
    pub(crate) path: PathArguments,
    /// What to measure; `_batched` shares system calls among many messages
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "TEST,…",
        default_value = SWEEP_TESTS
    )]
    pub(crate) tests: Vec<Test>,
    /// Sizes of messages in bytes; `k` is 1024
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…", value_parser = instrument::parse_size, default_value = "1,8,64,256,1k,1400,4k,16k,64k")]
    pub(crate) sizes: Vec<usize>,
    /// How long to measure each test at each size
    #[arg(long = "for", default_value = "300ms", value_name = "TIME")]
    pub(crate) duration: Span,
    /// Where both ends run; see `echo`. By default the best is sought for
    /// each test
    #[arg(long, default_value = "best", value_name = "PLACE")]
    pub(crate) pin: Pin,
    /// TCP's congestion control, as in `cubic`; the system's own by default
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// Where an instrument's result goes.
#[derive(Debug, Args)]
pub(crate) struct ResultArguments {
    /// Write the result document here; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page here
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
}

/// What `speed` measures where nothing is said: one of each kind that this build
/// has.
pub(crate) const SPEED_LANES: &str = if cfg!(feature = "udt") {
    "tcp,udp,kcp,enet,udt,quic"
} else {
    "tcp,udp,kcp,enet,quic"
};

#[derive(Debug, Args)]
pub(crate) struct SpeedArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
    #[command(flatten)]
    pub(crate) path: PathArguments,
    /// Transports to measure, one after another: `tcp`, `tcp-CONGESTION`, or
    /// presets
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LANE,…",
        default_value = SPEED_LANES
    )]
    pub(crate) lanes: Vec<String>,
    /// How long each is measured
    #[arg(long = "for", value_name = "TIME", default_value = "10 s")]
    pub(crate) duration: Span,
    /// Bytes of a message, as in `62KB`; what fits one datagram by default
    #[arg(long, value_name = "SIZE")]
    pub(crate) chunk: Option<Size>,
    /// The time between two messages, as in `100us`; as fast as possible by default
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<Span>,
    /// A lane's setting in place of the preset's, as in
    /// `kcp.send_window=1024`; may be given again
    #[arg(long, value_name = "LANE.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Processors of the sending and the receiving end, as in `0,1`; the
    /// system's choice by default
    #[arg(long, value_name = "SEND,RECEIVE")]
    pub(crate) pin: Option<String>,
    /// What UDP sockets may use
    #[arg(long, value_enum, default_value_t = Offload::Full)]
    pub(crate) offload: Offload,
    /// Over IPv6
    #[arg(long)]
    pub(crate) ipv6: bool,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}

/// What UDP sockets may use of what the kernel offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Offload {
    /// Segmentation and receive offload, several datagrams for each call
    Full,
    /// Several datagrams for each call
    Batches,
    /// One datagram for each call
    Plain,
}
