use super::*;
use crate::budget::{Budget, evaluate};
use crate::difference::tests::seeds_lane;
use crate::document::Wire;
use crate::document::sample::sample_document;
use crate::figures::{SeedRun, figures};
use crate::record::MessageRecord;
use lagometer_units::Time;
use std::time::Duration;

/// Ten minutes of a lane whose round trip depends on the number of the
/// message; `None` is lost.
fn lane(name: &str, reliable: bool, overhead: f64, rtt: impl Fn(u64) -> Option<u64>) -> Lane {
    lane_of(12_000, name, reliable, overhead, rtt)
}

fn lane_of(
    messages: u64,
    name: &str,
    reliable: bool,
    overhead: f64,
    rtt: impl Fn(u64) -> Option<u64>,
) -> Lane {
    let records: Vec<_> = (0..messages)
        .map(|index| {
            let intended = Time::from_millis(index * 50);
            MessageRecord {
                returned: rtt(index).map(|rtt| intended + Duration::from_millis(rtt)),
                ..MessageRecord::due(intended)
            }
        })
        .collect();
    let run = SeedRun::of(1, &records);
    let mut lane = figures(&[run], &[], Some(Duration::from_millis(170))).into_lane(name, name);
    lane.properties = sample_document().lanes[0].properties.clone();
    if let Some(properties) = &mut lane.properties {
        properties.reliable = reliable;
    }
    lane.wire = Some(Wire {
        overhead,
        ..Wire::default()
    });
    lane
}

/// Late by `late_ms` in one message of `every`.
fn late_each(every: u64, late_ms: u64) -> impl Fn(u64) -> Option<u64> {
    move |index| {
        Some(if index.is_multiple_of(every) {
            late_ms
        } else {
            60
        })
    }
}

fn said(lanes: Vec<Lane>, budget: Option<f64>) -> String {
    let mut document = sample_document();
    let budgets: Vec<_> = budget
        .map(|limit| Budget::new(Metric::Within(150), limit))
        .into_iter()
        .collect();
    document.budgets = evaluate(&budgets, &lanes);
    document.lanes = lanes;
    verdict(&document)
}

#[test]
fn the_winner_is_named_with_its_lead_and_its_cost() {
    let lanes = || {
        vec![
            lane("enet", true, 1.2, late_each(20, 400)),
            lane("kcp", true, 1.5, late_each(1000, 400)),
            lane("udp", false, 1.1, |index| (index % 50 != 0).then_some(55)),
        ]
    };
    assert_eq!(
        said(lanes(), Some(0.99)),
        "kcp keeps 99.90 % of messages within 150 ms and meets the budget of 99 % within 150 ms, \
         4.90 points (± 0.13) more than enet, the nearest of those it surpasses, at 95.00 %, for 1.50 times the payload on the \
         wire; udp, which is unreliable, lost 2.00 % for good and kept 98.00 % within 150 ms."
    );
    assert_eq!(
        said(lanes(), Some(0.9999)),
        "kcp does best: it keeps 99.90 % of messages within 150 ms, 4.90 points (± 0.13) more \
         than enet, the nearest of those it surpasses, at 95.00 %, for 1.50 times the payload on the wire; whether kcp \
         meets the budget of 99.99 % within 150 ms is not decided by this run (needs some 6 more \
         seeds); udp, which is unreliable, lost 2.00 % for good and kept 98.00 % within 150 ms."
    );
    let none = vec![
        lane("enet", true, 1.2, late_each(20, 400)),
        lane("kcp", true, 1.5, late_each(40, 400)),
    ];
    assert_eq!(
        said(none, Some(0.99)),
        "No reliable lane is shown to meet the budget of 99 % within 150 ms; kcp comes nearest \
         with 97.50 % of messages within 150 ms, 2.50 points (± 0.13) more than enet, the \
         nearest of those it surpasses, at 95.00 %, for 1.50 times the payload on the wire."
    );
    assert!(said(lanes(), None).starts_with("kcp does best: it keeps 99.90 %"));
}

#[test]
fn of_lanes_that_nothing_sets_apart_the_cheapest_is_named() {
    let alike = vec![
        lane("kcp", true, 1.5, late_each(500, 400)),
        // Surely slower, but by less than anyone feels.
        lane("enet", true, 1.2, late_each(500, 420)),
        lane("tcp", true, 1.1, late_each(10, 400)),
    ];
    assert_eq!(
        said(alike, Some(0.99)),
        "enet and kcp meet the budget of 99 % within 150 ms and cannot be told apart by this run; \
         of them enet put the least on the wire, 1.20 times the payload, and kept 99.80 % of \
         messages within 150 ms."
    );
}

#[test]
fn of_lanes_that_cost_the_same_none_is_called_the_cheapest() {
    let alike = vec![
        lane("kcp", true, 1.204, late_each(500, 400)),
        lane("enet", true, 1.2, late_each(500, 420)),
        lane("tcp", true, 1.1, late_each(10, 400)),
    ];
    let text = said(alike, Some(0.99));
    assert!(
        text.contains("of them none put less on the wire than enet, 1.20 times the payload"),
        "{text}"
    );
}

/// Worse than a lane that is beaten, and beaten by nobody, for it varies so much.
#[test]
fn who_varies_too_much_is_not_named_with_the_best() {
    let named = |name: &str, bad_seconds: [u64; 5]| {
        let lane = seeds_lane(&[1, 2, 3, 4, 5], |seed, second| {
            if second % 60 < bad_seconds[seed as usize - 1] {
                400
            } else {
                60
            }
        });
        Lane {
            lane: name.to_owned(),
            ..lane
        }
    };
    let lanes = vec![
        named("erratic", [5, 45, 4, 50, 9]),
        named("beaten", [15, 15, 16, 15, 15]),
        named("steady", [1, 1, 2, 1, 1]),
    ];
    let sentence = said(lanes, None);
    assert!(
        sentence.starts_with("steady does best: it keeps 98."),
        "{sentence}"
    );
    assert!(
        sentence.ends_with("; erratic varies too much from seed to seed to be placed."),
        "{sentence}"
    );
}

/// The cheapest of those that meet the budget stands for all, and what would decide the
/// others is said of each kind.
#[test]
fn of_lanes_alike_one_that_meets_the_budget_is_put_first() {
    let late = |bad_seconds: [u64; 5]| {
        seeds_lane(&[1, 2, 3, 4, 5], move |seed, second| {
            if second % 600 < bad_seconds[seed as usize - 1] {
                400
            } else {
                60
            }
        })
    };
    let named = |name: &str, overhead, bad_seconds| Lane {
        lane: name.to_owned(),
        wire: Some(Wire {
            overhead,
            ..Wire::default()
        }),
        ..late(bad_seconds)
    };
    let lanes = vec![
        named("dear", 3.0, [1, 2, 1, 1, 2]),
        named("cheap", 1.2, [0, 20, 0, 0, 9]),
    ];
    let sentence = said(lanes, Some(0.99));
    assert!(
        sentence.starts_with(
            "dear and cheap cannot be told apart by this run; dear meets the budget of 99 % \
             within 150 ms, whether cheap meets"
        ),
        "{sentence}"
    );
    assert!(
        sentence.ends_with(
            "; dear kept 99.76 % of messages within 150 ms, for 3.00 times the payload on the wire."
        ),
        "{sentence}"
    );
}

#[test]
fn who_misses_a_budget_is_left_out_where_another_is_known_to_meet_it() {
    let mut document = sample_document();
    document.lanes = vec![
        lane("enet", true, 1.1, late_each(100, 400)),
        lane("kcp", true, 1.5, late_each(100, 400)),
        lane("quic", true, 1.4, late_each(100, 400)),
    ];
    let budget = Budget::new(Metric::Within(150), 99.0);
    document.budgets = evaluate(&[budget], &document.lanes);
    let decide = |document: &mut Document, decisions: [Decision; 3]| {
        for (result, decision) in document.budgets.iter_mut().zip(decisions) {
            result.decision = decision;
        }
        verdict(document)
    };
    let (met, missed, open) = (Decision::Met, Decision::Missed, Decision::Undecided);
    let text = decide(&mut document, [missed, met, open]);
    assert!(!text.contains("enet"), "{text}");
    // Where it is not known whether the others do better, or all miss it, that sets none of
    // them apart.
    for others in [open, missed] {
        let text = decide(&mut document, [missed, others, others]);
        assert!(text.contains("enet"), "{text}");
    }
}

#[test]
fn a_lane_whose_connection_was_lost_is_not_the_cheapest_and_is_said_to_be_dead() {
    let mut document = sample_document();
    let dead = |lane: Lane| Lane {
        failure: Some("the peer is gone".to_owned()),
        ..lane
    };
    document.lanes = vec![
        dead(lane("enet", true, 0.9, late_each(100, 400))),
        lane("kcp", true, 1.5, late_each(100, 400)),
    ];
    document.budgets.clear();
    let text = verdict(&document);
    assert!(
        text.contains("of them kcp put the least on the wire"),
        "{text}"
    );
    assert!(
        text.ends_with("; the connection of enet was lost."),
        "{text}"
    );
}

/// Whom the best leaves behind by a later figure stands nearer to it than whom it leaves
/// behind by an earlier one, whose first figure may be the better of the two.
#[test]
fn the_next_best_is_whom_the_best_leaves_behind_last() {
    let mut document = sample_document();
    document.lanes = vec![
        lane("best", true, 1.5, late_each(6_000, 400)),
        lane("far", true, 1.5, late_each(6_000, 400)),
        lane("near", true, 1.5, late_each(5_000, 400)),
    ];
    let lanes: Vec<&Lane> = document.lanes.iter().collect();
    let slowest = Metric::Rtt(Statistic::P99_9);
    let bench = Bench {
        document: &document,
        figures: usual_figures(&document),
        beaten: BTreeSet::from([(slowest, "best", "far"), (Metric::Lag, "best", "near")]),
        comparable: BTreeSet::new(),
    };
    let (next, by) = bench.runner_up(lanes[0], &lanes).unwrap();
    assert_eq!((&next.lane[..], by), ("near", Metric::Lag));
}

/// What nobody measured is neither met nor missed, and no number of seeds would change it.
#[test]
fn a_budget_on_what_was_not_measured_is_no_reason_for_anything() {
    let mut document = sample_document();
    document.lanes = vec![lane("kcp", true, 1.5, late_each(100, 400))];
    document.lanes[0].cpu_ns_per_message = None;
    document.lanes[0].game = None;
    let budgets = [
        Budget::new(Metric::CpuPerMessage, 10_000.0),
        Budget::new(Metric::Event(Statistic::P99), 250.0),
    ];
    document.budgets = evaluate(&budgets, &document.lanes);
    for result in &document.budgets {
        let found = (result.decision, result.unmeasured, result.needs());
        assert_eq!(found, (Decision::Undecided, true, None), "{result:?}");
    }
    let text = verdict(&document);
    assert!(!text.contains("budget"), "{text}");
}

/// That the longest round trip of this run was too long says nothing of the next one.
#[test]
fn a_fact_of_the_run_leaves_no_lane_out() {
    let mut document = sample_document();
    document.lanes = vec![
        lane("kcp", true, 1.5, late_each(6_000, 900)),
        lane("enet", true, 1.2, late_each(20, 400)),
    ];
    document.budgets = evaluate(
        &[Budget::new(Metric::Rtt(Statistic::Max), 500.0)],
        &document.lanes,
    );
    let sentence = verdict(&document);
    assert!(
        sentence.starts_with("kcp does best: it keeps 99.98 %")
            && sentence.ends_with("and misses a budget in this run."),
        "{sentence}"
    );
}

/// Who is left out for a lane that in turn is left out is not said to be worse than the
/// best, who was not shown to surpass it.
#[test]
fn who_is_left_out_for_another_than_the_best_is_named() {
    let mut document = sample_document();
    document.budgets.clear();
    let lanes = ["kcp", "enet", "tcp"].map(|name| lane(name, true, 1.5, late_each(500, 400)));
    let field: Vec<&Lane> = lanes.iter().collect();
    let figures = usual_figures(&document);
    let bench = |surpassed: &[(Metric, &'static str, &'static str)]| Bench {
        document: &document,
        figures,
        beaten: surpassed.iter().copied().collect(),
        comparable: BTreeSet::from([("kcp", "enet"), ("kcp", "tcp"), ("enet", "tcp")]),
    };
    let chain = bench(&[(figures[0], "enet", "tcp"), (figures[2], "kcp", "enet")]);
    let ranking = chain.rank(&field).unwrap();
    let sentence = phrasing::best(&chain, &ranking);
    assert!(
        sentence.starts_with("kcp does best")
            && sentence.ends_with(
                "; tcp, which another lane surpasses, is not shown to do worse than kcp"
            ),
        "{sentence}"
    );
    let plain = bench(&[(figures[0], "kcp", "tcp"), (figures[2], "kcp", "enet")]);
    let sentence = phrasing::best(&plain, &plain.rank(&field).unwrap());
    assert!(!sentence.contains("another lane"), "{sentence}");
}

#[test]
fn lanes_of_one_share_are_distinguished_by_their_slowest() {
    let lanes = vec![
        lane("enet", true, 1.2, late_each(200, 900)),
        lane("kcp", true, 1.5, late_each(200, 300)),
    ];
    let said = said(lanes, Some(0.99));
    assert!(
        said.contains("its slowest thousandth taking 300 ms or more against 900 ms for enet"),
        "{said}"
    );
}

#[test]
fn an_unreliable_lane_is_never_the_best_however_quick() {
    let lanes = vec![
        lane("udp", false, 1.0, |index| (index % 50 != 7).then_some(20)),
        lane("udp-redundant", false, 1.1, |_| Some(20)),
        lane("kcp", true, 1.5, late_each(5, 400)),
    ];
    let said = said(lanes, None);
    assert!(
        said.starts_with("kcp, the only reliable lane that played, keeps 80.00 %"),
        "{said}"
    );
    assert!(
        said.ends_with(
            "of the unreliable lanes udp-redundant did best: it lost nothing and kept 100.00 % \
             within 150 ms, 2.00 points (± 0.13) more than udp, the nearest of those it surpasses, \
             at 98.00 %, for 1.10 times the payload on the wire."
        ),
        "{said}"
    );
}

#[test]
fn a_short_run_of_one_seed_is_said_to_be_too_short() {
    let lanes = vec![
        lane_of(200, "enet", true, 1.2, late_each(200, 400)),
        lane_of(200, "kcp", true, 1.5, |_| Some(60)),
    ];
    let said = said(lanes, Some(0.99));
    assert_eq!(
        said,
        "kcp shows the largest share within 150 ms, 100.00 %, but this run is too short to tell \
         lanes apart: play five seeds or five minutes; whether kcp meets the budget of 99 % within \
         150 ms is not decided by this run (needs at least 56 more seeds)."
    );
}

#[test]
fn of_a_short_run_all_lanes_with_the_largest_share_are_named() {
    let lanes = vec![
        lane_of(200, "enet", true, 1.2, |_| Some(60)),
        lane_of(200, "tcp", true, 1.2, late_each(100, 400)),
        lane_of(200, "kcp", true, 1.5, |_| Some(70)),
    ];
    let said = said(lanes, None);
    assert!(
        said.starts_with("enet and kcp show the largest share within 150 ms, 100.00 %, but"),
        "{said}"
    );
}

#[test]
fn lanes_that_could_not_run_are_no_rivals() {
    let broken = || figures(&[], &[], None).into_lane("udt", "udt");
    assert_eq!(said(vec![], Some(0.99)), "No lane could be measured.");
    assert_eq!(
        said(vec![broken()], Some(0.99)),
        "No lane could be measured."
    );
    let said = said(
        vec![broken(), lane("kcp", true, 1.5, |_| Some(60))],
        Some(0.99),
    );
    assert_eq!(
        said,
        "kcp keeps 100.00 % of messages within 150 ms and meets the budget of 99 % within 150 ms, \
         for 1.50 times the payload on the wire."
    );
}

#[test]
fn without_a_reliable_lane_the_sentence_says_so() {
    let said = said(vec![lane("udp", false, 1.0, |_| Some(20))], None);
    assert_eq!(
        said,
        "No reliable lane was measured; udp, which is unreliable, lost nothing and kept 100.00 % \
         within 150 ms."
    );
}

#[test]
fn the_first_budget_on_a_share_sets_the_limit() {
    let mut document = sample_document();
    document.budgets.clear();
    // What its messages are of use within, where they were not echoed.
    assert_eq!(ranking_limit_ms(&document), 100);
    document.lanes[1].traffic = None;
    assert_eq!(ranking_limit_ms(&document), USUAL_LIMIT_MS);
    document.budgets = evaluate(
        &[
            Budget::new(Metric::Episodes, 0.0),
            Budget::new(Metric::Within(300), 0.99),
        ],
        &document.lanes,
    );
    assert_eq!(ranking_limit_ms(&document), 300);
    assert!(verdict(&document).contains("every budget"));
}

#[test]
fn one_more_seed_is_in_the_singular() {
    use crate::document::more_seeds_in_words;
    assert_eq!(more_seeds_in_words(1), "1 more seed");
    assert_eq!(more_seeds_in_words(12), "some 12 more seeds");
}
