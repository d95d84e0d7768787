//! What a player decided while the world was measured, as a fingerprint.
//!
//! Two runs in which every player has the same one put the same load on their
//! gateways, wherever the players were.

use std::ops::Range;

use crate::sim::bot::{BotBehavior, Decision, Turn};
use crate::sim::scenario::Scenario;

/// FNV-1a (Fowler, Noll and Vo), 64 bits: tells runs apart, and is no
/// protection against forgery.
const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0100_0000_01B3;

/// One player's, while it grows.
#[derive(Clone, Debug)]
pub(crate) struct InputDigest {
    /// The decisions that fall into the measured time.
    counted: Range<u64>,
    hash: u64,
}

impl InputDigest {
    /// Nothing yet, of a player with that mind.
    pub(crate) fn new(bot: &BotBehavior, scenario: &Scenario) -> Self {
        let filled = scenario.filled_at();
        let ended = filled + scenario.duration.0;
        Self {
            counted: bot.decisions_by(filled)..bot.decisions_by(ended),
            hash: BASIS,
        }
    }

    /// The player has made the decision numbered `nth`.
    pub(crate) fn note(&mut self, nth: u64, decision: Decision) {
        if !self.counted.contains(&nth) {
            return;
        }
        let turn = match decision.turn {
            None => 0_u8,
            Some(Turn::Left) => 1,
            Some(Turn::Right) => 2,
        };
        let what = turn | u8::from(decision.jump) << 2 | u8::from(decision.teleport) << 3;
        self.hash = hash(hash(self.hash, &nth.to_le_bytes()), &[what]);
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.hash
    }
}

/// The fingerprint of all players' inputs, by their numbers.
pub(crate) fn of_all<'a>(input_digest: impl IntoIterator<Item = (&'a u32, &'a u64)>) -> u64 {
    input_digest.into_iter().fold(BASIS, |all, (number, deed)| {
        hash(hash(all, &number.to_le_bytes()), &deed.to_le_bytes())
    })
}

fn hash(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::scenario::BUILT_IN;

    #[test]
    fn what_falls_into_the_measured_time_distinguishes_players_and_seeds() {
        let scenario = Scenario::parse("lod", BUILT_IN[0].1).unwrap();
        let played = |seed, number, from, until| {
            let bot = BotBehavior::new(seed, number, scenario.bot_config);
            let mut input_digest = InputDigest::new(&bot, &scenario);
            for nth in from..until {
                input_digest.note(nth, bot.decision(nth));
            }
            input_digest.fingerprint()
        };
        let ended = scenario.filled_at() + scenario.duration.0;
        let late = ended.as_secs_f64() as u64 + 100;
        let whole = played(1, 7, 0, late);
        assert_eq!(
            whole,
            played(1, 7, 2, late + 5),
            "the time around is left out"
        );
        assert_ne!(whole, played(1, 8, 0, late));
        assert_ne!(whole, played(2, 7, 0, late));
        assert_ne!(whole, BASIS, "something was counted");
    }
}
