//! The field's words: those that were retired stay away, or grow fewer, and
//! those that are ours are in the glossary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::{files_below, root};

/// Where a word is looked for.
#[derive(Clone, Copy, PartialEq)]
enum Where {
    /// In code, its comments, and the documents.
    Anywhere,
    /// In code alone: it is an ordinary word elsewhere.
    InCode,
    /// As the whole name of a type or a module: it is an ordinary word within
    /// longer names.
    AsName,
}

use Where::{Anywhere, AsName, InCode};

/// Words that mean nothing to a network engineer, what to say instead, where,
/// and how often they are still there. The numbers only ever go down: lower
/// them with each word that goes. Several words that are one, as an identifier
/// or in a sentence, have a `_` between them.
///
/// What is left stands in documents and settings that are read by their former
/// names, in figures whose name is part of the format, or in what users read.
const RETIRED: &[(&str, &str, Where, usize)] = &[
    ("alone", "`SingleProcess`", AsName, 0),
    ("beat", "fan-out tick", InCode, 0),
    ("behind", "`ConflationBuffer`", AsName, 0),
    ("bell", "waker", InCode, 0),
    ("bend", "saturation, bottleneck", InCode, 4),
    ("books", "`AuditCounters`", InCode, 0),
    ("bury", "`reap_closed`", Anywhere, 0),
    ("carriage", "`LaneTransport`", InCode, 2),
    ("carrier", "`Encapsulation`, `StreamTransport`", InCode, 0),
    ("channel_side", "`ChannelManager`", InCode, 0),
    ("company", "`Coordination`", InCode, 0),
    ("connection_side", "`ConnectionManager`", InCode, 0),
    ("crew", "cluster", Anywhere, 0),
    ("custody", "authority", Anywhere, 0),
    ("deeds", "input digest", Anywhere, 0),
    ("door", "listener", InCode, 3),
    ("dress", "encapsulate", Anywhere, 0),
    ("ear", "reader, subscription", InCode, 0),
    ("far", "remote, server", AsName, 0),
    ("far_cpu", "`remote_cpu`", Anywhere, 7),
    ("far_end", "remote end", Anywhere, 1),
    ("far_machine", "remote machine", Anywhere, 0),
    ("far_side", "remote side, server", Anywhere, 0),
    ("fellow", "`ProcessStats`", Anywhere, 0),
    ("gatekeeper", "`AdmissionControl`", Anywhere, 0),
    ("hall", "`WorkerRegistry`", InCode, 0),
    ("hear", "receive, learn, read", Anywhere, 1),
    ("heard", "received, last seen", Anywhere, 5),
    ("knock", "hello", Anywhere, 0),
    ("ladder", "`CapacitySearch`", Anywhere, 0),
    (
        "ledger",
        "`AuthorityChecker`, `ReceiveTracker`",
        Anywhere,
        0,
    ),
    ("lane_stage", "`LaneStatus`", Anywhere, 0),
    ("look_over", "`check_timeouts`", Anywhere, 0),
    ("luggage", "`HandoverState`", Anywhere, 0),
    ("mind", "`BotBehavior`", InCode, 0),
    ("near", "local, client", AsName, 0),
    ("near_cpu", "`local_cpu`", Anywhere, 7),
    ("near_end", "local end", Anywhere, 0),
    ("near_machine", "local machine", Anywhere, 0),
    ("near_side", "local side, client", Anywhere, 0),
    ("obey", "`apply_input`", InCode, 0),
    ("pass", "`Permit`", AsName, 0),
    ("part", "`Shard`, `Fragment`", AsName, 1),
    ("path_place", "`PathSender`", Anywhere, 0),
    ("patience", "timeout", Anywhere, 0),
    ("people", "`ConnectionTable`", InCode, 2),
    ("person", "`ConnectionInfo`", Anywhere, 0),
    ("place", "`Placement`", AsName, 1),
    ("pupil", "`ServerPlayer`", Anywhere, 0),
    ("road", "path", InCode, 3),
    ("roll", "`WorkerRegistry`", AsName, 0),
    ("seat", "`WorkerSlot`, `SimConnection`", InCode, 1),
    ("sim_stage", "`SharedLinkSim`", Anywhere, 0),
    ("sit_down", "assign, take a slot", Anywhere, 0),
    ("slice", "`Shard`", AsName, 0),
    ("stage", "state, status", AsName, 0),
    ("stranger", "unauthenticated", Anywhere, 0),
    ("taking", "`GlobalOwnerBootstrap`", AsName, 0),
    ("tally", "`Stats`", Anywhere, 0),
    ("tell", "report, send, notify", InCode, 4),
    ("temper", "`BotConfig`", InCode, 2),
    ("told", "reported, sent, notified", InCode, 4),
    (
        "weather",
        "impairments; to users: network conditions",
        Anywhere,
        7,
    ),
    ("wires", "`ConnectionBackend`", InCode, 8),
    ("words", "messages, phrasing", AsName, 0),
];

/// Words that have a meaning of their own here.
const OURS: &[&str] = &[
    "Age of information",
    "Audit",
    "Authority",
    "Bottleneck",
    "Budget",
    "Bundle",
    "Burst",
    "Channel",
    "Client",
    "Coordinator",
    "Cross traffic",
    "Disturbance",
    "Document",
    "Edge",
    "Endpoint",
    "Entity",
    "Epoch",
    "Experiment",
    "Family",
    "Fan-out",
    "Fate",
    "Freeze",
    "GLOBAL",
    "Goodput",
    "Ground truth",
    "Guest",
    "Handover",
    "Home",
    "Impairments",
    "Instrument",
    "Interest",
    "Interpolation delay",
    "Lag",
    "Lag episode",
    "Lane",
    "Lead-in",
    "Lease",
    "Link",
    "Network",
    "Node",
    "Offer",
    "Outage",
    "Owner",
    "Placement",
    "Preset",
    "Recovery",
    "Regime",
    "Relay",
    "Remote end",
    "Replica",
    "Rollback",
    "Route",
    "Saturation",
    "Scenario",
    "Seed",
    "Shard",
    "Stall",
    "Testbed",
    "Tick",
    "Tier",
    "Trace",
    "Window",
    "Wire overhead",
    "Worker",
    "World",
];

#[test]
fn retired_words_do_not_return() {
    let counts = counts();
    let mut report = String::new();
    for (&(word, instead, _, at_most), found) in RETIRED.iter().zip(counts) {
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

/// How often each of [`RETIRED`] stands where it is looked for.
fn counts() -> Vec<usize> {
    let mut counter = Counter::new();
    let root = root();
    let below = |folders: &[&str], ends: &[&str]| -> Vec<PathBuf> {
        let places = folders.iter().map(|folder| root.join(folder));
        places
            .flat_map(|place| ends.iter().flat_map(move |end| files_below(&place, end)))
            .collect()
    };
    let folders = ["bench", "book", "crates", "examples", "fuzz"];
    for path in below(&folders, &["rs", "c", "h", "cpp", "js", "go"]) {
        if path.starts_with(root.join("crates/lagometer/tests/tidy")) {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            let code = line.split("//").next().unwrap_or_default();
            counter.count(line, &[Anywhere]);
            counter.count(code, &[InCode]);
            counter.count_name(code);
        }
    }
    let folders = [
        "bench",
        "deploy",
        "docs",
        "examples",
        "experiments",
        "networks",
        "prices",
        "schema",
    ];
    let at_the_root = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "README.md",
        "SECURITY.md",
    ];
    // The first schema's keys are what they were.
    let documents = below(&folders, &["md", "toml", "yaml", "yml", "json"])
        .into_iter()
        .filter(|path| !path.ends_with("schema/lagometer-1.json"));
    for path in at_the_root
        .iter()
        .map(|name| root.join(name))
        .chain(documents)
    {
        counter.count(&fs::read_to_string(&path).unwrap(), &[Anywhere]);
    }
    counter.found
}

/// Counts [`RETIRED`] in texts.
struct Counter {
    /// Which of them begin with a word.
    by_first: BTreeMap<&'static str, Vec<usize>>,
    found: Vec<usize>,
}

impl Counter {
    fn new() -> Self {
        let mut by_first: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, (word, ..)) in RETIRED.iter().enumerate() {
            let first = word.split('_').next().unwrap_or_default();
            by_first.entry(first).or_default().push(index);
        }
        Self {
            by_first,
            found: vec![0; RETIRED.len()],
        }
    }

    /// Whether what stands at the beginning is about telling things apart, which is no
    /// other word for sending.
    fn is_distinction(words: &[Word]) -> bool {
        let is_verb = ["tell", "told"].contains(&&words[0].letters[..]);
        is_verb && words.iter().skip(1).take(4).any(|it| it.letters == "apart")
    }

    /// Counts what is looked for in `places`, within identifiers too: `RoadFigures`
    /// and `road_ms` have the word `road`, and so have several roads.
    fn count(&mut self, text: &str, places: &[Where]) {
        let words = words(text);
        for at in 0..words.len() {
            if Self::is_distinction(&words[at..]) {
                continue;
            }
            for first in [&words[at].letters[..], singular(&words[at].letters)] {
                for &index in self.by_first.get(first).into_iter().flatten() {
                    let (word, _, place, _) = RETIRED[index];
                    if places.contains(&place) && stands_at(word, &words[at..]) {
                        self.found[index] += 1;
                    }
                }
                if !words[at].letters.ends_with('s') {
                    break;
                }
            }
        }
    }

    /// Counts what a line declares, where it declares a type or a module.
    fn count_name(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let declares = ["enum", "mod", "struct", "trait", "type"];
        if !words.any(|word| declares.contains(&word)) {
            return;
        }
        let name = words.next().unwrap_or_default();
        let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let name = name[..end.unwrap_or(name.len())].to_lowercase();
        for (found, (word, _, place, _)) in self.found.iter_mut().zip(RETIRED) {
            *found += usize::from(*place == AsName && *word == name);
        }
    }
}

/// A word of a text.
struct Word {
    /// In small letters.
    letters: String,
    /// Whether it belongs to the word before: nothing, a `_`, a hyphen or white
    /// space is between them.
    is_joined: bool,
}

/// The words of a text, those within its identifiers too.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut between = None;
    let mut before = ' ';
    for letter in text.chars() {
        if !letter.is_ascii_alphabetic() {
            let joins = letter.is_whitespace() || letter == '_' || letter == '-';
            between = Some(between.unwrap_or(true) && joins);
        } else if between.is_some()
            || words.is_empty()
            || letter.is_ascii_uppercase() && before.is_ascii_lowercase()
        {
            words.push(Word {
                letters: letter.to_ascii_lowercase().to_string(),
                is_joined: between.take().unwrap_or(true),
            });
        } else if let Some(word) = words.last_mut() {
            word.letters.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    words
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}

/// Whether a retired word, or several joined by `_`, is what `words` begin with.
fn stands_at(retired: &str, words: &[Word]) -> bool {
    let is =
        |wanted: &str, word: &Word| word.letters == wanted || singular(&word.letters) == wanted;
    let mut count = 0;
    let agree = retired.split('_').zip(words).all(|(wanted, word)| {
        count += 1;
        is(wanted, word) && (count == 1 || word.is_joined)
    });
    agree && count == retired.split('_').count()
}

#[test]
fn words_are_found_within_identifiers() {
    let found = |text: &str, place: Where, word: &str| {
        let mut counter = Counter::new();
        counter.count(text, &[place]);
        counter.count_name(text);
        let index = RETIRED.iter().position(|(known, ..)| *known == word);
        counter.found[index.unwrap()]
    };
    let roads = "RoadFigures road_ms roads broad ROAD crossroad";
    assert_eq!(found(roads, InCode, "road"), 4);
    let ends = "far_end FarEnds FAR_END the far end, the far-end; far, end; far_ended";
    assert_eq!(found(ends, Anywhere, "far_end"), 5);
    assert_eq!(found("pub(crate) struct Pass<'a> {", InCode, "pass"), 1);
    assert_eq!(found("struct PassRate(f64); fn pass()", InCode, "pass"), 0);
}
