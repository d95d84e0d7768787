//! What a player decides: to turn, to jump, second by second.

use lagometer_units::{Share, Time};
use serde::{Deserialize, Serialize};

use crate::sim::seed::{derive, unit_interval};

const TURN: u64 = 1;
const SIDE: u64 = 2;
const JUMP: u64 = 3;
const PHASE: u64 = 4;
const TELEPORT: u64 = 5;

/// How restless the players are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BotConfig {
    /// The chance each second that a player turns a quarter, left or right.
    pub turn_each_second: Share,
    /// The chance each second that a player jumps.
    pub jump_each_second: Share,
    /// The chance each second that a player is teleported to another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teleport_each_second: Option<Share>,
}

/// A turn by a quarter of a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Anticlockwise.
    Left,
    /// Clockwise.
    Right,
}

/// What a player makes of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Where it turns, if it does.
    pub turn: Option<Turn>,
    /// Whether it jumps.
    pub jump: bool,
    /// Whether it is somewhere else at once.
    pub teleport: bool,
}

/// One player's mind: a function of the world's seed, the player's number and
/// the time alone, so that what players do is the same whatever network and
/// gateway carry it.
#[derive(Clone, Copy, Debug)]
pub struct BotBehavior {
    seed: u64,
    bot_config: BotConfig,
    /// Where in each second this player decides; otherwise all would turn in
    /// the same frame.
    phase: f64,
}

impl BotBehavior {
    /// The behaviour of the player numbered `player`.
    #[must_use]
    pub fn new(world_seed: u64, player: u32, bot_config: BotConfig) -> Self {
        let seed = derive(world_seed, 0, u64::from(player));
        Self {
            seed,
            bot_config,
            phase: unit_interval(derive(seed, PHASE, 0)),
        }
    }

    /// How many decisions have been made by `now`.
    #[must_use]
    pub fn decisions_by(&self, now: Time) -> u64 {
        (now.as_secs_f64() + self.phase) as u64
    }

    /// The decision numbered `nth`, counted from 0.
    #[must_use]
    pub fn decision(&self, nth: u64) -> Decision {
        let draw = |purpose| derive(self.seed, purpose, nth);
        let chance = |purpose, share: Share| unit_interval(draw(purpose)) < share.fraction();
        let side = if draw(SIDE) & 1 == 0 {
            Turn::Left
        } else {
            Turn::Right
        };
        Decision {
            turn: chance(TURN, self.bot_config.turn_each_second).then_some(side),
            jump: chance(JUMP, self.bot_config.jump_each_second),
            teleport: self
                .bot_config
                .teleport_each_second
                .is_some_and(|share| chance(TELEPORT, share)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bot_config() -> BotConfig {
        BotConfig {
            turn_each_second: "10 %".parse().unwrap(),
            jump_each_second: "10 %".parse().unwrap(),
            teleport_each_second: None,
        }
    }

    #[test]
    fn a_tenth_of_the_seconds_turn_and_a_tenth_jump() {
        let mut turns = [0_u32; 2];
        let mut jumps = 0_u32;
        for player in 0..100 {
            let bot = BotBehavior::new(1, player, bot_config());
            for second in 0..100 {
                let decision = bot.decision(second);
                match decision.turn {
                    Some(Turn::Left) => turns[0] += 1,
                    Some(Turn::Right) => turns[1] += 1,
                    None => {}
                }
                jumps += u32::from(decision.jump);
            }
        }
        // Of 10,000 seconds, 500 ± 4 standard deviations each way.
        assert!(
            turns.iter().all(|turns| (410..590).contains(turns)),
            "{turns:?}"
        );
        assert!((880..1120).contains(&jumps), "{jumps}");
    }

    #[test]
    fn players_differ_and_seeds_differ() {
        let course = |seed, player| {
            let bot = BotBehavior::new(seed, player, bot_config());
            (0..100).map(|nth| bot.decision(nth)).collect::<Vec<_>>()
        };
        assert_eq!(course(1, 1), course(1, 1));
        assert_ne!(course(1, 1), course(1, 2));
        assert_ne!(course(1, 1), course(2, 1));
    }

    #[test]
    fn one_decision_falls_into_every_second() {
        let bot = BotBehavior::new(7, 3, bot_config());
        for second in 0..50_u64 {
            let start = Time::ZERO + Duration::from_secs(second);
            let made = bot.decisions_by(start + Duration::from_secs(1)) - bot.decisions_by(start);
            assert_eq!(made, 1);
        }
    }
}
