//! The page of all metrics: what a gateway that has just been started, and a
//! world's exporter, answer Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lagometer_gateway::server::config::FileConfig;
use lagometer_gateway::server::{Server, processors};

use super::markdown::cell;
use crate::commands::described_metrics;
use crate::failure::Failure;

/// A gateway that everyone on this machine may use, for a moment: on ports
/// that are free, with a thread of each kind.
const SETTINGS: &str = r#"
dev = true
servers.listen = ["tcp://127.0.0.1:0"]
clients.listen = ["tcp://127.0.0.1:0"]
clients.wait_for_owner = false
web.listen = "127.0.0.1:0"
threads.connections = 1
"#;

/// Values of a label beyond which it is said only how they differ.
const VALUES_AT_MOST: usize = 40;

/// Names by which a label's values are the machine's own.
const UNLISTED: &[&str] = &["loop", "scenario"];

/// The whole page.
pub(super) fn page() -> Result<String, Failure> {
    let mut text = "# Metrics\n\n".to_owned();
    text.push_str(
        "What Prometheus is answered, in its own words. `process_*` are those of Prometheus's \
         client libraries.\n\n## The gateway\n\nAt `/metrics` of the address under `[web]`.\n\n",
    );
    table(&mut text, &of_gateway()?);
    text.push_str("\n## A world\n\nAt `/metrics` of `lagometer world --export`.\n\n");
    let of_world = described_metrics()
        .map_err(|why| Failure::Environment(format!("the world's metrics: {why}")))?;
    table(&mut text, &of_world);
    Ok(text)
}

/// What a gateway answers that has served nobody yet.
fn of_gateway() -> Result<String, Failure> {
    let config = FileConfig::parse(
        "the settings of a gateway that is asked for its metrics",
        SETTINGS,
    )
    .map_err(Failure::input)?
    .resolve(processors())
    .map_err(Failure::input)?;
    let server = Server::start(config).map_err(failed)?;
    let answer = match server.web() {
        Some(at) => lagometer_web::scrape::fetch(at).map_err(failed),
        None => Err(failed("it answers nowhere")),
    };
    server.handle().drain();
    server.join().map_err(failed)?;
    answer
}

fn failed(why: impl std::fmt::Display) -> Failure {
    Failure::Environment(format!("the metrics of a gateway on loopback: {why}"))
}

/// A row for each family of an answer in Prometheus's text format.
fn table(text: &mut String, answer: &str) {
    text.push_str("| metric | type | labels | is |\n| --- | --- | --- | --- |\n");
    let lines = || answer.lines().map(str::trim_end);
    for line in lines() {
        let Some((name, help)) = line
            .strip_prefix("# HELP ")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        let kind = lines()
            .find_map(|line| line.strip_prefix(&format!("# TYPE {name} ")))
            .unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{name}` | {kind} | {} | {} |",
            labels(name, answer),
            cell(help)
        );
    }
}

/// The labels of a family with the values they take.
fn labels(name: &str, answer: &str) -> String {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let samples = answer
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.split_once('{'));
    for (suffix, rest) in samples {
        if !["", "_bucket"].contains(&suffix) {
            continue;
        }
        let inside = rest.split_once('}').map_or("", |(inside, _)| inside);
        for (label, value) in inside.split(',').filter_map(|pair| pair.split_once('=')) {
            values
                .entry(label)
                .or_default()
                .insert(value.trim_matches('"'));
        }
    }
    let listed = values.into_iter().filter(|(label, _)| *label != "le");
    let listed = listed.map(|(label, values)| {
        if UNLISTED.contains(&label) || values.len() > VALUES_AT_MOST {
            return format!("`{label}`");
        }
        let values: Vec<String> = values.iter().map(|it| format!("`{it}`")).collect();
        format!("`{label}`: {}", values.join(", "))
    });
    listed.collect::<Vec<_>>().join("; ")
}
