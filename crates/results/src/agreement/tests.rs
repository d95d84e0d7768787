use super::*;
use crate::document::sample::sample_document;
use crate::document::{Audit, Milliseconds, SeedFigures};

/// Two runs of `seeds` seeds that find the same.
fn pair(seeds: u64) -> [Document; 2] {
    let mut document = sample_document();
    document.audit = None;
    for lane in &mut document.lanes {
        let of_seed = |seed| SeedFigures {
            seed,
            messages: lane.messages.clone(),
            rtt_ms: lane.rtt_ms.clone(),
            within: lane.within.clone(),
            lag: None,
            game: None,
            episodes: 0,
            worst_episode_ms: 0.0,
            overhead: None,
            cost: None,
        };
        lane.per_seed = (1..=seeds).map(of_seed).collect();
    }
    [document.clone(), document]
}

fn agreed(first: &Document, second: &Document) -> Agreement {
    agreement(first, second, Margins::default())
}

/// Moves the 99th percentile of a lane's seeds by turns up and down, and all
/// of them by as much as `mean_ms`.
fn scatter(document: &mut Document, by_ms: f64, mean_ms: f64) {
    for (seed, sign) in document.lanes[0]
        .per_seed
        .iter_mut()
        .zip([1.0, -1.0].iter().cycle())
    {
        seed.rtt_ms.p99 = seed.rtt_ms.p99.map(|p99| p99 + mean_ms + sign * by_ms);
    }
}

#[test]
fn twenty_seeds_show_that_a_run_agrees_with_itself_and_fewer_do_not() {
    let [first, second] = pair(20);
    let found = agreed(&first, &second);
    assert!(found.holds(), "{found:?}");
    assert_eq!((found.lanes.len(), found.seeds), (2, 20));
    let [first, second] = pair(19);
    assert_eq!(
        agreed(&first, &second).finding(),
        EquivalenceFinding::Undecided
    );
}

#[test]
fn each_figure_is_held_to_its_own_margin() {
    type Damage = fn(&mut SeedFigures);
    let damages: [(Damage, Metric); 4] = [
        (
            |seed| seed.rtt_ms.p50 = seed.rtt_ms.p50.map(|p50| p50 + 2.5),
            Metric::Rtt(Statistic::P50),
        ),
        (
            |seed| seed.rtt_ms.p99 = seed.rtt_ms.p99.map(|p99| p99 + 150.0),
            Metric::Rtt(Statistic::P99),
        ),
        (|seed| seed.rtt_ms.p99 = None, Metric::Rtt(Statistic::P99)),
        (
            |seed| *seed.within.get_mut(&Milliseconds(500)).unwrap() -= 0.021,
            Metric::Within(500),
        ),
    ];
    for (damage, metric) in damages {
        let [first, mut second] = pair(20);
        second.lanes[0].per_seed.iter_mut().for_each(damage);
        let found = agreed(&first, &second);
        assert_eq!(found.finding(), EquivalenceFinding::Different, "{metric:?}");
        let [touched, sound] = [0, 1].map(|index| &found.lanes[index]);
        let different: Vec<Metric> = touched
            .figures
            .iter()
            .filter(|figure| figure.is.finding == EquivalenceFinding::Different)
            .map(|figure| figure.metric)
            .collect();
        assert_eq!(different, [metric]);
        assert_eq!(sound.finding(), EquivalenceFinding::Equivalent);
    }
}

#[test]
fn noise_never_makes_two_runs_equal() {
    let [first, mut second] = pair(20);
    scatter(&mut second, 20.0, 0.0);
    assert!(agreed(&first, &second).holds(), "known to within 8 ms");
    let [_, mut second] = pair(20);
    scatter(&mut second, 600.0, 0.0);
    let found = agreed(&first, &second);
    assert_eq!(found.finding(), EquivalenceFinding::Undecided);
    let p99 = found.lanes[0].figures[1];
    assert!(p99.is.smallest_detectable > p99.is.margin);
    assert!(p99.is.seeds_needed().unwrap() > 20);
}

/// Two runs that find the same, the second over real sockets on a machine whose late
/// wake-ups can add so much.
fn on_a_machine(noise_ms: f64) -> [Document; 2] {
    let [mut first, mut second] = pair(20);
    first.testbed = Some("sim".to_owned());
    second.testbed = Some("emu".to_owned());
    let noise = second.host.noise.as_mut().unwrap();
    noise.wake_us.p99 = noise_ms * 1e3 / 2.0;
    [first, second]
}

#[test]
fn late_wake_ups_widen_the_margins_of_delays_by_a_millisecond_at_most() {
    for (noise_ms, wider_by) in [(0.0, 0.0), (0.4, 0.4), (1.0, 1.0), (7.0, 1.0)] {
        let [first, second] = on_a_machine(noise_ms);
        let found = agreed(&first, &second);
        let lanes = found.lanes.iter();
        for margin in lanes.map(|lane| lane.figures[0].is.margin) {
            assert!(
                (margin - 2.0 - wider_by).abs() < 1e-9,
                "{noise_ms}: {margin}"
            );
        }
        let within = found.lanes[0].figures[2];
        assert!((within.is.margin - 0.02).abs() < 1e-9);
    }
}

#[test]
fn on_a_short_path_less_matters_and_less_noise_is_borne() {
    let short = |by_ms: f64, noise_ms: f64| {
        let [first, second] = on_a_machine(noise_ms);
        let [first, second] = [(first, 1.0), (second, 1.0 + by_ms)].map(|(mut it, median_ms)| {
            for lane in &mut it.lanes {
                lane.rtt_ms.p50 = Some(median_ms);
                for seed in &mut lane.per_seed {
                    seed.rtt_ms.p50 = Some(median_ms);
                }
            }
            it
        });
        agreed(&first, &second)
    };
    assert!(short(0.3, 0.0).holds());
    assert_eq!(short(0.7, 0.0).finding(), EquivalenceFinding::Different);
    assert!(short(0.7, 0.2).lanes[0].figures[0].is.margin < 0.71);
    assert!(!short(0.0, 0.2).is_too_noisy());
    assert!(short(0.0, 0.3).is_too_noisy());
}

#[test]
fn a_run_of_one_seed_says_so() {
    let [mut first, mut second] = pair(1);
    for document in [&mut first, &mut second] {
        document.seeds = vec![7];
        for lane in &mut document.lanes {
            lane.per_seed.clear();
        }
    }
    let found = agreed(&first, &second);
    assert_eq!(found.seeds, 1);
    assert!(found.messages_of_a_seed > 0);
    assert_eq!(found.finding(), EquivalenceFinding::Undecided);
}

#[test]
fn a_machine_that_wakes_later_than_a_margin_may_widen_decides_nothing() {
    let [first, second] = on_a_machine(1.0);
    assert!(agreed(&first, &second).holds());
    let [first, second] = on_a_machine(1.1);
    let found = agreed(&first, &second);
    assert!(found.is_too_noisy());
    assert_eq!(found.finding(), EquivalenceFinding::Undecided);
    // Nor is what differs a difference of the testbeds.
    let [first, mut second] = on_a_machine(1.1);
    for seed in &mut second.lanes[0].per_seed {
        seed.rtt_ms.p50 = seed.rtt_ms.p50.map(|p50| p50 + 50.0);
    }
    let found = agreed(&first, &second);
    assert_eq!(found.finding(), EquivalenceFinding::Undecided);
}

#[test]
fn virtual_time_has_no_late_wake_ups() {
    for testbed in ["sim", "kernel"] {
        let [_, mut second] = on_a_machine(0.4);
        let mut first = second.clone();
        first.testbed = Some(testbed.to_owned());
        assert!((agreed(&first, &second).noise_ms - 0.4).abs() < 1e-9);
        second.testbed.clone_from(&first.testbed);
        assert!(agreed(&first, &second).noise_ms.abs() < 1e-9);
    }
}

#[test]
fn what_failed_or_is_not_valid_agrees_with_nothing() {
    let [first, mut second] = pair(20);
    second.lanes[0].failure = Some("gone".to_owned());
    let found = agreed(&first, &second);
    assert_eq!(found.finding(), EquivalenceFinding::Different);
    assert_eq!(
        found.lanes[0].failure.as_deref(),
        Some("the second run failed: gone")
    );
    let [first, mut second] = pair(20);
    second.audit = sample_document().audit.map(|audit| Audit {
        valid: false,
        ..audit
    });
    assert!(!agreed(&first, &second).holds());
    second.audit = None;
    second.lanes.clear();
    assert!(!agreed(&first, &second).holds());
}

#[test]
fn how_late_each_audit_has_a_lane_stands_beside_what_the_lane_saw() {
    let [mut first, mut second] = pair(20);
    let mut audit = sample_document().audit.unwrap();
    audit.lanes[0].lane.clone_from(&first.lanes[0].lane);
    // By the kernel's stamps, there and back, of which both ways have 12 µs.
    second.audit = Some(audit.clone());
    let beside = |first: &Document, second: &Document| agreed(first, second).lanes[0].audited_ms;
    let [none, seen] = beside(&first, &second);
    assert_eq!(
        none, None,
        "virtual time has no emulator that could be late"
    );
    assert!((seen.unwrap() - 0.024).abs() < 1e-9, "{seen:?}");
    // Without stamps by what was asked for and what was done.
    let lane = &mut audit.lanes[0];
    lane.up.outside_error_us = None;
    lane.up.realised.delay_ms.mean = lane.up.asked.delay_ms.mean + 3.0;
    first.audit = Some(audit.clone());
    let [by_figures, _] = beside(&first, &second);
    assert!((by_figures.unwrap() - 3.012).abs() < 1e-9, "{by_figures:?}");
    // An audit that has no such lane says nothing of it.
    audit.lanes[0].lane.push_str(" of another run");
    second.audit = Some(audit);
    assert_eq!(beside(&first, &second)[1], None);
}
