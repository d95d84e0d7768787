//! A played world on a terminal: how old what players see is, tier by tier,
//! what reached them, and what it cost.

use lagometer_results::{GatewayMetrics, Handovers, World, WorldProcess, WorldTier};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style};
use crate::cost;
use crate::written::{self, milliseconds};

/// Appends the tables.
pub(crate) fn render(world: &World, paint: Paint, out: &mut String) {
    ages(world, paint, out);
    for (heading, facts) in facts(world) {
        out.push('\n');
        line_of(out, &paint.apply(Style::Bold, heading));
        for (name, value) in facts {
            line_of(out, &format!("  {name:<30}{value}"));
        }
    }
}

fn ages(world: &World, paint: Paint, out: &mut String) {
    let columns = vec![
        Column::words("age of what is seen"),
        Column::numbers("asked", "every ms"),
        Column::numbers("p50", "ms"),
        Column::numbers("p90", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("worst", "ms"),
        Column::numbers("samples", ""),
    ];
    let rows = world
        .tiers
        .iter()
        .map(|tier| {
            let age = |value| match tier.samples {
                0 => Cell::new(written::NOTHING, Style::Dim),
                _ => Cell::new(milliseconds(value), Style::Plain),
            };
            Row::Cells(vec![
                Cell::new(reach(world, tier), Style::Plain),
                Cell::new(milliseconds(tier.every_ms), Style::Plain),
                age(tier.age_ms.p50),
                age(tier.age_ms.p90),
                age(tier.age_ms.p99),
                age(tier.age_ms.max),
                Cell::new(written::count(tier.samples), Style::Plain),
            ])
        })
        .collect();
    Grid { columns, rows }.render(paint, out);
}

/// How far a tier reaches, in words.
pub(crate) fn reach(world: &World, tier: &WorldTier) -> String {
    match tier.within_m {
        Some(metres) => format!("within {metres} m"),
        None if world.tiers.len() == 1 => "everyone".to_owned(),
        None => "beyond".to_owned(),
    }
}

/// Names and values under a heading.
pub(crate) type Facts = (&'static str, Vec<(&'static str, String)>);

/// Everything else there is to say of a world, under headings.
pub(crate) fn facts(world: &World) -> Vec<Facts> {
    let mut all = vec![players(world), server(world)];
    all.extend(world.handovers.as_ref().map(handovers));
    all.push(generator(world));
    all.extend(processes(world));
    if let Some(metrics) = &world.gateway_metrics {
        let number = |value: Option<f64>, unit: &str| {
            value.map_or(written::NOTHING.to_owned(), |value| {
                format!("{value:.0}{unit}")
            })
        };
        all.push((
            "Gateway",
            vec![
                ("processor time", number(metrics.cpu_pct, " % of a core")),
                (
                    "memory",
                    metrics
                        .resident_bytes
                        .map_or(written::NOTHING.to_owned(), |bytes| {
                            written::bytes(bytes as u64)
                        }),
                ),
                (
                    "longest tick of a channel",
                    metrics
                        .tick_max_ms
                        .map_or(written::NOTHING.to_owned(), |tick| format!("{tick:.1} ms")),
                ),
                ("ticks of channels", ticks(metrics)),
                (
                    "messages in",
                    number(metrics.messages_in_per_s, " a second"),
                ),
                (
                    "messages out",
                    number(metrics.messages_out_per_s, " a second"),
                ),
                (
                    "wait in its queues",
                    metrics
                        .queue_ms
                        .map_or(written::NOTHING.to_owned(), |wait| format!("{wait:.1} ms")),
                ),
                (
                    "merged for slow readers",
                    metrics
                        .merged_pct
                        .map_or(written::NOTHING.to_owned(), |merged| {
                            format!("{merged:.1} % of messages")
                        }),
                ),
            ],
        ));
    }
    all
}

/// How many ticks the gateway's channels made, and how many of them late.
fn ticks(metrics: &GatewayMetrics) -> String {
    match (metrics.ticks_per_s, metrics.ticks_late_pct) {
        (Some(per_s), Some(late)) => {
            format!("{per_s:.1} a second, {late:.1} % more than 10 ms late")
        }
        _ => written::NOTHING.to_owned(),
    }
}

fn players(world: &World) -> Facts {
    let (players, sight) = (&world.players, &world.sight);
    let mut facts = vec![
        (
            "in the game",
            format!("{} of {}", players.in_game, players.asked),
        ),
        (
            "updates for each",
            format!(
                "{:.1} a second, the least {:.1}",
                sight.updates_per_s_p50, sight.updates_per_s_min
            ),
        ),
        (
            "states sent to observers",
            format!("{} a second", written::count(sight.states_per_s as u64)),
        ),
        (
            "first state after",
            format!(
                "{} ms, at worst {}",
                milliseconds(sight.first_state_ms.p50),
                milliseconds(sight.first_state_ms.max)
            ),
        ),
        (
            "stale samples",
            format!("{} %", written::lost_share(sight.stale_share)),
        ),
        ("entities missing", written::count(sight.missing)),
        (
            "views right at the end",
            format!("{} of {}", sight.views_right, sight.views_compared),
        ),
    ];
    if let Some(cost) = &world.cost {
        facts.push(("an hour of a player", cost::line(cost)));
    }
    if let Some(gap) = sight.worst_gap_p99_ms {
        facts.push((
            "gap between windows, p99",
            format!("{} ms at the worst player", milliseconds(gap)),
        ));
    }
    if let Some(gap) = sight.longest_gap_ms {
        facts.push((
            "longest without a window",
            format!("{} ms", milliseconds(gap)),
        ));
    }
    for (name, count) in [
        ("lost their connections", u64::from(players.lost)),
        ("came back", u64::from(players.returned)),
        ("servers lost", u64::from(players.servers_lost)),
        (
            "servers that came back",
            u64::from(players.servers_returned),
        ),
        ("found no place", players.turned_away),
    ] {
        if count > 0 {
            facts.push((name, written::count(count)));
        }
    }
    ("Players", facts)
}

fn server(world: &World) -> Facts {
    let frames = &world.frames;
    (
        "Game server",
        vec![
            (
                "frames",
                format!(
                    "{:.1} of {:.0} a second, {} missed",
                    frames.per_s, frames.asked_per_s, frames.missed
                ),
            ),
            (
                "a frame's work",
                format!(
                    "{} ms, p99 {}",
                    milliseconds(frames.work_ms.p50),
                    milliseconds(frames.work_ms.p99)
                ),
            ),
            (
                "a frame begins late by",
                format!(
                    "{} ms, p99 {}",
                    milliseconds(frames.late_ms.p50),
                    milliseconds(frames.late_ms.p99)
                ),
            ),
            (
                "moves of players",
                format!("{:.0} a second", frames.moves_per_s),
            ),
        ],
    )
}

fn handovers(handovers: &Handovers) -> Facts {
    let mut facts = vec![
        (
            "servers and cells",
            format!("{} and {}", handovers.servers, handovers.cells),
        ),
        (
            "handovers",
            format!(
                "{:.1} a second; {} of {} completed",
                handovers.per_s,
                written::count(handovers.completed),
                written::count(handovers.begun)
            ),
        ),
        (
            "changes of cell beside",
            format!("{:.1} a second", handovers.cell_changes_per_s),
        ),
        (
            "nobody simulates it for",
            format!(
                "{} ms, p99 {}",
                milliseconds(handovers.flight_ms.p50),
                milliseconds(handovers.flight_ms.p99)
            ),
        ),
        (
            "gap that players see",
            format!(
                "{} ms, p99 {}, at worst {}",
                milliseconds(handovers.gap_ms.p50),
                milliseconds(handovers.gap_ms.p99),
                milliseconds(handovers.gap_ms.max)
            ),
        ),
        (
            "simulated twice, or by nobody",
            format!("{} times, {} times", handovers.doubled, handovers.orphaned),
        ),
    ];
    for (name, count) in [
        ("without a server at the end", handovers.orphans),
        ("handovers that carried too little", handovers.failed),
    ] {
        if count > 0 {
            facts.push((name, written::count(count)));
        }
    }
    ("Handovers", facts)
}

fn generator(world: &World) -> Facts {
    let generator = &world.generator;
    let rate = |bytes: f64| format!("{} a second", written::bytes(bytes as u64));
    let mut facts = vec![
        ("received", rate(generator.received_bytes_per_s)),
        ("sent", rate(generator.sent_bytes_per_s)),
    ];
    if let (Some(cpu_pct), Some(each_us)) = (generator.cpu_pct, generator.cpu_us_per_update) {
        let used = format!("{cpu_pct:.0} % of a core, {each_us:.1} us for each update");
        facts.insert(0, ("processor time", used));
    }
    ("Generator (server and players)", facts)
}

/// Who played it together, where several processes did.
fn processes(world: &World) -> Option<Facts> {
    let (own, workers) = world.processes.split_first()?;
    let busy: Vec<f64> = workers.iter().filter_map(|worker| worker.cpu_pct).collect();
    let clock_error_us = workers
        .iter()
        .map(|worker| worker.clock_error_us)
        .fold(0.0, f64::max);
    // Another has the part of one that is lost.
    let (lost, stood): (Vec<_>, Vec<_>) = workers.iter().partition(|worker| worker.lost);
    let shares = |count: fn(&WorldProcess) -> u32| -> Option<String> {
        let is_any = stood.iter().any(|worker| count(worker) > 0);
        let each = stood.iter().map(|worker| count(worker).to_string());
        let each: Vec<String> = each.collect();
        is_any.then(|| each.join(", "))
    };
    let mut facts = vec![("workers", written::count(stood.len() as u64))];
    facts.extend(shares(|worker| worker.players).map(|each| ("players of each", each)));
    facts.extend(shares(|worker| worker.servers).map(|each| ("game servers of each", each)));
    facts.push(("clocks right to", format!("{clock_error_us:.0} us")));
    if !lost.is_empty() {
        let lost = lost.len();
        let note = format!("{lost}; their last half second at most is not counted");
        facts.push(("lost in the middle", note));
    }
    if let (Some(own), Some(most)) = (own.cpu_pct, busy.iter().copied().reduce(f64::max)) {
        let each = format!("here {own:.0} % of a core, the busiest worker {most:.0} %");
        facts.push(("processor time", each));
    }
    Some(("Processes", facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_lost_worker_is_named_once() {
        let worker = |players, lost| WorldProcess {
            players,
            lost,
            ..WorldProcess::default()
        };
        let own = worker(0, false);
        let workers = [worker(7, false), worker(6, false), worker(6, true)];
        let world = World {
            processes: [own].into_iter().chain(workers).collect(),
            ..World::default()
        };
        let (_, facts) = processes(&world).unwrap();
        let fact = |name: &str| facts.iter().find(|fact| fact.0 == name).unwrap().1.clone();
        assert_eq!(fact("workers"), "2");
        assert_eq!(fact("players of each"), "7, 6");
        assert!(fact("lost in the middle").starts_with("1; "));
    }
}
