//! Seeds that are played by workers on any machines, joined by NATS: `run --nats` and
//! `lagometer worker`.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_distributed::nats::{self, Sweep, Worker};
use lagometer_lab::bundle::Recipe;
use lagometer_lab::{Resolved, RunOptions, SeedRun};
use lagometer_nats::Settings;

use super::run::{play_of_a_seed, processors};
use crate::cli::{NatsArguments, NatsUser, WorkerArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;

/// Has workers play every seed.
pub(super) fn play(
    urls: &str,
    reached: &NatsArguments,
    resolved: &Resolved,
    options: &RunOptions,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<Vec<SeedRun>, Failure> {
    let recipe = Recipe::of(env!("CARGO_PKG_VERSION"), resolved);
    let lanes: Vec<String> = resolved
        .lanes
        .iter()
        .map(|lane| lane.name.clone())
        .collect();
    let sweep = Sweep {
        recipe: &recipe,
        lanes: &lanes,
        seeds: &options.seeds,
        each: play_of_a_seed(resolved),
    };
    let settings = settings(urls, &reached.user, reached.wait.duration());
    let found = nats::coordinate(&settings, &sweep, progress, &say, stop);
    let found = found.map_err(failure)?;
    if found.is_empty() && !options.seeds.is_empty() {
        return Err(Failure::Environment(
            "stopped before any seed was played: start workers with `lagometer worker --nats`"
                .to_owned(),
        ));
    }
    Ok(found)
}

/// Plays the seeds of whatever sweeps there are, until it is asked to end.
pub(crate) fn worker(arguments: &WorkerArguments) -> Result<ExitCode, Failure> {
    let host = lagometer_platform::host_name();
    let host = host.as_deref().unwrap_or("worker");
    let worker = Worker {
        name: &format!("{host}-{}", std::process::id()),
        version: env!("CARGO_PKG_VERSION"),
        threads: arguments.threads.map_or_else(processors, usize::from),
    };
    let reached = &arguments.reached;
    let settings = settings(&arguments.nats, &reached.user, reached.wait.duration());
    nats::work(&settings, worker, &say, interrupt::listen()?).map_err(failure)?;
    Ok(Exit::Done.into())
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

fn say(line: &str) {
    note!("lagometer: {line}");
}

fn failure(error: nats::Error) -> Failure {
    if error.is_input() {
        Failure::input(error)
    } else {
        Failure::Environment(error.to_string())
    }
}
