//! One world played by several processes: the players do the same as if one
//! process had played them, who is missed is named, and game servers that were
//! killed come back for what they had.

use std::io::Read as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

fn world(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command
        .arg("world")
        .args(arguments)
        .env_remove("LAGOMETER_SECRET");
    command
}

/// Plays `single` with 20 players.
fn play(arguments: &[&str]) -> Value {
    let output = world(&[
        "single",
        "--players",
        "20",
        "--join-every",
        "5ms",
        "--for",
        "1s",
    ])
    .args(["--seed", "7", "--json", "-", "--no-html"])
    .args(arguments)
    .output()
    .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn players_do_the_same_wherever_they_are_played() {
    let placements: [&[&str]; 3] = [&[], &["--workers", "1"], &["--workers", "3"]];
    let documents = placements.map(|placement| thread::spawn(move || play(placement)));
    let [alone, one, three] = documents.map(|played| played.join().unwrap()["world"].clone());
    for world in [&alone, &one, &three] {
        assert!(world["inputs"].is_string(), "{world:#}");
        assert_eq!(world["inputs"], alone["inputs"], "{world:#}");
        // Whatever one process reports, several do.
        assert_eq!(world["players"]["in_game"], 20, "{world:#}");
        assert_eq!(world["players"]["lost"], 0, "{world:#}");
        let sight = &world["sight"];
        assert_eq!(sight["missing"], 0, "{world:#}");
        assert_eq!(sight["views_compared"], 16, "{world:#}");
        assert_eq!(sight["views_right"], 16, "{world:#}");
        assert!(number(&sight["states_per_s"]) > 0.0, "{world:#}");
        assert!(number(&sight["first_state_ms"]["max"]) > 0.0, "{world:#}");
        assert!(number(&world["frames"]["moves_per_s"]) > 0.0, "{world:#}");
        let gateway = &world["gateway_metrics"];
        assert!(number(&gateway["messages_out_per_s"]) > 0.0);
        // The course begins before everybody is in, and then all are there.
        let course = gateway["timeline"].as_array().unwrap();
        let connections = |moment: &Value| number(&moment["connections"]) as u32;
        assert!(connections(&course[0]) <= 21);
        assert_eq!(connections(course.last().unwrap()), 21);
        // A clock that is not set right is off by what the processes began
        // apart, before or after; ages are never negative, so that the one is
        // a pile at nothing and the other seconds.
        let tier = &world["tiers"][0];
        let age = &tier["age_ms"];
        assert!(number(&tier["samples"]) > 100.0, "{world:#}");
        assert!(
            number(&age["p50"]) > 1.0 && number(&age["p50"]) < 1000.0,
            "{age:#}"
        );
        let timeline = world["timeline"].as_array().unwrap();
        let last = timeline.last().unwrap();
        assert_eq!(last["players"], 20, "{world:#}");
        // None of those who stand still at the end.
        assert!(last["age_p50_ms"].is_null(), "{last:#}");
        let aged = timeline
            .iter()
            .filter(|moment| !moment["age_p50_ms"].is_null());
        assert!(aged.count() >= 2, "{timeline:#?}");
    }
    assert!(alone["processes"].is_null(), "{alone:#}");
    let shares = |world: &Value| -> Vec<u64> {
        let processes = world["processes"].as_array().unwrap();
        assert_eq!(processes[0]["at"], "here");
        assert_eq!(processes[0]["servers"], 1);
        let players = processes
            .iter()
            .map(|each| each["players"].as_u64().unwrap());
        players.collect()
    };
    assert_eq!(shares(&one), [0, 20]);
    assert_eq!(shares(&three), [0, 7, 7, 6]);
}

/// A process with players is killed without a word towards the end of what is
/// measured: what it had found counts, and the end waits for its players.
#[test]
fn players_that_are_killed_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("world.json");
    // Players that come back see something at once.
    let scenario = folder.path().join("single.toml");
    let text = include_str!("../../../experiments/world/single.toml");
    let at_once = text.replace("fan-out-delay = \"2 s\"", "fan-out-delay = \"100 ms\"");
    assert_ne!(text, at_once);
    std::fs::write(&scenario, at_once).unwrap();
    let mut coordinator = Running::start(
        world(&[scenario.to_str().unwrap(), "--players", "12"])
            .args(["--join-every", "5ms", "--for", "6s", "--no-html"])
            .args(["--workers", "2", "--json"])
            .arg(&json),
    );
    let workers = coordinator.children("--join", 2);
    let [gateway] = coordinator.children("gateway", 1)[..] else {
        unreachable!("one was asked for");
    };
    coordinator.wait_for_second(5);
    kill(workers[0]);
    let (status, errors) = coordinator.end();
    assert_eq!(status, Some(0), "{errors}");
    for reported in [
        "worker 1 is gone, and its players with it: process ",
        "worker 1: its players log in again",
    ] {
        assert!(errors.contains(reported), "{errors}");
    }
    let document: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let world = &document["world"];
    assert_eq!(world["players"]["lost"], 6, "{world:#}");
    assert_eq!(world["players"]["returned"], 6, "{world:#}");
    assert_eq!(world["players"]["servers_lost"], 0, "{world:#}");
    let sight = &world["sight"];
    assert_eq!(sight["views_right"], 12, "{world:#}");
    assert_eq!(sight["views_compared"], 12, "{world:#}");
    // Three and a half seconds of the six are in, and hardly two came after.
    let rate = |which: &str| number(&sight[format!("updates_per_s_{which}")]);
    assert!(rate("min") > 0.4 * rate("p50"), "{sight:#}");
    assert!(rate("min") < rate("p50"), "{sight:#}");
    let whole = [(1, 0), (0, 6), (0, 6)].map(|(s, p)| (s, p, false));
    let parts = parts(world);
    assert_eq!(parts[..3], whole, "{world:#}");
    assert_eq!(parts[3..], [(0, 6, true)], "{world:#}");
    for other in [workers[1], gateway] {
        let began = Instant::now();
        while is_running(other) {
            assert!(began.elapsed() < TIMEOUT, "{other} is left over");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What was theirs in a grid is dropped by whichever servers have it, and they
/// start anew.
#[test]
fn players_of_a_grid_that_are_killed_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("world.json");
    let mut coordinator = Running::start(
        world(&["spatial", "--players", "12", "--seed", "7"])
            .args(["--join-every", "5ms", "--for", "5s", "--no-html"])
            .args(["--workers", "2", "--server-workers", "1", "--json"])
            .arg(&json),
    );
    let workers = coordinator.children("--join", 3);
    coordinator.wait_for_second(3);
    kill(workers[1]);
    let (status, errors) = coordinator.end();
    assert_eq!(status, Some(0), "{errors}");
    let document: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let world = &document["world"];
    assert_eq!(world["players"]["in_game"], 12, "{world:#}");
    assert_eq!(world["players"]["lost"], 6, "{world:#}");
    assert_eq!(world["players"]["returned"], 6, "{world:#}");
    assert_eq!(world["players"]["servers_lost"], 0, "{world:#}");
    let handovers = &world["handovers"];
    assert_eq!(handovers["doubled"], 0, "{world:#}");
    assert_eq!(handovers["orphans"], 0, "{world:#}");
    assert_eq!(handovers["simulated"], 12, "{world:#}");
    assert_eq!(world["sight"]["views_right"], 12, "{world:#}");
    assert_eq!(world["sight"]["views_compared"], 12, "{world:#}");
    assert_eq!(parts(world)[4..], [(0, 6, true)], "{world:#}");
}

/// Players and game servers are in processes of their own, and one of the
/// latter is killed without a word in the middle of what is measured.
#[test]
fn game_servers_that_are_killed_come_back_for_what_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("world.json");
    let mut coordinator = Running::start(
        world(&["spatial", "--players", "20", "--seed", "7"])
            .args(["--join-every", "5ms", "--for", "6s", "--no-html"])
            .args(["--workers", "1", "--server-workers", "3", "--json"])
            .arg(&json),
    );
    let workers = coordinator.children("--join", 4);
    coordinator.wait_for_second(3);
    // The first has the players, the second servers 1, 4 and 7.
    kill(workers[1]);
    let (status, errors) = coordinator.end();
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("worker 2 is gone"), "{errors}");
    assert!(
        errors.contains("worker 2: its game servers are back"),
        "{errors}"
    );
    let document: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let world = &document["world"];
    let players = &world["players"];
    assert_eq!(players["servers_lost"], 3, "{world:#}");
    assert_eq!(players["servers_returned"], 3, "{world:#}");
    // Players keep their connections and what they see.
    assert_eq!(players["in_game"], 20, "{world:#}");
    assert_eq!(players["lost"], 0, "{world:#}");
    assert!(world["inputs"].is_string(), "{world:#}");
    let handovers = &world["handovers"];
    assert_eq!(handovers["doubled"], 0, "{world:#}");
    assert_eq!(handovers["orphans"], 0, "{world:#}");
    assert_eq!(handovers["simulated"], 20, "{world:#}");
    assert_eq!(handovers["failed"], 0, "{world:#}");
    assert_eq!(world["sight"]["views_right"], 20, "{world:#}");
    assert_eq!(world["sight"]["views_compared"], 20, "{world:#}");
    // What the lost process had reported is in the sums, and it is named.
    let parts = parts(world);
    let whole = [(1, 0), (0, 20), (3, 0), (3, 0), (3, 0)].map(|(s, p)| (s, p, false));
    assert_eq!(parts[..5], whole, "{world:#}");
    assert_eq!(parts[5..], [(3, 0, true)], "{world:#}");
}

/// How many servers and players each process had, and whether it was lost.
fn parts(world: &Value) -> Vec<(u64, u64, bool)> {
    let processes = world["processes"].as_array().unwrap().iter();
    let part = |each: &Value| {
        let count = |what: &str| each[what].as_u64().unwrap();
        (count("servers"), count("players"), each["lost"] == true)
    };
    processes.map(part).collect()
}

#[test]
fn who_never_comes_is_not_waited_for() {
    let coordinator = world(&["single", "--workers", "2", "--coordinate", "127.0.0.1:0"])
        .args(["--gateway", "127.0.0.1:1", "--wait", "300ms", "--no-html"])
        .output()
        .unwrap();
    fails(&coordinator, 3, "0 of 2 workers came within");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let worker = world(&["--join", &address, "--wait", "300ms"])
        .env("LAGOMETER_SECRET", "0123456789abcdef")
        .output()
        .unwrap();
    fails(&worker, 3, &format!("no coordinator at {address}"));
}

#[test]
fn mistakes_are_said_in_one_line() {
    let worker = world(&["--join", "127.0.0.1:1"]).output().unwrap();
    fails(&worker, 2, "needs the secret");
    let crowded = world(&["single", "--players", "2", "--workers", "3", "--no-html"])
        .output()
        .unwrap();
    fails(&crowded, 2, "3 workers have 2 players");
    let alone = world(&["single", "--server-workers", "1", "--no-html"])
        .output()
        .unwrap();
    fails(
        &alone,
        2,
        "`single` has one game server and nothing to share",
    );
    let too_many = world(&["spatial", "--server-workers", "10", "--no-html"])
        .output()
        .unwrap();
    fails(&too_many, 2, "10 workers have 9 game servers");
    let several = world(&["single", "--players", "2,4", "--workers", "1"])
        .args(["--coordinate", "127.0.0.1:0", "--gateway", "127.0.0.1:1"])
        .output()
        .unwrap();
    fails(&several, 2, "give `--players` one number");
    let behind_links = world(&["lod", "--workers", "2", "--network", "lan"])
        .output()
        .unwrap();
    assert_eq!(behind_links.status.code(), Some(2));
}

/// Fails with that exit code, and says why in its last line.
fn fails(output: &Output, code: i32, why: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    let last = errors.lines().last().unwrap_or_default();
    assert!(last.contains(why), "{errors}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// A world under way, ended with the value.
struct Running {
    child: Child,
    errors: String,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            child,
            errors: String::new(),
        }
    }

    /// The processes that it has started with that word, once there are
    /// `many`.
    fn children(&self, word: &str, many: usize) -> Vec<u32> {
        let own = self.child.id();
        let began = Instant::now();
        loop {
            let listed = format!("/proc/{own}/task/{own}/children");
            let listed = std::fs::read_to_string(listed).unwrap();
            let found: Vec<u32> = listed
                .split_whitespace()
                .map(|child| child.parse().unwrap())
                .filter(|child: &u32| {
                    let words = std::fs::read(format!("/proc/{child}/cmdline"));
                    let words = words.unwrap_or_default();
                    words
                        .split(|byte| *byte == 0)
                        .any(|one| one == word.as_bytes())
                })
                .collect();
            if found.len() == many {
                return found;
            }
            assert!(
                began.elapsed() < TIMEOUT,
                "{} of {many} {word}",
                found.len()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Reads what it prints until it has reported that second of the world.
    fn wait_for_second(&mut self, second: u32) {
        let reported = |errors: &str| {
            let seconds = errors.lines().filter_map(|line| line.split_once(" s  "));
            seconds
                .filter_map(|(at, _)| at.trim().parse().ok())
                .max()
                .unwrap_or(0)
        };
        while reported(&self.errors) < second {
            self.read_one();
        }
    }

    fn read_one(&mut self) {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut byte = [0];
        let length = stderr.read(&mut byte).unwrap();
        assert_ne!(length, 0, "it ended: {}", self.errors);
        self.errors.push(char::from(byte[0]));
    }

    /// Waits for its end; its exit code, and all that it printed.
    fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut self.errors).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), std::mem::take(&mut self.errors))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

fn is_running(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}
