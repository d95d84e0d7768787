//! Amounts of data, as people write them.

use std::fmt;
use std::str::FromStr;

use crate::quantity::{BadQuantity, Kind, serde_as_written, write_in_units};

/// An amount of data in bytes written with its unit: "500 B", "64 KiB".
///
/// Units: `B`, `KB` and `MB` (powers of 1000), `KiB` and `MiB` (of 1024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

const UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1024.0 * 1024.0),
];

/// Written in bytes and powers of 1000 only, so that the text is exact.
const WRITTEN_UNITS: &[(&str, f64)] = &[("B", 1.0), ("KB", 1e3), ("MB", 1e6)];

const KIND: Kind = Kind {
    name: "size",
    units: UNITS,
    unit_names: "B, KB, KiB, MB, MiB",
    example: "\"500 B\"",
    range: "between 0 and 1000000 MB",
};

impl Size {
    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = BadQuantity;

    fn from_str(written: &str) -> Result<Self, BadQuantity> {
        let bytes = KIND.parse(written)?;
        if bytes > 1e12 {
            return Err(KIND.out_of_range(written));
        }
        Ok(Self(bytes.round() as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in_units(formatter, self.0 as f64, WRITTEN_UNITS)
    }
}

serde_as_written!(Size);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_differ() {
        assert_eq!("64 KiB".parse(), Ok(Size(65_536)));
        assert_eq!("64 KB".parse(), Ok(Size(64_000)));
    }

    #[test]
    fn text_is_exact() {
        for bytes in [0, 1, 999, 1_000, 1_024, 65_536, 1_234_567] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
    }
}
