//! `lagometer sweep`: latency and bandwidth by message size.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use lagometer_instruments::sweep::{Progress, Settings, measure};
use serde_json::json;

use crate::cli::SweepArguments;
use crate::failure::Failure;
use crate::instrument::{self, Line};
use crate::{interrupt, output, remote_end};

/// Measures and shows every test at every size.
pub(crate) fn sweep(arguments: &SweepArguments) -> Result<ExitCode, Failure> {
    let settings = Settings {
        tests: arguments.tests.clone(),
        sizes: arguments.sizes.clone(),
        span: arguments.duration.duration(),
        pin: arguments.pin,
        congestion: arguments.congestion.clone(),
    };
    settings.check().map_err(instrument::failure)?;
    let stop = interrupt::listen()?;
    let remote = remote_end::reach(&arguments.remote)?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let host = lagometer_machine::measured();
    let mut line = Line::new();
    let measured = measure(&remote, &settings, &mut |progress| {
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
        "tests": arguments.tests.iter().map(|test| test.name()).collect::<Vec<_>>(),
        "sizes": arguments.sizes,
        "for": arguments.duration.to_string(),
        "congestion": arguments.congestion,
    });
    let mut document = instrument::document("sweep", asked, started, began.elapsed(), host);
    let corrupt = sweep.cells.iter().map(|cell| cell.corrupt).sum();
    document.verdict = lagometer_report::sweep_verdict(&sweep);
    document.sweep = Some(sweep);
    instrument::note_end(&mut document, &ended);
    instrument::note_corrupt(&mut document, corrupt);
    output::show(
        &document,
        arguments.results.json.as_ref(),
        arguments.results.html.as_ref(),
    )?;
    instrument::outcome(ended)
}
