//! What is played by workers on any machines, joined by NATS: `run --nats`, `tune --nats`
//! and `lagometer worker`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lagometer_distributed::Task;
use lagometer_distributed::nats::{self, PlayQueue, Sweep, Worker};
use lagometer_lab::bundle::Recipe;
use lagometer_lab::{Resolved, RunOptions, SeedRun};
use lagometer_nats::{Error as NatsError, Settings};
use lagometer_testbed::Testbed;

use super::run::{play_of_a_seed, processors};
use crate::cli::{NatsArguments, NatsUser, WorkerArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;

/// Refuses workers in testbeds other than virtual time.
pub(super) fn check_testbed(urls: Option<&str>, testbed: Testbed) -> Result<(), Failure> {
    match urls {
        Some(_) if testbed != Testbed::Sim => Err(Failure::Input(
            "--nats is for `--testbed sim`: other testbeds are played on this machine".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Where workers are reached, and what becomes of what they do.
#[derive(Clone, Copy)]
pub(super) struct Reached<'a> {
    pub(super) urls: &'a str,
    pub(super) arguments: &'a NatsArguments,
    /// Is called with virtual time that was played.
    pub(super) progress: &'a (dyn Fn(Duration) + Sync),
    /// When it becomes true, nothing more is played.
    pub(super) stop: &'a AtomicBool,
}

impl Reached<'_> {
    /// Has workers play what `drive` asks for of `recipes`, by their place.
    pub(super) fn coordinate<T>(
        &self,
        recipes: &[Recipe],
        drive: impl FnOnce(&mut PlayQueue) -> T,
    ) -> Result<T, Failure> {
        let sweep = Sweep {
            version: env!("CARGO_PKG_VERSION"),
            recipes,
        };
        let settings = settings_of(self.urls, self.arguments);
        let driven = nats::coordinate(&settings, &sweep, self.progress, &say, self.stop, drive);
        driven.map_err(|why| match why {
            nats::Error::Nats(NatsError::Unreachable { .. })
                if self.stop.load(Ordering::Relaxed) =>
            {
                Failure::Interrupted("stopped before NATS was there".to_owned())
            }
            why => failure(why),
        })
    }

    /// Has workers play every seed of a run.
    pub(super) fn play(
        &self,
        resolved: &Resolved,
        options: &RunOptions,
    ) -> Result<Vec<SeedRun>, Failure> {
        let lanes = resolved.lanes.iter().map(|lane| lane.name.clone());
        let lanes: Vec<String> = lanes.collect();
        let task = |&seed: &u64| Task {
            recipe: 0,
            seed,
            lanes: lanes.clone(),
            instead: Vec::new(),
            each: play_of_a_seed(resolved),
        };
        let recipe = Recipe::of(env!("CARGO_PKG_VERSION"), resolved);
        let found = self.coordinate(&[recipe], |queue| {
            let mut runs = BTreeMap::new();
            let tasks = options.seeds.iter().map(task).collect();
            // Of a sweep that was to stop the document has what was found by then.
            let _ = queue.play(tasks, &mut |place, run| {
                runs.insert(place, run);
            });
            runs.into_values().collect::<Vec<SeedRun>>()
        })?;
        if found.is_empty() && !options.seeds.is_empty() {
            return Err(Failure::Environment(
                "stopped before any seed was played: start workers with `lagometer worker --nats`"
                    .to_owned(),
            ));
        }
        Ok(found)
    }
}

/// Plays the jobs of whatever sweeps there are, until it is asked to end.
pub(crate) fn worker(arguments: &WorkerArguments) -> Result<ExitCode, Failure> {
    let host = lagometer_platform::host_name();
    let host = host.as_deref().unwrap_or("worker");
    let worker = Worker {
        name: &format!("{host}-{}", std::process::id()),
        version: env!("CARGO_PKG_VERSION"),
        threads: arguments.threads.map_or_else(processors, usize::from),
    };
    let settings = settings_of(&arguments.nats, &arguments.reached);
    nats::work(&settings, worker, &say, interrupt::listen()?).map_err(failure)?;
    Ok(Exit::Done.into())
}

/// Where NATS is, and how it is reached by what waits for it at the start.
pub(super) fn settings_of(urls: &str, reached: &NatsArguments) -> Settings {
    settings(urls, &reached.user, reached.wait.duration())
}

/// Where NATS is, and as whom it is reached.
pub(super) fn settings(urls: &str, user: &NatsUser, wait: Duration) -> Settings {
    Settings {
        urls: urls.to_owned(),
        prefix: user.prefix.clone(),
        credentials: user.creds.clone(),
        authorities: user.authorities.clone(),
        wait,
    }
}

pub(super) fn say(line: &str) {
    note!("lagometer: {line}");
}

fn failure(error: nats::Error) -> Failure {
    if error.is_input() {
        Failure::input(error)
    } else {
        Failure::Environment(error.to_string())
    }
}
