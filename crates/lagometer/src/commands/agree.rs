//! `lagometer agree`: the same experiment in virtual time and over real
//! sockets, lane by lane.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use lagometer_lab::emu::EmuOptions;
use lagometer_lab::{RunContext, RunOptions, assemble, play};
use lagometer_stats::{Document, Tolerance, agreement};
use lagometer_testbed::Testbed;

use super::named::{Ask, resolved};
use super::{agree_messages, emulated};
use crate::cli::AgreeArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{print, terminal, write};

/// How often virtual time plays the network conditions, each time with other luck of the
/// single packet: enough to tell a spread.
const LUCKS: u32 = 9;

/// From one such play's schedule to the next. A packet's coin is that of its
/// millisecond, so every packet that sets out on the schedule has another.
const LUCK_STEP: Duration = Duration::from_millis(1);

/// Sets what was asked for beside virtual time, over each network; exit code 1
/// where something does not agree.
pub(crate) fn agree(arguments: &AgreeArguments) -> Result<ExitCode, Failure> {
    let networks: Vec<Option<&str>> = match &arguments.network[..] {
        [] => vec![None],
        [all] if all == "all" => playable_networks(arguments)?,
        named => named.iter().map(|name| Some(name.as_str())).collect(),
    };
    let is_asked = |testbed| arguments.testbed.contains(&testbed);
    if is_asked(Testbed::Emu) {
        emulated::acquire_permission()?;
    }
    let stop = interrupt::listen()?;
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

/// The built-in networks that can be played over sockets; on the others there is
/// other traffic, or their queues have a discipline.
fn playable_networks(arguments: &AgreeArguments) -> Result<Vec<Option<&'static str>>, Failure> {
    let mut networks = Vec::new();
    for name in lagometer_link::catalogue::names() {
        let virtual_time = resolved(&ask(arguments, Some(name), Testbed::Sim))?;
        if virtual_time.needs_stage() {
            note!("lagometer: `{name}` is left out: it can be played in virtual time alone");
        } else {
            networks.push(Some(name));
        }
    }
    Ok(networks)
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
    }
}

/// Plays over one network in virtual time and over real sockets, and says whether
/// the figures agree.
fn agree_in_figures(
    arguments: &AgreeArguments,
    network: Option<&str>,
    stop: &AtomicBool,
) -> Result<bool, Failure> {
    let ask = |testbed| resolved(&ask(arguments, network, testbed));
    let (virtual_time, sockets) = (ask(Testbed::Sim)?, ask(Testbed::Emu)?);
    let options = RunOptions {
        seeds: vec![virtual_time.plan.seed],
        threads: 1,
    };
    let context = |testbed: Testbed, began: Instant, audit| RunContext {
        started: SystemTime::now(),
        wall: began.elapsed(),
        host: lagometer_machine::measured(),
        testbed: Some(testbed),
        audit,
    };
    note!(
        "lagometer: playing {} lanes for {} over `{}`, in virtual time and over real sockets",
        sockets.lanes.len(),
        arguments.duration,
        sockets.network,
    );
    let lucks = (0..LUCKS).map(|luck| {
        let mut shifted = virtual_time.clone();
        shifted.plan.offset = LUCK_STEP * luck;
        let began = Instant::now();
        let runs = play(&shifted, &options, &|_| {}, stop);
        let context = context(Testbed::Sim, began, None);
        assemble(&shifted, &options.seeds, runs, context)
    });
    let sims: Vec<Document> = lucks.collect();
    let began = Instant::now();
    let emu_options = EmuOptions {
        testbed: Testbed::Emu,
        seeds: options.seeds.clone(),
        ipv6: false,
        pcap: None,
    };
    let (runs, audit) = emulated::play(&sockets, &emu_options, &|_| {}, stop)?;
    let emu = assemble(
        &sockets,
        &options.seeds,
        runs,
        context(Testbed::Emu, began, audit),
    );
    if emu.partial || sims.iter().any(|sim| sim.partial) {
        return Err(Failure::Input(
            "stopped before both were played: nothing can be said".to_owned(),
        ));
    }
    if let Some(folder) = &arguments.keep {
        write(&folder.join("sim.json"), &sims[0].to_json())?;
        write(&folder.join("emu.json"), &emu.to_json())?;
    }
    let found = agreement(&sims, &emu, Tolerance::default());
    print(&lagometer_report::agreement(&found, terminal()))?;
    Ok(found.holds())
}
