//! The command line of `gateway-bench`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use lagometer_units::Span;

use crate::churn::Crush;
use crate::crowd::{Mode, Plan};
use crate::entities::World;
use crate::raw::{self, RawLoop};
use crate::{BenchError, abuse, compare, table};

/// Drives channel gateways with the same players and says what each carries.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// One channel, everyone sees everyone: each gateway in turn with each
    /// number of players.
    Crowd {
        #[command(flatten)]
        setup: Setup,
        #[command(flatten)]
        play: Play,
        /// Numbers of players.
        #[arg(long, value_delimiter = ',', required = true)]
        players: Vec<usize>,
    },
    /// The most players for which everything comes in time, found by halving.
    Limit {
        #[command(flatten)]
        setup: Setup,
        #[command(flatten)]
        play: Play,
        /// Between which numbers of players to look, for each gateway.
        #[arg(long = "range", value_name = "NAME=LOW..HIGH", required = true)]
        ranges: Vec<Range>,
        /// How close the answer has to be.
        #[arg(long, default_value_t = 25)]
        step: usize,
    },
    /// Bytes delivered for each second of processor time, beside a loop that
    /// only writes the same bytes to the same sockets, and one that also reads what
    /// the gateway reads and passes on to the server what players send it.
    Bytes {
        #[command(flatten)]
        setup: Setup,
        #[command(flatten)]
        play: Play,
        /// Numbers of players.
        #[arg(long, value_delimiter = ',', required = true)]
        players: Vec<usize>,
    },
    /// Many entities with a channel each, seen by many players at intervals
    /// that depend on how near they are.
    Entities {
        #[command(flatten)]
        setup: Setup,
        #[command(flatten)]
        world: World,
    },
    /// People who come, log in and go as fast as they can, beside one who stays.
    Churn {
        #[command(flatten)]
        setup: Setup,
        #[command(flatten)]
        crush: Crush,
    },
    /// Players beside an attacker who plays one abuse after the other: what each
    /// costs those who behave.
    Abuse {
        #[command(flatten)]
        plan: abuse::Plan,
    },
    /// The loop that `bytes` compares with.
    #[command(hide = true)]
    RawLoop(RawLoop),
    /// Medians and spread of runs written with `--json`.
    Summary {
        /// The files.
        files: Vec<PathBuf>,
    },
}

/// Which gateways, and where.
#[derive(Clone, Debug, Args)]
pub(crate) struct Setup {
    /// A gateway and the shell command that starts it, in the foreground.
    #[arg(long = "gateway", value_name = "NAME=COMMAND", required = true)]
    pub(crate) gateways: Vec<NamedCommand>,
    /// Where game servers connect.
    #[arg(long, default_value = "127.0.0.1:11288")]
    pub(crate) servers: SocketAddr,
    /// Where players connect.
    #[arg(long, default_value = "127.0.0.1:12108")]
    pub(crate) clients: SocketAddr,
    /// Where this project's gateway serves its metrics: `entities` asks it how
    /// late its ticks are.
    #[arg(long, default_value = "127.0.0.1:18282")]
    pub(crate) metrics: SocketAddr,
    /// The core that gateways are pinned to.
    #[arg(long, default_value_t = 0)]
    pub(crate) core: usize,
    /// How often everything is done, gateways alternating.
    #[arg(long, default_value_t = 5)]
    pub(crate) repeat: u32,
    /// Append each run to this file, a line of JSON each.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Where the gateways' output goes.
    #[arg(long, default_value = "target")]
    pub(crate) logs: PathBuf,
}

/// How the crowd plays.
#[derive(Clone, Debug, Args)]
pub(crate) struct Play {
    /// Who updates the channel.
    #[arg(long, value_enum)]
    mode: Mode,
    /// Updates of each state a second; 0 for players who only listen.
    #[arg(long, default_value_t = 30)]
    rate: u32,
    /// Channels the players are spread over.
    #[arg(long, default_value_t = 1)]
    rooms: usize,
    /// Milliseconds between two windows.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(10..))]
    fan_out_ms: u32,
    /// Players who check every state they get; of the others only bytes are counted,
    /// which costs the generator much less. All check unless said otherwise.
    #[arg(long)]
    checked: Option<usize>,
    /// Traffic before it counts.
    #[arg(long, default_value = "2s")]
    warm_up: Span,
    /// Traffic that counts.
    #[arg(long = "for", default_value = "5s")]
    measured: Span,
}

impl Play {
    /// The plan for that many players.
    #[must_use]
    pub(crate) fn plan(&self, setup: &Setup, players: usize) -> Plan {
        Plan {
            servers: setup.servers,
            clients: setup.clients,
            players,
            mode: self.mode,
            rooms: self.rooms.clamp(1, players.max(1)),
            rate_hz: self.rate,
            fan_out_ms: self.fan_out_ms,
            checked: self.checked.unwrap_or(players).clamp(1, players.max(1)),
            warm_up: self.warm_up.duration(),
            measured: self.measured.duration(),
        }
    }
}

/// A gateway's name and how it is started.
#[derive(Clone, Debug)]
pub(crate) struct NamedCommand {
    /// What the tables call it.
    pub(crate) name: String,
    /// A shell command.
    pub(crate) command: String,
}

impl FromStr for NamedCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, command) = text
            .split_once('=')
            .ok_or("a gateway is NAME=COMMAND, such as ours='lagometer gateway'")?;
        Ok(Self {
            name: name.to_owned(),
            command: command.to_owned(),
        })
    }
}

/// Between which numbers of players a gateway's limit is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    /// The gateway.
    pub(crate) name: String,
    /// A number it surely carries.
    pub(crate) low: usize,
    /// A number it surely does not.
    pub(crate) high: usize,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('=').and_then(|(name, range)| {
            let (low, high) = range.split_once("..")?;
            Some(Self {
                name: name.to_owned(),
                low: low.parse().ok()?,
                high: high.parse().ok()?,
            })
        });
        parsed
            .filter(|range| range.low < range.high)
            .ok_or_else(|| "a range is NAME=LOW..HIGH, such as ours=400..1200".to_owned())
    }
}

/// Does what the command line says.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn run(arguments: Arguments) -> Result<(), BenchError> {
    let runs = match arguments.command {
        Command::Crowd {
            setup,
            play,
            players,
        } => compare::crowds(&setup, &play, &players)?,
        Command::Limit {
            setup,
            play,
            ranges,
            step,
        } => compare::limits(&setup, &play, &ranges, step.max(1))?,
        Command::Bytes {
            setup,
            play,
            players,
        } => compare::bytes(&setup, &play, &players)?,
        Command::Entities { setup, world } => compare::entities(&setup, &world)?,
        Command::Churn { setup, crush } => compare::churn(&setup, &crush)?,
        Command::Abuse { plan } => abuse::run(&plan)?,
        Command::RawLoop(raw) => return raw::serve(&raw),
        Command::Summary { files } => compare::read(&files)?,
    };
    print!("{}", table::summary(&runs));
    Ok(())
}
