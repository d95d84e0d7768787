//! The command line: commands and their options.

mod bundle;
mod cluster;
#[cfg(test)]
mod documented;
mod gate;
mod gateway;
mod import;
mod instruments;
mod kernel;
mod live;
mod nats;
mod parse;
mod prices;
mod testbeds;
mod tune;
mod world;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use lagometer_testbed::Testbed;
use lagometer_transport::PresetKind;
use lagometer_units::{Size, Span};

use crate::remote_end;

pub(crate) use self::instruments::{
    EchoArguments, Offload, PathArguments, ResultArguments, SPEED_LANES, SWEEP_TESTS,
    SpeedArguments, SweepArguments,
};
pub(crate) use bundle::BundleArguments;
pub(crate) use cluster::ClusterArguments;
pub(crate) use gate::GateArguments;
use gateway::with_two_dashes;
pub(crate) use gateway::{GatewayAction, GatewayArguments, ReplayArguments};
pub(crate) use import::ImportArguments;
pub(crate) use kernel::{
    GuestArguments, GuestFlags, GuestJob, GuestRunArguments, GuestShapeArguments, KernelArguments,
    KernelBuildArguments, KernelCommand,
};
pub(crate) use live::LiveArguments;
pub(crate) use nats::{NatsArguments, NatsUser, NodeArguments, RoleName, WorkerArguments};
pub(crate) use parse::parse;
pub(crate) use prices::PricesArguments;
pub(crate) use testbeds::EMU_MODE_RELAY;
use testbeds::emu_modes;
pub(crate) use testbeds::testbeds;
pub(crate) use tune::TuneArguments;
pub(crate) use world::WorldArguments;

/// The exit codes in short; [`Exit`](crate::exit::Exit) has what each means.
const EXIT_CODES: &str = "Exit codes: 0 done, 1 what was to hold does not (--assert, agree, replay), \
                          2 the input was wrong,\n3 the environment lacks something, 130 interrupted";

/// Lagometer: a benchmark lab for the transports of real-time multiplayer
/// games.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play an experiment: transports side by side on the same network
    Run(RunArguments),
    /// What other commands start within a kernel in virtual time
    #[command(hide = true)]
    Guest(GuestArguments),
    /// Play an experiment in virtual time and over real sockets, and set one
    /// beside the other
    Agree(AgreeArguments),
    /// Find the settings of transports that serve a game best, in virtual time
    Tune(TuneArguments),
    /// How many messages a path echoes each second, and how long each takes
    Echo(EchoArguments),
    /// Latency and bandwidth over TCP and UDP, by message size
    Sweep(SweepArguments),
    /// Bulk speed: how much each transport carries, and what that costs
    Speed(SpeedArguments),
    /// Be the remote end of what another machine measures
    Serve(ServeArguments),
    /// Record what a real path does, for replay
    Record(RecordArguments),
    /// Run any program behind an emulated link
    Shape(ShapeArguments),
    /// Build and keep Linux kernels with a clock of their own
    Kernel(KernelArguments),
    /// Say how noisy this machine is, and what it can measure
    Doctor(DoctorArguments),
    /// Run the channel gateway
    #[command(args_override_self = true)]
    Gateway(Box<GatewayArguments>),
    /// Play simulated game servers and players on a channel gateway
    World(WorldArguments),
    /// Play what other machines coordinate with `run --nats` or `tune --nats`
    Worker(WorkerArguments),
    /// Show result documents again, as a table or a page
    Report(ReportArguments),
    /// Play a bundled run again, and say whether it finds the same
    Replay(BundleArguments),
    /// Set one run beside another
    Compare(CompareArguments),
    /// Turn other tools' logs into a result document
    Import(ImportArguments),
    /// List the built-in networks, experiments and transports
    List(ListArguments),
    /// Write a completion script for a shell to standard output
    Completions(CompletionsArguments),
    /// Write the manual pages of every command into a folder
    Man(ManArguments),
    /// Write the reference pages of the documentation site into a folder
    #[command(hide = true)]
    Reference(ReferenceArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// Which shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The folder, as in `~/.local/share/man/man1`; made where there is none
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ReferenceArguments {
    /// The folder; made where there is none
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A built-in experiment's name, or a TOML file
    #[arg(default_value = "pvp-500")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
    /// Where the lanes run; with `--to`, over the path there
    #[arg(
        long,
        value_parser = testbeds([Testbed::Sim, Testbed::Emu, Testbed::Kernel, Testbed::Net]),
        default_value = "sim"
    )]
    pub(crate) testbed: Testbed,
    /// What the lanes of `emu` run between
    #[arg(long, value_parser = emu_modes(), default_value = "namespaces")]
    pub(crate) emu_mode: Testbed,
    /// Let the lanes of `emu` use IPv6
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// Write every packet of the first seed and its fate here, for Wireshark; over a real
    /// path, what this end sends and receives
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write what the connections of QUIC lanes did under the first seed into this folder,
    /// as qlog, a file for each end
    #[arg(long, value_name = "FOLDER")]
    pub(crate) qlog: Option<PathBuf>,
    /// Only these transports, by preset, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "LANE,…")]
    pub(crate) lanes: Vec<String>,
    /// With these presets of each, the first being what the table shows; lanes are
    /// then named without, as in `--lanes kcp,quic-datagram --presets game,tuned`.
    /// Where time is not virtual, by default with the experiment's first alone
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PRESET,…")]
    pub(crate) presets: Vec<Preset>,
    /// Another network: a built-in one's name, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) network: Option<String>,
    /// How long to play under each seed, as in `10min`
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Drive the endpoints only at a game's tick, as in `16ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) tick: Option<Span>,
    /// The seed of the network conditions and of all that is drawn
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Play so many seeds, from the first on. In virtual time by default ten
    /// minutes of play for each lane: 20 seeds of 30 s, or of `--for` as many
    /// as fit; otherwise one
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: Option<u32>,
    /// Threads or guests that play; as many as there are processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Have workers on any machines play the seeds, joined by these NATS servers, as in
    /// `nats://10.0.0.1:4222` or `tls://nats.example`, separated by commas; start them
    /// with `lagometer worker`
    #[arg(long, value_name = "URL,…", conflicts_with = "threads")]
    pub(crate) nats: Option<String>,
    #[command(flatten)]
    pub(crate) reached: NatsArguments,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
    #[command(flatten)]
    pub(crate) guest: GuestFlags,
    /// An earlier run's document to hold this one against, figure by figure
    #[arg(long, value_name = "A.json")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
    #[command(flatten)]
    pub(crate) prices: PricesArguments,
    /// Write the run into one file that `lagometer replay` plays again: what was
    /// played, on what, and what was found
    #[arg(long, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
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

/// The presets that there are of each transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The library as its documentation shows a beginner to use it
    Default,
    /// What its maintainers advise for small messages at a steady rate
    Game,
    /// What `lagometer tune` found with the same number of trials for each
    Tuned,
}

/// As the registry has them.
pub(crate) fn kinds(presets: &[Preset]) -> Vec<PresetKind> {
    let kind = |preset: &Preset| match preset {
        Preset::Default => PresetKind::Default,
        Preset::Game => PresetKind::Game,
        Preset::Tuned => PresetKind::Tuned,
    };
    presets.iter().map(kind).collect()
}

#[derive(Debug, Args)]
pub(crate) struct ShapeArguments {
    /// The network between: a built-in one's name, or a TOML file
    #[arg(value_name = "NETWORK")]
    pub(crate) network: String,
    /// A command for the server host, run by the shell; its output goes to
    /// standard error
    #[arg(long = "server", alias = "far", value_name = "COMMAND")]
    pub(crate) remote: Option<OsString>,
    /// The seed of the network conditions
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run so many clients, each in a host of its own behind a link of its own,
    /// with the seeds from `--seed` on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=200))]
    pub(crate) clients: u8,
    /// Write every packet and its fate here, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Where the commands run
    #[arg(long, value_parser = testbeds([Testbed::Emu, Testbed::Kernel]), default_value = "emu")]
    pub(crate) testbed: Testbed,
    /// With `--testbed kernel`: play twice, and say whether outputs, exit codes
    /// and packets were the same, and what differs first; exit code 1 if
    /// something does
    #[arg(long)]
    pub(crate) twice: bool,
    /// With `--testbed kernel`: copy the files that the commands wrote into this
    /// folder, which must not exist or be empty; they are gone otherwise
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
    /// With `--testbed kernel`: put no times and names before lines of output
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) guest: GuestFlags,
    /// The command for the client host, and its arguments. The addresses are in
    /// its environment: `LAGOMETER_LOCAL` (the client's), `LAGOMETER_SERVER`,
    /// and with `_V6`; its number is `LAGOMETER_CLIENT`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct AgreeArguments {
    /// A built-in experiment's name, or a TOML file
    #[arg(default_value = "pvp-500")]
    pub(crate) experiment: String,
    /// These transports, by preset, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LANE,…",
        default_value = "udp,kcp,enet,quic,webrtc"
    )]
    pub(crate) lanes: Vec<String>,
    /// Other networks: built-in ones' names, TOML files, or `all` built-in ones
    #[arg(long, value_delimiter = ',', value_name = "NAME|FILE,…")]
    pub(crate) network: Vec<String>,
    /// What `sim` is held against: `emu` by its figures, `kernel`, which is as
    /// exact, message by message; `kernel,emu`: all three side by side
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "TESTBED,…",
        value_parser = testbeds([Testbed::Emu, Testbed::Kernel]),
        default_value = "emu"
    )]
    pub(crate) testbed: Vec<Testbed>,
    /// What `emu` is held against: `sim`, or the same program and sockets in `kernel`,
    /// where nothing is late, which audits the emulator's audit
    #[arg(
        long,
        value_name = "TESTBED",
        value_parser = testbeds([Testbed::Sim, Testbed::Kernel]),
        default_value = "sim"
    )]
    pub(crate) against: Testbed,
    #[command(flatten)]
    pub(crate) guest: GuestFlags,
    /// How long to play each seed
    #[arg(long = "for", value_name = "TIME", default_value = "20 s")]
    pub(crate) duration: Span,
    /// The first seed of the network conditions and of all that is drawn
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Play so many seeds, from the first on; by default 20 against `emu`, the fewest that
    /// anything is called equal on, and 1 with `kernel`
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: Option<u32>,
    /// Guests that play at once; as many as there are processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write both result documents into this folder, of `emu` over one network
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Result documents
    #[arg(required = true, value_name = "RUN.json")]
    pub(crate) documents: Vec<PathBuf>,
    /// Write one page for all of them here
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
    /// Write the percentile curves of all of them here, as one SVG
    #[arg(long, value_name = "PATH")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The run to compare with
    #[arg(value_name = "A.json")]
    pub(crate) before: PathBuf,
    /// The run to compare
    #[arg(value_name = "B.json")]
    pub(crate) after: PathBuf,
    /// Write a page with both here
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Write the result document here; `-` is standard output, in place of
    /// the text
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
    /// For how long
    #[arg(long = "for", value_name = "TIME", default_value = "60 s")]
    pub(crate) duration: Span,
    /// From one probe to the next, in each direction
    #[arg(long, value_name = "TIME", default_value = "10 ms")]
    pub(crate) every: Span,
    /// A probe's size, headers not counted
    #[arg(long, value_name = "SIZE", default_value = "64 B")]
    pub(crate) size: Size,
    /// Send a train of packets each second as well, which gives the rate
    #[arg(long)]
    pub(crate) rate: bool,
    /// Write the trace here, and a profile that resembles it beside it, with
    /// the extension `.toml`
    #[arg(short, long, value_name = "TRACE", default_value = "recorded.trace")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen, as in `10.0.0.5` or `[::]:7711`
    #[arg(long, value_name = "ADDR", default_value = "[::]:7711", value_parser = remote_end::parse_bind)]
    pub(crate) bind: SocketAddr,
    #[command(flatten)]
    pub(crate) secret: SecretArguments,
    /// The ports of the sockets that carry what is measured, as in
    /// `7712-7799`; any that are free by default
    #[arg(long, value_name = "LOW-HIGH", value_parser = remote_end::parse_ports)]
    pub(crate) data_ports: Option<RangeInclusive<u16>>,
    /// Local ends that are served at once
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_sessions: u32,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
}

/// Which remote end.
#[derive(Debug, Args)]
pub(crate) struct RemoteArguments {
    /// The remote end, where `lagometer serve` runs; one on this machine by
    /// default
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) secret: SecretArguments,
}

/// The secret both ends share.
#[derive(Debug, Args)]
pub(crate) struct SecretArguments {
    /// A file with the secret that both ends share; the variable
    /// `LAGOMETER_SECRET` by default
    #[arg(long, value_name = "FILE")]
    pub(crate) secret: Option<PathBuf>,
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
