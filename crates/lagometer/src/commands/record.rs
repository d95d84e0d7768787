//! `lagometer record`: what a real path does, as a trace and a profile.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use lagometer_instruments::record::{RecordError, Recorded, Settings, Summary, profile_text};
use lagometer_remote::Line;

use crate::cli::RecordArguments;
use crate::failure::Failure;
use crate::remote_end;
use crate::{interrupt, output};

/// Records and writes what was recorded, in parts too.
pub(crate) fn record(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    if arguments.output.extension().is_some_and(|it| it == "toml") {
        return Err(Failure::Input(
            "the trace cannot be a .toml file, which the profile beside it is; \
             write `-o NAME.trace`"
                .to_owned(),
        ));
    }
    let settings = Settings {
        every: arguments.every.duration(),
        bytes: usize::try_from(arguments.size.bytes()).unwrap_or(usize::MAX),
        lasts: arguments.duration.duration(),
        trains: arguments.rate,
    };
    let stop = interrupt::listen()?;
    let remote = remote_end::reach(&arguments.remote)?;
    let name = arguments
        .remote
        .to
        .as_deref()
        .unwrap_or("this machine itself");
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    note!(
        "lagometer: recording the path to {name} for {}, a probe each {}",
        arguments.duration,
        arguments.every
    );
    let recorded =
        lagometer_instruments::record::record(&remote, &settings, || stop.load(Ordering::Relaxed))?;
    let trace = recorded.trace()?;
    let notes = notes(&recorded, name, &started);
    let mut text = trace.to_string();
    if let Some(after_header) = text.find('\n') {
        let mut comment = String::new();
        for note in &notes {
            let _ = writeln!(comment, "# {note}");
        }
        text.insert_str(after_header + 1, &comment);
    }
    output::write_private(&arguments.output, &text)?;
    let profile = arguments.output.with_extension("toml");
    let summary = format!("resembles the path to {name} as it was at {started}");
    let text = profile_text(&summary, &notes, &recorded.up, &recorded.down);
    output::write_private(&profile, &text)?;
    output::print(&shown(&recorded, &arguments.output, &profile))?;
    Ok(ExitCode::SUCCESS)
}

/// Where and when, and how sure.
fn notes(recorded: &Recorded, name: &str, started: &str) -> Vec<String> {
    let mut notes = vec![
        format!("recorded by `lagometer record` to {name}, {started}"),
        clocks(&recorded.clocks),
    ];
    if let Some(why) = &recorded.cut_short {
        notes.push(format!("it was cut short: {why}"));
    }
    // A name is the user's, and a comment ends with its line.
    notes
        .into_iter()
        .map(|note| note.replace(|letter: char| letter.is_control(), " "))
        .collect()
}

/// How the clocks stood, in one sentence.
fn clocks(line: &Line) -> String {
    let (drift, drift_error) = line.drift_ppm();
    let mut words = format!(
        "one-way delays rest on the two clocks' offset, known to ±{:.3} ms \
         (drift {drift:.1} ±{drift_error:.1} ppm, least round trip {:.3} ms)",
        line.error().as_secs_f64() * 1e3,
        line.least_round_trip().as_secs_f64() * 1e3,
    );
    if line.steps() > 0 {
        let _ = write!(
            words,
            "; a clock was stepped {} times meanwhile, and what was before cannot be trusted",
            line.steps()
        );
    }
    words
}

fn shown(recorded: &Recorded, trace: &Path, profile: &Path) -> String {
    let mut text = String::new();
    if let Some(why) = &recorded.cut_short {
        let lasted = recorded.lasts.as_secs_f64();
        let _ = writeln!(text, "cut short after {lasted:.1} s: {why}");
    }
    for (name, way) in [("up", &recorded.up), ("down", &recorded.down)] {
        let summary = Summary::of(way);
        let _ = writeln!(text, "{name:<5} {} probes: {summary}", summary.probes);
    }
    let _ = writeln!(
        text,
        "{}\nthe trace is {}; replay it with `lagometer run --network {}`\n\
         a profile that resembles it, to read and edit, is {}",
        clocks(&recorded.clocks),
        trace.display(),
        trace.display(),
        profile.display()
    );
    text
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Remote(error) => error.into(),
            error => Self::Environment(error.to_string()),
        }
    }
}
