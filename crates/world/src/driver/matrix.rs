//! Several transports on several networks, with several numbers of players,
//! each a world of its own in virtual time, on as many threads as asked for. How
//! many there are changes nothing of what is found: the worlds share nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lagometer_link::Profile;
use lagometer_results::{World, WorldPath, WorldWay};
use lagometer_testbed::{Capture, DirectionStats, PathStats};
use lagometer_units::Time;

use crate::virtual_time::{SimError, SimulatedWorld, play};
use crate::{Moment, PlayerTransport, Scenario, assemble, digest, player_link, with_path};

/// One world of a matrix.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What is played.
    pub scenario: Arc<Scenario>,
    /// How its players reach the gateway.
    pub transport: PlayerTransport,
    /// The network's name.
    pub network: String,
    /// The network between.
    pub profile: Profile,
}

/// What one of them found.
#[derive(Debug)]
pub struct Found {
    /// The world as the document has it.
    pub world: World,
    /// It was stopped before its time.
    pub partial: bool,
    /// How long was played, in virtual time.
    pub played: Time,
    /// The capture, of the first world where one was to be written.
    pub capture: Option<Capture>,
}

/// Plays each of `cells` and returns what they found, in their order.
/// `progress` is called every half second of each; into `capture`, if there is one, the
/// packets of the first are written, whose players it has as its lanes. When `stop` becomes true all
/// end where they are.
///
/// # Errors
///
/// The first [`SimError`] in the order of the cells.
pub fn play_all(
    cells: &[Cell],
    threads: usize,
    capture: Option<Capture>,
    progress: &(dyn Fn(&Cell, &Moment) + Sync),
    stop: &AtomicBool,
) -> Result<Vec<Found>, SimError> {
    let next = AtomicUsize::new(0);
    let capture = Mutex::new(capture);
    let found: Vec<Mutex<Option<Result<Found, SimError>>>> =
        cells.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, cells.len().max(1)) {
            scope.spawn(|| {
                while let Some((nth, cell, place)) = {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let both = cells.get(nth).zip(found.get(nth));
                    both.map(|(cell, place)| (nth, cell, place))
                } {
                    let capture = (nth == 0).then(|| {
                        capture
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .take()
                    });
                    let played = play_cell(cell, capture.flatten(), progress, stop);
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(played);
                }
            });
        }
    });
    found
        .into_iter()
        .filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

fn play_cell(
    cell: &Cell,
    capture: Option<Capture>,
    progress: &(dyn Fn(&Cell, &Moment) + Sync),
    stop: &AtomicBool,
) -> Result<Found, SimError> {
    let scenario = &cell.scenario;
    let link = |player, starts| player_link(&cell.profile, scenario.seed, player, starts);
    let SimulatedWorld {
        outcome,
        path,
        played,
        capture,
    } = play(
        scenario,
        cell.transport,
        &link,
        capture,
        &mut |moment| progress(cell, moment),
        stop,
    )?;
    let mut world = assemble(scenario, "in virtual time".to_owned(), &outcome);
    world.transport = Some(cell.transport.name().to_owned());
    world.network = Some(cell.network.clone());
    let path = path_of(&path, world.measured_s);
    let mut world = with_path(scenario, world, path);
    world.digest = Some(digest(&world));
    Ok(Found {
        world,
        partial: outcome.partial,
        played,
        capture,
    })
}

fn path_of(path: &PathStats, seconds: f64) -> WorldPath {
    let share = |of: u64, way: &DirectionStats| of as f64 / (way.packets as f64).max(1.0);
    let way = |way: &DirectionStats| WorldWay {
        packets_per_s: Some(way.packets as f64 / seconds.max(1e-9)),
        bytes_per_s: Some(way.bytes as f64 / seconds.max(1e-9)),
        lost_share: share(way.lost, way),
        full_share: Some(share(way.full, way)),
        wait_ms: Some(1e3 * way.waited.as_secs_f64() / (way.packets as f64).max(1.0)),
    };
    WorldPath {
        up: way(&path.up),
        down: way(&path.down),
    }
}
