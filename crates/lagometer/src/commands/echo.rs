//! `lagometer echo`: how many messages a path echoes each second.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use lagometer_instruments::echo::{Progress, Settings, Transport, measure};
use lagometer_remote::Remote;
use lagometer_testbed::Testbed;
use serde_json::json;

use super::instrument_in_guest::{self, Measured};
use crate::cli::EchoArguments;
use crate::failure::Failure;
use crate::instrument::{self, Line};

/// Measures and shows the echo rate.
pub(crate) fn echo(arguments: &EchoArguments) -> Result<ExitCode, Failure> {
    settings(arguments).check().map_err(instrument::failure)?;
    check(arguments)?;
    let (path, results) = (&arguments.path, &arguments.results);
    instrument_in_guest::measure_and_show(path, &arguments.remote, results, |remote, stop| {
        measure_over(arguments, remote, stop)
    })
}

/// Refuses what has no meaning on the testbed.
fn check(arguments: &EchoArguments) -> Result<(), Failure> {
    instrument_in_guest::check(&arguments.path, arguments.remote.to.as_deref())?;
    if arguments.path.testbed != Testbed::Kernel {
        return Ok(());
    }
    if arguments.spin {
        return Err(Failure::Input(
            "--spin stops the clock with `--testbed kernel`: leave it out".to_owned(),
        ));
    }
    instrument_in_guest::check_pin(arguments.pin)
}

/// Measures to `remote`, until `stop`.
pub(super) fn measure_over(
    arguments: &EchoArguments,
    remote: &Remote,
    stop: &AtomicBool,
) -> Result<Measured, Failure> {
    let settings = settings(arguments);
    let (started, began) = (SystemTime::now(), Instant::now());
    let host = instrument::host(&arguments.path);
    let mut line = Line::new();
    let measured = measure(remote, &settings, &mut |progress| {
        match progress {
            Progress::Tried(trial) => {
                line.clear();
                note!(
                    "lagometer: {}: {:.0} echoes/s",
                    instrument::tried(&trial),
                    trial.rate
                );
            }
            Progress::Chosen(place) => note!("lagometer: measuring, {place}"),
            Progress::Echoed(span, echoed) => line.show(|| {
                let seconds = span.as_secs_f64();
                let rate = echoed as f64 / seconds.max(1e-3);
                format!("{seconds:.1} of {}: {rate:.0} echoes/s", arguments.duration)
            }),
        }
        !stop.load(Ordering::Relaxed)
    });
    line.clear();
    let (echo, ended) = measured.map_err(instrument::failure)?;
    let mut document =
        instrument::document("echo", asked(arguments), started, began.elapsed(), host);
    document.verdict = Some(lagometer_results::echo_verdict(&echo));
    let corrupt = echo.messages.corrupt;
    document.echo = Some(echo);
    instrument::note_end(&mut document, &ended);
    instrument::note_corrupt(&mut document, corrupt);
    Ok(Measured::new(document, instrument::gone(ended)))
}

fn settings(arguments: &EchoArguments) -> Settings {
    Settings {
        transport: if arguments.tcp {
            Transport::Tcp
        } else {
            Transport::Udp
        },
        size: arguments.size,
        outstanding: arguments.outstanding,
        span: arguments.duration.duration(),
        spin: arguments.spin,
        pin: instrument_in_guest::placed(arguments.pin, &arguments.path),
        timeout: arguments.timeout.duration(),
    }
}

/// The experiment of the document: what was asked for.
fn asked(arguments: &EchoArguments) -> serde_json::Value {
    json!({
        "for": arguments.duration.to_string(),
        "size_bytes": arguments.size,
        "outstanding": arguments.outstanding,
        "transport": if arguments.tcp { "tcp" } else { "udp" },
        "spin": arguments.spin,
        "timeout": arguments.timeout.to_string(),
    })
}
