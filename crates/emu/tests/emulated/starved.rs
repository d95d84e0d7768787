//! A clock outside the router, and what the audit makes of a router that is held up.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use lagometer_emu::{Audit, LaneAddresses, Network, Settings};
use libtest_mimic::Trial;

use crate::bench::{devices, network, network_with, udp_pair};

pub(crate) fn tests() -> Vec<Trial> {
    let tests: [(&str, fn()); 5] = [
        ("the_kernels_stamps_follow_every_packet", every_packet),
        ("a_router_that_is_away_once_is_found_out_twice", away_once),
        (
            "a_router_that_is_often_late_breaks_the_rule_of_the_edge",
            often_late,
        ),
        (
            "a_router_that_is_mostly_late_breaks_the_rules_of_the_middle",
            mostly_late,
        ),
        (
            "a_router_that_lets_queues_overflow_breaks_the_rule_of_loss",
            overflows,
        ),
    ];
    tests
        .map(|(name, body)| {
            Trial::test(name, move || {
                body();
                Ok(())
            })
        })
        .into()
}

const PLAIN: &str = "[both]\ndelay = \"20 ms\"\n";

/// Sends a packet a millisecond, `packets` of them, and calls `before` for each; then
/// waits until what is on its way has arrived.
fn stream(local: &UdpSocket, packets: u32, mut before: impl FnMut(u32)) {
    let began = Instant::now();
    for nth in 0..packets {
        let due = Duration::from_millis(u64::from(nth));
        thread::sleep(due.saturating_sub(began.elapsed()));
        before(nth);
        local.send(&nth.to_be_bytes()).unwrap();
    }
    thread::sleep(Duration::from_millis(100));
}

/// What the audit says of a stream of 400 packets over a link that behaves as `ways`,
/// whose router is held up before those that `how_long` says.
fn audit_of(ways: &str, how_long: impl Fn(u32) -> Option<Duration>) -> Audit {
    let network = network(&[ways]);
    let addresses = LaneAddresses::of(0);
    let (local, _remote) = udp_pair(&network, addresses.local_v4, addresses.remote_v4);
    stream(&local, 400, |nth| {
        if let Some(how_long) = how_long(nth) {
            network.hold_up(how_long).unwrap();
        }
    });
    let audit = network.stop().unwrap().audit;
    assert!(!audit.valid);
    audit
}

/// Whether a fault of the audit has these words, of the direction that was used.
fn has_fault(audit: &Audit, words: &str) -> bool {
    audit.faults.iter().any(|fault| fault.contains(words))
}

fn assert_faults(audit: &Audit, rules: &[&str]) {
    for rule in rules {
        assert!(has_fault(audit, rule), "{rule}: {:?}", audit.faults);
    }
}

fn every_packet() {
    const ROUGH: &str = "[both]\ndelay = \"5 ms\"\nloss = \"10 %\"\ncorruption = \"10 %\"\n\
                         duplication = { share = \"10 %\", apart = \"1 ms\" }\n\
                         reordering = { share = \"10 %\", extra = \"3 ms\" }\n";
    for device in devices() {
        let settings = Settings {
            device,
            ..Settings::default()
        };
        let network: Network = network_with(&settings, &[PLAIN, ROUGH]);
        let addresses = LaneAddresses::of(1);
        let (local, remote) = udp_pair(&network, addresses.local_v6, addresses.remote_v6);
        let other = LaneAddresses::of(0);
        let (other_local, _other) = udp_pair(&network, other.local_v4, other.remote_v4);
        stream(&local, 300, |nth| {
            remote.send(&[0; 900]).unwrap();
            other_local.send(&nth.to_be_bytes()).unwrap();
        });
        let audit = network.stop().unwrap().audit;
        for lane in &audit.lanes {
            for way in [&lane.up, &lane.down] {
                let seen = way.outside_error_us.expect("the hosts are tapped");
                assert_eq!(way.unseen, 0, "{device:?} {lane:?}");
                // A host does not take a packet that was damaged beyond its version.
                let followed = way.delivered - way.damaged..=way.delivered;
                assert!(followed.contains(&seen.count), "{device:?} {lane:?}");
                assert_eq!(seen.count == 0, way.packets == 0, "{device:?} {lane:?}");
                // All that the router knows of, and what it does not.
                assert!(seen.p50 + 1.0 >= way.release_error_us.p50, "{lane:?}");
            }
        }
        // Stamps of the packet before or after would be a millisecond off, and those of a
        // way whose delay was forgotten 5 or 20 ms.
        for lane in &audit.lanes {
            let seen = lane.up.outside_error_us.unwrap();
            assert!(seen.p50 < 900.0, "{device:?} {lane:?}");
        }
    }
}

fn away_once() {
    let audit = audit_of(PLAIN, |nth| {
        (nth == 100).then_some(Duration::from_millis(30))
    });
    let rules = [
        "the router was away for",
        "`lane 0` up: by the kernel's stamps a packet was under way too long by",
    ];
    assert_faults(&audit, &rules);
}

fn often_late() {
    // An eighth of the time.
    let audit = audit_of(PLAIN, |nth| {
        (nth % 40 == 0).then_some(Duration::from_millis(5))
    });
    let rules = [
        "`lane 0` up: 99th percentile of the release error",
        "`lane 0` up: 99th percentile of the error by the kernel's stamps",
    ];
    assert_faults(&audit, &rules);
}

fn mostly_late() {
    // What it reads when it comes round is due when it is away again.
    let ways = "[both]\ndelay = \"22 ms\"\n";
    let audit = audit_of(ways, |nth| {
        (nth % 5 == 0).then_some(Duration::from_millis(4))
    });
    let rules = [
        "`lane 0` up: median release error",
        "`lane 0` up: median error by the kernel's stamps",
        "`lane 0` up: mean delay differs",
    ];
    assert_faults(&audit, &rules);
}

fn overflows() {
    let network = network(&[PLAIN]);
    let addresses = LaneAddresses::of(0);
    let (local, _remote) = udp_pair(&network, addresses.local_v4, addresses.remote_v4);
    network.hold_up(Duration::from_millis(500)).unwrap();
    // More than a device has room for, at once.
    for _ in 0..8000 {
        let _ = local.send(&[0; 100]);
    }
    thread::sleep(Duration::from_millis(700));
    let audit = network.stop().unwrap().audit;
    assert!(!audit.valid);
    assert!(audit.lanes[0].up.lost_before > 0, "{:?}", audit.lanes);
    assert_faults(&audit, &["`lane 0` up: loss differs"]);
}
