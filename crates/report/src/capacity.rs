//! What is shown of a world at each number of players: the same figures in the
//! table, in the page's charts and wherever two curves stand side by side.

use lagometer_results::{Capacity, Quantiles, World};

use crate::written::{self, milliseconds};

/// How a figure is had from a world, its ages at the tier of an index.
pub(crate) type OfWorld = fn(&World, usize) -> Option<f64>;

/// One figure of a world.
#[derive(Debug)]
pub(crate) struct Figure {
    /// What heads its column.
    pub(crate) heading: &'static str,
    /// The unit beneath.
    pub(crate) unit: &'static str,
    /// What heads its chart, in full, with the unit unless marks have it.
    pub(crate) title: &'static str,
    /// It spans powers of ten where a world saturates.
    pub(crate) spans: bool,
    /// A narrow table can do without it.
    pub(crate) spare: bool,
    /// The figure of a world, its ages at the tier of that index.
    pub(crate) of: OfWorld,
    /// Formats the figure's value, without the unit.
    pub(crate) written: fn(f64) -> String,
}

impl Figure {
    /// The figure of a world in words; a dash where it has none.
    pub(crate) fn cell(&self, world: &World, tier: usize) -> String {
        (self.of)(world, tier).map_or(written::NOTHING.to_owned(), self.written)
    }
}

/// All of them: what players see, what the gateway, the game server and the
/// generator spend on it.
pub(crate) const FIGURES: [Figure; 10] = [
    Figure {
        heading: "age p50",
        unit: "ms",
        title: "Age of what is seen, median",
        spans: true,
        spare: false,
        of: |world, tier| age(world, tier, |age| age.p50),
        written: milliseconds,
    },
    Figure {
        heading: "age p99",
        unit: "ms",
        title: "Age of what is seen, p99",
        spans: true,
        spare: false,
        of: |world, tier| age(world, tier, |age| age.p99),
        written: milliseconds,
    },
    Figure {
        heading: "gap",
        unit: "ms",
        title: "Gap between windows, p99, worst player",
        spans: true,
        spare: false,
        of: |world, _| world.sight.worst_gap_p99_ms,
        written: milliseconds,
    },
    Figure {
        heading: "gateway",
        unit: "%",
        title: "Gateway's processor time, % of a core",
        spans: false,
        spare: false,
        of: |world, _| world.gateway_metrics.as_ref()?.cpu_pct,
        written: whole,
    },
    Figure {
        heading: "memory",
        unit: "MB",
        title: "Gateway's memory, MB",
        spans: false,
        spare: true,
        of: |world, _| Some(world.gateway_metrics.as_ref()?.resident_bytes? / 1e6),
        written: whole,
    },
    Figure {
        heading: "tick",
        unit: "ms",
        title: "Gateway's longest tick",
        spans: true,
        spare: false,
        of: |world, _| world.gateway_metrics.as_ref()?.tick_max_ms,
        written: milliseconds,
    },
    Figure {
        heading: "late",
        unit: "ms",
        title: "Server's frames begin late by, p99",
        spans: true,
        spare: false,
        of: |world, _| Some(world.frames.late_ms.p99),
        written: milliseconds,
    },
    Figure {
        heading: "missed",
        unit: "frames",
        title: "Server's frames missed",
        spans: false,
        spare: false,
        of: |world, _| Some(world.frames.missed as f64),
        written: whole,
    },
    Figure {
        heading: "generator",
        unit: "%",
        title: "Generator's processor time, % of a core",
        spans: false,
        spare: false,
        of: |world, _| world.busiest_cpu_pct(),
        written: whole,
    },
    Figure {
        heading: "updates",
        unit: "k/s",
        title: "Updates to players, thousands a second",
        spans: false,
        spare: true,
        of: |world, _| Some(world.sight.updates_per_s_sum / 1e3),
        written: |value| format!("{value:.1}"),
    },
];

/// Whether some of `worlds` differ in nothing but the number of players.
pub(crate) fn by_players(worlds: &[World]) -> bool {
    Capacity::curves(worlds)
        .iter()
        .any(|curve| curve.steps.len() > 1)
}

/// The nearest tier at which something was seen in all of `worlds`.
pub(crate) fn nearest_tier(worlds: &[&World]) -> usize {
    let tiers = worlds.iter().map(|world| world.tiers.len()).min();
    let seen = |tier: &usize| worlds.iter().all(|world| world.tiers[*tier].samples > 0);
    (0..tiers.unwrap_or(0)).find(seen).unwrap_or(0)
}

/// A quantile of the ages at a tier where anything was seen.
fn age(world: &World, tier: usize, quantile: fn(&Quantiles) -> f64) -> Option<f64> {
    let tier = world.tiers.get(tier).filter(|tier| tier.samples > 0)?;
    Some(quantile(&tier.age_ms))
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    use lagometer_results::WorldTier;

    use super::*;

    #[test]
    fn ages_are_those_of_a_tier_where_all_saw_something() {
        let world = |samples: [u64; 2]| World {
            tiers: samples
                .map(|samples| WorldTier {
                    samples,
                    ..WorldTier::default()
                })
                .to_vec(),
            ..World::default()
        };
        let worlds = [world([0, 5]), world([5, 5])];
        assert_eq!(nearest_tier(&[&worlds[0], &worlds[1]]), 1);
        assert_eq!(nearest_tier(&[&worlds[1]]), 0);
        assert_eq!(nearest_tier(&[]), 0);
        assert_eq!(FIGURES[0].cell(&worlds[0], 0), written::NOTHING);
        assert_eq!(FIGURES[0].cell(&worlds[0], 1), "0.00");
    }
}
