//! `lagometer list`: what is built in.

use std::fmt::Write as _;
use std::process::ExitCode;

use lagometer_lab::{Experiment, catalogue};
use lagometer_transport::presets;

use crate::cli::{ListArguments, Listed};
use crate::failure::Failure;
use crate::output::print;

/// Lists the built-in networks, experiments and transports with a line each.
pub(crate) fn list(arguments: &ListArguments) -> Result<ExitCode, Failure> {
    let wanted = |what| arguments.what.is_none_or(|asked| asked == what);
    let mut text = String::new();
    if wanted(Listed::Experiments) {
        let rows = catalogue::names().into_iter().filter_map(|name| {
            let experiment = Experiment::parse(name, catalogue::text(name)?).ok()?;
            Some((name, experiment.summary))
        });
        section(&mut text, "Experiments", rows);
    }
    if wanted(Listed::Networks) {
        let rows = lagometer_link::catalogue::names().filter_map(|name| {
            Some((
                name,
                lagometer_link::catalogue::named(name)?.summary().to_owned(),
            ))
        });
        section(&mut text, "Networks", rows);
    }
    if wanted(Listed::Transports) {
        let rows = presets()
            .iter()
            .map(|preset| (preset.name, described(preset.about, preset.aliases)));
        section(&mut text, "Transports", rows);
        let rows = lagometer_socket::presets()
            .iter()
            .map(|preset| (preset.name, described(preset.about, preset.aliases)));
        section(&mut text, "Transports that own their sockets", rows);
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What a preset is, and what else it is called.
fn described(about: &str, aliases: &[&str]) -> String {
    match aliases {
        [] => about.to_owned(),
        names => format!("{about}; also `{}`", names.join("`, `")),
    }
}

fn section(text: &mut String, title: &str, rows: impl Iterator<Item = (&'static str, String)>) {
    let rows: Vec<_> = rows.collect();
    let width = rows
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    if !text.is_empty() {
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{title}");
    for (name, what) in rows {
        let _ = writeln!(text, "  {name:width$}  {what}");
    }
}
