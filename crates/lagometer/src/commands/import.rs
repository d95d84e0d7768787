//! `lagometer import`: other tools' logs as a result document.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use lagometer_lab::{RunContext, assemble_import};
use lagometer_stats::import_2015::Log;

use crate::cli::ImportArguments;
use crate::failure::{Failure, read};
use crate::output;

/// Reads every log and shows them as the lanes of one document.
pub(crate) fn import(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let (started, began) = (SystemTime::now(), Instant::now());
    let mut lanes = Vec::new();
    for path in &arguments.logs {
        let log = Log::parse(&read(path)?)
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        let name = lane_name(path);
        // The log does not say which transport it is of; its name does.
        lanes.push(log.to_lane(&name, &name, arguments.interval.duration()));
    }
    let context = RunContext {
        started,
        wall: began.elapsed(),
        host: lagometer_instruments::machine::named(),
        testbed: None,
        audit: None,
    };
    let document =
        assemble_import(lanes, &arguments.interval.to_string(), context).map_err(Failure::input)?;
    output::show(&document, arguments.json.as_ref(), arguments.html.as_ref())?;
    Ok(ExitCode::SUCCESS)
}

/// A log's lane is called as its file, without the ending.
fn lane_name(path: &Path) -> String {
    path.file_stem()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
