//! One world after another on a gateway that goes on running: each finds it as
//! if it had just been started, whatever the one before was and however it
//! ended.

mod free_addresses;
mod world_gateway;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_web::scrape;
use serde_json::Value;
use world_gateway::Gateway;

/// How long a gateway may take on a busy machine to notice a killed world.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The world played on a gateway with a dozen players for so long, not started
/// yet.
fn world(scenario: &str, gateway: &Gateway, duration: &str) -> Command {
    let [servers, clients, _] = gateway.installation.addresses;
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command
        .args(["world", scenario, "--players", "12", "--join-every", "5ms"])
        .args(["--for", duration, "--json", "-", "--no-html"])
        .args(["--gateway", &clients.to_string()])
        .args(["--servers", &servers.to_string()]);
    command
}

/// Plays it and checks that it went as on a fresh gateway, and left nothing.
fn play(scenario: &str, gateway: &Gateway) {
    play_with(scenario, gateway, &[]);
}

fn play_with(scenario: &str, gateway: &Gateway, flags: &[&str]) {
    let output = world(scenario, gateway, "1s").args(flags).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {errors}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let world = &document["world"];
    assert_eq!(world["players"]["in_game"], 12, "{scenario}: {world:#}");
    assert_eq!(world["sight"]["missing"], 0, "{scenario}: {world:#}");
    assert_eq!(world["sight"]["views_right"], 12, "{scenario}: {world:#}");
    assert_eq!(
        world["sight"]["views_compared"], 12,
        "{scenario}: {world:#}"
    );
    if let Some(handovers) = world.get("handovers") {
        assert_eq!(handovers["simulated"], 12, "{handovers:#}");
        for never in ["doubled", "orphaned", "orphans", "failed"] {
            assert_eq!(handovers[never], 0, "{handovers:#}");
        }
    }
    assert_eq!(left_on(gateway), [0, 0], "after {scenario}");
}

/// How many cells and entities the gateway has.
fn left_on(gateway: &Gateway) -> [u64; 2] {
    ["SPATIAL", "ENTITY"].map(|kind| gauge(gateway, "channel_num", kind))
}

/// What the gateway's metrics say of one type of something.
fn gauge(gateway: &Gateway, name: &str, kind: &str) -> u64 {
    let [_, _, web] = gateway.installation.addresses;
    let text = scrape::fetch(web).unwrap();
    let label = format!("type=\"{kind}\"");
    let found = scrape::samples(&text, name).find(|(labels, _)| *labels == label);
    found.unwrap().1 as u64
}

#[test]
fn any_scenario_comes_after_any_other() {
    let gateway = Gateway::start(&[], "");
    for scenario in ["spatial", "lod", "single", "lod"] {
        play(scenario, &gateway);
    }
}

/// Servers that broke off may come back for what they had; those of a world
/// that is over do not.
#[test]
fn nothing_is_kept_for_servers_that_took_their_leave() {
    let gateway = Gateway::start(&["--scr"], "");
    play("spatial", &gateway);
    play_with(
        "spatial",
        &gateway,
        &["--server-workers", "2", "--workers", "2"],
    );
    play("lod", &gateway);
}

/// A world that was killed has left its cells, its entities and, where servers
/// may come back, all that they owned.
#[test]
fn what_a_killed_world_left_is_in_nobodys_way() {
    // Beside each other: they mostly wait.
    thread::scope(|scope| {
        for flags in [&[][..], &["--scr"][..]] {
            scope.spawn(move || {
                let gateway = Gateway::start(flags, "");
                kill_in_the_middle("spatial", &gateway);
                assert_eq!(left_on(&gateway)[0], 225, "it left its cells");
                play("lod", &gateway);
                kill_in_the_middle("lod", &gateway);
                play("spatial", &gateway);
            });
        }
    });
}

/// Plays a world until all are in, and kills it without a word.
fn kill_in_the_middle(scenario: &str, gateway: &Gateway) {
    let mut world = world(scenario, gateway, "60s")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(world.stderr.take().unwrap()).lines();
    let is_in = errors.any(|line| line.unwrap().contains(" s  12 players, "));
    world.kill().unwrap();
    world.wait().unwrap();
    assert!(is_in, "nobody came in");
    let began = Instant::now();
    while gauge(gateway, "connection_num", "SERVER") > 0 {
        assert!(began.elapsed() < TIMEOUT, "its connections stand");
        thread::yield_now();
    }
}
