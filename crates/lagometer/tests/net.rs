//! Runs and recordings over a path to a remote end: loopback, and two hosts in
//! namespaces with an emulated link between.

mod behind_a_link;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use behind_a_link::behind_a_link;
use lagometer_emu::logged_packets;
use serde_json::Value;

const SECRET: &str = "a secret for tests alone";

/// Twenty milliseconds each way, and losses one way.
const NETWORK: &str = "summary = \"to be measured\"\n\
                       [both]\ndelay = \"20 ms\"\n\
                       [both.jitter]\ndistribution = \"uniform\"\nmaximum = \"10 ms\"\n\
                       [up]\nloss = \"5 %\"\n";

/// Where an IPv4 header says what it carries, and where TCP's flags are behind one
/// without options.
const PROTOCOL_AT: usize = 9;
const TCP_FLAGS_AT: usize = 20 + 13;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_lagometer")
}

fn lagometer(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(binary())
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("LAGOMETER_SECRET", SECRET)
        .args(arguments)
        .output()
        .expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it was written")).expect("it is JSON")
}

fn lane<'a>(document: &'a Value, name: &str) -> &'a Value {
    let lanes = document["lanes"].as_array().unwrap();
    lanes.iter().find(|lane| lane["lane"] == name).unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn alone_it_plays_over_loopback_with_a_remote_end_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut lanes = "udp,kcp,enet,quic,webrtc,tcp-cubic".to_owned();
    lanes += if cfg!(feature = "udt") {
        ",udt-dgram"
    } else {
        ""
    };
    lanes += if cfg!(feature = "srt") { ",srt" } else { "" };
    let output = lagometer(
        folder.path(),
        &[
            "run",
            "--testbed",
            "net",
            "--lanes",
            &lanes,
            "--for",
            "4s",
            "--json",
            "net.json",
            "--no-html",
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("one-way delays are known to ±"), "{table}");
    let document = document(&folder.path().join("net.json"));
    assert_eq!(document["testbed"], "net");
    assert!(document["impairments"].is_null());
    assert!(document["host"]["noise"]["floor"].is_object());
    assert_eq!(document["experiment"]["remote_end"]["clocks"]["steps"], 0);
    for name in lanes.split(',') {
        let lane = lane(&document, name);
        let messages = &lane["messages"];
        assert!(lane["failure"].is_null(), "{lane}");
        assert_eq!(messages["intended"], 80, "{name}: {messages}");
        assert_eq!(messages["delivered"], 80, "{name}: {messages}");
        assert!(number(&lane["up_ms"]["p50"]) <= number(&lane["rtt_ms"]["p50"]) + 1.0);
        assert!(number(&lane["cpu_ns_per_message"]) > 0.0);
        // Whose packets a machine's kernel works for is not known there.
        assert!(lane["kernel_cpu_ns_per_message"].is_null());
    }
}

#[test]
fn over_a_path_the_figures_are_the_paths() {
    const MESSAGES: u64 = 834;
    let folder = tempfile::tempdir().unwrap();
    let experiment = "name = \"often\"\nsummary = \"t\"\nnetwork = \"perfect\"\nfor = \"10 s\"\n\
                      lanes = [\"udp\", \"kcp\"]\n\
                      [workload.paced-echo]\nsize = \"80 B\"\ninterval = \"12 ms\"\n";
    fs::write(folder.path().join("often.toml"), experiment).unwrap();
    let command = format!(
        "{} run often.toml --to $LAGOMETER_SERVER --json net.json --no-html",
        binary()
    );
    let Some(output) = behind_a_link(folder.path(), NETWORK, &command) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = document(&folder.path().join("net.json"));
    assert!(document["partial"].is_null());
    let udp = lane(&document, "udp");
    assert!(udp["failure"].is_null(), "{udp}");
    assert_eq!(udp["messages"]["intended"], MESSAGES, "{udp}");
    let lost = number(&udp["messages"]["lost"]) / MESSAGES as f64;
    // By five standard deviations.
    assert!((0.012..0.088).contains(&lost), "{lost} of 5 % are lost");
    // Two ways of 20 to 30 ms are 50 ms at the median, within 1 ms by five standard
    // deviations of it; what is above that is the machine.
    let median = number(&udp["rtt_ms"]["p50"]);
    assert!((49.0..60.0).contains(&median), "{median} ms");
    // 25 ms, and by how much the ways of the quickest probe differed.
    for way in ["up_ms", "down_ms"] {
        let one_way = number(&udp[way]["p50"]);
        assert!((20.0..40.0).contains(&one_way), "{way}: {one_way} ms");
    }
    let kcp = lane(&document, "kcp");
    assert_eq!(kcp["messages"]["lost"], 0, "{kcp}");
    // They are known to half of the quickest probe's round trip.
    let error = number(&document["experiment"]["remote_end"]["clocks"]["error_ms"]);
    assert!(error > 0.0 && error < 30.0, "{error} ms");
}

#[test]
fn packets_that_the_kernel_makes_are_captured_as_they_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut lanes = vec!["udp", "tcp-cubic"];
    lanes.extend(cfg!(feature = "udt").then_some("udt-dgram"));
    lanes.extend(cfg!(feature = "srt").then_some("srt"));
    let command = format!(
        "{} run --to $LAGOMETER_SERVER --lanes {} --for 3s --json net.json --no-html --pcap net.pcapng",
        binary(),
        lanes.join(",")
    );
    let Some(output) = behind_a_link(folder.path(), NETWORK, &command) else {
        return;
    };
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let log = fs::read(folder.path().join("net.pcapng")).unwrap();
    let packets: Vec<_> = logged_packets(&log).collect();
    let counted = format!("net.pcapng holds {} packets", packets.len());
    assert!(said.contains(&counted), "{said}");
    let document = document(&folder.path().join("net.json"));
    for (number, name) in lanes.iter().enumerate() {
        let found = lane(&document, name);
        assert!(found["failure"].is_null(), "{found}");
        let protocol = if *name == "tcp-cubic" { TCP } else { UDP };
        for (direction, comment) in ["sent", "received"].into_iter().enumerate() {
            let interface = (2 * number + direction) as u32;
            let of_it = || {
                packets
                    .iter()
                    .filter(|packet| packet.interface == interface)
            };
            assert!(of_it().all(|packet| packet.fate == comment));
            assert!(of_it().all(|packet| packet.bytes[PROTOCOL_AT] == protocol));
            // Sixty messages, of which some are lost up, and what belongs to them, once each:
            // no two packets are alike, for their numbers differ.
            let seen = of_it().count();
            assert!((40..300).contains(&seen), "{name} {comment}: {seen}");
            let twice = of_it()
                .zip(of_it().skip(1))
                .find(|(one, next)| one.bytes == next.bytes);
            assert!(twice.is_none(), "{name} {comment}: {twice:?}");
            let mut instants = of_it().map(|packet| packet.epoch_ns);
            assert!(instants.clone().is_sorted(), "{name} {comment}");
            let lasted = instants.clone().next_back().unwrap() - instants.next().unwrap();
            assert!(lasted > 2_900_000_000, "{name} {comment}: {lasted} ns");
        }
    }
    // From the connection's first packet on: a SYN, and the answer to it.
    let of_tcp = |interface| {
        let mut all = packets.iter();
        all.find(|packet| packet.interface == interface).unwrap()
    };
    assert_eq!(of_tcp(2).bytes[TCP_FLAGS_AT] & (SYN | ACK), SYN);
    assert_eq!(of_tcp(3).bytes[TCP_FLAGS_AT] & (SYN | ACK), SYN | ACK);
}

#[test]
fn over_a_long_path_lanes_open_too() {
    // The remote end says how a lane stands before the local end's first packet
    // can have reached it.
    const LONG: &str = "summary = \"half way round the earth\"\n\
                        [both]\ndelay = \"200 ms\"\n";
    let folder = tempfile::tempdir().unwrap();
    let command = format!(
        "{} run --to $LAGOMETER_SERVER --lanes udp,kcp --for 1s --json net.json --no-html",
        binary()
    );
    let Some(output) = behind_a_link(folder.path(), LONG, &command) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = document(&folder.path().join("net.json"));
    for name in ["udp", "kcp"] {
        let lane = lane(&document, name);
        assert!(lane["failure"].is_null(), "{lane}");
        assert_eq!(lane["messages"]["delivered"], 20, "{lane}");
    }
}

#[test]
fn what_is_recorded_is_what_was_there_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let command = format!(
        "{} record --to $LAGOMETER_SERVER --for 10s -o path.trace",
        binary()
    );
    let Some(output) = behind_a_link(folder.path(), NETWORK, &command) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("up    1000 probes"), "{shown}");
    // A message each 47 ms meets all of the trace's probes, which are 10 ms apart, as the
    // trace goes round: one each 50 ms would meet the same fifth of them every time.
    let experiment = "name = \"probed\"\nsummary = \"t\"\nnetwork = \"perfect\"\nfor = \"60 s\"\n\
                      lanes = [\"udp\"]\n\
                      [workload.paced-echo]\nsize = \"80 B\"\ninterval = \"47 ms\"\n";
    fs::write(folder.path().join("probed.toml"), experiment).unwrap();
    // Both what replays it and what resembles it are played in virtual time.
    for network in ["path.trace", "path.toml"] {
        let output = lagometer(
            folder.path(),
            &[
                "run",
                "probed.toml",
                "--network",
                &format!("./{network}"),
                "--json",
                "again.json",
                "--no-html",
            ],
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document = document(&folder.path().join("again.json"));
        let udp = lane(&document, "udp");
        let lost = number(&udp["messages"]["lost"]) / number(&udp["messages"]["intended"]);
        assert!(
            // Of a thousand probes, by five standard deviations.
            (0.016..0.084).contains(&lost),
            "{network}: {lost} of 5 % lost\n{shown}"
        );
        let median = number(&udp["rtt_ms"]["p50"]);
        assert!(
            (40.0..75.0).contains(&median),
            "{network}: {median} ms\n{shown}"
        );
    }
}

#[test]
fn a_remote_end_killed_mid_run_leaves_a_partial_result() {
    let folder = tempfile::tempdir().unwrap();
    let mut serve = Command::new(binary())
        .args(["serve", "--bind", "127.0.0.1:0"])
        .env("LAGOMETER_SECRET", SECRET)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serve.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.rsplit(' ').next().unwrap();
    let began = Instant::now();
    let run = Command::new(binary())
        .current_dir(folder.path())
        .args([
            "run", "--to", address, "--lanes", "udp,kcp", "--for", "10min",
        ])
        .args(["--json", "cut.json", "--no-html"])
        .env("LAGOMETER_SECRET", SECRET)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let opened = lines
        .by_ref()
        .filter(|line| line.as_ref().is_ok_and(|line| line.contains("opened")));
    assert_eq!(opened.take(2).count(), 2);
    // Settling, the notice, and some messages before the margin of a cut.
    std::thread::sleep(Duration::from_secs(8));
    serve.kill().unwrap();
    serve.wait().unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        began.elapsed() < Duration::from_mins(5),
        "it does not wait for what is gone"
    );
    let document = document(&folder.path().join("cut.json"));
    assert_eq!(document["partial"], true);
    let udp = lane(&document, "udp");
    assert!(number(&udp["messages"]["delivered"]) > 20.0, "{udp}");
    let warnings = document["warnings"].to_string();
    assert!(
        warnings.contains("gone before the run was over"),
        "{warnings}"
    );
}

/// The wall clock of the local end jumps by an hour in the middle of a run.
#[test]
fn a_clock_that_is_stepped_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("stepped_clock.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/stepped_clock.c"
        ))
        .status()
        .expect("there is a C compiler, which the workspace is built with");
    assert!(built.success());
    let stepped = folder.path().join("stepped");
    let mut lanes = vec!["udp", "kcp"];
    if cfg!(feature = "udt") {
        lanes.push("udt-dgram");
    }
    let mut command = Command::new(binary());
    command
        .current_dir(folder.path())
        .args(["run", "--testbed", "net", "--lanes", &lanes.join(",")])
        .args(["--for", "4s", "--json", "stepped.json", "--no-html"])
        .env("LAGOMETER_SECRET", SECRET)
        .env("LD_PRELOAD", &library)
        .env("STEPPED_CLOCK_NOTE", &stepped);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        stepped.exists(),
        "the run reads the wall clock that is stepped"
    );
    let document = document(&folder.path().join("stepped.json"));
    for name in lanes {
        let lane = lane(&document, name);
        assert_eq!(lane["messages"]["delivered"], 80, "{lane}");
        for figure in ["rtt_ms", "up_ms", "down_ms"] {
            let worst = number(&lane[figure]["max"]);
            assert!(worst < 10_000.0, "{figure}: {worst} ms");
        }
    }
}
