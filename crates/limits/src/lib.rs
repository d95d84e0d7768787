//! Limits on what peers take from whoever serves them, wherever something is
//! served: by the gateway, by its web port, by `lagometer serve`.
//!
//! - [`Shares`] and [`Places`]: a bounded number of places, shared out by
//!   address; who has most makes room for a newcomer with its oldest.
//! - [`Weights`]: amounts, such as bytes of memory, where not all hold alike; the
//!   largest of the address that holds most has to let go.
//! - [`source_prefix`]: what counts as one address.
//! - [`Debts`]: what those who have gone have still to wait for, for who comes next.
//! - [`LineRate`]: which lines of a log are written when peers cause them without
//!   end.
//! - [`SpareFiles`]: file descriptors in reserve.
//! - [`accept_pending`]: the next connection of a listener, also without a file
//!   left for it.

mod accept;
mod debts;
mod line_rate;
mod places;
mod ranked;
mod shares;
mod source_prefix;
mod spare_files;
mod weights;

pub use accept::accept_pending;
pub use debts::Debts;
pub use line_rate::LineRate;
pub use places::Places;
pub use shares::Shares;
pub use source_prefix::source_prefix;
pub use spare_files::SpareFiles;
pub use weights::Weights;
