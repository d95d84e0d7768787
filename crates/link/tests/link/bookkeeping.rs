//! Every packet is accounted for; order, queues, MTU, outages and stalls are
//! what they are said to be.

use lagometer_link::{Direction, DisturbanceKind, Fate, Link, Reason, Regime};
use lagometer_units::Time;
use proptest::prelude::*;

use crate::any_profile::{any_profile, any_traffic};
use crate::{link, profile};

const UP: Direction = Direction::Up;

fn arrival(fate: Fate) -> Option<Time> {
    fate.arrivals().next().map(|arrival| arrival.at)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the profile and the traffic: nothing arrives before it was
    /// sent, and all that was offered is delivered, dropped or refused, and
    /// what is not yet delivered is in flight.
    #[test]
    fn every_packet_is_counted_once(
        text in any_profile(),
        seed: u64,
        traffic in any_traffic(300),
        impairments_starts in 0..5_000_u64,
    ) {
        let profile = profile(&text);
        let starts = Time::from_millis(impairments_starts);
        let mut link = Link::new(&profile, seed, Regime::Time, starts);
        let mut arrivals = Vec::new();
        for &(now, bytes) in &traffic {
            let fate = link.offer(UP, now, bytes);
            arrivals.extend(fate.arrivals().map(|arrival| arrival.at));
            prop_assert!(fate.arrivals().all(|arrival| arrival.at >= now));
            prop_assert!(link.stats(UP).is_conserved());
            let underway = arrivals.iter().filter(|&&at| at > now).count();
            prop_assert_eq!(link.in_flight(UP, now), underway as u64);
        }
        let stats = *link.stats(UP);
        prop_assert_eq!(stats.offered.packets, traffic.len() as u64);
        let delivered = stats.delivered.packets + stats.copies.packets;
        prop_assert_eq!(delivered, arrivals.len() as u64);
        prop_assert_eq!(link.in_flight(UP, Time::MAX), 0);
        prop_assert_eq!(link.stats(Direction::Down).offered.packets, 0);
    }

    /// A queue never holds more than its bound, and drops only what would
    /// exceed it.
    #[test]
    fn a_queue_keeps_its_bound(
        limit in 0..20_000_u64,
        rate in 64..5_000_u64,
        seed: u64,
        traffic in any_traffic(300),
    ) {
        let stalls = "stalls = [{ mean_gap = \"1 s\", mean_for = \"300 ms\" }]";
        let mut link = link(
            &format!("[up]\nrate = \"{rate} kbit/s\"\nqueue = \"{limit} B\"\n{stalls}"),
            seed,
        );
        for (now, bytes) in traffic {
            let before = link.waiting_bytes(UP, now);
            let fate = link.offer(UP, now, bytes);
            prop_assert!(link.waiting_bytes(UP, now) <= limit);
            if fate == Fate::Dropped(Reason::QueueFull) {
                prop_assert!(before + bytes as u64 > limit);
            }
        }
    }

    /// Without leave to reorder, no packet overtakes another.
    #[test]
    fn order_holds(text in any_profile(), seed: u64, traffic in any_traffic(300)) {
        let text = text
            .replace("reorder = true", "reorder = false")
            .lines()
            .filter(|line| !line.starts_with("reordering"))
            .collect::<Vec<_>>()
            .join("\n");
        let mut link = link(&text, seed);
        let mut latest = Time::ZERO;
        for (now, bytes) in traffic {
            if let Some(at) = arrival(link.offer(UP, now, bytes)) {
                prop_assert!(at >= latest);
                latest = at;
            }
        }
    }

    /// What enters during an outage is dropped for that reason, and nothing
    /// else is; what enters during a stall is held until its end.
    #[test]
    fn outages_drop_and_stalls_hold(seed: u64, traffic in any_traffic(300)) {
        let text = "[up]\ndelay = \"10 ms\"\n\
             outages = [{ mean_gap = \"500 ms\", mean_for = \"200 ms\" }]\n\
             stalls = [{ mean_gap = \"500 ms\", mean_for = \"200 ms\" }]\n";
        let mut link = link(text, seed);
        let truth = link.truth(UP, Time::from_secs(3600));
        for (now, bytes) in traffic {
            let during = |kind| {
                truth.iter().find(|it| it.kind == kind && it.start <= now && now < it.end)
            };
            let fate = link.offer(UP, now, bytes);
            if during(DisturbanceKind::Outage).is_some() {
                prop_assert_eq!(fate, Fate::Dropped(Reason::Outage));
            } else {
                let leaves = during(DisturbanceKind::Stall).map_or(now, |stall| stall.end);
                prop_assert_eq!(arrival(fate), Some(leaves + std::time::Duration::from_millis(10)));
            }
        }
    }
}

#[test]
fn order_does_not_hold_where_jitter_may_reorder() {
    let text = "[up]\njitter = { distribution = \"uniform\", maximum = \"50 ms\", reorder = true }";
    let mut link = link(text, 1);
    let arrivals: Vec<_> = (0..100)
        .filter_map(|n| arrival(link.offer(UP, Time::from_millis(n), 100)))
        .collect();
    assert!(!arrivals.is_sorted());
}

#[test]
fn a_reordered_packet_is_overtaken_and_holds_nobody_back() {
    let text = "[up]\ndelay = \"10 ms\"\nreordering = { share = \"20 %\", extra = \"25 ms\" }";
    let mut link = link(text, 1);
    let mut late = 0;
    for n in 0..2000 {
        let now = Time::from_millis(10 * n);
        let took = arrival(link.offer(UP, now, 100)).unwrap().since(now);
        match took.as_millis() {
            10 => {}
            35 => late += 1,
            other => panic!("took {other} ms"),
        }
    }
    assert!((340..460).contains(&late), "{late}");
}

#[test]
fn larger_than_the_mtu_vanishes_or_is_refused() {
    let offer = |text: &str, bytes| link(text, 1).offer(UP, Time::ZERO, bytes);
    let vanish = "[both]\nmtu = \"1280 B\"";
    let refuse = "[both]\nmtu = \"1280 B\"\noversize = \"refuse\"";
    assert!(arrival(offer(vanish, 1280)).is_some());
    assert!(arrival(offer(refuse, 1280)).is_some());
    assert_eq!(offer(vanish, 1281), Fate::Dropped(Reason::Oversize));
    assert_eq!(offer(refuse, 1281), Fate::Refused { mtu_bytes: 1280 });
}

#[test]
fn a_copy_arrives_after_the_first_and_is_counted_apart() {
    let text = "[up]\nduplication = { share = \"30 %\", apart = \"3 ms\" }\ncorruption = \"10 %\"";
    let mut link = link(text, 4);
    let mut damaged = 0;
    for n in 0..5000 {
        let fate = link.offer(UP, Time::from_millis(n), 100);
        damaged += fate.arrivals().filter(|it| it.damage.is_some()).count();
        if let Fate::Delivered {
            first,
            copy: Some(copy),
        } = fate
        {
            assert_eq!(copy.at.since(first.at).as_millis(), 3);
        }
    }
    let stats = link.stats(UP);
    assert_eq!(stats.delivered.packets, 5000);
    assert!((1300..1700).contains(&stats.copies.packets), "{stats:?}");
    assert_eq!(stats.damaged.packets, damaged as u64);
    assert!((550..750).contains(&damaged), "{damaged}");
}

#[test]
fn an_earlier_instant_is_taken_as_the_latest_so_far() {
    let mut link = link("[both]\ndelay = \"10 ms\"", 1);
    link.offer(UP, Time::from_millis(100), 1);
    let fate = link.offer(UP, Time::from_millis(50), 1);
    assert_eq!(arrival(fate), Some(Time::from_millis(110)));
}

#[test]
fn the_end_of_time_is_survived() {
    for name in lagometer_link::catalogue::names() {
        let profile = lagometer_link::catalogue::named(name).unwrap();
        let mut link = Link::new(&profile, 1, Regime::Time, Time::MAX);
        link.offer(UP, Time::MAX, usize::MAX);
        link.offer(UP, Time::MAX, 1);
    }
}
