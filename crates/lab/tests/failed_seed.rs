//! A seed in which a lane could not play takes nothing from the others.

mod support;

use lagometer_lab::{Experiment, LaneRun, SeedRun, catalogue, resolve};
use lagometer_results::Lane;
use lagometer_testbed::Testbed;
use lagometer_units::Span;

fn one_lane(spoil: impl FnOnce(&mut Vec<SeedRun>)) -> Lane {
    let text = catalogue::text("pvp-500").unwrap();
    let mut experiment = Experiment::parse("pvp-500", text).unwrap();
    experiment.duration = Span::from_millis(30_000);
    experiment.keep_lanes(&["kcp".to_owned()]);
    let profile = lagometer_link::catalogue::named(&experiment.network).unwrap();
    let network = experiment.network.clone();
    let resolved = resolve(experiment, network, profile, Testbed::Sim).unwrap();
    support::document_of(&resolved, &[1, 2], 1, spoil)
        .lanes
        .remove(0)
}

#[test]
fn recoveries_are_those_of_the_seed_that_was_played() {
    let without_first = one_lane(|runs| {
        runs.remove(0);
    });
    let failed_first = one_lane(|runs| {
        runs[0].lanes[0] = LaneRun::Panicked("on purpose".to_owned());
    });
    let recoveries = |lane: &Lane| -> Vec<Option<f64>> {
        let episodes = lane.episodes.iter();
        episodes.map(|episode| episode.recovery_ms).collect()
    };
    assert!(!recoveries(&without_first).is_empty());
    assert_eq!(recoveries(&failed_first), recoveries(&without_first));
}
