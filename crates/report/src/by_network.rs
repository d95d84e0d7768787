//! Worlds played over several transports and networks, in the order in which
//! tables and pages set them side by side.

use lagometer_results::World;

/// The worlds of one network, in the document's order.
#[derive(Clone, Debug)]
pub(crate) struct OfNetwork<'a> {
    /// The network's name; empty without one.
    pub(crate) network: &'a str,
    /// The worlds that were played on that network.
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
    fn worlds_are_found_by_network_and_transport() {
        let worlds = [world("tcp", "lan"), world("tcp", "3g"), world("kcp", "lan")];
        let networks = by_network(&worlds);
        assert_eq!(networks[0].network, "lan");
        assert_eq!(networks[0].worlds, [&worlds[0], &worlds[2]]);
        assert_eq!(networks[1].worlds, [&worlds[1]]);
        assert_eq!(transports(&worlds), ["tcp", "kcp"]);
    }
}
