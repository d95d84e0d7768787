//! The words of `lagometer gateway`: few of its own, and all of channeld's, so
//! that a command line made for channeld starts this gateway.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

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
];

const CHANNELD_HEADING: &str = "As channeld has them, with one dash or two";

#[derive(Debug, Default, Args)]
pub(crate) struct GatewayArguments {
    /// The settings, as deploy/gateway.toml shows them; options go before it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
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
    /// End when the program that started this one does
    #[arg(long, hide = true)]
    pub(crate) with_parent: bool,
    /// Ban clients that do not log in in time or misbehave
    #[arg(long)]
    pub(crate) anti_ddos: bool,

    /// For development: everyone is let in
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) dev: Option<bool>,
    /// How much to log: -1 debug, 0 info, 1 warnings, 2 errors, 3 nothing
    #[arg(long, allow_negative_numbers = true, value_name = "LEVEL", help_heading = CHANNELD_HEADING)]
    pub(crate) loglevel: Option<i32>,
    /// The file to log to
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) logfile: Option<PathBuf>,
    /// What servers speak: tcp, tls, ws, wss, kcp, kcp-tuned
    #[arg(long, value_name = "NETWORK", help_heading = CHANNELD_HEADING)]
    pub(crate) sn: Option<String>,
    /// Where servers connect, as in `:11288`
    #[arg(long, value_name = "ADDR", help_heading = CHANNELD_HEADING)]
    pub(crate) sa: Option<String>,
    /// What servers may send when: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) sfsm: Option<PathBuf>,
    /// Servers are let in without being asked who they are
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) sba: Option<bool>,
    /// Servers that broke off may come back
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) scr: Option<bool>,
    /// For how many milliseconds they may; 0 is for ever
    #[arg(long, value_name = "MS", help_heading = CHANNELD_HEADING)]
    pub(crate) scrt: Option<u32>,
    /// Clients wait until a server owns GLOBAL
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) cwm: Option<bool>,
    /// What clients speak
    #[arg(long, value_name = "NETWORK", help_heading = CHANNELD_HEADING)]
    pub(crate) cn: Option<String>,
    /// Where clients connect, as in `:12108`
    #[arg(long, value_name = "ADDR", help_heading = CHANNELD_HEADING)]
    pub(crate) ca: Option<String>,
    /// What clients may send when: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) cfsm: Option<PathBuf>,
    /// Keep what clients send
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", help_heading = CHANNELD_HEADING)]
    pub(crate) erp: Option<bool>,
    /// In this folder; `replays` by default
    #[arg(long, value_name = "FOLDER", help_heading = CHANNELD_HEADING)]
    pub(crate) rspd: Option<PathBuf>,
    /// The compression offered: 0 none, 1 snappy
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) ct: Option<u8>,
    /// The world's grid: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) scc: Option<PathBuf>,
    /// The first number of a spatial channel
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING)]
    pub(crate) scs: Option<u32>,
    /// The first number of an entity channel
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING)]
    pub(crate) ecs: Option<u32>,
    /// Bits of a connection's number
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING)]
    pub(crate) mcb: Option<u32>,
    /// With --anti-ddos: milliseconds a client may take to log in
    #[arg(long, value_name = "MS", help_heading = CHANNELD_HEADING)]
    pub(crate) cat: Option<u32>,
    /// With --anti-ddos: failed logins that ban
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING)]
    pub(crate) mfaa: Option<u32>,
    /// With --anti-ddos: refused messages that ban
    #[arg(long, value_name = "N", help_heading = CHANNELD_HEADING)]
    pub(crate) mfd: Option<u32>,
    /// Ticks, intervals and rights by type of channel: a JSON file
    #[arg(long, value_name = "FILE", help_heading = CHANNELD_HEADING)]
    pub(crate) chs: Option<PathBuf>,
    /// Buffer sizes and profiles, taken and passed over
    #[command(flatten)]
    pub(crate) without_effect: WithoutEffect,
}

/// What has no meaning here: buffers grow as they must, and profiles are for
/// the system's tools.
#[derive(Debug, Default, Args)]
pub(crate) struct WithoutEffect {
    #[arg(long, hide = true)]
    srb: Option<u32>,
    #[arg(long, hide = true)]
    swb: Option<u32>,
    #[arg(long, hide = true)]
    crb: Option<u32>,
    #[arg(long, hide = true)]
    cwb: Option<u32>,
    #[arg(long, hide = true)]
    profile: Option<String>,
    #[arg(long, hide = true)]
    profilepath: Option<PathBuf>,
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
