//! Sweeps over a real NATS server: workers that come, are killed and are refused; the
//! document is the one of a single machine.

#[path = "../nats_server/mod.rs"]
mod nats_server;
#[cfg(unix)]
mod searches;
mod support;
#[path = "../workloads/mod.rs"]
mod workloads;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use support::{
    Nats, Running, failure, findings, lagometer, message, played_with_a_worker_killed, text,
};

/// A run whose queue has a discipline and whose lanes meet other traffic, so that all that
/// a document can hold crosses; over a recording, which crosses too.
const EXPERIMENT: &str = r#"
name = "swept"
summary = "a short run"
network = "ours.toml"
for = "20 s"
lanes = ["udp", "kcp", "tcp-cubic"]

[workload.paced-echo]
size = "200 B"
interval = "50 ms"

[[cross]]
name = "a download"
kind = "bulk"
direction = "down"
"#;

const NETWORK: &str = r#"
summary = "a link with a recording"
[both]
delay = "20 ms"
loss = "2 %"
[up]
trace = "up.trace"
[down]
rate = "4 Mbit/s"
"#;

fn write_experiment(folder: &Path) {
    fs::write(folder.join("swept.toml"), EXPERIMENT).unwrap();
    fs::write(folder.join("ours.toml"), NETWORK).unwrap();
    let trace: Vec<String> = (1..400).map(|n| (n * 3).to_string()).collect();
    fs::write(folder.join("up.trace"), trace.join("\n") + "\n").unwrap();
}

const SWEPT: [&str; 6] = ["run", "swept.toml", "--seeds", "40", "--json", "-"];

/// What one machine finds of the experiment, which is written into the folder.
fn played_alone(folder: &Path) -> String {
    write_experiment(folder);
    let alone = lagometer(&SWEPT).current_dir(folder).output().unwrap();
    assert!(alone.status.success(), "{}", text(&alone.stderr));
    findings(&alone.stdout)
}

#[test]
fn a_sweep_whose_worker_is_killed_is_the_document_of_one_machine() {
    let Some(nats) = Nats::with_jetstream() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let alone = played_alone(folder.path());

    let swept = played_with_a_worker_killed(&nats, 7, || {
        let mut sweep = lagometer(&SWEPT);
        sweep
            .args(["--nats", nats.url()])
            .current_dir(folder.path());
        Running::start(sweep)
    });
    assert!(findings(&swept.stdout) == alone, "{}", text(&swept.stderr));
}

#[test]
fn recordings_streams_and_requests_are_swept_as_one_machine_plays_them() {
    let Some(nats) = Nats::with_jetstream() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    workloads::write(folder.path());
    let _workers = [nats.worker(), nats.worker()];
    for (name, ..) in workloads::ALL {
        let file = format!("{name}.toml");
        let run = |more: &[&str]| {
            let common = ["run", &file, "--seeds", "4", "--no-html", "--json", "-"];
            let mut command = lagometer(&[&common[..], more].concat());
            command.current_dir(folder.path());
            let output = Running::start(command).output();
            assert!(output.status.success(), "{}", text(&output.stderr));
            output.stdout
        };
        let swept = run(&["--nats", nats.url()]);
        workloads::check(name, &serde_json::from_slice(&swept).unwrap(), 4, true);
        assert!(findings(&swept) == findings(&run(&[])), "{name}");
    }
}

#[test]
fn what_is_not_there_or_not_right_is_said_in_a_line() {
    let run = |more: &[&str]| {
        let common = [
            "run",
            "--no-html",
            "--for",
            "5s",
            "--nats-wait",
            "0s",
            "--nats",
        ];
        failure(&[&common[..], more].concat())
    };
    let (code, said) = run(&["nats://127.0.0.1:1"]);
    assert_eq!(code, Some(3), "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("no NATS server at nats://127.0.0.1:1: "),
        "{said}"
    );
    assert!(last.contains("start one with `nats-server -js`"), "{said}");

    let worker = [
        "worker",
        "--nats",
        "nats://127.0.0.1:1",
        "--nats-wait",
        "1500ms",
    ];
    let (code, said) = failure(&worker);
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("waiting for NATS at nats://127.0.0.1:1: "),
        "{said}"
    );

    let (code, said) = run(&["http://lab:secret@127.0.0.1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is no address of a NATS server"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let (code, said) = run(&["nats://127.0.0.1:1", "--nats-prefix", "a b"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`a b` is no prefix"), "{said}");
    let (code, said) = run(&["nats://127.0.0.1:1", "--nats-creds", "/none.creds"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("/none.creds: cannot be read"), "{said}");
    let (code, said) = run(&["nats://127.0.0.1:1", "--testbed", "emu"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--nats is for `--testbed sim`"), "{said}");
}

#[test]
fn a_server_without_jetstream_is_named_as_that() {
    let Some(nats) = Nats::without_jetstream() else {
        return;
    };
    for arguments in [&["run", "--no-html", "--for", "5s"][..], &["worker"]] {
        let (code, said) = failure(&[arguments, &["--nats", nats.url()]].concat());
        assert_eq!(code, Some(3), "{said}");
        let last = said.lines().last().unwrap();
        assert!(last.contains("NATS JetStream: "), "{said}");
        assert!(last.contains("`nats-server -js`"), "{said}");
    }
}

#[test]
fn a_worker_of_another_version_is_refused_in_a_line() {
    let Some(nats) = Nats::with_jetstream() else {
        return;
    };
    // A coordinator of a version that this program never had.
    let mut hello = nats.listener("lagometer.sweeps.hello");
    let worker = nats.worker();
    let (head, _) = message(&mut hello);
    let reply = head.split(' ').nth(3).unwrap();
    let answer = r#"{"version":"0.0.7","worker":""}"#;
    let answer = format!("PUB {reply} {}\r\n{answer}\r\n", answer.len());
    hello.get_mut().write_all(answer.as_bytes()).unwrap();
    let output = worker.output();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("the sweep is of lagometer 0.0.7"), "{said}");
}

#[test]
fn a_server_that_goes_away_is_waited_for_and_a_user_without_a_password_is_refused() {
    let Some(mut nats) = Nats::with("authorization { user: lab, password: secret }") else {
        return;
    };
    let (code, said) = failure(&["worker", "--nats", nats.url()]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("refuses this user"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    let alone = played_alone(folder.path());
    let url = format!("nats://lab:secret@{}", nats.server.address());
    let mut takes = nats.listener("lagometer.sweeps.*.take");
    let mut sweep = lagometer(&SWEPT);
    sweep.args(["--nats", &url]).current_dir(folder.path());
    let sweep = Running::start(sweep);
    let worker = Running::start(lagometer(&["worker", "--nats", &url, "--threads", "2"]));
    // Some of it is found by the time that the server is killed.
    for _ in 0..12 {
        message(&mut takes);
    }
    nats.server.kill();
    nats.server.start_again();
    let swept = sweep.output();
    let said = text(&swept.stderr);
    assert!(swept.status.success(), "{said}");
    assert!(said.contains("lost NATS at "), "{said}");
    assert!(!said.contains("secret"), "{said}");
    assert!(findings(&swept.stdout) == alone, "{said}");
    drop(worker);
}
