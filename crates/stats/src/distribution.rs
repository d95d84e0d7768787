//! A distribution of delays that never clips: recorded one by one, merged
//! exactly, written as text.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::quantiles::{nanos, nearest_rank};

mod decode;

/// Significant decimal digits that are kept: a value is known to better than
/// one part in a thousand.
const SIGNIFICANT_DIGITS: u8 = 3;

/// The most values one distribution holds by merging, reading or adding in
/// bulk: 2⁶². What [`Distribution::record`] adds one by one on top could only
/// overflow a count after a century of nanoseconds.
const MOST_VALUES: u64 = 1 << 62;

/// Durations in nanoseconds, from zero to 584 years, to three significant
/// digits (an `HdrHistogram` that grows as it must).
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
}

/// More values than a distribution can count; nothing was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a distribution holds at most 2^62 values")]
pub struct TooManyValues;

/// Why a written distribution was not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadDistribution {
    /// The text is longer than any distribution of ours.
    #[error("the histogram's text is {len} characters long, more than {limit}")]
    TooLong {
        /// Length of the text in bytes.
        len: usize,
        /// The longest text that is read.
        limit: usize,
    },
    /// The text is not base64.
    #[error("the histogram is not base64")]
    NotBase64,
    /// The bytes are not an `HdrHistogram` V2 of nanoseconds to three digits.
    #[error("the histogram is not an HdrHistogram V2 of three digits: {0}")]
    NotOurs(&'static str),
    /// The counts overflow.
    #[error(transparent)]
    TooManyValues(#[from] TooManyValues),
}

impl Distribution {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        let mut histogram = Histogram::new(SIGNIFICANT_DIGITS)
            .unwrap_or_else(|_| unreachable!("three digits are within the library's range"));
        histogram.auto(true);
        Self { histogram }
    }

    /// Records one duration, however long.
    pub fn record(&mut self, duration: Duration) {
        self.add(nanos(duration), 1);
    }

    /// Records `count` equal durations.
    ///
    /// # Errors
    ///
    /// [`TooManyValues`] if the distribution would hold more than 2⁶².
    pub fn record_n(&mut self, duration: Duration, count: u64) -> Result<(), TooManyValues> {
        self.check_room(count)?;
        self.add(nanos(duration), count);
        Ok(())
    }

    /// Adds everything `other` holds: the result is the same as if all values
    /// had been recorded here.
    ///
    /// # Errors
    ///
    /// [`TooManyValues`] if the distribution would hold more than 2⁶².
    pub fn merge(&mut self, other: &Self) -> Result<(), TooManyValues> {
        self.check_room(other.len())?;
        self.histogram
            .add(&other.histogram)
            .unwrap_or_else(|_| unreachable!("the histogram grows to any 64-bit value"));
        Ok(())
    }

    /// How many values were recorded.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The value with the given rank, counted from 1, in ascending order:
    /// the upper end of its bucket, so never understated and at most one
    /// part in a thousand too long. Zero when the rank is zero or there are
    /// fewer values.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Duration {
        if rank == 0 || rank > self.len() {
            return Duration::ZERO;
        }
        let mut seen = 0_u64;
        for step in self.histogram.iter_recorded() {
            seen += step.count_at_value();
            if seen >= rank {
                return Duration::from_nanos(
                    self.histogram.highest_equivalent(step.value_iterated_to()),
                );
            }
        }
        Duration::ZERO
    }

    /// How many values are at most `limit`, to the resolution of a bucket.
    #[must_use]
    pub fn count_within(&self, limit: Duration) -> u64 {
        let limit = nanos(limit);
        self.histogram
            .iter_recorded()
            .take_while(|step| step.value_iterated_to() <= limit)
            .map(|step| step.count_at_value())
            .sum()
    }

    /// The values at nearest-rank quantiles of so many thousandths, which ascend: each
    /// as [`at_rank`](Self::at_rank) has it. All zero when empty.
    #[must_use]
    pub fn at_per_mille<const N: usize>(&self, per_mille: [u32; N]) -> [Duration; N] {
        let mut wanted = per_mille.map(|share| (nearest_rank(self.len(), share), 0));
        let mut seen = 0_u64;
        for step in self.histogram.iter_recorded() {
            let count = step.count_at_value();
            for (rank, found) in &mut wanted {
                if seen < *rank && *rank <= seen + count {
                    *found = self.histogram.highest_equivalent(step.value_iterated_to());
                }
            }
            seen += count;
        }
        wanted.map(|(_, nanos)| Duration::from_nanos(nanos))
    }

    /// The smallest value. Zero when empty.
    #[must_use]
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.histogram.min())
    }

    /// The largest value. Zero when empty.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// The mean, in nanoseconds, to one part in a thousand. Zero when empty.
    #[must_use]
    pub fn mean_nanos(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let mut sum = 0.0_f64;
        for step in self.histogram.iter_recorded() {
            let value = self.histogram.median_equivalent(step.value_iterated_to());
            sum += value as f64 * step.count_at_value() as f64;
        }
        sum / self.len() as f64
    }

    /// The distribution as text that a document carries and the tools of
    /// the `HdrHistogram` project read: encoding V2, compressed, in base64.
    #[must_use]
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut bytes)
            .unwrap_or_else(|_| unreachable!("counts of at most 2^62 fit the encoding"));
        STANDARD.encode(bytes)
    }

    /// Reads what [`to_base64`](Self::to_base64) wrote, and the same encoding
    /// uncompressed, as older documents have it, with memory bounded whatever
    /// the text says.
    ///
    /// # Errors
    ///
    /// [`BadDistribution`] for anything else.
    pub fn from_base64(text: &str) -> Result<Self, BadDistribution> {
        decode::from_base64(text)
    }

    fn add(&mut self, nanos: u64, count: u64) {
        self.histogram
            .record_n(nanos, count)
            .unwrap_or_else(|_| unreachable!("the histogram grows to any 64-bit value"));
    }

    fn check_room(&self, count: u64) -> Result<(), TooManyValues> {
        match self.len().checked_add(count) {
            Some(total) if total <= MOST_VALUES => Ok(()),
            _ => Err(TooManyValues),
        }
    }
}

/// Equal when they hold the same values, whatever room they have grown to.
impl PartialEq for Distribution {
    fn eq(&self, other: &Self) -> bool {
        let steps = |distribution: &Self| {
            distribution
                .histogram
                .iter_recorded()
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect::<Vec<_>>()
        };
        steps(self) == steps(other)
    }
}

/// As [`to_base64`](Distribution::to_base64) writes it.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(serde::de::Error::custom)
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
