//! Worlds over real sockets, with an emulated link for each player.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use lagometer_emu::LogSummary;
use lagometer_results::{Audit, World};
use lagometer_testbed::{Testbed, keep_audit};
use lagometer_world::Scenario;
use lagometer_world::emulated::{EmuError, EmulatedWorld, Gateway, Landscape};
use lagometer_world::matrix::Cell;
use serde::{Deserialize, Serialize};

use super::own_gateway::OwnGateway;
use super::progress::Progress;
use super::{finish, over_networks};
use crate::cli::WorldArguments;
use crate::commands::emulated;
use crate::commands::shape::report_log;
use crate::failure::Failure;
use crate::{instrument, interrupt};

/// What was found in all worlds that were asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FoundWorlds {
    pub(super) worlds: Vec<World>,
    /// What the emulator says of its own work: in the first world, or the first in
    /// which it failed.
    pub(super) audit: Option<Audit>,
    /// They were stopped before their time.
    pub(super) partial: bool,
    /// What became of the log of packets, if one was asked for.
    pub(super) log: Option<LogSummary>,
}

/// Plays the scenario in real time, one cell after the other, and shows what
/// was found.
pub(super) fn emulate(
    scenario: &Scenario,
    players: &[u32],
    arguments: &WorldArguments,
) -> Result<ExitCode, Failure> {
    let cells = over_networks::cells(scenario, players, arguments)?;
    let unmet = over_networks::unmet(&cells);
    emulated::acquire_permission()?;
    let stop = interrupt::listen()?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let host = lagometer_instruments::machine::measured();
    let options = PlayOptions {
        testbed: Testbed::Emu,
        is_live: arguments.live.live,
        log: arguments.pcap.clone(),
    };
    let found = play_all(&cells, options, stop)?;
    let asked = serde_json::to_value(scenario).map_err(Failure::input)?;
    let mut document = instrument::document("world", asked, started, began.elapsed(), host);
    document.testbed = Some(Testbed::Emu.name().to_owned());
    document.warnings = unmet;
    document.partial = found.partial;
    document.audit = found.audit;
    let captured = found.log.as_ref().map_or(Ok(()), report_log);
    let shown = finish(scenario, arguments, document, found.worlds);
    Failure::unless(shown, captured.err())
}

/// Where worlds are played, and how they are seen.
pub(super) struct PlayOptions {
    pub(super) testbed: Testbed,
    pub(super) is_live: bool,
    /// Where the packets of the first are logged.
    pub(super) log: Option<PathBuf>,
}

/// Plays one cell after the other, until `stop`, but one at least.
pub(super) fn play_all(
    cells: &[Cell],
    mut options: PlayOptions,
    stop: &AtomicBool,
) -> Result<FoundWorlds, Failure> {
    let mut all = FoundWorlds {
        worlds: Vec::new(),
        audit: None,
        partial: false,
        log: None,
    };
    for cell in cells {
        if stop.load(Ordering::Relaxed) && !all.worlds.is_empty() {
            all.partial = true;
            break;
        }
        let found = play(cell, &options, stop)?;
        options.log = None;
        all.log = all.log.or(found.log);
        all.worlds.push(found.world);
        all.partial |= found.partial;
        keep_audit(&mut all.audit, found.audit);
    }
    Ok(all)
}

fn play(cell: &Cell, options: &PlayOptions, stop: &AtomicBool) -> Result<EmulatedWorld, Failure> {
    let scenario = &cell.scenario;
    note!(
        "lagometer: `{}` with {} players over {} on {}, one every {}, then {}",
        scenario.name,
        scenario.players,
        cell.transport,
        cell.network,
        scenario.join_every,
        scenario.duration
    );
    let (transport, log) = (cell.transport, options.log.clone());
    let landscape = Landscape::build(scenario, &cell.profile, transport, options.testbed, log)
        .map_err(failure)?;
    let (scheme, space) = (cell.transport.scheme(), scenario.space);
    let own = landscape
        .run_remote(move || OwnGateway::start(space.as_ref(), scheme, Ipv4Addr::UNSPECIFIED))
        .map_err(emulated::failure)??;
    let venue = own.venue();
    let gateway = Gateway {
        servers: venue.servers,
        // A guest's processor has no time of its own to report.
        metrics: venue.metrics.filter(|_| options.testbed == Testbed::Emu),
        clients_port: venue.clients[0].port(),
    };
    let mut line = Progress::start(scenario, options.is_live);
    let played = landscape.play(
        scenario,
        gateway,
        cell.transport,
        &mut |moment| line.report(moment),
        stop,
    );
    drop(line);
    drop(own);
    let mut found = played.map_err(failure)?;
    found.world.network = Some(cell.network.clone());
    Ok(found)
}

fn failure(error: EmuError) -> Failure {
    match error {
        EmuError::Network(error) => emulated::failure(error),
        error @ (EmuError::CongestionControl { .. } | EmuError::Play(_)) => {
            Failure::Environment(error.to_string())
        }
    }
}
