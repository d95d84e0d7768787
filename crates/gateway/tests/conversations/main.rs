//! Conversations with the gateway, drawn from seeds: attackers send what is
//! well formed and means harm, the well-behaved go about their business among
//! them, and after every act the gateway must live, its tables must be sound,
//! and the work and memory it spent must be in proportion.
//!
//! - `LAGOMETER_FUZZ_SECONDS=3600` holds conversations for that long, each of
//!   a seed of its own;
//! - `LAGOMETER_FUZZ_SEED=7` holds that of one seed;
//! - otherwise it is so many seeds, the same each time.
//!
//! What fails is cut down to what it takes to fail, and reported.

mod choices;
mod clock;
mod hostile;
mod peer;
mod play;
mod reach;
mod script;
mod sentinels;
mod settings;
mod shrink;
mod sockets;
mod tactics;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, mpsc};
use std::time::Duration;

use allocation_counter::measure;
use choices::Choices;
use clock::{fresh_seed, monotonic, processor_time};
use play::{Outcome, Play};
use script::{Act, Script};

const SECONDS: &str = "LAGOMETER_FUZZ_SECONDS";
const SEED: &str = "LAGOMETER_FUZZ_SEED";

/// Seeds that are tried where nothing else is asked for.
const SEEDS: u64 = 800;

/// Seeds whose conversations found something once, tried before those.
const REGRESSIONS: [u64; 3] = [
    // Short requests with long answers, by the thousand in one frame.
    1_882_590_490_395_795,
    // Access given up and taken back with masks, compressed; and by one whose
    // server reads at once.
    1_882_603_348_034_322,
    1_882_603_348_035_101,
];

/// Processor time that one act may take: what passes this is a stall, however
/// slow the machine.
const STALL: Duration = Duration::from_secs(5);

/// After so long on one conversation, and so much processor time, which a busy
/// machine may not give, it is taken to hang.
const HANG: (Duration, Duration) = (Duration::from_mins(2), Duration::from_mins(1));

/// How often a failing script is tried with something left out.
const SHRINK_TRIES: usize = 1500;

/// How long that may take.
const SHRINK_AT_MOST: Duration = Duration::from_secs(15);

/// Memory that a conversation may take at its height, bytes: for what a few
/// connections are allowed, and for each byte they sent.
const MEMORY: (u64, u64) = (96 << 20, 40);

/// Allocations that one act may take: for whatever it does, and for each byte
/// sent by it.
const ALLOCATIONS: (u64, u64) = (200_000, 60);

/// How many kinds of failure are reported before it ends.
const KINDS: usize = 8;

thread_local! {
    /// Which act is on, for a panic to be placed.
    static AT: Cell<usize> = const { Cell::new(0) };
    /// A conversation is on.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Why requests were refused, in all conversations.
static REFUSALS: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// How one conversation failed.
#[derive(Clone, Debug)]
struct Failure {
    at: usize,
    what: String,
}

/// Holds a conversation.
fn hold(script: &Script) -> Result<Outcome, Failure> {
    let mut result = Ok(Outcome::default());
    BEGUN[0].fetch_add(1, Ordering::Relaxed);
    QUIET.set(true);
    let memory = measure(|| {
        let caught = catch_unwind(AssertUnwindSafe(|| converse(script)));
        result = caught.unwrap_or_else(|panic| Err(in_words(&*panic)));
    });
    QUIET.set(false);
    let at = AT.get();
    let outcome = result.map_err(|what| Failure { at, what })?;
    let most = MEMORY.0 + MEMORY.1 * outcome.bytes_in;
    if memory.bytes_max > most {
        let what = format!(
            "{} bytes of memory at the height, for {} bytes sent: more than {most}",
            memory.bytes_max, outcome.bytes_in
        );
        return Err(Failure { at, what });
    }
    Ok(outcome)
}

fn converse(script: &Script) -> Result<Outcome, String> {
    AT.set(0);
    let mut play = Play::new(script)?;
    for index in 0..script.acts.len() {
        AT.set(index);
        let before = play.outcome();
        let began = processor_time();
        let mut result = Ok(());
        let work = measure(|| result = play.act(index));
        result?;
        let worked = processor_time().saturating_sub(began);
        let after = play.outcome();
        let sent = after.bytes_in - before.bytes_in;
        if worked > STALL {
            return Err(format!("{worked:?} of work for {sent} bytes"));
        }
        let passes = matches!(script.acts[index], Act::Pass(_));
        let most = ALLOCATIONS.0 + ALLOCATIONS.1 * sent;
        if work.count_total > most && !passes {
            return Err(format!(
                "{} allocations for {sent} bytes sent, {} messages on the bus, {} bytes written: more than {most}",
                work.count_total,
                after.bus - before.bus,
                after.bytes_out - before.bytes_out
            ));
        }
    }
    AT.set(script.acts.len());
    play.finish()?;
    REFUSALS.lock().unwrap().extend(play.refusals());
    Ok(play.outcome())
}

fn in_words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without words"))
}

/// What a failure is, whatever the numbers in it: a seed's failure is cut down
/// to the same, and reported once.
fn kind(what: &str) -> String {
    let letters = what.chars().filter(|letter| !letter.is_ascii_digit());
    letters.take(40).collect()
}

/// The failure of a seed, cut down, in words that say how to see it again.
fn described(seed: u64, script: &Script, failure: &Failure) -> String {
    silence_panics();
    let wanted = kind(&failure.what);
    let mut last = failure.clone();
    let began = monotonic();
    let short = shrink::shrink(script, SHRINK_TRIES, |candidate| {
        if monotonic().since(began) > SHRINK_AT_MOST {
            return false;
        }
        match hold(candidate) {
            Err(found) if kind(&found.what) == wanted => {
                last = found;
                true
            }
            _ => false,
        }
    });
    format!(
        "seed {seed}, act {}: {}\nagain: {SEED}={seed} cargo test -p lagometer-gateway --test conversations\n\
         cut down to act {}: {}\n{short}",
        failure.at, failure.what, last.at, last.what
    )
}

/// From now on conversations panic silently: the first has printed where, and its
/// transcript is being cut down.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
}

/// How many conversations were begun, whole or cut down, and the last seed.
static BEGUN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Ends the process with a word where one conversation does not end.
fn watch() -> mpsc::Sender<()> {
    let (done, ended) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let (wait, work) = HANG;
        let (mut before, mut worked) = (u64::MAX, Duration::ZERO);
        while let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
            let [begun, seed] = BEGUN.each_ref().map(|of| of.load(Ordering::Relaxed));
            if begun != before {
                worked = clock::processor_time_of_all();
            } else if clock::processor_time_of_all().saturating_sub(worked) >= work {
                // Past what keeps the output of tests until they end.
                let described = format!("seed {seed} hangs, or cut down does: {SEED}={seed}\n");
                let _ = std::io::stderr().write_all(described.as_bytes());
                std::process::abort();
            }
            before = begun;
        }
    });
    done
}

#[test]
fn whatever_peers_say_the_gateway_lives_and_serves_the_well_behaved() {
    let number = |name| -> Option<u64> { Some(std::env::var(name).ok()?.parse().expect(name)) };
    let seconds = number(SECONDS);
    let _watch = watch();
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let seeds: Box<dyn Iterator<Item = u64>> = match (number(SEED), seconds) {
        (Some(seed), _) => Box::new(std::iter::once(seed)),
        (None, Some(_)) => Box::new(fresh_seed()..),
        (None, None) => Box::new(REGRESSIONS.into_iter().chain(0..SEEDS)),
    };
    let began = monotonic();
    let mut sum = Outcome::default();
    let mut held = 0;
    for seed in seeds {
        BEGUN[1].store(seed, Ordering::Relaxed);
        let script = Script::draw(&mut Choices::seeded(seed));
        match hold(&script) {
            Ok(outcome) => {
                held += 1;
                sum.acts += outcome.acts;
                sum.messages_in += outcome.messages_in;
                sum.messages_out += outcome.messages_out;
                sum.bytes_in += outcome.bytes_in;
                sum.bytes_out += outcome.bytes_out;
                sum.bus += outcome.bus;
            }
            Err(failure) => {
                let kind = kind(&failure.what);
                failures
                    .entry(kind)
                    .or_insert_with(|| described(seed, &script, &failure));
            }
        }
        if failures.len() >= KINDS {
            break;
        }
        if seconds.is_some_and(|seconds| monotonic().since(began).as_secs() >= seconds) {
            break;
        }
    }
    println!("{held} conversations: {sum:?}");
    let described: Vec<String> = failures.into_values().collect();
    assert!(described.is_empty(), "{}", described.join("\n"));
    if number(SEED).is_none() && seconds.is_none() {
        reach::check(&REFUSALS.lock().unwrap());
    }
}

#[test]
fn the_same_seed_is_the_same_conversation() {
    for seed in 0..20 {
        let script = |seed| Script::draw(&mut Choices::seeded(seed));
        let (one, other) = (hold(&script(seed)), hold(&script(seed)));
        let digest = |result: Result<Outcome, Failure>| result.map_err(|failure| failure.what);
        assert_eq!(digest(one), digest(other), "seed {seed}");
    }
}

#[test]
fn the_bytes_of_a_fuzzer_are_a_conversation_too() {
    for seed in 0..20 {
        let mut choices = Choices::seeded(seed);
        let len = choices.below(4000);
        let bytes: Vec<u8> = (0..len).map(|_| choices.below(256) as u8).collect();
        play::body(&bytes);
    }
}
