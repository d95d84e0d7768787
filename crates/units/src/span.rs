//! Lengths of time, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::quantity::{BadQuantity, Kind, serde_as_written, write_in_units};

/// A length of time written with its unit: "50 ms", "10min", "1.5 s".
///
/// Units: `ns`, `us`, `ms`, `s`, `min`, `h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
];

const KIND: Kind = Kind {
    name: "time",
    units: UNITS,
    unit_names: "ns, us, ms, s, min, h",
    example: "\"20 ms\"",
    range: "between 0 and 10000 h",
};

/// Ten thousand hours: longer than any run, short enough that sums cannot
/// overflow [`crate::Time`].
const LONGEST_NS: f64 = 10_000.0 * 3600e9;

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The span as a standard duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// The span in milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0.as_secs_f64() * 1e3
    }
}

impl FromStr for Span {
    type Err = BadQuantity;

    fn from_str(written: &str) -> Result<Self, BadQuantity> {
        let nanos = KIND.parse(written)?;
        if nanos > LONGEST_NS {
            return Err(KIND.out_of_range(written));
        }
        Ok(Self(Duration::from_nanos(nanos.round() as u64)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Minutes and hours where they come out even to a tenth: "283 s" says
        // more than "4.716667 min".
        let nanos = self.0.as_nanos() as f64;
        let is_apt = |&(_, factor): &(_, f64)| factor <= 1e9 || nanos * 10.0 % factor == 0.0;
        let apt = UNITS.iter().rposition(is_apt).unwrap_or_default();
        write_in_units(formatter, nanos, &UNITS[..=apt])
    }
}

serde_as_written!(Span);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_understood_with_and_without_a_blank() {
        assert_eq!("50ms".parse(), Ok(Span::from_millis(50)));
        assert_eq!(" 1.5 s ".parse(), Ok(Span::from_millis(1500)));
        assert_eq!("10min".parse(), Ok(Span::from_millis(600_000)));
        assert_eq!("0".parse(), Ok(Span::ZERO));
    }

    #[test]
    fn uneven_minutes_are_written_in_seconds() {
        let written = |seconds| Span(Duration::from_secs(seconds)).to_string();
        assert_eq!(written(283), "283 s");
        assert_eq!(written(90), "1.5 min");
        assert_eq!(written(65 * 60), "65 min");
        assert_eq!(written(5400), "1.5 h");
        assert_eq!(Span::ZERO.to_string(), "0 ns");
    }

    #[test]
    fn a_bare_number_is_refused_with_the_units() {
        let refused = "50".parse::<Span>().unwrap_err().to_string();
        assert!(refused.contains("ns, us, ms"), "{refused}");
    }

    #[test]
    fn negative_and_endless_spans_are_refused() {
        assert!("-5 ms".parse::<Span>().is_err());
        assert!("99999999 h".parse::<Span>().is_err());
        assert!("ms".parse::<Span>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(micros in 0_u64..10_000_000_000) {
            let span = Span(Duration::from_micros(micros));
            let back: Span = span.to_string().parse().unwrap();
            let error = back.0.abs_diff(span.0);
            prop_assert!(error <= Duration::from_millis(5), "{span} became {back}");
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = text.parse::<Span>();
        }
    }
}
