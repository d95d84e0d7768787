//! From what a played world found to the result document's words.

use std::time::Duration;

use lagometer_results::{
    Frames, Generator, Handovers, Players, Quantiles, Sight, World, WorldPath, WorldProcess,
    WorldTier,
};

use crate::measure::bottleneck::bottleneck;
use crate::measure::input_digest;
use crate::measure::outcome::{Outcome, ProcessStats};
use crate::sim::scenario::Scenario;

/// The document's account of a played world. `gateway` says where it was
/// played.
#[must_use]
pub fn assemble(scenario: &Scenario, gateway: String, outcome: &Outcome) -> World {
    let seconds = outcome.measured.as_secs_f64().max(1e-9);
    let mut world = World {
        gateway,
        measured_s: outcome.measured.as_secs_f64(),
        players: Players {
            asked: scenario.players,
            in_game: outcome.players,
            lost: outcome.lost.len() as u32,
            returned: outcome.returned.players,
            servers_lost: outcome.servers_lost,
            servers_returned: outcome.returned.servers,
            turned_away: outcome.server.turned_away,
            observers: scenario.observers.min(scenario.players),
        },
        tiers: tiers(scenario, outcome),
        sight: sight(outcome, seconds),
        frames: Frames {
            asked_per_s: f64::from(scenario.server_frames_per_s),
            // A server's, on the average.
            per_s: outcome.server.frames as f64 / f64::from(scenario.simulating()) / seconds,
            missed: outcome.frames_missed,
            work_ms: Quantiles::of(&outcome.frame_work),
            late_ms: Quantiles::of(&outcome.frame_late),
            moves_per_s: outcome.server.moves as f64 / seconds,
            refused: outcome.server.refused,
        },
        generator: Generator {
            cpu_pct: outcome
                .generator_cpu
                .map(|cpu| 100.0 * cpu.as_secs_f64() / seconds),
            cpu_us_per_update: outcome
                .generator_cpu
                .map(|cpu| cpu.as_secs_f64() * 1e6 / (outcome.sum.updates as f64).max(1.0)),
            received_bytes_per_s: outcome.wire.0 as f64 / seconds,
            sent_bytes_per_s: outcome.wire.1 as f64 / seconds,
        },
        gateway_metrics: outcome.gateway.clone(),
        handovers: handovers(scenario, outcome, seconds),
        // Whoever lays the path between players and gateway says what it is.
        transport: None,
        network: None,
        path: None,
        cost: None,
        digest: None,
        // Who was stopped has not made all of it.
        inputs: (!outcome.partial)
            .then(|| format!("{:016x}", input_digest::of_all(&outcome.input_digest))),
        processes: outcome
            .processes
            .iter()
            .map(|process_stats| process(process_stats, seconds))
            .collect(),
        bottleneck: None,
        timeline: outcome.timeline.iter().map(|moment| moment.world).collect(),
    };
    world.bottleneck = judge(scenario, &world);
    world
}

/// The same world with what went over its players' links, which may be
/// the bottleneck.
#[must_use]
pub fn with_path(scenario: &Scenario, mut world: World, path: WorldPath) -> World {
    world.path = Some(path);
    world.bottleneck = judge(scenario, &world);
    world
}

fn judge(scenario: &Scenario, world: &World) -> Option<String> {
    let every: Vec<Duration> = scenario.tiers.iter().map(|tier| tier.every.0).collect();
    bottleneck(world, &every)
}

/// Whether players lost their connections because their processes did not live,
/// which says nothing of how many are carried, and all came back.
pub(crate) fn were_killed(world: &World) -> bool {
    let players = &world.players;
    let mut killed = world.processes.iter().filter(|process| process.lost);
    players.returned >= players.lost && killed.any(|process| process.players > 0)
}

fn tiers(scenario: &Scenario, outcome: &Outcome) -> Vec<WorldTier> {
    scenario
        .tiers
        .iter()
        .zip(&outcome.age)
        .map(|(tier, age)| WorldTier {
            within_m: tier.within_m,
            every_ms: tier.every.as_millis_f64(),
            age_ms: Quantiles::of(age),
            samples: age.len(),
            histogram: age.to_base64(),
        })
        .collect()
}

fn sight(outcome: &Outcome, seconds: f64) -> Sight {
    let updates = outcome.updates.values();
    let mut rates: Vec<f64> = updates.map(|count| *count as f64 / seconds).collect();
    rates.sort_by(f64::total_cmp);
    let samples: u64 = outcome
        .age
        .iter()
        .map(lagometer_stats::Distribution::len)
        .sum();
    let (right, compared) = outcome.right_views;
    Sight {
        updates_per_s_min: rates.first().copied().unwrap_or_default(),
        updates_per_s_p50: rates.get(rates.len() / 2).copied().unwrap_or_default(),
        updates_per_s_sum: rates.iter().sum(),
        states_per_s: outcome.states as f64 / seconds,
        worst_gap_p99_ms: outcome.worst_gap_p99.map(milliseconds),
        longest_gap_ms: outcome.longest_gap.map(milliseconds),
        first_state_ms: Quantiles::of(&outcome.first_state),
        missing: outcome.missing as u64,
        stale_share: outcome.stale as f64 / (samples as f64).max(1.0),
        views_right: right as u32,
        views_compared: compared as u32,
    }
}

fn handovers(scenario: &Scenario, outcome: &Outcome, seconds: f64) -> Option<Handovers> {
    let (space, found) = (scenario.space?, outcome.handovers.as_ref()?);
    Some(Handovers {
        servers: space.server_count(),
        cells: space.cells[0] * space.cells[1],
        per_s: outcome.server.taken_over as f64 / seconds,
        cell_changes_per_s: outcome.server.cell_changes as f64 / seconds,
        begun: found.authority.begun,
        completed: found.authority.completed,
        flight_ms: Quantiles::of(&found.flights),
        gap_ms: Quantiles::of(&found.gaps),
        gaps: found.gaps.len(),
        doubled: found.authority.doubled,
        orphaned: found.authority.orphaned,
        orphans: found.orphans,
        simulated: found.simulated,
        failed: outcome.server.bad_handovers,
    })
}

fn process(process_stats: &ProcessStats, seconds: f64) -> WorldProcess {
    WorldProcess {
        at: process_stats.at.clone(),
        servers: process_stats.servers,
        players: process_stats.players,
        cpu_pct: process_stats
            .cpu
            .map(|cpu| 100.0 * cpu.as_secs_f64() / seconds),
        clock_error_us: process_stats.clock_error.as_secs_f64() * 1e6,
        lost: process_stats.lost,
    }
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

#[cfg(test)]
pub(crate) mod tests {
    use lagometer_results::{GatewayMetrics, world_verdict};

    use super::*;

    pub(crate) fn carried() -> World {
        World {
            players: Players {
                asked: 150,
                in_game: 150,
                ..Players::default()
            },
            frames: Frames {
                asked_per_s: 30.0,
                per_s: 30.0,
                ..Frames::default()
            },
            tiers: vec![WorldTier {
                samples: 10,
                age_ms: Quantiles {
                    p50: 39.0,
                    p99: 68.0,
                    ..Quantiles::default()
                },
                ..WorldTier::default()
            }],
            ..World::default()
        }
    }

    pub(crate) const WINDOW: [Duration; 1] = [Duration::from_millis(20)];

    #[test]
    fn what_is_carried_is_said_with_its_age() {
        let world = carried();
        assert_eq!(bottleneck(&world, &WINDOW), None);
        assert_eq!(
            world_verdict(&world),
            "150 players are carried: what they see of each other is 39 ms old at the median and 68 ms at p99."
        );
    }

    #[test]
    fn a_server_that_broke_off_is_not_called_too_slow() {
        let mut world = carried();
        world.frames.per_s = 20.0;
        assert!(bottleneck(&world, &WINDOW).is_some());
        world.players.servers_lost = 1;
        world.players.servers_returned = 1;
        assert_eq!(bottleneck(&world, &WINDOW), None);
        assert!(world_verdict(&world).ends_with("; a game server broke off and came back."));
    }

    #[test]
    fn players_that_were_killed_and_came_back_are_not_too_many() {
        let mut world = carried();
        world.players.lost = 40;
        world.players.returned = 40;
        assert!(
            bottleneck(&world, &WINDOW)
                .unwrap()
                .starts_with("40 players")
        );
        world.processes = vec![WorldProcess {
            players: 50,
            lost: true,
            ..WorldProcess::default()
        }];
        assert_eq!(bottleneck(&world, &WINDOW), None);
        let words = "; 40 connections of players broke off, 40 came back.";
        assert!(world_verdict(&world).ends_with(words));
        world.players.returned = 39;
        assert!(bottleneck(&world, &WINDOW).is_some());
    }

    #[test]
    fn the_generator_is_suspected_first() {
        let mut world = carried();
        world.sight.worst_gap_p99_ms = Some(500.0);
        let named = |world: &World, word: &str| bottleneck(world, &WINDOW).unwrap().contains(word);
        assert!(named(&world, "windows come up to 500 ms apart"));
        world.players.in_game = 149;
        assert!(named(&world, "only 149 of 150 players"));
        world.frames.per_s = 20.0;
        assert!(named(&world, "20.0 of 30 frames"));
        world.gateway_metrics = Some(GatewayMetrics {
            cpu_pct: Some(99.0),
            tick_max_ms: Some(200.0),
            ..GatewayMetrics::default()
        });
        assert!(named(&world, "the gateway is full"));
        world.generator.cpu_pct = Some(97.0);
        assert!(named(&world, "the generator itself"));
        // Two that share it evenly have room.
        world.processes = vec![
            WorldProcess {
                cpu_pct: Some(48.5),
                ..WorldProcess::default()
            };
            2
        ];
        assert!(named(&world, "the gateway is full"));
        world.processes[1].cpu_pct = Some(95.0);
        assert!(named(&world, "the generator itself is full, 95 %"));
    }
}
