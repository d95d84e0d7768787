//! Options for a world that several processes play.

use clap::{ArgGroup, Args};
use lagometer_units::Span;

use super::{NatsArguments, SecretArguments};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("several").multiple(true).args(["workers", "server_workers"]))]
pub(crate) struct ClusterArguments {
    /// Share the players among so many processes; this one keeps the game
    /// servers that no other process has, and one that is lost is replaced
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        conflicts_with_all = ["testbed", "network", "transport"]
    )]
    pub(crate) workers: Option<u32>,
    /// Share the game servers that simulate a part of the world each, as those
    /// of `spatial` do, among so many processes more; one that is lost is
    /// replaced
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        conflicts_with_all = ["testbed", "network", "transport"]
    )]
    pub(crate) server_workers: Option<u32>,
    /// Wait here for the workers, which other machines start with --join,
    /// instead of starting them
    #[arg(long, value_name = "HOST:PORT", requires_all = ["several", "gateway"])]
    pub(crate) coordinate: Option<String>,
    /// Be one of the workers of the world that is coordinated there, or without an address of
    /// the one that is coordinated over --nats with the same secret
    #[arg(
        long,
        value_name = "HOST:PORT",
        num_args = 0..=1,
        default_missing_value = Self::OVER_NATS,
        conflicts_with_all = [
            "scenario", "gateway", "servers", "metrics", "export", "players", "until_saturated",
            "join_every", "duration", "seed", "observers", "json", "testbed", "network",
            "transport", "threads", "html", "no_html", "workers", "server_workers", "coordinate"
        ]
    )]
    pub(crate) join: Option<String>,
    /// Have the workers of a world and its coordinator, which waits for them, meet over these
    /// NATS servers, as in `nats://10.0.0.1:4222` or `tls://nats.example`, separated by commas
    #[arg(
        long,
        value_name = "URL,…",
        conflicts_with_all = ["coordinate", "testbed", "network", "transport", "until_saturated"]
    )]
    pub(crate) nats: Option<String>,
    #[command(flatten)]
    pub(crate) reached: NatsArguments,
    /// Which of the workers, counted from 0, those with players first, as for
    /// the pods of an indexed job; any that has not come yet by default
    #[arg(long, value_name = "N", requires = "join")]
    pub(crate) index: Option<u32>,
    /// How long workers wait for their coordinator, and it for them and for
    /// a replacement of one that is lost
    #[arg(long, value_name = "TIME", default_value = "1min")]
    pub(crate) wait: Span,
    #[command(flatten)]
    pub(crate) secret: SecretArguments,
}

impl ClusterArguments {
    /// What `join` has in place of an address where the coordinator is met over NATS.
    pub(crate) const OVER_NATS: &str = "";
}
