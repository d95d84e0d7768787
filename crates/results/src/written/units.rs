//! Delays from a microsecond up, rates and sizes, written short.

use super::{NOTHING, factor};

/// Milliseconds with the unit that suits, three digits: `3.92 µs`, `62.1 ms`.
#[must_use]
pub fn delay(milliseconds: f64) -> String {
    if !milliseconds.is_finite() {
        return NOTHING.to_owned();
    }
    let (value, unit) = match milliseconds {
        short if short < 1e-3 => (short * 1e6, "ns"),
        short if short < 1.0 => (short * 1e3, "µs"),
        middle if middle < 1e3 => (middle, "ms"),
        long => (long / 1e3, "s"),
    };
    format!("{} {unit}", factor(value))
}

/// Megabits each second with the unit that suits: `28.5 Mbit/s`.
#[must_use]
pub fn rate(mbit_per_s: f64) -> String {
    if !mbit_per_s.is_finite() {
        return NOTHING.to_owned();
    }
    let (value, unit) = match mbit_per_s {
        low if low < 1.0 => (low * 1e3, "kbit/s"),
        middle if middle < 1e3 => (middle, "Mbit/s"),
        high => (high / 1e3, "Gbit/s"),
    };
    format!("{} {unit}", factor(value))
}

/// A message's size: `1 B`, `1400 B`, `16 KiB`.
#[must_use]
pub fn size(bytes: u32) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KiB", bytes / 1024)
    } else {
        format!("{bytes} B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_value() {
        assert_eq!(delay(0.003_92), "3.92 µs");
        assert_eq!(delay(0.000_5), "500 ns");
        assert_eq!(delay(62.14), "62.1 ms");
        assert_eq!(delay(f64::NAN), "–");
        assert_eq!(rate(71_300.0), "71.3 Gbit/s");
        assert_eq!(rate(5.7), "5.70 Mbit/s");
        assert_eq!(rate(0.25), "250 kbit/s");
        assert_eq!(size(16_384), "16 KiB");
        assert_eq!(size(1400), "1400 B");
    }
}
