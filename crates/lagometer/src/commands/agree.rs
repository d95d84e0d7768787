//! `lagometer agree`: the same experiment in virtual time and over real
//! sockets, lane by lane.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use lagometer_instruments::machine;
use lagometer_lab::emu::EmuOptions;
use lagometer_lab::{Resolved, RunContext, RunOptions, RunnableLane, SeedRun, assemble, play};
use lagometer_results::{Audit, Document, Margins, Warning, agreement};
use lagometer_stats::FEWEST_EQUIVALENCE_SEEDS;
use lagometer_testbed::Testbed;
use serde_json::{Map, Value};

use super::agree_messages::stopped;
use super::in_guests::{self, Errand, What};
use super::named::{Ask, resolved};
use super::run::processors;
use super::{agree_messages, agree_three, emulated, in_guest};
use crate::cli::AgreeArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{print, terminal, write};

/// How often a seed is played over sockets until the emulator is within its band. It is
/// played again for what the emulator did, whatever lanes did.
pub(super) const TRIES: u32 = 4;

/// Sets what was asked for beside virtual time, over each network; exit code 1
/// where something does not agree.
pub(crate) fn agree(arguments: &AgreeArguments) -> Result<ExitCode, Failure> {
    let networks: Vec<Option<&str>> = match &arguments.network[..] {
        [] => vec![None],
        [all] if all == "all" => lagometer_link::catalogue::names().map(Some).collect(),
        named => named.iter().map(|name| Some(name.as_str())).collect(),
    };
    check(arguments, &networks)?;
    let is_asked = |testbed| arguments.testbed.contains(&testbed);
    if is_asked(Testbed::Emu) {
        emulated::acquire_permission()?;
    }
    for &network in &networks {
        note_remarks(arguments, network, is_asked(Testbed::Kernel))?;
    }
    let stop = interrupt::listen()?;
    if is_asked(Testbed::Kernel) && is_asked(Testbed::Emu) {
        refuse_of_one_pair(arguments)?;
        return Ok(Exit::of(agree_three::agree(arguments, &networks, stop)?).into());
    }
    let mut holds = true;
    if is_asked(Testbed::Kernel) {
        holds &= agree_messages::agree(arguments, &networks, stop)?;
    }
    if is_asked(Testbed::Emu) {
        for network in networks {
            holds &= agree_in_figures(arguments, network, stop)?;
        }
    }
    Ok(Exit::of(holds).into())
}

/// Refuses what cannot be played or kept, before anything is played.
fn check(arguments: &AgreeArguments, networks: &[Option<&str>]) -> Result<(), Failure> {
    let testbeds = &arguments.testbed;
    for (nth, testbed) in testbeds.iter().enumerate() {
        if testbeds[..nth].contains(testbed) {
            return Err(Failure::Input(format!(
                "--testbed names `{}` twice: once is enough",
                testbed.name()
            )));
        }
    }
    if let Some(folder) = arguments.keep.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::Input(format!(
            "{}: --keep needs a folder that is there",
            folder.display()
        )));
    }
    for &network in networks {
        for &testbed in testbeds.iter().chain([&arguments.against]) {
            resolved(&ask(arguments, network, testbed))?;
        }
    }
    Ok(())
}

/// Says what may not be meant of what is played over `network`, and what of the network no
/// seed meets.
fn note_remarks(
    arguments: &AgreeArguments,
    network: Option<&str>,
    is_exact: bool,
) -> Result<(), Failure> {
    let resolved = resolved(&ask(arguments, network, arguments.against))?;
    let usual = if is_exact {
        agree_messages::SEEDS
    } else {
        FEWEST_EQUIVALENCE_SEEDS as u32
    };
    for remark in resolved.remarks(&seeds(arguments, &resolved, usual)) {
        note!("lagometer: {remark}");
    }
    Ok(())
}

/// Refuses what is for one testbed beside another, and not for three.
fn refuse_of_one_pair(arguments: &AgreeArguments) -> Result<(), Failure> {
    let flag = match (&arguments.keep, arguments.against) {
        (Some(_), _) => "--keep",
        (None, Testbed::Kernel) => "--against",
        (None, _) => return Ok(()),
    };
    Err(Failure::Input(format!(
        "{flag} is for `--testbed emu` alone; with both testbeds all three are side by side"
    )))
}

/// What is to be played over `network` in a testbed.
pub(super) fn ask<'a>(
    arguments: &'a AgreeArguments,
    network: Option<&'a str>,
    testbed: Testbed,
) -> Ask<'a> {
    Ask {
        experiment: &arguments.experiment,
        network,
        duration: Some(arguments.duration),
        tick: None,
        seed: arguments.seed,
        lanes: &arguments.lanes,
        presets: &[],
        testbed,
        to: None,
    }
}

/// Changes a setting of a lane whose transport has endpoints; whether it has, and takes it.
pub(super) fn set(lane: &mut RunnableLane, setting: &str, value: Value) -> bool {
    let overrides = Map::from_iter([(setting.to_owned(), value)]);
    let endpoint = lane.transport.endpoint();
    let Some(Ok(spec)) = endpoint.map(|it| it.with_overrides(&overrides)) else {
        return false;
    };
    lane.transport = spec.into();
    true
}

/// The seeds that are asked for, `usual` many where no number is, from the
/// experiment's own on.
pub(super) fn seeds(arguments: &AgreeArguments, resolved: &Resolved, usual: u32) -> Vec<u64> {
    let many = u64::from(arguments.seeds.unwrap_or(usual));
    (0..many)
        .map(|nth| resolved.plan.seed.wrapping_add(nth))
        .collect()
}

/// Where and when one of the two was played.
fn context(testbed: Testbed, began: Instant, audit: Option<Audit>) -> RunContext {
    RunContext {
        started: SystemTime::now(),
        wall: began.elapsed(),
        // Who plays in virtual time is late for nothing, whatever the machine. Of few
        // sleeps the 99th percentile is the worst, which decides whether anything can be said.
        host: match testbed {
            Testbed::Sim | Testbed::Kernel => machine::named(),
            _ => machine::examined(),
        },
        testbed: Some(testbed),
        audit,
    }
}

/// Plays over one network in virtual time and over real sockets, and says whether
/// the figures agree.
fn agree_in_figures(
    arguments: &AgreeArguments,
    network: Option<&str>,
    stop: &AtomicBool,
) -> Result<bool, Failure> {
    let against = arguments.against;
    let ask = |testbed| ask(arguments, network, testbed);
    let (virtual_time, sockets) = (resolved(&ask(against))?, resolved(&ask(Testbed::Emu))?);
    let options = RunOptions {
        seeds: seeds(arguments, &virtual_time, FEWEST_EQUIVALENCE_SEEDS as u32),
        threads: if against == Testbed::Kernel {
            arguments.threads.map_or_else(processors, usize::from)
        } else {
            1
        },
    };
    note!(
        "lagometer: playing {} lanes for {} over `{}`, {} seeds, in `{}`, in virtual time, and \
         over real sockets",
        sockets.lanes.len(),
        arguments.duration,
        sockets.network,
        options.seeds.len(),
        against.name(),
    );
    let began = Instant::now();
    let (runs, audit) = match against {
        Testbed::Kernel => in_kernel(arguments, &ask(against), &options, stop)?,
        _ => (play(&virtual_time, &options, &|_| {}, stop), None),
    };
    let mut first = assemble(
        &virtual_time,
        &options.seeds,
        runs,
        context(against, began, audit),
    );
    let mut emu = play_over_sockets(&sockets, &options.seeds, stop)?;
    if emu.partial || first.partial {
        return Err(stopped());
    }
    for document in [&mut first, &mut emu] {
        let unmet = virtual_time.unmet(&options.seeds).into_iter();
        document.warnings.extend(unmet.map(Warning::from));
    }
    if let Some(folder) = &arguments.keep {
        write(
            &folder.join(format!("{}.json", against.name())),
            &first.to_json(),
        )?;
        write(&folder.join("emu.json"), &emu.to_json())?;
    }
    let found = agreement(&first, &emu, Margins::default());
    print(&lagometer_report::agreement(&found, terminal()))?;
    Ok(found.holds())
}

/// Plays over real sockets.
fn play_over_sockets(
    what: &Resolved,
    seeds: &[u64],
    stop: &AtomicBool,
) -> Result<Document, Failure> {
    let began = Instant::now();
    let options = EmuOptions {
        testbed: Testbed::Emu,
        seeds: seeds.to_vec(),
        ipv6: false,
        pcap: None,
        tries: TRIES,
        watch: None,
    };
    let found = emulated::play(what, &options, &|_| {}, stop)?;
    let context = context(Testbed::Emu, began, found.audit);
    Ok(assemble(what, seeds, found.seeds, context))
}

/// Plays on a real kernel in virtual time.
fn in_kernel(
    arguments: &AgreeArguments,
    ask: &Ask<'_>,
    options: &RunOptions,
    stop: &AtomicBool,
) -> Result<(Vec<SeedRun>, Option<Audit>), Failure> {
    let kernel = in_guest::kernel(&arguments.guest)?;
    let errand = Errand {
        what: What::Asked(ask),
        ipv6: false,
        is_logged: false,
        has_qlog: false,
        real_limit: arguments.guest.real_limit.duration(),
    };
    let (seeds, at_once) = (&options.seeds, options.threads);
    let found = in_guests::play(&errand, &kernel, seeds, at_once, &|_| {}, stop)?;
    found.check_whole()?;
    Ok((found.seeds, found.audit))
}
