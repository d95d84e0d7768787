//! Worlds on a real kernel in virtual time: one guest plays them all, as the
//! testbed `emu` does on the machine.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use lagometer_guest::{SHARE, Said, Traps};
use lagometer_results::World;
use lagometer_testbed::Testbed;
use lagometer_world::Scenario;

use super::emulated::{self, FoundWorlds, PlayOptions};
use super::{asked_players, finish, over_networks, prepare};
use crate::cli::WorldArguments;
use crate::commands::in_guest::{self, Visit, save_packets};
use crate::commands::in_guests::{SILENCE, check_whole, cut_at_limit, found_by, label};
use crate::failure::Failure;
use crate::guest::PACKETS;
use crate::{instrument, interrupt};

/// Plays the scenario in a guest, one cell after the other, and shows what was
/// found.
pub(super) fn play_in_guest(
    scenario: &Scenario,
    players: &[u32],
    arguments: &WorldArguments,
) -> Result<ExitCode, Failure> {
    // What is wrong with them is said before a guest boots.
    let unmet = over_networks::unmet(&over_networks::cells(scenario, players, arguments)?);
    let kernel = in_guest::kernel(&arguments.guest)?;
    if let Some(path) = &arguments.pcap {
        in_guest::make_capture(path)?;
    }
    let stop = interrupt::listen()?;
    let started = SystemTime::now();
    let visit = Visit {
        kernel: &kernel,
        seed: scenario.seed,
        traps: Traps::Trusted,
        words: words(arguments),
        limit: arguments.guest.real_limit.duration(),
        silence: SILENCE,
        environment: Vec::new(),
        keeps_files: false,
    };
    let receive = &mut |said: &Said<'_>| note!("{}", said.text());
    let (found, ended): (FoundWorlds, _) = found_by(visit, receive, stop)?;
    let captured = match &arguments.pcap {
        Some(path) => save_packets(&in_guest::packets(&ended), path),
        None => Ok(()),
    };
    let asked = serde_json::to_value(scenario).map_err(Failure::input)?;
    let host = lagometer_instruments::machine::named();
    let mut document = instrument::document("world", asked, started, ended.at, host);
    document.testbed = Some(Testbed::Kernel.name().to_owned());
    document.warnings = unmet;
    document.partial = found.partial;
    document.audit = found.audit;
    label(&mut document, &kernel);
    let mut worlds = found.worlds;
    worlds.iter_mut().for_each(leave_out_cost);
    let shown = finish(scenario, arguments, document, worlds);
    let cut = found.log.and_then(|log| log.failure);
    let cut = cut.map(|why| Failure::Environment(format!("the guest's log of packets: {why}")));
    let whole = check_whole(cut_at_limit(scenario.seed, &ended));
    let beside = whole.err().into_iter().chain(cut).chain(captured.err());
    Failure::unless(shown, beside)
}

/// Computing takes no time in a guest, and so there is nothing to say of it.
fn leave_out_cost(world: &mut World) {
    world.generator.cpu_pct = None;
    world.generator.cpu_us_per_update = None;
    for moment in &mut world.timeline {
        moment.generator_cpu_pct = None;
    }
    if let Some(metrics) = &mut world.gateway_metrics {
        metrics.cpu_pct = None;
        for moment in &mut metrics.timeline {
            moment.cpu_pct = None;
        }
    }
}

/// What this program is to do within the guest: the same command, without what is
/// for this side of it.
fn words(arguments: &WorldArguments) -> Vec<OsString> {
    let mut words = ["guest", "world"].map(str::to_owned).to_vec();
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    let listed = |values: Vec<String>| (!values.is_empty()).then(|| values.join(","));
    let players = arguments.players.iter().map(u32::to_string);
    flag("players", listed(players.collect()));
    flag(
        "join-every",
        arguments.join_every.map(|span| span.to_string()),
    );
    flag("for", arguments.duration.map(|span| span.to_string()));
    flag("seed", arguments.seed.map(|seed| seed.to_string()));
    flag(
        "observers",
        arguments.observers.map(|count| count.to_string()),
    );
    flag("network", listed(arguments.network.clone()));
    let transports = arguments.transport.iter();
    let transports = transports.map(|transport| transport.name().to_owned());
    flag("transport", listed(transports.collect()));
    // Where it is written there is for the guest to say.
    flag("pcap", arguments.pcap.as_ref().map(|_| PACKETS.to_owned()));
    words.extend(["--".to_owned(), arguments.scenario.clone()]);
    words.into_iter().map(OsString::from).collect()
}

/// Plays the worlds within a guest, until `stop`.
pub(crate) fn play_within(
    arguments: &WorldArguments,
    stop: &AtomicBool,
) -> Result<FoundWorlds, Failure> {
    let scenario = prepare(arguments)?;
    let players = asked_players(&scenario, arguments);
    let cells = over_networks::cells(&scenario, &players, arguments)?;
    let options = PlayOptions {
        testbed: Testbed::Kernel,
        is_live: false,
        log: (arguments.pcap.as_ref()).map(|_| Path::new(SHARE).join(PACKETS)),
    };
    emulated::play_all(&cells, options, stop)
}
