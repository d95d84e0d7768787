use super::*;
use proptest::prelude::*;

/// A remote clock and the way to it.
#[derive(Clone, Copy, Debug)]
struct World {
    ahead_nanos: i64,
    drift_ppm: f64,
}

impl World {
    fn ahead(&self, local: u64) -> f64 {
        self.ahead_nanos as f64 + self.drift_ppm * 1e-6 * local as f64
    }

    fn remote(&self, local: u64) -> Time {
        Time::from_nanos((local as f64 + self.ahead(local)) as u64)
    }

    fn probe(&self, sent: u64, up: u64, down: u64) -> Probe {
        let (arrives, leaves) = (sent + up, sent + up + 5_000);
        Probe {
            sent: Time::from_nanos(sent),
            received: self.remote(arrives),
            answered: self.remote(leaves),
            returned: Time::from_nanos(leaves + down),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn nothing_is_known_without_probes() {
    assert_eq!(OffsetEstimator::new().line(), None);
}

#[test]
fn an_asymmetric_path_is_within_the_error() {
    let world = World {
        ahead_nanos: 7 * SECOND.cast_signed(),
        drift_ppm: 0.0,
    };
    let mut estimator = OffsetEstimator::new();
    estimator.add(world.probe(10 * SECOND, 30_000_000, 0));
    let line = estimator.line().unwrap();
    let offset = line.at_local(Time::from_secs(10));
    let wrong = offset.nanos.abs_diff(world.ahead_nanos);
    assert!(wrong.abs_diff(15_000_000) < 40_000, "{offset:?}");
    assert!(offset.error_nanos >= wrong);
}

#[test]
fn the_quickest_of_each_direction_count_most() {
    let world = World {
        ahead_nanos: -3_000_000,
        drift_ppm: 0.0,
    };
    let mut estimator = OffsetEstimator::new();
    // One is quick up, another quick down; the middle of neither is right.
    for (second, up, down) in [(10, 1_000_000, 90_000_000), (11, 90_000_000, 1_000_000)] {
        estimator.add(world.probe(second * SECOND, up, down));
    }
    let line = estimator.line().unwrap();
    let offset = line.at_local(Time::from_millis(10_500));
    assert!(offset.nanos.abs_diff(-3_000_000) < 600_000, "{offset:?}");
    assert!(line.error() < Duration::from_millis(3), "{line:?}");
}

#[test]
fn a_stepped_clock_is_noticed_and_distinguished_from_a_slow_path() {
    let mut world = World {
        ahead_nanos: 0,
        drift_ppm: 40.0,
    };
    let mut estimator = OffsetEstimator::new();
    for second in 10..40 {
        estimator.add(world.probe(second * SECOND, 2_000_000, 2_000_000));
    }
    estimator.add(world.probe(40 * SECOND, 900_000_000, 2_000_000));
    assert_eq!(estimator.steps(), 0);
    world.ahead_nanos += 1_500_000_000;
    for second in 42..60 {
        estimator.add(world.probe(second * SECOND, 2_000_000, 2_000_000));
    }
    let line = estimator.line().unwrap();
    assert_eq!(line.steps(), 1);
    let offset = line.at_local(Time::from_secs(50));
    let truth = world.ahead(50 * SECOND) as i64;
    assert!(offset.nanos.abs_diff(truth) <= offset.error_nanos);
    assert!(offset.error_nanos < 2_100_000, "{offset:?}");
}

#[test]
fn a_clock_whose_drift_changes_slowly_is_followed() {
    let mut estimator = OffsetEstimator::new();
    let mut ahead = 0.0;
    for second in 10..2000_u64 {
        // From 0 to 100 in a million and back, as a machine warms and cools.
        let drift = 50.0 - 50.0 * (second as f64 / 300.0).cos();
        ahead += drift * 1000.0;
        let world = World {
            ahead_nanos: ahead as i64,
            drift_ppm: 0.0,
        };
        estimator.add(world.probe(second * SECOND, 150_000, 150_000));
    }
    let line = estimator.line().unwrap();
    assert_eq!(line.steps(), 0);
    let offset = line.at_local(Time::from_secs(1999));
    assert!(
        offset.nanos.abs_diff(ahead as i64) <= offset.error_nanos + 10_000,
        "{offset:?}, truly {ahead}"
    );
}

#[test]
fn what_is_impossible_is_passed_over() {
    let mut estimator = OffsetEstimator::new();
    estimator.add(Probe {
        sent: Time::from_secs(2),
        received: Time::from_secs(1),
        answered: Time::from_secs(1),
        returned: Time::from_secs(1),
    });
    assert!(estimator.line().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_truth_is_within_the_error(
        ahead_nanos in 0_i64..1_000_000_000_000,
        drift_ppm in -150.0_f64..150.0,
        delays in proptest::collection::vec((0_u64..80_000_000, 0_u64..80_000_000), 1..400),
        base in (0_u64..20_000_000, 0_u64..20_000_000),
        step_millis in 20_u64..3000,
    ) {
        let world = World { ahead_nanos, drift_ppm };
        let mut estimator = OffsetEstimator::new();
        let at = |index: usize| SECOND + index as u64 * step_millis * 1_000_000;
        for (index, (up, down)) in delays.iter().enumerate() {
            estimator.add(world.probe(at(index), base.0 + up, base.1 + down));
        }
        let line = estimator.line().unwrap();
        prop_assert_eq!(line.steps(), 0);
        let (drift, drift_error) = line.drift_ppm();
        prop_assert!((drift - drift_ppm).abs() <= drift_error + 0.01);
        for index in 0..delays.len() {
            let local = Time::from_nanos(at(index));
            let offset = line.at_local(local);
            let truth = world.ahead(at(index)) as i64;
            prop_assert!(
                offset.nanos.abs_diff(truth) <= offset.error_nanos + 200,
                "at {}: {:?}, truly {}", local, offset, truth
            );
            let forth = line.to_remote(local);
            prop_assert!(
                forth.as_nanos().abs_diff(world.remote(at(index)).as_nanos())
                    <= offset.error_nanos + 400
            );
            let back = line.to_local(world.remote(at(index)));
            prop_assert!(
                back.as_nanos().abs_diff(at(index)) <= offset.error_nanos + 400,
                "{back} for {local}"
            );
        }
        // It cannot be worse than the best single probe at its instant.
        let best = delays.iter().map(|(up, down)| base.0 + up + base.1 + down).min().unwrap();
        let sharpest = (0..delays.len())
            .map(|index| line.at_local(Time::from_nanos(at(index))).error_nanos)
            .min()
            .unwrap();
        prop_assert!(delays.len() > 1 || sharpest <= best / 2 + 100_000);
    }
}
