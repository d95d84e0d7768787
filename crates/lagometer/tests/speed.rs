//! `lagometer speed` as a user has it: one line for what cannot be, every
//! byte accounted for where it can.

mod served;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use served::{SECRET, Served};

fn speed(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.arg("speed").args(arguments).env("NO_COLOR", "1");
    command.output().unwrap()
}

fn document(arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json", "-"]].concat();
    let output = speed(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {errors}"))
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let cases: [(&[&str], &str); 13] = [
        (&["--for", "0"], "--for 0"),
        (&["--for", "100000 h"], "10000 h"),
        (&["--chunk", "0 B"], "--chunk 0 B: expected 8 B"),
        (&["--chunk", "900 MB"], "--chunk 900 MB"),
        (
            &["--lanes", "udp", "--chunk", "2 KB"],
            "takes messages of up to",
        ),
        (&["--every", "1 h"], "--every 1 h"),
        (&["--every", "fast"], "fast"),
        (&["--lanes", "upd"], "no transport is called `upd`"),
        (&["--lanes", "kcp,kcp"], "named twice"),
        (&["--lanes", "tcp-smoltcp"], "now called `tcp-cubic`"),
        (&["--lanes", "kcp", "--set", "kcp.mtu=1"], "mtu"),
        (
            &["--lanes", "kcp", "--set", "enet.mtu=1"],
            "none of the lanes",
        ),
        (&["--pin", "0,99999"], "--pin 99999"),
    ];
    for (arguments, expected) in cases {
        let output = speed(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_said() {
    let output = speed(&["--lanes", "tcp-nonesuch", "--for", "200 ms"]);
    assert_eq!(output.status.code(), Some(3));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("tcp_available_congestion_control"),
        "{errors}"
    );
}

#[test]
fn every_kind_of_transport_carries_and_is_checked() {
    let mut lanes = vec!["tcp", "udp", "kcp", "enet", "quic", "webrtc", "renet"];
    if cfg!(feature = "udt") {
        lanes.push("udt");
    }
    if cfg!(feature = "srt") {
        lanes.push("srt");
    }
    let document = document(&["--for", "600 ms", "--lanes", &lanes.join(",")]);
    assert_eq!(document["command"], "speed");
    assert_eq!(document["lanes"].as_array().unwrap().len(), lanes.len());
    for (lane, name) in document["lanes"].as_array().unwrap().iter().zip(lanes) {
        assert_eq!(lane["lane"], name);
        assert_eq!(lane["failure"], Value::Null, "{lane:#}");
        let number = |key: &str| lane[key].as_f64().unwrap_or(-1.0);
        assert!(number("recv_mbit_per_s") > 0.0, "{name}");
        assert!(number("send_mbit_per_s") > 0.0, "{name}");
        assert!(!lane["series"].as_array().unwrap().is_empty(), "{name}");
        assert_eq!(lane["damaged"], 0, "{name}");
        if name != "udp" {
            assert_eq!(lane["sent_bytes"], lane["received_bytes"], "{name}");
        }
    }
    let read = lagometer_results::Document::from_json(&document.to_string());
    assert!(read.is_ok(), "{read:?}");
}

#[test]
fn it_goes_over_ipv6_and_without_any_offload() {
    for offload in ["full", "batches", "plain"] {
        let document = document(&[
            "--ipv6",
            "--for",
            "200 ms",
            "--lanes",
            "tcp,kcp",
            "--offload",
            offload,
        ]);
        for lane in document["lanes"].as_array().unwrap() {
            assert_eq!(lane["failure"], Value::Null);
            assert!(lane["received_bytes"].as_u64().unwrap() > 0);
        }
        let expected = match offload {
            "full" => "gso+gro",
            "batches" => "mmsg",
            _ => "plain",
        };
        assert_eq!(document["lanes"][1]["path"], expected);
    }
}

#[test]
fn messages_by_the_clock_are_as_many_as_were_meant() {
    let arguments = ["--for", "500 ms", "--lanes", "kcp,tcp", "--chunk", "2 KB"];
    let document = document(&[&arguments[..], &["--every", "5 ms"]].concat());
    for lane in document["lanes"].as_array().unwrap() {
        assert_eq!(lane["offered_mbit_per_s"], 3.2);
        assert_eq!(lane["sent_bytes"], 200_000, "{lane:#}");
        assert_eq!(lane["received_bytes"], 200_000);
    }
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let runs = [(); 2]
        .map(|()| std::thread::spawn(|| document(&["--for", "300 ms", "--lanes", "tcp,kcp,enet"])));
    for run in runs {
        let document = run.join().unwrap();
        for lane in document["lanes"].as_array().unwrap() {
            assert_eq!(lane["failure"], Value::Null);
            assert_eq!(lane["sent_bytes"], lane["received_bytes"]);
        }
    }
}

#[test]
fn the_table_and_the_page_show_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("speed.html");
    let output = speed(&[
        "--for",
        "600 ms",
        "--lanes",
        "tcp,kcp",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("carries") && table.contains("gso+gro"),
        "{table}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Bulk transfer") && page.contains("Rates as they went"));
}

fn towards(address: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command
        .args(["speed", "--to", address])
        .args(arguments)
        .env("LAGOMETER_SECRET", SECRET)
        .env("NO_COLOR", "1");
    command
}

#[test]
fn another_process_is_measured_by_two_at_once() {
    for bind in ["127.0.0.1:0", "[::1]:0"] {
        let remote = Served::start(bind);
        let lanes = ["--for", "300 ms", "--lanes", "tcp,kcp", "--json", "-"];
        let runs = [(); 2].map(|()| {
            towards(&remote.address, &lanes)
                .stdout(Stdio::piped())
                .spawn()
        });
        for run in runs {
            let output = run.unwrap().wait_with_output().unwrap();
            assert!(output.status.success());
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            for lane in document["lanes"].as_array().unwrap() {
                assert!(lane["received_bytes"].as_u64().unwrap() > 0);
                assert_eq!(lane["sent_bytes"], lane["received_bytes"]);
            }
        }
    }
}

#[test]
fn a_remote_end_that_dies_is_reported_and_what_had_come_is_shown() {
    let mut remote = Served::start("127.0.0.1:0");
    let mut run = towards(&remote.address, &["--for", "1 min", "--lanes", "kcp,tcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("kcp"), "{first}");
    remote.child.kill().unwrap();
    let errors: Vec<String> = lines.map_while(Result::ok).collect();
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{errors:?}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("kcp"), "{table}");
    let is_reported = errors.iter().any(|line| line.contains("lane `kcp`"));
    assert!(is_reported, "{errors:?}");
}

#[test]
fn a_remote_end_that_is_absent_is_reported_in_one_line() {
    let output = towards("127.0.0.1:1", &["--lanes", "kcp"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}
