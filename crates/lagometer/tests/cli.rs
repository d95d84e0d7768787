//! The binary as a user meets it: what it prints, writes and exits with.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn lagometer() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.env_remove("COLUMNS").env("NO_COLOR", "1");
    command
}

fn run(arguments: &[&str]) -> Output {
    lagometer()
        .arg("run")
        .args(arguments)
        .output()
        .expect("the binary starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The document of a short run with these further arguments.
fn document(arguments: &[&str]) -> Value {
    let short = ["--for", "20s", "--no-html", "--json", "-"];
    let one: &[&str] = if arguments.contains(&"--seeds") {
        &[]
    } else {
        &["--seeds", "1"]
    };
    let output = run(&[&short[..], one, arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("standard output is the document alone")
}

/// What of a document its seed governs.
fn findings(mut document: Value) -> Value {
    for volatile in ["started", "wall_s", "host"] {
        document.as_object_mut().unwrap().remove(volatile);
    }
    for lane in document["lanes"].as_array_mut().unwrap() {
        lane.as_object_mut().unwrap().remove("cpu_ns_per_message");
    }
    document
}

#[test]
fn a_run_prints_a_table_and_writes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = lagometer()
        .current_dir(folder.path())
        .args(["run", "--for", "20s", "--lanes", "udp,kcp,enet"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    for lane in ["udp", "kcp", "enet"] {
        assert!(table.contains(lane), "{table}");
    }
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    assert!(
        !table.contains('\u{1b}'),
        "no colour where there is no terminal"
    );
    let page = fs::read_to_string(folder.path().join("lagometer-pvp-500.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn the_document_fits_the_schema() {
    let schema = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/lagometer-2.json"),
    )
    .unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for network in ["busy-wifi", "home-film"] {
        let lanes = ["--lanes", "udp,kcp,tcp-cubic,quic", "--network", network];
        let errors: Vec<String> = validator
            .iter_errors(&document(&lanes))
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{network}: {errors:?}");
    }
}

#[test]
fn a_download_beside_the_game_is_in_the_table_and_drawn_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = lagometer()
        .current_dir(folder.path())
        .args(["run", "--for", "10s", "--seeds", "1", "--lanes", "udp,kcp"])
        .args(["--network", "home-film", "--html", "page.html"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.matches(" film ").count(), 2, "{table}");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("The queue, and who filled it"));
    assert!(page.matches("<svg class=\"queue\"").count() >= 2);
}

#[test]
fn a_network_with_other_traffic_is_refused_where_it_cannot_be_played() {
    for arguments in [
        &["shape", "home-film", "--", "true"][..],
        &["world", "--network", "home-film-fq", "--players", "2"],
    ] {
        let output = lagometer().args(arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.contains("other traffic"), "{arguments:?}: {said}");
    }
}

#[test]
fn one_seed_gives_one_document_whatever_the_threads() {
    let every_lane = findings(document(&["--threads", "1"]));
    let again = findings(document(&["--threads", "1"]));
    let spread_out = findings(document(&["--threads", "4"]));
    assert_eq!(every_lane, again);
    assert_eq!(every_lane, spread_out);
    let other_seed = findings(document(&["--threads", "4", "--seed", "2"]));
    assert_ne!(every_lane["lanes"], other_seed["lanes"]);
}

#[test]
fn a_lane_is_the_same_whatever_other_lanes_are_played() {
    let together = document(&["--lanes", "udp,kcp,enet,quic"]);
    for lane in ["udp", "kcp", "enet", "quic"] {
        let alone = document(&["--lanes", lane]);
        let among = together["lanes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|found| found["lane"] == lane)
            .unwrap();
        assert_eq!(&alone["lanes"][0], among, "{lane}");
    }
}

#[test]
fn several_seeds_come_with_their_figures() {
    let document = document(&["--lanes", "udp,kcp", "--seeds", "3", "--seed", "7"]);
    assert_eq!(document["seeds"], serde_json::json!([7, 8, 9]));
    for lane in document["lanes"].as_array().unwrap() {
        let seeds: Vec<u64> = lane["per_seed"]
            .as_array()
            .unwrap()
            .iter()
            .map(|figures| figures["seed"].as_u64().unwrap())
            .collect();
        assert_eq!(seeds, [7, 8, 9]);
    }
}

#[test]
fn without_a_number_of_seeds_as_many_are_played_as_distinguish_lanes() {
    let play = |arguments: &[&str]| -> Value {
        let short = ["--no-html", "--json", "-", "--lanes", "udp,kcp"];
        let output = run(&[&short[..], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("seeds (1 to "),
            "{}",
            stderr(&output)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let usual = play(&[]);
    assert_eq!(usual["seeds"].as_array().unwrap().len(), 20);
    assert_eq!(usual["experiment"]["for"], "30 s");
    let longer = play(&["--for", "100s"]);
    assert_eq!(longer["seeds"].as_array().unwrap().len(), 6);
    for document in [usual, longer] {
        for lane in document["lanes"].as_array().unwrap() {
            assert_eq!(lane["resamples"]["unit"], "seed");
        }
        // Nobody loses half of everything on a busy Wi-Fi.
        let budgets = document["budgets"].as_array().unwrap();
        assert!(budgets.iter().all(|budget| budget["low"].is_number()));
    }
}

#[test]
fn a_missed_budget_fails_only_when_asserted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strict.toml");
    fs::write(
        &path,
        "name = \"strict\"\nsummary = \"a budget nobody meets\"\nnetwork = \"loss-20\"\n\
         for = \"20 s\"\nlanes = [\"udp\"]\n\n[workload.paced-echo]\nsize = \"500 B\"\n\
         interval = \"50 ms\"\n\n[[budget]]\nmetric = \"within 150 ms\"\nat_least = \"100 %\"\n",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(run(&[path, "--no-html"]).status.code(), Some(0));
    assert_eq!(run(&[path, "--no-html", "--assert"]).status.code(), Some(1));
}

#[test]
fn wrong_input_is_answered_in_one_line_with_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let head = "name = \"x\"\nsummary = \"x\"\nnetwork = \"perfect\"\n";
    let workload = "[workload.paced-echo]\nsize = \"500 B\"\ninterval = \"50 ms\"\n";
    let cases = [
        (vec!["pvp-5000".to_owned()], "did you mean `pvp-500`"),
        (
            vec!["--lanes".to_owned(), "kpc".to_owned()],
            "did you mean `kcp`",
        ),
        (
            vec!["--network".to_owned(), "4g-movin".to_owned()],
            "did you mean `4g-moving`",
        ),
        (
            vec![folder.path().join("none.toml").to_str().unwrap().to_owned()],
            "cannot be read",
        ),
        (
            vec![file(
                "a.toml",
                &format!("{head}lanes = [\"udp\"]\nforr = \"1 s\"\n{workload}"),
            )],
            "a.toml:5: ",
        ),
        (
            vec![file(
                "b.toml",
                &format!(
                    "{head}lanes = [\"udp\"]\n[workload.paced-echo]\nsize = \"500 parsec\"\ninterval = \"50 ms\"\n"
                ),
            )],
            "b.toml:6: ",
        ),
        (
            vec![file(
                "c.toml",
                &format!(
                    "{head}lanes = [\"udp\"]\n[workload.paced-echo]\nsize = \"1 B\"\ninterval = \"50 ms\"\n"
                ),
            )],
            "c.toml:6: ",
        ),
        (vec![file("d.toml", "this is no TOML")], "d.toml:1: "),
        (
            vec![file("e.toml", &format!("{head}{workload}"))],
            "name at least one lane",
        ),
        (
            vec![file(
                "f.toml",
                &format!(
                    "{head}{workload}[[lane]]\ntransport = \"kcp\"\nsettings = {{ windoww = 3 }}\n"
                ),
            )],
            "windoww",
        ),
    ];
    for (mut arguments, expected) in cases {
        arguments.push("--no-html".to_owned());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = run(&arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn no_command_writes_over_what_it_reads_or_one_result_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (document, bundle, new) = (at("run.json"), at("run.lagometer"), at("new"));
    let short = ["--for", "1s", "--seeds", "1", "--lanes", "udp", "--no-html"];
    let files = ["--json", &document, "--bundle", &bundle];
    let output = run(&[&short[..], &files].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let kept = [&document, &bundle].map(|path| fs::read(path).unwrap());
    let commands: [&[&str]; 5] = [
        &["report", &document, "--html", &document],
        &["report", &document, "--html", &new, "--plot", &new],
        &["replay", &bundle, "--json", &bundle],
        &["world", "single", "--json", &new, "--html", &new],
        &["speed", "--json", &new, "--html", &new],
    ];
    for command in commands {
        let output = lagometer().args(command).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.contains("name another file"), "{command:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert!(!Path::new(&new).exists());
    assert_eq!(
        kept,
        [&document, &bundle].map(|path| fs::read(path).unwrap())
    );
}

#[test]
fn a_transport_that_cannot_run_here_is_said_and_shown() {
    let output = run(&[
        "2015-a3-udt-stream-kcp",
        "--for",
        "20s",
        "--no-html",
        "--json",
        "-",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("udt-stream owns its sockets"),
        "{}",
        stderr(&output)
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lanes = document["lanes"].as_array().unwrap();
    let udt = lanes
        .iter()
        .find(|lane| lane["lane"] == "udt-stream")
        .unwrap();
    assert!(
        udt["failure"]
            .as_str()
            .unwrap()
            .contains("owns its sockets")
    );

    let alone = run(&["2015-a1-udt-dgram", "--no-html"]);
    assert_eq!(alone.status.code(), Some(2), "{}", stderr(&alone));
}

/// What a file may be called, and no text.
#[cfg(unix)]
fn no_text() -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(b"caf\xe9".to_vec())
}

#[cfg(windows)]
fn no_text() -> OsString {
    std::os::windows::ffi::OsStringExt::from_wide(&[0x63, 0xd800])
}

#[test]
fn a_name_that_is_not_unicode_is_refused_in_a_line_that_shows_it() {
    let shown = format!("`{}` is not Unicode", no_text().display());
    for before in [
        &["run"][..],
        &["run", "--network"],
        // The name of a file may be so; the experiment's may not.
        &["run", "--html", "\u{e9}", "--json"],
        &["tune", "--hold-out"],
        &["world"],
        &["world", "--network"],
        &["shape"],
        &["agree"],
        &["echo", "--network"],
        &["gateway", "-sa"],
    ] {
        let mut asked = lagometer();
        asked.args(before).arg(no_text());
        if before.contains(&"--json") {
            asked.arg(no_text());
        }
        if before.contains(&"shape") {
            asked.args(["--", "true"]);
        }
        let output = asked.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{before:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{before:?}: {said}");
        assert!(said.contains(&shown), "{before:?}: {said}");
    }
}

#[test]
fn a_file_whose_name_is_not_unicode_is_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join(no_text());
    if fs::write(&document, "").is_err() {
        eprintln!("skipped: no file here is called {document:?}");
        return;
    }
    let mut asked = lagometer();
    asked.args(["run", "--lanes", "udp", "--for", "1s", "--seeds", "1"]);
    asked.args(["--no-html", "--json"]).arg(&document);
    let output = asked.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let output = lagometer().arg("report").arg(&document).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Root may listen everywhere; without that right it is as everybody else.
#[cfg(target_os = "linux")]
#[test]
fn a_port_that_is_reserved_is_said_to_be_in_a_line() {
    use std::os::unix::fs::MetadataExt as _;

    let first = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
    if fs::read_to_string(first).unwrap().trim() == "0" {
        eprintln!("skipped: no port is reserved here ({first})");
        return;
    }
    for (arguments, what) in [
        (&["serve", "--bind", "127.0.0.1:1"][..], "cannot serve at"),
        (
            &[
                "gateway",
                "-dev",
                "-sa=127.0.0.1:1",
                "-ca=127.0.0.1:0",
                "--web=none",
            ],
            "cannot listen at",
        ),
    ] {
        let program = env!("CARGO_BIN_EXE_lagometer");
        let mut asked = Command::new(program);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            asked = Command::new("setpriv");
            asked.args([
                "--inh-caps=-net_bind_service",
                "--bounding-set=-net_bind_service",
            ]);
            asked.arg(program);
        }
        let output = asked.args(arguments).stdin(Stdio::null()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains(what), "{said}");
        assert!(last.contains("below 1024"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let mut child = lagometer()
        .args([
            "run",
            "--lanes",
            "udp,kcp",
            "--for",
            "20h",
            "--no-html",
            "--json",
            "-",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("playing 2 lanes"), "{line}");
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["partial"], true);
    for lane in document["lanes"].as_array().unwrap() {
        let intended = lane["messages"]["intended"].as_u64().unwrap();
        assert!(intended > 0 && intended < 20 * 3600 * 20);
    }
    let counts: Vec<_> = document["lanes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lane| lane["messages"]["intended"].as_u64().unwrap())
        .collect();
    assert_eq!(
        counts[0], counts[1],
        "both lanes are cut at the same instant"
    );
}
