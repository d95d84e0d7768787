//! `lagometer agree`: the same experiment in virtual time and over real
//! sockets, lane by lane.

use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use lagometer_lab::emu::EmuOptions;
use lagometer_lab::{RunContext, RunOptions, Testbed, assemble, play};
use lagometer_stats::{Tolerance, agreement};

use super::emulated;
use super::named::{Ask, resolved};
use crate::cli::AgreeArguments;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{print, terminal, write};

/// Plays both and sets one beside the other; exit code 1 where they do not
/// agree.
pub(crate) fn agree(arguments: &AgreeArguments) -> Result<ExitCode, Failure> {
    let ask = |testbed| Ask {
        experiment: &arguments.experiment,
        network: arguments.network.as_deref(),
        duration: Some(arguments.duration),
        tick: None,
        seed: arguments.seed,
        lanes: &arguments.lanes,
        testbed,
    };
    let (virtual_time, sockets) = (resolved(&ask(Testbed::Sim))?, resolved(&ask(Testbed::Emu))?);
    emulated::acquire_permission()?;
    let stop = interrupt::listen()?;
    let options = RunOptions {
        seeds: vec![virtual_time.plan.seed],
        threads: 1,
    };
    let context = |testbed: Testbed, began: Instant, audit| RunContext {
        started: SystemTime::now(),
        wall: began.elapsed(),
        host: lagometer_machine::measured(),
        testbed: Some(testbed.name()),
        audit,
    };
    eprintln!(
        "lagometer: playing {} lanes for {} over `{}`, in virtual time and over real sockets",
        sockets.lanes.len(),
        arguments.duration,
        sockets.network,
    );
    let began = Instant::now();
    let runs = play(&virtual_time, &options, &|_| {}, stop);
    let sim = assemble(
        &virtual_time,
        &options.seeds,
        runs,
        context(Testbed::Sim, began, None),
    );
    let began = Instant::now();
    let emu_options = EmuOptions {
        seeds: options.seeds.clone(),
        ..EmuOptions::default()
    };
    let (runs, audit) = emulated::play(&sockets, &emu_options, &|_| {}, stop)?;
    let emu = assemble(
        &sockets,
        &options.seeds,
        runs,
        context(Testbed::Emu, began, audit),
    );
    if sim.partial || emu.partial {
        return Err(Failure::Input(
            "stopped before both were played: nothing can be said".to_owned(),
        ));
    }
    if let Some(folder) = &arguments.keep {
        write(&folder.join("sim.json"), &sim.to_json())?;
        write(&folder.join("emu.json"), &emu.to_json())?;
    }
    let found = agreement(&sim, &emu, Tolerance::default());
    print(&lagometer_report::agreement(&found, terminal()))?;
    Ok(ExitCode::from(u8::from(!found.holds())))
}
