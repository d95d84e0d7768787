//! What a network does after all play is over is said by every command that concludes
//! something of it, as `run` says it: the outage of `outage-one-way`, which comes at 20 s.

use std::process::{Command, Output};

use serde_json::Value;

/// What is said of the outage, whoever says it.
const OUTAGE: &str = "the outage that `outage-one-way` has at 20 s";

fn lagometer(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.env_remove("COLUMNS").env("NO_COLOR", "1");
    command.args(arguments).output().unwrap()
}

/// The lines on standard error that speak of the outage.
fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().filter(|line| line.contains(OUTAGE));
    lines.map(str::to_owned).collect()
}

/// The document on standard output, and its warnings of the outage.
fn warned(output: &Output) -> (Value, Vec<String>) {
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = document["warnings"].as_array().cloned().unwrap_or_default();
    let of_outage = all.iter().filter_map(|warning| warning["what"].as_str());
    let of_outage = of_outage.filter(|what| what.contains(OUTAGE));
    (document.clone(), of_outage.map(str::to_owned).collect())
}

#[test]
fn a_world_says_what_comes_after_it() {
    let mut all = vec!["world", "single", "--players", "2", "--join-every", "5ms"];
    all.extend(["--network", "lan,outage-one-way", "--no-html"]);
    all.extend(["--transport", "kcp,tcp", "--json", "-", "--for"]);
    let short = lagometer(&[&all[..], &["3s"]].concat());
    let (document, warnings) = warned(&short);
    assert_eq!(document["worlds"].as_array().unwrap().len(), 4);
    // Once, whatever carries the players.
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("comes after the 3 s"),
        "{}",
        warnings[0]
    );
    let lines = said(&short);
    assert!(
        lines.len() == 1 && lines[0].contains("play for longer (`--for`)"),
        "{lines:?}"
    );
    let long = lagometer(&[&all[..], &["21s"]].concat());
    assert_eq!(warned(&long).1, [""; 0]);
    assert_eq!(said(&long), [""; 0]);
}

#[test]
fn a_search_says_what_none_of_its_seeds_plays() {
    let mut all = vec!["tune", "--no-html", "--lanes", "kcp", "--trials", "4"];
    all.extend(["--network", "outage-one-way", "--seeds", "5", "--json", "-"]);
    let short = lagometer(&[&all[..], &["--for", "20s"]].concat());
    let (_, warnings) = warned(&short);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("is in no seed of 4 s"),
        "{}",
        warnings[0]
    );
    assert_eq!(said(&short).len(), 1);
    let shown: Vec<&str> = all[..all.len() - 2].to_vec();
    let shown = lagometer(&[&shown[..], &["--for", "20s"]].concat());
    let table = String::from_utf8_lossy(&shown.stdout).replace('\n', " ");
    assert!(table.contains(&format!("Warning: {OUTAGE}")), "{table}");
    let long = lagometer(&[&all[..], &["--for", "105s"]].concat());
    assert_eq!(warned(&long).1, [""; 0]);
}

/// It is said before a guest is looked for, of which this machine has none by that name.
#[test]
fn an_agreement_says_what_none_of_its_seeds_plays() {
    let mut all = vec![
        "agree",
        "--testbed",
        "kernel",
        "--kernel",
        "none-of-that-name",
    ];
    all.extend(["--network", "lan,outage-one-way", "--lanes", "udp", "--for"]);
    let short = lagometer(&[&all[..], &["5s"]].concat());
    let lines = said(&short);
    assert!(
        lines.len() == 1 && lines[0].contains("is in no seed of 5 s"),
        "{short:?}"
    );
    let long = lagometer(&[&all[..], &["21s"]].concat());
    assert_eq!(said(&long), [""; 0]);
}
