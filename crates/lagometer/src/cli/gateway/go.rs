//! Values as Go's flag package reads them: what a command line made for channeld
//! may write for a truth or a number.

/// A truth: `1`, `t`, `T`, `true`, `TRUE`, `True` and their opposites.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("neither true nor false; 1, t, T, TRUE, 0, f, F, FALSE are fine too".into()),
    }
}

/// A whole number that is not negative.
pub(super) fn unsigned(text: &str) -> Result<u32, String> {
    integer(text).and_then(|number| {
        u32::try_from(number).map_err(|_| format!("must be from 0 to {}", u32::MAX))
    })
}

/// A whole number: decimal, or with `0x`, `0o` or `0`, `0b` in front
/// hexadecimal, octal, binary; `_` may stand between digits.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is no whole number, such as 65536 or 0x10000");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, &*lower)
    };
    // An underscore stands between two digits, or after the prefix.
    let digits = digits
        .strip_prefix('_')
        .filter(|_| radix != 10)
        .unwrap_or(digits);
    let is_sound = !digits.ends_with('_') && !digits.starts_with('_') && !digits.contains("__");
    let plain: String = digits.chars().filter(|&digit| digit != '_').collect();
    if !is_sound || !plain.starts_with(|first: char| first.is_digit(radix)) {
        return Err(wrong());
    }
    i64::from_str_radix(&plain, radix)
        .ok()
        .and_then(|number| number.checked_mul(sign))
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths_and_numbers_are_read_as_go_reads_them() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(boolean(text), Ok(true), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(boolean(text), Ok(false), "{text}");
        }
        for text in ["", "yes", "tRUE", "2"] {
            assert!(boolean(text).is_err(), "{text}");
        }
        for (text, number) in [
            ("0", 0),
            ("65536", 65_536),
            ("0x00010000", 65_536),
            ("0X1FfFf", 131_071),
            ("-5", -5),
            ("+5", 5),
            ("0b101", 5),
            ("0o17", 15),
            ("017", 15),
            ("0x_1_0", 16),
            ("1_000", 1000),
            ("-0x10", -16),
        ] {
            assert_eq!(integer(text), Ok(number), "{text}");
        }
        for text in [
            "", "-", "0x", "1e3", "1__0", "_1", "0x1__0", "0x1_", "09", "--5", "0x-1", "ten",
        ] {
            assert!(integer(text).is_err(), "{text}");
        }
        assert_eq!(unsigned("0xffffffff"), Ok(u32::MAX));
        assert!(unsigned("-1").is_err() && unsigned("0x100000000").is_err());
    }
}
