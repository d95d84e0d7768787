//! `echo`, `sweep` and `speed` over a network on a real kernel in virtual time.

use serde_json::Value;

use super::{document, kernel, lagometer, said};

/// What an instrument finds over `loss-1`, without when it was.
fn found(words: &[&str]) -> Value {
    let output = lagometer(words)
        .args(["--testbed", "kernel", "--network", "loss-1", "--json", "-"])
        .output()
        .unwrap();
    let mut found = document(&output);
    found["started"] = Value::Null;
    found
}

#[test]
fn echoes_over_a_network_take_its_round_trip_and_are_the_same_every_time() {
    let Some(_alone) = kernel() else { return };
    let words = ["echo", "--for", "5s", "--size", "100"];
    let echo = found(&words);
    assert_eq!(echo, found(&words));
    let median = echo["echo"]["rtt_ms"]["p50"].as_f64().unwrap();
    // `loss-1` has 25 ms each way.
    assert!((50.0..51.0).contains(&median), "{}", echo["echo"]);
    assert!(
        echo["echo"]["messages"]["lost"].as_u64() > Some(0),
        "{}",
        echo["echo"]
    );
    assert_eq!(echo["testbed"], "kernel");
    assert_eq!(echo["experiment"]["network"], "loss-1");
    assert!(
        echo["experiment"]["kernel"]["version"].is_string(),
        "{echo}"
    );
    assert!(echo["host"]["noise"].is_null(), "{}", echo["host"]);
    assert_eq!(echo["audit"]["valid"], true, "{}", echo["audit"]);
}

#[test]
fn a_sweep_over_a_network_measures_what_the_network_holds_back() {
    let Some(_alone) = kernel() else { return };
    let sweep = found(&["sweep", "--for", "500ms", "--sizes", "64,1400"]);
    let cells = sweep["sweep"]["cells"].as_array().unwrap();
    let names: Vec<&str> = cells
        .iter()
        .filter_map(|cell| cell["test"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "tcp_lat", "tcp_lat", "tcp_bw", "tcp_bw", "udp_lat", "udp_lat"
        ]
    );
}

#[test]
fn speeds_over_a_network_are_the_same_every_time_and_cost_is_left_out() {
    let Some(_alone) = kernel() else { return };
    let words = ["speed", "--lanes", "tcp-cubic,kcp", "--for", "2s"];
    let speed = found(&words);
    assert_eq!(speed, found(&words));
    let lanes = speed["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 2, "{speed}");
    for lane in lanes {
        assert!(lane["failure"].is_null(), "{lane}");
        let carried = lane["recv_mbit_per_s"].as_f64();
        assert!(carried > Some(0.1), "{lane}");
        for cost in ["send_cpu_s_per_gb", "recv_cpu_s_per_gb"] {
            assert!(lane.get(cost).is_none(), "{cost}: {lane}");
        }
    }
}

#[test]
fn every_seed_has_a_guest_of_its_own_and_all_are_one_document() {
    let Some(_alone) = kernel() else { return };
    let words = ["echo", "--for", "3s", "--size", "100"];
    let with = |more: &[&str]| found(&[&words, more].concat())["echo"].clone();
    let alone = [with(&["--seed", "2"]), with(&["--seed", "3"])];
    let both = found(&[&words[..], &["--seed", "2", "--seeds", "2"]].concat());
    assert_eq!(both["seeds"], serde_json::json!([2, 3]));
    let echo = &both["echo"];
    for (nth, alone) in alone.iter().enumerate() {
        assert_eq!(echo["per_seed"][nth]["value"], alone["iops"], "{echo}");
    }
    let echoed = |of: &Value| of["messages"]["echoed"].as_u64().unwrap();
    assert_eq!(echoed(echo), alone.iter().map(echoed).sum::<u64>());
    let verdict = both["verdict"].as_str().unwrap();
    assert!(verdict.contains("Over 2 seeds: "), "{verdict}");
    let speed = ["speed", "--lanes", "kcp", "--for", "1s", "--seeds", "2"];
    let lane = &found(&speed)["lanes"][0];
    let rates = lane["rate_per_seed"].as_array().unwrap();
    let mean = rates
        .iter()
        .filter_map(|it| it["value"].as_f64())
        .sum::<f64>()
        / 2.0;
    let rate = lane["recv_mbit_per_s"].as_f64().unwrap();
    assert!(rates.len() == 2 && (rate - mean).abs() < 1e-9, "{lane}");
}

#[test]
fn instruments_say_what_has_no_meaning_in_virtual_time() {
    let kernel = ["--testbed", "kernel", "--network", "loss-1"];
    for (words, said_of) in [
        (&["echo", "--testbed", "kernel"][..], "--network"),
        (&["echo", "--network", "loss-1"], "--testbed kernel"),
        (
            &["echo", "--testbed", "net", "--seeds", "2"],
            "--seeds is for `--testbed kernel`",
        ),
        (&["echo", "--to", "localhost"], "--to"),
        (&["echo", "--spin"], "--spin"),
        (&["echo", "--pin", "0,1"], "--pin"),
        (&["sweep", "--tests", "udp_bw"], "udp_bw"),
        (&["speed", "--lanes", "udp"], "--every"),
        (&["speed", "--pin", "0,1"], "--pin"),
    ] {
        let has_testbed = words.contains(&"--testbed") || words.contains(&"--network");
        let mut command = lagometer(words);
        if !has_testbed {
            command.args(kernel);
        }
        let output = command.output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(said_of), "{words:?}: {said}");
    }
}
