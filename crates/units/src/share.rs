//! Shares and probabilities, as people write them.

use std::fmt;
use std::str::FromStr;

use crate::quantity::{BadQuantity, Kind, serde_as_written};

/// A share or probability between 0 and 1, written in per cent: "1 %",
/// "99.9 %".
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(f64);

const KIND: Kind = Kind {
    name: "share",
    units: &[("%", 0.01)],
    unit_names: "%",
    example: "\"1 %\"",
    range: "between 0 % and 100 %",
};

impl Share {
    /// None of it.
    pub const NONE: Self = Self(0.0);
    /// All of it.
    pub const ALL: Self = Self(1.0);

    /// The share `fraction` of a whole, or nothing if that is not a number
    /// between 0 and 1.
    #[must_use]
    pub fn from_fraction(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }

    /// The share as a number between 0 and 1.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = BadQuantity;

    fn from_str(written: &str) -> Result<Self, BadQuantity> {
        let fraction = KIND.parse(written)?;
        Self::from_fraction(fraction).ok_or_else(|| KIND.out_of_range(written))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.0 * 1e8).round() / 1e6;
        write!(formatter, "{percent} %")
    }
}

serde_as_written!(Share);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cent_are_understood() {
        assert_eq!("1 %".parse(), Ok(Share(0.01)));
        assert_eq!("100%".parse(), Ok(Share::ALL));
        assert!("101 %".parse::<Share>().is_err());
        assert!("0.01".parse::<Share>().is_err());
    }

    #[test]
    fn is_written_in_per_cent() {
        assert_eq!(Share(0.999).to_string(), "99.9 %");
    }
}
