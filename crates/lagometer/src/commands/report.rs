//! `lagometer report`: result documents, shown again.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::ReportArguments;
use crate::failure::Failure;
use crate::output::{names_of, print, read_document, terminal, write};
use crate::overwriting::Files;

/// Shows each document as a table, and all of them on one page or in one plot
/// where asked.
pub(crate) fn report(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let files = Files {
        read: arguments.documents.iter().map(PathBuf::as_path).collect(),
        written: vec![arguments.html.as_ref(), arguments.plot.as_ref()],
    };
    files.check()?;
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
        let page = if let [only] = documents.as_slice() {
            lagometer_report::page(std::slice::from_ref(only))
        } else {
            let names = names_of(&arguments.documents);
            let names = names.iter().map(String::as_str);
            lagometer_report::named_page(&names.zip(&documents).collect::<Vec<_>>())
        };
        write(path, &page)?;
        note!("lagometer: the page is {}", path.display());
    }
    if let Some(path) = &arguments.plot {
        write(path, &lagometer_report::plot(&documents))?;
        note!("lagometer: the plot is {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
