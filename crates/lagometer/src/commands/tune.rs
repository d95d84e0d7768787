//! `lagometer tune`: the settings of transports that serve a game best, searched in
//! virtual time and judged by play that the search never saw.

mod asked;
mod guests;
mod state;
mod workers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use lagometer_guest::Kernel;
use lagometer_lab::RunContext;
use lagometer_report::lanes_to_paste;
use lagometer_results::{Document, Warning};
use lagometer_testbed::Testbed;
use lagometer_tune::{
    Ask, Evaluator, Memory, Runner, Stopped, Threads, planned_plays, tune as search,
};

use self::asked::Asked;
use self::guests::Guests;
use self::state::Keeper;
use self::workers::Workers;
use super::over_nats::{self, Reached};
use super::run::processors;
use super::{in_guest, in_guests};
use crate::cli::TuneArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::overwriting::Files;
use crate::progress::Progress;
use crate::{interrupt, output};

/// Searches, judges and shows what was found.
pub(crate) fn tune(arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    files(arguments).check()?;
    check_flags(arguments)?;
    let asked = Asked::of(arguments)?;
    let kernel = (arguments.testbed == Testbed::Kernel)
        .then(|| in_guest::kernel(&arguments.guest))
        .transpose()?;
    let described = asked.described(kernel.as_ref());
    let mut keeper = Keeper::open(arguments.state.as_deref(), &described)?;
    let stop = interrupt::listen()?;
    let ask = asked.ask();
    let each = asked.networks[0].resolved.plan.duration;
    let planned = u32::try_from(planned_plays(&ask, asked.networks.len())).unwrap_or(u32::MAX);
    let unmet = asked.unmet(&ask);
    announce(&asked, &ask, planned);
    for unmet in &unmet {
        note!("lagometer: {unmet}");
    }
    let progress = Progress::new(each.saturating_mul(planned));
    let mut memory = keeper.memory();
    let found = {
        let environment = SearchEnvironment {
            arguments,
            kernel: kernel.as_ref(),
            progress: &|played| progress.played(played),
            stop,
        };
        environment.search(&asked, &ask, &mut memory, &mut |memory| keeper.keep(memory))
    };
    progress.finish();
    let kept = keeper.finish(&memory);
    let found = match found {
        Ok(found) => found,
        // What was played by then is kept all the same.
        Err(failure) => return Failure::unless(Err(failure), kept.err()),
    };
    let Ok(mut document) = found else {
        kept?;
        note!("lagometer: {}", stopped(arguments, memory.len()));
        return Ok(Exit::Interrupted.into());
    };
    document
        .warnings
        .extend(unmet.into_iter().map(Warning::from));
    // What was found is shown whether it could be kept or not.
    let shown = show(arguments, &document, &asked.name);
    Failure::unless(shown, kept.err())?;
    Ok(Exit::Done.into())
}

fn announce(asked: &Asked, ask: &Ask<'_>, planned: u32) {
    note!(
        "lagometer: {} candidates of {} lanes on {} networks, at most {planned} plays of {:.0} s",
        ask.extent.candidates * ask.lanes.len(),
        ask.lanes.len(),
        asked.networks.len(),
        asked.networks[0].resolved.plan.duration.as_secs_f64()
    );
}

/// Where a search is played, and what becomes of what is played there.
struct SearchEnvironment<'a> {
    arguments: &'a TuneArguments,
    /// The kernel of guests; none in virtual time without one.
    kernel: Option<&'a Kernel>,
    /// Is called with virtual time that was played.
    progress: &'a (dyn Fn(Duration) + Sync),
    /// When it becomes true, nothing more is played.
    stop: &'a AtomicBool,
}

impl SearchEnvironment<'_> {
    /// Searches, on threads or in guests of this machine or on workers over NATS; `keep` is
    /// shown what was played after each play.
    fn search(
        &self,
        asked: &Asked,
        ask: &Ask<'_>,
        memory: &mut Memory,
        keep: &mut (dyn FnMut(&Memory) + Send),
    ) -> Result<Result<Document, Stopped>, Failure> {
        let (started, began) = (SystemTime::now(), Instant::now());
        let audit = Mutex::new(None);
        let context = || RunContext {
            started,
            wall: began.elapsed(),
            host: lagometer_instruments::machine::named(),
            testbed: Some(self.arguments.testbed),
            audit: audit.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let (progress, stop) = (self.progress, self.stop);
        let mut search_with = |runner: &mut dyn Runner| {
            let mut evaluator = Evaluator {
                networks: &asked.networks,
                aim: &asked.aim,
                runner,
                memory,
                progress,
                keep,
            };
            search(&mut evaluator, ask, &context)
        };
        let at_once = self.arguments.jobs.map_or_else(processors, usize::from);
        if let Some(kernel) = self.kernel {
            let mut guests = Guests {
                kernel,
                at_once,
                real_limit: self.arguments.guest.real_limit.duration(),
                progress,
                stop,
                audit: &audit,
                failure: None,
            };
            let mut found = search_with(&mut guests);
            if let Some(failure) = guests.failure {
                return Err(failure);
            }
            if let Ok(document) = &mut found {
                in_guests::label(document, kernel);
            }
            return Ok(found);
        }
        let Some(urls) = &self.arguments.nats else {
            return Ok(search_with(&mut Threads {
                threads: at_once,
                stop,
                progress,
            }));
        };
        let reached = Reached {
            urls,
            arguments: &self.arguments.reached,
            progress,
            stop,
        };
        let recipes = workers::recipes(&asked.networks);
        reached.coordinate(&recipes, |queue| search_with(&mut Workers { queue }))
    }
}

/// Flags that have a meaning in one testbed only.
fn check_flags(arguments: &TuneArguments) -> Result<(), Failure> {
    in_guest::check_kernel(&arguments.guest, arguments.testbed == Testbed::Kernel)?;
    over_nats::check_testbed(arguments.nats.as_deref(), arguments.testbed)
}

/// What is read and written.
fn files(arguments: &TuneArguments) -> Files<'_> {
    let prices = arguments.prices.prices.iter().map(PathBuf::as_path);
    Files {
        read: prices.chain([Path::new(&arguments.experiment)]).collect(),
        written: vec![
            arguments.json.as_ref(),
            arguments.html.as_ref(),
            arguments.toml.as_ref(),
            arguments.state.as_ref(),
        ],
    }
}

fn stopped(arguments: &TuneArguments, plays: usize) -> String {
    match &arguments.state {
        Some(path) => format!(
            "stopped after {plays} plays; the same command goes on from {}",
            path.display()
        ),
        None => {
            format!("stopped after {plays} plays; with `--state FILE` it could go on from there")
        }
    }
}

fn show(arguments: &TuneArguments, document: &Document, name: &str) -> Result<(), Failure> {
    let usual = format!("lagometer-tune-{name}.html");
    let html = output::page_path(arguments.html.as_ref(), arguments.no_html, usual);
    let shown = output::show(document, arguments.json.as_ref(), html.as_ref());
    let found = document.tune.as_ref().map(lanes_to_paste);
    let written = arguments
        .toml
        .as_ref()
        .zip(found)
        .map_or(Ok(()), |(path, lanes)| output::write(path, &lanes));
    Failure::unless(shown, written.err())
}
