//! Runs that are interrupted, starved, killed or refused what they need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{TIMEOUT, lagometer, permitted, run, said};

#[test]
fn an_interrupted_run_keeps_and_marks_what_it_has() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let mut child = start(&["--for", "1h", "--lanes", "udp,kcp"], &json);
    await_hosts(&child);
    signal(&child, "INT");
    assert!(wait(&mut child).success());
    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(document["partial"], true);
}

#[test]
fn a_starved_router_makes_the_run_invalid_everywhere() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let page = folder.path().join("run.html");
    let mut child = lagometer(&[
        "run",
        "--testbed",
        "emu",
        "--for",
        "3s",
        "--lanes",
        "udp,kcp",
    ])
    .arg("--json")
    .arg(&json)
    .arg("--html")
    .arg(&page)
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    // Held up again and again, so that it is while it measures.
    while child.try_wait().unwrap().is_none() {
        signal(&child, "STOP");
        thread::sleep(Duration::from_millis(200));
        signal(&child, "CONT");
        thread::sleep(Duration::from_millis(300));
    }
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(document["audit"]["valid"], false);
    assert!(!document["audit"]["faults"].as_array().unwrap().is_empty());
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("NOT VALID"), "{table}");
    assert!(fs::read_to_string(&page).unwrap().contains("Not valid"));
    let path = json.to_str().unwrap();
    let comparison = run(&["compare", path, path]);
    let printed = String::from_utf8_lossy(&comparison.stdout).into_owned();
    assert!(printed.contains("NOT VALID"), "{printed}");
}

#[test]
fn a_full_disk_costs_the_file_and_nothing_else() {
    let Some(_alone) = permitted() else {
        return;
    };
    let arguments = ["run", "--testbed", "emu", "--for", "1s", "--lanes", "udp"];
    let full = ["--no-html", "--json", "/dev/full", "--pcap", "/dev/full"];
    let output = run(&[&arguments[..], &full].concat());
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        said(&output).contains("/dev/full: cannot be written"),
        "{}",
        said(&output)
    );
    assert!(
        said(&output).contains("writing ended early"),
        "{}",
        said(&output)
    );
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("udp"),
        "the table is shown"
    );
}

#[test]
fn nothing_is_left_behind_by_a_run_that_is_killed() {
    let Some(_alone) = permitted() else {
        return;
    };
    let arguments = ["--for", "1h", "--lanes", "udp,kcp,tcp-cubic"];
    let mut child = start(&arguments, Path::new("/dev/null"));
    let hosts = await_hosts(&child);
    signal(&child, "KILL");
    wait(&mut child);
    let deadline = Instant::now() + TIMEOUT;
    while namespaces("/proc").intersection(&hosts).next().is_some() {
        assert!(Instant::now() < deadline, "a host outlives its process");
        thread::sleep(Duration::from_millis(10));
    }
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("lane0"), "{devices}");
}

#[test]
fn where_namespaces_are_refused_it_says_what_to_enable() {
    // A user namespace in which no network namespace can be made.
    let refused = |arguments: &[&str]| {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "sh", "-c"])
            .arg("echo 0 > /proc/sys/user/max_net_namespaces && exec \"$0\" \"$@\"")
            .arg(env!("CARGO_BIN_EXE_lagometer"))
            .args(arguments)
            .output()
            .unwrap()
    };
    let list = refused(&["list", "networks"]);
    if !list.status.success() {
        println!("skipped: no user namespace here: {}", said(&list));
        return;
    }
    let short = ["--lanes", "udp", "--for", "1s", "--no-html"];
    let run_in_emu = ["run", "--testbed", "emu"];
    for arguments in [
        [&run_in_emu[..], &short].concat(),
        vec!["shape", "perfect", "--", "true"],
    ] {
        let output = refused(&arguments);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        let words = said(&output);
        assert_eq!(words.trim_end().lines().count(), 1, "{words}");
        assert!(words.contains("user.max_net_namespaces"), "{words}");
    }
    let proxy = [&run_in_emu[..], &["--emu-mode", "proxy"], &short].concat();
    let output = refused(&proxy);
    assert!(output.status.success(), "{}", said(&output));
}

/// Starts a run in `emu` whose document goes to `json`.
fn start(arguments: &[&str], json: &Path) -> Child {
    lagometer(&["run", "--testbed", "emu", "--no-html"])
        .args(arguments)
        .arg("--json")
        .arg(json)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until the run's hosts are there and play; returns their namespaces.
fn await_hosts(child: &Child) -> BTreeSet<PathBuf> {
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        assert!(Instant::now() < deadline, "there are no hosts");
        thread::sleep(Duration::from_millis(20));
        let mut found = namespaces_of(&PathBuf::from(format!("/proc/{}", child.id())));
        found.remove(&own);
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).map_or(0, Iterator::count);
        // The hosts' threads, the router, and the lanes'.
        if found.len() == 2 && tasks >= 6 {
            return found;
        }
    }
}

/// The network namespaces of all processes.
fn namespaces(proc: &str) -> BTreeSet<PathBuf> {
    let processes = fs::read_dir(proc).unwrap().flatten();
    processes
        .filter(|process| process.file_name().to_string_lossy().parse::<u32>().is_ok())
        .flat_map(|process| namespaces_of(&process.path()))
        .collect()
}

/// The network namespaces of the threads of one process.
fn namespaces_of(process: &Path) -> BTreeSet<PathBuf> {
    let Ok(threads) = fs::read_dir(process.join("task")) else {
        return BTreeSet::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_link(thread.path().join("ns/net")).ok())
        .collect()
}

fn signal(child: &Child, name: &str) {
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
}

/// Waits for the end of a run that is to end.
fn wait(child: &mut Child) -> std::process::ExitStatus {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "it hangs");
        thread::sleep(Duration::from_millis(10));
    }
}
