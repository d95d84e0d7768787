//! Options of `lagometer gateway`: few of its own, and all of channeld's, so
//! that a command line made for channeld starts this gateway.

mod go;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lagometer_units::Span;

use super::{LiveArguments, NodeArguments};

/// Channeld's options, which it writes with one dash.
const CHANNELD: &[&str] = &[
    "dev",
    "loglevel",
    "logfile",
    "profile",
    "profilepath",
    "sn",
    "sa",
    "srb",
    "swb",
    "sfsm",
    "sba",
    "scr",
    "scrt",
    "cwm",
    "cn",
    "ca",
    "crb",
    "cwb",
    "cfsm",
    "erp",
    "rspd",
    "ct",
    "scc",
    "scs",
    "ecs",
    "mcb",
    "cat",
    "mfaa",
    "mfd",
    "chs",
    // Of its chat rooms alone.
    "web",
    "ws",
];

const CHANNELD_HEADING: &str = "As channeld has them, with one dash or two";

#[derive(Debug, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GatewayArguments {
    #[command(subcommand)]
    pub(crate) action: Option<GatewayAction>,
    /// The settings, as deploy/gateway.toml shows them; options go before it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
    /// Read the settings, say what is wrong with them, and end
    #[arg(long)]
    pub(crate) check: bool,
    /// The game's types of channel data: a .proto file or a descriptor set
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Vec<PathBuf>,
    /// Where metrics and health are: 127.0.0.1:8080, or as in `0.0.0.0:8080` for
    /// everybody; `none` for nowhere
    #[arg(long, value_name = "ADDR")]
    pub(crate) web: Option<String>,
    /// Threads for connections beside one for channels; 0: one does both
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) node: NodeArguments,
    /// End when the program that started this one does
    #[arg(long, hide = true)]
    pub(crate) with_parent: bool,
    /// Ban clients that do not log in in time or misbehave
    #[arg(long)]
    pub(crate) anti_ddos: bool,

    /// For development: everyone is let in
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go::boolean, value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) dev: Option<bool>,
    /// How much to log: -1 debug, 0 info, 1 warnings, 2 errors, 3 nothing
    #[arg(long, allow_negative_numbers = true, value_name = "LEVEL", help_heading = CHANNELD_HEADING)]
    pub(crate) loglevel: Option<i32>,
    /// A file to log to beside standard error; `{time}` in its name is the time
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) logfile: Option<PathBuf>,
    /// The transport that servers use: tcp, tcp4, tcp6, unix, tls, ws, wss, kcp, kcp-tuned
    #[arg(long, value_name = "NETWORK", help_heading = CHANNELD_HEADING)]
    pub(crate) sn: Option<String>,
    /// Where servers connect, as in `:11288`
    #[arg(long, value_name = "ADDR", help_heading = CHANNELD_HEADING)]
    pub(crate) sa: Option<String>,
    /// What servers may send when: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) sfsm: Option<PathBuf>,
    /// Servers are not authenticated
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go::boolean, value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) sba: Option<bool>,
    /// Servers whose connection broke may reconnect and recover
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go::boolean, value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) scr: Option<bool>,
    /// With --scr: how long a server may take to reconnect, in milliseconds; 0 or less
    /// is no limit
    #[arg(long, value_name = "MS", help_heading = CHANNELD_HEADING, allow_negative_numbers = true, value_parser = go::integer)]
    pub(crate) scrt: Option<i64>,
    /// Clients wait until a server owns GLOBAL
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go::boolean, value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) cwm: Option<bool>,
    /// The transport that clients use; as for --sn
    #[arg(long, value_name = "NETWORK", help_heading = CHANNELD_HEADING)]
    pub(crate) cn: Option<String>,
    /// Where clients connect, as in `:12108`
    #[arg(long, value_name = "ADDR", help_heading = CHANNELD_HEADING)]
    pub(crate) ca: Option<String>,
    /// Where clients connect by WebSocket, as channeld's chat rooms have it
    #[arg(long, value_name = "ADDR", help_heading = CHANNELD_HEADING, conflicts_with_all = ["cn", "ca"])]
    pub(crate) ws: Option<String>,
    /// What clients may send when: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) cfsm: Option<PathBuf>,
    /// Record what clients send
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go::boolean, value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) erp: Option<bool>,
    /// With --erp: the folder for recordings; `replays` by default
    #[arg(long, value_name = "FOLDER", help_heading = CHANNELD_HEADING)]
    pub(crate) rspd: Option<PathBuf>,
    /// The compression offered: 0 none, 1 snappy
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING, value_parser = compression)]
    pub(crate) ct: Option<u32>,
    /// The world's grid: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) scc: Option<PathBuf>,
    /// The first number of a spatial channel
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING, value_parser = go::unsigned)]
    pub(crate) scs: Option<u32>,
    /// The first number of an entity channel
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING, value_parser = go::unsigned)]
    pub(crate) ecs: Option<u32>,
    /// Bits of a connection's number
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING, value_parser = go::unsigned)]
    pub(crate) mcb: Option<u32>,
    /// With --anti-ddos: milliseconds a client may take to log in
    #[arg(long, value_name = "MS", help_heading = CHANNELD_HEADING, value_parser = go::unsigned)]
    pub(crate) cat: Option<u32>,
    /// With --anti-ddos: failed logins that ban
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING, allow_negative_numbers = true, value_parser = go::integer)]
    pub(crate) mfaa: Option<i64>,
    /// With --anti-ddos: refused messages that ban
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING, allow_negative_numbers = true, value_parser = go::integer)]
    pub(crate) mfd: Option<i64>,
    /// Ticks, intervals and rights by type of channel: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) chs: Option<PathBuf>,
    /// Buffer sizes and profiles, taken and passed over
    #[command(flatten)]
    pub(crate) without_effect: WithoutEffect,
}

/// What there is to do beside running a gateway.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayAction {
    /// Play recorded sessions to a gateway again, all at once
    Replay(ReplayArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Recordings, as `-erp` makes them: `session_….cpr`
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where the gateway waits for clients
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) to: String,
    /// The player to log in as; by default the recording's
    #[arg(long, value_name = "NAME")]
    pub(crate) player: Option<String>,
    /// The login token; recordings hold none
    #[arg(long, value_name = "TOKEN", default_value = "")]
    pub(crate) login_token: String,
    /// Replay speed, as a multiple of the recorded one
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub(crate) speed: f64,
    /// Ignore the recorded pauses
    #[arg(long, conflicts_with = "speed")]
    pub(crate) as_fast_as_possible: bool,
    /// Hang up once nothing has come for so long after the last packet
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    pub(crate) linger: Span,
}

fn speed(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|speed| (0.001..=1e6).contains(speed))
        .ok_or_else(|| "must be from 0.001 to 1000000".into())
}

/// What has no meaning here: buffers grow as they must, and profiles are for
/// the system's tools.
#[derive(Debug, Default, Args)]
pub(crate) struct WithoutEffect {
    #[arg(long, hide = true, allow_negative_numbers = true, value_parser = go::integer)]
    srb: Option<i64>,
    #[arg(long, hide = true, allow_negative_numbers = true, value_parser = go::integer)]
    swb: Option<i64>,
    #[arg(long, hide = true, allow_negative_numbers = true, value_parser = go::integer)]
    crb: Option<i64>,
    #[arg(long, hide = true, allow_negative_numbers = true, value_parser = go::integer)]
    cwb: Option<i64>,
    #[arg(long, hide = true)]
    profile: Option<String>,
    #[arg(long, hide = true)]
    profilepath: Option<PathBuf>,
}

/// The number of a compression.
fn compression(text: &str) -> Result<u32, String> {
    go::unsigned(text).and_then(|number| match number {
        0 | 1 => Ok(number),
        _ => Err("must be 0 (none) or 1 (snappy)".into()),
    })
}

/// Gives channeld's options the second dash that this command line wants.
pub(crate) fn with_two_dashes(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = arguments.collect();
    if all.get(1).is_none_or(|command| command != "gateway") {
        return all;
    }
    for argument in all.iter_mut().skip(2) {
        let Some(text) = argument.to_str() else {
            continue;
        };
        if let Some(option) = text.strip_prefix('-')
            && CHANNELD.contains(&option.split('=').next().unwrap_or_default())
        {
            *argument = format!("--{option}").into();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::cli::{Cli, Command};

    use super::*;

    fn parse(line: &str) -> GatewayArguments {
        let words = line.split(' ').map(OsString::from);
        match Cli::parse_from(with_two_dashes(words)).command {
            Command::Gateway(arguments) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn channelds_command_line_is_taken() {
        let arguments = parse(
            "lagometer gateway -dev -loglevel=-1 -mcb=13 -cwm=false -sa :1 -srb=4096 \
             -cfsm=config/client_authoratative_fsm.json -scr --chs=x.json",
        );
        assert_eq!(arguments.dev, Some(true));
        assert_eq!(arguments.loglevel, Some(-1));
        assert_eq!(arguments.mcb, Some(13));
        assert_eq!(arguments.cwm, Some(false));
        assert_eq!(arguments.sa.as_deref(), Some(":1"));
        assert_eq!(arguments.scr, Some(true));
        assert_eq!(arguments.chs, Some("x.json".into()));
        assert!(arguments.cfsm.is_some());
    }

    #[test]
    fn every_option_of_channeld_is_known() {
        use clap::CommandFactory as _;
        let command = Cli::command();
        let gateway = command.find_subcommand("gateway").unwrap();
        for option in CHANNELD {
            let known = gateway
                .get_arguments()
                .any(|argument| argument.get_long() == Some(option));
            assert!(known, "-{option}");
        }
    }
}
