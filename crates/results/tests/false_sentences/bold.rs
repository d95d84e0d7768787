//! What a table prints in bold: a reader scans all of its columns and groups at once,
//! so any bold figure of lanes that are alike is a false one.

use lagometer_results::{Lane, Metric, Statistic, leaders};

use crate::model::{FIVE_SEEDS, Kind, MANY, interval, rates, with_interval};
use crate::{ERRING, SHARE, lanes};

/// The columns of the page that rank and of which it is known how they vary; the model's
/// lanes put no bytes on a wire.
const COLUMNS: [Metric; 6] = [
    SHARE,
    Metric::Rtt(Statistic::P50),
    Metric::Rtt(Statistic::P99),
    Metric::Rtt(Statistic::P99_9),
    Metric::Lag,
    Metric::Lost,
];

/// How many of the lanes stand in the first group of two, as in the default experiment.
const IN_FIRST_GROUP: usize = 7;

/// Whether anything in a table is bold.
fn is_any_bold(metrics: &[Metric], groups: &[&[&Lane]]) -> bool {
    let found = leaders(metrics, groups, 0.0);
    found.into_iter().flatten().flatten().any(|leads| leads)
}

/// Identical lanes in two groups: how often anything is bold, and how often it would be if
/// each column of each group were held to the chance by itself. The 95 % intervals of both
/// rates.
fn falsely_bold(what: &str, kind: &Kind, runs: u64) -> [[f64; 2]; 2] {
    let (rates, runs) = rates(runs, |run| {
        let lanes = lanes(kind, run);
        let lanes: Vec<&Lane> = lanes.iter().collect();
        let groups = <[&[&Lane]; 2]>::from(lanes.split_at(IN_FIRST_GROUP));
        let by_itself = groups.iter().any(|&group| {
            let mut columns = COLUMNS.iter();
            columns.any(|&column| is_any_bold(&[column], &[group]))
        });
        [is_any_bold(&COLUMNS, &groups), by_itself]
    });
    println!(
        "| bold, {what} | {} | each column by itself {} |",
        with_interval(rates[0], runs),
        with_interval(rates[1], runs)
    );
    rates.map(|rate| interval(rate, runs))
}

#[test]
fn nothing_is_bold_in_a_table_of_identical_lanes() {
    let few = Kind {
        lanes: MANY.lanes,
        ..FIVE_SEEDS
    };
    for (what, kind, runs) in [
        ("13 lanes, 5 seeds of 30 s", few, 200),
        ("13 lanes, 20 seeds of 30 s", MANY, 120),
    ] {
        let [table, columns] = falsely_bold(what, &kind, runs);
        assert!(table[0] <= ERRING, "{what}: {table:?}");
        // So few runs show what columns that are no family would do, and nothing finer.
        assert!(columns[0] > ERRING, "{what}: {columns:?}");
    }
}
