//! `lagometer reference`: the pages of the documentation site that say what the
//! code says, in Markdown. Each has one source: the command line's definitions,
//! the registries of presets, the data files that are built in, and the answers
//! of running exporters. None is kept in the repository.

mod command_line;
mod data;
mod document;
mod markdown;
mod metrics;
mod settings;
mod transports;

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::cli::ReferenceArguments;
use crate::exit::Exit;
use crate::failure::Failure;

/// A page's file name and its text.
type Page = (&'static str, String);

/// Writes every page into the folder.
pub(crate) fn reference(arguments: &ReferenceArguments) -> Result<ExitCode, Failure> {
    let folder = &arguments.folder;
    let write_failed = |why| Failure::Write {
        path: folder.clone(),
        why,
    };
    std::fs::create_dir_all(folder).map_err(write_failed)?;
    let mut pages = pages_without_sockets();
    pages.push(("metrics.md", metrics::page()?));
    for (name, text) in pages {
        std::fs::write(folder.join(name), text).map_err(write_failed)?;
    }
    Ok(Exit::Done.into())
}

/// The pages that follow from the program alone.
pub(crate) fn pages_without_sockets() -> Vec<Page> {
    vec![
        ("commands.md", command_line::page()),
        ("exit-codes.md", exit_codes()),
        ("transports.md", transports::page()),
        ("networks.md", data::networks()),
        ("experiments.md", data::experiments()),
        ("settings.md", settings::page()),
        ("document.md", document::page()),
    ]
}

fn exit_codes() -> String {
    let mut text = "# Exit codes\n\n| code | when |\n| --- | --- |\n".to_owned();
    for exit in Exit::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {} |", exit.code(), exit.meaning());
    }
    text.push_str(
        "\n`lagometer shape` ends with the code of the client's command. A measurement that \
         Ctrl-C stops says what it has found so far, marks it `partial` and ends with 0.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str) -> String {
        let mut pages = pages_without_sockets();
        let at = pages.iter().position(|(known, _)| *known == name).unwrap();
        pages.swap_remove(at).1
    }

    #[test]
    fn every_exit_code_is_explained_once() {
        let text = page("exit-codes.md");
        for code in 0..4 {
            assert_eq!(text.matches(&format!("| {code} | ")).count(), 1, "{text}");
        }
    }

    #[test]
    fn every_preset_network_and_experiment_has_a_heading_or_stands_beneath_it() {
        let all = [
            (
                "transports.md",
                lagometer_socket::names().collect::<Vec<_>>(),
            ),
            (
                "networks.md",
                lagometer_link::catalogue::names().collect::<Vec<_>>(),
            ),
            ("experiments.md", lagometer_lab::catalogue::names()),
        ];
        for (name, expected) in all {
            let text = page(name);
            for heading in expected {
                let has_one = text.contains(&format!("## {heading}\n"));
                let other_name = format!("`{heading}`");
                let is_beneath = text
                    .lines()
                    .any(|line| line.starts_with("Also called ") && line.contains(&other_name));
                assert!(has_one || is_beneath, "{name}: {heading}");
            }
        }
    }

    #[test]
    fn metrics_of_a_running_gateway_and_of_a_world_are_listed_with_their_labels() {
        let text = metrics::page().unwrap();
        for row in [
            "| `messages_in` | counter | `connType`: ",
            "| `gateway_fan_out_seconds` | histogram | `type`: ",
            "| `gateway_over_budget_total` | counter | ",
            "| `world_age_seconds` | gauge | `quantile`: ",
        ] {
            assert!(text.contains(row), "{row} is not in\n{text}");
        }
    }
}
