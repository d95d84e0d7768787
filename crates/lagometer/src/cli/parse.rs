//! What was typed, read by the definitions.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::ErrorKind;

use super::{Cli, with_two_dashes};
use crate::failure::Failure;

/// Reads the arguments, the program's name first. Ends the process where they ask for
/// help, or where `clap` refuses them: it says so itself, with the usage.
///
/// # Errors
///
/// [`Failure::Input`] where one that must be text is none, as a file's name may be: in
/// one line that shows which, which `clap` does not.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Cli, Failure> {
    let arguments = with_two_dashes(arguments);
    Cli::try_parse_from(&arguments).map_err(|error| match error.kind() {
        ErrorKind::InvalidUtf8 => Failure::Input(format!(
            "{} is not Unicode, as names of experiments, networks and lanes are: give the file another name",
            not_unicode(&arguments)
        )),
        _ => error.exit(),
    })
}

/// The argument that is refused for not being Unicode, with a mark for each thing in it
/// that is no letter. Others may be no text either, but are taken: names of files alone.
fn not_unicode(arguments: &[OsString]) -> String {
    let is_no_text = |argument: &&OsString| argument.to_str().is_none();
    let is_refused = |at: &&OsString| {
        // With all others made text.
        let made = arguments.iter().map(|argument| {
            if std::ptr::eq(argument, *at) {
                return argument.clone();
            }
            argument.to_string_lossy().into_owned().into()
        });
        Cli::try_parse_from(made).is_err_and(|error| error.kind() == ErrorKind::InvalidUtf8)
    };
    let refused = arguments.iter().filter(is_no_text).find(is_refused);
    refused.map_or_else(String::new, |argument| format!("`{}`", argument.display()))
}
