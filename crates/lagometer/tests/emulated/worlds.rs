//! Worlds whose players reach their gateway over emulated links.

use std::fs;

use lagometer_emu::logged_packets;
use serde_json::Value;

use crate::small_world::SMALL_WORLD;
use crate::{file, permitted, run, said};

#[test]
fn players_reach_their_gateway_over_links_of_their_own() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let scenario = file(folder.path(), "small.toml", SMALL_WORLD);
    // What hosts in namespaces may use is the machine's to say.
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let controls = allowed.split_whitespace().map(|name| format!("tcp-{name}"));
    let transports: Vec<String> = controls
        .filter(|name| ["tcp-cubic", "tcp-reno", "tcp-bbr"].contains(&&name[..]))
        .chain(["kcp", "kcp-tuned", "websocket"].map(String::from))
        .collect();
    let packets = folder.path().join("packets.pcapng");
    let output = run(&[
        "world",
        &scenario,
        "--testbed",
        "emu",
        "--pcap",
        packets.to_str().unwrap(),
        "--network",
        "cable",
        "--transport",
        &transports.join(","),
        "--json",
        "-",
        "--no-html",
    ]);
    assert!(output.status.success(), "{}", said(&output));
    // The first world's three players, up and down.
    let log = fs::read(packets).unwrap();
    let mut interfaces: Vec<_> = logged_packets(&log).map(|it| it.interface).collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    assert_eq!(interfaces, (0..6).collect::<Vec<_>>());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["testbed"], "emu");
    assert_eq!(document["audit"]["lanes"].as_array().unwrap().len(), 3);
    let worlds = document["worlds"].as_array().unwrap();
    assert_eq!(worlds.len(), transports.len());
    for (world, transport) in worlds.iter().zip(&transports) {
        assert_eq!(world["transport"], transport[..]);
        assert_eq!(world["network"], "cable");
        assert_eq!(world["players"]["in_game"], 3, "{world:#}");
        assert_eq!(world["players"]["lost"], 0, "{world:#}");
        assert_eq!(world["sight"]["views_right"], 3, "{world:#}");
        // The path alone takes 13 ms.
        let tier = &world["tiers"][0];
        assert!(tier["samples"].as_u64().unwrap() > 10, "{tier:#}");
        assert!(tier["age_ms"]["min"].as_f64().unwrap() > 13.0, "{tier:#}");
        let down = &world["path"]["down"];
        assert_eq!(down["full_share"], 0.0, "{down:#}");
        assert!(down["wait_ms"].as_f64().unwrap() < 50.0, "{down:#}");
        // All 60 B or more with their headers, and what players are charged for.
        let rate = |what| down[what].as_f64().unwrap();
        assert!(rate("packets_per_s") > 0.0, "{down:#}");
        assert!(
            rate("bytes_per_s") > 28.0 * rate("packets_per_s"),
            "{down:#}"
        );
        let cost = &world["cost"];
        let per_player_hour = rate("bytes_per_s") * 3600.0 / 3.0;
        let charged = cost["down_bytes_per_hour"].as_f64().unwrap();
        assert!((charged / per_player_hour - 1.0).abs() < 0.001, "{cost:#}");
    }
}

/// Two servers share a small ground over which players are teleported again
/// and again: they are handed over while their messages are on their way.
#[test]
fn characters_are_handed_over_behind_links() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut spatial = SMALL_WORLD.to_owned();
    for (written, instead) in [
        ("\"single\"", "\"spatial\""),
        (
            "[ground]",
            "[space]\ncells = [2, 2]\ncell-m = 25\nservers = [2, 1]\ninterest-radius-m = 30\n[ground]",
        ),
        ("[bots]", "[bots]\nteleport-each-second = \"100 %\""),
        ("for = \"500 ms\"", "for = \"2 s\""),
    ] {
        assert!(spatial.contains(written), "{written}");
        spatial = spatial.replace(written, instead);
    }
    let scenario = file(folder.path(), "spatial.toml", &spatial);
    let arguments = ["world", &scenario, "--testbed", "emu", "--network", "cable"];
    let arguments = [&arguments[..], &["--transport", "kcp-tuned"]].concat();
    let output = run(&[&arguments[..], &["--json", "-", "--no-html"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let world = &document["world"];
    assert_eq!(world["players"]["in_game"], 3, "{world:#}");
    assert_eq!(world["sight"]["views_right"], 3, "{world:#}");
    // The gateway is asked for its metrics, which only its host can reach.
    let busy = &world["gateway_metrics"]["cpu_pct"];
    assert!(busy.as_f64().unwrap() > 0.0, "{busy}");
    let carried = &world["cost"]["players_per_core"];
    assert!(carried.as_f64().unwrap() > 3.0, "{carried}");
    let handovers = &world["handovers"];
    assert!(handovers["begun"].as_u64().unwrap() > 0, "{handovers:#}");
    assert_eq!(handovers["begun"], handovers["completed"], "{handovers:#}");
    assert_eq!(handovers["simulated"], 3, "{handovers:#}");
    for never in ["doubled", "orphans", "failed"] {
        assert_eq!(handovers[never], 0, "{handovers:#}");
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
