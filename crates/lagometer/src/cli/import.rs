//! Options of `lagometer import`.

use std::path::PathBuf;

use clap::Args;
use lagometer_lab::traffic::AddressPattern;
use lagometer_units::Span;

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Logs, each of which becomes a lane; with `--traffic` one capture
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// Write the sizes and times of a capture's messages (pcapng, pcap) here, as a log for the
    /// workload `replay`, instead
    #[arg(long, value_name = "PATH", conflicts_with_all = ["json", "html", "interval"])]
    pub(crate) traffic: Option<PathBuf>,
    /// Which side of the capture is the client: an address, as in `10.0.0.2:50123`, or a part
    /// of one; who sent first by default
    #[arg(long, value_name = "ADDRESS", requires = "traffic")]
    pub(crate) client: Option<AddressPattern>,
    /// Which is the server, as in `:7777`
    #[arg(long, value_name = "ADDRESS", requires = "traffic")]
    pub(crate) server: Option<AddressPattern>,
    /// From one message to the next in the logs
    #[arg(long, default_value = "50 ms", value_name = "TIME")]
    pub(crate) interval: Span,
    /// Write the result document here; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page here
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
}
