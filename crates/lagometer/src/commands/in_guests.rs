//! The parts of `run` that only the testbed `kernel` has: one guest for each
//! seed, several at once.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lagometer_guest::{Cache, Cut, Ended, Guest, Job, Kernel, Limits, Outcome};
use lagometer_lab::SeedRun;
use lagometer_stats::{Audit, Document};
use serde_json::json;

use super::kernel::failure;
use crate::cli::RunArguments;
use crate::failure::Failure;
use crate::guest::{FOUND, Found, PLAYED};

/// Memory of a guest, in MiB: what it does not use the machine does not give.
const MEMORY_MIB: u32 = 2048;
/// Guests say every second of their clocks how far they are. One that does not
/// for so long in real time stands still.
const SILENCE: Duration = Duration::from_mins(3);
/// Lines of a guest's program that are kept, to say why it failed.
const WORDS_KEPT: usize = 20;

/// What the guests found.
pub(super) struct InGuests {
    pub(super) seeds: Vec<SeedRun>,
    pub(super) audit: Option<Audit>,
    /// The longest that a guest took, by its own clock.
    pub(super) longest: Duration,
}

/// What one guest found.
struct OneSeed {
    found: Found,
    at: Duration,
}

/// The kernel that was asked for.
pub(super) fn kernel(arguments: &RunArguments) -> Result<Kernel, Failure> {
    let cache = Cache::of_user().map_err(failure)?;
    cache.find(arguments.kernel.as_deref()).map_err(failure)
}

/// Plays every seed in a guest of its own, `at_once` of them at a time.
pub(super) fn play(
    arguments: &RunArguments,
    kernel: &Kernel,
    seeds: &[u64],
    at_once: usize,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<InGuests, Failure> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(seeds.iter().map(|_| None).collect::<Vec<_>>());
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, seeds.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = stop.load(Ordering::Relaxed) && index > 0;
                    let Some(&seed) = seeds.get(index) else {
                        return;
                    };
                    if is_over || has_failed.load(Ordering::Relaxed) {
                        return;
                    }
                    let played = play_seed(arguments, kernel, seed, progress, stop);
                    has_failed.fetch_or(played.is_err(), Ordering::Relaxed);
                    found.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(played);
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    merge(found.into_iter().flatten())
}

/// The findings of all guests, in the order of their seeds, or the first
/// failure.
fn merge(found: impl Iterator<Item = Result<OneSeed, Failure>>) -> Result<InGuests, Failure> {
    let mut merged = InGuests {
        seeds: Vec::new(),
        audit: None,
        longest: Duration::ZERO,
    };
    for one in found {
        let OneSeed { found, at } = one?;
        merged.longest = merged.longest.max(at);
        merged.seeds.extend(found.seed.map(SeedRun::from));
        let was_valid = merged.audit.as_ref().is_none_or(|audit| audit.valid);
        let is_worse = found.audit.as_ref().is_some_and(|audit| !audit.valid);
        if merged.audit.is_none() || (was_valid && is_worse) {
            merged.audit = found.audit;
        }
    }
    Ok(merged)
}

fn play_seed(
    arguments: &RunArguments,
    kernel: &Kernel,
    seed: u64,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<OneSeed, Failure> {
    let system = |what: &str, why: std::io::Error| Failure::Environment(format!("{what}: {why}"));
    let own_program = env::current_exe().map_err(|why| system("finding this program", why))?;
    let directory = env::current_dir().map_err(|why| system("finding this folder", why))?;
    let mut command = vec![OsString::from(&own_program)];
    command.extend(words(arguments, seed).into_iter().map(OsString::from));
    let job = Job {
        command,
        directory: directory.into(),
        environment: Vec::new(),
    };
    let guest = Guest {
        kernel,
        own_program: &own_program,
        job: &job,
        seed,
        limits: Limits {
            memory_mib: MEMORY_MIB,
            time: arguments.real_limit.duration(),
            silence: SILENCE,
        },
    };
    let mut said = Vec::new();
    let mut hear = |_, line: &str| match line.strip_prefix(PLAYED).map(str::parse) {
        Some(Ok(seconds)) => progress(Duration::from_secs(seconds)),
        _ if said.len() < WORDS_KEPT => said.push(line.to_owned()),
        _ => {}
    };
    let ended = guest.run(&mut hear, stop).map_err(failure)?;
    let found = fs::read(ended.share().join(FOUND))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    if let Outcome::Cut(why @ (Cut::Time | Cut::Silence)) = ended.outcome {
        note!("lagometer: {}", about_cut(seed, why, &ended));
    }
    match found {
        Some(found) => Ok(OneSeed {
            found,
            at: ended.at,
        }),
        None => Err(nothing_found(seed, &ended, &said)),
    }
}

/// What this program is to do within the guest.
fn words(arguments: &RunArguments, seed: u64) -> Vec<String> {
    let mut words = vec!["guest".to_owned(), format!("--seed={seed}")];
    words.extend(arguments.ipv6.then(|| "--ipv6".to_owned()));
    if !arguments.lanes.is_empty() {
        words.push(format!("--lanes={}", arguments.lanes.join(",")));
    }
    let network = arguments.network.as_ref();
    words.extend(network.map(|network| format!("--network={network}")));
    words.extend(arguments.duration.map(|span| format!("--for={span}")));
    words.extend(arguments.tick.map(|span| format!("--tick={span}")));
    words.extend(["--".to_owned(), arguments.experiment.clone()]);
    words
}

fn about_cut(seed: u64, why: Cut, ended: &Ended) -> String {
    let at = ended.at.as_secs_f64();
    match why {
        Cut::Silence => format!(
            "the guest of seed {seed} was ended: it said nothing for {} s, with its clock at \
             {at:.1} s; something in it computes without ever sleeping",
            SILENCE.as_secs()
        ),
        Cut::Time | Cut::Stopped => format!(
            "the guest of seed {seed} was ended at its limit, with its clock at {at:.1} s; \
             --real-limit gives it longer"
        ),
    }
}

fn nothing_found(seed: u64, ended: &Ended, said: &[String]) -> Failure {
    let last = said.last().map_or("nothing", String::as_str);
    let how = match ended.outcome {
        Outcome::Exited(code) => format!("ended with code {code}"),
        Outcome::Cut(_) => "was ended before it had found anything".to_owned(),
    };
    Failure::Environment(format!("the guest of seed {seed} {how}; it said: {last}"))
}

/// Puts the kernel into the run's document.
pub(super) fn label(document: &mut Document, kernel: &Kernel) {
    let record = kernel.record();
    if let Some(experiment) = document.experiment.as_object_mut() {
        let kernel = json!({
            "version": record.version,
            "hz": record.hz,
            "configuration": record.configuration,
        });
        experiment.insert("kernel".to_owned(), kernel);
    }
}
