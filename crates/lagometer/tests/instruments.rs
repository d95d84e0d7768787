//! `lagometer echo` and `lagometer sweep` as a user meets them.

use std::process::{Command, Output};

use serde_json::Value;

fn lagometer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .env_remove("COLUMNS")
        .env_remove("LAGOMETER_SECRET")
        .env("NO_COLOR", "1")
        .args(arguments)
        .output()
        .expect("the binary starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(arguments: &[&str]) -> Value {
    let output = lagometer(&[arguments, &["--json", "-"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("standard output is the document alone")
}

fn assert_schema(document: &Value) {
    let schema: Value =
        serde_json::from_str(include_str!("../../../schema/lagometer-2.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(document).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn an_echo_run_is_a_document_a_table_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (json, page) = (folder.path().join("e.json"), folder.path().join("e.html"));
    let (json, page) = (json.to_str().unwrap(), page.to_str().unwrap());
    let output = lagometer(&["echo", "--for", "100ms", "--json", json, "--html", page]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    for words in [
        "echoes each second of 8 B over UDP",
        "round trip",
        "placement",
    ] {
        assert!(table.contains(words), "{words:?} is not in:\n{table}");
    }
    let text = std::fs::read_to_string(json).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_schema(&found);
    let echo = &found["echo"];
    let (iops, delay) = (
        echo["iops"].as_f64().unwrap(),
        echo["delay_ms"].as_f64().unwrap(),
    );
    assert!(iops > 0.0 && (iops * delay * 2.0 - 1000.0).abs() < 1e-3);
    assert!(std::fs::read_to_string(page).unwrap().contains("Echo"));
    // The document shows the same again.
    let again = lagometer(&["report", json]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), table);
}

#[test]
fn a_sweep_is_a_document_a_table_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("s.html");
    let page = page.to_str().unwrap();
    let words = [
        "sweep", "--sizes", "1,16k", "--for", "20ms", "--pin", "none",
    ];
    let found = document(&[&words[..], &["--html", page]].concat());
    assert_schema(&found);
    let cells = found["sweep"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 12);
    assert!(
        found["verdict"].as_str().unwrap().contains("1 B"),
        "{}",
        found["verdict"]
    );
    let html = std::fs::read_to_string(page).unwrap();
    for test in ["tcp_lat", "tcp_bw", "udp_lat", "udp_bw", "udp_bw_batched"] {
        assert!(html.contains(test), "{test} is not on the page");
    }
    let table = lagometer(&words);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.contains("16 KiB") && table.contains("TCP ran under"),
        "{table}"
    );
}

#[test]
fn absurd_wishes_are_refused_in_one_line() {
    for words in [
        &["echo", "--for", "0"][..],
        &["echo", "--for", "9000h"],
        &["echo", "--size", "0"],
        &["echo", "--size", "99999999"],
        &["echo", "--outstanding", "0"],
        &["echo", "--size", "1", "--outstanding", "1000"],
        &["echo", "--timeout", "0"],
        &["echo", "--pin", "4000000000"],
        &["sweep", "--for", "0"],
        &["sweep", "--sizes", "0"],
        &["sweep", "--sizes", "1g"],
        &["sweep", "--sizes", "1025k"],
        &["sweep", "--tests", "sctp_lat"],
    ] {
        let output = lagometer(words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{words:?}");
        let said = stderr(&output);
        let first = said.lines().filter(|line| !line.trim().is_empty()).count();
        // The parser of the command line adds how to get help.
        assert!(first <= 3, "{words:?}: {said}");
    }
}

#[test]
fn a_remote_end_that_is_absent_or_another_program_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        use std::io::Write as _;
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(&[b'x'; 64]);
        }
    });
    for (to, word) in [
        ("127.0.0.1:1", "cannot reach"),
        (other.as_str(), "no Lagometer"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .env("LAGOMETER_SECRET", "a secret for the tests alone")
            .args(["echo", "--to", to, "--for", "100ms"])
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains(word) && said.trim_end().lines().count() == 1,
            "{said}"
        );
    }
}
