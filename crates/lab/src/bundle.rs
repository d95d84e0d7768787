//! A run in one file: all that is needed to play it again, and what it found.
//!
//! A bundle is a ZIP archive, so that people open it with what they have:
//!
//! | entry | holds |
//! | --- | --- |
//! | `bundle.json` | the version that played, the digest of the findings, the SHA-256 of every other entry |
//! | `experiment.toml` | the experiment as it was played, command line and all |
//! | `network.toml` | the network as it was, even a built-in one |
//! | `traces/0`, … | the recordings that the network names |
//! | `traffic.csv` | the sizes and times of the messages that the workload plays, where it plays a file's |
//! | `result.json` | the result document |
//!
//! Of a capture nothing else is in it: no contents, and no addresses but those that the
//! experiment names.
//!
//! Everything is read in memory; no name in an archive ever becomes a path. What
//! was played is untrusted data: entries, their number and their lengths
//! are held to limits, and an entry that is missing or changed is named.

mod archive;
mod difference;
mod recipe;

use std::collections::BTreeMap;

use lagometer_results::{BadDocument, Document};
use lagometer_testbed::Testbed;
use lagometer_units::BadInput;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::digest::{digest, findings};
use crate::resolve::{ResolveError, Resolved};
use archive::Archive;
pub use archive::BadArchive;
pub use difference::FirstDifference;
pub use recipe::Recipe;

/// The layout's name, in every bundle.
const SCHEMA: &str = "lagometer-bundle/1";

const MANIFEST: &str = "bundle.json";
const EXPERIMENT: &str = "experiment.toml";
const NETWORK: &str = "network.toml";
const RESULT: &str = "result.json";
const TRAFFIC: &str = "traffic.csv";

/// A run that can be played again.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// What was played, and by which version.
    pub recipe: Recipe,
    /// The bundled run's document.
    pub document: Document,
    digest: String,
}

/// What stands in `bundle.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    schema: String,
    /// The version of this program.
    lagometer: String,
    /// The digest of the findings, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The SHA-256 of every other entry, in hex.
    sha256: BTreeMap<String, String>,
    /// The entry of each recording, by the name that the network gives it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    traces: BTreeMap<String, String>,
}

impl Manifest {
    /// The manifest of an archive of this layout.
    fn read(archive: &mut Archive<'_>) -> Result<Self, BadBundle> {
        let manifest = archive.text(MANIFEST)?;
        let schema = serde_json::from_str::<serde_json::Value>(&manifest)?;
        let schema = schema["schema"].as_str().unwrap_or_default();
        if schema != SCHEMA {
            return Err(BadBundle::Schema(schema.to_owned()));
        }
        Ok(serde_json::from_str(&manifest)?)
    }

    /// The text of an entry, which must be what it was when the archive was written.
    fn entry(&self, archive: &mut Archive<'_>, name: &str) -> Result<String, BadArchive> {
        let digest = self.sha256.get(name);
        let digest = digest.ok_or_else(|| BadArchive::Missing(name.to_owned()))?;
        archive.unchanged_text(name, digest)
    }
}

/// Why a run makes no bundle.
#[derive(Debug, Error)]
pub enum NoBundle {
    /// It is not the same twice.
    #[error(
        "only a run in `sim` or `kernel` is the same every time and can be bundled; this one was \
         in `{0}`: leave out `--bundle`"
    )]
    Testbed(String),
    /// It was interrupted.
    #[error("a run that was cut short cannot be bundled: let it play to its end")]
    CutShort,
    /// What it played cannot be written.
    #[error("{entry} cannot be written: {why}")]
    Unwritable {
        /// The entry.
        entry: &'static str,
        /// What cannot be written.
        why: String,
    },
}

/// Why something is no bundle.
#[derive(Debug, Error)]
pub enum BadBundle {
    /// The archive, or an entry of it.
    #[error(transparent)]
    Archive(#[from] BadArchive),
    /// It is of another layout.
    #[error(
        "is a bundle of the layout `{0}`, and this program reads `{SCHEMA}`: use the version that wrote it"
    )]
    Schema(String),
    /// The manifest is not what it should be.
    #[error("{MANIFEST}: {0}")]
    Manifest(#[from] serde_json::Error),
    /// The experiment or the network is wrong.
    #[error(transparent)]
    Input(#[from] BadInput),
    /// The result document is wrong.
    #[error("{RESULT}: {0}")]
    Document(#[from] BadDocument),
    /// It was played where no run is the same twice.
    #[error("{RESULT} was found in `{0}`, where no run is the same twice")]
    Testbed(String),
    /// The findings are not those of the digest.
    #[error("{RESULT} is not what was found: its digest is {found}, and the bundle says {said}")]
    Digest {
        /// That of the document.
        found: String,
        /// That of the manifest.
        said: String,
    },
}

impl Bundle {
    /// Bundles a run by its version, what it played and what it found.
    ///
    /// # Errors
    ///
    /// [`NoBundle`] where it was not played in virtual time to its end.
    pub fn of(version: &str, resolved: &Resolved, document: &Document) -> Result<Self, NoBundle> {
        if testbed_of(document).is_none() {
            let testbed = document.testbed.clone().unwrap_or_default();
            return Err(NoBundle::Testbed(testbed));
        }
        if document.partial {
            return Err(NoBundle::CutShort);
        }
        Ok(Self {
            recipe: Recipe::of(version, resolved),
            document: document.clone(),
            digest: digest(&as_read(document)),
        })
    }

    /// Where it was played: `sim`, or a kernel in virtual time.
    #[must_use]
    pub fn testbed(&self) -> Testbed {
        testbed_of(&self.document).unwrap_or(Testbed::Sim)
    }

    /// The kernel it was played on, by version, tick and configuration as its document
    /// has them; `None` where it was none.
    #[must_use]
    pub fn kernel(&self) -> Option<String> {
        let kernel = self.document.experiment.get("kernel")?;
        let text = |key: &str| kernel.get(key)?.as_str();
        Some(format!(
            "{}-hz{}-{}",
            text("version")?,
            kernel.get("hz")?.as_u64()?,
            text("configuration")?
        ))
    }

    /// The digest of the findings.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The bundle as a file. The same run gives the same bytes, but for when and
    /// how fast it was played.
    ///
    /// # Errors
    ///
    /// [`NoBundle::Unwritable`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, NoBundle> {
        let found = (RESULT, self.document.to_json(), &*self.digest);
        self.recipe.archive(Some(found))
    }

    /// Reads a bundle.
    ///
    /// # Errors
    ///
    /// [`BadBundle`] where it is none, was cut short, changed, or holds what
    /// cannot be played.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBundle> {
        let mut archive = Archive::open(bytes)?;
        let manifest = Manifest::read(&mut archive)?;
        let document = Document::from_json(&manifest.entry(&mut archive, RESULT)?)?;
        if testbed_of(&document).is_none() {
            let testbed = document.testbed.unwrap_or_default();
            return Err(BadBundle::Testbed(testbed));
        }
        let recipe = Recipe::read(&mut archive, &manifest)?;
        let found = digest(&document);
        let said = manifest.digest.unwrap_or_default();
        if found != said {
            return Err(BadBundle::Digest { found, said });
        }
        Ok(Self {
            recipe,
            document,
            digest: found,
        })
    }

    /// The bundled experiment, to be played on the bundled network.
    ///
    /// # Errors
    ///
    /// As [`crate::resolve()`], where this version lacks what that one had.
    pub fn resolve(&self) -> Result<Resolved, ResolveError> {
        self.recipe.resolve(self.testbed())
    }

    /// What differs first between the bundled findings and those of another run:
    /// what was played before what was found. `None` where the digests are the
    /// same.
    #[must_use]
    pub fn first_difference(&self, played: &Document) -> Option<FirstDifference> {
        let played = as_read(played);
        (digest(&played) != self.digest)
            .then(|| difference::first(&findings(&self.document), &findings(&played)))
            .flatten()
    }
}

/// The testbed of a document, if its runs are the same every time.
fn testbed_of(document: &Document) -> Option<Testbed> {
    let name = document.testbed.as_deref()?;
    [Testbed::Sim, Testbed::Kernel]
        .into_iter()
        .find(|testbed| testbed.name() == name)
}

/// The document as its readers have it: written and read, which may round a last
/// digit.
fn as_read(document: &Document) -> Document {
    Document::from_json(&document.to_json()).unwrap_or_else(|_| document.clone())
}

#[cfg(test)]
mod tests;
