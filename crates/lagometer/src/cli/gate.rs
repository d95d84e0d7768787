//! What makes a gate of a run: whether it must hold, and where that is written.

use std::path::PathBuf;

use clap::Args;
use lagometer_units::Share;

#[derive(Debug, Args)]
pub(crate) struct GateArguments {
    /// Exit with 1 when a budget is missed, the run is not valid or was cut short, or
    /// something became worse than in the earlier run beyond chance (bytes on the wire also
    /// where too little was played to know what chance does, if both played the same seeds in
    /// virtual time)
    #[arg(long = "assert")]
    pub(crate) assert_holds: bool,
    /// By what share a figure may be worse than in the earlier run
    #[arg(long, value_name = "SHARE", default_value = lagometer_report::USUAL_TOLERANCE)]
    pub(crate) tolerance: Share,
    /// Write what holds and what does not here, as `JUnit` XML
    #[arg(long, value_name = "PATH")]
    pub(crate) junit: Option<PathBuf>,
    /// Write what does not hold here, as Markdown
    #[arg(long, value_name = "PATH")]
    pub(crate) summary: Option<PathBuf>,
}

impl GateArguments {
    /// Whether anybody asks what holds.
    pub(crate) const fn is_asked(&self) -> bool {
        self.assert_holds || self.junit.is_some() || self.summary.is_some()
    }
}
