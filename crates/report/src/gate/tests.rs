use super::*;
use lagometer_results::Document;

/// A run of one lane with a budget, `late_pct` per cent of whose messages come
/// late under every one of eight seeds.
fn run(late_pct: u64) -> Document {
    run_of(8, late_pct)
}

/// The same of so many seeds.
fn run_of(seeds: u64, late_pct: u64) -> Document {
    use lagometer_results::{Budget, MessageRecord, Metric, SeedRun, evaluate, figures};
    use lagometer_units::Time;
    use std::time::Duration;
    let mut document = Document::from_json(
        r#"{
            "schema": "lagometer/2", "command": "run", "testbed": "sim", "seed": 1,
            "seeds": [1, 2, 3, 4, 5, 6, 7, 8], "started": "", "wall_s": 0.0, "lanes": [],
            "experiment": { "name": "arena", "network": { "name": "loss-1" }, "for": "30 s" },
            "host": { "os": "", "kernel": "", "cpus": 1 }
        }"#,
    )
    .unwrap();
    let records: Vec<Vec<MessageRecord>> = (0..seeds)
        .map(|seed| {
            let record = |index: u64| {
                let intended = Time::from_millis(index * 50);
                let is_late = (index * 37 + seed * 11) % 100 < late_pct;
                let rtt = Duration::from_millis(if is_late { 200 + seed } else { 60 });
                MessageRecord {
                    returned: Some(intended + rtt),
                    ..MessageRecord::due(intended)
                }
            };
            (0..600).map(record).collect()
        })
        .collect();
    let runs: Vec<SeedRun<'_>> = (1..)
        .zip(&records)
        .map(|(seed, records)| SeedRun::of(seed, records))
        .collect();
    let lane = figures(&runs, &[], Some(Duration::from_millis(170)));
    document.lanes = vec![lane.into_lane("kcp", "kcp")];
    let budget = Budget::new(Metric::Within(150), 0.9);
    document.budgets = evaluate(&[budget], &document.lanes);
    document
}

fn against(document: &Document, baseline: &Document) -> Result<Gate, NoBaseline> {
    let baseline = Baseline {
        name: "accepted.json",
        document: baseline,
        tolerance: USUAL_TOLERANCE.parse().unwrap(),
    };
    Gate::of(document, Some(baseline))
}

#[test]
fn a_run_holds_against_itself() {
    let gate = against(&run_of(20, 3), &run_of(20, 3)).unwrap();
    assert!(gate.holds(), "{:?}", gate.failures().collect::<Vec<_>>());
    let all = gate.checks.len();
    assert!(all > 4, "{all}");
    assert_eq!(gate.summary(), format!("{all} of {all} checks hold"));
}

#[test]
fn of_how_much_nothing_can_be_said_is_not_passed_over() {
    assert_eq!(against(&run(6), &run(3)).unwrap().unknown(), None);
    // Much worse, and too little played to be sure of it.
    let gate = against(&run_of(2, 8), &run_of(2, 3)).unwrap();
    assert!(gate.holds());
    let said = gate
        .unknown()
        .expect("two seeds of half a minute say little");
    assert!(said.starts_with("nothing can be said of "), "{said}");
    assert!(gate.markdown().contains(&said), "{}", gate.markdown());
    assert_eq!(Gate::of(&run_of(2, 3), None).unwrap().unknown(), None);
}

#[test]
fn what_became_worse_is_named_with_both_figures() {
    let gate = against(&run(6), &run(3)).unwrap();
    assert!(!gate.holds());
    let failures: Vec<String> = gate.failures().collect();
    assert!(
        failures.contains(
            &"kcp: share within 150 ms no worse than before: 97.00 %, now 94.00 %".to_owned()
        ),
        "{failures:#?}"
    );
    let junit = gate.junit();
    assert!(
        junit.contains(
            r#"<testcase name="share within 150 ms no worse than before" classname="kcp">"#
        ),
        "{junit}"
    );
    assert!(
        junit.contains(r#"<failure message="97.00 %, now 94.00 %""#),
        "{junit}"
    );
    assert!(
        gate.markdown().contains(
            "| ❌ failed | kcp | share within 150 ms no worse than before | 97.00 %, now 94.00 % |"
        ),
        "{}",
        gate.markdown()
    );
}

#[test]
fn what_became_better_holds_and_is_reported() {
    let gate = against(&run(3), &run(6)).unwrap();
    assert!(gate.holds());
    assert!(
        gate.summary().ends_with("better than before"),
        "{}",
        gate.summary()
    );
    assert!(gate.markdown().contains("✅ better | kcp"));
}

#[test]
fn a_missed_budget_fails_without_a_baseline() {
    let gate = Gate::of(&run(20), None).unwrap();
    assert_eq!(
        gate.failures().collect::<Vec<_>>(),
        ["kcp: 90.00 % within 150 ms: 80.00 %"]
    );
    assert!(Gate::of(&run(3), None).unwrap().holds());
}

#[test]
fn a_lane_that_is_gone_or_fails_is_a_failure() {
    let mut gone = run(3);
    gone.lanes[0].lane = "enet".to_owned();
    let gate = against(&gone, &run(3)).unwrap();
    assert_eq!(
        gate.failures().collect::<Vec<_>>(),
        ["kcp: plays as before: it is not in this run"]
    );
    let mut failed = run(3);
    failed.lanes[0].failure = Some("no answer".to_owned());
    let gate = against(&failed, &run(3)).unwrap();
    assert_eq!(
        gate.failures().collect::<Vec<_>>(),
        ["kcp: plays as before: no answer"]
    );
}

#[test]
fn a_baseline_of_something_else_is_refused() {
    let mut other = run(3);
    other.experiment["network"]["name"] = "loss-5".into();
    let error = against(&run(3), &other).unwrap_err().to_string();
    assert!(
        error.starts_with("its network is loss-5, and the run's is loss-1"),
        "{error}"
    );
    let mut cut = run(3);
    cut.partial = true;
    assert_eq!(against(&run(3), &cut), Err(NoBaseline::CutShort));
}

#[test]
fn names_cannot_break_out_of_the_formats() {
    let mut named = run(20);
    for name in [&mut named.lanes[0].lane, &mut named.budgets[0].lane] {
        *name = "a|b\"<script>\u{1}\n".to_owned();
    }
    let gate = Gate::of(&named, None).unwrap();
    assert!(gate.markdown().contains(r#"a\|b"&lt;script>"#));
    assert!(gate.markdown().lines().all(|line| line != "a"));
    let junit = gate.junit();
    assert!(
        !junit.contains("<script>") && !junit.contains('\u{1}'),
        "{junit}"
    );
}
