//! A scenario: who plays, where, how often and for how long, as a TOML file
//! says.

use std::time::Duration;

use lagometer_units::{BadInput, Span, Time, from_toml};
use serde::{Deserialize, Serialize};

use crate::sim::body::Movement;
use crate::sim::bot::BotConfig;
use crate::sim::ground::GroundPlan;
use crate::sim::space::Space;

/// The scenarios that come with the program, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "lod",
        include_str!("../../../../experiments/world/lod.toml"),
    ),
    (
        "single",
        include_str!("../../../../experiments/world/single.toml"),
    ),
    (
        "spatial",
        include_str!("../../../../experiments/world/spatial.toml"),
    ),
];

/// The most players a scenario may have: their net ids must fit between the
/// first entity channel and the end of the gateway's numbers.
pub const MOST_PLAYERS: u32 = 100_000;

/// The most tiers a scenario may have: more than anybody can tell apart, and
/// a byte counts them.
pub(crate) const MOST_TIERS: usize = 100;

/// How long the world settles after the last player's first window, and after
/// everything has stood still.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

/// What is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Its name; by convention the file's.
    pub name: String,
    /// What it plays, in one sentence.
    pub summary: String,
    /// How the world is laid out in channels.
    pub channels: Channels,
    /// How many players come.
    pub players: u32,
    /// The time between two players' arrivals.
    pub join_every: Span,
    /// How long is measured, once everybody is in.
    #[serde(rename = "for")]
    pub duration: Span,
    /// The seed of the ground, and of the players' behaviour and starting places.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Frames a server simulates each second.
    pub server_frames_per_s: u32,
    /// Frames in which a player sends its server what it wants, each second.
    pub player_frames_per_s: u32,
    /// How often a player is sent what changes: the first tier within whose
    /// distance an entity is. Scenarios in one channel have one tier.
    #[serde(rename = "tier")]
    pub tiers: Vec<Tier>,
    /// The time a new subscriber waits for its first window.
    pub fan_out_delay: Span,
    /// Players that keep the newest state of everything they see and sample
    /// its age; the others only count what arrives, so that the generator is
    /// not what is measured. In scenarios where distance decides what a player
    /// is sent, all have to look.
    pub observers: u32,
    /// How the ground is cut into cells, where each server has a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    /// The ground they walk on.
    pub ground: GroundPlan,
    /// How restless the players are: what a bot does how often.
    #[serde(rename = "bots", alias = "temper")]
    pub bot_config: BotConfig,
    /// How characters move.
    #[serde(default)]
    pub movement: Movement,
}

/// How the world is laid out in channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    /// Everything in GLOBAL: everyone sees everyone, at one rate.
    Single,
    /// A channel for each entity, to which each player subscribes at the
    /// interval of its distance.
    Entity,
    /// As `Entity`, among a grid of servers that hand entities over; a player
    /// is sent those in the cells around it.
    Spatial,
}

/// How often a player is sent the entities within a distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tier {
    /// The distance in metres; every distance where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_m: Option<f64>,
    /// The fan-out interval.
    pub every: Span,
}

impl Scenario {
    /// Reads and checks a scenario; `origin` is the file's name for messages.
    ///
    /// # Errors
    ///
    /// [`BadInput`] for anything that TOML, the keys or the values have wrong.
    pub fn parse(origin: &str, text: &str) -> Result<Self, BadInput> {
        let scenario: Self = from_toml(origin, text)?;
        scenario
            .check()
            .map_err(|(key, message)| BadInput::at(origin, text, key, message))?;
        Ok(scenario)
    }

    /// Checks what no type does, also after the command line changed it.
    ///
    /// # Errors
    ///
    /// The key that is wrong, and what is expected of it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let within = |key, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err((
                    key,
                    format!("`{key}` is {value}; {low} to {high} is possible"),
                ))
            }
        };
        let number = |key, value: u32, low: u32, high: u32| {
            within(key, f64::from(value), f64::from(low), f64::from(high))
        };
        number("players", self.players, 1, MOST_PLAYERS)?;
        number("server-frames-per-s", self.server_frames_per_s, 1, 1000)?;
        number("player-frames-per-s", self.player_frames_per_s, 1, 1000)?;
        within("side-m", self.ground.side_m, 10.0, 20_000.0)?;
        within("built", self.ground.built.fraction(), 0.0, 0.5)?;
        let [shortest, longest] = self.ground.obstacle_m;
        within("obstacle-m", shortest, 0.1, longest.max(0.1))?;
        within("obstacle-m", longest, shortest, self.ground.side_m)?;
        within("walk-cm-per-s", self.movement.walk_cm_per_s, 0.0, 10_000.0)?;
        within("radius-cm", self.movement.radius_cm, 1.0, 200.0)?;
        within(
            "gravity-cm-per-s2",
            self.movement.gravity_cm_per_s2,
            1.0,
            1e5,
        )?;
        within(
            "acceleration-cm-per-s2",
            self.movement.acceleration_cm_per_s2,
            1.0,
            1e6,
        )?;
        within("jump-cm-per-s", self.movement.jump_cm_per_s, 0.0, 1e4)?;
        self.check_space()?;
        self.check_tiers()
    }

    fn check_space(&self) -> Result<(), (&'static str, String)> {
        match (self.channels, &self.space) {
            (Channels::Spatial, Some(space)) => space.check(self.ground.side_m),
            (Channels::Spatial, None) => Err((
                "space",
                "a `[space]` is needed to say where each server's part is".into(),
            )),
            (_, Some(_)) => Err((
                "space",
                "only `channels = \"spatial\"` has a `[space]`".into(),
            )),
            (_, None) => Ok(()),
        }
    }

    fn check_tiers(&self) -> Result<(), (&'static str, String)> {
        let Some((last, nearer)) = self.tiers.split_last() else {
            return Err(("tier", "a `[[tier]]` is needed to say how often".into()));
        };
        if self.tiers.len() > MOST_TIERS {
            let why = format!(
                "{} of `[[tier]]`; 1 to {MOST_TIERS} are possible",
                self.tiers.len()
            );
            return Err(("tier", why));
        }
        if self.channels == Channels::Single && !nearer.is_empty() {
            return Err(("tier", "one channel has one `[[tier]]`".into()));
        }
        if last.within_m.is_some() {
            return Err((
                "within-m",
                "the last `[[tier]]` is for every distance: leave its `within-m` out".into(),
            ));
        }
        let mut reached_m = 0.0;
        for tier in nearer {
            match tier.within_m {
                Some(within_m) if within_m > reached_m => reached_m = within_m,
                _ => {
                    return Err((
                        "within-m",
                        "each `[[tier]]` reaches farther than the one before it".into(),
                    ));
                }
            }
        }
        // A gateway counts whole milliseconds, and never none.
        for tier in &self.tiers {
            let every = tier.every.0;
            if every < Duration::from_millis(1) || every > Duration::from_mins(1) {
                return Err((
                    "every",
                    format!("`every` is {}; 1 ms to 1 min is possible", tier.every),
                ));
            }
        }
        Ok(())
    }

    /// When the player of that number comes.
    #[must_use]
    pub fn joins_at(&self, player: u32) -> Time {
        Time::ZERO + self.join_every.0 * player
    }

    /// When everybody is in and has been sent the first of everything, so that
    /// measuring begins.
    #[must_use]
    pub fn filled_at(&self) -> Time {
        self.joins_at(self.players) + self.fan_out_delay.0 + self.settles_within()
    }

    /// How long it takes, after nobody moves any more, until everybody knows
    /// where all are.
    #[must_use]
    pub fn settles_within(&self) -> Duration {
        let slowest = self.tiers.iter().map(|tier| tier.every.0).max();
        slowest.unwrap_or_default() + SETTLE
    }

    /// How many game servers simulate characters.
    #[must_use]
    pub fn simulating(&self) -> u32 {
        self.space.map_or(1, |space| space.server_count())
    }

    /// The time between two frames of a server.
    #[must_use]
    pub fn server_frame(&self) -> Duration {
        Duration::from_secs(1) / self.server_frames_per_s
    }

    /// The time between two frames of a player.
    #[must_use]
    pub fn player_frame(&self) -> Duration {
        Duration::from_secs(1) / self.player_frames_per_s
    }

    /// Whether distance decides what a player is sent, so that all of them
    /// have to look.
    #[must_use]
    pub fn all_look(&self) -> bool {
        self.channels != Channels::Single
    }

    /// The tier of an entity at a distance, by its index.
    #[must_use]
    pub fn tier_at(&self, distance_m: f64) -> usize {
        self.tiers
            .iter()
            .position(|tier| tier.within_m.is_none_or(|within_m| distance_m < within_m))
            .unwrap_or(self.tiers.len() - 1)
    }
}

const fn first_seed() -> u64 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in(name: &str) -> Scenario {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name).unwrap();
        Scenario::parse(name, text).unwrap()
    }

    #[test]
    fn what_is_built_in_is_sound_and_named_as_its_file() {
        for (name, text) in BUILT_IN {
            assert_eq!(Scenario::parse(name, text).unwrap().name, *name);
        }
    }

    #[test]
    fn files_with_the_former_name_of_a_table_are_read() {
        for (name, text) in BUILT_IN {
            let older = text.replace("[bots]", "[temper]");
            assert_ne!(older, *text);
            let read = Scenario::parse(name, &older).unwrap();
            assert_eq!(read.bot_config, built_in(name).bot_config);
        }
    }

    #[test]
    fn distances_have_tiers() {
        let lod = built_in("lod");
        let tiers = [0.0, 9.9, 10.0, 49.0, 50.0, 1e9].map(|metres| lod.tier_at(metres));
        assert_eq!(tiers, [0, 0, 1, 1, 2, 2]);
        assert_eq!(built_in("single").tier_at(1e9), 0);
    }

    #[test]
    fn space_is_asked_for_where_servers_share_it() {
        let (_, text) = BUILT_IN
            .iter()
            .find(|(name, _)| *name == "spatial")
            .unwrap();
        for (right, wrong, expected) in [
            ("servers = [3, 3]", "servers = [4, 3]", "share 15 by 15"),
            ("side-m = 300", "side-m = 400", "the cells cover 300 m"),
            (
                "\"spatial\"\nplayers",
                "\"entity\"\nplayers",
                "only `channels",
            ),
        ] {
            assert!(text.contains(right), "{right}");
            let error = Scenario::parse("x.toml", &text.replace(right, wrong)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == "lod").unwrap();
        for (right, wrong, expected) in [
            (
                "players = 1000",
                "players = 0",
                "`players` is 0; 1 to 100000",
            ),
            ("within-m = 50", "within-m = 5", "reaches farther"),
            ("side-m = 300", "side-m = 1", "`side-m` is 1; 10 to 20000"),
            ("every = \"1 s\"", "every = \"0 ms\"", "1 ms to 1 min"),
            (
                "every = \"1 s\"",
                "every = \"1 s\"\nwithin-m = 100",
                "leave its `within-m` out",
            ),
        ] {
            assert!(text.contains(right), "{right}");
            let error = Scenario::parse("x.toml", &text.replace(right, wrong)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(error.line > 1, "{error}");
        }
    }
}
