//! The page of every command, argument and option, from clap's definitions.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::markdown::{cell, code};
use crate::cli::Cli;

/// The whole page.
pub(super) fn page() -> String {
    let mut program = Cli::command();
    program.build();
    let mut text = "# The command line\n\n".to_owned();
    text.push_str(
        "Every command with what it takes; `lagometer COMMAND --help` says the same. Times are \
         written as in `500ms`, `30s`, `10min`, sizes as in `500B`, `64KiB`, `1MB`.\n",
    );
    for command in program.get_subcommands() {
        describe(&mut text, "lagometer", command);
    }
    text
}

fn describe(text: &mut String, before: &str, command: &Command) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{before} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about());
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n## {name}\n\n{}.\n\n`{}`",
        about.map(ToString::to_string).unwrap_or_default(),
        usage(command),
    );
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in shown(command) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        if let Some(heading) = heading {
            let _ = writeln!(text, "\n{heading}:");
        }
        text.push_str("\n| | is | default |\n| --- | --- | --- |\n");
        for arg in shown(command).filter(|arg| arg.get_help_heading() == heading) {
            row(text, arg);
        }
    }
    for subcommand in command.get_subcommands() {
        describe(text, &name, subcommand);
    }
}

/// The arguments of a command that its help shows, positional ones first.
fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let positionals = command.get_positionals();
    let options = command.get_arguments().filter(|arg| !arg.is_positional());
    positionals.chain(options).filter(|arg| {
        let asks_for_help = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !arg.is_hide_set() && !asks_for_help
    })
}

fn usage(command: &Command) -> String {
    let text = command.clone().render_usage().to_string();
    let line = text.trim_start_matches("Usage:");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(text: &mut String, arg: &Arg) {
    let help = arg.get_long_help().or(arg.get_help());
    let mut is = cell(&help.map(ToString::to_string).unwrap_or_default());
    for value in arg.get_possible_values() {
        if value.is_hide_set() || !arg.get_action().takes_values() {
            continue;
        }
        let _ = write!(is, "<br>`{}`", value.get_name());
        if let Some(help) = value.get_help() {
            let _ = write!(is, ": {}", cell(&help.to_string()));
        }
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .filter(|value| !value.is_empty())
        .collect();
    let default = if arg.get_action().takes_values() && !defaults.is_empty() {
        code(&defaults.join(","))
    } else {
        String::new()
    };
    let _ = writeln!(text, "| {} | {is} | {default} |", code(&signature(arg)));
}

/// How an argument is written.
fn signature(arg: &Arg) -> String {
    if arg.is_positional() {
        return arg.to_string();
    }
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let mut names: Vec<String> = short.into_iter().chain(long).collect();
    if arg.get_action().takes_values() {
        let value = arg
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ");
        let may_be_left_out = arg
            .get_num_args()
            .is_some_and(|count| count.min_values() == 0);
        if let Some(last) = names.last_mut() {
            let equals = arg.is_require_equals_set();
            let between = if equals { "=" } else { " " };
            if may_be_left_out {
                let _ = write!(last, "[{between}{value}]");
            } else {
                let _ = write!(last, "{between}{value}");
            }
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of a command, as its own help lists them.
    fn options_in_help(command: &mut Command) -> Vec<String> {
        let help = command.render_help().to_string();
        help.lines()
            .filter_map(|line| line.trim_start().strip_prefix("--"))
            .map(|rest| {
                let end = rest
                    .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
                    .unwrap_or(rest.len());
                format!("--{}", &rest[..end])
            })
            .collect()
    }

    #[test]
    fn every_option_that_help_shows_is_in_the_section_of_its_command() {
        let text = page();
        let mut program = Cli::command();
        program.build();
        let mut seen = 0;
        for command in program.get_subcommands_mut() {
            if command.is_hide_set() || command.get_name() == "help" {
                continue;
            }
            let heading = format!("\n## lagometer {}\n", command.get_name());
            let at = text.find(&heading).unwrap_or_else(|| panic!("no{heading}"));
            let section = &text[at + heading.len()..];
            let section = &section[..section.find("\n## ").unwrap_or(section.len())];
            for option in options_in_help(command) {
                seen += 1;
                assert!(section.contains(&option), "{heading}{option}\n{section}");
            }
        }
        assert!(seen > 100, "only {seen} options were found");
    }

    #[test]
    fn values_defaults_and_groups_are_listed() {
        let text = page();
        for part in [
            "| `--testbed TESTBED` | ",
            "<br>`sim`: Virtual time: deterministic, faster than real time",
            "| `[EXPERIMENT]` | A built-in experiment's name, or a TOML file | `pvp-500` |",
            "| `-o, --output TRACE` | ",
            "\nAs channeld has them, with one dash or two:\n",
            "| `--dev[=BOOL]` | ",
            "\n## lagometer gateway replay\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(
            !text.contains("lagometer guest"),
            "hidden commands are shown"
        );
    }
}
