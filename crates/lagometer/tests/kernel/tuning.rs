//! A search whose candidates play on a kernel.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{kernel, lagometer, said};

/// A search of a transport with two settings.
const SEARCH: [&str; 12] = [
    "tune",
    "--no-html",
    "--lanes",
    "udp-spaced-game",
    "--network",
    "loss-5",
    "--seeds",
    "5",
    "--trials",
    "4",
    "--goal",
    "within 100 ms",
];

fn searched(testbed: &str, more: &[&str]) -> Output {
    let all = [&SEARCH[..], &["--testbed", testbed], more].concat();
    lagometer(&all).output().unwrap()
}

#[test]
fn a_search_on_a_kernel_goes_on_from_its_state_and_finds_the_same() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (state, first, again) = (path("state"), path("first.json"), path("again.json"));
    let flags = |json| ["--for", "5s", "--state", state.as_str(), "--json", json];
    let output = searched("kernel", &[&flags(&first)[..], &["--jobs", "2"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let kept = fs::read(&state).unwrap();

    // What judges is played anew, one guest after the other.
    let output = searched("kernel", &[&flags(&again)[..], &["--jobs", "1"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        fs::read(&state).unwrap(),
        kept,
        "nothing was left to search"
    );
    let findings = |path: &str| {
        let text = fs::read_to_string(path).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        for volatile in ["started", "wall_s", "host"] {
            document.as_object_mut().unwrap().remove(volatile);
        }
        document
    };
    let (first, again) = (findings(&first), findings(&again));
    assert_eq!(first, again);
    assert_eq!(first["testbed"], "kernel");
    let version = first["experiment"]["kernel"]["version"].as_str();
    assert!(
        version.is_some_and(|it| it.starts_with("6.")),
        "{version:?}"
    );
    let lane = &first["lanes"][0];
    assert_eq!(lane["lane"], "udp-spaced-game");
    let delivered = lane["messages"]["delivered"].as_u64().unwrap();
    assert!(delivered > 80, "{}", lane["messages"]);

    // In virtual time without a kernel other plays are remembered.
    let output = searched("sim", &["--for", "5s", "--state", &state]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("another search"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_search_that_is_interrupted_while_guests_play_keeps_whole_plays_alone_and_says_how_to_go_on() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    let flags = [
        "--testbed",
        "kernel",
        "--for",
        "50s",
        "--state",
        state.to_str().unwrap(),
    ];
    let mut command = lagometer(&[&SEARCH[..], &flags].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let plays = || -> Option<usize> {
        let kept: Value = serde_json::from_str(&fs::read_to_string(&state).ok()?).ok()?;
        kept["plays"].as_object().map(serde_json::Map::len)
    };
    while plays().is_none_or(|plays| plays == 0) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains("the same command goes on from"), "{said}");
    let known = plays().unwrap();
    assert!(
        last.contains(&format!("stopped after {known} plays")),
        "{known}: {said}"
    );
}

#[test]
fn a_guest_that_does_not_end_in_time_ends_the_search_in_a_line_that_says_so() {
    let Some(_alone) = kernel() else { return };
    let output = searched("kernel", &["--real-limit", "1s", "--for", "10min"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains("--real-limit gives it longer"), "{said}");
}
