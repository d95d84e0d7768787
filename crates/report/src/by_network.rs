//! Worlds played over several transports and networks, in the order in which
//! tables and pages set them side by side.

use lagometer_results::World;

/// The worlds of one network, in the document's order.
#[derive(Clone, Debug)]
pub(crate) struct OfNetwork<'a> {
    /// The network's name; empty without one.
    pub(crate) network: &'a str,
    /// Its worlds.
    pub(crate) worlds: Vec<&'a World>,
}

/// `worlds` by network, networks in the order of their first.
pub(crate) fn by_network(worlds: &[World]) -> Vec<OfNetwork<'_>> {
    let mut networks: Vec<OfNetwork<'_>> = Vec::new();
    for world in worlds {
        let network = world.network.as_deref().unwrap_or_default();
        match networks.iter_mut().find(|known| known.network == network) {
            Some(known) => known.worlds.push(world),
            None => networks.push(OfNetwork {
                network,
                worlds: vec![world],
            }),
        }
    }
    networks
}

/// The transports of `worlds`, each once, in the order of their first.
pub(crate) fn transports(worlds: &[World]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for world in worlds {
        let name = transport(world);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// How a world's players reached the gateway.
pub(crate) fn transport(world: &World) -> &str {
    world.transport.as_deref().unwrap_or("tcp")
}

/// Bytes a second that went to one player, headers included, where a link
/// counted them.
pub(crate) fn down_each(world: &World) -> Option<f64> {
    let bytes_per_s = world.path.as_ref()?.down.bytes_per_s?;
    Some(bytes_per_s / f64::from(world.players.in_game.max(1)))
}

/// Ages that differ by less than this factor are as good as equal.
const EQUAL: f64 = 1.02;

/// The least p99 at the tier numbered `tier` among `worlds`, in milliseconds;
/// `None` where all are as good as equal.
pub(crate) fn best_p99(worlds: &[&World], tier: usize) -> Option<f64> {
    let p99 = || {
        let tiers = worlds.iter().filter_map(|world| world.tiers.get(tier));
        let seen = tiers.filter(|tier| tier.samples > 0);
        seen.map(|tier| tier.age_ms.p99)
    };
    let best = p99().min_by(f64::total_cmp)?;
    p99().any(|other| other > best * EQUAL).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(transport: &str, network: &str) -> World {
        World {
            transport: Some(transport.to_owned()),
            network: Some(network.to_owned()),
            ..World::default()
        }
    }

    #[test]
    fn the_best_stands_out_only_where_there_is_one() {
        let aged = |p99| World {
            tiers: vec![lagometer_results::WorldTier {
                samples: 9,
                age_ms: lagometer_results::Quantiles {
                    p99,
                    ..lagometer_results::Quantiles::default()
                },
                ..lagometer_results::WorldTier::default()
            }],
            ..World::default()
        };
        let [equal, same, worse] = [100.0, 101.0, 200.0].map(aged);
        assert_eq!(best_p99(&[&equal, &same], 0), None);
        assert_eq!(best_p99(&[&worse, &same, &equal], 0), Some(100.0));
        assert_eq!(best_p99(&[], 0), None);
    }

    #[test]
    fn worlds_are_found_by_network_and_transport() {
        let worlds = [world("tcp", "lan"), world("tcp", "3g"), world("kcp", "lan")];
        let networks = by_network(&worlds);
        assert_eq!(networks[0].network, "lan");
        assert_eq!(networks[0].worlds, [&worlds[0], &worlds[2]]);
        assert_eq!(networks[1].worlds, [&worlds[1]]);
        assert_eq!(transports(&worlds), ["tcp", "kcp"]);
    }
}
