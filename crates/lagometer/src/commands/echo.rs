//! `lagometer echo`: how many messages a path echoes each second.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use lagometer_instruments::echo::{Progress, Settings, Transport, measure};
use serde_json::json;

use crate::cli::EchoArguments;
use crate::failure::Failure;
use crate::instrument::{self, Line};
use crate::{interrupt, output, remote_end};

/// Measures and shows the echo rate.
pub(crate) fn echo(arguments: &EchoArguments) -> Result<ExitCode, Failure> {
    let settings = settings(arguments);
    settings.check().map_err(instrument::failure)?;
    let stop = interrupt::listen()?;
    let remote = remote_end::reach(&arguments.remote)?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let host = lagometer_machine::measured();
    let mut line = Line::new();
    let measured = measure(&remote, &settings, &mut |progress| {
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
    document.verdict = Some(lagometer_report::echo_verdict(&echo));
    let corrupt = echo.messages.corrupt;
    document.echo = Some(echo);
    instrument::note_end(&mut document, &ended);
    instrument::note_corrupt(&mut document, corrupt);
    output::show(
        &document,
        arguments.results.json.as_ref(),
        arguments.results.html.as_ref(),
    )?;
    instrument::outcome(ended)
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
        pin: arguments.pin,
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
