//! The impairments are a function of seed and time: the same for every lane,
//! whatever it sends.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_link::{Conditions, Direction, DisturbanceKind, Fate, Link, Reason, Regime};
use lagometer_units::Time;
use proptest::prelude::*;

use crate::any_profile::{any_profile, any_traffic};
use crate::{link, profile};

const UP: Direction = Direction::Up;
const DOWN: Direction = Direction::Down;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_same_seed_gives_the_same_fates(
        text in any_profile(),
        seed: u64,
        traffic in any_traffic(200),
        by_packet: bool,
    ) {
        let spacing = Duration::from_millis(20);
        let regime = if by_packet { Regime::Packet { spacing } } else { Regime::Time };
        let make = || Link::new(&profile(&text), seed, regime, Time::from_millis(70));
        let (mut one, mut other) = (make(), make());
        for (now, bytes) in traffic {
            prop_assert_eq!(one.offer(UP, now, bytes), other.offer(UP, now, bytes));
            prop_assert_eq!(one.offer(DOWN, now, bytes), other.offer(DOWN, now, bytes));
        }
    }

    /// A second lane sends the first one's packets and more of its own in
    /// other milliseconds. Without a bottleneck, the common packets have the
    /// same fate to the bit; and the other direction's packets never matter.
    #[test]
    fn traffic_does_not_change_the_impairments(
        text in any_profile(),
        seed: u64,
        common in any_traffic(150),
        own in any_traffic(150),
    ) {
        let text = without_memory(&text);
        let (mut lean, mut chatty) = (link(&text, seed), link(&text, seed));
        let millis: Vec<u64> = common.iter().map(|(now, _)| now.as_millis()).collect();
        let mut offers: Vec<(Time, usize, bool)> = Vec::new();
        offers.extend(common.iter().map(|&(now, bytes)| (now, bytes, true)));
        offers.extend(
            own.iter()
                .filter(|(now, _)| millis.binary_search(&now.as_millis()).is_err())
                .map(|&(now, bytes)| (now, bytes, false)),
        );
        offers.sort_by_key(|&(now, _, _)| now);
        for (now, bytes, is_common) in offers {
            let fate = chatty.offer(UP, now, bytes);
            chatty.offer(DOWN, now, bytes);
            if is_common {
                prop_assert_eq!(lean.offer(UP, now, bytes), fate);
            }
        }
    }

    /// By the packet, it does not matter when a packet is sent.
    #[test]
    fn the_nth_packet_meets_the_same_fate_whenever_it_is_sent(
        text in any_profile(),
        seed: u64,
        early in any_traffic(150),
        late in any_traffic(150),
    ) {
        let text = without_memory(&text);
        let text: String = text.lines().filter(|line| !line.starts_with("stalls")).fold(
            String::new(),
            |text, line| text + line + "\n",
        );
        let regime = Regime::Packet { spacing: Duration::from_millis(50) };
        let make = || Link::new(&profile(&text), seed, regime, Time::ZERO);
        let (mut one, mut other) = (make(), make());
        for (&(early, bytes), &(late, _)) in early.iter().zip(&late) {
            let took = |fate: Fate, now: Time| -> Vec<_> {
                fate.arrivals().map(|it| (it.at.since(now), it.damage)).collect()
            };
            let one = took(one.offer(UP, early, bytes), early);
            let other = took(other.offer(UP, late, bytes), late);
            prop_assert_eq!(one, other);
        }
    }

    /// Before the impairments start there is none, and when it starts does not
    /// change it.
    #[test]
    fn impairments_time_counts_from_the_start_of_the_impairments(
        text in any_profile(),
        seed: u64,
        traffic in any_traffic(100),
        starts in 1..10_000_u64,
        lead_in in any_traffic(30),
    ) {
        let text = without_memory(&text);
        let starts = Time::from_millis(starts);
        let mut at_once = link(&text, seed);
        let mut later = Link::new(&profile(&text), seed, Regime::Time, starts);
        let base = profile(&text).base_rtt();
        for (now, bytes) in lead_in.into_iter().filter(|&(now, _)| now < starts) {
            let Fate::Delivered { first, copy: None } = later.offer(UP, now, bytes.min(1000)) else {
                panic!("a calm link delivers once");
            };
            prop_assert!(first.at.since(now) <= base);
            prop_assert_eq!(first.damage, None);
        }
        for (now, bytes) in traffic {
            let shifted = starts + now.since(Time::ZERO);
            let fate = at_once.offer(UP, now, bytes);
            let arrivals = |fate: Fate, now: Time| -> Vec<_> {
                fate.arrivals().map(|it| (it.at.since(now), it.damage)).collect()
            };
            prop_assert_eq!(
                arrivals(later.offer(UP, shifted, bytes), shifted),
                arrivals(fate, now)
            );
        }
        let until = Time::from_secs(60);
        prop_assert_eq!(at_once.truth(UP, until), later.truth(UP, until));
    }
}

/// The profile without what makes one packet wait for another: rate, queue
/// and order. (Stalls without a rate hold each packet by itself.)
fn without_memory(text: &str) -> String {
    let free = "jitter = { distribution = \"none\", reorder = true }\n";
    text.replace("reorder = false", "reorder = true")
        .split_inclusive("[down]\n")
        .map(|section| {
            if section.contains("jitter") {
                section.to_owned()
            } else {
                section.replace("delay =", &format!("{free}delay ="))
            }
        })
        .collect::<String>()
        .lines()
        .filter(|line| !line.starts_with("rate") && !line.starts_with("queue"))
        .fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn what_both_says_happens_to_both_directions_at_once() {
    let spells = "{ mean_gap = \"5 s\", mean_for = \"300 ms\" }";
    let bursts = "bursts = { mean_good = \"3 s\", mean_bad = \"200 ms\", loss_bad = \"50 %\" }";
    let rules = format!("outages = [{spells}]\nstalls = [{spells}]\n{bursts}\n");
    let until = Time::from_secs(600);

    let shared = link(&format!("[both]\n{rules}"), 9);
    assert_eq!(shared.truth(UP, until), shared.truth(DOWN, until));

    let apart = link(&format!("[up]\n{rules}[down]\n{rules}"), 9);
    for kind in [
        DisturbanceKind::Outage,
        DisturbanceKind::Stall,
        DisturbanceKind::Burst,
    ] {
        let starts = |direction| -> Vec<Time> {
            let truth = apart.truth(direction, until);
            let of_kind = truth.iter().filter(|it| it.kind == kind);
            of_kind.map(|it| it.start).collect()
        };
        assert!(starts(UP).len() > 30);
        assert_ne!(starts(UP), starts(DOWN), "{kind:?}");
    }
}

#[test]
fn what_has_a_period_alone_begins_where_the_seed_says() {
    let rules = "outages = [{ every = \"2 min\", for = \"1 s\" }]\n\
                 stalls = [{ every = \"2 min\", for = \"1 s\" }, { every = \"2 min\", for = \"2 s\" }]\n";
    let until = Time::from_secs(600);
    let starts = |link: &Link, direction| -> Vec<Time> {
        let truth = link.truth(direction, until);
        truth.iter().map(|it| it.start).collect()
    };
    let mut firsts = Vec::new();
    for seed in 1..=20 {
        let shared = link(&format!("[both]\n{rules}"), seed);
        let found = starts(&shared, UP);
        assert_eq!(found, starts(&shared, DOWN), "seed {seed}");
        // Five times each in ten minutes: none is early, none is left out.
        assert_eq!(found.len(), 15, "seed {seed}");
        let scheduled = profile(&format!("[both]\n{rules}")).scheduled(seed);
        assert_eq!(scheduled.len(), 3);
        for one in scheduled {
            assert!(one.is_drawn && found.contains(&(Time::ZERO + one.first)));
            firsts.push(one.first);
        }
        let apart = link(&format!("[up]\n{rules}[down]\n{rules}"), seed);
        assert_ne!(starts(&apart, UP), starts(&apart, DOWN), "seed {seed}");
    }
    firsts.sort();
    firsts.dedup();
    assert_eq!(firsts.len(), 60, "each rule and seed has a time of its own");

    // What is met is what was foretold.
    let mut link = link(
        "[both]\noutages = [{ every = \"5 s\", for = \"20 ms\" }]",
        7,
    );
    let truth = link.truth(UP, Time::from_secs(60));
    let is_out = |now: Time| truth.iter().any(|it| it.start <= now && now < it.end);
    for now in (0..60_000).map(Time::from_millis) {
        let dropped = link.offer(UP, now, 100) == Fate::Dropped(Reason::Outage);
        assert_eq!(dropped, is_out(now), "at {now:?}");
    }
    assert_eq!(truth.len(), 12);
}

#[test]
fn another_seed_is_another_impairments() {
    let text = "[both]\nstalls = [{ mean_gap = \"5 s\", for = \"1 s\" }]";
    let until = Time::from_secs(600);
    assert_ne!(
        link(text, 1).truth(UP, until),
        link(text, 2).truth(UP, until)
    );
}

#[test]
fn bursts_are_met_at_the_same_instant_however_much_is_sent() {
    let text =
        "[both]\nbursts = { mean_good = \"2 s\", mean_bad = \"400 ms\", loss_bad = \"100 %\" }";
    let lost = |spacing_us: u64| -> Vec<Time> {
        let mut link = link(text, 3);
        (0..60_000_000 / spacing_us)
            .map(|n| Time::from_micros(n * spacing_us))
            .filter(|&now| link.offer(UP, now, 100) == Fate::Dropped(Reason::Burst))
            .collect()
    };
    let truth = link(text, 3).truth(UP, Time::from_secs(60));
    for spacing_us in [50_000, 7_000, 500] {
        for now in lost(spacing_us) {
            assert!(truth.iter().any(|it| it.start <= now && now < it.end));
        }
    }
    let per_burst = |spacing_us| {
        let mut counts = BTreeMap::new();
        for now in lost(spacing_us) {
            let burst = truth.iter().position(|it| now < it.end);
            *counts.entry(burst).or_insert(0) += 1;
        }
        counts.len()
    };
    assert!(per_burst(500) >= truth.len() - 1);
    assert!(truth.len() > 15);
}

#[test]
fn conditions_are_what_a_lone_packet_meets() {
    let text = "[up]\ndelay = \"10 ms\"\nrate = \"1 Gbit/s\"\n\
        jitter = { distribution = \"normal\", mean = \"5 ms\", deviation = \"3 ms\", \
                   maximum = \"20 ms\", correlation = \"200 ms\", reorder = true }\n\
        handover = { every = \"1 s\", extra = \"30 ms\" }\n\
        stalls = [{ at = \"2 s\", for = \"500 ms\" }]\n\
        outages = [{ at = \"4 s\", for = \"500 ms\" }]\n\
        bursts = { mean_good = \"1 s\", mean_bad = \"500 ms\", loss_bad = \"40 %\" }\n\
        loss = \"10 %\"\n";
    let mut link = link(text, 11);
    let step = Duration::from_millis(7);
    let sampled: Vec<(Time, Conditions)> =
        link.conditions(UP, Time::ZERO, Time::from_secs(6), step);
    assert_eq!(sampled.len(), 858);
    let mut losses = Vec::new();
    for (now, conditions) in sampled {
        losses.push((conditions.loss * 1000.0).round() as u32);
        let stalled = (2000..2500).contains(&now.as_millis());
        assert_eq!(conditions.rate_bits_per_second == Some(0), stalled);
        assert_eq!(conditions.held > Duration::ZERO, stalled);
        match link.offer(UP, now, 0) {
            Fate::Delivered { first, .. } => {
                let took = first.at.since(now);
                assert_eq!(took, conditions.held + conditions.delay, "at {now}");
            }
            Fate::Dropped(Reason::Outage) => assert!((conditions.loss - 1.0).abs() < 1e-12),
            Fate::Dropped(_) | Fate::Refused { .. } => {}
        }
    }
    losses.sort_unstable();
    losses.dedup();
    // Good; bad, 1 - 0.9 x 0.6; outage.
    assert_eq!(losses, [100, 460, 1000]);
}
