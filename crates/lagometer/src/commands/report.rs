//! `lagometer report`: result documents, shown again.

use std::process::ExitCode;

use crate::cli::ReportArguments;
use crate::failure::Failure;
use crate::output::{print, read_document, terminal, write};

/// Shows each document as a table, and all of them on one page or in one plot
/// where asked.
pub(crate) fn report(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let documents = arguments
        .documents
        .iter()
        .map(|path| read_document(path))
        .collect::<Result<Vec<_>, _>>()?;
    let terminal = terminal();
    for document in &documents {
        print(&lagometer_report::table(document, terminal))?;
    }
    if let Some(path) = &arguments.html {
        write(path, &lagometer_report::page(&documents))?;
        eprintln!("lagometer: the page is {}", path.display());
    }
    if let Some(path) = &arguments.plot {
        write(path, &lagometer_report::plot(&documents))?;
        eprintln!("lagometer: the plot is {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
