//! What coordinator and workers say to each other.

use std::time::Duration;

use lagometer_world::{EntityId, Note, Outcome, Part, Scenario, Truth, Vector};
use serde::{Deserialize, Serialize};

/// The service by which a worker asks the coordinator for a part.
pub(crate) const SERVICE: &str = "world";

/// Characters in one message: a tenth of the longest that is let through.
const MOST_CHARACTERS: usize = 5_000;

/// What a worker wants.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// The part of that number, counted from 0; any where it does not matter.
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
    pub(crate) part: Part,
    /// The gateway's address for players, to be resolved where they are.
    pub(crate) gateway: String,
}

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromWorker {
    /// It knows the coordinator's clock and waits for the start.
    Ready,
    /// What happened in half a second.
    Note(Note),
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
    /// The world's time counts from this instant of the coordinator's clock.
    Start { at_ns: u64 },
    /// Where some of the characters are; `is_all` with the last of them.
    Truth {
        characters: Vec<(u32, [f64; 3])>,
        is_all: bool,
    },
    /// All stop where they are.
    Stop,
    /// Nobody needs anybody's connections any more.
    Over,
}

/// Where everybody is, in messages that are let through.
pub(crate) fn tell_truth(truth: &Truth) -> Vec<FromCoordinator> {
    let characters: Vec<(u32, [f64; 3])> = truth
        .iter()
        .map(|(entity, at)| (entity.0, [at.x, at.y, at.z]))
        .collect();
    let mut said: Vec<FromCoordinator> = characters
        .chunks(MOST_CHARACTERS)
        .map(|some| FromCoordinator::Truth {
            characters: some.to_vec(),
            is_all: false,
        })
        .collect();
    said.push(FromCoordinator::Truth {
        characters: Vec::new(),
        is_all: true,
    });
    said
}

/// Some of the characters, as they came.
pub(crate) fn places(characters: Vec<(u32, [f64; 3])>) -> impl Iterator<Item = (EntityId, Vector)> {
    let place = |(id, [x, y, z]): (u32, [f64; 3])| (EntityId(id), Vector { x, y, z });
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
        let mut heard = Truth::new();
        let mut is_whole = false;
        for said in tell_truth(&truth) {
            let text = serde_json::to_string(&said).unwrap();
            assert!(text.len() < 1 << 20, "{} bytes", text.len());
            let FromCoordinator::Truth { characters, is_all } =
                serde_json::from_str(&text).unwrap()
            else {
                panic!("{text}");
            };
            assert!(!is_whole);
            heard.extend(places(characters));
            is_whole = is_all;
        }
        assert!(is_whole);
        assert_eq!(heard, truth);
    }
}
