//! What happens in a guest happens when it is due, as in a simulation.

use std::fs;

use lagometer_emu::logged_packets;

use super::{document, kernel, lagometer, play, said};

#[test]
fn every_message_of_every_endpoint_is_as_in_the_simulation_over_a_lossy_network() {
    let Some(_alone) = kernel() else { return };
    let output = lagometer(&["agree", "--testbed", "kernel"])
        .args(["--network", "loss-5", "--for", "10s"])
        .output()
        .unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{table}{}", said(&output));
    let share = |line: &str| line.contains(" 100.00 % of   200");
    assert_eq!(
        table.lines().filter(|line| share(line)).count(),
        5,
        "{table}"
    );
}

#[test]
fn sleeps_end_when_they_are_due_and_nobody_waits_for_random_numbers() {
    let Some(_alone) = kernel() else { return };
    // A sixty-fourth of a second is a whole number of nanoseconds in binary and
    // in decimal.
    let script = "import os, time
at = time.monotonic_ns()
os.getrandom(8)
print(time.monotonic_ns() - at)
for _ in range(3):
    at = time.monotonic_ns()
    time.sleep(1 / 64)
    print(time.monotonic_ns() - at)";
    let output = lagometer(&["shape", "perfect", "--testbed", "kernel", "--plain"])
        .args(["--", "python3", "-c", script])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let expected = "0\n15625000\n15625000\n15625000\n";
    assert_eq!(printed, expected, "{}", said(&output));
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
}
