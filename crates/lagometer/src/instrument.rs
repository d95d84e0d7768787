//! What the instruments' commands share: the document around what was found,
//! failures with their exit codes, and a line of progress.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use console::Term;
use lagometer_instruments::Error;
use lagometer_instruments::echo::local::Ended;
use lagometer_results::{Document, Host, PlacementTrial, Warning};
use lagometer_testbed::Testbed;
use serde_json::Value;

use crate::cli::PathArguments;
use crate::failure::Failure;

/// A document without results: who, where and when.
pub(crate) fn document(
    command: &str,
    asked: Value,
    started: SystemTime,
    wall: Duration,
    host: Host,
) -> Document {
    Document {
        started: humantime::format_rfc3339_seconds(started).to_string(),
        wall_s: wall.as_secs_f64(),
        host,
        experiment: asked,
        ..Document::empty(command)
    }
}

/// The machine, with its noise measured: but for a guest, which has none and whose
/// clock would stand still meanwhile.
pub(crate) fn host(path: &PathArguments) -> Host {
    if path.testbed == Testbed::Kernel {
        lagometer_instruments::machine::named()
    } else {
        lagometer_instruments::machine::measured()
    }
}

/// An instrument's error with its exit code.
pub(crate) fn failure(error: Error) -> Failure {
    match error {
        Error::Remote(error) => error.into(),
        Error::Settings(_) | Error::Pin(_) => Failure::Input(error.to_string()),
        Error::Silent { .. } | Error::System(..) => Failure::Environment(error.to_string()),
    }
}

/// A message's size in bytes, as in `1`, `1400`, `16k`.
pub(crate) fn parse_size(written: &str) -> Result<usize, String> {
    let (digits, factor) = match written.trim().strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (written.trim(), 1),
    };
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| "write bytes as in `1400` or `16k`".to_owned())
}

/// Says in the document how the measuring ended, where that was not on time.
pub(crate) fn note_end(document: &mut Document, ended: &Ended) {
    document.partial = *ended != Ended::OnTime;
    if let Ended::Gone(why) = ended {
        document.warnings.push(Warning {
            what: "The remote end went away.".to_owned(),
            why: format!("{why}; all figures are of the time before."),
            mend: "look at the remote end's own words".to_owned(),
        });
    }
}

/// Says that something on the path changed or added messages.
pub(crate) fn note_corrupt(document: &mut Document, corrupt: u64) {
    if corrupt > 0 {
        document.warnings.push(Warning {
            what: format!("{corrupt} arrivals were not of this run or not whole."),
            why: "They count nowhere, but something on the path changes or adds datagrams."
                .to_owned(),
            mend: String::new(),
        });
    }
}

/// Why the measuring ended early, where the remote end went away.
pub(crate) fn gone(ended: Ended) -> Option<String> {
    match ended {
        Ended::Gone(why) => Some(why),
        Ended::OnTime | Ended::Stopped => None,
    }
}

/// The exit code for how the measuring ended.
pub(crate) fn outcome(gone: Option<String>) -> Result<ExitCode, Failure> {
    match gone {
        Some(why) => Err(Failure::Environment(format!(
            "the remote end went away: {why}; the figures are of the time before"
        ))),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A placement that was tried, as it is said on standard error.
pub(crate) fn tried(trial: &PlacementTrial) -> String {
    match (trial.local_cpu, trial.remote_cpu) {
        (Some(local), Some(remote)) => format!("{} ({local}, {remote})", trial.name),
        (Some(local), None) => format!("{} ({local})", trial.name),
        _ => trial.name.clone(),
    }
}

/// How often the line is written anew: seldom enough not to disturb what is
/// measured.
const REFRESH: Duration = Duration::from_millis(500);

/// One line on standard error that is written over and over; nothing where
/// that is no terminal.
pub(crate) struct Line {
    shown: bool,
    written: Option<Instant>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
            written: None,
        }
    }

    /// Shows what `text` says, unless it is too soon.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        let now = Instant::now();
        let due = self.written.is_none_or(|last| now - last >= REFRESH);
        if self.shown && due {
            self.written = Some(now);
            // Progress that cannot be shown is no failure.
            let stderr = Term::stderr();
            let _ = stderr.clear_line();
            let _ = stderr.write_str(&text());
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.shown && self.written.take().is_some() {
            let _ = Term::stderr().clear_line();
        }
    }
}
