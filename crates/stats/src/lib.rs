//! What a run found: distributions without a ceiling, lag episodes, budgets,
//! and the one result document that everything else reads.
//!
//! Nothing here knows where the numbers come from.

mod distribution;
mod document;
mod quantiles;
mod record;

pub use distribution::{BadDistribution, Distribution, TooManyValues};
pub use document::*;
pub use quantiles::nearest_rank;
pub use record::MessageRecord;
