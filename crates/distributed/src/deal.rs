//! The coordinator's state: which seeds are still owed, and what was found of the others.
//!
//! Jobs may be played twice, for a queue gives a job away again when its worker falls
//! silent; of several findings the first that is whole counts, and all are the same. A job
//! that is neither in the queue nor found was lost (a worker dropped it, the queue was
//! deleted), and is put in again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lagometer_lab::SeedRun;
use lagometer_lab::saved::SavedSeed;
use thiserror::Error;

use crate::message::{Brought, Job, unpack};
use crate::parts::{Gathered, Part};

/// Findings of one job that were nonsense before the sweep gives up.
const MOST_BAD: usize = 3;

/// A worker that says nothing for so long is silent by the coordinator's account of who
/// plays: two of its hellos, one every 3 s, did not come. It is less than the queue waits
/// before it gives a job to another, so whoever watches hears of the worker first, even
/// where that job is the sweep's last.
pub(crate) const SILENT: Duration = Duration::from_secs(7);

/// Why a sweep cannot be played to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadAttempt {
    /// A worker says so.
    #[error("seed {seed}: {why}")]
    Failed {
        /// The seed.
        seed: u64,
        /// What it says.
        why: String,
    },
    /// What came was no result, again and again.
    #[error("seed {seed}: what {attempt} brought is no result of it: {why}")]
    Nonsense {
        /// The seed.
        seed: u64,
        /// The attempt, by its worker's name.
        attempt: String,
        /// Why not.
        why: String,
    },
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Its job has more parts to come, or was brought before.
    Nothing,
    /// Its job is found now. So much of its play was not reported before.
    Found(Duration),
}

/// What a coordinator notices of its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// A worker sent something for the first time, or again.
    Joined(String),
    /// One that had begun jobs has been silent for a while.
    Silent(String),
}

#[derive(Clone, Debug, Default)]
struct JobState {
    found: Option<SavedSeed>,
    /// What was reported of its play.
    played: Duration,
    /// Attempts that are on their way.
    attempts: BTreeMap<String, Gathered>,
    bad: usize,
    /// It was missing when last looked for.
    was_missing: bool,
}

/// A sweep.
#[derive(Clone, Debug)]
pub struct Deal {
    sweep: String,
    seeds: Vec<u64>,
    lanes: Vec<String>,
    /// Virtual time that the lanes of one seed play together.
    each: Duration,
    jobs: Vec<JobState>,
    owed: usize,
    /// When each worker last sent something.
    workers: BTreeMap<String, Duration>,
}

impl Deal {
    /// A sweep over these seeds, each of these lanes; the lanes of one seed play for
    /// `each` together.
    #[must_use]
    pub fn new(sweep: &str, seeds: &[u64], lanes: &[String], each: Duration) -> Self {
        Self {
            sweep: sweep.to_owned(),
            seeds: seeds.to_vec(),
            lanes: lanes.to_vec(),
            each,
            jobs: vec![JobState::default(); seeds.len()],
            owed: seeds.len(),
            workers: BTreeMap::new(),
        }
    }

    /// The job of this number.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[must_use]
    pub fn job(&self, number: usize) -> Job {
        Job {
            sweep: self.sweep.clone(),
            number,
            seed: self.seeds[number],
            lanes: self.lanes.clone(),
        }
    }

    /// The numbers of the jobs that are still to be found.
    pub fn owed(&self) -> impl Iterator<Item = usize> {
        let jobs = self.jobs.iter().enumerate();
        jobs.filter(|(_, job)| job.found.is_none())
            .map(|(number, _)| number)
    }

    /// Whether a worker that asks is to play this job: not one that was found already.
    #[must_use]
    pub fn is_owed(&self, number: usize) -> bool {
        self.jobs.get(number).is_some_and(|job| job.found.is_none())
    }

    /// Whether everything is found.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.owed == 0
    }

    /// Takes a part of what a worker brings.
    ///
    /// # Errors
    ///
    /// [`BadAttempt`] where the job cannot be played, or nonsense came too often.
    pub fn on_part(&mut self, part: &Part<'_>) -> Result<Given, BadAttempt> {
        let Some(job) = self.jobs.get_mut(part.head.number) else {
            return Ok(Given::Nothing);
        };
        if job.found.is_some() {
            return Ok(Given::Nothing);
        }
        let attempt = part.head.attempt.clone();
        let gathered = job.attempts.entry(attempt.clone()).or_default();
        let Some(bytes) = gathered.add(part) else {
            return Ok(Given::Nothing);
        };
        let seed = self.seeds[part.head.number];
        match checked(&bytes, seed, self.lanes.len()) {
            Ok(Brought::Played(saved)) => {
                job.found = Some(saved);
                job.attempts.clear();
                self.owed -= 1;
                let rest = self.each.saturating_sub(job.played);
                job.played = self.each;
                Ok(Given::Found(rest))
            }
            Ok(Brought::Failed(why)) => Err(BadAttempt::Failed { seed, why }),
            Err(why) => {
                job.attempts.remove(&attempt);
                job.bad += 1;
                if job.bad < MOST_BAD {
                    return Ok(Given::Nothing);
                }
                Err(BadAttempt::Nonsense { seed, attempt, why })
            }
        }
    }

    /// Takes a report of how far a job is, and returns how much of it was not reported
    /// before. One that is played again counts from where it was.
    pub fn on_progress(&mut self, number: usize, played: Duration) -> Duration {
        let Some(job) = self.jobs.get_mut(number) else {
            return Duration::ZERO;
        };
        let played = played.min(self.each);
        let more = played.saturating_sub(job.played);
        job.played += more;
        more
    }

    /// A worker has sent something.
    pub fn on_worker(&mut self, worker: &str, now: Duration) -> Option<WorkerEvent> {
        let before = self.workers.insert(worker.to_owned(), now);
        before
            .is_none()
            .then(|| WorkerEvent::Joined(worker.to_owned()))
    }

    /// The workers that have been silent for a while; each is named once. Those that
    /// have nothing to play say nothing, and are not looked for once all is found.
    pub fn silent_workers(&mut self, now: Duration) -> Vec<WorkerEvent> {
        let workers = std::mem::take(&mut self.workers);
        let (silent, others) = workers
            .into_iter()
            .partition(|&(_, at)| now.saturating_sub(at) >= SILENT);
        self.workers = others;
        let silent: BTreeMap<String, Duration> = silent;
        silent.into_keys().map(WorkerEvent::Silent).collect()
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The jobs that are to be put into the queue again, where `queued` are in it and
    /// everything that was brought has been read: those that were missing the last time,
    /// too, so that what is on its way just now is not taken for lost.
    pub fn lost(&mut self, queued: &BTreeSet<usize>) -> Vec<usize> {
        let mut lost = Vec::new();
        for (number, job) in self.jobs.iter_mut().enumerate() {
            let is_missing = job.found.is_none() && !queued.contains(&number);
            if is_missing && job.was_missing {
                lost.push(number);
            }
            job.was_missing = is_missing && !job.was_missing;
        }
        lost
    }

    /// What was found, in the order of the seeds; those that are still owed are left out.
    #[must_use]
    pub fn into_runs(self) -> Vec<SeedRun> {
        let found = self.jobs.into_iter().filter_map(|job| job.found);
        found.map(SeedRun::from).collect()
    }
}

/// What a worker brought, if it is a result of that seed and so many lanes.
fn checked(bytes: &[u8], seed: u64, lanes: usize) -> Result<Brought, String> {
    let brought = unpack(bytes).map_err(|why| why.to_string())?;
    if let Brought::Played(saved) = &brought {
        if saved.seed() != seed {
            return Err(format!("it is of seed {}", saved.seed()));
        }
        if saved.lanes() != lanes {
            return Err(format!("it has {} lanes, not {lanes}", saved.lanes()));
        }
    }
    Ok(brought)
}
