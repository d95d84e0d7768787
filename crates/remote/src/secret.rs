//! The secret that both ends share.

use std::fmt;

use thiserror::Error;

use crate::randomness::unforeseeable;
use crate::tag::Key;

/// What both ends know and nobody else does.
///
/// It is text, so that it can be passed from one screen to another; blanks
/// around it are not part of it. Whoever listens to a control connection can try
/// out secrets at leisure, so a short or guessable one is as good as none:
/// prefer one that [`Secret::generate`] made.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why a text cannot be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a secret has {} to {} characters, not {length}; `openssl rand -hex 16` makes a good one",
    Secret::SHORTEST,
    Secret::LONGEST
)]
pub struct BadSecret {
    /// How many it has.
    pub length: usize,
}

impl Secret {
    /// The least number of bytes.
    pub const SHORTEST: usize = 16;
    /// The largest number of bytes.
    pub const LONGEST: usize = 1024;

    /// A secret from what someone wrote.
    ///
    /// # Errors
    ///
    /// [`BadSecret`] if it is shorter than [`SHORTEST`](Self::SHORTEST) or
    /// longer than [`LONGEST`](Self::LONGEST) bytes without blanks around it.
    pub fn from_text(text: &str) -> Result<Self, BadSecret> {
        let text = text.trim();
        if !(Self::SHORTEST..=Self::LONGEST).contains(&text.len()) {
            return Err(BadSecret { length: text.len() });
        }
        Ok(Self(text.to_owned()))
    }

    /// A new one of 128 bits that nobody can foresee, in 32 hexadecimal
    /// digits.
    #[must_use]
    pub fn generate() -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(unforeseeable())))
    }

    /// The secret itself, to be shown to whoever is to know it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A name for `purpose` by which those who know the secret find each other, in 32
    /// hexadecimal digits; it is as hard to reckon back as a tag of the control connection.
    #[must_use]
    pub fn name_for(&self, purpose: &str) -> String {
        let tag = self.key().tag("name", &[purpose.as_bytes()]);
        let digits = tag[..16].iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    }

    /// The key it stands for.
    pub(crate) fn key(&self) -> Key {
        Key::new(self.0.as_bytes())
    }
}

/// A secret does not show itself in passing.
impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_secrets_differ_and_can_be_written_down() {
        let secret = Secret::generate();
        assert_ne!(secret, Secret::generate());
        let written = format!("  {}\n", secret.expose());
        assert_eq!(Secret::from_text(&written), Ok(secret));
    }

    #[test]
    fn short_endless_and_empty_ones_are_refused() {
        for text in ["", " ", "0123456789abcde", &"x".repeat(1025)] {
            assert!(Secret::from_text(text).is_err(), "{text:?}");
        }
        let refused = Secret::from_text("short").unwrap_err().to_string();
        assert!(refused.contains("openssl rand"), "{refused}");
    }

    #[test]
    fn a_name_is_the_secrets_and_the_purposes() {
        let [one, other] =
            ["0123456789abcdef", "0123456789abcdeF"].map(|text| Secret::from_text(text).unwrap());
        let name = one.name_for("world");
        assert_eq!(name.len(), 32);
        assert!(name.chars().all(|digit| digit.is_ascii_hexdigit()));
        assert_eq!(name, one.clone().name_for("world"));
        assert_ne!(name, one.name_for("worlds"));
        assert_ne!(name, other.name_for("world"));
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::generate();
        assert!(!format!("{secret:?}").contains(secret.expose()));
    }
}
