//! What a search of each family's settings found, as it was written down.
//!
//! The file stands beside the crate with the command that made it: `lagometer tune
//! --toml` writes its lanes. Families that are not in it were found best as they are in
//! their `game` preset, or have nothing to choose.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Spec;
use crate::catalogue::{Preset, PresetKind, presets};

/// The file.
const TEXT: &str = include_str!("../tuned.toml");

/// A lane as the search wrote it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lane {
    /// The name of the family's `game` preset, and what the search adds to it.
    name: String,
    /// The preset that it changes.
    transport: String,
    /// What it changes.
    #[serde(default)]
    settings: Map<String, Value>,
}

/// All of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lanes {
    #[serde(default)]
    lane: Vec<Lane>,
}

/// By family.
static FOUND: LazyLock<BTreeMap<String, Lane>> = LazyLock::new(|| {
    let lanes: Lanes = toml::from_str(TEXT).expect("a test reads the file");
    let of_family = |lane: Lane| {
        let family = lane.name.strip_suffix("-game-tuned").unwrap_or(&lane.name);
        (family.to_owned(), lane)
    };
    lanes.lane.into_iter().map(of_family).collect()
});

/// What the search found for a family: the preset it starts from and the settings that
/// it changes; none where that is its `game` preset as it is.
#[cfg(test)]
pub(crate) fn found(family: &str) -> Option<(&'static str, &'static Map<String, Value>)> {
    FOUND
        .get(family)
        .map(|lane| (lane.transport.as_str(), &lane.settings))
}

/// The families in the file.
#[cfg(test)]
pub(crate) fn families() -> impl Iterator<Item = &'static String> {
    FOUND.keys()
}

/// A family's tuned settings.
pub(crate) fn tuned(family: &str) -> Spec {
    if let Some(lane) = FOUND.get(family) {
        return Spec::resolve(&lane.transport, &lane.settings)
            .expect("a test makes every preset of them");
    }
    let is_game =
        |member: crate::Member| member.family == family && member.kind == PresetKind::Game;
    let game = presets().iter().find(|it| it.member.is_some_and(is_game));
    game.map(Preset::spec)
        .expect("every family has a `game` preset")
}
