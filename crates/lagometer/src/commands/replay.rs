//! `lagometer replay`: a bundled run, played again and held against what it
//! found.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use lagometer_guest::Kernel;
use lagometer_lab::bundle::{BadBundle, Recipe};
use lagometer_lab::{Bundle, RunContext, RunOptions, assemble, play};
use lagometer_testbed::Testbed;
use lagometer_units::{MOST_DATA, read_file};

use super::in_guest;
use super::in_guests::{self, Errand, What};
use super::run::{announce, processors, total_play};
use crate::cli::{BundleArguments, GuestFlags};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::overwriting::Files;
use crate::progress::Progress;
use crate::{interrupt, output};

/// Plays a bundle again and says whether it found the same, and if not what
/// differs first.
pub(crate) fn replay(arguments: &BundleArguments) -> Result<ExitCode, Failure> {
    let path = &arguments.bundle;
    let files = Files {
        read: vec![path],
        written: vec![arguments.json.as_ref(), arguments.html.as_ref()],
    };
    files.check()?;
    let bundle = read_bundle(path)?;
    let resolved = bundle
        .resolve()
        .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    let kernel = kernel(&bundle, path, &arguments.guest)?;
    let options = RunOptions {
        seeds: bundle.document.seeds.clone(),
        threads: arguments.threads.map_or_else(processors, usize::from),
    };
    let stop = interrupt::listen()?;
    let (started, began) = (SystemTime::now(), Instant::now());
    announce(&resolved, &options);
    let progress = Progress::new(total_play(&resolved, &options));
    let on_played = |played| progress.played(played);
    let mut whole = Ok(());
    let (seeds, audit, wall) = match &kernel {
        None => (
            play(&resolved, &options, &on_played, stop),
            None,
            began.elapsed(),
        ),
        Some(kernel) => {
            let errand = Errand {
                what: What::Bundled(path),
                ipv6: false,
                is_logged: false,
                has_qlog: false,
                real_limit: arguments.guest.real_limit.duration(),
            };
            let (seeds, at_once) = (&options.seeds, options.threads);
            let found = in_guests::play(&errand, kernel, seeds, at_once, &on_played, stop)?;
            whole = found.check_whole();
            (found.seeds, found.audit, found.longest)
        }
    };
    progress.finish();
    let context = RunContext {
        started,
        wall,
        host: lagometer_instruments::machine::named(),
        testbed: Some(bundle.testbed()),
        audit,
    };
    let mut document = assemble(&resolved, &options.seeds, seeds, context);
    if let Some(kernel) = &kernel {
        in_guests::label(&mut document, kernel);
    }
    output::show(&document, arguments.json.as_ref(), arguments.html.as_ref())?;
    whole?;
    let (then, now) = (&bundle.recipe.version, env!("CARGO_PKG_VERSION"));
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

/// Reads a bundle's file.
fn read_bundle(path: &Path) -> Result<Bundle, Failure> {
    read(path, Bundle::from_bytes)
}

/// What a bundle plays, without looking at what it found; or what was written without
/// anything found.
pub(crate) fn read_recipe(path: &Path) -> Result<Recipe, Failure> {
    read(path, Recipe::from_bytes)
}

fn read<T>(path: &Path, of: fn(&[u8]) -> Result<T, BadBundle>) -> Result<T, Failure> {
    let bytes = read_file(path, MOST_DATA).map_err(|why| Failure::Read {
        path: path.to_owned(),
        why,
    })?;
    of(&bytes).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// The kernel to play on: that of the bundle, unless another is asked for. `None` where
/// none was played on.
fn kernel(bundle: &Bundle, path: &Path, flags: &GuestFlags) -> Result<Option<Kernel>, Failure> {
    let input = |what: &str| Failure::Input(format!("{} {what}", path.display()));
    if bundle.testbed() != Testbed::Kernel {
        return match flags.kernel {
            Some(_) => Err(input("was played without a kernel: leave out `--kernel`")),
            None => Ok(None),
        };
    }
    let then = bundle
        .kernel()
        .ok_or_else(|| input("does not say which kernel it was played on: bundle it again"))?;
    let kernel = GuestFlags {
        kernel: Some(flags.kernel.clone().unwrap_or_else(|| then.clone())),
        ..flags.clone()
    };
    in_guest::kernel(&kernel).map(Some).map_err(|error| {
        if flags.kernel.is_some() {
            return error;
        }
        Failure::Environment(format!(
            "{} was played on the kernel {}, which is not here: build it with `lagometer kernel \
             build`, or name another with --kernel, which may find something else",
            path.display(),
            then.escape_debug()
        ))
    })
}
