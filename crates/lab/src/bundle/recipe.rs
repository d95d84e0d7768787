//! What is played, without what was found: the part of a bundle that another machine
//! needs to play it.

use std::collections::BTreeMap;

use lagometer_link::Profile;
use lagometer_testbed::Testbed;

use super::archive::{self, Archive, BadArchive};
use super::{BadBundle, EXPERIMENT, MANIFEST, Manifest, NETWORK, NoBundle, SCHEMA, TRAFFIC};
use crate::experiment::Experiment;
use crate::resolve::{ResolveError, Resolved, resolve};

/// An experiment with its network and the recordings that they name, and the version that
/// plays it.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The version of this program.
    pub version: String,
    /// What is played.
    pub experiment: Experiment,
    /// How the network behaves.
    pub profile: Profile,
}

impl Recipe {
    /// What a run plays.
    #[must_use]
    pub fn of(version: &str, resolved: &Resolved) -> Self {
        Self {
            version: version.to_owned(),
            experiment: resolved.experiment.clone(),
            profile: resolved.profile.clone(),
        }
    }

    /// The experiment, to be played on its network.
    ///
    /// # Errors
    ///
    /// As [`resolve()`], where this version lacks what that one had.
    pub fn resolve(&self, testbed: Testbed) -> Result<Resolved, ResolveError> {
        let network = self.experiment.network.clone();
        let (experiment, profile) = (self.experiment.clone(), self.profile.clone());
        resolve(experiment, network, profile, testbed)
    }

    /// The recipe alone, laid out as a bundle without a result.
    ///
    /// # Errors
    ///
    /// [`NoBundle::Unwritable`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, NoBundle> {
        self.archive(None)
    }

    /// Reads what [`Self::to_bytes`] wrote, or the recipe of a bundle.
    ///
    /// # Errors
    ///
    /// [`BadBundle`] where it is neither, was cut short, changed, or holds what cannot be
    /// played.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBundle> {
        let mut archive = Archive::open(bytes)?;
        let manifest = Manifest::read(&mut archive)?;
        Self::read(&mut archive, &manifest)
    }

    /// The archive of the recipe and, where there is one, of a result: its entry, its
    /// text and its digest.
    pub(super) fn archive(&self, found: Option<(&str, String, &str)>) -> Result<Vec<u8>, NoBundle> {
        let toml = |entry, written: Result<String, toml::ser::Error>| {
            written.map_err(|why| NoBundle::Unwritable {
                entry,
                why: why.to_string(),
            })
        };
        let experiment = toml(EXPERIMENT, toml::to_string_pretty(&self.experiment))?;
        let network = toml(NETWORK, toml::to_string_pretty(self.profile.written()))?;
        let mut entries = vec![
            (EXPERIMENT.to_owned(), experiment),
            (NETWORK.to_owned(), network),
        ];
        let digest = found.as_ref().map(|(_, _, digest)| (*digest).to_owned());
        entries.extend(found.map(|(entry, text, _)| (entry.to_owned(), text)));
        let traffic = self.experiment.workload.traffic();
        entries.extend(traffic.map(|traffic| (TRAFFIC.to_owned(), traffic.to_log())));
        let mut traces = BTreeMap::new();
        for (index, (name, text)) in self.profile.traces().enumerate() {
            let entry = format!("traces/{index}");
            traces.insert(name.to_owned(), entry.clone());
            entries.push((entry, text.to_owned()));
        }
        let manifest = Manifest {
            schema: SCHEMA.to_owned(),
            lagometer: self.version.clone(),
            digest,
            sha256: entries
                .iter()
                .map(|(name, text)| (name.clone(), archive::sha256(text)))
                .collect(),
            traces,
        };
        let manifest = serde_json::to_string_pretty(&manifest)
            .unwrap_or_else(|_| unreachable!("every key of a manifest is text"));
        entries.insert(0, (MANIFEST.to_owned(), manifest + "\n"));
        archive::write(&entries).map_err(|error| NoBundle::Unwritable {
            entry: "the archive",
            why: error.to_string(),
        })
    }

    pub(super) fn read(archive: &mut Archive<'_>, manifest: &Manifest) -> Result<Self, BadBundle> {
        let text = manifest.entry(archive, EXPERIMENT)?;
        let mut experiment = Experiment::parse(EXPERIMENT, &text)?;
        experiment.load_traffic(EXPERIMENT, &text, &mut |_| {
            let log = manifest.entry(archive, TRAFFIC);
            log.map(String::into_bytes)
                .map_err(|error| error.to_string())
        })?;
        let network = manifest.entry(archive, NETWORK)?;
        let mut read_trace = |name: &str| {
            let place = manifest.traces.get(name);
            let place = place.ok_or_else(|| format!("the bundle has no trace `{name}`"))?;
            let entry: Result<String, BadArchive> = manifest.entry(archive, place);
            entry.map_err(|error| error.to_string())
        };
        let profile = Profile::parse(NETWORK, &network, &mut read_trace)?;
        Ok(Self {
            version: manifest.lagometer.clone(),
            experiment,
            profile,
        })
    }
}
