//! `lagometer tune`: the settings of transports that serve a game best, searched in
//! virtual time and judged by play that the search never saw.

mod asked;
mod state;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use lagometer_lab::RunContext;
use lagometer_stats::{Document, TuneFinding};
use lagometer_testbed::Testbed;
use lagometer_tune::{Stage, planned_plays, tune as search};

use self::asked::Asked;
use self::state::Keeper;
use super::run::processors;
use crate::cli::TuneArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{interrupt, output};

/// With what a search ends that was stopped, as programs do that Ctrl-C ended.
const STOPPED: u8 = 130;

/// Searches, judges and shows what was found.
pub(crate) fn tune(arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    let asked = Asked::of(arguments)?;
    let mut keeper = Keeper::open(arguments.state.as_deref(), &asked.described())?;
    let stop = interrupt::listen()?;
    let ask = asked.ask();
    let each = asked.networks[0].resolved.plan.duration;
    let planned = u32::try_from(planned_plays(&ask, asked.networks.len())).unwrap_or(u32::MAX);
    note!(
        "lagometer: {} candidates of {} lanes on {} networks, at most {planned} plays of {:.0} s",
        ask.extent.candidates * ask.lanes.len(),
        ask.lanes.len(),
        asked.networks.len(),
        each.as_secs_f64()
    );
    let progress = Progress::new(each.saturating_mul(planned));
    let told = |played: Duration| progress.played(played);
    let (started, began) = (SystemTime::now(), Instant::now());
    let context = || RunContext {
        started,
        wall: began.elapsed(),
        host: lagometer_instruments::machine::named(),
        testbed: Some(Testbed::Sim),
        audit: None,
    };
    let memory = keeper.memory();
    let mut keep = |memory: &_| keeper.keep(memory);
    let mut stage = Stage {
        networks: &asked.networks,
        aim: &asked.aim,
        threads: arguments.jobs.map_or_else(processors, usize::from),
        memory,
        stop,
        progress: &told,
        keep: &mut keep,
    };
    let found = search(&mut stage, &ask, &context);
    let memory = stage.memory;
    progress.finish();
    keeper.finish(&memory)?;
    let Ok(document) = found else {
        note!("lagometer: {}", stopped(arguments, memory.len()));
        return Ok(ExitCode::from(STOPPED));
    };
    show(arguments, &document, &asked.name)?;
    Ok(Exit::Done.into())
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
    if let Some(path) = &arguments.toml {
        let lanes = document.tune.iter().flat_map(|tune| &tune.lanes);
        let found = lanes.filter(|lane| lane.finding != TuneFinding::Same);
        let lanes: Vec<&str> = found.map(|lane| lane.toml.as_str()).collect();
        output::write(path, &lanes.join("\n"))?;
    }
    let usual = format!("lagometer-tune-{name}.html");
    let html = output::page_path(arguments.html.as_ref(), arguments.no_html, usual);
    output::show(document, arguments.json.as_ref(), html.as_ref())
}
