//! What was saturated first in a world that was not carried.

use std::time::Duration;

use lagometer_results::{GatewayMetrics, World, WorldWay};

use crate::measure::assemble::were_killed;

/// A core that is busier than this is full: the rest is the machine's.
const FULL_PCT: f64 = 90.0;

/// A server that simulates less of its frames than this does not keep up.
const ENOUGH_FRAMES: f64 = 0.98;

/// The tick that channels of a fast game are configured for; a longer one
/// delays what is fanned out.
const TICK_MS: f64 = 20.0;

/// More samples of an age above thrice the tier's interval and a tenth of a
/// second than this have aged.
const STALE_SHARE: f64 = 0.05;

/// More packets than this that find a queue full fill the path.
const FULL_SHARE: f64 = 0.01;

/// Packets that wait longer than this wait longer than a window and a frame of
/// the server take together.
const WAIT_MS: f64 = 50.0;

/// A path that loses more than this delays most of what comes in order.
const LOST_SHARE: f64 = 0.05;

/// More messages than this that are merged are windows that players miss.
const MERGED_PCT: f64 = 1.0;

/// What was saturated first. In the order in which one thing causes another: a
/// generator that is full measures itself, and whatever else is late is its
/// doing.
pub(crate) fn bottleneck(world: &World, every: &[Duration]) -> Option<String> {
    if let Some(generator) = world
        .busiest_cpu_pct()
        .filter(|cpu_pct| *cpu_pct > FULL_PCT)
    {
        return Some(format!(
            "the generator itself is full, {generator:.0} % of a core"
        ));
    }
    let metrics = world.gateway_metrics.clone().unwrap_or_default();
    if let Some(cpu_pct) = metrics.cpu_pct.filter(|cpu_pct| *cpu_pct > FULL_PCT) {
        return Some(format!("the gateway is full, {cpu_pct:.0} % of a core"));
    }
    if let Some(tick_ms) = metrics.tick_max_ms.filter(|tick_ms| *tick_ms > TICK_MS) {
        return Some(format!("the gateway's tick takes up to {tick_ms:.0} ms"));
    }
    let late_ms = late_windows_ms(world, every);
    if let Some(why) = wire(world, late_ms.is_some()).or_else(|| queue(&metrics)) {
        return Some(why);
    }
    let frames = &world.frames;
    // A server that broke off lacks frames for that, and not for want of time.
    let all_stood = world.players.servers_lost == 0;
    if all_stood && frames.per_s < ENOUGH_FRAMES * frames.asked_per_s {
        return Some(format!(
            "the game server simulates {:.1} of {:.0} frames a second",
            frames.per_s, frames.asked_per_s
        ));
    }
    let players = &world.players;
    if players.in_game < players.asked {
        return Some(format!(
            "only {} of {} players are in the game",
            players.in_game, players.asked
        ));
    }
    if players.lost > 0 && !were_killed(world) {
        return Some(format!("{} players lost their connections", players.lost));
    }
    if let Some(handovers) = &world.handovers
        && handovers.orphans > 0
    {
        return Some(format!(
            "{} characters are left without a server",
            handovers.orphans
        ));
    }
    late_ms.map(|gap_ms| format!("windows come up to {gap_ms:.0} ms apart at p99"))
}

/// How far apart windows come, where that is too far.
fn late_windows_ms(world: &World, every: &[Duration]) -> Option<f64> {
    // A window that comes at all its times is late by less than a frame of the
    // server and an interval.
    let interval_ms = 1e3 * every.first()?.as_secs_f64();
    let allowed_ms = 2.0 * interval_ms + 2000.0 / world.frames.asked_per_s;
    world
        .sight
        .worst_gap_p99_ms
        .filter(|gap_ms| *gap_ms > allowed_ms)
}

/// What the links of players do not carry, where that has aged what they see: a
/// path with little room that is enough is none of it. Where no link is known,
/// as on loopback, nothing is.
fn wire(world: &World, are_windows_late: bool) -> Option<String> {
    let has_aged = are_windows_late
        || world.sight.stale_share > STALE_SHARE
        || world.players.in_game < world.players.asked
        || world.players.lost > 0;
    let path = world.path.as_ref().filter(|_| has_aged)?;
    let ways = [("to", &path.down), ("from", &path.up)];
    let suspect = |why: fn(&WorldWay) -> Option<String>| {
        ways.iter()
            .find_map(|(towards, way)| Some(format!("the path {towards} players {}", why(way)?)))
    };
    suspect(|way| {
        let full = way.full_share.filter(|share| *share > FULL_SHARE)?;
        Some(format!(
            "is full, {:.0} % of its packets find no room in the queue",
            100.0 * full
        ))
    })
    .or_else(|| {
        suspect(|way| {
            let wait_ms = way.wait_ms.filter(|wait_ms| *wait_ms > WAIT_MS)?;
            Some(format!(
                "is full, packets wait {wait_ms:.0} ms in its queue"
            ))
        })
    })
    .or_else(|| {
        suspect(|way| {
            let lost = Some(way.lost_share).filter(|share| *share > LOST_SHARE)?;
            Some(format!("loses {:.0} % of its packets", 100.0 * lost))
        })
    })
}

/// What waits in the gateway's queues, or is merged because players do not take
/// it.
fn queue(metrics: &GatewayMetrics) -> Option<String> {
    if let Some(queue_ms) = metrics.queue_ms.filter(|queue_ms| *queue_ms > TICK_MS) {
        return Some(format!(
            "messages wait {queue_ms:.0} ms in the gateway's queues"
        ));
    }
    let merged = metrics.merged_pct.filter(|merged| *merged > MERGED_PCT)?;
    Some(format!(
        "the gateway merges {merged:.0} % of its messages for players that take them too slowly"
    ))
}

#[cfg(test)]
mod tests {
    use lagometer_results::WorldPath;

    use super::*;
    use crate::measure::assemble::tests::{WINDOW, carried};

    fn says(world: &World, words: &str) {
        let said = bottleneck(world, &WINDOW).unwrap();
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn a_path_is_blamed_for_what_has_aged_and_no_other() {
        let mut world = carried();
        world.path = Some(WorldPath {
            down: WorldWay {
                full_share: Some(0.02),
                wait_ms: Some(60.0),
                lost_share: 0.06,
                ..WorldWay::default()
            },
            ..WorldPath::default()
        });
        assert_eq!(bottleneck(&world, &WINDOW), None, "nothing is old");
        world.sight.stale_share = 0.06;
        says(&world, "the path to players is full, 2 % of its packets");
        let down = |world: &mut World| world.path.take().unwrap().down;
        let way = WorldWay {
            full_share: Some(0.005),
            ..down(&mut world)
        };
        let on = |down: WorldWay, up: WorldWay| Some(WorldPath { up, down });
        world.path = on(way.clone(), WorldWay::default());
        says(&world, "packets wait 60 ms");
        let lossy = WorldWay {
            wait_ms: Some(1.0),
            ..way
        };
        world.path = on(WorldWay::default(), lossy);
        says(&world, "the path from players loses 6 %");
        world.path = on(WorldWay::default(), WorldWay::default());
        assert_eq!(
            bottleneck(&world, &WINDOW),
            None,
            "it is far away, not full"
        );
    }

    #[test]
    fn queues_come_after_ticks_and_before_frames() {
        let mut world = carried();
        world.frames.per_s = 20.0;
        let metrics = |queue_ms, merged_pct, tick_max_ms| {
            Some(GatewayMetrics {
                queue_ms: Some(queue_ms),
                merged_pct: Some(merged_pct),
                tick_max_ms: Some(tick_max_ms),
                ..GatewayMetrics::default()
            })
        };
        world.gateway_metrics = metrics(21.0, 3.0, 30.0);
        says(&world, "tick takes up to 30 ms");
        world.gateway_metrics = metrics(21.0, 3.0, 10.0);
        says(&world, "wait 21 ms in the gateway's queues");
        world.gateway_metrics = metrics(19.0, 3.0, 10.0);
        says(&world, "merges 3 %");
        world.gateway_metrics = metrics(19.0, 1.0, 10.0);
        says(&world, "20.0 of 30 frames");
    }
}
