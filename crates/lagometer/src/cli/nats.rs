//! Options for NATS, and for the workers and nodes that use it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lagometer_gateway::core::ShardCount;
use lagometer_units::Span;

/// As whom a NATS server is reached, and with which subjects.
#[derive(Debug, Args)]
pub(crate) struct NatsUser {
    /// What all subjects begin with, so that several may use one server
    #[arg(
        long = "nats-prefix",
        value_name = "PREFIX",
        default_value = Self::PREFIX,
        requires = "nats"
    )]
    pub(crate) prefix: String,
    /// A file with the credentials of a NATS user, as `nsc` writes it
    #[arg(long = "nats-creds", value_name = "FILE", requires = "nats")]
    pub(crate) creds: Option<PathBuf>,
    /// A file with the certificates that a `tls://` server is held against; those of
    /// the system by default
    #[arg(long = "nats-ca", value_name = "FILE", requires = "nats")]
    pub(crate) authorities: Option<PathBuf>,
}

impl NatsUser {
    /// What subjects begin with where nothing else is asked for.
    pub(crate) const PREFIX: &str = "lagometer";
}

/// How a NATS server is reached.
#[derive(Debug, Args)]
pub(crate) struct NatsArguments {
    #[command(flatten)]
    pub(crate) user: NatsUser,
    /// How long to wait for a NATS server at the start
    #[arg(
        id = "nats_wait",
        long = "nats-wait",
        value_name = "TIME",
        default_value = "10 s",
        requires = "nats"
    )]
    pub(crate) wait: Span,
}

/// What of a gateway a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// All of it
    All,
    /// Connections: logins, frames, compression, slow readers
    Edge,
    /// Channels: data, fan-out, interest, handover. Each shard of them is owned by one node,
    /// and others stand by for it
    Channels,
}

/// A gateway in several processes.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// Which role of the gateway this process has; edges and channels of one find each other
    /// over --nats
    #[arg(long, value_enum, default_value = "all")]
    pub(crate) role: RoleName,
    /// The NATS servers that join the nodes of a gateway, as in
    /// `nats://10.0.0.1:4222` or `tls://nats.example`, separated by commas
    #[arg(long, value_name = "URL,…")]
    pub(crate) nats: Option<String>,
    /// Into how many shards the channels are divided, which nodes for channels share out
    /// among them. The same for all nodes of a gateway
    #[arg(
        long,
        value_name = "N",
        default_value_t = Self::SHARDS,
        requires = "nats",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(ShardCount::MOST))
    )]
    pub(crate) shards: u16,
    #[command(flatten)]
    pub(crate) user: NatsUser,
}

impl NodeArguments {
    /// As many as four nodes can share out: each more costs every node a little.
    const SHARDS: u16 = 4;
}

impl Default for NodeArguments {
    fn default() -> Self {
        Self {
            role: RoleName::All,
            nats: None,
            shards: Self::SHARDS,
            user: NatsUser {
                prefix: NatsUser::PREFIX.to_owned(),
                creds: None,
                authorities: None,
            },
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// The NATS servers whose jobs to play, as in `nats://10.0.0.1:4222` or
    /// `tls://nats.example`, separated by commas
    #[arg(long, value_name = "URL,…")]
    pub(crate) nats: String,
    #[command(flatten)]
    pub(crate) reached: NatsArguments,
    /// Jobs to play at once; as many as there are processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
