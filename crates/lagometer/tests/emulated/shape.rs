//! Any program behind an emulated link.

use std::fs;

use crate::{lagometer, permitted, run, said};

#[test]
fn a_program_runs_behind_the_link_and_sees_nothing_else() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("packets.pcapng");
    // The flag and the second variable by the names they had before.
    let script = "[ $LAGOMETER_FAR = $LAGOMETER_SERVER ] || exit 1; \
                  echo $LAGOMETER_SERVER $LAGOMETER_SERVER_V6; cat /proc/net/dev; exit 7";
    let output = lagometer(&[
        "shape", "loss-1", "--seed", "3", "--far", "exit 5", "--pcap",
    ])
    .arg(&pcap)
    .args(["--", "sh", "-c", script])
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.starts_with("10.77.0.2 fd6c:"), "{shown}");
    let devices: Vec<&str> = shown
        .lines()
        .skip(3)
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    assert_eq!(devices, ["lo", "lane0"]);
    let printed = said(&output);
    assert!(
        printed.contains("the server command ended before"),
        "{printed}"
    );
    assert!(printed.contains("lagometer: audit: "), "{printed}");
    assert!(
        fs::read(&pcap)
            .unwrap()
            .starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])
    );
}

#[test]
fn what_cannot_be_shaped_is_said_in_one_line() {
    for (arguments, expected) in [
        (
            vec!["shape", "nonesuch", "--", "true"],
            "no network is called `nonesuch`",
        ),
        (vec!["run", "--ipv6"], "--ipv6 is for `--testbed emu`"),
        (
            vec!["run", "--testbed", "emu", "--emu-mode", "proxy", "--ipv6"],
            "--ipv6 needs hosts",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert_eq!(said(&output).trim_end().lines().count(), 1);
    }
    let Some(_alone) = permitted() else {
        return;
    };
    let output = run(&["shape", "perfect", "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("cannot start `/no/such/program`"));
}
