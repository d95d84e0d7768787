//! The terminal table and comparison, as text.

use std::time::Duration;

use lagometer_report::{Basis, Chance, Change, Direction, Terminal, compare, comparison, table};
use lagometer_results::import_2015::Log;
use lagometer_results::{Document, ResampleUnit};

use crate::golden::assert_golden;
use crate::synthetic::{LANES, document, failed_lane, full, judge};

const PLAIN: Terminal = Terminal::PLAIN;

fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn the_default_experiment_fits_eighty_columns() {
    let text = table(&full(), PLAIN);
    assert_golden("default-80.txt", &text);
    assert!(widest(&text) <= 80, "{}", widest(&text));
}

#[test]
fn a_wider_terminal_shows_more() {
    let text = table(
        &full(),
        Terminal {
            width: 130,
            colour: false,
        },
    );
    assert_golden("default-130.txt", &text);
    assert!(widest(&text) <= 130, "{}", widest(&text));
}

#[test]
fn several_seeds_show_their_spread_and_failures_their_reason() {
    let mut document = document(&LANES[2..9], 60, &[1, 2, 3]);
    document.lanes.push(failed_lane(
        "udt",
        "udt owns its sockets and runs in emu and net only",
    ));
    document.lanes[1].failure = Some("the connection died after 41 s".to_owned());
    judge(&mut document);
    let text = table(&document, PLAIN);
    assert_golden("seeds-80.txt", &text);
    assert!(widest(&text) <= 80, "{}", widest(&text));
}

#[test]
fn colour_adds_nothing_but_escapes() {
    let document = full();
    let coloured = table(
        &document,
        Terminal {
            width: 80,
            colour: true,
        },
    );
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find("\x1b[") {
        plain += &rest[..start];
        rest = &rest[start..];
        rest = &rest[rest.find('m').expect("every escape ends") + 1..];
    }
    plain += rest;
    assert_eq!(plain, table(&document, PLAIN));
    assert!(coloured.contains("\x1b[31m"), "a missed budget is red");
}

#[test]
fn cpu_without_the_kernels_share_is_called_thread_cpu() {
    let wide = Terminal {
        width: 200,
        colour: false,
    };
    let mut document = document(&LANES[2..4], 30, &[1]);
    let text = table(&document, wide);
    assert!(
        text.contains("  cpu ") && !text.contains("thread cpu"),
        "{text}"
    );
    document.lanes[1].kernel_cpu_ns_per_message = None;
    let text = table(&document, wide);
    assert!(
        !text.contains("  cpu ") && text.contains("thread cpu"),
        "{text}"
    );
}

#[test]
fn lanes_whose_bytes_vary_are_named_where_others_repeat() {
    let mut document = document(&LANES[2..4], 30, &[1]);
    let name = document.lanes[1].lane.clone();
    let varies = &mut document.lanes[1].properties.as_mut().unwrap().varies;
    *varies = "its first numbers".to_owned();
    let said = format!("the same figures: {name}");
    document.testbed = Some("sim".to_owned());
    let in_a_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_a_line(table(&document, PLAIN)).contains(&said));
    // Nothing repeats in real time.
    document.testbed = Some("emu".to_owned());
    assert!(!in_a_line(table(&document, PLAIN)).contains(&said));
}

#[test]
fn a_lane_of_an_imported_log_needs_neither_wire_nor_properties() {
    let mut document = document(&LANES[2..4], 30, &[1]);
    document.command = "import".to_owned();
    document.testbed = None;
    document.impairments = None;
    for lane in &mut document.lanes {
        lane.properties = None;
        lane.wire = None;
        lane.lag = None;
        lane.cpu_ns_per_message = None;
        lane.kernel_cpu_ns_per_message = None;
        lane.head_of_line = None;
        for episode in &mut lane.episodes {
            episode.recovery_ms = None;
        }
    }
    let text = table(&document, PLAIN);
    assert_golden("import-80.txt", &text);
}

/// However many answers it has, and though there is room for the column.
#[test]
fn a_log_that_cannot_show_a_loss_is_not_said_to_have_none() {
    let log = Log::parse(&"40 41 42 43 44 45 46 47 48 49 max: 49\n".repeat(2000)).unwrap();
    let mut document = Document::empty("import");
    let spacing = Duration::from_millis(50);
    document.lanes.push(log.to_lane("old", "old", spacing));
    let wide = Terminal {
        width: 200,
        colour: false,
    };
    let text = table(&document, wide);
    assert!(text.contains("p99.9") && !text.contains("lost"), "{text}");
}

#[test]
fn nothing_in_a_document_commands_the_terminal() {
    let mut document = document(&LANES[..1], 10, &[1]);
    document.lanes[0].lane = "a\x1b[2J\nb".to_owned();
    document.verdict = Some("\x07ring\r\x1b]0;title\x07".to_owned());
    document.lanes.push(failed_lane("x", "\x1b[H"));
    let text = table(&document, PLAIN);
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
}

#[test]
fn two_short_runs_of_one_seed_that_agree_are_equal() {
    let a = document(&LANES[2..4], 60, &[1]);
    let found = compare(&a, &a).expect("a document compares with itself");
    let text = comparison(&found, PLAIN);
    assert_golden("compare-same.txt", &text);
    assert!(
        text.starts_with("2 lanes compared. equal: kcp, kcp-turbo\n"),
        "{text}"
    );
    assert!(
        !text.contains("better\n") && !text.contains("worse\n"),
        "{text}"
    );
}

#[test]
fn three_seeds_decide_nothing_and_unlike_runs_are_named() {
    let a = document(&LANES[3..7], 60, &[1, 2, 3]);
    let mut b = document(&LANES[2..6], 60, &[4, 5, 6]);
    b.lanes[0].lane = "kcp-turbo".to_owned();
    b.lanes.remove(1);
    b.experiment["network"] = "satellite".into();
    let text = comparison(&compare(&a, &b).expect("lanes in common"), PLAIN);
    assert_golden("compare-unlike.txt", &text);
    assert!(
        text.contains("network: home-wifi-busy against satellite"),
        "{text}"
    );
    assert!(
        !text.contains("better: ") && !text.contains("worse: "),
        "{text}"
    );
    assert!(widest(&text) <= 80, "{}", widest(&text));
}

#[test]
fn runs_of_as_many_seeds_are_compared_one_by_one() {
    let a = document(&LANES[2..4], 60, &[1, 2, 3, 4, 5, 6]);
    let mut b = document(&LANES[2..4], 60, &[7, 8, 9, 10, 11, 12]);
    let found = compare(&a, &b).expect("the same lanes");
    assert_eq!(found.lanes[0].basis, Basis::Seeds(6));
    let text = comparison(&found, PLAIN);
    assert_golden("compare-other-seeds.txt", &text);
    assert!(
        text.starts_with("Not alike: seeds: seeds 1–6 against seeds 7–12.\n2 lanes compared. no difference shown: kcp, kcp-turbo\n"),
        "{text}"
    );
    assert!(widest(&text) <= 80, "{}", widest(&text));
    // What is really slower is found whatever the seeds.
    b.lanes.swap(0, 1);
    b.lanes[0].lane = "kcp".to_owned();
    b.lanes[1].lane = "kcp-turbo".to_owned();
    let text = comparison(&compare(&a, &b).expect("the same lanes"), PLAIN);
    assert!(text.contains("better: kcp-turbo · worse: kcp\n"), "{text}");
}

/// Five seeds of one run against ten of another, or stretches against seeds: the units
/// cannot be compared one by one.
#[test]
fn unlike_numbers_of_units_decide_nothing() {
    let a = document(&LANES[2..3], 60, &[1, 2, 3, 4, 5]);
    let b = document(&LANES[7..8], 60, &[1, 2, 3, 4, 5, 6]);
    let mut stretches = b.clone();
    let resamples = stretches.lanes[0].resamples.as_mut().expect("six seeds");
    resamples.unit = ResampleUnit::Stretch;
    resamples.blocks = 30;
    let short = document(&LANES[7..8], 60, &[1, 2]);
    for (mut other, basis, says) in [
        (b, Basis::Unlike, "One run has more seeds"),
        (stretches, Basis::Unlike, "One run has more seeds"),
        (short, Basis::TooLittle, "Too little was played"),
    ] {
        other.lanes[0].lane = "kcp".to_owned();
        for (first, second) in [(&a, &other), (&other, &a)] {
            let found = compare(first, second).expect("the same lane");
            assert_eq!(found.lanes[0].basis, basis);
            let directions = found.lanes[0].changes.iter().map(|change| change.direction);
            let decided = [Direction::Better, Direction::Worse, Direction::Same];
            assert!(!directions.clone().any(|it| decided.contains(&it)));
            assert!(directions.clone().any(|it| it == Direction::Unknown));
            let text = comparison(&found, PLAIN);
            assert!(text.contains(says) && text.contains("→ "), "{text}");
        }
    }
}

/// The longest round trip is one message: a run on other seeds has another.
#[test]
fn a_fact_of_a_run_is_never_better_or_worse() {
    let a = document(&LANES[2..3], 60, &[1, 2, 3, 4, 5]);
    let mut b = document(&LANES[7..8], 60, &[1, 2, 3, 4, 5]);
    b.lanes[0].lane = "kcp".to_owned();
    let found = compare(&a, &b).expect("the same lane");
    let changes = &found.lanes[0].changes;
    assert!(changes.iter().any(|it| it.direction == Direction::Worse));
    let text = comparison(&found, PLAIN);
    for fact in ["  worst ms", "  freeze ms"] {
        let row = text.lines().find(|line| line.starts_with(fact));
        let row = row.expect("it is shown");
        assert!(row.ends_with("–  undecided"), "{row}");
    }
}

#[test]
fn the_worst_moment_of_one_seed_cannot_be_distinguished_from_another() {
    let a = document(&LANES[2..3], 120, &[1]);
    let b = document(&LANES[2..3], 120, &[2]);
    let found = compare(&a, &b).expect("the same lane");
    assert!(!found.paired);
    let text = comparison(&found, PLAIN);
    assert_golden("compare-other-conditions.txt", &text);
    assert!(text.contains("undecided"), "{text}");
    assert!(text.contains("seeds: seed 1 against seed 2"), "{text}");
}

/// That there is no difference is a finding: it needs to be known what chance does.
#[test]
fn no_difference_is_said_only_where_chance_is_known() {
    let short = document(&LANES[..7], 60, &[1]);
    let long = document(&LANES[..7], 600, &[1]);
    let seeds = document(&LANES[..7], 60, &[1, 2, 3, 4, 5]);
    let others = document(&LANES[..7], 60, &[4, 5, 6, 7, 8]);
    let (mut without, mut with) = (0, 0);
    for (a, b) in [
        (&short, &short),
        (&short, &long),
        (&long, &long),
        (&seeds, &seeds),
        (&seeds, &others),
    ] {
        let found = compare(a, b).expect("the same lanes");
        for change in found.lanes.iter().flat_map(|lane| &lane.changes) {
            if change.chance == Chance::Unknown {
                assert_ne!(change.direction, Direction::Same, "{change:?}");
                without += 1;
            } else {
                assert!(
                    !matches!(change.direction, Direction::Equal | Direction::Unknown),
                    "{change:?}"
                );
                with += 1;
            }
            if change.before.is_infinite() && change.after.is_infinite() {
                assert_eq!(change.direction, Direction::Unknown, "{change:?}");
            }
        }
        let text = comparison(&found, PLAIN);
        for line in text.lines().filter(|line| line.ends_with("not shown")) {
            let cells: Vec<&str> = line.split_whitespace().collect();
            assert!(!cells.contains(&"–"), "{line}");
        }
    }
    assert!(without > 50 && with > 50, "{without} {with}");
}

#[test]
fn a_percentile_that_both_runs_lost_cannot_be_compared() {
    let mut a = document(&LANES[2..3], 60, &[1, 2, 3, 4, 5]);
    a.lanes[0].rtt_ms.p99_9 = None;
    let found = compare(&a, &a).expect("the same lane");
    let lost = |change: &&Change| change.before.is_infinite();
    let change = found.lanes[0]
        .changes
        .iter()
        .find(lost)
        .expect("it is lost");
    assert_eq!(change.direction, Direction::Unknown);
    let text = comparison(&found, PLAIN);
    let line = text
        .lines()
        .find(|line| line.contains("p99.9"))
        .expect("a row");
    assert!(line.ends_with("undecided"), "{line}");
}

#[test]
fn the_same_conditions_show_small_differences() {
    let a = document(&LANES[2..4], 120, &[1, 2, 3, 4, 5]);
    let mut b = a.clone();
    b.lanes.swap(0, 1);
    b.lanes[0].lane = "kcp".to_owned();
    b.lanes[1].lane = "kcp-turbo".to_owned();
    let found = compare(&a, &b).expect("the same lanes");
    assert!(found.paired);
    let directions = |lane: usize| -> Vec<Direction> {
        found.lanes[lane]
            .changes
            .iter()
            .map(|change| change.direction)
            .collect()
    };
    assert!(
        directions(0).contains(&Direction::Worse),
        "{:?}",
        directions(0)
    );
    assert!(
        directions(1).contains(&Direction::Better),
        "{:?}",
        directions(1)
    );
}

#[test]
fn bytes_on_the_wire_of_a_lane_that_died_are_not_judged() {
    let a = document(&LANES[2..3], 60, &[1, 2, 3, 4, 5]);
    let mut b = a.clone();
    let direction = |b: &Document| {
        let found = compare(&a, b).expect("the same lane");
        let overhead = a.lanes[0].wire.as_ref().unwrap().overhead;
        let is_overhead = |change: &Change| (change.before - overhead).abs() < 1e-12;
        let mut changes = found.lanes[0].changes.iter();
        let change = changes.find(|change| is_overhead(change));
        change.expect("it was counted").direction
    };
    assert_ne!(direction(&b), Direction::Unknown);
    b.lanes[0].wire.as_mut().unwrap().overhead /= 2.0;
    b.lanes[0].failure = Some("timed out".to_owned());
    assert_eq!(direction(&b), Direction::Unknown);
}

#[test]
fn documents_of_another_schema_are_refused() {
    let a = document(&LANES[2..3], 10, &[1]);
    let mut b = a.clone();
    b.schema = "lagometer/0".to_owned();
    let refused = compare(&a, &b).expect_err("another schema");
    assert_eq!(
        refused.to_string(),
        "the second document is of schema `lagometer/0`; this program compares `lagometer/2`"
    );
}
