//! The testbed `emu` and the command `shape` through the binary: real sockets
//! in namespaces, and what goes wrong with them.
//!
//! Skipped, with the reason, where the system permits no namespaces.

#![cfg(target_os = "linux")]

mod lanes;
#[path = "../marks/mod.rs"]
mod marks;
mod shape;
#[path = "../small_world/mod.rs"]
mod small_world;
mod trouble;
mod workloads;
#[path = "../workloads/mod.rs"]
mod workloads_of_tests;
mod worlds;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// Nothing here takes this long unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(100);

fn lagometer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    lagometer(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One at a time: what is tested here is a machine's timing.
static ALONE: Mutex<()> = Mutex::new(());

/// The right to have the machine to oneself, where the system permits
/// namespaces; says why not.
fn permitted() -> Option<MutexGuard<'static, ()>> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let probe = run(&["shape", "perfect", "--", "true"]);
    if probe.status.code() == Some(3) {
        assert!(
            std::env::var_os("LAGOMETER_REQUIRE_NAMESPACES").is_none(),
            "LAGOMETER_REQUIRE_NAMESPACES is set, but {}",
            said(&probe)
        );
        println!("skipped: {}", said(&probe));
        return None;
    }
    Some(alone)
}

/// Plays lanes in `emu` and reads the document.
fn play(arguments: &[&str]) -> Value {
    let mut all = vec!["run", "--testbed", "emu", "--no-html", "--json", "-"];
    all.extend(arguments);
    let output = run(&all);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn lane<'a>(document: &'a Value, name: &str) -> &'a Value {
    let lanes = document["lanes"].as_array().unwrap();
    lanes.iter().find(|lane| lane["lane"] == name).unwrap()
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
