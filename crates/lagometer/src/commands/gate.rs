//! What a run had to hold, reported on standard error and in files: for `run` and
//! `compare`.

use std::path::Path;

use lagometer_report::{Baseline, Gate};
use lagometer_results::Document;

use crate::cli::GateArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::write;

/// An earlier run and the file it is in.
pub(crate) struct Earlier<'a> {
    pub(crate) path: &'a Path,
    pub(crate) document: &'a Document,
}

/// Holds a run against its budgets and, where there is one, an earlier run, and
/// gives the exit code that `--assert` asks for.
pub(crate) fn hold(
    document: &Document,
    earlier: Option<&Earlier<'_>>,
    arguments: &GateArguments,
) -> Result<Exit, Failure> {
    if earlier.is_none() && !arguments.is_asked() {
        return Ok(Exit::Done);
    }
    let name = earlier.map(|earlier| earlier.path.display().to_string());
    let baseline = earlier
        .zip(name.as_deref())
        .map(|(earlier, name)| Baseline {
            name,
            document: earlier.document,
            tolerance: arguments.tolerance,
        });
    let gate = Gate::of(document, baseline).map_err(|error| {
        let name = name.as_deref().unwrap_or_default();
        Failure::Input(format!("{name} is no baseline for this run: {error}"))
    })?;
    let against = name.map_or_else(String::new, |name| format!("against {name}: "));
    note!("lagometer: {against}{}", gate.summary());
    if let Some(unknown) = gate.unknown() {
        note!("lagometer: {unknown}");
    }
    for failure in gate.failures() {
        note!("lagometer: does not hold: {failure}");
    }
    if let Some(path) = &arguments.junit {
        write(path, &gate.junit())?;
    }
    if let Some(path) = &arguments.summary {
        write(path, &gate.markdown())?;
    }
    Ok(Exit::of(gate.holds() || !arguments.assert_holds))
}
