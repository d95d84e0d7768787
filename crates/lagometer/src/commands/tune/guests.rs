//! Plays of a search on a real kernel in virtual time, each in a guest of its own:
//! `tune --testbed kernel`, which alone reaches transports that own their sockets.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lagometer_guest::Kernel;
use lagometer_lab::LaneRun;
use lagometer_lab::bundle::Recipe;
use lagometer_results::Audit;
use lagometer_testbed::keep_audit;
use lagometer_tune::{Network, Runner, Setup, SinglePlay, Stopped};
use tempfile::TempDir;

use crate::commands::in_guests::{self, Errand, What};
use crate::failure::Failure;

/// Plays until what was found is handed back: as many however many guests there are, so
/// that the audit is of the same.
const AT_ONCE: usize = 64;

/// Guests on this machine.
pub(super) struct Guests<'a> {
    pub(super) kernel: &'a Kernel,
    /// Guests that are up at once, at least one.
    pub(super) at_once: usize,
    /// The longest a guest may take in real time. The search ends where one takes longer.
    pub(super) real_limit: Duration,
    /// Is called with virtual time that was played.
    pub(super) progress: &'a (dyn Fn(Duration) + Sync),
    /// When it becomes true, guests end where they are.
    pub(super) stop: &'a AtomicBool,
    /// What the emulator says of its work in what was played last, and of the first play
    /// that it calls invalid.
    pub(super) audit: &'a Mutex<Option<Audit>>,
    /// Why it could not go on, where that is why it stopped.
    pub(super) failure: Option<Failure>,
}

impl Runner for Guests<'_> {
    fn at_once(&self) -> usize {
        AT_ONCE
    }

    fn play(
        &mut self,
        networks: &[Network],
        setups: &[Setup],
        plays: &[SinglePlay],
        found: &(dyn Fn(usize, LaneRun) + Sync),
    ) -> Result<(), Stopped> {
        if self.is_stopped() {
            return Err(Stopped);
        }
        let used = plays.iter().map(|play| play.setup).collect();
        let recipes = match Recipes::written(networks, setups, &used) {
            Ok(recipes) => recipes,
            Err(why) => return self.failed(why),
        };
        let seeds: Vec<u64> = plays.iter().map(|play| play.seed).collect();
        let played = in_guests::each_seed(&seeds, self.at_once, self.stop, |place, seed| {
            let played = self.play_one(&recipes.of(plays[place].setup), seed)?;
            // What a part of it found would be kept for what all of it does.
            if !self.is_stopped() {
                found(place, played.0);
            }
            Ok(played.1)
        });
        // A guest that is stopped may have found nothing, which is no failure then.
        if self.is_stopped() {
            return Err(Stopped);
        }
        let audits: Result<Vec<_>, Failure> = played.into_iter().collect();
        match audits {
            Ok(audits) => self.keep(audits.into_iter().flatten()),
            Err(why) => return self.failed(why),
        }
        Ok(())
    }
}

impl Guests<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What a lane did, and what the emulator says of its own work.
    fn play_one(&self, recipe: &Path, seed: u64) -> Result<(LaneRun, Option<Audit>), Failure> {
        let errand = Errand {
            what: What::Bundled(recipe),
            ipv6: false,
            is_logged: false,
            has_qlog: false,
            real_limit: self.real_limit,
        };
        let played = in_guests::play(&errand, self.kernel, &[seed], 1, self.progress, self.stop)?;
        // How far a guest comes until a limit hangs on the machine, as nothing else here.
        played.check_whole()?;
        let lanes = played.seeds.into_iter().flat_map(|seed| seed.lanes);
        match lanes.into_iter().next() {
            Some(LaneRun::Unopened(why)) => Err(Failure::Environment(format!(
                "in the guest of seed {seed}: {why}"
            ))),
            Some(run) => Ok((run, played.audit)),
            None => Err(Failure::Environment(format!(
                "the guest of seed {seed} played nothing"
            ))),
        }
    }

    /// Keeps what the emulator says of its work: of the first play that is invalid, or of
    /// the first of `found`.
    fn keep(&self, found: impl Iterator<Item = Audit>) {
        let mut kept = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
        let invalid = kept.take().filter(|audit| !audit.valid);
        *kept = invalid;
        for audit in found {
            keep_audit(&mut kept, audit);
        }
    }

    fn failed(&mut self, why: Failure) -> Result<(), Stopped> {
        self.failure = Some(why);
        Err(Stopped)
    }
}

/// What guests are to play, in files that they read.
struct Recipes {
    folder: TempDir,
}

impl Recipes {
    /// Those of the setups that are `used`, by their places.
    fn written(
        networks: &[Network],
        setups: &[Setup],
        used: &BTreeSet<usize>,
    ) -> Result<Self, Failure> {
        let in_temp = |why| Failure::Write {
            path: std::env::temp_dir(),
            why,
        };
        let recipes = Self {
            folder: tempfile::tempdir().map_err(in_temp)?,
        };
        for &place in used {
            let path = recipes.of(place);
            let written = fs::write(&path, recipe(networks, &setups[place])?);
            written.map_err(|why| Failure::Write { path, why })?;
        }
        Ok(recipes)
    }

    fn of(&self, setup: usize) -> PathBuf {
        self.folder.path().join(format!("{setup}.zip"))
    }
}

/// The experiment on a setup's network with its lane alone. The guest finds the lane: what
/// its kernel has is not what this machine's has.
fn recipe(networks: &[Network], setup: &Setup) -> Result<Vec<u8>, Failure> {
    let resolved = &networks[setup.network].resolved;
    let mut recipe = Recipe::of(env!("CARGO_PKG_VERSION"), resolved);
    recipe.experiment.lanes.clear();
    recipe.experiment.presets.clear();
    recipe.experiment.own_lanes = vec![setup.written.clone()];
    recipe.to_bytes().map_err(Failure::input)
}
