//! The doctor as a program.

use std::process::Command;

use serde_json::Value;

#[test]
fn it_says_what_it_found_and_writes_a_document_that_fits_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("doctor.json");
    let output = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["doctor", "--json"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "timer slack",
        "waking a thread, same core",
        "lost while spinning",
        "reading the clock",
        "a system call",
        "UDP over loopback",
        "network namespaces",
        "SO_TXTIME",
        "TCP with BBR",
        "cannot be told from this machine's noise",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(
        document["host"]["noise"]["floor"]["clock_read_ns"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let schema: Value =
        serde_json::from_str(include_str!("../../../schema/lagometer-2.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| error.to_string())
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}
