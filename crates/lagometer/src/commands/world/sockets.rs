//! Worlds over plain sockets: one after another, with as many players as asked
//! for, each on a gateway of its own or all on the one that was named.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use lagometer_results::{Warning, World, world_verdict};
use lagometer_world::real::{Venue, play};
use lagometer_world::{CapacitySearch, Moment, Scenario, assemble};

use super::address::{SERVERS_PORT, address, addresses};
use super::exporter::Exporter;
use super::own_gateway::OwnGateway;
use super::progress::Progress;
use super::{cluster, finish, with_players};
use crate::cli::WorldArguments;
use crate::failure::Failure;
use crate::{instrument, interrupt};

/// Plays `scenario` with each number of `players`, as far as the gateway goes
/// along, and shows what was found.
pub(super) fn play_all(
    scenario: &Scenario,
    players: &[u32],
    arguments: &WorldArguments,
) -> Result<ExitCode, Failure> {
    let stop = interrupt::listen()?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let host = lagometer_instruments::machine::measured();
    let exporter = match &arguments.export {
        Some(at) => Some(Exporter::start(address(at, "--export")?, &scenario.name)?),
        None => None,
    };
    let mut capacity_search = CapacitySearch::new(players, arguments.until_saturated);
    let (mut worlds, mut partial, mut failed): (Vec<World>, _, _) = (Vec::new(), false, None);
    while let Some(players) = capacity_search.next_step()
        && !partial
    {
        let scenario = Arc::new(with_players(scenario, players)?);
        match play_one(&scenario, arguments, exporter.as_ref(), stop) {
            Ok((world, cut_short)) => {
                note!("lagometer: {}", world_verdict(&world));
                capacity_search.note(players, world.is_carried());
                worlds.push(world);
                partial = cut_short;
            }
            Err(failure) if worlds.is_empty() => return Err(failure),
            // What was found before is worth having.
            Err(failure) => {
                failed = Some((players, failure));
                partial = true;
            }
        }
    }
    let asked = serde_json::to_value(scenario).map_err(Failure::input)?;
    let mut document = instrument::document("world", asked, started, began.elapsed(), host);
    document.partial = partial;
    document
        .warnings
        .extend(left_out(&capacity_search.left_out(), partial));
    if let Some((players, failure)) = &failed {
        document.warnings.push(Warning {
            what: format!("{players} players could not be played."),
            why: failure.to_string(),
            mend: String::new(),
        });
    }
    let shown = finish(scenario, arguments, document, worlds)?;
    match failed {
        Some((_, failure)) => Err(failure),
        None => Ok(shown),
    }
}

/// What to know of numbers that were asked for and not played.
fn left_out(players: &[u32], partial: bool) -> Option<Warning> {
    if players.is_empty() || partial {
        return None;
    }
    let named: Vec<String> = players.iter().map(u32::to_string).collect();
    Some(Warning {
        what: format!("{} players were not played.", named.join(", ")),
        why: "Two steps in a row had not been carried.".to_owned(),
        mend: String::new(),
    })
}

/// Plays one world; also whether it was stopped before its time.
fn play_one(
    scenario: &Arc<Scenario>,
    arguments: &WorldArguments,
    exporter: Option<&Exporter>,
    stop: &AtomicBool,
) -> Result<(World, bool), Failure> {
    let (venue, own) = venue(arguments, scenario)?;
    let place = own
        .as_ref()
        .map_or_else(|| venue.players_place(), |_| "own".to_owned());
    note!(
        "lagometer: `{}` with {} players, one every {}, then {}",
        scenario.name,
        scenario.players,
        scenario.join_every,
        scenario.duration
    );
    if let Some(exporter) = exporter {
        exporter.ask(scenario);
    }
    let mut line = Progress::start(scenario, arguments.live.live);
    let mut report = |moment: &Moment| {
        line.report(moment);
        if let Some(exporter) = exporter {
            exporter.report(moment);
        }
    };
    let cluster = &arguments.cluster;
    let outcome = if cluster.workers.is_some() || cluster.server_workers.is_some() {
        cluster::play(scenario, &venue, arguments, &mut report, stop)?
    } else {
        play(scenario, &venue, &mut report, stop)
            .map_err(|error| Failure::Environment(error.to_string()))?
    };
    drop(line);
    drop(own);
    Ok((assemble(scenario, place, &outcome), outcome.partial))
}

/// The gateway that was named, or one of our own.
fn venue(
    arguments: &WorldArguments,
    scenario: &Scenario,
) -> Result<(Venue, Option<OwnGateway>), Failure> {
    let Some(gateway) = &arguments.gateway else {
        let own = OwnGateway::start(scenario.space.as_ref(), "tcp", Ipv4Addr::LOCALHOST)?;
        return Ok((own.venue(), Some(own)));
    };
    let clients = addresses(gateway, "--gateway")?;
    let servers = match &arguments.servers {
        Some(servers) => address(servers, "--servers")?,
        None => SocketAddr::new(clients[0].ip(), SERVERS_PORT),
    };
    let metrics = arguments
        .metrics
        .as_ref()
        .map(|metrics| address(metrics, "--metrics"))
        .transpose()?;
    let venue = Venue {
        clients,
        servers,
        metrics,
    };
    Ok((venue, None))
}
