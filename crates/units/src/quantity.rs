//! A number with a unit behind it, as people write it.

use thiserror::Error;

/// Why a written quantity was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadQuantity {
    /// There is no number in front.
    #[error("`{written}` does not start with a number; write {example}")]
    NoNumber {
        /// The text that was not understood.
        written: String,
        /// A quantity of the expected kind.
        example: &'static str,
    },
    /// The unit is missing or is not one of the kind expected.
    #[error("`{written}` has no unit of {kind}; write one of {units}, as in {example}")]
    NoUnit {
        /// The text that was not understood.
        written: String,
        /// What the quantity measures.
        kind: &'static str,
        /// The units that are understood.
        units: &'static str,
        /// A quantity of the expected kind.
        example: &'static str,
    },
    /// The quantity is outside what its kind permits.
    #[error("`{written}` is out of range: {kind} must be {range}")]
    OutOfRange {
        /// The text that was not understood.
        written: String,
        /// What the quantity measures.
        kind: &'static str,
        /// The permitted range.
        range: &'static str,
    },
}

/// What a kind of quantity accepts: its name, its units with their factors,
/// and an example for messages.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) units: &'static [(&'static str, f64)],
    pub(crate) unit_names: &'static str,
    pub(crate) example: &'static str,
    pub(crate) range: &'static str,
}

impl Kind {
    /// Reads a number and its unit and returns the product with the unit's
    /// factor. Negative and non-finite values are out of range.
    pub(crate) fn parse(&self, written: &str) -> Result<f64, BadQuantity> {
        let trimmed = written.trim();
        let end = trimmed
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+')))
            .unwrap_or(trimmed.len());
        let (digits, unit) = trimmed.split_at(end);
        let number: f64 = digits
            .replace('_', "")
            .parse()
            .map_err(|_| BadQuantity::NoNumber {
                written: written.to_owned(),
                example: self.example,
            })?;
        let unit = unit.trim();
        let factor = self
            .units
            .iter()
            .find_map(|&(name, factor)| (name == unit).then_some(factor))
            // Zero of anything needs no unit.
            .or_else(|| (unit.is_empty() && number == 0.0).then_some(0.0))
            .ok_or_else(|| BadQuantity::NoUnit {
                written: written.to_owned(),
                kind: self.name,
                units: self.unit_names,
                example: self.example,
            })?;
        let value = number * factor;
        if value.is_finite() && value >= 0.0 {
            Ok(value)
        } else {
            Err(self.out_of_range(written))
        }
    }

    pub(crate) fn out_of_range(&self, written: &str) -> BadQuantity {
        BadQuantity::OutOfRange {
            written: written.to_owned(),
            kind: self.name,
            range: self.range,
        }
    }
}

/// Writes `value` in the largest of `units` (ascending) that leaves at least
/// one before the point, with no more digits than it needs.
pub(crate) fn write_in_units(
    formatter: &mut std::fmt::Formatter<'_>,
    value: f64,
    units: &[(&'static str, f64)],
) -> std::fmt::Result {
    let (name, factor) = units
        .iter()
        .rev()
        .find(|&&(_, factor)| value >= factor)
        .unwrap_or(&units[0]);
    let scaled = value / factor;
    let rounded = (scaled * 1e6).round() / 1e6;
    write!(formatter, "{rounded} {name}")
}

/// Implements `Deserialize` from a string by `FromStr` and `Serialize` by
/// `Display`, the same for every quantity.
macro_rules! serde_as_written {
    ($type:ty) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($crate::quantity::WrittenVisitor::<Self>(
                    std::marker::PhantomData,
                ))
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}
pub(crate) use serde_as_written;

/// Accepts a string and hands it to `FromStr`; a bare number is handed over as
/// its digits, so that the refusal is the quantity's own and names the units.
pub(crate) struct WrittenVisitor<T>(pub(crate) std::marker::PhantomData<T>);

impl<T: std::str::FromStr<Err = BadQuantity>> serde::de::Visitor<'_> for WrittenVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a quantity with its unit, in quotes")
    }

    fn visit_str<E: serde::de::Error>(self, written: &str) -> Result<T, E> {
        written.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}
