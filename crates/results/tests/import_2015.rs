//! The logs of 2015 themselves, against their known statistics.
//!
//! `table_2015.csv` was worked out from the raw logs by another program. The
//! logs are not part of this repository. `LAGOMETER_2015_LOGS` names the
//! directory that holds them; without it the test says so and passes.

use std::path::PathBuf;
use std::time::Duration;

use lagometer_results::import_2015::Log;
use lagometer_results::{ImportedStatistics, Quantiles};
use lagometer_stats::Distribution;

const TABLE: &str = include_str!("table_2015.csv");

/// One line of the table, looked up by column.
struct Expected<'a> {
    columns: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl<'a> Expected<'a> {
    fn text(&self, column: &str) -> &'a str {
        let index = self.columns.iter().position(|&each| each == column);
        self.cells[index.unwrap_or_else(|| panic!("the table has no column {column}"))]
    }

    fn number(&self, column: &str) -> f64 {
        let text = self.text(column);
        text.parse().unwrap_or_else(|_| panic!("{column}: {text}"))
    }

    /// Checks a figure to the last digit that the table gives.
    fn check(&self, column: &str, found: f64) {
        let decimals = self
            .text(column)
            .split_once('.')
            .map_or(0, |(_, digits)| digits.len());
        let half_a_digit = 0.5 * 0.1_f64.powi(i32::try_from(decimals).expect("few decimals"));
        let expected = self.number(column);
        assert!(
            (found - expected).abs() <= half_a_digit + 1e-9,
            "{} {column}: {found} instead of {expected}",
            self.text("log")
        );
    }
}

fn table() -> Vec<Expected<'static>> {
    let mut lines = TABLE
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let columns = lines.next().expect("the table has a heading");
    lines
        .map(|cells| {
            assert_eq!(cells.len(), columns.len(), "{cells:?}");
            Expected {
                columns: columns.clone(),
                cells,
            }
        })
        .collect()
}

#[test]
fn every_log_has_its_known_statistics() {
    let Some(directory) = std::env::var_os("LAGOMETER_2015_LOGS") else {
        println!("skipped: LAGOMETER_2015_LOGS does not name the directory of the logs");
        return;
    };
    for expected in table() {
        let path = PathBuf::from(&directory).join(expected.text("log"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let log = Log::parse(&text).expect("the log holds round trips");
        let spacing = Duration::from_millis(expected.number("spacing_ms") as u64);
        let lane = log.to_lane("log", "unknown", spacing);
        check_quantiles(&expected, &lane.rtt_delivered_ms);
        check_statistics(&expected, &lane.imported.expect("an imported lane says so"));
        let histogram = Distribution::from_base64(&lane.histogram).expect("our own histogram");
        assert_eq!(histogram.len(), lane.messages.delivered);
    }
}

fn check_quantiles(expected: &Expected<'_>, rtt_ms: &Quantiles) {
    expected.check("min", rtt_ms.min);
    expected.check("p50", rtt_ms.p50);
    expected.check("p90", rtt_ms.p90);
    expected.check("p99", rtt_ms.p99);
    expected.check("p99_9", rtt_ms.p99_9);
    expected.check("max", rtt_ms.max);
}

fn check_statistics(expected: &Expected<'_>, found: &ImportedStatistics) {
    let clock = found.clock.as_ref().expect("every log has a clock");
    assert_eq!(clock.first, expected.text("first"));
    assert_eq!(clock.last, expected.text("last"));
    expected.check("per_s", clock.rate_per_s().expect("time passed"));
    expected.check("samples", found.samples as f64);
    for over in &found.over {
        expected.check(&format!("over_{}_pct", over.limit_ms), over.share * 100.0);
    }
    expected.check("threshold_ms", found.threshold_ms as f64);
    expected.check("episodes", found.episodes as f64);
    expected.check("episodes_from_1s", found.episodes_from_1s as f64);
    expected.check("in_episodes_pct", found.share_in_episodes * 100.0);
    expected.check("median_episode_ms", found.median_episode_ms);
    expected.check("worst_episode_ms", found.worst_episode_ms);
    expected.check("median_recovery_ms", found.median_recovery_ms);
    expected.check("worst_recovery_ms", found.worst_recovery_ms);
    expected.check("episodes_500ms", found.episodes_500ms as f64);
    expected.check("worst_episode_500ms_ms", found.worst_episode_500ms_ms);
    assert_eq!(found.damaged_lines, 0);
}
