//! This program within a guest: it becomes the kernel, is the guest's first
//! process, and plays one seed of an experiment there or runs commands.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lagometer_guest::{BOOT, INIT, SHARE, STOP, boot, init};
use lagometer_lab::QlogFolder;
use lagometer_lab::emu::{EmuOptions, play_emulated};
use lagometer_lab::saved::SavedSeed;
use lagometer_results::Audit;
use lagometer_testbed::Testbed;
use serde::{Deserialize, Serialize};

use crate::cli::{GuestArguments, GuestJob, GuestRunArguments, WorldArguments, kinds};
use crate::commands::{
    acquire_permission, emulation_failure, measure_within, named, play_worlds_within, read_recipe,
    shape_within,
};
use crate::failure::Failure;

/// What was found, in the folder that the guest shares.
pub(crate) const FOUND: &str = "found.json";

/// The log of packets, in the same place.
pub(crate) const PACKETS: &str = "packets.pcapng";

/// How a line begins that says how many more seconds were played, all lanes
/// together.
pub(crate) const PLAYED: &str = "played ";

/// How often is looked whether the guest is to end, by its own clock.
const LOOK: Duration = Duration::from_secs(1);

/// What one guest found.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// What the lanes did; nothing if no seed was begun.
    pub(crate) seed: Option<SavedSeed>,
    /// What the emulator says of its own work.
    pub(crate) audit: Option<Audit>,
    /// When each lane's schedule started, in nanoseconds since 1970, as the log of
    /// packets has it.
    pub(crate) schedules_ns: Vec<Option<u64>>,
    /// Why that log ends early, if it does.
    pub(crate) packets_cut: Option<String>,
    /// The names of the logs of connections, in the folder that the guest shares; or why
    /// one of them ends early.
    pub(crate) qlog: Result<Vec<String>, String>,
}

/// Becomes the kernel or a guest's first process, if that is asked for; then it
/// returns only where it could not.
pub(crate) fn become_part(arguments: &[OsString]) -> Option<Failure> {
    let asks = |words: [&str; 2]| {
        let given = arguments.get(1..3);
        given.is_some_and(|given| given.iter().zip(words).all(|(given, word)| given == word))
    };
    let failed = |error: io::Error| Failure::Environment(format!("a guest cannot be: {error}"));
    if asks(INIT) {
        return Some(failed(init()));
    }
    match arguments.get(3..) {
        Some([kernel, arguments @ ..]) if asks(BOOT) => {
            Some(failed(boot(Path::new(kernel), arguments)))
        }
        _ => None,
    }
}

/// Does within a guest what it was started for.
pub(crate) fn run(arguments: GuestArguments) -> Result<ExitCode, Failure> {
    match arguments.job {
        GuestJob::Run(arguments) => play_seed(&arguments),
        GuestJob::Shape(arguments) => shape_within(&arguments),
        GuestJob::World(arguments) => play_worlds(&arguments),
        instrument => share(&measure_within(instrument, watch)?),
    }
}

/// Plays one seed.
fn play_seed(arguments: &GuestRunArguments) -> Result<ExitCode, Failure> {
    acquire_permission()?;
    let mut resolved = match &arguments.bundle {
        Some(path) => {
            let mut recipe = read_recipe(path)?;
            recipe.experiment.seed = arguments.seed;
            recipe.resolve(Testbed::Kernel).map_err(Failure::input)?
        }
        None => named::resolved(&named::Ask {
            experiment: arguments.experiment.as_deref().unwrap_or_default(),
            network: arguments.network.as_deref(),
            duration: arguments.duration,
            tick: arguments.tick,
            seed: Some(arguments.seed),
            lanes: &arguments.lanes,
            presets: &kinds(&arguments.presets),
            testbed: Testbed::Kernel,
            to: None,
        })?,
    };
    for lane in &resolved.lanes {
        let lacks = |lacks| Failure::Environment(format!("lane `{}`: {lacks}", lane.name));
        lane.transport.offered().map_err(lacks)?;
    }
    let logs = if arguments.qlog {
        let watched = QlogFolder::watch(Path::new(SHARE), &mut resolved, arguments.seed);
        watched.map_err(|why| Failure::Write {
            path: SHARE.into(),
            why,
        })?
    } else {
        None
    };
    let options = EmuOptions {
        testbed: Testbed::Kernel,
        seeds: vec![arguments.seed],
        ipv6: arguments.ipv6,
        pcap: arguments.log.then(|| Path::new(SHARE).join(PACKETS)),
        tries: 1,
        watch: None,
    };
    let on_played = |played: Duration| note!("{PLAYED}{}", played.as_secs());
    let found =
        play_emulated(&resolved, &options, &on_played, watch()?).map_err(emulation_failure)?;
    let qlog = logs.map(QlogFolder::finish).transpose();
    let found = Found {
        seed: found.seeds.first().map(SavedSeed::from),
        audit: found.audit,
        schedules_ns: found.schedules.into_iter().map(since_1970).collect(),
        packets_cut: found.log.and_then(|log| log.failure),
        qlog: qlog
            .map(Option::unwrap_or_default)
            .map_err(|error| error.to_string()),
    };
    share(&found)
}

/// Plays worlds.
fn play_worlds(arguments: &WorldArguments) -> Result<ExitCode, Failure> {
    acquire_permission()?;
    share(&play_worlds_within(arguments, watch()?)?)
}

/// Leaves what was found to whoever started the guest.
fn share(found: &impl Serialize) -> Result<ExitCode, Failure> {
    let path = Path::new(SHARE).join(FOUND);
    let written = serde_json::to_vec(found)
        .map_err(io::Error::other)
        .and_then(|text| fs::write(&path, text));
    written.map_err(|why| Failure::Write { path, why })?;
    Ok(ExitCode::SUCCESS)
}

fn since_1970(at: Option<SystemTime>) -> Option<u64> {
    let since = at?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

/// The flag that is raised when the guest is to end.
fn watch() -> Result<&'static AtomicBool, Failure> {
    static STOPS: AtomicBool = AtomicBool::new(false);
    let stop = Path::new(SHARE).join(STOP);
    thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || {
            while !stop.exists() {
                thread::sleep(LOOK);
            }
            STOPS.store(true, Ordering::Relaxed);
        })
        .map_err(|why| Failure::Environment(format!("cannot start a thread: {why}")))?;
    Ok(&STOPS)
}
