//! Captures of virtual time: one seed, one file, byte for byte.
//!
//! A golden digest changes when a transport, its library, the link model or the format
//! changes. If that was meant, write the new one here and say in the change why it
//! differs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lagometer_capture::logged_packets;
use lagometer_lab::sim::SimCapture;
use lagometer_lab::{
    Experiment, LaneRun, Resolved, RunOptions, SeedRun, packets_of, play_captured, resolve,
};
use lagometer_link::Profile;
use lagometer_testbed::Testbed;
use lagometer_units::Time;

/// Lanes whose bytes all follow from the seed: WebRTC's do not.
const LANES: &str = "lanes = [\"udp\", \"kcp\", \"enet\", \"quic\", \"tcp-cubic\"]";

const LOSSY: &str = "summary = \"t\"\n[both]\ndelay = \"20 ms\"\nrate = \"2 Mbit/s\"\n\
                     queue = \"100 ms\"\nloss = \"3 %\"\ncorruption = \"1 %\"\n";

/// What else is in the experiment, and the digest of its capture.
const GOLDEN: &[(&str, &str)] = &[
    ("", "cb24684efae6653b"),
    (
        "shared = true\n[[cross]]\nkind = \"constant\"\ndirection = \"down\"\nrate = \"1 Mbit/s\"\n",
        "954cc63475e01a1a",
    ),
];

fn resolved(rest: &str) -> Resolved {
    let text = format!(
        "name = \"t\"\nsummary = \"t\"\nnetwork = \"t\"\nfor = \"4 s\"\ngrace = \"2 s\"\n{LANES}\n\
         {rest}\n[workload.paced-echo]\nsize = \"200 B\"\ninterval = \"50 ms\"\n"
    );
    let experiment = Experiment::parse("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let profile = Profile::from_text("t.toml", LOSSY).unwrap_or_else(|error| panic!("{error}"));
    resolve(experiment, "t".to_owned(), profile, Testbed::Sim)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The capture of a run with these seeds, and the run.
fn captured(resolved: &Resolved, seeds: &[u64], threads: usize) -> (Vec<u8>, Vec<SeedRun>) {
    let mut file = Vec::new();
    let names = resolved.lanes.iter().map(|lane| &*lane.name);
    let capture = SimCapture::new(&mut file, names);
    let options = RunOptions {
        seeds: seeds.to_vec(),
        threads,
    };
    let stop = AtomicBool::new(false);
    let runs = play_captured(resolved, &options, Some(&capture), &|_| {}, &stop);
    let end = capture.finish(Path::new("t.pcapng"));
    assert_eq!(end.failure, None);
    assert_eq!(end.packets as usize, logged_packets(&file).count());
    (file, runs)
}

/// FNV-1a (Fowler, Noll and Vo), 64 bits.
fn digest(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// The capture without what it says of the program's version.
fn packets(file: &[u8]) -> Vec<u8> {
    let length = u32::from_le_bytes(*file[4..].first_chunk().unwrap());
    file[length as usize..].to_vec()
}

#[test]
fn a_seed_is_captured_as_it_always_was_whatever_the_threads() {
    let mut found = Vec::new();
    for &(rest, golden) in GOLDEN {
        let resolved = resolved(rest);
        let (one, _) = captured(&resolved, &[1], 1);
        let (three, _) = captured(&resolved, &[1, 2, 3], 3);
        assert!(one == three, "{rest}: threads and seeds change the capture");
        found.push((rest, golden, digest(&packets(&one))));
        let (other, _) = captured(&resolved, &[2], 1);
        assert!(one != other);
    }
    let differ = found.iter().any(|(_, golden, digest)| golden != digest);
    assert!(!differ, "{found:?}");
}

#[test]
fn every_packet_is_there_once_in_order_and_with_its_fate() {
    for &(rest, _) in GOLDEN {
        let resolved = resolved(rest);
        let (file, runs) = captured(&resolved, &[1], 2);
        let mut last = 0;
        let mut by_interface: BTreeMap<u32, Vec<(u64, usize, String)>> = BTreeMap::new();
        for packet in logged_packets(&file) {
            assert!(packet.epoch_ns >= last, "out of order at {last}");
            last = packet.epoch_ns;
            let seen = (packet.epoch_ns, packet.bytes.len(), packet.fate.to_owned());
            by_interface.entry(packet.interface).or_default().push(seen);
        }
        for lane in 0..resolved.lanes.len() {
            let mut expected = [Vec::new(), Vec::new()];
            for packet in packets_of(&resolved, lane, 1) {
                let fate = packet.fate.in_words(packet.at).to_string();
                let seen = (packet.at.as_nanos(), packet.bytes, fate);
                expected[packet.direction.index()].push(seen);
            }
            for (direction, mut expected) in expected.into_iter().enumerate() {
                let interface = (2 * lane + direction) as u32;
                let found = by_interface.get_mut(&interface).unwrap();
                found.sort();
                expected.sort();
                assert!(*found == expected, "interface {interface} of {rest:?}");
            }
        }
        // What the document counts of losses since measuring began is in the capture.
        for (lane, run) in runs[0].lanes.iter().enumerate() {
            let LaneRun::Played(outcome) = run else {
                panic!("lane {lane} was not played");
            };
            let starts = (Time::ZERO + lagometer_lab::Plan::LEAD_IN).as_nanos();
            let dropped = [2 * lane, 2 * lane + 1].map(|interface| {
                let packets = by_interface[&(interface as u32)].iter();
                packets
                    .filter(|packet| packet.0 >= starts && packet.2 == "dropped: loss")
                    .count() as u64
            });
            let counted = outcome
                .wire
                .dropped
                .get("loss")
                .copied()
                .unwrap_or_default();
            assert_eq!(dropped.iter().sum::<u64>(), counted, "lane {lane}");
        }
    }
}
