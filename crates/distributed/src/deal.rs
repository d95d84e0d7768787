//! The coordinator's state: which jobs are still owed, and what was found of the others.
//!
//! Jobs may be added at any time, for what is asked next may follow from what was found. A
//! job may be played twice, for a queue gives a job away again when its worker falls
//! silent; of several findings the first that is whole counts, and all are the same. A job
//! that is neither in the queue nor found was lost (a worker dropped it, the queue was
//! deleted), and is put in again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lagometer_lab::OwnLane;
use lagometer_lab::saved::SavedSeed;
use thiserror::Error;

use crate::fragments::{Fragment, Reassembly};
use crate::message::{Brought, Job, printable, unpack};

/// Findings of one job that were nonsense before the sweep gives up.
const MOST_BAD: usize = 3;

/// Attempts of one job whose fragments are kept: more than a queue gives it away, where workers
/// are what they say.
const MOST_ATTEMPTS: usize = 64;

/// Workers that are told apart.
const MOST_WORKERS: usize = 10_000;

/// A worker that says nothing for so long is silent by the coordinator's account of who
/// plays: two of its hellos, one every 3 s, did not come. It is less than the queue waits
/// before it gives a job to another, so whoever watches sees the worker's silence first, even
/// where that job is the sweep's last.
pub(crate) const SILENT: Duration = Duration::from_secs(7);

/// Why a sweep cannot be played to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadAttempt {
    /// A worker says so.
    #[error("{play}: {why}")]
    Failed {
        /// The seed and lanes that were to be played, in words.
        play: String,
        /// The worker's reason.
        why: String,
    },
    /// What came was no result, again and again.
    #[error("{play}: what {attempt} brought is no result of it: {why}")]
    Nonsense {
        /// The seed and lanes that were to be played, in words.
        play: String,
        /// The attempt, by its worker's name.
        attempt: String,
        /// What the bytes lack to be a result.
        why: String,
    },
}

/// A seed that is to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Which of the sweep's recipes, from 0.
    pub recipe: usize,
    /// The seed.
    pub seed: u64,
    /// The names of the lanes, in order.
    pub lanes: Vec<String>,
    /// Lanes in place of the recipe's, if any.
    pub instead: Vec<OwnLane>,
    /// Virtual time that its lanes play together.
    pub each: Duration,
}

/// What became of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// Its job has more fragments to come, or was brought before.
    Nothing,
    /// Its job is found now.
    Found {
        /// What its lanes did.
        saved: SavedSeed,
        /// So much of its play was not reported before.
        played: Duration,
    },
}

/// What a coordinator notices of its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// A worker sent something for the first time, or again.
    Joined(String),
    /// One that had begun jobs has been silent for a while.
    Silent(String),
}

/// A job that is still to be found.
#[derive(Clone, Debug)]
struct JobState {
    task: Task,
    /// What was reported of its play.
    played: Duration,
    /// Attempts that are on their way.
    attempts: BTreeMap<String, Reassembly>,
    bad: usize,
    /// It was missing when last looked for.
    was_missing: bool,
}

/// A sweep.
#[derive(Clone, Debug)]
pub struct Deal {
    sweep: String,
    /// The number of the next job.
    next: usize,
    owed: BTreeMap<usize, JobState>,
    /// When each worker last sent something.
    workers: BTreeMap<String, Duration>,
}

impl Deal {
    /// A sweep without jobs.
    #[must_use]
    pub fn new(sweep: &str) -> Self {
        Self {
            sweep: sweep.to_owned(),
            next: 0,
            owed: BTreeMap::new(),
            workers: BTreeMap::new(),
        }
    }

    /// Adds a job, and returns its number: one more than the last one's, the first's is 0.
    pub fn add(&mut self, task: Task) -> usize {
        let number = self.next;
        self.next += 1;
        let state = JobState {
            task,
            played: Duration::ZERO,
            attempts: BTreeMap::new(),
            bad: 0,
            was_missing: false,
        };
        self.owed.insert(number, state);
        number
    }

    /// The job of this number, if it is still to be found.
    #[must_use]
    pub fn job(&self, number: usize) -> Option<Job> {
        let task = &self.owed.get(&number)?.task;
        Some(Job {
            sweep: self.sweep.clone(),
            number,
            recipe: task.recipe,
            seed: task.seed,
            lanes: task.lanes.clone(),
            instead: task.instead.clone(),
        })
    }

    /// The numbers of the jobs that are still to be found.
    pub fn owed(&self) -> impl Iterator<Item = usize> {
        self.owed.keys().copied()
    }

    /// Whether a worker that asks is to play this job: not one that was found already.
    #[must_use]
    pub fn is_owed(&self, number: usize) -> bool {
        self.owed.contains_key(&number)
    }

    /// Whether everything is found.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.owed.is_empty()
    }

    /// Takes a fragment of what a worker brings.
    ///
    /// # Errors
    ///
    /// [`BadAttempt`] where the job cannot be played, or nonsense came too often.
    pub fn on_fragment(&mut self, fragment: &Fragment<'_>) -> Result<Given, BadAttempt> {
        let number = fragment.header.number;
        let Some(job) = self.owed.get_mut(&number) else {
            return Ok(Given::Nothing);
        };
        let attempt = fragment.header.attempt.clone();
        if job.attempts.len() >= MOST_ATTEMPTS && !job.attempts.contains_key(&attempt) {
            // Its fragments come again where it was a worker's.
            job.attempts.pop_first();
        }
        let reassembly = job.attempts.entry(attempt.clone()).or_default();
        let Some(bytes) = reassembly.add(fragment) else {
            return Ok(Given::Nothing);
        };
        match checked(&bytes, &job.task) {
            Ok(Brought::Played(saved)) => {
                let played = job.task.each.saturating_sub(job.played);
                self.owed.remove(&number);
                Ok(Given::Found { saved, played })
            }
            Ok(Brought::Failed(why)) => {
                let (play, why) = (job.task.described(), printable(&why));
                Err(BadAttempt::Failed { play, why })
            }
            Err(why) => {
                job.attempts.remove(&attempt);
                job.bad += 1;
                if job.bad < MOST_BAD {
                    return Ok(Given::Nothing);
                }
                let (attempt, why) = (printable(&attempt), printable(&why));
                let play = job.task.described();
                Err(BadAttempt::Nonsense { play, attempt, why })
            }
        }
    }

    /// Takes a report of how far a job is, and returns how much of it was not reported
    /// before. One that is played again counts from where it was.
    pub fn on_progress(&mut self, number: usize, played: Duration) -> Duration {
        let Some(job) = self.owed.get_mut(&number) else {
            return Duration::ZERO;
        };
        let played = played.min(job.task.each);
        let more = played.saturating_sub(job.played);
        job.played += more;
        more
    }

    /// A worker has sent something.
    pub fn on_worker(&mut self, worker: &str, now: Duration) -> Option<WorkerEvent> {
        if self.workers.len() >= MOST_WORKERS && !self.workers.contains_key(worker) {
            return None;
        }
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
        for (&number, job) in &mut self.owed {
            let is_missing = !queued.contains(&number);
            if is_missing && job.was_missing {
                lost.push(number);
            }
            job.was_missing = is_missing && !job.was_missing;
        }
        lost
    }
}

impl Task {
    /// Which play it is, for whoever reads that it failed.
    fn described(&self) -> String {
        match &self.instead[..] {
            [] => format!("seed {}", self.seed),
            _ => format!("seed {} of {}", self.seed, self.lanes.join(", ")),
        }
    }
}

/// What a worker brought, if it is a result of that task's seed and so many lanes.
fn checked(bytes: &[u8], task: &Task) -> Result<Brought, String> {
    let brought = unpack(bytes).map_err(|why| why.to_string())?;
    let lanes = task.lanes.len();
    if let Brought::Played(saved) = &brought {
        if saved.seed() != task.seed {
            return Err(format!("it is of seed {}", saved.seed()));
        }
        if saved.lanes() != lanes {
            return Err(format!("it has {} lanes, not {lanes}", saved.lanes()));
        }
    }
    Ok(brought)
}
