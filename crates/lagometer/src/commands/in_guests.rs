//! The parts of `run` that only the testbed `kernel` has: one guest for each
//! seed, several at once.

use std::ffi::OsString;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lagometer_guest::{Cut, Ended, Kernel, Outcome, Said, Traps};
use lagometer_lab::SeedRun;
use lagometer_results::{Audit, Document};
use lagometer_testbed::keep_audit;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::in_guest::{Visit, packets, who_computes};
use super::named::Ask;
use super::qlog::GuestLogs;
use crate::failure::Failure;
use crate::guest::{FOUND, Found, PLAYED};

/// Guests say every second of their clocks how far they are. One that does not
/// for so long in real time stands still.
pub(super) const SILENCE: Duration = Duration::from_mins(3);

/// What the guests found.
pub(super) struct InGuests {
    pub(super) seeds: Vec<SeedRun>,
    pub(super) audit: Option<Audit>,
    /// The longest that a guest took, by its own clock.
    pub(super) longest: Duration,
    /// Of the first guest that was ended at a limit, why; what it had found until then
    /// is among the rest.
    pub(super) cut_at_limit: Option<String>,
    /// The first seed's packets, where they were asked for.
    pub(super) packets: Packets,
    /// The first seed's logs of connections, where they were asked for.
    pub(super) qlog: GuestLogs,
}

impl InGuests {
    /// Refuses what is not whole because a guest was ended at a limit.
    pub(super) fn check_whole(&self) -> Result<(), Failure> {
        check_whole(self.cut_at_limit.clone())
    }
}

/// Refuses what a guest found that was ended at a limit, with the reason that
/// [`cut_at_limit`] gives.
pub(super) fn check_whole(cut: Option<String>) -> Result<(), Failure> {
    cut.map_or(Ok(()), |why| Err(Failure::Environment(why)))
}

/// The log of one seed's packets.
#[derive(Default)]
pub(super) struct Packets {
    /// As `lagometer_emu` writes it; empty where nothing was logged.
    pub(super) log: Vec<u8>,
    /// When each lane's schedule started, in nanoseconds since 1970.
    pub(super) schedules_ns: Vec<Option<u64>>,
    /// Why the log ends early, if it does.
    pub(super) cut: Option<String>,
}

impl Packets {
    /// Refuses a log that ends early.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match &self.cut {
            None => Ok(()),
            Some(why) => Err(Failure::Environment(format!(
                "the guest's log of packets ended early: {why}; make room in {}",
                std::env::temp_dir().display()
            ))),
        }
    }
}

/// What each guest is to play, with a seed of its own.
pub(super) struct Errand<'a> {
    /// What is played. Its seed is left to who plays it.
    pub(super) what: What<'a>,
    /// Lanes use IPv6.
    pub(super) ipv6: bool,
    /// Packets are logged, of the first seed.
    pub(super) is_logged: bool,
    /// Connections are logged, of the first seed, by transports that write logs.
    pub(super) has_qlog: bool,
    /// The longest a guest may take in real time.
    pub(super) real_limit: Duration,
}

/// What a guest plays.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    /// What the command line names.
    Asked(&'a Ask<'a>),
    /// What the bundle in this file holds, or the recipe of one.
    Bundled(&'a Path),
}

/// What one guest found.
struct OneSeed {
    found: Found,
    log: Vec<u8>,
    qlog: GuestLogs,
    at: Duration,
    cut_at_limit: Option<String>,
}

/// Plays every seed in a guest of its own, `at_once` of them at a time.
pub(super) fn play(
    errand: &Errand<'_>,
    kernel: &Kernel,
    seeds: &[u64],
    at_once: usize,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<InGuests, Failure> {
    let found = each_seed(seeds, at_once, stop, |index, seed| {
        play_seed(errand, kernel, seed, index == 0, progress, stop)
    });
    merge(found.into_iter())
}

/// What `play` returns of every seed, with its number from 0, in the order of the seeds;
/// `at_once` of them are played at a time. After a failure, or when `stop` becomes true,
/// seeds that have not begun are left out, but for the first.
pub(super) fn each_seed<T: Send>(
    seeds: &[u64],
    at_once: usize,
    stop: &AtomicBool,
    play: impl Fn(usize, u64) -> Result<T, Failure> + Sync,
) -> Vec<Result<T, Failure>> {
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
                    let played = play(index, seed);
                    has_failed.fetch_or(played.is_err(), Ordering::Relaxed);
                    found.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(played);
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_iter().flatten().collect()
}

/// The findings of all guests, in the order of their seeds, or the first
/// failure.
fn merge(found: impl Iterator<Item = Result<OneSeed, Failure>>) -> Result<InGuests, Failure> {
    let mut merged = InGuests {
        seeds: Vec::new(),
        audit: None,
        longest: Duration::ZERO,
        cut_at_limit: None,
        packets: Packets::default(),
        qlog: GuestLogs::default(),
    };
    for one in found {
        let OneSeed {
            found,
            log,
            qlog,
            at,
            cut_at_limit,
        } = one?;
        if merged.seeds.is_empty() {
            merged.packets = Packets {
                log,
                schedules_ns: found.schedules_ns,
                cut: found.packets_cut,
            };
            merged.qlog = qlog;
        }
        merged.longest = merged.longest.max(at);
        merged.cut_at_limit = merged.cut_at_limit.or(cut_at_limit);
        merged.seeds.extend(found.seed.map(SeedRun::from));
        if let Some(audit) = found.audit {
            keep_audit(&mut merged.audit, audit);
        }
    }
    Ok(merged)
}

fn play_seed(
    errand: &Errand<'_>,
    kernel: &Kernel,
    seed: u64,
    is_first: bool,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<OneSeed, Failure> {
    let is_logged = errand.is_logged && is_first;
    let visit = Visit {
        kernel,
        seed,
        traps: Traps::Trusted,
        words: words(errand, seed, is_first),
        limit: errand.real_limit,
        silence: SILENCE,
        environment: Vec::new(),
        keeps_files: false,
    };
    let mut on_line = |line: &Said<'_>| {
        let line = line.text();
        if let Some(Ok(seconds)) = line.strip_prefix(PLAYED).map(str::parse) {
            progress(Duration::from_secs(seconds));
        }
    };
    let (found, ended) = found_by(visit, &mut on_line, stop)?;
    let log = if is_logged {
        packets(&ended)
    } else {
        Vec::new()
    };
    Ok(OneSeed {
        qlog: connection_logs(&found, &ended)?,
        found,
        log,
        at: ended.at,
        cut_at_limit: cut_at_limit(seed, &ended),
    })
}

/// The logs that a guest left.
fn connection_logs(found: &Found, ended: &Ended) -> Result<GuestLogs, Failure> {
    let in_guest = |what: String| format!("the guest's logs of connections: {what}");
    let names = match &found.qlog {
        Ok(names) => names,
        Err(why) => {
            return Ok(GuestLogs {
                files: Vec::new(),
                cut: Some(in_guest(why.clone())),
            });
        }
    };
    let mut files = Vec::new();
    for name in names {
        let file = ended.open_shared(name);
        let file = file.map_err(|why| Failure::Environment(in_guest(format!("{name}: {why}"))))?;
        files.push((name.clone(), file));
    }
    Ok(GuestLogs { files, cut: None })
}

/// What a guest found, which is read from to its end; of one that had to be ended,
/// what it had found until then, which [`cut_at_limit`] reports.
pub(super) fn found_by<T: DeserializeOwned>(
    visit: Visit<'_>,
    on_line: &mut dyn FnMut(&Said<'_>),
    stop: &AtomicBool,
) -> Result<(T, Ended), Failure> {
    let seed = visit.seed;
    let mut last = None;
    let mut keep = |line: &Said<'_>| {
        if !line.text().starts_with(PLAYED) {
            last = Some(line.text().into_owned());
        }
        on_line(line);
    };
    let ended = visit.run(&mut keep, stop)?;
    let found = ended
        .open_shared(FOUND)
        .ok()
        .and_then(|file| serde_json::from_reader(BufReader::new(file)).ok());
    match found {
        Some(found) => {
            if ended.outcome == Outcome::Cut(Cut::Stopped)
                && let Some(thread) = &ended.busy
            {
                note!("lagometer: the guest of seed {seed} was at its thread `{thread}`");
            }
            Ok((found, ended))
        }
        None => Err(nothing_found(seed, &ended, last.as_deref())),
    }
}

/// What this program is to do within the guest.
fn words(errand: &Errand<'_>, seed: u64, is_first: bool) -> Vec<OsString> {
    let mut words = ["guest", "run"].map(str::to_owned).to_vec();
    words.push(format!("--seed={seed}"));
    words.extend(errand.ipv6.then(|| "--ipv6".to_owned()));
    let logs = [("--log", errand.is_logged), ("--qlog", errand.has_qlog)];
    let logs = logs.iter().filter(|(_, is_asked)| is_first && *is_asked);
    words.extend(logs.map(|&(flag, _)| flag.to_owned()));
    let what = match errand.what {
        What::Asked(ask) => {
            words.extend(flags(ask));
            ["--".into(), ask.experiment.into()]
        }
        What::Bundled(path) => ["--bundle".into(), path.into()],
    };
    words.into_iter().map(OsString::from).chain(what).collect()
}

/// What was asked beside the experiment.
fn flags(ask: &Ask<'_>) -> Vec<String> {
    let mut words = Vec::new();
    if !ask.lanes.is_empty() {
        words.push(format!("--lanes={}", ask.lanes.join(",")));
    }
    if !ask.presets.is_empty() {
        let presets: Vec<&str> = ask.presets.iter().map(|kind| kind.name()).collect();
        words.push(format!("--presets={}", presets.join(",")));
    }
    let network = ask.network;
    words.extend(network.map(|network| format!("--network={network}")));
    words.extend(ask.duration.map(|span| format!("--for={span}")));
    words.extend(ask.tick.map(|span| format!("--tick={span}")));
    words
}

/// Why a guest was ended if that was at a limit: what it found is of the time before.
pub(super) fn cut_at_limit(seed: u64, ended: &Ended) -> Option<String> {
    let at = ended.at.as_secs_f64();
    match ended.outcome {
        Outcome::Cut(Cut::Silence) => Some(format!(
            "the guest of seed {seed} was ended: it said nothing for {} s, with its clock at \
             {at:.1} s; {} computes without ever sleeping",
            SILENCE.as_secs(),
            who_computes(ended),
        )),
        Outcome::Cut(Cut::Time) => Some(format!(
            "the guest of seed {seed} was ended at its limit, with its clock at {at:.1} s; \
             --real-limit gives it longer"
        )),
        Outcome::Cut(Cut::Stopped) | Outcome::Exited(_) => None,
    }
}

fn nothing_found(seed: u64, ended: &Ended, last: Option<&str>) -> Failure {
    let last = last.unwrap_or("nothing");
    let how = cut_at_limit(seed, ended).unwrap_or_else(|| match ended.outcome {
        Outcome::Exited(code) => format!("the guest of seed {seed} ended with code {code}"),
        Outcome::Cut(_) => format!(
            "the guest of seed {seed} was stopped before it had found anything, at {}",
            who_computes(ended)
        ),
    });
    Failure::Environment(format!("{how}; it said: {last}"))
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
