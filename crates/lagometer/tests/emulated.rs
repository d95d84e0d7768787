//! The testbed `emu` and the command `shape` through the binary: real sockets
//! in namespaces, and what goes wrong with them.
//!
//! Skipped, with the reason, where the system permits no namespaces.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(100);

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

#[test]
fn lanes_of_every_kind_run_at_once_and_the_emulator_audits_itself() {
    let Some(_alone) = permitted() else {
        return;
    };
    let names = ["udp", "kcp", "enet", "quic", "webrtc", "renet", "tcp-cubic"];
    let lanes = names.join(",");
    let document = play(&["--network", "home-wifi", "--for", "2s", "--lanes", &lanes]);
    assert_eq!(document["testbed"], "emu");
    let audit = &document["audit"];
    for figure in ["release_error_us", "wake_late_us"] {
        assert!(audit[figure]["count"].as_u64().unwrap() > 100, "{figure}");
    }
    assert_eq!(audit["lanes"].as_array().unwrap().len(), names.len());
    for name in names {
        let lane = lane(&document, name);
        assert!(lane["failure"].is_null(), "{name}: {}", lane["failure"]);
        assert_eq!(lane["messages"]["intended"], 40, "{name}");
        assert!(
            lane["messages"]["delivered"].as_u64().unwrap() > 30,
            "{name}"
        );
        // The road there and back takes some 10 ms.
        assert!(lane["rtt_ms"]["min"].as_f64().unwrap() > 5.0, "{name}");
        assert!(lane["up_ms"]["p50"].as_f64().unwrap() > 2.0, "{name}");
        assert!(lane["cpu_ns_per_message"].as_f64().unwrap() > 0.0, "{name}");
        assert!(
            lane["system_calls_per_message"].as_f64().unwrap() > 1.0,
            "{name}"
        );
        assert!(lane["wire"]["overhead"].as_f64().unwrap() > 1.0, "{name}");
    }
    assert_eq!(
        lane(&document, "tcp-cubic")["socket_path"],
        "kernel TCP, cubic"
    );
}

#[test]
fn ipv6_is_a_road_too() {
    let Some(_alone) = permitted() else {
        return;
    };
    let arguments = ["--network", "home-wifi", "--for", "1s", "--ipv6"];
    let document = play(&[&arguments[..], &["--lanes", "kcp,tcp-reno"]].concat());
    for name in ["kcp", "tcp-reno"] {
        assert_eq!(lane(&document, name)["messages"]["delivered"], 20, "{name}");
    }
}

#[test]
fn a_link_that_is_cut_for_ten_seconds_is_survived() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let network = file(
        folder.path(),
        "cut.toml",
        "summary = \"cut off for ten seconds\"\n[both]\ndelay = \"10 ms\"\n\
         [[both.outages]]\nat = \"1 s\"\nfor = \"10 s\"\n",
    );
    let arguments = ["--network", &network, "--for", "12s", "--lanes"];
    let document = play(&[&arguments[..], &["udp,kcp,tcp-cubic"]].concat());
    for name in ["kcp", "tcp-cubic"] {
        let lane = lane(&document, name);
        assert!(lane["failure"].is_null(), "{name}: {}", lane["failure"]);
        assert_eq!(lane["messages"]["lost"], 0, "{name}");
        // Most messages are late, so the threshold is the fixed one.
        let longest = lane["episodes_500ms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|episode| episode["duration_ms"].as_f64().unwrap())
            .fold(0.0, f64::max);
        assert!(longest > 9_500.0, "{name}: {longest}");
    }
    let lost = lane(&document, "udp")["messages"]["lost"].as_u64().unwrap();
    assert!((190..=210).contains(&lost), "{lost}");
}

#[test]
fn a_far_end_that_falls_silent_for_good_ends_the_run() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let network = file(
        folder.path(),
        "dead.toml",
        "summary = \"dead after a second\"\n[both]\ndelay = \"10 ms\"\n\
         [[both.outages]]\nat = \"1 s\"\nfor = \"1 h\"\n",
    );
    let experiment = file(
        folder.path(),
        "short.toml",
        &format!(
            "name = \"short\"\nsummary = \"a short one\"\nnetwork = \"{network}\"\nfor = \"2 s\"\n\
             grace = \"2 s\"\nlanes = [\"kcp\", \"udp\", \"tcp-cubic\"]\n\
             [workload.paced-echo]\nsize = \"100 B\"\ninterval = \"50 ms\"\n"
        ),
    );
    let began = Instant::now();
    let document = play(&[&experiment]);
    assert!(began.elapsed() < PATIENCE);
    for name in ["kcp", "udp", "tcp-cubic"] {
        let messages = &lane(&document, name)["messages"];
        assert_eq!(messages["intended"], 40, "{name}");
        assert!(
            messages["lost"].as_u64().unwrap() >= 19,
            "{name}: {messages}"
        );
        assert!(
            messages["delivered"].as_u64().unwrap() >= 15,
            "{name}: {messages}"
        );
    }
}

/// Attempts at a comparison that a busy machine can spoil.
const ATTEMPTS: usize = 4;

#[test]
fn virtual_time_and_real_sockets_agree() {
    let Some(_alone) = permitted() else {
        return;
    };
    let mut told = String::new();
    for _ in 0..ATTEMPTS {
        let output = run(&["agree", "--network", "cable", "--for", "6s"]);
        told = String::from_utf8_lossy(&output.stdout).into_owned();
        for lane in ["udp", "kcp", "enet", "quic", "webrtc"] {
            assert!(told.contains(lane), "{told}{}", said(&output));
        }
        if output.status.success() {
            return;
        }
        // A run that is spoilt is told apart from one that disagrees.
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    }
    panic!("they do not agree:\n{told}");
}

/// Everyone in one channel, without the two seconds before the first window.
const SMALL_WORLD: &str = r#"
name = "small"
summary = "a few players who see each other"
channels = "single"
players = 3
join-every = "20 ms"
for = "1 s"
server-frames-per-s = 30
player-frames-per-s = 10
fan-out-delay = "100 ms"
observers = 3
[[tier]]
every = "20 ms"
[ground]
side-m = 50
built = "0 %"
obstacle-m = [2, 12]
[temper]
turn-each-second = "10 %"
jump-each-second = "10 %"
"#;

#[test]
fn players_reach_their_gateway_over_links_of_their_own() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let scenario = file(folder.path(), "small.toml", SMALL_WORLD);
    let transports = ["tcp", "kcp-tuned", "websocket"];
    let output = run(&[
        "world",
        &scenario,
        "--testbed",
        "emu",
        "--network",
        "cable",
        "--transport",
        &transports.join(","),
        "--json",
        "-",
        "--no-html",
    ]);
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["testbed"], "emu");
    assert_eq!(document["audit"]["lanes"].as_array().unwrap().len(), 3);
    let worlds = document["worlds"].as_array().unwrap();
    assert_eq!(worlds.len(), transports.len());
    for (world, transport) in worlds.iter().zip(transports) {
        assert_eq!(world["transport"], transport);
        assert_eq!(world["network"], "cable");
        assert_eq!(world["players"]["in_game"], 3, "{world:#}");
        assert_eq!(world["players"]["lost"], 0, "{world:#}");
        assert_eq!(world["sight"]["views_right"], 3, "{world:#}");
        // The road alone takes 13 ms.
        let tier = &world["tiers"][0];
        assert!(tier["samples"].as_u64().unwrap() > 10, "{tier:#}");
        assert!(tier["age_ms"]["min"].as_f64().unwrap() > 13.0, "{tier:#}");
    }
}

#[test]
fn more_players_than_addresses_are_refused_in_a_line() {
    let Some(_alone) = permitted() else {
        return;
    };
    let arguments = ["world", "lod", "--testbed", "emu", "--network", "lan"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let last = said(&output).trim_end().lines().last().unwrap().to_owned();
    assert!(last.contains("1000 lanes are too many"), "{last}");
}

#[test]
fn a_run_without_namespaces_goes_through_a_relay() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = vec!["run", "--testbed", "emu", "--emu-mode", "proxy"];
    all.extend(["--network", "home-wifi", "--for", "2s", "--no-html"]);
    all.extend(["--json", "-", "--lanes", "udp,kcp,tcp-cubic"]);
    let output = run(&all);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("`tcp-cubic` is left out"),
        "{}",
        said(&output)
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["audit"]["device"], "relay");
    assert_eq!(lane(&document, "kcp")["messages"]["delivered"], 40);
    assert!(lane(&document, "udp")["rtt_ms"]["min"].as_f64().unwrap() > 5.0);
}

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
    let told = String::from_utf8_lossy(&comparison.stdout).into_owned();
    assert!(told.contains("NOT VALID"), "{told}");
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
    let deadline = Instant::now() + PATIENCE;
    while namespaces("/proc").intersection(&hosts).next().is_some() {
        assert!(Instant::now() < deadline, "a host outlives its process");
        thread::sleep(Duration::from_millis(10));
    }
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("lane0"), "{devices}");
}

#[test]
fn a_program_runs_behind_the_link_and_sees_nothing_else() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("packets.pcapng");
    let script = "echo $LAGOMETER_FAR $LAGOMETER_FAR_V6; cat /proc/net/dev; exit 7";
    let output = lagometer(&[
        "shape", "loss-1", "--seed", "3", "--far", "exit 5", "--pcap",
    ])
    .arg(&pcap)
    .args(["--", "sh", "-c", script])
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.starts_with("10.77.0.2 fd6c:"), "{shown}");
    let devices: Vec<&str> = shown
        .lines()
        .skip(3)
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    assert_eq!(devices, ["lo", "lane0"]);
    let told = said(&output);
    assert!(told.contains("the far command ended before"), "{told}");
    assert!(told.contains("lagometer: audit: "), "{told}");
    assert!(
        fs::read(&pcap)
            .unwrap()
            .starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])
    );
}

#[test]
fn what_cannot_be_shaped_is_said_in_one_line() {
    for (arguments, expected) in [
        (
            vec!["shape", "nonesuch", "--", "true"],
            "no network is called `nonesuch`",
        ),
        (vec!["run", "--pcap", "x"], "--pcap is for `--testbed emu`"),
        (vec!["run", "--ipv6"], "--ipv6 is for `--testbed emu`"),
        (
            vec!["run", "--testbed", "emu", "--emu-mode", "proxy", "--ipv6"],
            "--ipv6 needs hosts",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert_eq!(said(&output).trim_end().lines().count(), 1);
    }
    let Some(_alone) = permitted() else {
        return;
    };
    let output = run(&["shape", "perfect", "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("cannot start `/no/such/program`"));
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
    let deadline = Instant::now() + PATIENCE;
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
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "it hangs");
        thread::sleep(Duration::from_millis(10));
    }
}
