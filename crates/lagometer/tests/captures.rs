//! Captures as Wireshark reads them: `run --pcap`, then `tshark` with the dissectors of
//! `deploy/wireshark`, whose fields are held against the bytes that were sent.
//!
//! Where there is no `tshark` the tests are left out; with `LAGOMETER_REQUIRE_TSHARK` in
//! the environment that is a failure.

mod dissectors;
#[cfg(target_os = "linux")]
mod gateway_process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lagometer_emu::logged_packets;
use serde_json::Value;

/// Whether there is a `tshark`.
///
/// # Panics
///
/// Where there must be one and is none.
pub(crate) fn tshark() -> bool {
    let found = Command::new("tshark").arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    assert!(
        is_there || std::env::var_os("LAGOMETER_REQUIRE_TSHARK").is_none(),
        "LAGOMETER_REQUIRE_TSHARK is set, but tshark is missing: apt-get install tshark"
    );
    if !is_there {
        eprintln!("skipped: tshark is missing");
    }
    is_there
}

/// The folder of the dissectors.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/wireshark")
}

/// What `tshark` prints of a capture, with all dissectors loaded.
///
/// # Panics
///
/// Where it fails, or a dissector does.
pub(crate) fn dissected(capture: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tshark");
    for script in ["kcp.lua", "enet.lua", "channeld.lua"] {
        let path = scripts().join(script);
        command
            .arg("-X")
            .arg(format!("lua_script:{}", path.display()));
    }
    // Nobody's own settings.
    let home = tempfile::tempdir().unwrap();
    let output = command
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .arg("-r")
        .arg(capture)
        .args(arguments)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    for text in [&printed, &said] {
        assert!(
            !text.contains("Lua Error") && !text.contains("lua:"),
            "{text}"
        );
    }
    printed
}

/// The fields of every packet that `filter` lets through, one row each.
pub(crate) fn fields(capture: &Path, filter: &str, names: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator=/t"];
    for name in names {
        arguments.extend(["-e", name]);
    }
    let printed = dissected(capture, &arguments);
    let rows = printed.lines();
    rows.map(|row| row.split('\t').map(str::to_owned).collect())
        .collect()
}

pub(crate) fn lagometer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .env("NO_COLOR", "1")
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// The document and the capture of a run of one seed.
pub(crate) fn captured(folder: &Path, arguments: &[&str]) -> (Value, PathBuf) {
    let path = folder.join("packets.pcapng");
    let fixed = ["run", "--no-html", "--json", "-", "--seeds", "1", "--pcap"];
    let output = lagometer(&[&fixed[..], &[path.to_str().unwrap()], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("packets.pcapng holds"), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), path)
}

#[test]
fn every_lane_is_captured_with_an_interface_for_each_direction() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lanes = ["udp", "kcp", "enet", "quic", "webrtc-str0m", "tcp-cubic"];
    let play = [
        "--lanes",
        &lanes.join(","),
        "--for",
        "2s",
        "--network",
        "loss-5",
    ];
    let (document, capture) = captured(folder.path(), &play);
    let names = [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.comment",
        "frame.len",
        "frame.protocols",
    ];
    let rows = fields(&capture, "frame", &names);
    let log = fs::read(&capture).unwrap();
    let packets: Vec<_> = logged_packets(&log).collect();
    assert_eq!(rows.len(), packets.len());
    for (row, packet) in rows.iter().zip(&packets) {
        let lane = lanes[packet.interface as usize / 2];
        let direction = ["up", "down"][packet.interface as usize % 2];
        assert_eq!(row[0], format!("{lane} {direction}"));
        let at = format!(
            "{}.{:09}",
            packet.epoch_ns / 1_000_000_000,
            packet.epoch_ns % 1_000_000_000
        );
        assert_eq!(row[1], at);
        assert_eq!(row[2], packet.fate);
        assert_eq!(row[3], packet.bytes.len().to_string());
    }
    for (lane, protocol) in [
        ("kcp", ":udp:kcp"),
        ("enet", ":udp:enet"),
        ("quic", ":udp:quic"),
        ("tcp-cubic", ":ip:tcp"),
    ] {
        let of_lane = || {
            rows.iter()
                .filter(|row| row[0].starts_with(&format!("{lane} ")))
        };
        let as_expected = of_lane().filter(|row| row[4].contains(protocol)).count();
        assert!(of_lane().count() > 40, "{lane}");
        assert_eq!(as_expected, of_lane().count(), "{lane}");
    }
    // What the document counts of losses is in the comments.
    for lane in document["lanes"].as_array().unwrap() {
        let name = lane["lane"].as_str().unwrap();
        let lost = rows.iter().filter(|row| {
            let seconds: f64 = row[1].parse().unwrap();
            row[0].starts_with(&format!("{name} ")) && row[2] == "dropped: loss" && seconds >= 10.0
        });
        let counted = lane["wire"]["dropped"]["loss"].as_u64().unwrap_or(0);
        assert_eq!(lost.count() as u64, counted, "{name}");
    }
    // Headers and checksums are right: nothing that Wireshark would call a bad one.
    let checked = [
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-Y",
        "ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0",
    ];
    assert_eq!(dissected(&capture, &checked), "");
}

#[test]
fn a_run_over_a_real_path_captures_what_this_end_sends_and_receives() {
    let folder = tempfile::tempdir().unwrap();
    let play = ["--testbed", "net", "--lanes", "udp,kcp", "--for", "2s"];
    let (document, capture) = captured(folder.path(), &play);
    let log = fs::read(capture).unwrap();
    for (lane, found) in document["lanes"].as_array().unwrap().iter().enumerate() {
        assert!(
            found["messages"]["delivered"].as_u64() >= Some(40),
            "{found}"
        );
        for (direction, comment) in ["sent", "received"].into_iter().enumerate() {
            let interface = (2 * lane + direction) as u32;
            let of_it = || logged_packets(&log).filter(|packet| packet.interface == interface);
            assert!(of_it().all(|packet| packet.fate == comment));
            // The document counts from the first message on.
            let key = ["up_packets", "down_packets"][direction];
            let counted = found["wire"][key].as_u64().unwrap();
            // KCP puts segments that wait together into one packet, as they do where the machine
            // has paused this program for longer than it is between two messages.
            let least = if found["lane"] == "kcp" { 20 } else { 40 };
            assert!(
                counted >= least && of_it().count() as u64 >= counted,
                "{found}"
            );
        }
    }
}

#[test]
fn what_cannot_be_captured_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    let path = path.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 2] = [
        (
            &["--nats", "nats://127.0.0.1:1", "--pcap", path],
            2,
            "leave out `--nats`",
        ),
        (
            &["--pcap", "/nonesuch/x.pcapng"],
            3,
            "/nonesuch/x.pcapng: cannot be written",
        ),
    ];
    for (arguments, code, expected) in cases {
        let output = lagometer(&[&["run", "--no-html", "--for", "1s"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!Path::new(path).exists());
    }
}

#[test]
fn an_earlier_capture_is_there_still_where_the_remote_end_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    fs::write(&path, "earlier").unwrap();
    let to = [
        "run",
        "--to",
        "127.0.0.1:1",
        "--lanes",
        "udp",
        "--for",
        "1s",
    ];
    let output = lagometer(&[&to[..], &["--no-html", "--pcap", path.to_str().unwrap()]].concat());
    assert!(!output.status.success());
    assert_eq!(fs::read(&path).unwrap(), b"earlier");
}

#[cfg(target_os = "linux")]
#[test]
fn who_may_not_see_the_kernels_packets_learns_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    // Root without this one right, or a user who never had it.
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(["--bounding-set", "-net_raw"]);
    }
    let output = command
        .arg("--no-new-privs")
        .arg(env!("CARGO_BIN_EXE_lagometer"))
        .args(["run", "--testbed", "net", "--no-html", "--for", "1s"])
        .args(["--lanes", "udp,tcp-cubic", "--pcap"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = "--pcap: the packets of tcp-cubic are made by the kernel or a library";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("setcap cap_net_raw+ep"), "{said}");
    assert_eq!(said.trim().lines().count(), 1, "{said}");
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_capture_or_a_log_cut_by_a_full_disk_is_a_failure_that_loses_no_findings() {
    let place = tempfile::tempdir().unwrap();
    let logs = place.path().join("logs");
    fs::create_dir(&logs).unwrap();
    std::os::unix::fs::symlink("/dev/full", logs.join("quic-server.sqlog")).unwrap();
    let logs = logs.to_str().unwrap();
    let full_log = format!("{logs}/quic-server.sqlog");
    let cases: [(&[&str], &str); 4] = [
        (&["--pcap", "/dev/full"], "/dev/full"),
        (&["--testbed", "net", "--pcap", "/dev/full"], "/dev/full"),
        (
            &[
                "--testbed",
                "emu",
                "--emu-mode",
                "proxy",
                "--pcap",
                "/dev/full",
            ],
            "/dev/full",
        ),
        (&["--qlog", logs], &full_log),
    ];
    for (arguments, file) in cases {
        let fixed = ["run", "--no-html", "--json", "-", "--seeds", "1"];
        let play = ["--lanes", "quic", "--for", "1s"];
        let output = lagometer(&[&fixed[..], &play, arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
        let expected = format!("lagometer: {file}: writing ended early: ");
        let lines: Vec<_> = said.lines().filter(|it| it.contains(file)).collect();
        assert!(
            lines.len() == 1 && lines[0].starts_with(&expected),
            "{said}"
        );
        assert!(lines[0].contains("space"), "{said}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let messages = &document["lanes"][0]["messages"];
        assert!(messages["delivered"].as_u64().unwrap() > 0, "{messages}");
    }
}

/// The capture of a world of three players in virtual time.
fn world_captured(path: &Path, transport: &str) -> Vec<u8> {
    let output = lagometer(&[
        "world",
        "single",
        "--no-html",
        "--players",
        "3",
        "--for",
        "2s",
        "--transport",
        transport,
        "--network",
        "loss-5",
        "--pcap",
        path.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("packets.pcapng holds"), "{said}");
    fs::read(path).unwrap()
}

#[test]
fn worlds_in_virtual_time_are_captured_alike_each_time_with_players_as_lanes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets.pcapng");
    for transport in ["tcp-cubic", "kcp", "websocket"] {
        let first = world_captured(&path, transport);
        let again = world_captured(&path, transport);
        // The masks of WebSockets are nobody's to foresee.
        let without_bytes = |log: &[u8]| -> Vec<_> {
            let packets = logged_packets(log);
            packets
                .map(|it| {
                    (
                        it.epoch_ns,
                        it.interface,
                        it.bytes.len(),
                        it.fate.to_owned(),
                    )
                })
                .collect()
        };
        assert_eq!(without_bytes(&first), without_bytes(&again), "{transport}");
        assert!(first == again || transport == "websocket", "{transport}");
        let packets: Vec<_> = logged_packets(&first).collect();
        assert!(packets.is_sorted_by_key(|packet| packet.epoch_ns));
        for interface in 0..6 {
            let of_it = || packets.iter().filter(|it| it.interface == interface);
            assert!(of_it().count() > 20, "{transport} {interface}");
            // The client's address ends with 1 on every link, and comes first on the way up.
            let from = [1, 2][interface as usize % 2];
            let player = (interface / 2) as u8;
            assert!(of_it().all(|it| it.bytes[12..16] == [10, 77, player, from]));
        }
        let lost = packets.iter().filter(|it| it.fate == "dropped: loss");
        assert!(lost.count() > 0, "{transport}");
        // WebSockets are a gateway's on the ports that a preference names.
        if transport == "websocket" || !tshark() {
            continue;
        }
        let names = ["frame.interface_name", "channeld.type"];
        let rows = fields(&path, "channeld", &names);
        for player in 0..3 {
            for direction in ["up", "down"] {
                let name = format!("player {player} {direction}");
                let of_it = rows.iter().filter(|row| row[0] == name);
                assert!(of_it.count() > 10, "{transport} {name}: {}", rows.len());
            }
        }
    }
}

#[test]
fn worlds_without_links_are_not_captured() {
    let output = lagometer(&["world", "single", "--pcap", "/nonesuch/x.pcapng"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("add `--network`"), "{said}");
}
