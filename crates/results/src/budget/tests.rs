use super::*;
use crate::difference::tests::{seeds_lane, seeds_lane_of};
use crate::document::Lasted;
use crate::document::sample::sample_document;
use crate::metric::Statistic;
use lagometer_units::from_toml;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    budget: Vec<Budget>,
}

fn parsed(text: &str) -> Result<Vec<Budget>, String> {
    from_toml::<Experiment>("x.toml", text)
        .map(|experiment| experiment.budget)
        .map_err(|error| error.to_string())
}

fn refused(body: &str) -> String {
    parsed(&format!("[[budget]]\n{body}\n")).unwrap_err()
}

#[test]
fn budgets_are_read_as_people_write_them() {
    let budgets = parsed(
        r#"
        [[budget]]
        metric = "within 150 ms"
        at_least = "99.9 %"

        [[budget]]
        metric = "p99"
        at_most = "0.2 s"
        lanes = ["kcp"]

        [[budget]]
        metric = "episodes"
        at_most = 0

        [[budget]]
        metric = "overhead"
        at_most = 1.5

        [[budget]]
        metric = "lost"
        at_most = "1 %"
        "#,
    )
    .unwrap();
    let read: Vec<_> = budgets
        .iter()
        .map(|budget| (budget.metric(), (budget.limit() * 1e6).round() / 1e6))
        .collect();
    assert_eq!(
        read,
        [
            (Metric::Within(150), 0.999),
            (Metric::Rtt(Statistic::P99), 200.0),
            (Metric::Episodes, 0.0),
            (Metric::Overhead, 1.5),
            (Metric::Lost, 0.01),
        ]
    );
    assert!(budgets[1].concerns("kcp") && !budgets[1].concerns("enet"));
    assert!(budgets[0].concerns("enet"));
    assert_eq!(
        asked(&budgets),
        [
            Metric::Within(150),
            Metric::Within(200),
            Metric::Rtt(Statistic::P99),
            Metric::Lost,
            Metric::Episodes,
            Metric::Overhead,
        ]
    );
}

#[test]
fn what_is_written_is_read_back() {
    let text = r#"
        [[budget]]
        metric = "within 120 ms"
        at_least = "99.95 %"
        [[budget]]
        metric = "worst episode"
        at_most = "1.5 s"
        lanes = ["a", "b"]
        [[budget]]
        metric = "overhead"
        at_most = 2
    "#;
    let budgets = parsed(text).unwrap();
    for budget in budgets {
        let json = serde_json::to_string(&budget).unwrap();
        assert_eq!(
            serde_json::from_str::<Budget>(&json).unwrap(),
            budget,
            "{json}"
        );
    }
}

#[test]
fn mistakes_are_answered_with_the_mend() {
    for (body, expected) in [
        (
            "metric = \"p98\"\nat_most = \"1 ms\"",
            "there is no metric `p98`",
        ),
        ("metric = \"p99\"\nat_least = \"1 ms\"", "needs `at_most`"),
        ("metric = \"p99\"", "needs `at_most`"),
        (
            "metric = \"within 100 ms\"\nat_most = \"1 %\"",
            "needs `at_least`",
        ),
        (
            "metric = \"within 100 ms\"\nat_least = \"1 %\"\nat_most = \"1 %\"",
            "needs `at_least`",
        ),
        ("metric = \"p99\"\nat_most = 200", "ns, us, ms"),
        ("metric = \"p99\"\nat_most = \"200 %\"", "ns, us, ms"),
        ("metric = \"within 100 ms\"\nat_least = 0.99", "has no unit"),
        (
            "metric = \"within 100 ms\"\nat_least = \"101 %\"",
            "out of range",
        ),
        ("metric = \"overhead\"\nat_most = \"cheap\"", "plain number"),
        ("metric = \"overhead\"\nat_most = -1", "plain number"),
        ("metric = \"episodes\"\nat_most = nan", "plain number"),
        (
            "metric = \"episodes\"\nat_most = 1\nlanes = []",
            "`lanes` is empty",
        ),
        (
            "metric = \"episodes\"\nat_mots = 1",
            "unknown field `at_mots`",
        ),
    ] {
        let message = refused(body);
        assert!(message.contains(expected), "{body}: {message}");
        assert!(message.starts_with("x.toml:"), "{message}");
    }
}

#[test]
fn a_share_that_is_its_limit_meets_it() {
    let mut lane = sample_document().lanes.remove(0);
    for value in lane.within.values_mut() {
        *value = 11_988.0 / 12_000.0;
    }
    let budget = parsed("[[budget]]\nmetric = \"within 150 ms\"\nat_least = \"99.9 %\"").unwrap();
    assert!(budget[0].held_against(&lane).ok);
}

#[test]
fn a_figure_that_is_not_there_misses_its_budget() {
    let mut lanes = sample_document().lanes;
    lanes[0].wire = None;
    let overhead = Budget::new(Metric::Overhead, 9.0);
    let result = overhead.held_against(&lanes[0]);
    assert_eq!((result.value, result.ok), (None, false));
    // The unreliable lane lost a tenth: its 99th percentile never came.
    let p99 = Budget::new(Metric::Rtt(Statistic::P99), 9_000.0);
    let result = p99.held_against(&lanes[1]);
    assert_eq!((result.value, result.ok), (None, false));
}

#[test]
fn a_lane_that_played_nothing_meets_no_budget() {
    let lane = crate::figures(&[], &[], None).into_lane("broken", "udt");
    let results = evaluate(
        &[
            Budget::new(Metric::Episodes, 0.0),
            Budget::new(Metric::Lost, 0.0),
            Budget::new(Metric::Rtt(Statistic::P50), 100.0),
        ],
        &[lane],
    );
    assert!(
        results
            .iter()
            .all(|result| !result.ok && result.value.is_none())
    );
    // No number of seeds would decide it.
    assert!(
        results
            .iter()
            .all(|result| result.decision == Decision::Missed && result.more_seeds.is_none())
    );
}

#[test]
fn every_budget_is_held_against_the_lanes_it_concerns() {
    let lanes = sample_document().lanes;
    let mut second = Budget::new(Metric::Episodes, 1.0);
    second.lanes = Some(vec!["kcp".to_owned()]);
    let results = evaluate(&[Budget::new(Metric::Lost, 0.0), second], &lanes);
    let held: Vec<_> = results
        .iter()
        .map(|result| (&result.lane[..], &result.metric[..], result.ok))
        .collect();
    assert_eq!(
        held,
        [
            ("kcp", "lost", true),
            ("udp", "lost", false),
            ("kcp", "episodes", true),
        ]
    );
}

/// Of twenty seeds one has nearly all that is late: another such seed would break the
/// budget. Student's t alone is sure of it.
#[test]
fn a_budget_that_one_more_bad_seed_would_break_is_not_decided() {
    let seeds: Vec<u64> = (1..=20).collect();
    let decided = |bad_seconds: u64| {
        let lane = seeds_lane(&seeds, |seed, second| {
            let late = if seed == 1 { bad_seconds } else { 1 };
            if second < late { 400 } else { 60 }
        });
        let budget = Budget::new(Metric::Within(150), 0.988);
        evaluate(&[budget], &[lane])[0].decision
    };
    assert_eq!(decided(25), Decision::Undecided);
    assert_eq!(decided(3), Decision::Met);
}

/// More than half of what is beyond the limit is in one of twenty seeds: another that is
/// five times as bad would break the budget.
#[test]
fn a_quantile_meets_its_budget_only_where_longer_outages_would_not_break_it() {
    let decided = |seeds: u64, bad_seconds: u64| {
        let seeds: Vec<u64> = (1..=seeds).collect();
        let lane = seeds_lane(&seeds, |seed, second| {
            let late = if seed == 1 { bad_seconds } else { 1 };
            if second < late { 400 } else { 60 }
        });
        let result = &evaluate(&[Budget::new(Metric::Rtt(Statistic::P99), 200.0)], &[lane])[0];
        assert!(result.ok);
        (result.decision, result.needs())
    };
    assert_eq!(decided(20, 1).0, Decision::Met);
    assert_eq!(decided(20, 25).0, Decision::Undecided);
    // A hundredth of nine seeds is less than a tenth of one.
    let needs = "at least 1 more seed".to_owned();
    assert_eq!(decided(9, 1), (Decision::Undecided, Some(needs)));
    assert_eq!(decided(10, 1).0, Decision::Met);
}

/// Of a quantile ten messages must be beyond it before anything is said of it.
#[test]
fn seeds_that_a_quantile_needs_bring_enough_messages_beyond_it() {
    let seeds: Vec<u64> = (1..=10).collect();
    // 200 messages each: a thousandth of the messages of 50 seeds are ten.
    let lane = seeds_lane_of(10, &seeds, |_, _| 60);
    let missed = Budget::new(Metric::Rtt(Statistic::P99_9), 50.0);
    let result = evaluate(&[missed], &[lane]).remove(0);
    assert_eq!(result.decision, Decision::Undecided);
    assert_eq!(result.needs().as_deref(), Some("at least 40 more seeds"));
}

/// As `4g-moving` has it: lag is made by what happens every few minutes.
#[test]
fn what_rare_events_make_is_met_by_ten_minutes_of_play_and_missed_by_less() {
    let found = |seeds: u64, limit: f64| {
        let seeds: Vec<u64> = (1..=seeds).collect();
        let lane = seeds_lane_of(60, &seeds, |_, second| if second < 1 { 400 } else { 60 });
        let budget = Budget::new(Metric::Within(150), limit);
        let result = evaluate(&[budget], &[lane]).remove(0);
        (result.decision, result.needs())
    };
    let needs = Some("at least 1 more seed".to_owned());
    assert_eq!(found(9, 0.9), (Decision::Undecided, needs));
    assert_eq!(found(10, 0.9), (Decision::Met, None));
    assert_eq!(found(5, 0.999), (Decision::Missed, None));
}

/// Whatever chance does, what happened once can happen.
#[test]
fn what_must_not_happen_at_all_and_did_is_missed_by_a_single_seed() {
    let lane = seeds_lane_of(60, &[1], |_, second| if second < 1 { 400 } else { 60 });
    for budget in [
        Budget::new(Metric::Within(150), 1.0),
        Budget::new(Metric::Episodes, 0.0),
    ] {
        let result = evaluate(&[budget], std::slice::from_ref(&lane)).remove(0);
        assert_eq!(result.decision, Decision::Missed, "{}", result.metric);
    }
}

#[test]
fn a_quantile_beyond_its_limit_is_missed_by_few_seeds_too() {
    let lane = seeds_lane(
        &[1, 2, 3, 4, 5],
        |_, second| {
            if second % 20 == 0 { 400 } else { 60 }
        },
    );
    let result = &evaluate(&[Budget::new(Metric::Rtt(Statistic::P99), 200.0)], &[lane])[0];
    assert_eq!((result.ok, result.decision), (false, Decision::Missed));
}

#[test]
fn shares_are_asked_for_within_the_limits_of_quantiles() {
    let budgets = parsed(
        "[[budget]]\nmetric = \"p99\"\nat_most = \"70.5 ms\"\n\
         [[budget]]\nmetric = \"p50\"\nat_most = \"300 us\"\n\
         [[budget]]\nmetric = \"p90\"\nat_most = \"40 ms\"\n\
         [[budget]]\nmetric = \"max\"\nat_most = \"900 ms\"\n\
         [[budget]]\nmetric = \"within 90 ms\"\nat_least = \"1 %\"\n",
    );
    let asked = asked(&budgets.unwrap()).into_iter();
    let limits = asked.filter_map(|metric| match metric {
        Metric::Within(limit_ms) => Some(limit_ms),
        _ => None,
    });
    assert_eq!(limits.collect::<Vec<_>>(), [1, 40, 70, 71, 90]);
}

/// A freeze that the end of play cut off may have been any longer: it breaks a limit that
/// it was beyond, and keeps none.
#[test]
fn of_what_did_not_end_nothing_is_said_below_the_limit() {
    let mut lane = sample_document().lanes.remove(0);
    lane.lag.as_mut().unwrap().longest_freeze = Some(Lasted {
        ms: 1050.0,
        at_least: true,
    });
    let found = |limit_ms| {
        let budget = Budget::new(Metric::LongestFreeze, limit_ms);
        let result = evaluate(&[budget], std::slice::from_ref(&lane)).remove(0);
        assert_eq!((result.value, result.at_least), (Some(1050.0), true));
        (result.ok, result.decision)
    };
    assert_eq!(found(3000.0), (true, Decision::Undecided));
    assert_eq!(found(1000.0), (false, Decision::Missed));
}
