//! `lagometer replay`: a bundled run, played again and held against what it
//! found.

use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use lagometer_lab::{Bundle, RunContext, RunOptions, assemble, play};
use lagometer_testbed::Testbed;
use lagometer_units::{MOST_DATA, read_file};

use super::run::{announce, processors, total_play};
use crate::cli::BundleArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{interrupt, output};

/// Plays a bundle again and says whether it found the same, and if not what
/// differs first.
pub(crate) fn replay(arguments: &BundleArguments) -> Result<ExitCode, Failure> {
    let path = &arguments.bundle;
    let bytes = read_file(path, MOST_DATA).map_err(|why| Failure::Read {
        path: path.clone(),
        why,
    })?;
    let wrong =
        |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
    let bundle = Bundle::from_bytes(&bytes).map_err(|error| wrong(&error))?;
    let resolved = bundle.resolve().map_err(|error| wrong(&error))?;
    let options = RunOptions {
        seeds: bundle.document.seeds.clone(),
        threads: arguments.threads.map_or_else(processors, usize::from),
    };
    let stop = interrupt::listen()?;
    let (started, began) = (SystemTime::now(), Instant::now());
    announce(&resolved, &options);
    let progress = Progress::new(total_play(&resolved, &options));
    let seeds = play(&resolved, &options, &|played| progress.played(played), stop);
    progress.finish();
    let context = RunContext {
        started,
        wall: began.elapsed(),
        host: lagometer_instruments::machine::named(),
        testbed: Some(Testbed::Sim),
        audit: None,
    };
    let document = assemble(&resolved, &options.seeds, seeds, context);
    output::show(&document, arguments.json.as_ref(), arguments.html.as_ref())?;
    let (then, now) = (&bundle.version, env!("CARGO_PKG_VERSION"));
    if document.partial {
        note!("lagometer: cut short, so whether it found the same is not known");
        return Ok(Exit::DoesNotHold.into());
    }
    let difference = bundle.first_difference(&document);
    match &difference {
        None => note!(
            "lagometer: the same findings as when version {then} played it: digest {}",
            bundle.digest()
        ),
        Some(first) => {
            note!("lagometer: not what version {then} found (this is {now}); first: {first}");
        }
    }
    Ok(Exit::of(difference.is_none()).into())
}
