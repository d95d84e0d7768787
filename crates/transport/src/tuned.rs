//! What a search of each family's settings found, as it was written down.
//!
//! Each crate that has presets has such a file beside it, with the command that made it:
//! `lagometer tune --toml` writes its lanes. Families that are not in it were found best as
//! they are in their `game` preset, or have nothing to choose.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::catalogue::{Member, Preset, PresetKind, presets};
use crate::{BadSpec, Spec};

/// This crate's.
static FOUND: LazyLock<TunedLanes> =
    LazyLock::new(|| TunedLanes::of(include_str!("../tuned.toml")));

/// The lanes that a search wrote down, by family.
#[derive(Clone, Debug)]
pub struct TunedLanes(BTreeMap<String, Lane>);

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
struct File {
    #[serde(default)]
    lane: Vec<Lane>,
}

impl TunedLanes {
    /// The lanes of a file that `lagometer tune --toml` wrote.
    ///
    /// # Panics
    ///
    /// Where it is no such file: it is part of the program, and a test reads it.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let file: File = toml::from_str(text).expect("a test reads the file");
        let of_family = |lane: Lane| {
            let family = lane.name.strip_suffix("-game-tuned").unwrap_or(&lane.name);
            (family.to_owned(), lane)
        };
        Self(file.lane.into_iter().map(of_family).collect())
    }

    /// What the search found for a family: the preset it starts from and the settings that
    /// it changes; none where that is its `game` preset as it is.
    #[must_use]
    pub fn found(&self, family: &str) -> Option<(&str, &Map<String, Value>)> {
        let lane = self.0.get(family)?;
        Some((&lane.transport, &lane.settings))
    }

    /// A family's tuned settings: of the preset that the search starts from with what it
    /// changes, as `resolve` makes them; of the `game` preset among `presets` where nothing
    /// was found.
    ///
    /// # Panics
    ///
    /// Where the file or `presets` lack what they are to have: they are part of the program,
    /// and a test makes every preset.
    #[must_use]
    pub fn tuned<S>(
        &self,
        family: &str,
        presets: &[Preset<S>],
        resolve: impl FnOnce(&str, &Map<String, Value>) -> Result<S, BadSpec>,
    ) -> S {
        if let Some((preset, settings)) = self.found(family) {
            return resolve(preset, settings).expect("a test makes every preset of them");
        }
        let is_game = |member: Member| member.family == family && member.kind == PresetKind::Game;
        let game = presets.iter().find(|it| it.member.is_some_and(is_game));
        game.map(Preset::spec)
            .expect("every family has a `game` preset")
    }

    /// The families that something was found for.
    pub fn families(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// What was found for this crate's families.
#[cfg(test)]
pub(crate) fn found() -> &'static TunedLanes {
    &FOUND
}

/// A family's tuned settings.
pub(crate) fn tuned(family: &str) -> Spec {
    FOUND.tuned(family, presets(), Spec::resolve)
}
