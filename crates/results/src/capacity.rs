//! How many players a gateway carries: the same world with few players and
//! with many, and between which numbers it saturates.

use crate::document::World;

/// The same world with one number of players after another, fewest first, over
/// one transport on one network.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity<'a> {
    /// The network between players and gateway; none where there was none.
    pub network: Option<&'a str>,
    /// How players reached the gateway; none where there was no choice.
    pub transport: Option<&'a str>,
    /// The worlds by the players asked for.
    pub steps: Vec<&'a World>,
}

impl<'a> Capacity<'a> {
    /// The curves among `worlds`: one for each transport on each network, in
    /// the order of their first worlds.
    #[must_use]
    pub fn curves(worlds: &'a [World]) -> Vec<Self> {
        let mut curves: Vec<Self> = Vec::new();
        for world in worlds {
            let (network, transport) = (world.network.as_deref(), world.transport.as_deref());
            let known = curves
                .iter_mut()
                .find(|known| known.network == network && known.transport == transport);
            match known {
                Some(curve) => curve.steps.push(world),
                None => curves.push(Self {
                    network,
                    transport,
                    steps: vec![world],
                }),
            }
        }
        for curve in &mut curves {
            curve.steps.sort_by_key(|world| world.players.asked);
        }
        curves
    }

    /// The world with most players that was carried.
    #[must_use]
    pub fn carried(&self) -> Option<&'a World> {
        let mut most_first = self.steps.iter().rev();
        most_first.find(|world| world.is_carried()).copied()
    }

    /// The world beyond it with fewest players: where it saturates.
    #[must_use]
    pub fn saturated(&self) -> Option<&'a World> {
        let carried = self.carried().map_or(0, |world| world.players.asked);
        let mut steps = self.steps.iter().copied();
        steps.find(|world| world.players.asked > carried && !world.is_carried())
    }

    /// Worlds that were not carried though one with more players was: the
    /// machine's doing rather than the players'.
    pub fn stumbled(&self) -> impl Iterator<Item = &'a World> {
        let carried = self.carried().map_or(0, |world| world.players.asked);
        let steps = self.steps.iter().copied();
        steps.filter(move |world| world.players.asked < carried && !world.is_carried())
    }

    /// What carried it: the transport and the network, as far as there was a
    /// choice; empty without one.
    #[must_use]
    pub fn path(&self) -> String {
        match (self.transport, self.network) {
            (Some(transport), Some(network)) => format!("{transport} on {network}"),
            (Some(only), None) | (None, Some(only)) => only.to_owned(),
            (None, None) => String::new(),
        }
    }

    /// Between which numbers of players it saturates and its bottleneck there, as a
    /// clause without a full stop.
    #[must_use]
    pub fn clause(&self) -> String {
        let saturation = match (self.carried(), self.saturated()) {
            (Some(carried), Some(saturated)) => format!(
                "it saturates between {} and {} players: {}",
                carried.players.asked,
                saturated.players.asked,
                why(saturated)
            ),
            (Some(carried), None) => {
                format!(
                    "it does not saturate up to {} players",
                    carried.players.asked
                )
            }
            (None, Some(saturated)) => format!(
                "even {} players are too many: {}",
                saturated.players.asked,
                why(saturated)
            ),
            (None, None) => "nothing was played".to_owned(),
        };
        let stumbled = self.stumbled().map(|world| {
            format!(
                "{} were not carried though more were: {}",
                world.players.asked,
                why(world)
            )
        });
        let parts = [saturation]
            .into_iter()
            .chain(self.carried().and_then(seen));
        parts.chain(stumbled).collect::<Vec<_>>().join("; ")
    }
}

fn why(world: &World) -> &str {
    world.bottleneck.as_deref().unwrap_or_default()
}

/// How old what is seen is at the nearest tier where anybody is.
fn seen(world: &World) -> Option<String> {
    let tier = world.tiers.iter().find(|tier| tier.samples > 0)?;
    Some(format!(
        "what {} see of each other is {:.0} ms old at the median and {:.0} ms at p99",
        world.players.asked, tier.age_ms.p50, tier.age_ms.p99
    ))
}

/// Where the worlds saturate, in one sentence; `None` unless some differ in
/// nothing but the number of players.
#[must_use]
pub fn capacity_verdict(worlds: &[World]) -> Option<String> {
    let curves = Capacity::curves(worlds);
    if curves.iter().all(|curve| curve.steps.len() < 2) {
        return None;
    }
    let clauses: Vec<String> = curves
        .iter()
        .map(|curve| match (curves.len(), curve.path()) {
            (2.., path) if !path.is_empty() => format!("over {path} {}", curve.clause()),
            _ => curve.clause(),
        })
        .collect();
    let mut sentence = clauses.join("; ") + ".";
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Some(sentence)
}

impl World {
    /// Whether nothing was saturated: all players received each other's state as often
    /// as they asked.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        self.bottleneck.is_none()
    }

    /// Processor time of the thread that played, in per cent of a core; of the
    /// busiest, where several processes did. `None` where nobody knows, as in
    /// virtual time.
    #[must_use]
    pub fn busiest_cpu_pct(&self) -> Option<f64> {
        self.processes
            .iter()
            .filter_map(|process| process.cpu_pct)
            .reduce(f64::max)
            .or(self.generator.cpu_pct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Generator, Players, Quantiles, WorldProcess, WorldTier};

    fn world(players: u32, bottleneck: Option<&str>) -> World {
        World {
            players: Players {
                asked: players,
                ..Players::default()
            },
            tiers: vec![WorldTier {
                samples: 9,
                age_ms: Quantiles {
                    p50: 28.0,
                    p99: 49.0,
                    ..Quantiles::default()
                },
                ..WorldTier::default()
            }],
            bottleneck: bottleneck.map(str::to_owned),
            ..World::default()
        }
    }

    fn over(transport: &str, world: World) -> World {
        World {
            transport: Some(transport.to_owned()),
            network: Some("lan".to_owned()),
            ..world
        }
    }

    const FULL: Option<&str> = Some("the gateway is full");

    #[test]
    fn it_bends_between_the_last_that_held_and_the_first_that_did_not() {
        let worlds = [world(400, FULL), world(100, None), world(200, None)];
        assert_eq!(
            capacity_verdict(&worlds).unwrap(),
            "It saturates between 200 and 400 players: the gateway is full; \
             what 200 see of each other is 28 ms old at the median and 49 ms at p99."
        );
        let curve = &Capacity::curves(&worlds)[0];
        let asked: Vec<u32> = curve.steps.iter().map(|step| step.players.asked).collect();
        assert_eq!(asked, [100, 200, 400]);
    }

    #[test]
    fn a_number_missed_below_one_that_holds_is_no_saturation() {
        let worlds = [world(100, FULL), world(200, None)];
        let curve = &Capacity::curves(&worlds)[0];
        assert_eq!(curve.saturated(), None);
        let verdict = capacity_verdict(&worlds).unwrap();
        assert!(
            verdict.starts_with("It does not saturate up to 200"),
            "{verdict}"
        );
        assert!(
            verdict.contains("100 were not carried though more were"),
            "{verdict}"
        );
    }

    #[test]
    fn as_many_as_were_carried_once_are_no_saturation() {
        let worlds = [world(200, None), world(200, FULL), world(400, FULL)];
        let curve = &Capacity::curves(&worlds)[0];
        assert_eq!(
            curve.saturated().map(|world| world.players.asked),
            Some(400)
        );
    }

    #[test]
    fn nothing_that_holds_is_said_too() {
        let worlds = [world(100, FULL), world(200, FULL)];
        assert_eq!(
            capacity_verdict(&worlds).unwrap(),
            "Even 100 players are too many: the gateway is full."
        );
    }

    #[test]
    fn each_transport_and_network_has_a_curve_and_one_world_has_none() {
        let worlds = [
            over("tcp", world(100, None)),
            over("kcp", world(100, FULL)),
            over("tcp", world(200, FULL)),
        ];
        let verdict = capacity_verdict(&worlds).unwrap();
        assert!(
            verdict.starts_with("Over tcp on lan it saturates between 100 and 200"),
            "{verdict}"
        );
        assert!(
            verdict.contains("; over kcp on lan even 100 players are too many"),
            "{verdict}"
        );
        assert_eq!(capacity_verdict(&worlds[..2]), None);
        assert_eq!(capacity_verdict(&[]), None);
    }

    #[test]
    fn the_busiest_of_several_processes_counts() {
        let mut world = world(1, None);
        world.generator = Generator {
            cpu_pct: Some(120.0),
            ..Generator::default()
        };
        assert_eq!(world.busiest_cpu_pct(), Some(120.0));
        world.processes = [Some(50.0), None, Some(70.0)]
            .map(|cpu_pct| WorldProcess {
                cpu_pct,
                ..WorldProcess::default()
            })
            .to_vec();
        assert_eq!(world.busiest_cpu_pct(), Some(70.0));
    }
}
