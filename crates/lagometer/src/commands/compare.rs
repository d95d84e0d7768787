//! `lagometer compare`: one run beside another.

use std::process::ExitCode;

use crate::cli::CompareArguments;
use crate::failure::Failure;
use crate::output::{print, read_document, terminal, write};

/// Sets the second document beside the first, lane by lane; two worlds figure
/// by figure.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let before = read_document(&arguments.before)?;
    let after = read_document(&arguments.after)?;
    if let Some(html) = &arguments.html {
        write(
            html,
            &lagometer_report::page(&[before.clone(), after.clone()]),
        )?;
        eprintln!("lagometer: the page is {}", html.display());
    }
    if let Some(text) = lagometer_report::world_comparison(&before, &after, terminal()) {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let comparison = lagometer_report::compare(&before, &after)
        .map_err(|error| Failure::Input(format!("{}: {error}", arguments.after.display())))?;
    print(&lagometer_report::comparison(&comparison, terminal()))?;
    Ok(ExitCode::SUCCESS)
}
