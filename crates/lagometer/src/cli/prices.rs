//! Price lists by which the cost of a player-hour is computed.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PricesArguments {
    /// Compute a player-hour's cost from the price list in this TOML file instead of the
    /// built-in ones; may be given several times. Budgets on money go by the first
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Vec<PathBuf>,
}
