//! Limits on what peers take from whoever serves them, wherever something is
//! served: by the gateway, by its web port, by `lagometer serve`.
//!
//! - [`Shares`] and [`Places`]: a bounded number of places, shared out by
//!   address; who has most makes room for a newcomer with its oldest.
//! - [`household`]: what counts as one address.

mod household;
mod places;
mod shares;

pub use household::household;
pub use places::Places;
pub use shares::Shares;
