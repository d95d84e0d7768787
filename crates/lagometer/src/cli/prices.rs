//! Prices by which a player's hour is reckoned.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PricesArguments {
    /// Reckon what a player's hour costs by the price list in this TOML file instead of those
    /// that are built in; may be given several times. Budgets on money go by the first
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Vec<PathBuf>,
}
