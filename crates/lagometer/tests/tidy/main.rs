//! The house's style, as a test: what we say of our own code is checked here.
//!
//! Each rule names the file and line that breaks it and why the rule exists.

mod attacks;
#[cfg(unix)]
mod failed;
mod fractions;
mod tree;
mod words;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines after which a file holds two ideas.
const LINES_AT_MOST: usize = 500;

/// A head shorter than this, in bytes, says no more than the name of its file.
const SHORTEST_HEAD: usize = 24;

/// Where sources are.
const OURS: [&str; 5] = ["crates", "bench", "book", "examples", "fuzz"];

/// Files that may ask the operating system for the time: the binary, which
/// stands outside all logic, the crates that live in real time, the one place
/// where a library insists on an origin, and programs that measure.
const CLOCK_PLACES: &[&str] = &[
    "crates/lagometer/",
    "crates/units/src/clock.rs",
    "crates/capture/src/log.rs",
    "crates/emu/",
    "crates/platform/",
    "crates/socket/",
    "crates/lab/src/emu",
    "crates/lab/src/live",
    "crates/lab/src/net",
    "crates/testbed/src/emulated.rs",
    "crates/remote/",
    "crates/guest/",
    "crates/cluster/",
    "crates/distributed/src/nats",
    "crates/nats/",
    "crates/instruments/",
    "crates/gateway/src/server",
    "crates/gateway/tests/attacks/rates.rs",
    "crates/gateway/tests/before_login.rs",
    "crates/gateway/tests/kcp_unproven.rs",
    "crates/gateway/tests/wires.rs",
    "crates/client/src/blocking",
    "crates/client/src/swarm",
    "crates/native/tests/",
    "crates/web/",
    "crates/world/src/driver/real",
    "crates/transport/src/origin.rs",
    "/benches/",
    "crates/kcp-oracle/",
];

/// Words by which a program asks for the time.
const CLOCKS: &[&str] = &[
    "Instant::now(",
    "SystemTime::now(",
    "Clock::start(",
    "thread::sleep(",
];

/// Words by which a program draws randomness that no seed governs.
const UNSEEDED: &[&str] = &[
    "thread_rng(",
    "rand::rng(",
    "rand::random(",
    "from_os_rng(",
    "OsRng",
    "getrandom::",
    "SystemRandom",
];

/// The places that draw secrets and nonces, which must follow from no seed,
/// and the one where a library insists on the system's randomness and the
/// result is held to one size.
const UNFORESEEABLE_PLACES: &[&str] = &[
    "crates/remote/src/randomness.rs",
    "crates/gateway/src/server/randomness.rs",
    "crates/transport/src/webrtc/dtls.rs",
    "crates/gateway/src/server/stream_transport/kcp/cookie.rs",
];

/// Collections whose order differs from run to run.
const UNORDERED: &[&str] = &["HashMap", "HashSet", "RandomState"];

/// Tests of results that have no order, against a library that speaks in hash
/// maps.
const UNORDERED_PLACES: &[&str] = &["crates/protocol/tests/reference/"];

/// Leftovers that no commit carries.
const LEFTOVERS: &[&str] = &["todo!(", "unimplemented!(", "dbg!(", "FIXME", "XXX"];

/// Words by which a library would print.
const PRINTING: &[&str] = &["println!(", "eprintln!(", "print!(", "eprint!("];

#[test]
fn files_are_short() {
    check_in(&OURS, is_short);
}

#[test]
fn modules_say_what_they_are_for() {
    check_in(&OURS, has_a_head);
}

#[test]
fn clocks_stay_at_the_rim() {
    check(asks_no_clock);
}

#[test]
fn randomness_comes_from_seeds() {
    check(draws_from_seeds);
}

#[test]
fn order_never_depends_on_a_hash() {
    check(has_an_order);
}

#[test]
fn nothing_is_left_over() {
    check(is_finished);
}

#[test]
fn libraries_do_not_print() {
    check(prints_nothing);
}

/// Each rule finds a file that breaks it, and nothing in one that does not.
#[test]
fn rules_find_what_breaks_them() {
    let long = format!("//! Long.\n{}", "\n".repeat(LINES_AT_MOST));
    let cases: [(Rule, &str); 7] = [
        (is_short, &long),
        (has_a_head, "use std::fs;\n"),
        (asks_no_clock, "let now = Instant::now();\n"),
        (draws_from_seeds, "let mut random = rand::rng();\n"),
        (has_an_order, "use std::collections::HashMap;\n"),
        (is_finished, "todo!()\n"),
        (prints_nothing, "println!(\"{x}\");\n"),
    ];
    for (rule, broken) in cases {
        let found = |text: &str| {
            let file = SourceFile {
                path: "crates/link/src/sample.rs".to_owned(),
                text: text.to_owned(),
            };
            let mut problems = Problems::default();
            rule(&file, &mut problems);
            problems.found.len()
        };
        assert_eq!(found(broken), 1, "{broken:.60}");
        assert_eq!(found("//! A module that has a head.\n\nfn one() {}\n"), 0);
    }
}

/// What a source file must hold to, each for itself.
type Rule = fn(&SourceFile, &mut Problems);

fn is_short(file: &SourceFile, problems: &mut Problems) {
    let lines = file.text.lines().count();
    if lines > LINES_AT_MOST {
        problems.push(
            1,
            format!("{lines} lines, more than {LINES_AT_MOST}: does it hold two ideas?"),
        );
    }
}

/// Unit tests in a file of their own need none: they are of the module they test.
fn has_a_head(file: &SourceFile, problems: &mut Problems) {
    let unit_tests = file.path.ends_with("/tests.rs");
    let head = file.text.trim_start().strip_prefix("//!");
    let is_long_enough = |head: &str| head.lines().next().unwrap_or_default().len() > SHORTEST_HEAD;
    if !unit_tests && !head.is_some_and(is_long_enough) {
        problems.push(
            1,
            "does not open with `//!`: what it is for and how it fits".into(),
        );
    }
}

fn asks_no_clock(file: &SourceFile, problems: &mut Problems) {
    if !CLOCK_PLACES.iter().any(|place| file.path.contains(place)) {
        problems.forbid(file, CLOCKS, "logic is handed the time");
    }
}

fn draws_from_seeds(file: &SourceFile, problems: &mut Problems) {
    if !UNFORESEEABLE_PLACES.contains(&file.path.as_str()) {
        problems.forbid(file, UNSEEDED, "same seed, same bytes");
    }
}

fn has_an_order(file: &SourceFile, problems: &mut Problems) {
    if !UNORDERED_PLACES
        .iter()
        .any(|place| file.path.contains(place))
    {
        problems.forbid(file, UNORDERED, "use BTreeMap, or a Vec in order");
    }
}

fn is_finished(file: &SourceFile, problems: &mut Problems) {
    problems.forbid(file, LEFTOVERS, "finish it or leave it out");
}

fn prints_nothing(file: &SourceFile, problems: &mut Problems) {
    let library = file.path.contains("/src/") && !file.path.starts_with("crates/lagometer/");
    if library && !file.path.ends_with("build.rs") {
        problems.forbid(file, PRINTING, "only the binary prints");
    }
}

#[test]
fn every_data_file_is_built_in() {
    let networks = lagometer_link::catalogue::names().collect::<Vec<_>>();
    let scenarios = lagometer_world::BUILT_IN.iter().map(|(name, _)| *name);
    let mut experiments = lagometer_lab::catalogue::names();
    experiments.extend(scenarios);
    let mut missing = String::new();
    for (folder, known) in [("networks", networks), ("experiments", experiments)] {
        for path in files_below(&root().join(folder), "toml") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if !known.contains(&name.as_str()) {
                let _ = writeln!(
                    missing,
                    "{folder}/{name}.toml is in no catalogue: dead file"
                );
            }
        }
    }
    assert!(missing.is_empty(), "{missing}");
}

#[test]
fn every_transport_is_explained() {
    let page = fs::read_to_string(root().join("docs/transports.md")).unwrap();
    // Of the three presets of a family the page speaks together.
    let kinds = ["-default", "-game", "-tuned"];
    let family = |name: &'static str| kinds.iter().find_map(|kind| name.strip_suffix(kind));
    let missing: Vec<&str> = lagometer_socket::names()
        .filter(|name| {
            let ways = [Some(*name), family(name)].into_iter().flatten();
            !ways
                .into_iter()
                .any(|way| page.contains(&format!("`{way}`")))
        })
        .collect();
    assert!(
        missing.is_empty(),
        "docs/transports.md does not speak of {missing:?}"
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = root();
    let mut broken = String::new();
    for path in files_below(&root, "md") {
        let text = fs::read_to_string(&path).unwrap();
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            // What the site's table of contents has of the reference is written
            // when the site is built, which follows its links.
            let is_made = path.ends_with("docs/SUMMARY.md") && file.starts_with("reference/");
            if file.is_empty() || file.contains("://") || is_made {
                continue;
            }
            if !path.parent().unwrap().join(file).exists() {
                let _ = writeln!(broken, "{}: {target} leads nowhere", path.display());
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

/// The map names files in tables, those that stand beside the last one by
/// their name alone and those of the gateway from its source folder on.
#[test]
fn files_that_the_map_names_exist() {
    let root = root();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let mut folder = root.clone();
    let mut named = 0;
    let mut last_file: Option<PathBuf> = None;
    let parts: Vec<&str> = text.split('`').collect();
    for pair in parts.chunks_exact(2) {
        let [prose, name] = pair else { continue };
        // What stands in brackets behind a file is in it.
        if let Some(file) = last_file.take().filter(|_| *prose == " (") {
            let source = fs::read_to_string(&file).unwrap();
            assert!(
                source.contains(name),
                "ARCHITECTURE.md has `{name}` in {file:?}"
            );
        }
        let is_file = Path::new(name).extension().is_some_and(|end| end == "rs");
        if !is_file && !name.starts_with("crates/") {
            continue;
        }
        let places = [
            root.clone(),
            root.join("crates/gateway/src"),
            folder.clone(),
        ];
        let Some(found) = places
            .iter()
            .map(|place| place.join(name))
            .find(|at| at.exists())
        else {
            panic!("ARCHITECTURE.md names `{name}`, which is in none of {places:?}");
        };
        folder = found.parent().unwrap().to_owned();
        last_file = is_file.then_some(found);
        named += 1;
    }
    assert!(
        named > 30,
        "only {named} names were found: is the map written otherwise now?"
    );
}

/// How to add something is described by paths from the root on.
#[test]
fn paths_that_explain_how_to_extend_exist() {
    let root = root();
    let text = fs::read_to_string(root.join("docs/extending.md")).unwrap();
    let mut named = 0;
    for path in text.split('`').skip(1).step_by(2) {
        let is_ours = ["crates/", "deploy/"].iter().any(|it| path.starts_with(it));
        if is_ours {
            assert!(root.join(path).exists(), "docs/extending.md: `{path}`");
            named += 1;
        }
    }
    assert!(named > 30, "only {named} paths were found");
}

/// A source file of ours.
struct SourceFile {
    path: String,
    text: String,
}

/// What one rule found in one file.
#[derive(Default)]
struct Problems {
    found: Vec<(usize, String)>,
}

impl Problems {
    fn push(&mut self, line: usize, what: String) {
        self.found.push((line, what));
    }

    /// Forbids `words` outside comments.
    fn forbid(&mut self, file: &SourceFile, words: &[&str], why: &str) {
        for (index, line) in file.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(word) = words.iter().find(|word| code.contains(**word)) {
                self.push(index + 1, format!("`{word}`: {why}"));
            }
        }
    }
}

/// Runs a rule over every source file of the crates and fails with all it found.
fn check(rule: impl Fn(&SourceFile, &mut Problems)) {
    check_in(&["crates"], rule);
}

/// Runs a rule over every source file below `folders`, likewise.
fn check_in(folders: &[&str], rule: impl Fn(&SourceFile, &mut Problems)) {
    let root = root();
    let mut report = String::new();
    let paths = folders
        .iter()
        .flat_map(|folder| files_below(&root.join(folder), "rs"));
    for path in paths {
        let relative = path
            .strip_prefix(&root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if relative.starts_with("crates/lagometer/tests/tidy/") {
            continue;
        }
        let file = SourceFile {
            text: fs::read_to_string(&path).unwrap(),
            path: relative,
        };
        let mut problems = Problems::default();
        rule(&file, &mut problems);
        for (line, what) in problems.found {
            let _ = writeln!(report, "{}:{line}: {what}", file.path);
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Every file below `folder` with `extension`, in order, build output left out.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
