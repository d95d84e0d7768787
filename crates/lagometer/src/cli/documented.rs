//! Every command line of the documentation, parsed by the real definitions.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use clap::Parser as _;
use clap::error::ErrorKind;
use lagometer_lab::Experiment;

use super::{Cli, Command, with_two_dashes};
use crate::commands::pages_without_sockets;

/// What begins a command line of ours, in a document.
const BEGINNINGS: [&str; 3] = [
    "lagometer ",
    "cargo run --release -- ",
    "target/release/lagometer ",
];

/// What ends it: the rest is another program's.
const ENDS: [&str; 8] = ["|", ">", "2>", "&&", "&", ";", "||", "<"];

/// What loops of a shell go through, and one value of each.
const VARIABLES: [(&str, &str); 2] = [("$seed", "7"), ("$network", "loss-5")];

#[test]
fn every_command_line_in_the_documents_is_one_that_this_program_takes() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let written = documents().into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path.display().to_string(), text)
    });
    let generated = pages_without_sockets().into_iter();
    let generated = generated.map(|(name, text)| (format!("generated {name}"), text));
    for (page, text) in written.chain(generated) {
        for line in command_lines(&text) {
            seen += 1;
            if let Some(why) = refusal(&line) {
                wrong.push(format!("{page}: {line}: {why}"));
            }
        }
    }
    assert!(seen > 30, "only {seen} command lines were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Why the program would not take the line, if it would not.
fn refusal(line: &str) -> Option<String> {
    let mut line = line.to_owned();
    for (variable, value) in VARIABLES {
        line = line.replace(variable, value);
    }
    let Some(words) = shlex::split(&line) else {
        return Some("its quotes do not close".to_owned());
    };
    let words = words
        .into_iter()
        .take_while(|word| !ENDS.contains(&word.as_str()))
        .map(Into::into);
    let error = match Cli::try_parse_from(with_two_dashes(words)) {
        Ok(cli) => return unknown_name(&cli.command),
        Err(error) => error,
    };
    let asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    (!asked_for).then(|| {
        error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

/// The first name on the line that nothing built in has. Whatever has a dot is a
/// file of the reader's own, and what is written in capitals stands for a name.
fn unknown_name(command: &Command) -> Option<String> {
    let (experiment, lanes, networks) = match command {
        Command::Run(run) => (
            Some(&run.experiment),
            run.lanes.as_slice(),
            run.network.as_slice(),
        ),
        Command::Agree(agree) => {
            // `all` is not a name.
            let networks = match agree.network.as_slice() {
                [all] if all == "all" => &[],
                networks => networks,
            };
            (Some(&agree.experiment), agree.lanes.as_slice(), networks)
        }
        Command::Tune(tune) => (
            Some(&tune.experiment),
            tune.lanes.as_slice(),
            tune.network.as_slice(),
        ),
        Command::Shape(shape) => (None, [].as_slice(), slice::from_ref(&shape.network)),
        Command::World(world) => (None, [].as_slice(), world.network.as_slice()),
        _ => return None,
    };
    let is_own = |name: &&String| !name.contains('.') && name.to_uppercase() != **name;
    let experiments = lagometer_lab::catalogue::names();
    let is_network = |name: &str| {
        let (name, _weight) = name.split_once('=').unwrap_or((name, ""));
        lagometer_link::catalogue::text(name).is_some()
    };
    let is_lane = |name: &str| lagometer_socket::names().any(|known| known == name);
    let own_lanes: Vec<String> = experiment
        .and_then(|name| Experiment::parse(name, lagometer_lab::catalogue::text(name)?).ok())
        .map(|experiment| experiment.own_lanes)
        .unwrap_or_default()
        .iter()
        .map(|lane| lane.name().to_owned())
        .collect();
    let is_lane = |name: &str| is_lane(name) || own_lanes.iter().any(|own| own == name);
    let mut experiment = experiment.into_iter().filter(is_own);
    let mut networks = networks.iter().filter(is_own);
    experiment
        .find(|name| !experiments.contains(&name.as_str()))
        .or_else(|| networks.find(|name| !is_network(name)))
        .or_else(|| lanes.iter().find(|name| !is_lane(name)))
        .map(|name| format!("nothing built in is called `{name}`"))
}

/// The documents that a user reads.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The command lines of ours in the fenced blocks of a document.
fn command_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_fenced = false;
    let mut pending = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        if !is_fenced {
            continue;
        }
        pending.push_str(line.trim_start_matches("$ "));
        if let Some(whole) = pending.strip_suffix('\\') {
            pending = whole.to_owned();
            continue;
        }
        let whole = std::mem::take(&mut pending);
        let arguments = BEGINNINGS.iter().find_map(|it| whole.strip_prefix(it));
        // What a live view shows has its name and two spaces at its head.
        if let Some(arguments) = arguments.filter(|it| !it.starts_with(' ')) {
            lines.push(format!("lagometer {arguments}"));
        }
    }
    lines
}

#[test]
fn continued_lines_and_other_programs_are_distinguished() {
    let text = "```sh\n# first\nlagometer run \\\n  --seed 1\nls\nlagometer  a view\n```\nlagometer no fence\n";
    assert_eq!(command_lines(text), ["lagometer run --seed 1"]);
    assert_eq!(refusal("lagometer run --seed 1 | less -R"), None);
    assert!(refusal("lagometer run --nonesuch").is_some());
    assert!(refusal("lagometer run --lanes kpc").is_some());
    assert!(refusal("lagometer shape busy-wify -- true").is_some());
    assert!(refusal("lagometer run nonesuch").is_some());
    assert_eq!(refusal("lagometer run own.toml --network NAME"), None);
}
