//! `lagometer compare`: one run beside another.

use std::process::ExitCode;

use crate::cli::CompareArguments;
use crate::failure::Failure;
use crate::output::{print, read_document, terminal};

/// Sets the second document beside the first, lane by lane.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let before = read_document(&arguments.before)?;
    let after = read_document(&arguments.after)?;
    let comparison = lagometer_report::compare(&before, &after)
        .map_err(|error| Failure::Input(format!("{}: {error}", arguments.after.display())))?;
    print(&lagometer_report::comparison(&comparison, terminal()))?;
    Ok(ExitCode::SUCCESS)
}
