//! Logs of connections: what `run --qlog` writes, read back as JSON-SEQ (RFC 7464), and
//! held against the packets that the same run put on its links.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lagometer_emu::logged_packets;
use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .env("NO_COLOR", "1")
        .args(["run", "--no-html", "--json", "-"])
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// The records of a file: each between a record separator and a line feed.
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut parts = text.split('\u{1e}');
    assert_eq!(parts.next(), Some(""), "a record separator comes first");
    let record = |part: &str| {
        let json = part.strip_suffix('\n').expect("a line feed comes last");
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
    };
    parts.map(record).collect()
}

/// The instants of all events that are called so, in milliseconds.
fn times(records: &[Value], name: &str) -> Vec<f64> {
    let events = records.iter().filter(|record| {
        let called = record["name"].as_str().unwrap_or_default();
        called.rsplit(':').next() == Some(name)
    });
    events
        .map(|event| event["time"].as_f64().unwrap())
        .collect()
}

/// Whether an instant is among `instants`: logs have them in single precision, which is
/// two microseconds at this time of a run.
fn is_among(time: f64, instants: &[f64]) -> bool {
    instants
        .iter()
        .any(|instant| (instant - time).abs() < 0.005)
}

const PLAY: [&str; 8] = [
    "--lanes",
    "quic,udp,quic-datagram",
    "--for",
    "5s",
    "--network",
    "loss-5",
    "--seeds",
    "2",
];

#[test]
fn events_have_the_instants_of_the_packets_on_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, capture) = (folder.path().join("logs"), folder.path().join("p.pcapng"));
    let paths = [
        "--qlog",
        logs.to_str().unwrap(),
        "--pcap",
        capture.to_str().unwrap(),
    ];
    let output = run(&[&PLAY[..], &paths].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("holds the logs of 4 ends of connections"),
        "{said}"
    );
    let capture = fs::read(capture).unwrap();
    let mut lost = 0;
    for (lane, number) in [("quic", 0), ("quic-datagram", 2)] {
        for (end, sends_on, other) in [("client", 0, "server"), ("server", 1, "client")] {
            let of = |end: &str| records(&logs.join(format!("{lane}-{end}.sqlog")));
            let (log, peers) = (of(end), of(other));
            assert_eq!(log[0]["qlog_format"], "JSON-SEQ");
            assert_eq!(log[0]["title"], format!("quic {end}"));
            let all: Vec<f64> = log[1..]
                .iter()
                .map(|it| it["time"].as_f64().unwrap())
                .collect();
            assert!(all.is_sorted(), "time goes back");
            let sent = times(&log, "packet_sent");
            let received = times(&peers, "packet_received");
            lost += times(&log, "packet_lost").len();
            let (mut on_link, mut arrive) = (Vec::new(), Vec::new());
            for packet in logged_packets(&capture) {
                if packet.interface == number * 2 + sends_on {
                    let at = packet.epoch_ns as f64 / 1e6;
                    on_link.push(at);
                    let after = packet.fate.strip_prefix("arrives after ");
                    let after = after.and_then(|words| words.split(' ').next());
                    arrive.extend(after.map(|ms| at + ms.parse::<f64>().unwrap()));
                }
            }
            assert!(on_link.len() > 100, "{}", on_link.len());
            // The first begins with the run, ten seconds before measuring.
            assert!(
                on_link.iter().all(|at| is_among(*at, &sent)),
                "{lane} {end}"
            );
            assert!(
                sent.iter().all(|at| is_among(*at, &on_link)),
                "{lane} {end}"
            );
            assert!(
                received.iter().all(|at| is_among(*at, &arrive)),
                "{lane} {other}"
            );
            assert!(received.len() > 80, "{}", received.len());
        }
    }
    assert!(lost > 5, "5 % are lost: {lost}");
}

#[test]
fn the_same_seed_writes_the_same_bytes_and_finds_the_same_with_logs_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let played = |name: &str, threads: &str| {
        let logs = folder.path().join(name);
        let output = run(&[
            &PLAY[..],
            &["--threads", threads, "--qlog", logs.to_str().unwrap()],
        ]
        .concat());
        assert!(output.status.success());
        let mut files: Vec<_> = fs::read_dir(&logs)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        files.sort();
        let bytes = files.iter().map(|path| fs::read(path).unwrap());
        (lanes(&output), bytes.collect::<Vec<_>>())
    };
    let (found, first) = played("first", "1");
    let (_, second) = played("second", "2");
    assert_eq!(first.len(), 4);
    assert!(first == second);
    assert!(first.iter().all(|bytes| bytes.len() > 10_000));
    assert_eq!(found, lanes(&run(&PLAY)));
}

/// The delays that a run found, of each lane.
fn lanes(output: &Output) -> Vec<Value> {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lanes = document["lanes"].as_array().unwrap();
    lanes.iter().map(|lane| lane["rtt_ms"].clone()).collect()
}

#[test]
fn over_sockets_the_same_endpoints_write_the_same_events() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let path = logs.to_str().unwrap();
    let output = run(&[
        "--testbed",
        "net",
        "--lanes",
        "quic",
        "--for",
        "1s",
        "--qlog",
        path,
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // The other end is another process's, wherever that is.
    assert_eq!(fs::read_dir(&logs).unwrap().count(), 1);
    let log = records(&logs.join("quic-client.sqlog"));
    assert!(times(&log, "packet_sent").len() > 20);
    assert!(times(&log, "packet_received").len() > 10);
}

#[test]
fn what_cannot_be_logged_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs");
    let path = path.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 3] = [
        (
            &["--lanes", "udp", "--qlog", path],
            2,
            "`--lanes quic,quic-datagram`",
        ),
        (
            &["--nats", "nats://127.0.0.1:1", "--qlog", path],
            2,
            "leave out `--nats`",
        ),
        (
            &["--lanes", "quic", "--qlog", "/dev/null/x"],
            3,
            "cannot be written",
        ),
    ];
    for (arguments, code, expected) in cases {
        let output = run(&[&["--for", "1s"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{said}");
        // A folder that would stay empty is not made.
        assert!(!Path::new(path).exists());
    }
}
