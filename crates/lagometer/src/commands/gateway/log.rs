//! Where the gateway's log goes, and how much of it there is.

use std::fs::OpenOptions;
use std::sync::Mutex;

use lagometer_gateway::server::config::{LogFormat, LogLevel, LogSection};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::failure::Failure;

/// Starts to log. What is below the level costs a comparison.
pub(super) fn start(section: &LogSection) -> Result<(), Failure> {
    let level = match section.level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let writer = match &section.file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|why| Failure::Write {
                path: path.clone(),
                why,
            })?;
            BoxMakeWriter::new(Mutex::new(file))
        }
        None => BoxMakeWriter::new(std::io::stderr),
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(section.file.is_none() && console::colors_enabled_stderr())
        .with_target(false)
        .with_writer(writer);
    match section.format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
