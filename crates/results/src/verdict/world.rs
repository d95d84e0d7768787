//! Worlds in words: how many players are carried, and how old what they see is.

use crate::document::{Players, World};

/// The answer in one sentence.
#[must_use]
pub fn world_verdict(world: &World) -> String {
    let ages: Vec<String> = world
        .tiers
        .iter()
        .filter(|tier| tier.samples > 0)
        .map(|tier| {
            let within = tier
                .within_m
                .map_or_else(String::new, |metres| format!(" within {metres} m"));
            format!(
                "{:.0} ms old at the median and {:.0} ms at p99{within}",
                tier.age_ms.p50, tier.age_ms.p99
            )
        })
        .collect();
    let seen = match ages.as_slice() {
        [] => "nobody saw anything".to_owned(),
        ages => format!("what they see of each other is {}", ages.join(", ")),
    };
    let cost = world
        .gateway_metrics
        .as_ref()
        .and_then(|metrics| metrics.cpu_pct)
        .map_or_else(String::new, |cpu_pct| {
            format!("; the gateway uses {cpu_pct:.0} % of a core")
        });
    let players = world.players.in_game;
    match &world.bottleneck {
        Some(bottleneck) => format!("{players} players are too many: {bottleneck}; {seen}{cost}."),
        None => format!(
            "{players} players are carried: {seen}{cost}{}.",
            breaks(world)
        ),
    }
}

/// What became of players and game servers that broke off, where any did.
fn breaks(world: &World) -> String {
    let players = &world.players;
    let broken = match (players.lost, players.returned) {
        (0, _) => String::new(),
        (1, 1) => "; a player's connection broke off and it came back".to_owned(),
        (lost, back) => format!("; {lost} connections of players broke off, {back} came back"),
    };
    broken + &server_breaks(players)
}

fn server_breaks(players: &Players) -> String {
    match (players.servers_lost, players.servers_returned) {
        (0, _) => String::new(),
        (1, 1) => "; a game server broke off and came back".to_owned(),
        (lost, back) => format!("; {lost} game servers broke off, {back} came back"),
    }
}

/// Samples below which a tier's p99 says nothing.
const SAMPLES: u64 = 1000;

/// Said where one transport could seem to do better than another.
const DECIDES_NOTHING: &str =
    " One seed decides no order of transports: play at least five (`--seed`) to compare them.";

/// What the worlds say, side by side: how old the nearest others are that enough was
/// seen of, in the order in which worlds were asked for. They are of one seed, as all
/// worlds of a document are, of which nothing shows how an age varies, so that none is
/// put before another. `None` where nobody saw anything.
#[must_use]
pub fn worlds_verdict(worlds: &[World]) -> Option<String> {
    let tier = (0..worlds.iter().map(|world| world.tiers.len()).max()?).find(|&tier| {
        let mut seen = worlds.iter().map(|world| &world.tiers[tier]);
        seen.all(|tier| tier.samples >= SAMPLES)
    })?;
    let within = worlds[0].tiers[tier]
        .within_m
        .map_or_else(String::new, |metres| format!(" within {metres} m"));
    let mut networks: Vec<(&str, Vec<(&str, f64)>)> = Vec::new();
    for world in worlds {
        let (network, transport) = (
            world.network.as_deref().unwrap_or_default(),
            world.transport.as_deref().unwrap_or_default(),
        );
        let age = (transport, world.tiers[tier].age_ms.p99);
        match networks.iter_mut().find(|(known, _)| *known == network) {
            Some((_, ages)) => ages.push(age),
            None => networks.push((network, vec![age])),
        }
    }
    let order = if networks.iter().any(|(_, ages)| ages.len() > 1) {
        DECIDES_NOTHING
    } else {
        ""
    };
    let clauses: Vec<String> = networks
        .into_iter()
        .map(|(network, ages)| {
            let ages: Vec<String> = ages
                .into_iter()
                .map(|(transport, p99_ms)| format!("{transport} {p99_ms:.0} ms"))
                .collect();
            format!("on {network} {}", ages.join(", "))
        })
        .collect();
    Some(format!(
        "What {} players see of others{within} is, at p99, so old: {}.{}{order}",
        worlds[0].players.asked,
        clauses.join("; "),
        all_breaks(worlds)
    ))
}

/// How many connections of players broke off in each of the worlds, and how many players
/// were away at the end, where there were any: an age alone does not show who was lost.
fn all_breaks(worlds: &[World]) -> String {
    let of = |world: &World| {
        let players = &world.players;
        let away = players.asked.saturating_sub(players.in_game);
        let place = [&world.transport, &world.network].map(|it| it.as_deref().unwrap_or_default());
        let away = match away {
            0 => String::new(),
            away => format!(" ({away} away at the end)"),
        };
        (players.lost > 0)
            .then(|| format!("{} over {} on {}{away}", players.lost, place[0], place[1]))
    };
    let broken: Vec<String> = worlds.iter().filter_map(of).collect();
    if broken.is_empty() {
        return String::new();
    }
    format!(" Connections broke off: {}.", broken.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::document::{Quantiles, WorldTier};

    use super::*;

    fn world(transport: &str, network: &str, tiers: &[(u64, f64)]) -> World {
        World {
            transport: Some(transport.to_owned()),
            network: Some(network.to_owned()),
            players: Players {
                asked: 20,
                ..Players::default()
            },
            tiers: tiers
                .iter()
                .zip([Some(10.0), None])
                .map(|(&(samples, p99), within_m)| WorldTier {
                    within_m,
                    samples,
                    age_ms: Quantiles {
                        p99,
                        ..Quantiles::default()
                    },
                    ..WorldTier::default()
                })
                .collect(),
            ..World::default()
        }
    }

    #[test]
    fn networks_and_transports_are_listed_as_asked_and_one_seed_decides_no_order() {
        let worlds = [
            world("tcp", "lan", &[(5000, 70.0)]),
            world("kcp", "lan", &[(5000, 60.0)]),
            world("tcp", "3g", &[(5000, 700.0)]),
            world("tcp", "cable", &[(5000, 90.5)]),
            world("kcp", "cable", &[(5000, 90.0)]),
        ];
        assert_eq!(
            worlds_verdict(&worlds).unwrap(),
            "What 20 players see of others within 10 m is, at p99, so old: on lan tcp 70 ms, kcp 60 ms; on 3g tcp 700 ms; on cable tcp 90 ms, kcp 90 ms. \
             One seed decides no order of transports: play at least five (`--seed`) to compare them."
        );
        let alone = worlds_verdict(&worlds[1..3]).unwrap();
        assert!(alone.ends_with("on 3g tcp 700 ms."), "{alone}");
    }

    #[test]
    fn who_was_lost_is_named_by_transport_and_network() {
        let mut worlds = [
            world("tcp", "3g", &[(5000, 70.0)]),
            world("kcp", "3g", &[(5000, 60.0)]),
        ];
        for world in &mut worlds {
            world.players.in_game = 20;
        }
        assert!(!worlds_verdict(&worlds).unwrap().contains("broke off"));
        worlds[1].players.lost = 3;
        worlds[1].players.in_game = 19;
        let said = worlds_verdict(&worlds).unwrap();
        let broken = "kcp 60 ms. Connections broke off: 3 over kcp on 3g (1 away at the end). One";
        assert!(said.contains(broken), "{said}");
    }

    #[test]
    fn a_tier_that_nobody_was_seen_at_is_passed_over() {
        let worlds = [world("tcp", "lan", &[(3, 70.0), (5000, 80.0)])];
        assert!(worlds_verdict(&worlds).unwrap().contains("80 ms"));
        assert_eq!(worlds_verdict(&[world("tcp", "lan", &[(3, 70.0)])]), None);
        assert_eq!(worlds_verdict(&[]), None);
    }
}
