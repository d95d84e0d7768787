//! The mathematics of measurement: what is computed of numbers, whatever they are of.
//!
//! - [`Distribution`]: durations without a ceiling, merged exactly
//! - [`Quantile`], [`position_of`], [`position`]: quantiles, of samples some of which never end
//! - [`SortedSamples`]: quantiles of resamples, without sorting each
//! - [`student`]: Student's t-distribution, and Holm's procedure for many tests at once
//! - [`equivalence()`]: two one-sided tests, whether two things are the same
//! - [`rare`]: what a run says of events that it may have missed
//! - [`jain_index`]: how equally something was shared

mod distribution;
mod equivalence;
mod fairness;
mod quantiles;
pub mod rare;
mod sorted;
mod steady;
pub mod student;

pub use distribution::{BadDistribution, Distribution, TooManyValues};
pub use equivalence::{
    CHANCE as EQUIVALENCE_CHANCE, Equivalence, EquivalenceFinding, FEWEST_EQUIVALENCE_SEEDS,
    equivalence,
};
pub use fairness::jain_index;
pub use quantiles::{
    Quantile, QuantilePosition, at_rank, in_millis, nanos, nearest_rank, position, position_of,
};
pub use sorted::{Counted, SortedSamples};
pub use student::{holm, unsure};
