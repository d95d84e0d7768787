//! `lagometer sweep`: latency and bandwidth by message size.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use lagometer_instruments::sweep::{Progress, Settings, Test, measure};
use lagometer_remote::Remote;
use lagometer_testbed::Testbed;
use serde_json::json;

use super::instrument_in_guest::{self, Measured};
use crate::cli::{SWEEP_TESTS, SweepArguments};
use crate::failure::Failure;
use crate::instrument::{self, Line};

/// Measures and shows every test at every size.
pub(crate) fn sweep(arguments: &SweepArguments) -> Result<ExitCode, Failure> {
    settings(arguments)?.check().map_err(instrument::failure)?;
    instrument_in_guest::check(&arguments.path, arguments.remote.to.as_deref())?;
    if arguments.path.testbed == Testbed::Kernel {
        instrument_in_guest::check_pin(arguments.pin)?;
    }
    let (path, results) = (&arguments.path, &arguments.results);
    instrument_in_guest::measure_and_show(path, &arguments.remote, results, |remote, stop| {
        measure_over(arguments, remote, stop)
    })
}

fn settings(arguments: &SweepArguments) -> Result<Settings, Failure> {
    Ok(Settings {
        tests: tests(arguments)?,
        sizes: arguments.sizes.clone(),
        span: arguments.duration.duration(),
        pin: instrument_in_guest::placed(arguments.pin, &arguments.path),
        congestion: arguments.congestion.clone(),
    })
}

/// The tests that were asked for; on a kernel in virtual time those that a network
/// holds back, or all would be sent in an instant.
fn tests(arguments: &SweepArguments) -> Result<Vec<Test>, Failure> {
    let is_held = |test: &Test| ["tcp_lat", "tcp_bw", "udp_lat"].contains(&test.name());
    let asked = &arguments.tests;
    if arguments.path.testbed != Testbed::Kernel {
        return Ok(asked.clone());
    }
    let is_default = asked
        .iter()
        .map(|test| test.name())
        .eq(SWEEP_TESTS.split(','));
    match asked.iter().find(|test| !is_held(test)) {
        Some(test) if !is_default => Err(Failure::Input(format!(
            "--tests: `{test}` measures what a processor bears, and computing takes no time with \
             `--testbed kernel`: tcp_lat, tcp_bw and udp_lat are for it"
        ))),
        _ => Ok(asked.iter().copied().filter(is_held).collect()),
    }
}

/// Measures to `remote`, until `stop`.
pub(super) fn measure_over(
    arguments: &SweepArguments,
    remote: &Remote,
    stop: &AtomicBool,
) -> Result<Measured, Failure> {
    let settings = settings(arguments)?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let host = instrument::host(&arguments.path);
    let mut line = Line::new();
    let measured = measure(remote, &settings, &mut |progress| {
        match progress {
            Progress::Tried(test, trial) => {
                let unit = if test.is_latency() {
                    "echoes/s"
                } else {
                    "Mbit/s"
                };
                line.clear();
                note!(
                    "lagometer: {test}, {}: {:.0} {unit}",
                    instrument::tried(&trial),
                    trial.rate
                );
            }
            Progress::Measured(cell, done, of) => {
                line.show(|| format!("{done} of {of}: {} at {} B", cell.test, cell.size_bytes));
            }
            Progress::Going => {}
        }
        !stop.load(Ordering::Relaxed)
    });
    line.clear();
    let (sweep, ended) = measured.map_err(instrument::failure)?;
    let asked = json!({
        "tests": settings.tests.iter().map(|test| test.name()).collect::<Vec<_>>(),
        "sizes": arguments.sizes,
        "for": arguments.duration.to_string(),
        "congestion": arguments.congestion,
    });
    let mut document = instrument::document("sweep", asked, started, began.elapsed(), host);
    let corrupt = sweep.cells.iter().map(|cell| cell.corrupt).sum();
    document.verdict = lagometer_results::sweep_verdict(&sweep);
    document.sweep = Some(sweep);
    instrument::note_end(&mut document, &ended);
    instrument::note_corrupt(&mut document, corrupt);
    Ok(Measured::new(document, instrument::gone(ended)))
}
