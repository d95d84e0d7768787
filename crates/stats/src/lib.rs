//! What a run found: distributions without a ceiling, lag episodes, budgets,
//! and the one result document that everything else reads.
//!
//! Nothing here knows where the numbers come from.

mod document;

pub use document::*;
