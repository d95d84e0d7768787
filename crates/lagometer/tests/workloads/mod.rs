//! Recordings, streams and requests as short experiments over a path that loses nothing,
//! and what every testbed finds of them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// What is played: its name, its workload, how many messages are meant to go up and down,
/// and how many milliseconds they take at least.
pub(crate) const ALL: [(&str, &str, [u64; 2], f64); 3] = [
    (
        "replay",
        "[workload.replay]\nfile = \"log.csv\"\nat_end = \"stop\"\ndelivery = \"reliable\"\n",
        [20, 10],
        10.0,
    ),
    (
        "stream",
        "[workload.stream]\ndirection = \"both\"\nrate = \"160 kbit/s\"\nsize = \"200 B\"\n\
         on = \"500 ms\"\noff = \"500 ms\"\n",
        [100, 100],
        10.0,
    ),
    (
        "requests",
        "[workload.request-response]\nrequest = \"200 B\"\nresponse = \"4 KB\"\nrate = 20\n\
         think = \"5 ms\"\noutstanding = 4\n",
        [40, 40],
        25.0,
    ),
];

/// Writes the experiments, as in `replay.toml`, and what they play.
pub(crate) fn write(folder: &Path) {
    let network = "summary = \"a calm path\"\n[both]\ndelay = \"10 ms\"\n";
    fs::write(folder.join("calm.toml"), network).unwrap();
    let mut log = String::new();
    for tenth in 0..20 {
        let (second, tenth) = (tenth / 10, tenth % 10);
        let _ = writeln!(log, "{second}.{tenth},up,{}", 40 + tenth);
        if tenth % 2 == 0 {
            let _ = writeln!(log, "{second}.{tenth}5,down,{}", 300 + tenth);
        }
    }
    fs::write(folder.join("log.csv"), log).unwrap();
    for (name, workload, ..) in ALL {
        let text = format!(
            "name = \"{name}\"\nsummary = \"a test\"\nnetwork = \"calm.toml\"\nfor = \"2 s\"\n\
             grace = \"2 s\"\nlanes = [\"udp\", \"kcp\", \"tcp-cubic\"]\n{workload}"
        );
        fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
}

/// Holds what was found, `seeds` seeds together: every message was meant to leave, and came;
/// over datagrams alone too where the testbed `is_exact`.
pub(crate) fn check(name: &str, document: &Value, seeds: u64, is_exact: bool) {
    let (_, _, intended, least_ms) = ALL.into_iter().find(|it| it.0 == name).unwrap();
    let lanes = document["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 3, "{name}");
    for lane in lanes {
        assert!(lane["failure"].is_null(), "{name}: {lane}");
        for (way, intended) in ["up", "down"].into_iter().zip(intended) {
            let flow = &lane["traffic"][way];
            assert_eq!(flow["intended"], intended * seeds, "{name} {way}: {lane}");
            let delivered = flow["delivered"].as_u64().unwrap();
            if is_exact || lane["lane"] != "udp" {
                assert_eq!(delivered, intended * seeds, "{name} {way}: {lane}");
            }
            assert!(delivered > intended / 2, "{name} {way}: {lane}");
        }
        let down = &lane["traffic"]["down"]["delay_ms"]["p50"];
        assert!(down.as_f64().unwrap() >= least_ms, "{name}: {lane}");
    }
}
