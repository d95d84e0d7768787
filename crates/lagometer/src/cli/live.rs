//! The option `--live`, which several commands have.

use clap::Args;

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LiveArguments {
    /// Watch it on the terminal while it goes on: lanes, freezes, players, what waits. Where
    /// standard error is no terminal, or `CI` is set, everything is as without
    #[arg(long)]
    pub(crate) live: bool,
}
