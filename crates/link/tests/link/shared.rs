//! The link for several senders: as the plain link where its queue is, and what
//! every discipline must keep.

use std::collections::BTreeMap;

use lagometer_link::queue::{Flow, Packet};
use lagometer_link::{Direction, Fate, Link, Passed, Profile, Reason, Regime, SharedLink};
use lagometer_units::{BadInput, Time};
use proptest::prelude::*;

use crate::any_profile::{any_profile, any_traffic};

/// What became of the packets of `offers` in one direction, by their tags.
fn play(link: &mut SharedLink, offers: &[(Time, Packet)]) -> Vec<Passed> {
    let mut passed = Vec::new();
    let mut drain = |link: &mut SharedLink| {
        while let Some(one) = link.poll() {
            passed.push(one);
        }
    };
    for &(now, packet) in offers {
        while let Some(due) = link.next_deadline().filter(|&due| due < now) {
            link.handle_deadline(due);
            drain(link);
        }
        link.offer(Direction::Up, now, packet);
        drain(link);
    }
    while let Some(due) = link.next_deadline() {
        link.handle_deadline(due);
        drain(link);
    }
    passed
}

fn packet(tag: u64, flow: u32, bytes: u64) -> Packet {
    Packet {
        tag,
        flow: Flow {
            host: flow / 4,
            flow,
        },
        bytes,
        is_ecn_capable: flow % 2 == 1,
    }
}

fn profile(queue: &str) -> Profile {
    let text = format!("summary = \"t\"\n[up]\nrate = \"1 Mbit/s\"\nqueue = {queue}\n");
    Profile::from_text("t", &text).unwrap()
}

const DISCIPLINES: &[&str] = &[
    "\"100 ms\"",
    "{ discipline = \"codel\" }",
    "{ discipline = \"codel\", limit = \"8 KB\", ecn = true, target = \"2 ms\" }",
    "{ discipline = \"fq-codel\" }",
    "{ discipline = \"fq-codel\", flows = 2, quantum = \"300 B\", limit = \"20 KB\" }",
    "{ discipline = \"cake\" }",
    "{ discipline = \"cake\", limit = \"10 KB\" }",
    "{ discipline = \"red\", least = \"10 ms\", most = \"60 ms\" }",
    "{ discipline = \"red\", least = \"2 KB\", most = \"4 KB\", ecn = false, probability = \"10 %\" }",
];

#[test]
fn who_comes_second_in_a_stall_is_served_no_sooner() {
    let text = "summary = \"t\"\n[up]\nrate = \"2 Mbit/s\"\nqueue = \"0 ms\"\n\
                stalls = [{ mean_gap = \"100 ms\", mean_for = \"30 ms\" }]\n";
    let profile = Profile::from_text("t", text).unwrap();
    let mut plain = Link::new(&profile, 1, Regime::Time, Time::ZERO);
    let mut shared = SharedLink::new(&profile, 1, Regime::Time, Time::ZERO);
    let offers: Vec<_> = (0..4000)
        .map(|tag| (Time::from_millis(tag / 2), packet(tag, 0, 100)))
        .collect();
    let mut passed = play(&mut shared, &offers);
    passed.sort_by_key(|one| one.packet.tag);
    let mut refused = 0;
    for (&(now, offered), one) in offers.iter().zip(passed) {
        let fate = plain.offer(Direction::Up, now, offered.bytes as usize);
        assert_eq!(one.fate, fate, "{}", offered.tag);
        refused += u32::from(fate == Fate::Dropped(Reason::QueueFull));
    }
    // The second of each pair, and both in a stall.
    assert!(refused > 2100, "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn first_in_first_out_is_the_plain_link(
        profile in any_profile(),
        traffic in any_traffic(200),
        starts in 0..500_u64,
        seed: u64,
    ) {
        let profile = Profile::from_text("t", &format!("summary = \"t\"\n{profile}")).unwrap();
        let starts = Time::from_millis(starts);
        let mut plain = Link::new(&profile, seed, Regime::Time, starts);
        let mut shared = SharedLink::new(&profile, seed, Regime::Time, starts);
        let offers: Vec<_> = (0..)
            .zip(&traffic)
            .map(|(tag, &(now, bytes))| (now, packet(tag, 0, bytes as u64)))
            .collect();
        let mut passed = play(&mut shared, &offers);
        passed.sort_by_key(|one| one.packet.tag);
        prop_assert_eq!(passed.len(), offers.len());
        for (&(now, offered), one) in offers.iter().zip(passed) {
            let fate = plain.offer(Direction::Up, now, offered.bytes as usize);
            prop_assert_eq!(one.fate, fate, "{}", offered.tag);
            prop_assert_eq!(one.packet, offered);
        }
        prop_assert_eq!(plain.stats(Direction::Up), shared.stats(Direction::Up));
    }

    #[test]
    fn every_discipline_keeps_each_packet_once_and_each_flow_in_order(
        traffic in any_traffic(600),
        flows in 1..12_u32,
        seed: u64,
        discipline in 0..DISCIPLINES.len(),
    ) {
        let profile = profile(DISCIPLINES[discipline]);
        let offers: Vec<_> = (0..)
            .zip(&traffic)
            .map(|(tag, &(now, bytes))| {
                let flow = (seed.wrapping_mul(tag + 1) >> 32) as u32 % flows;
                (now, packet(tag, flow, bytes as u64))
            })
            .collect();
        let mut link = SharedLink::new(&profile, seed, Regime::Time, Time::ZERO);
        let passed = play(&mut link, &offers);
        let mut again = SharedLink::new(&profile, seed, Regime::Time, Time::ZERO);
        prop_assert_eq!(&passed, &play(&mut again, &offers));
        prop_assert!(link.stats(Direction::Up).is_conserved());
        prop_assert_eq!(link.waiting_bytes(Direction::Up), 0);
        let mut tags: Vec<u64> = passed.iter().map(|one| one.packet.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..offers.len() as u64).collect::<Vec<_>>());
        let mut latest: BTreeMap<Flow, (u64, Time)> = BTreeMap::new();
        let mut sent_until = Time::ZERO;
        for one in passed {
            prop_assert_eq!(one.packet, offers[one.packet.tag as usize].1);
            prop_assert!(!one.is_marked || one.packet.is_ecn_capable);
            let Fate::Delivered { first, .. } = one.fate else {
                continue;
            };
            // The wire carries one packet after the other, however they are chosen.
            prop_assert!(first.at >= sent_until);
            sent_until = first.at;
            if let Some((tag, at)) = latest.insert(one.packet.flow, (one.packet.tag, first.at)) {
                prop_assert!(tag < one.packet.tag && at <= first.at);
            }
        }
    }
}

/// Two greedy flows and one that sends a small packet every 20 ms, for 5 s: the
/// waits of the small ones' packets in milliseconds.
fn waits_beside_greed(queue: &str) -> Vec<u64> {
    let mut offers = Vec::new();
    for nth in 0..250_u64 {
        let now = Time::from_millis(20 * nth);
        // 1 Mbit/s carries 2500 bytes in 20 ms.
        for _ in 0..3 {
            offers.push((now, packet(0, 1, 1000)));
            offers.push((now, packet(0, 5, 1000)));
        }
        offers.push((now, packet(0, 9, 100)));
    }
    for (tag, (_, packet)) in (0..).zip(&mut offers) {
        packet.tag = tag;
        packet.is_ecn_capable = false;
    }
    let mut link = SharedLink::new(&profile(queue), 3, Regime::Time, Time::ZERO);
    play(&mut link, &offers)
        .into_iter()
        .filter(|one| one.packet.flow.flow == 9)
        .filter_map(|one| {
            let arrival = one.fate.arrivals().next()?;
            Some(
                arrival
                    .at
                    .since(offers[one.packet.tag as usize].0)
                    .as_millis() as u64,
            )
        })
        .collect()
}

#[test]
fn a_sparse_flow_waits_behind_greed_in_a_long_queue_and_not_in_a_fair_one() {
    let bloated = waits_beside_greed("\"500 ms\"");
    assert!(bloated.iter().max() > Some(&400), "{bloated:?}");
    for fair in ["{ discipline = \"fq-codel\" }", "{ discipline = \"cake\" }"] {
        let waits = waits_beside_greed(fair);
        assert_eq!(waits.len(), 250, "{fair} dropped some");
        // At most the packet on the wire and the first turns of two flows before it.
        assert!(waits.iter().max() <= Some(&40), "{fair}: {waits:?}");
    }
}

/// Bytes that each of the flows got through in 10 s, all always having more.
fn shares(queue: &str, flows: &[u32]) -> Vec<u64> {
    let mut offers = Vec::new();
    for nth in 0..1000_u64 {
        for &flow in flows {
            offers.push((Time::from_millis(10 * nth), packet(0, flow, 1200)));
        }
    }
    let mut link = SharedLink::new(&profile(queue), 3, Regime::Time, Time::ZERO);
    let mut got: BTreeMap<u32, u64> = BTreeMap::new();
    for one in play(&mut link, &offers) {
        let at = one.fate.arrivals().next().map(|arrival| arrival.at);
        if at.is_some_and(|at| at < Time::from_secs(10)) {
            *got.entry(one.packet.flow.flow).or_default() += one.packet.bytes;
        }
    }
    flows.iter().map(|flow| got[flow]).collect()
}

#[test]
fn flows_or_hosts_get_equal_shares_as_the_discipline_has_it() {
    // Flow 0 is alone on its host; 4, 5 and 6 share one.
    let flows = [0, 4, 5, 6];
    let near = |share: u64, of: f64| (share as f64 / (1_250_000.0 * of) - 1.0).abs() < 0.05;
    for share in shares("{ discipline = \"fq-codel\" }", &flows) {
        assert!(near(share, 0.25), "{share}");
    }
    let by_host = shares("{ discipline = \"cake\" }", &flows);
    assert!(near(by_host[0], 0.5), "{by_host:?}");
    for share in &by_host[1..] {
        assert!(near(*share, 1.0 / 6.0), "{by_host:?}");
    }
}

#[test]
fn red_drops_early_and_marks_what_understands_it() {
    // Half again as much as passes.
    let offers: Vec<_> = (0..3000_u64)
        .map(|tag| {
            (
                Time::from_millis(6 * tag),
                packet(tag, tag as u32 % 2, 1100),
            )
        })
        .collect();
    let queue =
        "{ discipline = \"red\", least = \"20 ms\", most = \"900 ms\", probability = \"50 %\" }";
    let mut link = SharedLink::new(&profile(queue), 3, Regime::Time, Time::ZERO);
    let passed = play(&mut link, &offers);
    let marked = passed.iter().filter(|one| one.is_marked).count();
    let early = link.stats(Direction::Up).dropped_for(Reason::QueueManaged);
    assert!(marked > 100, "{marked}");
    assert!(early.packets > 100, "{early:?}");
    for one in passed {
        if one.fate == Fate::Dropped(Reason::QueueManaged) {
            assert!(
                !one.packet.is_ecn_capable,
                "{:?} could be marked",
                one.packet
            );
        }
    }
}

#[test]
fn a_setting_of_another_discipline_names_its_line() {
    for (queue, says) in [
        ("{ discipline = \"codel\", flows = 7 }", "no `flows`"),
        (
            "{ discipline = \"fq-codel\", least = \"1 ms\" }",
            "no `least`",
        ),
        ("{ discipline = \"red\" }", "needs `least` and `most`"),
        (
            "{ discipline = \"red\", least = \"9 ms\", most = \"3 ms\" }",
            "below",
        ),
        ("{ discipline = \"fq-codel\", flows = 0 }", "between 1 and"),
        (
            "{ discipline = \"codel\", target = \"1 us\" }",
            "at least 1 ms",
        ),
        (
            "{ discipline = \"codel\", target = \"100 ms\" }",
            "must be below `interval`",
        ),
        (
            "{ discipline = \"fq-codel\", interval = \"5 ms\" }",
            "must be below `interval`",
        ),
        (
            "{ discipline = \"red\", least = \"2 KB\", most = \"4 KB\", limit = \"3 KB\" }",
            "must not be below `most`",
        ),
        (
            "{ discipline = \"red\", least = \"2 KB\", most = \"4 KB\", probability = \"0 %\" }",
            "above 0 %",
        ),
        ("{ discipline = \"cake\", limit = \"0 B\" }", "above 0 B"),
        ("{ discipline = \"wfq\" }", "unknown variant `wfq`"),
        ("{ dicipline = \"codel\" }", "unknown field `dicipline`"),
        ("7", "a bound such as"),
        ("\"seven\"", "neither a size"),
    ] {
        let text = format!("summary = \"t\"\n[up]\nrate = \"1 Mbit/s\"\nqueue = {queue}\n");
        let error = Profile::from_text("t.toml", &text).unwrap_err();
        assert_eq!(error.line, 4, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
}

#[test]
fn other_traffic_that_cannot_be_names_its_line() {
    let first = "summary = \"t\"\n[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n\n[[cross]]\n";
    for (second, line, says) in [
        (
            "kind = \"bulk\"\ndirection = \"up\"",
            6,
            "called `bulk` already",
        ),
        (
            "kind = \"bulk\"\ndirection = \"up\"\nname = \"b\"\nflows = 0",
            10,
            "between 1 and 64",
        ),
        (
            "kind = \"bulk\"\ndirection = \"up\"\nrate = \"1 Mbit/s\"",
            9,
            "has no `rate`",
        ),
        (
            "kind = \"bulk\"\ndirection = \"up\"\nflows = -1",
            9,
            "`flows` must be between 1 and 64, and is -1",
        ),
        (
            "kind = \"web\"\ndirection = \"up\"\nflows = \"6\"",
            9,
            "expected a whole number between 1 and 64",
        ),
        (
            "kind = \"constant\"\ndirection = \"up\"",
            6,
            "needs a `rate`",
        ),
        (
            "kind = \"call\"\ndirection = \"up\"\nsize = \"9 KB\"",
            9,
            "between 64 B and 1500 B",
        ),
        (
            "kind = \"call\"\ndirection = \"up\"\nleast = \"50 Mbit/s\"",
            9,
            "`least` (50000 kbit/s) must not be above `rate` (2500 kbit/s)",
        ),
        (
            "kind = \"call\"\ndirection = \"up\"\nrate = \"100 kbit/s\"",
            9,
            "`least` (150 kbit/s) must not be above `rate` (100 kbit/s)",
        ),
        (
            "kind = \"web\"\ndirection = \"up\"\nwhen = [{ at = \"1 s\", every = \"1 s\", for = \"2 s\" }]",
            9,
            "longer than it lasts",
        ),
    ] {
        let error = Profile::from_text("t.toml", &format!("{first}{second}\n")).unwrap_err();
        assert!(error.message.contains(says), "{error}");
        assert_eq!(error.line, line, "{error}");
    }
}

/// A network of 3 Mbit/s up and 10 Mbit/s down, with `down` said there too, and other
/// traffic.
fn with_cross(down: &str, cross: &[&str]) -> Result<Profile, BadInput> {
    let cross: Vec<_> = cross
        .iter()
        .zip(["a", "b", "c"])
        .map(|(says, name)| format!("[[cross]]\nname = \"{name}\"\n{says}\n"))
        .collect();
    let cross = cross.concat();
    let text = format!(
        "summary = \"t\"\n[up]\nrate = \"3 Mbit/s\"\n[down]\nrate = \"10 Mbit/s\"\n{down}\n{cross}"
    );
    Profile::from_text("t.toml", &text)
}

#[test]
fn traffic_that_never_slows_down_is_refused_before_a_queue_without_a_bound() {
    let down = "kind = \"constant\"\ndirection = \"down\"\nrate = ";
    let six = format!("{down}\"6 Mbit/s\"");
    let five = format!("{down}\"5 Mbit/s\"");
    let call = "kind = \"call\"\ndirection = \"down\"\nrate = \"6 Mbit/s\"\nleast = \"6 Mbit/s\"";
    let film = "kind = \"bulk\"\ndirection = \"down\"";
    let up = "kind = \"constant\"\ndirection = \"up\"\nrate = \"2 Mbit/s\"";
    for (queue, cross, line) in [
        ("", &[&six[..], &six][..], 16),
        ("", &[&six, film, up], 0),
        ("", &[&five, &five], 16),
        ("", &[&five, call], 16),
        ("queue = { discipline = \"drop-tail\" }", &[&six, &six], 16),
        ("queue = \"100 ms\"", &[&six, &six], 0),
        ("queue = { discipline = \"codel\" }", &[&six, &six], 0),
        ("queue = { discipline = \"cake\" }", &[&six, call], 0),
    ] {
        let said = with_cross(queue, cross);
        let Err(error) = said else {
            assert_eq!(line, 0, "{queue} {cross:?} is taken");
            continue;
        };
        assert!(
            error.message.contains("say a `queue` under `[down]`"),
            "{error}"
        );
        assert!(error.message.contains("(`a`, `b`) sends 1"), "{error}");
        assert_eq!(error.line, line, "{error}");
    }
}

#[test]
fn other_traffic_in_one_bracket_is_notified_of_the_second() {
    let text = "summary = \"t\"\n\n[cross]\nkind = \"bulk\"\ndirection = \"down\"\n";
    let error = Profile::from_text("t.toml", text).unwrap_err();
    assert_eq!(error.line, 3, "{error}");
    assert!(error.message.contains("two brackets"), "{error}");
    assert!(error.message.contains("`[[cross]]`"), "{error}");
    let error = Profile::from_text("t.toml", "cross = \"bulk\"\nsummary = \"t\"\n").unwrap_err();
    assert_eq!(error.line, 1, "{error}");
    assert!(error.message.contains("`[[cross]]`"), "{error}");
}

#[test]
fn other_traffic_flows_when_its_rules_and_the_seed_say() {
    let text = "summary = \"t\"\n[[cross]]\nkind = \"bulk\"\ndirection = \"down\"\n\
                when = [{ mean_gap = \"10 s\", mean_for = \"5 s\" }]\n";
    let profile = Profile::from_text("t", text).unwrap();
    let stretches =
        |seed, nth| -> Vec<_> { profile.cross()[0].stretches(seed, nth).take(5).collect() };
    assert_eq!(stretches(1, 0), stretches(1, 0));
    assert_ne!(stretches(1, 0), stretches(2, 0));
    assert_ne!(stretches(1, 0), stretches(1, 1));
    assert!(stretches(1, 0).windows(2).all(|pair| pair[0].1 < pair[1].0));
}
