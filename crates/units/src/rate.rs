//! Data rates, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::quantity::{BadQuantity, Kind, serde_as_written, write_in_units};

/// A data rate written with its unit: "10 Mbit/s". Held in bits per second,
/// never zero.
///
/// Units: `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s` (powers of 1000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const UNITS: &[(&str, f64)] = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
];

const KIND: Kind = Kind {
    name: "rate",
    units: UNITS,
    unit_names: "bit/s, kbit/s, Mbit/s, Gbit/s",
    example: "\"10 Mbit/s\"",
    range: "between 1 bit/s and 1000 Gbit/s",
};

impl Rate {
    /// A rate of `bits_per_second`, or nothing if that is zero.
    #[must_use]
    pub const fn from_bits_per_second(bits_per_second: u64) -> Option<Self> {
        if bits_per_second == 0 {
            None
        } else {
            Some(Self(bits_per_second))
        }
    }

    /// The rate in bits per second; at least one.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// How long `bytes` take at this rate, rounded up to the nanosecond.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Duration {
        let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes pass at this rate within `span`.
    #[must_use]
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = span.as_nanos() * u128::from(self.0) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = BadQuantity;

    fn from_str(written: &str) -> Result<Self, BadQuantity> {
        let bits = KIND.parse(written)?;
        if !(1.0..=1e12).contains(&bits) {
            return Err(KIND.out_of_range(written));
        }
        Ok(Self(bits.round() as u64))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in_units(formatter, self.0 as f64, UNITS)
    }
}

serde_as_written!(Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_bytes_agree() {
        let rate: Rate = "10 Mbit/s".parse().unwrap();
        assert_eq!(rate.time_for(1250), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), 1250);
    }

    #[test]
    fn zero_and_byte_rates_are_refused() {
        assert!("0 bit/s".parse::<Rate>().is_err());
        assert!("0".parse::<Rate>().is_err());
        assert!("10 MB/s".parse::<Rate>().is_err());
    }

    #[test]
    fn is_written_in_the_largest_unit_that_fits() {
        assert_eq!(Rate(1_500_000).to_string(), "1.5 Mbit/s");
        assert_eq!(Rate(64).to_string(), "64 bit/s");
    }
}
