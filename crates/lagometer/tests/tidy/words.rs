//! The field's words: those that were retired stay away, or grow fewer, and
//! those that are ours are in the glossary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::{files_below, root};

/// Where a word is looked for.
#[derive(Clone, Copy, PartialEq)]
enum Where {
    /// In code, its comments, and the documents.
    Anywhere,
    /// In code alone: it is an ordinary word elsewhere.
    InCode,
}

use Where::{Anywhere, InCode};

/// Words that mean nothing to a network engineer, what to say instead, where,
/// and how often they are still there. The numbers only ever go down: lower
/// them with each word that goes.
const RETIRED: &[(&str, &str, Where, usize)] = &[
    ("beat", "fan-out tick", InCode, 0),
    ("bell", "waker", InCode, 0),
    ("bend", "saturation, bottleneck", InCode, 4),
    ("bury", "`reap_closed`", InCode, 0),
    ("carriage", "`LaneTransport`", InCode, 2),
    ("channelside", "`ChannelManager`", Anywhere, 0),
    ("company", "`Coordination`", InCode, 0),
    ("connectionside", "`ConnectionManager`", Anywhere, 0),
    ("crew", "cluster", Anywhere, 0),
    ("custody", "authority", Anywhere, 0),
    ("deeds", "input digest", Anywhere, 0),
    ("door", "listener", InCode, 3),
    ("dress", "encapsulate", InCode, 0),
    ("ear", "reader, subscription", InCode, 0),
    ("fellow", "`ProcessStats`", Anywhere, 0),
    ("gatekeeper", "`AdmissionControl`", Anywhere, 0),
    ("hall", "`WorkerRegistry`", InCode, 0),
    ("hear", "receive, read", InCode, 4),
    ("heard", "received, last seen", InCode, 3),
    ("knock", "hello", InCode, 0),
    ("ladder", "`CapacitySearch`", InCode, 0),
    ("ledger", "`AuthorityChecker`, `ReceiveTracker`", InCode, 0),
    ("luggage", "`HandoverState`", Anywhere, 0),
    ("obey", "`apply_input`", InCode, 0),
    ("patience", "timeout", Anywhere, 1),
    ("people", "`ConnectionTable`", InCode, 2),
    ("person", "`ConnectionInfo`", InCode, 0),
    ("pupil", "`ServerPlayer`", Anywhere, 0),
    ("road", "path", InCode, 3),
    ("seat", "`WorkerSlot`, `SimConnection`", InCode, 1),
    ("stranger", "unauthenticated", InCode, 2),
    ("tally", "`Stats`", InCode, 0),
    ("tell", "report, send, notify", InCode, 10),
    ("temper", "`BotConfig`", InCode, 2),
    ("told", "reported, sent, notified", InCode, 31),
    (
        "weather",
        "impairments; to users: network conditions",
        InCode,
        3,
    ),
    ("wires", "`ConnectionBackend`", InCode, 6),
];

/// Words that have a meaning of their own here.
const OURS: &[&str] = &[
    "Age of information",
    "Authority",
    "Bottleneck",
    "Budget",
    "Burst",
    "Channel",
    "Client",
    "Disturbance",
    "Document",
    "Endpoint",
    "Entity",
    "Experiment",
    "Fate",
    "Freeze",
    "Ground truth",
    "Guest",
    "Handover",
    "Impairments",
    "Instrument",
    "Interest",
    "Lag episode",
    "Lane",
    "Lead-in",
    "Link",
    "Network",
    "Outage",
    "Preset",
    "Recovery",
    "Regime",
    "Remote end",
    "Saturation",
    "Scenario",
    "Seed",
    "Stall",
    "Testbed",
    "Tick",
    "Tier",
    "Trace",
    "Window",
    "Wire overhead",
    "World",
];

#[test]
fn retired_words_do_not_return() {
    let (code, all) = counts();
    let mut report = String::new();
    for &(word, instead, place, at_most) in RETIRED {
        let counts = if place == InCode { &code } else { &all };
        let found = counts.get(word).copied().unwrap_or_default();
        if found > at_most {
            let _ = writeln!(
                report,
                "`{word}` stands {found} times, {at_most} before: say {instead}"
            );
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn words_of_ours_are_in_the_glossary_in_order() {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let entries: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("**")?.split_once("**"))
        .map(|(word, _)| word)
        .collect();
    for word in OURS {
        assert!(entries.contains(word), "docs/glossary.md lacks **{word}**");
    }
    let folded: Vec<String> = entries.iter().map(|word| word.to_lowercase()).collect();
    let mut sorted = folded.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(folded, sorted, "docs/glossary.md is not in order");
}

/// How often each word stands in code, and anywhere.
fn counts() -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
    let (mut code, mut all) = (BTreeMap::new(), BTreeMap::new());
    let root = root();
    for path in files_below(&root.join("crates"), "rs") {
        if path.starts_with(root.join("crates/lagometer/tests/tidy")) {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            count(&mut all, line);
            count(&mut code, line.split("//").next().unwrap_or_default());
        }
    }
    for folder in ["docs", "experiments", "networks", "deploy"] {
        for end in ["md", "toml"] {
            for path in files_below(&root.join(folder), end) {
                count(&mut all, &fs::read_to_string(&path).unwrap());
            }
        }
    }
    (code, all)
}

/// Counts the words of a text, those of identifiers too: `RoadFigures` and
/// `road_ms` have the word `road`, and so have several roads.
fn count(counts: &mut BTreeMap<String, usize>, text: &str) {
    for run in text.split(|letter: char| !letter.is_ascii_alphabetic()) {
        let mut words = vec![run.to_lowercase()];
        let mut parts = split_at_capitals(run);
        if parts.len() > 1 {
            words.append(&mut parts);
        }
        for word in words {
            let singular = word.strip_suffix('s').unwrap_or(&word);
            if singular != word && RETIRED.iter().any(|(known, ..)| *known == singular) {
                *counts.entry(singular.to_owned()).or_default() += 1;
            } else {
                *counts.entry(word).or_default() += 1;
            }
        }
    }
}

fn split_at_capitals(run: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut was_small = true;
    for letter in run.chars() {
        if letter.is_ascii_uppercase() && was_small || parts.is_empty() {
            parts.push(String::new());
        }
        was_small = letter.is_ascii_lowercase();
        if let Some(part) = parts.last_mut() {
            part.push(letter.to_ascii_lowercase());
        }
    }
    parts
}

#[test]
fn words_are_found_within_identifiers() {
    let mut counts = BTreeMap::new();
    count(
        &mut counts,
        "RoadFigures road_ms roads broad ROAD crossroad",
    );
    assert_eq!(counts.get("road"), Some(&4));
}
