//! What a kernel is made of beside its source: the configuration and the tick.

use sha2::{Digest as _, Sha256};

use crate::edits;

/// The configuration, over `allnoconfig`.
const FRAGMENT: &str = include_str!("../kernel.config");

/// The comment in it from which on symbols may be missing.
const OPTIONAL: &str = "# Where this version has them.";

/// The kernel's tick where none is asked for, in Hz: timers of TCP are
/// multiples of it, and a millisecond disturbs them least.
pub const DEFAULT_HZ: u16 = 1000;

/// The ticks that Linux offers, in Hz.
pub const HZ_CHOICES: [u16; 4] = [100, 250, 300, 1000];

/// How a kernel is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// One of [`HZ_CHOICES`].
    pub(crate) hz: u16,
}

impl Recipe {
    /// The text for `KCONFIG_ALLCONFIG`.
    pub(crate) fn fragment(self) -> String {
        // Versions with a choice of ticks have it by name, others by number.
        format!("{FRAGMENT}CONFIG_HZ_{0}=y\nCONFIG_HZ={0}\n", self.hz)
    }

    /// The symbols that the configured kernel lacks though they are needed.
    pub(crate) fn missing(self, configured: &str) -> Vec<String> {
        let required = FRAGMENT.split(OPTIONAL).next().unwrap_or_default();
        let hz = format!("CONFIG_HZ={}", self.hz);
        let has = |wanted: &str| configured.lines().any(|line| line == wanted);
        required
            .lines()
            .filter(|line| line.starts_with("CONFIG_"))
            .chain([hz.as_str()])
            .filter(|line| !has(line))
            .map(str::to_owned)
            .collect()
    }

    /// Distinguishes kernels that are configured or edited differently: sixteen
    /// hexadecimal digits.
    pub(crate) fn digest(self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.fragment());
        hash.update(edits::description(self.hz));
        let digest = hash.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        format!("{:016x}", u64::from_be_bytes(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: Recipe = Recipe { hz: 1000 };

    #[test]
    fn a_configuration_that_came_out_as_asked_lacks_nothing() {
        assert_eq!(RECIPE.missing(&RECIPE.fragment()), Vec::<String>::new());
    }

    #[test]
    fn what_is_required_is_missed_and_what_is_optional_is_not() {
        let without = RECIPE
            .fragment()
            .replace("CONFIG_TUN=y\n", "# CONFIG_TUN is not set\n")
            .replace("CONFIG_RSEQ=y\n", "");
        assert_eq!(RECIPE.missing(&without), ["CONFIG_TUN=y"]);
    }

    #[test]
    fn another_tick_than_asked_is_missed_and_is_another_digest() {
        let slow = Recipe { hz: 100 };
        assert_eq!(slow.missing(&RECIPE.fragment()), ["CONFIG_HZ=100"]);
        assert_ne!(slow.digest(), RECIPE.digest());
        assert_eq!(RECIPE.digest().len(), 16);
    }

    #[test]
    fn every_line_of_the_configuration_is_a_comment_or_a_symbol_once() {
        let lines = FRAGMENT.lines().filter(|line| !line.is_empty());
        let mut symbols: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
        assert!(symbols.iter().all(|line| line.starts_with("CONFIG_")));
        assert!(FRAGMENT.contains(OPTIONAL));
        let count = symbols.len();
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), count);
    }
}
