//! A world whose workers meet their coordinator over NATS: players do what they do in one
//! process, and a worker that is killed is replaced.

mod free_addresses;
mod nats_server;
mod world_gateway;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use nats_server::NatsServer;
use world_gateway::Gateway;

fn world(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command
        .arg("world")
        .args(arguments)
        .env("LAGOMETER_SECRET", "known to these tests");
    command
}

/// A worker; killed when dropped.
struct Worker(Child);

impl Worker {
    fn start(nats: &NatsServer, more: &[&str]) -> Self {
        let mut command = world(&["--join", "--nats", &nats.url]);
        command.args(more).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PLAYED: [&str; 9] = [
    "single",
    "--players",
    "20",
    "--join-every",
    "5ms",
    "--seed",
    "7",
    "--no-html",
    "--json",
];

/// The world that two workers play over NATS, and what was said on the way, which is handed to
/// `on_line` line by line.
fn play(nats: &NatsServer, each: &str, mut on_line: impl FnMut(&str)) -> (Value, String) {
    let gateway = Gateway::start(&[], "");
    let [servers, clients, _] = gateway.installation.addresses.map(|it| it.to_string());
    let mut coordinator = world(&PLAYED)
        .args(["-", "--for", each, "--workers", "2", "--nats", &nats.url])
        .args(["--gateway", &clients, "--servers", &servers])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = coordinator.stdout.take().unwrap();
    let document = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    let mut said = String::new();
    for line in BufReader::new(coordinator.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        on_line(&line);
        said += &line;
        said.push('\n');
    }
    assert!(coordinator.wait().unwrap().success(), "{said}");
    let document: Value = serde_json::from_str(&document.join().unwrap()).unwrap();
    (document["world"].clone(), said)
}

/// Where each process was, its players, and whether it was lost.
fn processes(world: &Value) -> Vec<(&str, u64, bool)> {
    let each = world["processes"].as_array().unwrap().iter();
    each.map(|it| {
        let players = it["players"].as_u64().unwrap();
        (it["at"].as_str().unwrap(), players, it["lost"] == true)
    })
    .collect()
}

#[test]
fn players_over_nats_do_what_they_do_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nats) = NatsServer::start(folder.path().join("nats")) else {
        return;
    };
    let alone = world(&PLAYED).args(["-", "--for", "1s"]).output().unwrap();
    assert!(alone.status.success(), "{}", text(&alone));
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();

    let _workers = [Worker::start(&nats, &[]), Worker::start(&nats, &[])];
    let (world, said) = play(&nats, "1s", |_| ());
    assert!(said.contains("waiting over NATS at nats://"), "{said}");
    assert_eq!(world["inputs"], alone["world"]["inputs"], "{world:#}");
    assert_eq!(world["players"]["in_game"], 20, "{world:#}");
    assert_eq!(world["players"]["lost"], 0, "{world:#}");
    let sight = &world["sight"];
    assert_eq!(sight["views_right"], sight["views_compared"], "{world:#}");
    assert_eq!(sight["views_compared"], 16, "{world:#}");
    let all = [("here", 0), ("over NATS", 10), ("over NATS", 10)];
    assert_eq!(processes(&world), all.map(|(at, n)| (at, n, false)));
}

#[test]
fn a_worker_over_nats_that_is_killed_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nats) = NatsServer::start(folder.path().join("nats")) else {
        return;
    };
    let first = Worker::start(&nats, &["--index", "0"]);
    let _second = Worker::start(&nats, &["--index", "1"]);
    let (mut first, mut third) = (Some(first), None);
    let (world, said) = play(&nats, "6s", |line| {
        if line.contains(" s  20 players, ") {
            drop(first.take());
        }
        if line.contains("worker 1 is gone, and its players with it: waiting for another") {
            third = Some(Worker::start(&nats, &[]));
        }
    });
    assert!(third.is_some(), "{said}");
    assert!(
        said.contains("worker 1: its players log in again"),
        "{said}"
    );
    assert_eq!(world["players"]["lost"], 10, "{world:#}");
    assert_eq!(world["players"]["returned"], 10, "{world:#}");
    assert_eq!(processes(&world)[3..], [("over NATS", 10, true)]);
}

#[test]
fn who_is_not_found_over_nats_is_said_in_a_line() {
    let gateway = ["--gateway", "127.0.0.1:1"];
    let shared = ["single", "--workers", "2", "--no-html", "--wait", "300ms"];
    let ends = |command: &mut Command| {
        let output = command.output().unwrap();
        let line = text(&output).lines().last().unwrap_or_default().to_owned();
        (output.status.code(), line)
    };
    let is = |(code, line): (Option<i32>, String), wanted: i32, words: &str| {
        assert_eq!(code, Some(wanted), "{line}");
        assert!(line.contains(words), "{line}");
    };
    is(
        ends(&mut world(&["--join"])),
        2,
        "lacks the coordinator's HOST:PORT",
    );
    let nowhere = "nats://127.0.0.1:1";
    let both = ends(&mut world(&["--join", "127.0.0.1:1", "--nats", nowhere]));
    is(both, 2, "leave out one of both");
    let alone = ends(world(&["single", "--nats", nowhere]).args(gateway));
    is(alone, 2, "add `--workers N`");
    let mut unreachable = world(&shared);
    unreachable
        .args(gateway)
        .args(["--nats", nowhere, "--nats-wait", "0s"]);
    is(
        ends(&mut unreachable),
        3,
        "no NATS server at nats://127.0.0.1:1",
    );

    let folder = tempfile::tempdir().unwrap();
    let Some(nats) = NatsServer::start(folder.path().join("nats")) else {
        return;
    };
    let join = ["--join", "--wait", "300ms", "--nats", &nats.url];
    is(
        ends(&mut world(&join)),
        3,
        "no coordinator with this secret",
    );
    // One that is there, with another secret.
    let mut coordinator = world(&["single", "--workers", "2", "--no-html", "--wait", "20s"]);
    coordinator.args(gateway).args(["--nats", &nats.url]);
    let mut coordinator = coordinator.stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(coordinator.stderr.take().unwrap()).lines();
    let mut said = said.map(Result::unwrap);
    assert!(said.any(|line| line.contains("waiting over NATS at nats://")));
    let second = ends(world(&shared).args(gateway).args(["--nats", &nats.url]));
    is(
        second,
        3,
        "a coordinator with this secret and prefix is there already",
    );
    let other = ends(world(&join).env("LAGOMETER_SECRET", "known to nobody else"));
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    is(other, 3, "no coordinator with this secret");
    let missed = ends(world(&shared).args(gateway).args(["--nats", &nats.url]));
    is(missed, 3, "0 of 2 workers came within");
}

#[test]
fn errors_name_the_subjects_that_are_not_allowed_and_how_to_join() {
    let folder = tempfile::tempdir().unwrap();
    let users = "authorization { users: [\
                 { user: sweeps, password: a, permissions: { \
                 publish: [\"team-a.sweeps.>\"], subscribe: [\"team-a.sweeps.>\", \"_INBOX.>\"] } }, \
                 { user: all, password: b } ] }";
    let nats = NatsServer::configured(folder.path().join("nats"), users);
    let Some(nats) = nats else {
        return;
    };
    let coordinate = |user: &str| {
        let url = format!("nats://{user}@{}", nats.address());
        let mut command = world(&["single", "--workers", "2", "--no-html", "--wait", "1s"]);
        command.args(["--gateway", "127.0.0.1:1", "--nats", &url]);
        command.args(["--nats-prefix", "team-a"]);
        let output = command.env_remove("LAGOMETER_SECRET").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        text(&output)
    };
    let refused = coordinate("sweeps:a");
    assert!(
        refused.contains("nothing that is sent to `team-a.streams."),
        "{refused}"
    );
    let waited = coordinate("all:b");
    let join = format!(
        "world --join --nats nats://{} --nats-prefix team-a",
        nats.address()
    );
    assert!(waited.contains(&join), "{waited}");
    assert!(waited.contains("0 of 2 workers came"), "{waited}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
