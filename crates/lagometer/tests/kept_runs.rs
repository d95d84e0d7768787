//! Runs that were kept: one held against an earlier one, as a CI service meets
//! it, and one played again from its bundle. Exit codes, lines on standard error,
//! and the files that are read elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the document of a short run over a lossy network as
/// `accepted.json`.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let project = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        // KCP without its fast mode is what a hasty change of settings makes.
        project.experiment("quick.toml", "interval = \"10 ms\"", "loss-5");
        project.experiment("slow.toml", "interval = \"200 ms\"", "loss-5");
        project.experiment("elsewhere.toml", "interval = \"10 ms\"", "loss-1");
        let output = project.run("quick.toml", &["--json", "accepted.json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        project
    }

    fn experiment(&self, file: &str, kcp: &str, network: &str) {
        let text = format!(
            "name = \"arena\"\nsummary = \"a gate\"\nnetwork = \"{network}\"\nfor = \"20 s\"\n\
             [workload.paced-echo]\nsize = \"200 B\"\ninterval = \"50 ms\"\n\
             [[lane]]\nname = \"game\"\ntransport = \"kcp\"\nsettings = {{ {kcp} }}\n"
        );
        fs::write(self.path(file), text).unwrap();
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn run(&self, experiment: &str, arguments: &[&str]) -> Output {
        let usual = ["run", experiment, "--seeds", "6", "--no-html"];
        self.lagometer(&[&usual, arguments].concat())
    }

    fn lagometer(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .current_dir(self.folder.path())
            .args(arguments)
            .output()
            .expect("the binary starts")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

const AGAINST: [&str; 3] = ["--baseline", "accepted.json", "--assert"];

#[test]
fn the_same_run_holds_against_itself() {
    let project = Project::new();
    let output = project.run("quick.toml", &AGAINST);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("against accepted.json: "), "{said}");
    assert!(!said.contains("does not hold"), "{said}");
}

#[test]
fn a_worse_run_fails_and_is_named_where_a_ci_service_looks() {
    let project = Project::new();
    let files = [
        "--junit",
        "gate.xml",
        "--summary",
        "gate.md",
        "--json",
        "slow.json",
    ];
    let output = project.run("slow.toml", &[&AGAINST[..], &files].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("does not hold: game: "), "{said}");
    let junit = text(&project.path("gate.xml"));
    assert!(
        junit.contains("classname=\"game\"") && junit.contains("<failure"),
        "{junit}"
    );
    assert!(text(&project.path("gate.md")).contains("| ❌ failed | game |"));
    // The run itself is kept, and documents give the same answer.
    let compared = project.lagometer(&["compare", "accepted.json", "slow.json", "--assert"]);
    assert_eq!(compared.status.code(), Some(1), "{}", stderr(&compared));
    // The other way round all is better but what it costs on the wire.
    let back = ["compare", "slow.json", "accepted.json", "--assert"];
    for (tolerance, code) in [("1 %", 1), ("20 %", 0)] {
        let compared = project.lagometer(&[&back[..], &["--tolerance", tolerance]].concat());
        assert_eq!(compared.status.code(), Some(code), "{}", stderr(&compared));
    }
}

#[test]
fn runs_beside_other_traffic_and_without_did_not_meet_the_same_conditions() {
    let project = Project::new();
    let crowd = "[[cross]]\nkind = \"constant\"\ndirection = \"down\"\nrate = \"100 kbit/s\"\n";
    let crowded = text(&project.path("quick.toml")) + crowd;
    fs::write(project.path("crowded.toml"), crowded).unwrap();
    let output = project.run("crowded.toml", &["--json", "crowded.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for (other, are_same) in [("accepted.json", true), ("crowded.json", false)] {
        let compared = project.lagometer(&["compare", "accepted.json", other]);
        let said = String::from_utf8_lossy(&compared.stdout).into_owned();
        let says = said.contains("Both runs met the same network conditions");
        assert_eq!(says, are_same, "{said}");
    }
}

#[test]
fn without_assert_a_worse_run_is_reported_and_not_failed() {
    let project = Project::new();
    let output = project.run("slow.toml", &AGAINST[..2]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("does not hold: game: "));
}

#[test]
fn what_is_no_baseline_is_refused_in_one_line() {
    let project = Project::new();
    fs::write(project.path("broken.json"), "{").unwrap();
    for (experiment, arguments, expected) in [
        ("elsewhere.toml", &AGAINST[..], "its network is loss-5"),
        ("quick.toml", &["--baseline", "broken.json"], "broken.json"),
        ("quick.toml", &["--baseline", "absent.json"], "absent.json"),
        (
            "quick.toml",
            &["--assert", "--tolerance", "2"],
            "--tolerance",
        ),
    ] {
        let output = project.run(experiment, arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_bundle_is_played_again_to_the_same_findings() {
    let project = Project::new();
    let output = project.run("quick.toml", &["--bundle", "run.zip", "--for", "10s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // It needs none of the files it was made of.
    fs::remove_file(project.path("quick.toml")).unwrap();
    let replay = [
        "replay",
        "run.zip",
        "--threads",
        "1",
        "--json",
        "again.json",
    ];
    let again = project.lagometer(&replay);
    let said = stderr(&again);
    assert_eq!(again.status.code(), Some(0), "{said}");
    assert!(said.contains("the same findings"), "{said}");
    assert!(project.path("again.json").exists());

    let bytes = fs::read(project.path("run.zip")).unwrap();
    fs::write(project.path("cut.zip"), &bytes[..bytes.len() / 2]).unwrap();
    let cut = project.lagometer(&["replay", "cut.zip"]);
    let said = stderr(&cut);
    assert_eq!(cut.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with("lagometer: cut.zip: is no bundle") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn what_is_not_the_same_twice_is_refused_before_it_is_played() {
    let project = Project::new();
    let output = project.run("quick.toml", &["--bundle", "run.zip", "--testbed", "emu"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--bundle is for `--testbed sim` and `--testbed kernel`"));
}

/// The study of 2015 offers its runs in bundles: a reader gets what it says by one command.
#[test]
fn the_bundles_of_the_study_of_2015_are_played_again() {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies/2015");
    let folder = tempfile::tempdir().unwrap();
    let mut replayed = 0;
    for entry in fs::read_dir(bundles).unwrap() {
        let bundle = entry.unwrap().path();
        if bundle.extension().is_none_or(|end| end != "bundle") {
            continue;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .current_dir(folder.path())
            .arg("replay")
            .arg(&bundle)
            .output()
            .expect("the binary starts");
        let name = bundle.display();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        replayed += 1;
    }
    assert!(replayed >= 4, "{replayed}");
}
