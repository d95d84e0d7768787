//! `lagometer import`: other tools' logs as a result document, and captures as traffic.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use lagometer_lab::traffic::{Choice, Traffic};
use lagometer_lab::{RunContext, assemble_import};
use lagometer_results::import_2015::Log;
use lagometer_units::{MOST_DATA, read_file};

use crate::cli::ImportArguments;
use crate::failure::{Failure, read};
use crate::output;
use crate::overwriting::Files;

/// Reads every log and shows them as the lanes of one document.
pub(crate) fn import(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let files = Files {
        read: arguments.logs.iter().map(PathBuf::as_path).collect(),
        written: vec![
            arguments.traffic.as_ref(),
            arguments.json.as_ref(),
            arguments.html.as_ref(),
        ],
    };
    files.check()?;
    if let Some(to) = &arguments.traffic {
        return import_traffic(arguments, to);
    }
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

/// Writes the messages of a capture as a log.
fn import_traffic(arguments: &ImportArguments, to: &Path) -> Result<ExitCode, Failure> {
    let [capture] = arguments.logs.as_slice() else {
        return Err(Failure::Input(
            "--traffic is for one capture: name one, and another `--traffic` for each".to_owned(),
        ));
    };
    let bytes = read_file(capture, MOST_DATA).map_err(|why| Failure::Read {
        path: capture.clone(),
        why,
    })?;
    let choice = Choice {
        client: arguments.client,
        server: arguments.server,
    };
    let traffic = Traffic::read(&bytes, &choice)
        .map_err(|why| Failure::Input(format!("{} {why}", capture.display())))?;
    note!("lagometer: {}: {traffic}", capture.display());
    fs::write(to, traffic.to_log()).map_err(|why| Failure::Write {
        path: to.to_owned(),
        why,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A log's lane is called as its file, without the ending.
fn lane_name(path: &Path) -> String {
    path.file_stem()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
