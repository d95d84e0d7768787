//! The audit of the emulator, held against a kernel in virtual time.

use std::process::Output;

use super::{kernel, lagometer, said};

/// How often it is played until the emulator is within its band.
const MOST_PLAYS: u32 = 3;

/// The figure in a row of `agree`'s table that is so many words from the row's end.
fn figure(row: &str, from_end: usize) -> f64 {
    let words: Vec<&str> = row.split_whitespace().collect();
    let word = words[words.len() - 1 - from_end];
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is no number, in {row}"))
}

#[test]
fn what_the_emulators_audit_says_stands_beside_that_of_a_kernel_in_virtual_time() {
    let Some(_alone) = kernel() else { return };
    let permitted = lagometer(&["shape", "perfect", "--", "true"])
        .output()
        .unwrap();
    if permitted.status.code() == Some(3) {
        assert!(
            std::env::var_os("LAGOMETER_REQUIRE_NAMESPACES").is_none(),
            "LAGOMETER_REQUIRE_NAMESPACES is set, but {}",
            said(&permitted)
        );
        println!("skipped: {}", said(&permitted));
        return;
    }
    // Two seeds cannot show that the two agree, and are not to: what is found of the
    // emulator beside other tests is the machine's.
    let agree = || {
        lagometer(&["agree", "--against", "kernel", "--network", "fiber"])
            .args(["--lanes", "udp", "--for", "1s", "--seeds", "2"])
            .output()
            .unwrap()
    };
    // What an emulator that was outside its band found is not shown.
    let is_shown = |output: &Output| !String::from_utf8_lossy(&output.stdout).contains("NOT VALID");
    let mut output = agree();
    for _ in 1..MOST_PLAYS {
        if !is_shown(&output) {
            output = agree();
        }
    }
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{table}{}", said(&output));
    let row = |name: &str| {
        let row = table.lines().find(|line| line.contains(name));
        row.unwrap_or_else(|| panic!("{name} in {table}"))
    };
    assert!(row("kernel").contains("emu less kernel"), "{table}");
    // A router in virtual time is late for nothing. Over `fiber` a real one never is for
    // no microsecond, and what it is late by is what the two audits differ by.
    let [kernel_late, emulator_late, apart] =
        [4, 3, 2].map(|from_end| figure(row("late, by the audit"), from_end));
    assert!(kernel_late.abs() < 0.005, "{table}");
    assert!(emulator_late >= 0.005, "{table}");
    assert!((apart - emulator_late).abs() < 0.011, "{table}");
    // What the clients saw beyond what the audit says is the waking of their threads: an audit
    // that leaves out some milliseconds of the router's, or tells more than anybody met, is
    // found here.
    let median = row("p50 of the round trip");
    let words: Vec<f64> = median
        .split_whitespace()
        .filter_map(|it| it.parse().ok())
        .collect();
    let [in_kernel, in_emulator, ..] = words[..] else {
        panic!("no medians in {table}");
    };
    let unseen_ms = in_emulator - in_kernel - emulator_late;
    assert!((-0.3..3.0).contains(&unseen_ms), "{unseen_ms}: {table}");
    assert!(table.contains("Late, by the audit:"), "{table}");
}
