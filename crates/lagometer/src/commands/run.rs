//! `lagometer run`: an experiment, played and shown.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use lagometer_lab::{
    Experiment, Plan, Resolved, RunContext, RunOptions, Workload, assemble, catalogue, play,
    resolve, suggest,
};
use lagometer_link::Profile;

use crate::cli::RunArguments;
use crate::failure::{Failure, read};
use crate::progress::Progress;
use crate::{host, interrupt, output};

/// Plays an experiment and shows what was found.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let resolved = prepare(arguments)?;
    let options = RunOptions {
        seeds: (0..u64::from(arguments.seeds))
            .map(|offset| resolved.plan.seed.wrapping_add(offset))
            .collect(),
        threads: arguments.threads.map_or_else(processors, usize::from),
    };
    let stop = interrupt::listen()?;
    let started = SystemTime::now();
    let host = host::measured();
    announce(&resolved, &options);
    let progress = Progress::new(total_play(&resolved, &options));
    let began = Instant::now();
    let seeds = play(&resolved, &options, &|played| progress.played(played), stop);
    progress.finish();
    let context = RunContext {
        started,
        wall: began.elapsed(),
        host,
        testbed: Some("sim"),
    };
    let document = assemble(&resolved, &options.seeds, seeds, context);

    let html = match (&arguments.html, arguments.no_html) {
        (Some(path), _) => Some(path.clone()),
        (None, true) => None,
        (None, false) => Some(PathBuf::from(format!(
            "lagometer-{}.html",
            resolved.experiment.name
        ))),
    };
    output::show(&document, arguments.json.as_ref(), html.as_ref())?;
    let missed = document.budgets.iter().any(|budget| !budget.ok);
    Ok(ExitCode::from(u8::from(arguments.assert_budgets && missed)))
}

/// Finds the experiment and its network, and applies the flags.
fn prepare(arguments: &RunArguments) -> Result<Resolved, Failure> {
    let (mut experiment, folder) = find_experiment(&arguments.experiment)?;
    if let Some(network) = &arguments.network {
        experiment.network.clone_from(network);
    }
    if let Some(duration) = arguments.duration {
        experiment.duration = duration;
    }
    if let Some(seed) = arguments.seed {
        experiment.seed = seed;
    }
    if !arguments.lanes.is_empty() {
        experiment.keep_lanes(&arguments.lanes);
    }
    if arguments.tick.is_some() {
        let Workload::PacedEcho(workload) = &mut experiment.workload;
        workload.tick = arguments.tick;
    }
    experiment
        .check()
        .map_err(|(key, message)| Failure::Input(format!("{key}: {message}")))?;
    // A network named on the command line is found from here, one named in an
    // experiment's file from that file's folder.
    let folder = if arguments.network.is_some() {
        None
    } else {
        folder
    };
    let profile = find_network(&experiment.network, folder.as_deref())?;
    let network = experiment.network.clone();
    let resolved = resolve(experiment, network, profile).map_err(Failure::input)?;
    for lane in &resolved.unrunnable {
        eprintln!("lagometer: lane `{}` is left out: {}", lane.name, lane.why);
    }
    Ok(resolved)
}

/// A built-in experiment, or a file and its folder.
fn find_experiment(asked: &str) -> Result<(Experiment, Option<PathBuf>), Failure> {
    if let Some(text) = catalogue::text(asked) {
        let origin = format!("experiments/{asked}.toml");
        return Ok((
            Experiment::parse(&origin, text).map_err(Failure::input)?,
            None,
        ));
    }
    if !looks_like_a_file(asked) {
        return Err(Failure::Input(format!(
            "no experiment is called `{asked}`; {}; or name a .toml file",
            suggest(asked, &catalogue::names())
        )));
    }
    let path = Path::new(asked);
    let experiment = Experiment::parse(asked, &read(path)?).map_err(Failure::input)?;
    Ok((experiment, path.parent().map(Path::to_owned)))
}

/// A built-in network, or a file, relative to `folder` if there is one.
fn find_network(asked: &str, folder: Option<&Path>) -> Result<Profile, Failure> {
    if let Some(profile) = lagometer_link::catalogue::named(asked) {
        return Ok(profile);
    }
    if !looks_like_a_file(asked) {
        return Err(Failure::Input(format!(
            "no network is called `{asked}`; {}; or name a .toml file",
            suggest(
                asked,
                &lagometer_link::catalogue::names().collect::<Vec<_>>()
            )
        )));
    }
    let path = folder.map_or_else(|| PathBuf::from(asked), |folder| folder.join(asked));
    Profile::load(&path).map_err(Failure::input)
}

fn looks_like_a_file(asked: &str) -> bool {
    Path::new(asked).extension().is_some() || asked.contains('/')
}

fn announce(resolved: &Resolved, options: &RunOptions) {
    let seeds = match options.seeds[..] {
        [seed] => format!("seed {seed}"),
        [first, .., last] => format!("seeds {first} to {last}"),
        [] => String::new(),
    };
    eprintln!(
        "lagometer: playing {} lanes for {} over `{}`, {seeds}",
        resolved.lanes.len(),
        resolved.experiment.duration,
        resolved.network,
    );
}

/// The virtual time that all lanes of all seeds play together.
fn total_play(resolved: &Resolved, options: &RunOptions) -> Duration {
    let lanes = resolved.lanes.len() * options.seeds.len();
    (Plan::LEAD_IN + resolved.plan.duration)
        .saturating_mul(u32::try_from(lanes).unwrap_or(u32::MAX))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
