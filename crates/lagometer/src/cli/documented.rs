//! Every command line of the documentation, parsed by the real definitions.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
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

/// What a sentence writes for a number, which no number is parsed from.
const NUMBERS: [(&str, &str); 2] = [("M", "3"), ("N", "2")];

/// What stands for something left out, at the end of a command line in a sentence.
const LEFT_OUT: &str = "…";

#[test]
fn every_command_line_in_the_documents_is_one_that_this_program_takes() {
    let (mut wrong, mut lines, mut spans) = (Vec::new(), 0, 0);
    for (page, text) in pages() {
        for line in command_lines(&text) {
            lines += 1;
            if let Some(why) = refusal(&line) {
                wrong.push(format!("{page}: {line}: {why}"));
            }
        }
        for span in command_spans(&text) {
            spans += 1;
            if let Some(why) = span_refusal(&span) {
                wrong.push(format!("{page}: `{span}`: {why}"));
            }
        }
    }
    assert!(lines > 30, "only {lines} command lines were found");
    assert!(spans > 60, "only {spans} were found in sentences");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pages that a user reads, by name: those that are written and those that this
/// program makes.
fn pages() -> impl Iterator<Item = (String, String)> {
    let written = documents().into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path.display().to_string(), text)
    });
    let generated = pages_without_sockets().into_iter();
    written.chain(generated.map(|(name, text)| (format!("generated {name}"), text)))
}

/// Why the program would not take what a sentence says of a command, if it would not.
///
/// Where a sentence only names the command, what the command requires may be missing.
/// Where it leaves something out, or has a synopsis with `[` and `<`, the command and the
/// options that it names must exist. `COMMAND` stands for any.
fn span_refusal(span: &str) -> Option<String> {
    let Some(mut words) = shlex::split(span) else {
        return Some("its quotes do not close".to_owned());
    };
    let mut command = Cli::command();
    command.build();
    let mut named = &command;
    let mut depth = 1;
    while let Some(inner) = words.get(depth).and_then(|it| named.find_subcommand(it)) {
        (named, depth) = (inner, depth + 1);
    }
    if depth == 1 {
        let is_any = words.get(1).is_some_and(|word| word == "COMMAND");
        return (!is_any).then(|| "no such command".to_owned());
    }
    if words.len() == depth {
        return None;
    }
    let is_synopsis = words.iter().any(|word| word.starts_with(['[', '<']));
    if is_synopsis || words.last().is_some_and(|last| last == LEFT_OUT) {
        return words[depth..]
            .iter()
            .take_while(|word| *word != "--")
            .find(|word| word.starts_with("--") && !has_option(named, word))
            .map(|word| format!("`{word}` is no option of it"));
    }
    for word in &mut words {
        let number = NUMBERS
            .iter()
            .find(|(placeholder, _)| **placeholder == **word);
        if let Some((_, number)) = number {
            *word = (*number).to_owned();
        }
    }
    let words = words.iter().map(String::as_str);
    refusal(&shlex::try_join(words).unwrap())
}

/// Whether a command has an option, which may have its value behind a `=`.
fn has_option(command: &clap::Command, written: &str) -> bool {
    let name = written.trim_start_matches('-');
    let name = name.split('=').next().unwrap_or_default();
    command.get_arguments().any(|argument| {
        let aliases = argument.get_all_aliases().unwrap_or_default();
        argument.get_long() == Some(name) || aliases.contains(&name)
    })
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
    let mut lanes = lanes.iter().filter(is_own);
    experiment
        .find(|name| !experiments.contains(&name.as_str()))
        .or_else(|| networks.find(|name| !is_network(name)))
        .or_else(|| lanes.find(|name| !is_lane(name)))
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

/// The command lines of ours that sentences of a document quote: a code span that begins
/// with this program's name and has a word more, however its line breaks.
fn command_spans(text: &str) -> Vec<String> {
    let mut spans = Vec::new();
    let mut is_fenced = false;
    // A paragraph at a time, so that a backtick of its own in one changes no other.
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        if !is_fenced && !is_fence && !line.is_empty() {
            paragraph.push_str(line);
            paragraph.push(' ');
            continue;
        }
        let quoted = paragraph.split('`').skip(1).step_by(2);
        let quoted = quoted.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
        spans.extend(quoted.filter(|span| span.starts_with(BEGINNINGS[0])));
        paragraph.clear();
    }
    spans
}

#[test]
fn command_lines_in_sentences_are_found_and_parsed() {
    let text = "Try `lagometer\nrun` or `lagometer run --seed N`, not\n`lagometer`.\n\nA ` alone.\n\n\
                - `lagometer list networks`\n```sh\n`lagometer fenced`\n```\n";
    assert_eq!(
        command_spans(text),
        [
            "lagometer run",
            "lagometer run --seed N",
            "lagometer list networks"
        ]
    );
    let taken = [
        "lagometer run",
        "lagometer run --seed N",
        "lagometer run --lanes A,B --network <network>",
        "lagometer replay [OPTIONS] <FILE>",
        "lagometer COMMAND --help",
        "lagometer run --network home-wifi …",
        "lagometer gateway replay",
        "lagometer gateway -dev",
    ];
    for span in taken {
        assert_eq!(span_refusal(span), None, "{span}");
    }
    let refused = [
        "lagometer runs",
        "lagometer run --nonesuch",
        "lagometer run --nonesuch …",
        "lagometer run --nonesuch [NAME]",
        "lagometer run --lanes kpc",
        "lagometer kernel build --source",
    ];
    for span in refused {
        assert!(span_refusal(span).is_some(), "{span}");
    }
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
