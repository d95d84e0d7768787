//! Reading TOML so that a mistake is answered with one line that names the
//! file, the line and what was expected.

use serde::de::DeserializeOwned;
use thiserror::Error;

/// What was wrong with an input file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{origin}:{line}: {message}")]
pub struct BadInput {
    /// The file, or the name under which a built-in text is known.
    pub origin: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong and what was expected, on one line.
    pub message: String,
}

impl BadInput {
    /// A mistake at the first line of `text` that contains `needle`, or at
    /// line 1 where none does.
    ///
    /// For checks that come after parsing and concern several keys at once.
    #[must_use]
    pub fn at(origin: &str, text: &str, needle: &str, message: impl Into<String>) -> Self {
        let line = text
            .lines()
            .position(|line| line.contains(needle))
            .map_or(1, |index| index + 1);
        Self {
            origin: origin.to_owned(),
            line,
            message: message.into(),
        }
    }
}

/// Reads `text` as TOML into a `T`.
///
/// # Errors
///
/// [`BadInput`] with the line at which TOML or the type found the mistake.
pub fn from_toml<T: DeserializeOwned>(origin: &str, text: &str) -> Result<T, BadInput> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let message = error
            .message()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        BadInput {
            origin: origin.to_owned(),
            line,
            message,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[allow(dead_code, reason = "only the refusals are looked at")]
        delay: Span,
    }

    #[test]
    fn a_wrong_unit_names_the_line_and_the_units() {
        let error =
            from_toml::<Sample>("x.toml", "# comment\ndelay = \"20 parsec\"\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(
            error
                .to_string()
                .starts_with("x.toml:2: `20 parsec` has no unit of time"),
            "{error}"
        );
    }

    #[test]
    fn a_bare_number_names_the_units() {
        let error = from_toml::<Sample>("x.toml", "delay = 20\n").unwrap_err();
        assert!(error.message.contains("ns, us, ms"), "{error}");
    }

    #[test]
    fn an_unknown_key_names_its_line() {
        let error = from_toml::<Sample>("x.toml", "delay = \"1 ms\"\n\ndellay = 1\n").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(error.message.contains("unknown field `dellay`"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(.|\n)*") {
            let _ = from_toml::<Sample>("x.toml", &text);
        }
    }
}
