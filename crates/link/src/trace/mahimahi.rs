//! Mahimahi's packet-delivery files: one whole number of milliseconds on each
//! line, never decreasing, each an opportunity to deliver 1500 bytes. After
//! the last line the file starts again, shifted by its last number.
//!
//! As there, an opportunity that finds nothing waiting is lost, and one that
//! is not used up by a packet serves the next one waiting. (Mahimahi counts
//! 1504 bytes, the 4 of its TUN header included; a packet here has none.)

use lagometer_units::BadInput;

use super::bad_line;

/// The bytes one opportunity delivers.
pub const OPPORTUNITY_BYTES: u64 = 1500;

/// The longest trace that is read: a hundred days. It keeps sums in range.
const LONGEST_MS: u64 = 100 * 24 * 3600 * 1000;

/// The instants at which a direction may deliver [`OPPORTUNITY_BYTES`] each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Nanoseconds since the start, never decreasing; not empty, the last one
    /// above zero.
    instants: Vec<u64>,
}

impl Opportunities {
    /// Reads a packet-delivery file. Blank lines are passed over.
    ///
    /// # Errors
    ///
    /// [`BadInput`] if a line is not a whole number of milliseconds or is
    /// smaller than the one before, or if there is none above zero.
    pub fn parse(origin: &str, text: &str) -> Result<Self, BadInput> {
        let mut instants = Vec::new();
        let mut latest_ms = 0;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let millis: u64 = line
                .parse()
                .ok()
                .filter(|&millis| millis <= LONGEST_MS)
                .ok_or_else(|| {
                    bad_line(
                        origin,
                        index,
                        "expected a whole number of milliseconds (a Mahimahi delivery time) \
                         or, on the first line, `lagometer-trace/1`",
                    )
                })?;
            if millis < latest_ms {
                return Err(bad_line(
                    origin,
                    index,
                    format!("delivery times must not decrease, but {millis} follows {latest_ms}"),
                ));
            }
            latest_ms = millis;
            instants.push(millis * 1_000_000);
        }
        if latest_ms == 0 {
            return Err(bad_line(
                origin,
                0,
                "expected at least one delivery time above 0 ms",
            ));
        }
        Ok(Self { instants })
    }

    /// The mean rate in bits per second, at least one.
    #[must_use]
    pub fn mean_bits_per_second(&self) -> u64 {
        let bits = self.instants.len() as f64 * (OPPORTUNITY_BYTES * 8) as f64;
        ((bits * 1e9 / self.lasts() as f64) as u64).max(1)
    }

    /// The nanoseconds after which the trace starts again.
    pub(crate) fn lasts(&self) -> u64 {
        self.instants.last().copied().unwrap_or(1)
    }

    pub(crate) fn instants(&self) -> &[u64] {
        &self.instants
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn twelve_megabits_are_an_opportunity_each_millisecond() {
        let trace = Opportunities::parse("t", "1\n2\n\n3\n4\n").unwrap();
        assert_eq!(trace.mean_bits_per_second(), 12_000_000);
        assert_eq!(trace.lasts(), 4_000_000);
    }

    #[test]
    fn mistakes_name_their_line() {
        let line = |text| Opportunities::parse("t", text).unwrap_err().line;
        assert_eq!(line("1\n2\nx\n"), 3);
        assert_eq!(line("1\n5\n\n4\n"), 4);
        assert_eq!(line("0\n0\n"), 1);
        assert_eq!(line(""), 1);
        assert_eq!(line("1\n-2\n"), 2);
        assert_eq!(line("99999999999999999\n"), 1);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9]{0,20}|[a-z ]|\n)*") {
            if let Ok(trace) = Opportunities::parse("t", &text) {
                prop_assert!(trace.lasts() > 0);
                prop_assert!(trace.instants().is_sorted());
            }
        }
    }
}
