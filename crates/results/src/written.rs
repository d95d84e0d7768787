//! How figures are written: the same way in a verdict, in the table, on the page and in
//! a comparison, so that a reader recognises a number wherever it appears.

pub mod units;

/// What stands where nothing was measured.
pub const NOTHING: &str = "–";

/// A number of bytes that is known, or [`NOTHING`] for 0.
#[must_use]
pub fn known_bytes(bytes: u32) -> String {
    match bytes {
        0 => NOTHING.to_owned(),
        known => known.to_string(),
    }
}

/// Milliseconds without the unit: `8.25`, `62.1`, `512`; from ten seconds on
/// in seconds *with* the unit, `138 s`, because five digits of milliseconds
/// are not read but counted.
#[must_use]
pub fn milliseconds(value: f64) -> String {
    let size = value.abs();
    if !size.is_finite() {
        NOTHING.to_owned()
    } else if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else if size < 9_999.5 {
        format!("{value:.0}")
    } else if size < 99_950.0 {
        format!("{:.1} s", value / 1e3)
    } else if size < 1e12 {
        format!("{:.0} s", value / 1e3)
    } else {
        format!("{:.0e} s", value / 1e3)
    }
}

/// Milliseconds with the unit: `62.1 ms`, `138 s`.
#[must_use]
pub fn milliseconds_with_unit(value: f64) -> String {
    let written = milliseconds(value);
    if written.ends_with('s') || written == NOTHING {
        written
    } else {
        written + " ms"
    }
}

/// A share between 0 and 1 in per cent, without the sign.
///
/// Never rounded up: `100` means all of them, and 12 late messages in a
/// million are not hidden.
#[must_use]
pub fn share(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let per_cent = value.clamp(0.0, 1.0) * 100.0;
    if per_cent >= 100.0 {
        return "100".to_owned();
    }
    let (decimals, scale) = if per_cent >= 99.99 {
        (4, 1e4)
    } else {
        (2, 1e2)
    };
    // A hair is added before cutting: 0.29 times 100 is 28.999…
    let cut = ((per_cent * scale + 1e-6).floor() / scale).min(100.0 - 1.0 / scale);
    format!("{cut:.decimals$}")
}

/// A share of lost messages in per cent, without the sign: as [`share`], but
/// never rounded down. `0` means none of them.
#[must_use]
pub fn lost_share(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let per_cent = value.clamp(0.0, 1.0) * 100.0;
    if per_cent <= 0.0 {
        return "0".to_owned();
    }
    let (decimals, scale) = if per_cent < 0.01 { (4, 1e4) } else { (2, 1e2) };
    let raised = ((per_cent * scale - 1e-6).ceil() / scale).max(1.0 / scale);
    format!("{raised:.decimals$}")
}

/// A factor without its sign: `1.49`, `12.4`.
#[must_use]
pub fn factor(value: f64) -> String {
    if !value.is_finite() || value.abs() >= 1e9 {
        NOTHING.to_owned()
    } else if value.abs() < 9.995 {
        format!("{value:.2}")
    } else if value.abs() < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A count with thin spaces between thousands: `12 000`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut written = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push('\u{202f}');
        }
        written.push(digit);
    }
    written
}

/// Megabits for each second in the unit that leaves one to three digits:
/// `14.3 Gbit/s`.
#[must_use]
pub fn rate(mbit_per_s: f64) -> String {
    if mbit_per_s.abs() >= 999.5 {
        format!("{} Gbit/s", factor(mbit_per_s / 1e3))
    } else {
        format!("{} Mbit/s", factor(mbit_per_s))
    }
}

/// Bytes in the unit that leaves one to three digits: `9.61 MB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    let value = value as f64;
    for (size, unit) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if value >= size {
            return format!("{} {unit}", factor(value / size));
        }
    }
    format!("{value:.0} B")
}

/// A length of play: `45 s`, `10 min`, `1 h 5 min`.
#[must_use]
pub fn play_time(seconds: f64) -> String {
    if !seconds.is_finite() || !(0.0..1e9).contains(&seconds) {
        return NOTHING.to_owned();
    }
    if seconds < 10.0 {
        return format!("{seconds:.1} s").replace(".0 ", " ");
    }
    let whole = seconds.round() as u64;
    let parts = [
        (whole / 3600, "h"),
        (whole / 60 % 60, "min"),
        (whole % 60, "s"),
    ];
    let written: Vec<String> = parts
        .iter()
        .filter(|(value, _)| *value > 0)
        .map(|(value, unit)| format!("{value} {unit}"))
        .collect();
    written.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_keep_three_digits_and_turn_to_seconds_when_long() {
        let written: Vec<String> = [
            0.0, 8.254, 9.996, 62.06, 99.96, 511.7, 9_999.4, 9_999.6, 138_568.0,
        ]
        .iter()
        .map(|&value| milliseconds(value))
        .collect();
        assert_eq!(
            written,
            [
                "0.00", "8.25", "10.0", "62.1", "100", "512", "9999", "10.0 s", "139 s"
            ]
        );
        assert_eq!(milliseconds_with_unit(62.06), "62.1 ms");
        assert_eq!(milliseconds_with_unit(138_568.0), "139 s");
    }

    #[test]
    fn only_all_of_them_is_a_hundred_per_cent() {
        assert_eq!(share(1.0), "100");
        assert_eq!(share(0.999_999_99), "99.9999");
        assert_eq!(share(0.999_95), "99.9950");
        assert_eq!(share(0.998_26), "99.82");
        assert_eq!(share(0.29), "29.00");
        assert_eq!(share(0.0), "0.00");
    }

    #[test]
    fn no_loss_is_rounded_away() {
        let written: Vec<String> = [0.0, 1e-9, 0.004_25, 0.034_2, 1.0]
            .iter()
            .map(|&lost| lost_share(lost))
            .collect();
        assert_eq!(written, ["0", "0.0001", "0.43", "3.42", "100.00"]);
    }

    #[test]
    fn no_number_is_written_at_length() {
        for value in [
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
            -f64::MAX,
            f64::MIN_POSITIVE,
        ] {
            for written in [
                milliseconds(value),
                share(value),
                factor(value),
                play_time(value),
            ] {
                assert!(written.len() < 12, "{value} became {written}");
            }
        }
    }

    #[test]
    fn counts_bytes_and_play_time_are_grouped() {
        assert_eq!(count(12_000), "12\u{202f}000");
        assert_eq!(count(999), "999");
        assert_eq!(bytes(9_612_345), "9.61 MB");
        assert_eq!(bytes(12), "12 B");
        assert_eq!(play_time(600.0), "10 min");
        assert_eq!(play_time(3900.0), "1 h 5 min");
        assert_eq!(play_time(2.5), "2.5 s");
    }
}
