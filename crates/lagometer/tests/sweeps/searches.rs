//! Searches over a real NATS server: `tune --nats` finds what one machine does.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Nats, Running, failure, findings, lagometer, message, played_with_a_worker_killed, text,
};
use crate::{EXPERIMENT, write_experiment};

/// A lane with settings and a message size of its own, that no preset has.
const OWN_LANE: &str = r#"
[[lane]]
name = "small"
transport = "kcp"
size = "61 B"
settings = { send_window = 300 }
"#;

/// A search whose seeds play for no whole number of milliseconds, on networks of which
/// each is left out of a search once.
const SEARCH: [&str; 15] = [
    "tune",
    "searched.toml",
    "--lanes",
    "small",
    "--network",
    "ours.toml=2,cable",
    "--hold-out",
    "each",
    "--for",
    "12s",
    "--seeds",
    "7",
    "--trials",
    "8",
    "--no-html",
];

fn write_search(folder: &Path) {
    write_experiment(folder);
    // A seed of it is played often: without other traffic it takes no time.
    let (quiet, _) = EXPERIMENT.split_once("[[cross]]").unwrap();
    fs::write(folder.join("searched.toml"), format!("{quiet}{OWN_LANE}")).unwrap();
}

/// The search in a folder.
fn search(folder: &Path, more: &[&str]) -> Running {
    let mut command = lagometer(&SEARCH);
    command.args(["--json", "-"]).args(more).current_dir(folder);
    Running::start(command)
}

/// What one machine finds, in a folder that is made ready for others.
fn searched_alone(folder: &Path) -> String {
    write_search(folder);
    let alone = search(folder, &[]).output();
    assert!(alone.status.success(), "{}", text(&alone.stderr));
    findings(&alone.stdout)
}

#[test]
fn a_search_whose_worker_is_killed_is_the_document_of_one_machine() {
    let Some(nats) = Nats::with_jetstream() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let alone = searched_alone(folder.path());

    let searched =
        played_with_a_worker_killed(&nats, 30, || search(folder.path(), &["--nats", nats.url()]));
    let said = text(&searched.stderr);
    assert!(findings(&searched.stdout) == alone, "{said}");
}

#[test]
fn a_search_goes_on_from_its_state_on_workers_and_after_its_server_was_away() {
    let Some(mut nats) = Nats::with_jetstream() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let alone = searched_alone(folder.path());
    let more = ["--state", "search.state", "--nats", nats.url()];
    let state = folder.path().join("search.state");

    let _worker = nats.worker();
    let mut takes = nats.listener("lagometer.sweeps.*.take");
    let mut begun = search(folder.path(), &more);
    for _ in 0..30 {
        message(&mut takes);
    }
    interrupt(&mut begun);
    let said = text(&begun.output().stderr);
    assert!(said.contains("the same command goes on from"), "{said}");
    let kept: Value = serde_json::from_str(&fs::read_to_string(&state).unwrap()).unwrap();
    let kept = kept["plays"].as_object().unwrap().len();
    assert!(kept > 20, "{kept} plays are kept");

    let searched = search(folder.path(), &more);
    for _ in 0..30 {
        message(&mut takes);
    }
    nats.server.kill();
    thread::sleep(Duration::from_secs(2));
    nats.server.start_again();
    let searched = searched.output();
    let said = text(&searched.stderr);
    assert!(searched.status.success(), "{said}");
    assert!(said.contains(&format!("{kept} plays are known")), "{said}");
    assert!(said.contains("lost NATS at "), "{said}");
    assert!(findings(&searched.stdout) == alone, "{said}");
}

#[test]
fn who_is_stopped_while_the_server_is_away_ends() {
    let Some(mut nats) = Nats::with_jetstream() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write_search(folder.path());
    let mut takes = nats.listener("lagometer.sweeps.*.take");
    let mut worker = nats.worker();
    let more = ["--state", "search.state", "--nats", nats.url()];
    let mut searched = search(folder.path(), &more);
    for _ in 0..10 {
        message(&mut takes);
    }
    nats.server.kill();
    for running in [&mut searched, &mut worker] {
        interrupt(running);
    }
    let (searched, worker) = (searched.output(), worker.output());
    let said = text(&searched.stderr);
    assert_eq!(searched.status.code(), Some(130), "{said}");
    assert!(said.contains("the same command goes on from"), "{said}");
    assert!(worker.status.success(), "{}", text(&worker.stderr));
}

fn interrupt(running: &mut Running) {
    let id = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
}

#[test]
fn a_search_without_a_server_is_said_in_a_line() {
    let tune = |more: &[&str]| {
        let common = ["tune", "--no-html", "--nats-wait", "0s"];
        failure(&[&common[..], more].concat())
    };
    let (code, said) = tune(&["--nats", "nats://127.0.0.1:1"]);
    assert_eq!(code, Some(3), "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("no NATS server at nats://127.0.0.1:1: "),
        "{said}"
    );
    let (code, said) = tune(&["--nats", "nats://127.0.0.1:1", "--jobs", "2"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = tune(&["--nats-prefix", "a"]);
    assert_eq!(code, Some(2), "{said}");
}
