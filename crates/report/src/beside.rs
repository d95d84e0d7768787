//! Two documents of played worlds beside each other, cell by cell: the same
//! number of players over the same transport on the same network.

use lagometer_results::{Capacity, Document, World};

use crate::capacity::{FIGURES, OfWorld};
use crate::terminal::reach;
use crate::written;

/// The worlds of a document, one or several.
pub(crate) fn worlds_of(document: &Document) -> Vec<&World> {
    document.world.iter().chain(&document.worlds).collect()
}

/// Two documents' worlds, put in pairs.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    /// Worlds that both have, in the first's order.
    pub(crate) pairs: Vec<[&'a World; 2]>,
    /// Worlds that only the first has, and that only the second has.
    pub(crate) alone: [Vec<&'a World>; 2],
}

impl<'a> Beside<'a> {
    /// The pairs of `first` and `second`.
    pub(crate) fn of(first: Vec<&'a World>, second: Vec<&'a World>) -> Self {
        let (mut pairs, mut only_first, mut only_second) = (Vec::new(), Vec::new(), second);
        for world in first {
            let other = only_second
                .iter()
                .position(|other| place(other) == place(world));
            match other {
                Some(other) => pairs.push([world, only_second.remove(other)]),
                None => only_first.push(world),
            }
        }
        Self {
            pairs,
            alone: [only_first, only_second],
        }
    }
}

/// What makes two worlds the same cell.
fn place(world: &World) -> (Option<&str>, &str, u32) {
    let transport = world.transport.as_deref().unwrap_or("tcp");
    (world.network.as_deref(), transport, world.players.asked)
}

/// A cell in words: `400 players, kcp on cable`.
pub(crate) fn cell(world: &World) -> String {
    let players = format!("{} players", world.players.asked);
    match (world.transport.as_deref(), world.network.as_deref()) {
        (Some(transport), Some(network)) => format!("{players}, {transport} on {network}"),
        (Some(transport), None) => format!("{players}, {transport}"),
        (None, Some(network)) => format!("{players} on {network}"),
        (None, None) => players,
    }
}

/// One figure that is set beside its like.
pub(crate) struct Compared {
    /// What heads its column, and what stands beneath.
    pub(crate) heading: [String; 2],
    /// A narrow table can do without it.
    pub(crate) spare: bool,
    /// The lesser of two is the better gateway's.
    lesser_is_better: bool,
    of: OfWorld,
    /// The tier whose ages are meant.
    tier: usize,
    write: fn(f64) -> String,
}

/// Figures that differ by less than this factor are as good as equal.
const EQUAL: f64 = 1.02;

impl Compared {
    /// Whether any of the pairs has it.
    fn is_known(&self, pairs: &[[&World; 2]]) -> bool {
        pairs
            .iter()
            .flatten()
            .any(|world| (self.of)(world, self.tier).is_some())
    }

    /// The figure of each of a pair in words, and whether it is the better.
    pub(crate) fn cells(&self, pair: [&World; 2]) -> [(String, bool); 2] {
        let values = pair.map(|world| (self.of)(world, self.tier));
        let is_better = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => self.lesser_is_better && one * EQUAL < other,
            _ => false,
        };
        let text = |value: Option<f64>| value.map_or(written::NOTHING.to_owned(), self.write);
        let [one, other] = values;
        [
            (text(one), is_better(one, other)),
            (text(other), is_better(other, one)),
        ]
    }
}

/// What is compared of `pairs`: ages at every tier, then what they cost.
pub(crate) fn compared(pairs: &[[&World; 2]]) -> Vec<Compared> {
    let Some([first, _]) = pairs.first() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (index, tier) in first.tiers.iter().enumerate() {
        // The first two figures are the ages.
        for figure in &FIGURES[..2] {
            all.push(Compared {
                heading: [figure.heading.to_owned(), reach(first, tier)],
                spare: false,
                lesser_is_better: true,
                of: figure.of,
                tier: index,
                write: figure.written,
            });
        }
    }
    for figure in &FIGURES[2..] {
        all.push(Compared {
            heading: [figure.heading, figure.unit].map(str::to_owned),
            spare: figure.spare,
            lesser_is_better: matches!(figure.heading, "gap" | "gateway" | "memory" | "tick"),
            of: figure.of,
            tier: 0,
            write: figure.written,
        });
    }
    all.retain(|compared| compared.is_known(pairs));
    all
}

/// How many players each carries, where either was played with several
/// numbers of them and over one path.
pub(crate) fn carried(names: [&str; 2], documents: [&Document; 2]) -> Option<String> {
    let curves = documents.map(|document| Capacity::curves(&document.worlds));
    let [[first], [second]] = curves.each_ref().map(Vec::as_slice) else {
        return None;
    };
    let [one, other] = [first, second].map(Capacity::carried);
    let [one, other] = [one?, other?].map(|world| world.players.asked);
    // The one that carries more comes first.
    let ([more, less], [most, least], [upper, lower]) = if one >= other {
        (names, [one, other], [first, second])
    } else {
        ([names[1], names[0]], [other, one], [second, first])
    };
    let times = |many: u32, few: u32| written::factor(f64::from(many) / f64::from(few.max(1)));
    let too_many = |curve: &Capacity<'_>| curve.saturated().map(|world| world.players.asked);
    // What a gateway carries lies between two numbers that were played, and so
    // does how many times as many the other carries.
    Some(match (too_many(upper), too_many(lower)) {
        (Some(too_most), Some(too_least)) => format!(
            "{more} carries {most} players and not {too_most}, {less} {least} and not \
             {too_least}: {} to {} times as many.",
            times(most, too_least),
            times(too_most, least)
        ),
        (None, Some(too_least)) => format!(
            "{more} carries {most} players and does not saturate there, {less} {least} and not \
             {too_least}: more than {} times as many.",
            times(most, too_least)
        ),
        (_, None) => {
            format!("{more} carries {most} players, {less} {least}, without saturating there.")
        }
    })
}

#[cfg(test)]
mod tests {
    use lagometer_results::{Players, Quantiles, WorldTier};

    use super::*;

    fn world(players: u32, p99: f64, bottleneck: Option<&str>) -> World {
        World {
            players: Players {
                asked: players,
                ..Players::default()
            },
            tiers: vec![WorldTier {
                samples: 9,
                age_ms: Quantiles {
                    p99,
                    ..Quantiles::default()
                },
                ..WorldTier::default()
            }],
            bottleneck: bottleneck.map(str::to_owned),
            ..World::default()
        }
    }

    #[test]
    fn worlds_are_paired_by_players_and_path() {
        let [mut cable, few, many] = [1, 1, 2].map(|players| world(players, 1.0, None));
        cable.network = Some("cable".to_owned());
        let beside = Beside::of(vec![&cable, &few], vec![&many, &few]);
        assert_eq!(beside.pairs, [[&few, &few]]);
        assert_eq!(beside.alone, [vec![&cable], vec![&many]]);
    }

    #[test]
    fn the_younger_view_is_the_better_unless_they_are_alike() {
        let [young, alike, old] = [50.0, 50.5, 90.0].map(|p99| world(1, p99, None));
        let better = |pair: [&World; 2]| {
            let compared = compared(&[pair]);
            let p99 = compared.iter().find(|each| each.heading[0] == "age p99");
            p99.unwrap().cells(pair).map(|(_, better)| better)
        };
        assert_eq!(better([&young, &old]), [true, false]);
        assert_eq!(better([&old, &young]), [false, true]);
        assert_eq!(better([&young, &alike]), [false, false]);
    }

    #[test]
    fn capacities_are_set_in_proportion() {
        let full = Some("the gateway is full");
        let document = |worlds: Vec<World>| {
            let json = serde_json::json!({
                "schema": "lagometer/1", "command": "world", "seed": 1, "seeds": [1],
                "started": "", "wall_s": 0.0, "experiment": {}, "lanes": [],
                "host": { "os": "", "kernel": "", "cpus": 2 },
            });
            let mut document = Document::from_json(&json.to_string()).unwrap();
            document.worlds = worlds;
            document
        };
        let small = document(vec![world(100, 1.0, None), world(200, 1.0, full)]);
        let large = document(vec![world(400, 1.0, None), world(800, 1.0, full)]);
        let endless = document(vec![world(400, 1.0, None)]);
        let sentence = |one, other| carried(["one", "other"], [one, other]).unwrap();
        assert_eq!(
            sentence(&small, &large),
            "other carries 400 players and not 800, one 100 and not 200: 2.00 to 8.00 times as \
             many."
        );
        assert_eq!(
            sentence(&endless, &small),
            "one carries 400 players and does not saturate there, other 100 and not 200: more than \
             2.00 times as many."
        );
        assert!(sentence(&endless, &endless).ends_with("without saturating there."));
    }
}
