//! What a search has played so far, as a text that it goes on from.
//!
//! A search is the same whenever the same is reported to it, so all that has to be kept is
//! what every play found: a search that is begun again asks for the same plays and
//! is answered from here until it comes to what was never played.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The text's schema.
const SCHEMA: &str = "lagometer-tune-state/1";

/// Figures of a play that a text reports at most.
const MOST_FIGURES: usize = 100;

/// What every play found.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    search: String,
    plays: BTreeMap<String, Vec<f64>>,
}

/// Why a text cannot be gone on from.
#[derive(Debug, Error)]
pub enum BadMemory {
    /// It is none, or was damaged.
    #[error("it is no state of a search: {0}; name another file, or remove it")]
    Damaged(String),
    /// Another version wrote it, which may play otherwise.
    #[error("version {theirs} wrote it and this is {ours}; remove it to search anew")]
    OtherVersion {
        /// The version that wrote it.
        theirs: String,
        /// This one.
        ours: &'static str,
    },
    /// It is of another search.
    #[error(
        "it is of another search: its experiment, networks, lanes, goal, limits, seeds or numbers \
         differ; name another file, or remove it"
    )]
    OtherSearch,
}

/// The text. A figure is written so that it is read back to the bit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: String,
    version: String,
    search: String,
    plays: BTreeMap<String, String>,
}

impl Memory {
    /// Nothing played yet of the search that `search` describes.
    #[must_use]
    pub fn new(search: &Value) -> Self {
        let hash = Sha256::digest(search.to_string());
        let hex = hash.iter().map(|byte| format!("{byte:02x}"));
        Self {
            search: hex.collect(),
            plays: BTreeMap::new(),
        }
    }

    /// Reads the text of the search that `search` describes.
    ///
    /// # Errors
    ///
    /// [`BadMemory`] for a text of another search or version, and one that is none.
    pub fn read(text: &str, search: &Value) -> Result<Self, BadMemory> {
        let damaged = |why: &dyn std::fmt::Display| BadMemory::Damaged(why.to_string());
        let written: Written = serde_json::from_str(text).map_err(|why| damaged(&why))?;
        if written.schema != SCHEMA {
            return Err(damaged(&format!(
                "its schema is `{}`, not `{SCHEMA}`",
                written.schema.escape_debug()
            )));
        }
        if written.version != env!("CARGO_PKG_VERSION") {
            return Err(BadMemory::OtherVersion {
                theirs: written.version.escape_debug().to_string(),
                ours: env!("CARGO_PKG_VERSION"),
            });
        }
        let mut memory = Self::new(search);
        if memory.search != written.search {
            return Err(BadMemory::OtherSearch);
        }
        for (key, figures) in written.plays {
            let figures: Result<Vec<f64>, _> = figures
                .split(' ')
                .take(MOST_FIGURES)
                .map(str::parse::<f64>)
                .collect();
            let figures = figures.map_err(|why| damaged(&why))?;
            if figures.iter().any(|figure| !figure.is_finite()) {
                return Err(damaged(&"a figure is no number"));
            }
            memory.plays.insert(key, figures);
        }
        Ok(memory)
    }

    /// The text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let plays = self.plays.iter().map(|(key, figures)| {
            let figures: Vec<String> = figures.iter().map(|it| format!("{it:?}")).collect();
            (key.clone(), figures.join(" "))
        });
        let written = Written {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            search: self.search.clone(),
            plays: plays.collect(),
        };
        let mut text = serde_json::to_string_pretty(&written).unwrap_or_default();
        text.push('\n');
        text
    }

    /// How many plays it knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plays.len()
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plays.is_empty()
    }

    /// What a play found, where it is known and has as many figures as are wanted.
    pub(crate) fn figures(&self, key: &str, wanted: usize) -> Option<&Vec<f64>> {
        self.plays.get(key).filter(|found| found.len() == wanted)
    }

    pub(crate) fn remember(&mut self, key: String, figures: Vec<f64>) {
        self.plays.insert(key, figures);
    }
}
