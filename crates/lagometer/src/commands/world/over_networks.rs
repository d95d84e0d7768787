//! Worlds whose players reach the gateway over links, in virtual time.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lagometer_lab::{Each, Play};
use lagometer_results::Warning;
use lagometer_testbed::Capture;
use lagometer_testbed::Testbed;
use lagometer_units::create_private_file;
use lagometer_world::matrix::{Cell, Found, play_all};
use lagometer_world::{PlayerTransport, Scenario, player_seed};

use super::{finish, with_players};

use crate::cli::WorldArguments;
use crate::commands::named::find_plain_network;
use crate::commands::shape::report_log;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{instrument, interrupt};

/// The network of a world in virtual time where none is named.
const CALM_NETWORK: &str = "perfect";

/// What a world takes besides its joins and the time that is measured, about:
/// the first windows and the comparison at the end.
const AROUND: Duration = Duration::from_secs(6);

/// Every transport asked for on every network asked for, network by network,
/// with each number of `players`.
pub(super) fn cells(
    scenario: &Scenario,
    players: &[u32],
    arguments: &WorldArguments,
) -> Result<Vec<Cell>, Failure> {
    let scenarios = players
        .iter()
        .map(|&players| with_players(scenario, players).map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    let mut networks = arguments.network.clone();
    if networks.is_empty() {
        networks.push(CALM_NETWORK.to_owned());
    }
    let mut cells = Vec::new();
    for network in networks {
        let profile = find_plain_network(&network, "`world`")?;
        for transport in transports(arguments) {
            cells.extend(scenarios.iter().map(|scenario| Cell {
                scenario: Arc::clone(scenario),
                transport,
                network: network.clone(),
                profile: profile.clone(),
            }));
        }
    }
    Ok(cells)
}

/// The transports asked for; TCP where none is.
pub(super) fn transports(arguments: &WorldArguments) -> Vec<PlayerTransport> {
    match arguments.transport.as_slice() {
        [] => vec![PlayerTransport::default()],
        asked => asked.to_vec(),
    }
}

/// What the networks do at times that no player meets: said on standard error before
/// anything is played, and to be put into the document.
pub(super) fn unmet(cells: &[Cell]) -> Vec<Warning> {
    let mut all = Vec::new();
    for cell in cells {
        let scenario = &cell.scenario;
        let seeds = (0..scenario.players).map(|player| player_seed(scenario.seed, player));
        // The impairments begin when everybody is in and measuring begins.
        let play = Play {
            network: &cell.network,
            profile: &cell.profile,
            seeds: &seeds.collect::<Vec<_>>(),
            each: Each::Player,
            end: scenario.duration.0,
        };
        for unmet in play.unmet() {
            if !all.contains(&unmet) {
                note!("lagometer: {unmet}");
                all.push(unmet);
            }
        }
    }
    all.into_iter().map(Warning::from).collect()
}

/// Plays the scenario in virtual time, once for each cell, and shows what was
/// found.
pub(super) fn simulate(
    scenario: &Scenario,
    players: &[u32],
    arguments: &WorldArguments,
) -> Result<ExitCode, Failure> {
    let cells = cells(scenario, players, arguments)?;
    let capture = match &arguments.pcap {
        Some(path) => Some(begin_capture(path, &cells)?),
        None => None,
    };
    let stop = interrupt::listen()?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let host = lagometer_instruments::machine::named();
    let threads = arguments.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    note!(
        "lagometer: `{}` with {} players in virtual time, {} on {} threads",
        scenario.name,
        number_of_players(players),
        number_of_worlds(cells.len()),
        threads.min(cells.len())
    );
    let unmet = unmet(&cells);
    let whole = cells.iter().map(|Cell { scenario, .. }| {
        scenario.join_every.0 * scenario.players + scenario.duration.0 + AROUND
    });
    let progress = Progress::new(whole.sum());
    let playing = Instant::now();
    let mut found = play_all(
        &cells,
        threads,
        capture,
        &|_, moment| {
            // Reported every half second, and counted in whole ones.
            if ((2.0 * moment.world.at_s).round() as u64).is_multiple_of(2) {
                progress.played(Duration::from_secs(1));
            }
        },
        stop,
    )
    .map_err(|error| Failure::Environment(error.to_string()))?;
    progress.finish();
    report_pace(&found, playing.elapsed());
    let capture = found.first_mut().and_then(|first| first.capture.take());
    let captured = arguments.pcap.as_ref().zip(capture);
    let captured = captured.map_or(Ok(()), |(path, capture)| report_log(&capture.finish(path)));
    let asked = serde_json::to_value(scenario).map_err(Failure::input)?;
    let mut document = instrument::document("world", asked, started, began.elapsed(), host);
    document.testbed = Some(Testbed::Sim.name().to_owned());
    document.warnings = unmet;
    document.partial = found.iter().any(|found| found.partial);
    let worlds = found.into_iter().map(|found| found.world).collect();
    let shown = finish(scenario, arguments, document, worlds);
    Failure::unless(shown, captured.err())
}

/// Begins the capture of the first world.
fn begin_capture(path: &Path, cells: &[Cell]) -> Result<Capture, Failure> {
    let file = create_private_file(path).map_err(|why| Failure::Write {
        path: path.to_owned(),
        why,
    })?;
    let players = cells.first().map_or(0, |cell| cell.scenario.players);
    let names: Vec<String> = (0..players)
        .map(|player| format!("player {player}"))
        .collect();
    Ok(Capture::new(
        Box::new(file),
        names.iter().map(|name| &**name),
    ))
}

fn number_of_players(players: &[u32]) -> String {
    let players: Vec<String> = players.iter().map(u32::to_string).collect();
    players.join(", ")
}

fn number_of_worlds(worlds: usize) -> String {
    match worlds {
        1 => "one world".to_owned(),
        many => format!("{many} worlds"),
    }
}

/// How much faster than real time it went.
fn report_pace(found: &[Found], wall: Duration) {
    let played: f64 = found.iter().map(|found| found.played.as_secs_f64()).sum();
    let seconds = wall.as_secs_f64().max(1e-9);
    note!(
        "lagometer: {played:.0} s of play in {seconds:.1} s, {:.1} times real time",
        played / seconds
    );
}
