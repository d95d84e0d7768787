//! Where the gateway's log goes, and how much of it there is.

mod lines;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use lagometer_gateway::server::config::{LogFormat, LogLevel, LogSection};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::failure::Failure;

use lines::Lines;

/// The log that was started. When it is dropped, its last lines are written.
#[derive(Debug)]
pub(super) struct Log(Vec<Lines>);

impl Drop for Log {
    fn drop(&mut self) {
        self.0.iter().for_each(Lines::flush);
    }
}

/// Starts to log. What is below the level costs a comparison.
pub(super) fn start(section: &LogSection) -> Result<Log, Failure> {
    let level = match section.level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let no_thread = |why| Failure::Environment(format!("no thread can be had for the log: {why}"));
    let mut all = Vec::new();
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = Vec::new();
    if let Some(path) = &section.file {
        let path = with_time(path, std::time::SystemTime::now());
        let lines = Lines::start(append_to(&path)?).map_err(no_thread)?;
        layers.push(layer(section.format, false, lines.clone()));
        all.push(lines);
    }
    if section.stderr.unwrap_or(section.file.is_none()) {
        let lines = Lines::start(crate::live::Said).map_err(no_thread)?;
        let ansi = console::colors_enabled_stderr();
        layers.push(layer(section.format, ansi, lines.clone()));
        all.push(lines);
    }
    // What NATS's client says of itself the gateway says in its own words, and once.
    let of_client = if level >= LevelFilter::DEBUG {
        level
    } else {
        LevelFilter::OFF
    };
    let filter = Targets::new()
        .with_default(level)
        .with_target("async_nats", of_client);
    tracing_subscriber::registry()
        .with(layers.with_filter(filter))
        .init();
    Ok(Log(all))
}

fn layer(
    format: LogFormat,
    ansi: bool,
    lines: Lines,
) -> Box<dyn Layer<Registry> + Send + Sync + 'static> {
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(ansi)
        .with_target(false)
        .with_writer(lines);
    match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

/// Opens a file to add to; the folders it lies in are made.
fn append_to(path: &Path) -> Result<std::fs::File, Failure> {
    let failed = |why| Failure::Write {
        path: path.to_owned(),
        why,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(failed)
}

/// A path with the time for `{time}`, as channeld writes it: the year, month,
/// day, hour, minute and second in a row, here in UTC.
fn with_time(path: &Path, now: std::time::SystemTime) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains("{time}") => {
            let spoken = humantime::format_rfc3339_seconds(now).to_string();
            let digits: String = spoken.chars().filter(char::is_ascii_digit).collect();
            text.replace("{time}", &digits).into()
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_time_stands_in_a_files_name_where_it_is_asked_for() {
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(
            with_time(Path::new("logs/{time}.log"), now),
            Path::new("logs/20231114221320.log")
        );
        assert_eq!(with_time(Path::new("a.log"), now), Path::new("a.log"));
    }
}
