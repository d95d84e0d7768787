//! Worlds with few players and with many, through the binary: one after the
//! other, to one table, one document and one page.

mod small_world;

use std::process::{Command, Output};

use serde_json::Value;

use small_world::SMALL_WORLD;

/// A scenario of its own in a folder that is gone afterwards.
struct ScenarioFolder {
    folder: tempfile::TempDir,
    scenario: String,
}

impl ScenarioFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.toml");
        std::fs::write(&path, SMALL_WORLD).unwrap();
        let scenario = path.to_str().unwrap().to_owned();
        Self { folder, scenario }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Plays the scenario and reads the document.
    fn play(&self, arguments: &[&str], document: &str) -> (Output, Value) {
        let json = self.file(document);
        let mut all = vec!["world", &self.scenario, "--json", &json];
        all.extend(arguments);
        let output = lagometer(&all);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let document = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        (output, document)
    }
}

fn lagometer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(arguments)
        .output()
        .unwrap()
}

fn asked(document: &Value) -> Vec<u64> {
    let worlds = document["worlds"].as_array().unwrap();
    worlds
        .iter()
        .map(|world| world["players"]["asked"].as_u64().unwrap())
        .collect()
}

#[test]
fn each_number_of_players_has_its_row_and_its_mark() {
    let folder = ScenarioFolder::new();
    let page = folder.file("page.html");
    let arguments = ["--players", "8,4", "--html", &page];
    let (output, document) = folder.play(&arguments, "found.json");
    // From few to many, each on a gateway of its own.
    assert_eq!(asked(&document), [4, 8]);
    assert_eq!(document["experiment"]["players"], serde_json::json!([4, 8]));
    for world in document["worlds"].as_array().unwrap() {
        assert_eq!(world["gateway"], "own");
    }
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for word in ["players", "sustained", "missed", "generator"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let verdict = document["verdict"].as_str().unwrap();
    assert!(table.contains(&verdict[..20]), "{verdict}: {table}");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Where it saturates"));
    assert!(html.contains("frames missed"));
}

/// The same two in virtual time, and set beside themselves.
#[test]
fn two_curves_are_compared_number_by_number() {
    let folder = ScenarioFolder::new();
    let one = ["--players", "2,4", "--testbed", "sim", "--no-html"];
    let other = ["--players", "4,8", "--testbed", "sim", "--no-html"];
    let (_, document) = folder.play(&one, "one.json");
    assert_eq!(asked(&document), [2, 4]);
    let verdict = document["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("It does not saturate up to 4"),
        "{verdict}"
    );
    folder.play(&other, "other.json");
    let page = folder.file("pair.html");
    let (before, after) = (folder.file("one.json"), folder.file("other.json"));
    let output = lagometer(&["compare", &before, &after, "--html", &page]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let row = |players: &str| {
        let found = table
            .lines()
            .find(|line| line.trim_start().starts_with(players));
        found.unwrap_or_else(|| panic!("no row for {players}: {table}"))
    };
    assert!(row("4 players").contains("one"), "{table}");
    assert!(table.contains("only in one: 2 players"), "{table}");
    assert!(table.contains("only in other: 8 players"), "{table}");
    let html = std::fs::read_to_string(page).unwrap();
    // In the charts of both together each has two marks, as in its own.
    let beside = html.split("id=\"beside\"").nth(1).unwrap();
    let beside = beside.split("</section>").next().unwrap();
    let charts = beside.matches("class=\"by-players\"").count();
    assert!(charts >= 5, "{charts}");
    assert_eq!(beside.matches("class=\"step ").count(), 4 * charts);
}

#[test]
fn what_cannot_be_climbed_is_said_in_one_line() {
    for (arguments, expected) in [
        (
            &["world", "single", "--players", "4,0"][..],
            "`players` is 0",
        ),
        (
            &["world", "single", "--until-saturated", "--testbed", "sim"],
            "cannot be used with",
        ),
    ] {
        let output = lagometer(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}
