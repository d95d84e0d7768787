use super::*;
use crate::difference::tests::seeds_lane;
use crate::document::sample::sample_document;

const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// A run of one lane under eight seeds, with the round trip of a second in
/// milliseconds.
fn run(rtt_ms: impl Fn(u64, u64) -> u64) -> Document {
    let mut document = sample_document();
    document.budgets.clear();
    document.lanes = vec![seeds_lane(&SEEDS, rtt_ms)];
    document
}

/// The usual run: one second in twenty is bad, how bad is the seed's luck.
fn usual() -> Document {
    run(|seed, second| {
        if second % 20 == 7 {
            200 + 10 * seed
        } else {
            60
        }
    })
}

fn findings(shifts: &[Shift], wanted: ShiftFinding) -> Vec<String> {
    let found = shifts.iter().filter(|shift| shift.finding == wanted);
    found.map(|shift| shift.metric.to_string()).collect()
}

#[test]
fn a_run_against_itself_has_not_changed() {
    let shifts = against_baseline(&usual(), &usual(), 0.0);
    assert!(shifts.len() >= 5, "{shifts:?}");
    assert!(
        shifts
            .iter()
            .all(|shift| shift.finding == ShiftFinding::Same),
        "{shifts:?}"
    );
}

#[test]
fn what_is_later_under_every_seed_is_worse_and_the_other_way_round_better() {
    let later = run(|seed, second| {
        if second % 10 == 7 {
            200 + 10 * seed
        } else {
            60
        }
    });
    let share = Metric::Within(150).to_string();
    let worse = findings(
        &against_baseline(&usual(), &later, 0.0),
        ShiftFinding::Worse,
    );
    assert!(worse.contains(&share), "{worse:?}");
    let better = findings(
        &against_baseline(&later, &usual(), 0.0),
        ShiftFinding::Better,
    );
    assert!(better.contains(&share), "{better:?}");
}

#[test]
fn what_is_certain_but_within_the_tolerance_is_the_same() {
    // Every message takes 2 ms longer, every time.
    let slower = run(|seed, second| {
        if second % 20 == 7 {
            202 + 10 * seed
        } else {
            62
        }
    });
    let median = Metric::Rtt(Statistic::P50).to_string();
    let strict = against_baseline(&usual(), &slower, 0.0);
    assert!(findings(&strict, ShiftFinding::Worse).contains(&median));
    let tolerant = against_baseline(&usual(), &slower, 0.05);
    assert_eq!(
        findings(&tolerant, ShiftFinding::Worse),
        Vec::<String>::new()
    );
}

#[test]
fn a_lane_that_no_longer_plays_is_worse_in_all_it_had() {
    let mut gone = usual();
    gone.lanes[0].messages.intended = 0;
    let shifts = against_baseline(&usual(), &gone, 0.05);
    assert!(!shifts.is_empty());
    assert!(
        shifts
            .iter()
            .all(|shift| shift.finding == ShiftFinding::Worse),
        "{shifts:?}"
    );
}

#[test]
fn runs_of_different_numbers_of_seeds_show_nothing() {
    let mut fewer = usual();
    fewer.lanes = vec![seeds_lane(&SEEDS[..6], |_, _| 300)];
    let shifts = against_baseline(&usual(), &fewer, 0.0);
    let unknown = findings(&shifts, ShiftFinding::Unknown);
    assert!(unknown.contains(&Metric::Within(150).to_string()));
    assert_eq!(findings(&shifts, ShiftFinding::Worse), Vec::<String>::new());
}

#[test]
fn an_overhead_is_a_fact_where_it_is_not_drawn() {
    let (before, mut now) = (sample_document(), sample_document());
    let of = |shifts: Vec<Shift>| {
        let overhead = |shift: &&Shift| shift.metric == Metric::Overhead;
        shifts.iter().find(overhead).unwrap().finding
    };
    assert_eq!(of(against_baseline(&before, &now, 0.0)), ShiftFinding::Same);
    now.lanes[0].wire.as_mut().unwrap().overhead *= 1.2;
    assert_eq!(
        of(against_baseline(&before, &now, 0.01)),
        ShiftFinding::Worse
    );
    assert_eq!(of(against_baseline(&before, &now, 0.5)), ShiftFinding::Same);
}

#[test]
fn what_a_lane_saved_by_dying_is_not_compared() {
    let (before, mut now) = (sample_document(), sample_document());
    now.lanes[0].wire.as_mut().unwrap().overhead /= 2.0;
    let is_compared = |now: &Document| {
        let shifts = against_baseline(&before, now, 0.0);
        let mut of_lane = shifts.iter().filter(|it| it.lane == now.lanes[0].lane);
        of_lane.any(|shift| shift.metric == Metric::Overhead)
    };
    assert!(is_compared(&now));
    now.lanes[0].failure = Some("timed out".to_owned());
    assert!(!is_compared(&now));
}

#[test]
fn what_became_worse_became_better_the_other_way_round() {
    let bad = |rtt_ms: u64| run(move |seed, at| if at % 20 == 7 { rtt_ms + seed } else { 60 });
    for (first, second) in [(70, 400), (149, 151), (120, 121), (200, 300)] {
        let (a, b) = (bad(first), bad(second));
        let there = against_baseline(&a, &b, 0.0);
        let back = against_baseline(&b, &a, 0.0);
        for (there, back) in there.iter().zip(&back) {
            let mirrored = match there.finding {
                ShiftFinding::Worse => ShiftFinding::Better,
                ShiftFinding::Better => ShiftFinding::Worse,
                same => same,
            };
            assert_eq!(back.finding, mirrored, "{first} and {second}: {there:?}");
        }
    }
}
