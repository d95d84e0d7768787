//! Reading TOML so that a mistake is answered with one line that names the
//! file, the line and what was expected.

use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

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

    /// A mistake at the key that stands at `path` in `text`, or where that is absent at
    /// the last part of the path that is there; at line 1 if none is. An element of an
    /// array is named by its number, counted from 0.
    #[must_use]
    pub fn at_key(origin: &str, text: &str, path: &[&str], message: impl Into<String>) -> Self {
        let known = (1..=path.len()).rev().map(|parts| &path[..parts]);
        Self {
            origin: origin.to_owned(),
            line: known
                .into_iter()
                .find_map(|path| line_of_key(text, path))
                .unwrap_or(1),
            message: message.into(),
        }
    }
}

/// The line, counted from 1, at which TOML says the key at `path`: under its section's
/// head, with the section before it, or within braces. For a section alone that of its
/// head, for an element of an array, named by its number from 0, that where it begins.
/// `None` where there is no such key, or the text is no TOML.
#[must_use]
pub fn line_of_key(text: &str, path: &[&str]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?.into_inner();
    let root = DeValue::Table(document);
    let (mut value, mut at) = (&root, None);
    for part in path {
        let (span, inner) = match value {
            DeValue::Table(table) => {
                let (key, inner) = table.get_key_value(*part)?;
                (key.span(), inner)
            }
            DeValue::Array(array) => {
                let inner = array.get(part.parse::<usize>().ok()?)?;
                (inner.span(), inner)
            }
            _ => return None,
        };
        at = Some(span.start);
        value = inner.get_ref();
    }
    Some(line_at(text, at?))
}

/// The line, counted from 1, of a byte of a text.
fn line_at(text: &str, byte: usize) -> usize {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    before.matches('\n').count() + 1
}

/// Reads `text` as TOML into a `T`.
///
/// # Errors
///
/// [`BadInput`] with the line at which TOML or the type found the mistake.
pub fn from_toml<T: DeserializeOwned>(origin: &str, text: &str) -> Result<T, BadInput> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = line_at(text, error.span().map_or(0, |span| span.start));
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

    #[test]
    fn a_key_is_found_in_its_section_alone() {
        let text = "auth.timeout = \"1 s\"\n[auth]\nlogin_within = \"1 s\" # [limits]\n\n\
                    [ limits ]\n# login_within = 1\nlogin_within = \"2 s\"\n\
                    [[lane]]\nname = 'a'\n\n[[lane]]\nname = 'b'\nsettings = { a = 1 }\n\
                    settings.b = 1\n";
        // Two ways to say one table at once are none.
        assert_eq!(line_of_key(text, &["auth"]), None);
        let text = text.replace("auth.timeout = \"1 s\"\n", "a.timeout = 1\n");
        let text = text.replace("settings.b = 1\n", "");
        let line = |path: &[&str]| line_of_key(&text, path);
        assert_eq!(line(&["a", "timeout"]), Some(1));
        assert_eq!(line(&["auth", "login_within"]), Some(3));
        assert_eq!(line(&["limits"]), Some(5));
        assert_eq!(line(&["limits", "login_within"]), Some(7));
        assert_eq!(line(&["limits", "connections"]), None);
        assert_eq!(line(&["lane", "0", "name"]), Some(9));
        assert_eq!(line(&["lane", "1"]), Some(11));
        assert_eq!(line(&["lane", "1", "settings", "a"]), Some(13));
        assert_eq!(line(&["lane", "2"]), None);
        let bad = BadInput::at_key("x.toml", &text, &["lane", "1", "size"], "wrong");
        assert_eq!(bad.to_string(), "x.toml:11: wrong");
        assert_eq!(
            BadInput::at_key("x.toml", &text, &["none"], "wrong").line,
            1
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(.|\n)*") {
            let _ = from_toml::<Sample>("x.toml", &text);
            let _ = line_of_key(&text, &["a", "0"]);
        }
    }
}
