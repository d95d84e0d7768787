//! The fates of a few profiles that have everything, as digests: a change of
//! the randomness, wanted or not, is noticed here, on whatever machine.
//!
//! If a change is wanted, the digests are replaced by those the failing test
//! prints. Results made from a seed before are then not those made from it
//! after, which the changelog must say.

use std::fmt::Write as _;
use std::time::Duration;

use lagometer_link::{Direction, Fate, Link, Profile, Regime};
use lagometer_units::Time;

const DIGESTS: &str = "\
time 3af37f8b1258f448\n\
packet bac315299ff56f3e\n\
recorded e8fe74680bed86a7\n\
mahimahi 5533d6c83f976e75\n\
";

const EVERYTHING: &str = "summary = \"everything at once\"\n\
    [both]\ndelay = \"21 ms\"\nloss = \"2 %\"\nrate = \"800 kbit/s\"\nqueue = \"80 ms\"\n\
    jitter = { distribution = \"pareto\", mean = \"3 ms\", maximum = \"90 ms\", reorder = true }\n\
    bursts = { mean_good = \"2 s\", mean_bad = \"100 ms\", loss_bad = \"70 %\", loss_good = \"1 %\" }\n\
    duplication = { share = \"3 %\", apart = \"1 ms\" }\n\
    reordering = { share = \"3 %\", extra = \"12 ms\" }\ncorruption = \"4 %\"\n\
    handover = { every = \"7 s\", extra = \"11 ms\" }\nmtu = \"1300 B\"\n\
    outages = [{ at = \"9 s\", every = \"31 s\", for = \"200 ms\" }, \
               { mean_gap = \"20 s\", mean_for = \"300 ms\" }]\n\
    [up]\nstalls = [{ mean_gap = \"9 s\", for = \"40 ms\", up_to = \"400 ms\" }]\n\
    [down]\njitter = { distribution = \"normal\", mean = \"9 ms\", deviation = \"5 ms\", \
    maximum = \"40 ms\", correlation = \"90 ms\" }\nbursts = { mean_good = \"1 s\", \
    mean_bad = \"50 ms\", loss_bad = \"50 %\" }\n";

const RECORDED: &str = "lagometer-trace/1\nlasts 3000000\nup 0 - 10000 0\n\
    up 700000 2000000 20000 50000\nup 1500000 0 9000 0\nup 1700000 90000 9000 200000\n\
    down 0 500000 5000 1000\n";

/// FNV-1a.
fn mix(digest: u64, word: u64) -> u64 {
    word.to_le_bytes().iter().fold(digest, |digest, &byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

fn digest_fate(digest: u64, fate: Fate) -> u64 {
    let digest = match fate {
        Fate::Delivered { .. } => digest,
        Fate::Dropped(reason) => mix(digest, 1 + reason as u64),
        Fate::Refused { mtu_bytes } => mix(digest, 100 + mtu_bytes),
    };
    fate.arrivals().fold(digest, |digest, arrival| {
        let mut bytes = [0; 64];
        if let Some(damage) = arrival.damage {
            damage.apply(&mut bytes);
        }
        bytes
            .iter()
            .fold(mix(digest, arrival.at.as_nanos()), |digest, &byte| {
                mix(digest, u64::from(byte))
            })
    })
}

/// Two seeds, two minutes each: 20 messages a second, echoes between them,
/// and ten large packets at once each second.
fn digest(text: &str, trace: &str, regime: Regime) -> u64 {
    let profile = Profile::parse("golden", text, &mut |_| Ok(trace.to_owned()))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut digest = 0xCBF2_9CE4_8422_2325;
    for seed in [1, 2015] {
        let mut link = Link::new(&profile, seed, regime, Time::from_millis(500));
        for n in 0..2400_u64 {
            let now = Time::from_millis(n * 50);
            digest = digest_fate(digest, link.offer(Direction::Up, now, 528));
            let now = Time::from_micros(n * 50_000 + 33_333);
            digest = digest_fate(digest, link.offer(Direction::Down, now, 528));
            if n % 20 == 0 {
                for bytes in 1292..1302 {
                    digest = digest_fate(digest, link.offer(Direction::Down, now, bytes));
                }
            }
        }
    }
    digest
}

#[test]
fn fates_are_those_of_every_run_before() {
    let spacing = Duration::from_millis(50);
    let mahimahi = "3\n9\n9\n21\n22\n50\n";
    let traced = "summary = \"traced\"\n[both]\ntrace = \"t\"\nqueue = \"40 KB\"\n";
    let mut current = String::new();
    for (name, text, trace, regime) in [
        ("time", EVERYTHING, "", Regime::Time),
        ("packet", EVERYTHING, "", Regime::Packet { spacing }),
        ("recorded", traced, RECORDED, Regime::Time),
        ("mahimahi", traced, mahimahi, Regime::Time),
    ] {
        let digest = digest(text, trace, regime);
        writeln!(current, "{name} {digest:016x}").unwrap();
    }
    assert_eq!(DIGESTS, current, "now it is:\n{current}");
}
