//! What happens in a guest happens when it is due, as in a simulation.

use std::fs;
use std::path::Path;
use std::process::Command;

use lagometer_emu::logged_packets;
use serde_json::Value;

use super::{document, first_difference, kernel, lagometer, marks, play, said};

#[test]
fn every_message_of_every_endpoint_is_as_in_the_simulation_over_a_lossy_network() {
    let Some(_alone) = kernel() else { return };
    let output = lagometer(&["agree", "--testbed", "kernel"])
        .args(["--network", "loss-5", "--for", "10s", "--seeds", "2"])
        .args(["--lanes", "udp,kcp,enet,quic,webrtc,tcp-cubic,tcp-reno"])
        .output()
        .unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{table}{}", said(&output));
    let share = |line: &str| line.contains("| 100.00 % of 400 ");
    assert_eq!(
        table.lines().filter(|line| share(line)).count(),
        7,
        "{table}"
    );
}

/// What each sender had waiting in each step and had dropped, by link and direction. A
/// simulation ends with the last echo, and a guest is watched to the end of the run: so
/// without the last step.
fn filled(bottlenecks: &Value) -> Vec<(String, Vec<u64>, u64)> {
    let links = bottlenecks.as_array().unwrap().iter();
    let ways = links.flat_map(|link| [&link["up"], &link["down"]]);
    let senders = ways.flat_map(|way| way["senders"].as_array().unwrap());
    let filled = senders.map(|sender| {
        let waiting = sender["waiting_bytes"].as_array().unwrap().iter();
        let mut waiting: Vec<u64> = waiting.map(|bytes| bytes.as_u64().unwrap()).collect();
        waiting.pop();
        let name = sender["name"].as_str().unwrap().to_owned();
        (name, waiting, sender["dropped"].as_u64().unwrap())
    });
    filled.collect()
}

#[test]
fn a_film_beside_the_game_is_to_the_packet_the_film_of_the_simulation() {
    let Some(_alone) = kernel() else { return };
    for network in ["home-film", "home-film-fq", "home-upload"] {
        let arguments = [
            ["--network", network],
            ["--lanes", "udp,enet"],
            ["--for", "5s"],
            ["--seeds", "1"],
        ]
        .concat();
        let in_guest = document(&play(&arguments));
        let simulated = lagometer(&["run", "--no-html", "--json", "-"])
            .args(arguments)
            .output()
            .unwrap();
        let simulated = document(&simulated);
        // Two lanes, each with a film, or an upload, of its own.
        assert_eq!(in_guest["bottlenecks"].as_array().unwrap().len(), 2);
        let [found, expected] = [&in_guest, &simulated].map(|it| filled(&it["bottlenecks"]));
        assert_eq!(found, expected, "{network}");
        for (lane, expected) in
            (0..2).map(|nth| (&in_guest["lanes"][nth], &simulated["lanes"][nth]))
        {
            assert_eq!(lane["messages"], expected["messages"], "{network}");
            assert_eq!(lane["wire"]["dropped"], expected["wire"]["dropped"]);
        }
    }
}

#[test]
fn a_lane_that_asks_for_marks_gets_those_of_the_simulation() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let experiment = marks::experiment(place.path());
    let arguments = [experiment.to_str().unwrap(), "--seeds", "1"];
    let in_guest = document(&play(&arguments));
    let simulated = lagometer(&["run", "--no-html", "--json", "-"])
        .args(arguments)
        .output()
        .unwrap();
    let simulated = document(&simulated);
    let [deaf, asks] = marks::of_lanes(&in_guest);
    assert_eq!(deaf.marked, 0, "{deaf:?}");
    assert!(asks.marked > 0 && asks.dropped == 0, "{asks:?}");
    assert_eq!([deaf, asks], marks::of_lanes(&simulated));
}

#[test]
fn all_three_testbeds_stand_side_by_side_and_the_exact_ones_agree() {
    let Some(_alone) = kernel() else { return };
    let output = lagometer(&["agree", "--testbed", "kernel,emu"])
        .args([
            "--network",
            "lan,fiber",
            "--for",
            "1s",
            "--lanes",
            "udp,kcp",
        ])
        .output()
        .unwrap();
    let is_refused = output.status.code() == Some(3);
    if is_refused && std::env::var_os("LAGOMETER_REQUIRE_NAMESPACES").is_none() {
        println!("skipped: {}", said(&output));
        return;
    }
    // How punctual this machine is decides its exit code, and of real time the rest.
    let table = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split('|').map(str::trim).collect())
        .filter(|cells: &Vec<_>| cells.len() == 11 && ["udp", "kcp"].contains(&cells[2]))
        .collect();
    assert_eq!(rows.len(), 4, "{table}{}", said(&output));
    for cells in rows {
        assert_eq!(cells[5], "100.00 %", "{table}");
        assert_eq!(cells[8], "yes", "{table}");
        for share in [cells[6], cells[7]] {
            let share = share
                .strip_suffix(" %")
                .and_then(|it| it.parse::<f64>().ok());
            assert!(
                share.is_some_and(|it| (0.0..=100.0).contains(&it)),
                "{table}"
            );
        }
        let said = ["wants 20 seeds", "NOT VALID: "];
        assert!(said.iter().any(|it| cells[9].starts_with(it)), "{table}");
    }
    let output = lagometer(&["agree", "--testbed", "kernel,emu", "--keep", "."])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("--keep"), "{}", said(&output));
}

/// What a command prints in a guest.
fn printed(flags: &[&str], command: &[&str]) -> String {
    let output = lagometer(&["shape", "perfect", "--testbed", "kernel"])
        .args(flags)
        .arg("--")
        .args(command)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn sleeps_end_at_the_nanosecond_at_which_they_are_due() {
    let Some(_alone) = kernel() else { return };
    // A sixty-fourth of a second is a whole number of nanoseconds in binary and
    // in decimal. So much fails while Python starts that it takes time.
    let script = "import time
time.sleep(1 / 64)
for _ in range(3):
    at = time.monotonic_ns()
    time.sleep(1 / 64)
    print(time.monotonic_ns() - at)";
    let printed = printed(&["--plain"], &["python3", "-c", script]);
    assert_eq!(printed, "15625000\n15625000\n15625000\n");
}

/// What a program in C prints in a guest.
fn printed_by(program: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let (source, built) = (place.path().join("program.c"), place.path().join("program"));
    fs::write(&source, program).unwrap();
    let compiled = Command::new("cc")
        .args([&source, Path::new("-o"), &built])
        .status();
    assert!(compiled.unwrap().success());
    printed(&["--plain"], &[built.to_str().unwrap()])
}

/// UDT keeps time by it.
#[test]
fn the_time_stamp_counter_counts_the_guests_nanoseconds_and_never_stands() {
    let Some(_alone) = kernel() else { return };
    let found = printed_by(
        "#include <stdio.h>
#include <time.h>
#include <x86intrin.h>
int main(void) {
    struct timespec nap = {0, 15625000};
    unsigned processor = 7;
    unsigned long long before = __rdtsc(), again = __rdtsc();
    nanosleep(&nap, NULL);
    unsigned long long after = __rdtscp(&processor);
    printf(\"%d %llu %u\\n\", again > before, (after - before + 500) / 1000, processor);
}
",
    );
    assert_eq!(found, "1 15625 0\n");
}

/// One is a page that the program shares with the kernel, the other asks the kernel.
#[test]
fn the_clock_without_a_system_call_is_the_clock_with_one_and_lets_waiting_loops_end() {
    let Some(_alone) = kernel() else { return };
    let found = printed_by(
        "#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long long nanoseconds(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }
static long long differing(clockid_t id) {
    struct timespec nap = {0, 1234567}, free, asked;
    long long differ = 0;
    for (int each = 0; each < 100; each++) {
        nanosleep(&nap, NULL);
        clock_gettime(id, &free);
        syscall(SYS_clock_gettime, id, &asked);
        differ += nanoseconds(free) != nanoseconds(asked);
    }
    return differ;
}
int main(void) {
    struct timespec start, now;
    long long monotonic = differing(CLOCK_MONOTONIC), calendar = differing(CLOCK_REALTIME);
    long long reads = 0, back = 0, before;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (before = nanoseconds(start); before < nanoseconds(start) + 100000; reads++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        back += nanoseconds(now) < before;
        before = nanoseconds(now);
    }
    printf(\"%lld %lld %lld %d\\n\", monotonic, calendar, back, reads > 1300 && reads < 1500);
}
",
    );
    // A thousand readings are free, and 100 us are 391 steps of 256 ns.
    assert_eq!(found, "0 0 0 1\n");
}

/// Its threads wait by the time-stamp counter.
#[test]
#[cfg(feature = "udt")]
fn lanes_of_udt_are_the_same_every_time_and_repair_what_is_lost() {
    let Some(_alone) = kernel() else { return };
    let flags = ["--network", "2015-c", "--for", "10s", "--seeds", "1"];
    let run = || {
        let lanes = ["--lanes", "udt-dgram,udt-default"];
        let mut found = document(&play(&[&flags[..], &lanes].concat()));
        found["started"] = Value::Null;
        found
    };
    let found = run();
    let again = run();
    assert_eq!(found, again, "{}", first_difference(&found, &again, ""));
    let lanes = found["lanes"].as_array().unwrap();
    let ours = lanes.iter().find(|lane| lane["lane"] == "udt-dgram");
    let median = ours.unwrap()["rtt_ms"]["p50"].as_f64().unwrap();
    assert!(median < 100.0, "{median} ms");
}

#[test]
fn nobody_waits_for_the_first_random_number() {
    let Some(_alone) = kernel() else { return };
    let script = "echo before; head -c 8 /dev/random >/dev/null; echo after";
    let printed = printed(&[], &["sh", "-c", script]);
    let stamps: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.split(']').next())
        .collect();
    assert_eq!(stamps.len(), 2, "{printed}");
    assert_eq!(stamps[0], stamps[1], "{printed}");
}

#[test]
fn packets_of_a_run_are_logged_with_their_fates() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("packets.pcapng");
    let output = play(&[
        "--lanes",
        "udp",
        "--network",
        "loss-5",
        "--for",
        "5s",
        "--pcap",
        log.to_str().unwrap(),
    ]);
    let wire = &document(&output)["lanes"][0]["wire"];
    let log = fs::read(log).unwrap();
    let fates: Vec<_> = logged_packets(&log).map(|packet| packet.fate).collect();
    let dropped = fates.iter().filter(|fate| fate.starts_with("dropped: "));
    assert_eq!(wire["dropped"]["loss"], dropped.count(), "{wire}");
    // A full disk loses no findings.
    let output = play(&["--lanes", "udp", "--for", "1s", "--pcap", "/dev/full"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let cut = "/dev/full: writing ended early: No space left on device";
    assert!(said(&output).contains(cut), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["lanes"][0]["rtt_ms"]["p50"].is_number(), "{found}");
}

#[test]
fn a_world_with_its_gateway_is_the_same_every_time() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let packets = place.path().join("packets.pcapng");
    let world = || {
        let output = lagometer(&["world", "lod", "--testbed", "kernel", "--no-html"])
            .args(["--players", "5", "--for", "3s", "--json", "-"])
            .args(["--transport", "kcp", "--network", "loss-1"])
            .args(["--pcap", packets.to_str().unwrap()])
            .output()
            .unwrap();
        let mut document = document(&output);
        document.as_object_mut().unwrap().remove("started");
        (document, fs::read(&packets).unwrap())
    };
    let ((first, log), (second, log_again)) = (world(), world());
    // Five players, up and down.
    let mut interfaces: Vec<_> = logged_packets(&log).map(|it| it.interface).collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    assert_eq!(interfaces, (0..10).collect::<Vec<_>>());
    assert!(log == log_again);
    assert!(
        first == second,
        "{}",
        first_difference(&first, &second, "document")
    );
    assert_eq!(first["testbed"], "kernel");
    assert_eq!(first["world"]["players"]["in_game"], 5, "{first}");
    assert!(first["world"]["generator"]["cpu_pct"].is_null());
    assert_eq!(first["audit"]["valid"], true);
}

#[test]
fn connections_are_logged_with_every_packet_they_sent_and_alike_each_time() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let played = |name: &str| {
        let [logs, packets] = ["", ".pcapng"].map(|end| place.path().join(format!("{name}{end}")));
        let output = play(&[
            "--lanes",
            "udp,quic",
            "--network",
            "loss-5",
            "--for",
            "2s",
            "--qlog",
            logs.to_str().unwrap(),
            "--pcap",
            packets.to_str().unwrap(),
        ]);
        document(&output);
        let expected = "holds the logs of 2 ends of connections";
        assert!(said(&output).contains(expected), "{}", said(&output));
        let ends = ["quic-client.sqlog", "quic-server.sqlog"];
        (
            ends.map(|end| fs::read_to_string(logs.join(end)).unwrap()),
            fs::read(packets).unwrap(),
        )
    };
    let (logs, packets) = played("first");
    // Interfaces 2 and 3 are the second lane's, up and down.
    for (interface, log) in [2, 3].into_iter().zip(&logs) {
        let on_path = logged_packets(&packets).filter(|packet| packet.interface == interface);
        let on_path = on_path.count();
        let sent = log.matches("packet_sent\"").count();
        // While connecting, several are in one datagram.
        assert!((on_path..on_path + 5).contains(&sent), "{sent} {on_path}");
        assert!(on_path > 50, "{on_path}");
    }
    assert!(logs == played("second").0);
}
