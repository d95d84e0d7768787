//! What coordinator and workers say to each other.

use std::time::Duration;

use lagometer_units::Time;
use lagometer_world::{
    Authority, Claim, EntityId, Loss, Note, Outcome, Report, Scenario, Shard, Truth, Vector,
};
use serde::{Deserialize, Serialize};

/// The service by which a worker asks the coordinator for a shard.
pub(crate) const SERVICE: &str = "world";

/// Characters in one message: a tenth of the longest that is let through.
const MOST_CHARACTERS: usize = 5_000;

/// What a worker wants.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// The shard of that number, counted from 0; any where it does not matter.
    pub(crate) index: Option<u32>,
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    /// Which of the workers it is, counted from 0.
    pub(crate) index: u32,
    /// How many there are.
    pub(crate) workers: u32,
    pub(crate) scenario: Scenario,
    pub(crate) shard: Shard,
    /// How many of its players, in the order of their numbers, had come to
    /// another worker that is lost.
    pub(crate) came: u32,
    /// The gateway's address for players, to be resolved where they are.
    pub(crate) gateway: String,
    /// Its address for game servers, likewise.
    pub(crate) servers: String,
}

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromWorker {
    /// It knows the coordinator's clock and waits for the start.
    Ready,
    /// It plays: its game servers have what they are to own, its players begin
    /// to come.
    Opened,
    /// What happened in half a second, and all that was found up to then.
    Note {
        note: Box<Note>,
        so_far: Box<Outcome>,
    },
    /// What its game servers say of whom they simulate.
    Report(Claims),
    /// Nobody moves there any more, and its players have received everything.
    /// Where some of its servers' characters are; `is_all` with the last, which
    /// is the first where it has none.
    Stands {
        characters: Vec<CharacterPosition>,
        is_all: bool,
    },
    /// It is done; this is what it found.
    Found {
        outcome: Box<Outcome>,
        /// How far its clock, set right, may have been off.
        clock_error: Duration,
    },
    /// It cannot go on.
    Failed { why: String },
}

/// What the coordinator says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromCoordinator {
    /// Who has game servers connects them.
    Open,
    /// The world's time counts from this instant of the coordinator's clock.
    Start { at_ns: u64 },
    /// Where some of the characters are; `is_all` with the last of them.
    Truth {
        characters: Vec<CharacterPosition>,
        is_all: bool,
    },
    /// All stop where they are.
    Stop,
    /// Nobody needs anybody's connections any more.
    Over,
}

/// A character, and where it is.
pub(crate) type CharacterPosition = (u32, [f64; 3]);

/// What game servers say of whom they simulate, as it is said: instants and
/// spans in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    until_ns: u64,
    /// How far the clock may be off that gave all these instants.
    within_ns: u64,
    /// When, which character, which server, what.
    said: Vec<(u64, u32, u32, Authority)>,
    /// When, which server.
    losses: Vec<(u64, u32)>,
}

impl Claims {
    /// A report by a clock that may be off by so much.
    pub(crate) fn of(report: &Report, within: Duration) -> Self {
        let claim = |it: &Claim| (it.at.as_nanos(), it.entity.0, it.server, it.what);
        let loss = |it: &Loss| (it.at.as_nanos(), it.server);
        Self {
            until_ns: report.until.as_nanos(),
            within_ns: within.as_nanos() as u64,
            said: report.claims.iter().map(claim).collect(),
            losses: report.losses.iter().map(loss).collect(),
        }
    }

    /// How far the clock may be off that gave the instants.
    pub(crate) const fn within(&self) -> Duration {
        Duration::from_nanos(self.within_ns)
    }

    /// The report, which knows how far its instants may be off.
    pub(crate) fn report(self) -> Report {
        let within = self.within();
        let claim = |(at, entity, server, what)| Claim {
            at: Time::from_nanos(at),
            within,
            entity: EntityId(entity),
            server,
            what,
        };
        let loss = |(at, server)| Loss {
            at: Time::from_nanos(at),
            server,
        };
        Report {
            until: Time::from_nanos(self.until_ns),
            claims: self.said.into_iter().map(claim).collect(),
            losses: self.losses.into_iter().map(loss).collect(),
        }
    }
}

/// Where everybody is, in pieces that are let through, with whether each is
/// the last.
pub(crate) fn pieces(truth: &Truth) -> Vec<(Vec<CharacterPosition>, bool)> {
    let characters: Vec<CharacterPosition> = truth
        .iter()
        .map(|(entity, at)| (entity.0, [at.x, at.y, at.z]))
        .collect();
    let mut pieces: Vec<(Vec<CharacterPosition>, bool)> = characters
        .chunks(MOST_CHARACTERS)
        .map(|some| (some.to_vec(), false))
        .collect();
    pieces.push((Vec::new(), true));
    pieces
}

/// Some of the characters, as they came.
pub(crate) fn places(
    characters: Vec<CharacterPosition>,
) -> impl Iterator<Item = (EntityId, Vector)> {
    let place = |(id, [x, y, z]): CharacterPosition| (EntityId(id), Vector { x, y, z });
    characters.into_iter().map(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_truth_is_cut_and_put_together_again() {
        let truth: Truth = (0..12_345)
            .map(|id| (EntityId(id), Vector::on_ground(f64::from(id) / 3.0, -1.5)))
            .collect();
        let mut received = Truth::new();
        let mut is_whole = false;
        for (characters, is_all) in pieces(&truth) {
            let said = FromCoordinator::Truth { characters, is_all };
            let text = serde_json::to_string(&said).unwrap();
            assert!(text.len() < 1 << 20, "{} bytes", text.len());
            let FromCoordinator::Truth { characters, is_all } =
                serde_json::from_str(&text).unwrap()
            else {
                panic!("{text}");
            };
            assert!(!is_whole);
            received.extend(places(characters));
            is_whole = is_all;
        }
        assert!(is_whole);
        assert_eq!(received, truth);
    }

    #[test]
    fn claims_are_understood_as_they_were_meant() {
        let report = Report {
            until: Time::from_nanos(9_000_000_123),
            claims: vec![Claim {
                at: Time::from_nanos(8_999_999_999),
                within: Duration::ZERO,
                entity: EntityId(0x8_0003),
                server: 4,
                what: Authority::Gave,
            }],
            losses: vec![Loss {
                at: Time::from_nanos(7),
                server: 2,
            }],
        };
        let within = Duration::from_micros(12);
        let text = serde_json::to_string(&Claims::of(&report, within)).unwrap();
        let received: Claims = serde_json::from_str(&text).unwrap();
        let mut meant = report;
        meant.claims[0].within = within;
        assert_eq!(received.report(), meant);
    }
}
