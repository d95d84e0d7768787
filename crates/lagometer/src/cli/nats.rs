//! Where NATS is, and the words of its workers.

use std::path::PathBuf;

use clap::Args;
use lagometer_units::Span;

/// How a NATS server is reached.
#[derive(Debug, Args)]
pub(crate) struct NatsArguments {
    /// What all subjects begin with, so that several may use one server
    #[arg(
        long = "nats-prefix",
        value_name = "PREFIX",
        default_value = "lagometer",
        requires = "nats"
    )]
    pub(crate) prefix: String,
    /// A file with the credentials of a NATS user, as `nsc` writes it
    #[arg(long = "nats-creds", value_name = "FILE", requires = "nats")]
    pub(crate) creds: Option<PathBuf>,
    /// A file with the certificates that a `tls://` server is held against; those of
    /// the system by default
    #[arg(long = "nats-ca", value_name = "FILE", requires = "nats")]
    pub(crate) ca: Option<PathBuf>,
    /// How long to wait for a NATS server at the start
    #[arg(
        long = "nats-wait",
        value_name = "TIME",
        default_value = "10 s",
        requires = "nats"
    )]
    pub(crate) wait: Span,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// The NATS servers whose jobs to play, as in `nats://10.0.0.1:4222` or
    /// `tls://nats.example`, separated by commas
    #[arg(long, value_name = "URL,…")]
    pub(crate) nats: String,
    #[command(flatten)]
    pub(crate) reached: NatsArguments,
    /// Seeds to play at once; as many as there are processors by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
