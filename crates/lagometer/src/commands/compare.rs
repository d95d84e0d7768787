//! `lagometer compare`: one run beside another.

use std::process::ExitCode;

use super::gate::{Earlier, hold};
use crate::cli::CompareArguments;
use crate::failure::Failure;
use crate::output::{names_of, print, read_document, terminal, write};
use crate::overwriting::Files;

/// Sets the second document beside the first, lane by lane; two worlds figure
/// by figure.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let files = Files {
        read: vec![&arguments.before, &arguments.after],
        written: vec![
            arguments.html.as_ref(),
            arguments.gate.junit.as_ref(),
            arguments.gate.summary.as_ref(),
        ],
    };
    files.check()?;
    let before = read_document(&arguments.before)?;
    let after = read_document(&arguments.after)?;
    let names = names_of(&[arguments.before.clone(), arguments.after.clone()]);
    let [name, other_name] = [&names[0], &names[1]].map(String::as_str);
    if let Some(html) = &arguments.html {
        let page = lagometer_report::named_page(&[(name, &before), (other_name, &after)]);
        write(html, &page)?;
        note!("lagometer: the page is {}", html.display());
    }
    let documents = [&before, &after];
    if let Some(text) =
        lagometer_report::world_comparison([name, other_name], documents, terminal())
    {
        if arguments.gate.is_asked() {
            return Err(Failure::Input(
                "--assert, --junit and --summary are for `run`'s documents: of a world there are \
                 no seeds to judge chance by"
                    .to_owned(),
            ));
        }
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let comparison = lagometer_report::compare(&before, &after)
        .map_err(|error| Failure::Input(format!("{}: {error}", arguments.after.display())))?;
    print(&lagometer_report::comparison(&comparison, terminal()))?;
    if !arguments.gate.is_asked() {
        return Ok(ExitCode::SUCCESS);
    }
    let earlier = Earlier {
        path: &arguments.before,
        document: &before,
    };
    Ok(hold(&after, Some(&earlier), &arguments.gate)?.into())
}
