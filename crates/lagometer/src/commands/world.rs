//! `lagometer world`: simulated game servers and players on a gateway.

#[cfg(target_os = "linux")]
mod address;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod emulated;
#[cfg(target_os = "linux")]
mod exporter;
#[cfg(target_os = "linux")]
mod in_guest;
#[cfg(target_os = "linux")]
mod meeting;
mod over_networks;
#[cfg(target_os = "linux")]
mod own_gateway;
#[cfg(target_os = "linux")]
mod progress;
#[cfg(target_os = "linux")]
mod sockets;

#[cfg(not(target_os = "linux"))]
use elsewhere::{cluster, emulated, exporter, in_guest, sockets};
pub(crate) use exporter::described_metrics;
pub(crate) use in_guest::play_within;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lagometer_results::{
    Document, PlayerCost, Prices, World, WorldWay, capacity_verdict, player_cost, world_verdict,
    worlds_verdict,
};
use lagometer_testbed::Testbed;
use lagometer_units::suggest;
use lagometer_world::{BUILT_IN, Scenario};

use super::prices;
use crate::cli::WorldArguments;
use crate::failure::{Failure, read};
use crate::output;
use crate::overwriting::Files;

/// Plays a scenario and shows what was found.
pub(crate) fn world(arguments: &WorldArguments) -> Result<ExitCode, Failure> {
    if let Some(coordinator) = &arguments.cluster.join {
        return cluster::work(coordinator, &arguments.cluster);
    }
    files(arguments).check()?;
    let scenario = prepare(arguments)?;
    let players = &asked_players(&scenario, arguments)[..];
    let cluster = &arguments.cluster;
    if players.len() > 1 && (cluster.coordinate.is_some() || cluster.nats.is_some()) {
        return Err(Failure::Input(
            "workers from other machines join one world: give `--players` one number, or leave \
             out `--coordinate` and `--nats`"
                .to_owned(),
        ));
    }
    let is_shared = cluster.workers.is_some() || cluster.server_workers.is_some();
    if cluster.nats.is_some() && !(is_shared && arguments.gateway.is_some()) {
        return Err(Failure::Input(
            "--nats has workers of other machines play a world: add `--workers N` or \
             `--server-workers N`, and `--gateway HOST:PORT`; or `--join` to be one"
                .to_owned(),
        ));
    }
    // All at once, before the first is played.
    for &players in players {
        with_players(&scenario, players)?;
    }
    match testbed(arguments)? {
        Some(Testbed::Sim) => over_networks::simulate(&scenario, players, arguments),
        Some(Testbed::Kernel) => in_guest::play_in_guest(&scenario, players, arguments),
        Some(_) => emulated::emulate(&scenario, players, arguments),
        None => sockets::play_all(&scenario, players, arguments),
    }
}

/// The numbers of players to play with.
fn asked_players(scenario: &Scenario, arguments: &WorldArguments) -> Vec<u32> {
    match arguments.players.as_slice() {
        [] => vec![scenario.players],
        asked => asked.to_vec(),
    }
}

/// The scenario with so many players.
fn with_players(scenario: &Scenario, players: u32) -> Result<Scenario, Failure> {
    let scenario = Scenario {
        players,
        ..scenario.clone()
    };
    scenario
        .check()
        .map_err(|(_, message)| Failure::Input(message))?;
    Ok(scenario)
}

/// Where the world is played: over sockets of this machine where neither a
/// testbed nor a network is asked for.
fn testbed(arguments: &WorldArguments) -> Result<Option<Testbed>, Failure> {
    let has_network = !arguments.network.is_empty() || !arguments.transport.is_empty();
    let testbed = arguments
        .testbed
        .or_else(|| has_network.then_some(Testbed::Sim));
    if testbed.is_some() && arguments.export.is_some() {
        return Err(Failure::Input(
            "a world behind links is not watched while it is played: leave out `--export`"
                .to_owned(),
        ));
    }
    if matches!(testbed, Some(Testbed::Sim | Testbed::Kernel)) && arguments.live.live {
        return Err(Failure::Input(
            "a world in virtual time is over before it can be watched: leave out `--live`, or use \
             `--testbed emu`"
                .to_owned(),
        ));
    }
    if testbed.is_some() && arguments.gateway.is_some() {
        return Err(Failure::Input(
            "a world behind links has a gateway of its own: leave out `--gateway`, or \
             `--testbed`, `--network` and `--transport`"
                .to_owned(),
        ));
    }
    if testbed.is_none() && arguments.pcap.is_some() {
        return Err(Failure::Input(
            "--pcap is of links: add `--network`, `--transport` or `--testbed`; over this \
             machine's sockets capture with `tshark -i any -w FILE port 12108`"
                .to_owned(),
        ));
    }
    super::in_guest::check_kernel(&arguments.guest, testbed == Some(Testbed::Kernel))?;
    Ok(testbed)
}

/// The page's place, where one is to be written.
fn page_path(scenario: &Scenario, arguments: &WorldArguments) -> Option<PathBuf> {
    let usual = format!("lagometer-world-{}.html", scenario.name);
    output::page_path(arguments.html.as_ref(), arguments.no_html, usual)
}

/// Puts one world or several into the document and shows it.
fn finish(
    scenario: &Scenario,
    arguments: &WorldArguments,
    mut document: Document,
    mut worlds: Vec<World>,
) -> Result<ExitCode, Failure> {
    let prices = prices::lists(&arguments.prices)?;
    for world in &mut worlds {
        world.cost = world_cost(world, &prices);
    }
    document.seed = scenario.seed;
    document.seeds = vec![scenario.seed];
    let mut players: Vec<u32> = worlds.iter().map(|world| world.players.asked).collect();
    players.sort_unstable();
    players.dedup();
    document.experiment["players"] = match players.as_slice() {
        [only] => (*only).into(),
        several => several.into(),
    };
    if worlds.len() == 1 {
        document.world = worlds.pop();
        document.verdict = document.world.as_ref().map(world_verdict);
    } else {
        document.verdict = capacity_verdict(&worlds).or_else(|| worlds_verdict(&worlds));
        document.worlds = worlds;
    }
    let html = page_path(scenario, arguments);
    output::show(&document, arguments.json.as_ref(), html.as_ref())?;
    Ok(ExitCode::SUCCESS)
}

/// What a player's hour takes and costs in a world: of what the links counted, headers
/// included, and of the gateway's processor time, where these are known.
fn world_cost(world: &World, prices: &[Prices]) -> Option<PlayerCost> {
    let path = world.path.as_ref()?;
    let per_hour = |way: &WorldWay| way.bytes_per_s.map(|bytes| bytes * 3600.0);
    let bytes = [per_hour(&path.up)?, per_hour(&path.down)?];
    let metrics = world.gateway_metrics.as_ref();
    let server = metrics.and_then(|metrics| Some(metrics.cpu_pct? / 100.0));
    // An hour of this world is an hour of each of its players.
    player_cost(bytes, f64::from(world.players.in_game), server, prices)
}

/// What is read and written.
fn files(arguments: &WorldArguments) -> Files<'_> {
    let read = [Path::new(&arguments.scenario)].into_iter();
    let read = read.chain(arguments.network.iter().map(Path::new));
    let read = read.chain(arguments.prices.prices.iter().map(PathBuf::as_path));
    Files {
        read: read.collect(),
        written: vec![
            arguments.json.as_ref(),
            arguments.html.as_ref(),
            arguments.pcap.as_ref(),
        ],
    }
}

/// Finds the scenario and applies the flags.
fn prepare(arguments: &WorldArguments) -> Result<Scenario, Failure> {
    let asked = &arguments.scenario;
    let built_in = BUILT_IN.iter().find(|(name, _)| name == asked);
    let mut scenario = if let Some((name, text)) = built_in {
        let origin = format!("experiments/world/{name}.toml");
        Scenario::parse(&origin, text).map_err(Failure::input)?
    } else if Path::new(asked).extension().is_some() || asked.contains('/') {
        Scenario::parse(asked, &read(Path::new(asked))?).map_err(Failure::input)?
    } else {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        return Err(Failure::Input(format!(
            "no scenario is called `{asked}`; {}; or name a .toml file",
            suggest(asked, &names)
        )));
    };
    if let Some(join_every) = arguments.join_every {
        scenario.join_every = join_every;
    }
    if let Some(duration) = arguments.duration {
        scenario.duration = duration;
    }
    if let Some(seed) = arguments.seed {
        scenario.seed = seed;
    }
    if let Some(observers) = arguments.observers {
        scenario.observers = observers;
    }
    Ok(scenario)
}
