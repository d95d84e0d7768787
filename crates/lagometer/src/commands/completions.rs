//! `lagometer completions` and `lagometer man`: what shells and `man` want to
//! know of the command line, from its own definitions.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArguments, ManArguments};
use crate::failure::Failure;

/// Writes the completion script to standard output.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command(),
        "lagometer",
        &mut script,
    );
    match io::stdout().write_all(&script) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Write {
            path: "standard output".into(),
            why,
        }),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes `lagometer.1` and a page for each command into the folder.
pub(crate) fn man(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|why| Failure::Write {
            path: folder.clone(),
            why,
        })?;
    Ok(ExitCode::SUCCESS)
}
