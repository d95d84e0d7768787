//! A histogram of the result document is what the usual tools read: the Python
//! package `hdrhistogram` decodes it and finds the same quantiles.
//!
//! `LAGOMETER_PYTHON` names the interpreter, `python3` where it does not. Skipped
//! where that has no such package, unless `LAGOMETER_REQUIRE_PYTHON` is set.

use std::process::Command;
use std::time::Duration;

use lagometer_stats::Distribution;

/// Prints, of the histogram in its argument, the count and some quantiles.
const SCRIPT: &str = "
import sys
from hdrh.histogram import HdrHistogram
read = HdrHistogram.decode(sys.argv[1].encode())
print(read.get_total_count())
for percentile in (0.0, 50.0, 90.0, 99.0, 99.9, 100.0):
    print(read.get_value_at_percentile(percentile))
";

fn python(arguments: &[&str]) -> Option<std::process::Output> {
    let python = std::env::var("LAGOMETER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    Command::new(python).args(arguments).output().ok()
}

#[test]
fn the_python_package_reads_what_is_written() {
    let probe = python(&["-c", "import hdrh.histogram"]);
    if !probe.is_some_and(|probe| probe.status.success()) {
        assert!(
            std::env::var_os("LAGOMETER_REQUIRE_PYTHON").is_none(),
            "LAGOMETER_REQUIRE_PYTHON is set, but python has no package `hdrhistogram`"
        );
        println!("skipped: python has no package `hdrhistogram`");
        return;
    }
    let mut distribution = Distribution::new();
    for nth in 0..20_000_u64 {
        // Microseconds to minutes, denser where delays are short.
        let nanos = 1_000 + nth * nth * nth / 50 % 90_000_000_000;
        distribution.record(Duration::from_nanos(nanos));
    }
    let output = python(&["-c", SCRIPT, &distribution.to_base64()]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let read: Vec<u64> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(read[0], 20_000);
    let ranks = [1, 10_000, 18_000, 19_800, 19_980, 20_000];
    for (value, rank) in read[1..].iter().zip(ranks) {
        let ours = distribution.at_rank(rank).as_nanos() as f64;
        let apart = (*value as f64 - ours).abs() / ours;
        assert!(apart <= 1e-3, "rank {rank}: {value} {ours}");
    }
}
