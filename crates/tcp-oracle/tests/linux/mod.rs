//! The tests and what they share.

mod queues;

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_guest::{
    BOOT, Cache, Guest, INIT, Job, Kernel, Limits, Outcome, SHARE, Said, Traps, boot, init,
};
use libtest_mimic::{Arguments, Failed, Trial};
use tcp_oracle::{Batch, Class, Difference, Trace, compare, record};

/// By which the guest is asked to play conversations.
const DRIVE: [&str; 2] = ["guest", "drive"];
const TRACES: &str = "traces";
/// Conversations for a guest.
const AT_ONCE: u64 = 100;
const LIMITS: Limits = Limits {
    memory_mib: 1024,
    time: Duration::from_mins(30),
    silence: Duration::from_mins(3),
};
const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
/// Lines of a guest that failed that are shown.
const LAST_SAID: usize = 5;
/// Differences that are shown at length.
const SHOWN: usize = 20;

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let asks = |words: [&str; 2]| arguments.starts_with(&words.map(OsString::from));
    if asks(INIT) {
        eprintln!("{}", init());
        return ExitCode::FAILURE;
    }
    if asks(BOOT) {
        eprintln!("{}", boot(Path::new(&arguments[2]), &arguments[3..]));
        return ExitCode::FAILURE;
    }
    if asks(DRIVE) {
        return drive(&arguments[2..]);
    }
    if asks(queues::DRIVE) {
        return queues::drive(&arguments[2..]);
    }
    let kernel = Cache::of_user().and_then(|cache| cache.find(None));
    let trials = match kernel {
        Ok(kernel) => trials(&kernel),
        Err(why) if env::var_os("LAGOMETER_REQUIRE_KERNEL").is_some() => {
            eprintln!("LAGOMETER_REQUIRE_KERNEL is set, but {why}");
            return ExitCode::FAILURE;
        }
        Err(why) => {
            println!("skipped: {why}");
            Vec::new()
        }
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// How many conversations of a kind are always played. Options have many combinations.
fn fixed(class: Class) -> u64 {
    if class == Class::Options { 60 } else { 20 }
}

/// Conversations beyond those, by their seeds: each showed a rule of the kernel's that was
/// not there, and few others do.
fn decisive(class: Class, control: &str) -> &'static [u64] {
    match (class, control) {
        // What is acknowledged of a buffer in part.
        (Class::Burst, "cubic") => &[42],
        // What pacing holds back is not counted; an option alone is not stamped.
        (Class::Loss, "bbr") => &[120, 129],
        // A write keeps the segment size with which it began.
        (Class::Reorder, "reno") => &[76],
        // A FIN ends the report of a duplicate; the rate after a SYN sent again.
        (Class::Mixed, "cubic") => &[92, 167],
        // What a probe for the MTU costs of the memory set aside; a SYN sent again without time
        // stamps leaves its backoff.
        (Class::Options, "cubic") => &[229, 303],
        // A probe for the MTU before a FIN; segments joined without SACK; marks and TIME-WAIT;
        // RACK passes over what is lost and not sent again.
        (Class::Options, "reno") => &[108, 170, 172, 362],
        // A lost probe is joined with nothing.
        (Class::Options, "bbr") => &[196],
        _ => &[],
    }
}

/// Which conversations are known not to be identical, by their seeds. What they come from
/// is in `docs/tcp.md`.
fn known(class: Class, control: &str) -> &'static [u64] {
    match (class, control) {
        (Class::Options, "cubic") => &[3],
        _ => &[],
    }
}

/// How many others may not be. Which phases BBR draws is the kernel's chance, and another
/// build of this program may have another.
fn spare(control: &str) -> usize {
    usize::from(control == "bbr")
}

/// In a guest: plays the conversations.
fn drive(arguments: &[OsString]) -> ExitCode {
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let Some(batch) = Batch::parse(&arguments) else {
        println!("no such conversations: {arguments:?}");
        return ExitCode::FAILURE;
    };
    let traces = Path::new(SHARE).join(TRACES);
    match record(&batch, &traces, &mut |name| println!("{name}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn trials(kernel: &Kernel) -> Vec<Trial> {
    let mut trials = queues::trials(kernel);
    for control in CONTROLS {
        for class in Class::ALL {
            let kernel = kernel.clone();
            let name = format!(
                "{control}_sends_what_the_kernel_sends_over_a_{}_path",
                class.name()
            );
            trials.push(Trial::test(name, move || hold(&kernel, class, control)));
        }
    }
    trials
}

/// The first seed and how many, where `LAGOMETER_TCP_SEEDS` asks for some.
fn asked_seeds() -> Result<Option<(u64, u64)>, Failed> {
    let Ok(seeds) = env::var("LAGOMETER_TCP_SEEDS") else {
        return Ok(None);
    };
    let (first, last) = seeds.split_once('-').unwrap_or(("1", &seeds));
    let (first, last): (u64, u64) = (first.parse()?, last.parse()?);
    Ok(Some((first, (last + 1).saturating_sub(first))))
}

/// Plays conversations of a kind and compares them.
fn hold(kernel: &Kernel, class: Class, control: &str) -> Result<(), Failed> {
    let asked = asked_seeds()?;
    let batches = if let Some((first, count)) = asked {
        in_batches(first, count)
    } else {
        let decisive = decisive(class, control).iter().map(|seed| (*seed, 1));
        in_batches(1, fixed(class))
            .into_iter()
            .chain(decisive)
            .collect()
    };
    let count: u64 = batches.iter().map(|(_, count)| count).sum();
    let mut different = Vec::new();
    let mut unknown = Vec::new();
    for seeds in batches {
        let batch = Batch {
            class,
            control: control.to_owned(),
            seeds,
        };
        let recorded = traces(kernel, DRIVE, &batch.arguments())?;
        for (seed, trace) in (seeds.0..).zip(Trace::parse_whole(&recorded, batch.names())?) {
            let Some(found) = compare(&trace).into_iter().next() else {
                continue;
            };
            different.push(found);
            if !known(class, control).contains(&seed) {
                unknown.push(seed);
            }
        }
    }
    let same = count - different.len() as u64;
    println!("{}", report(class, control, same, count, &different));
    if asked.is_none() && unknown.len() > spare(control) {
        return Err(format!("not identical are the conversations of {unknown:?}").into());
    }
    Ok(())
}

/// So many seeds from `first` on, as a guest takes them: the first of each and how many.
fn in_batches(first: u64, count: u64) -> Vec<(u64, u64)> {
    let end = first + count;
    let firsts = (first..end).step_by(AT_ONCE as usize);
    firsts.map(|at| (at, AT_ONCE.min(end - at))).collect()
}

fn report(class: Class, control: &str, same: u64, count: u64, all: &[Difference]) -> String {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for difference in all {
        *kinds.entry(&difference.kind).or_default() += 1;
    }
    let mut text = format!(
        "{} {control}: {same} of {count} identical; {kinds:?}",
        class.name()
    );
    for difference in all.iter().take(SHOWN) {
        text.push('\n');
        text.push_str(&difference.text);
    }
    text
}

/// The traces of what `arguments` ask the part `drive` for: those kept, or from a
/// guest.
fn traces(kernel: &Kernel, drive: [&str; 2], arguments: &[String]) -> Result<String, Failed> {
    let name = arguments.join("-");
    let kept = env::var_os("LAGOMETER_TCP_TRACES").map(|folder| PathBuf::from(folder).join(name));
    if let Some(kept) = &kept
        && let Ok(text) = fs::read_to_string(kept)
    {
        return Ok(text);
    }
    let text = play(kernel, drive, arguments)?;
    if let Some(kept) = &kept {
        fs::write(kept, &text)?;
    }
    Ok(text)
}

fn play(kernel: &Kernel, drive: [&str; 2], arguments: &[String]) -> Result<String, Failed> {
    let own_program = env::current_exe()?;
    let mut command = vec![own_program.clone().into_os_string()];
    command.extend(drive.map(OsString::from));
    command.extend(arguments.iter().map(OsString::from));
    let environment = env::var_os("PATH").map(|path| (OsString::from("PATH"), path));
    let job = Job {
        command,
        directory: "/".into(),
        environment: environment.into_iter().collect(),
        keeps_files: false,
    };
    let guest = Guest {
        kernel,
        own_program: &own_program,
        job: &job,
        seed: 1,
        traps: Traps::Trusted,
        limits: LIMITS,
    };
    let mut last = VecDeque::new();
    let mut said = |said: &Said<'_>| {
        last.push_back(said.text().into_owned());
        if last.len() > LAST_SAID {
            last.pop_front();
        }
    };
    let ended = guest.run(&mut said, &AtomicBool::new(false))?;
    if ended.outcome != Outcome::Exited(0) {
        return Err(format!(
            "the guest ended with {:?}; it said: {last:?}",
            ended.outcome
        )
        .into());
    }
    Ok(fs::read_to_string(ended.share().join(TRACES))?)
}
