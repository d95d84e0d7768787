//! A recording over a made-up side: what is sent when, and what is found of losses, doubles
//! and a side that is full.

use std::fmt::Write as _;

use lagometer_transport::Offer;
use lagometer_units::Span;

use super::*;
use crate::workload::made_up_path::{End, Way};
use crate::workload::replay::{AtEnd, Promise};
use crate::workload::{Findings, LaneWorkload as _, Replay, Workload, act};

/// Every 100 ms a message up and, 30 ms later, one down, for half a second.
fn replay(at_end: AtEnd) -> Replay {
    let mut log = String::new();
    for number in 0..5 {
        let _ = writeln!(log, "0.{number},up,4{number}\n0.{number}3,down,30{number}");
    }
    let mut replay = Replay {
        file: "a.csv".to_owned(),
        client: None,
        server: None,
        at_end,
        delivery: Promise::Reliable,
        within: Span::from_millis(100),
        tick: None,
        traffic: Arc::default(),
    };
    replay.load(log.as_bytes()).unwrap();
    replay
}

fn plan(replay: Replay) -> Plan {
    Plan {
        workload: Workload::Replay(Box::new(replay)),
        offer: Offer::Datagrams,
        duration: Duration::from_secs(1),
        grace: Duration::from_secs(1),
        seed: 7,
        offset: Duration::ZERO,
    }
}

/// What was found, what was sent up and down, and what no transport should let through.
struct Played {
    found: Findings,
    sent: [Vec<(Delivery, usize)>; 2],
    duplicated: u64,
    damaged: u64,
}

/// Plays from 5 s on; each side is full at some milliseconds.
fn play(plan: &Plan, copies: &dyn Fn(usize) -> usize, is_full: &dyn Fn(u64) -> bool) -> Played {
    let start = Time::from_secs(5);
    let mut client = Workload::client(plan, start);
    let mut server = Workload::server(plan);
    server.begin(start);
    let (mut up, mut down) = (Way::default(), Way::default());
    let copies = |_, nth| copies(nth);
    for ms in 4_990..7_000 {
        let now = Time::from_millis(ms);
        let mut end = End {
            out: &mut up,
            into: &mut down,
            copies: &copies,
            is_full: is_full(ms),
        };
        act(&mut end, |side| client.turn(now, side));
        let mut end = End {
            out: &mut down,
            into: &mut up,
            copies: &copies,
            is_full: is_full(ms),
        };
        act(&mut end, |side| server.turn(now, side));
    }
    let mut saw = client.misdeliveries();
    saw += server.misdeliveries();
    Played {
        found: client.findings(server.arrivals()),
        sent: [up.sent, down.sent],
        duplicated: saw.duplicated,
        damaged: saw.damaged,
    }
}

fn millis(time: Option<Time>) -> Option<u64> {
    time.map(|time| time.as_nanos() / 1_000_000)
}

#[test]
fn each_message_leaves_at_its_time_with_its_size_over_and_over() {
    let played = play(&plan(replay(AtEnd::Repeat)), &|_| 1, &|_| false);
    let sizes = [40, 41, 42, 43, 44, 40, 41, 42, 43, 44, 40];
    let [up, down] = played.sent;
    assert_eq!(up, sizes.map(|size| (Delivery::Reliable, size)));
    assert_eq!(down.len(), 11);
    let flows = played.found.flows.unwrap();
    let [up, down] = flows.ways;
    let of_up = up.iter().map(|message| message.record);
    let times: Vec<_> = of_up
        .map(|record| (millis(Some(record.intended)), millis(record.returned)))
        .collect();
    // Ten messages over 0.43 s: it begins again after 0.43 · 10 / 9 s.
    assert_eq!(times[1], (Some(100), Some(120)));
    assert_eq!(times[5].0, Some(477));
    assert_eq!(down[0].bytes, 300);
    assert_eq!(millis(Some(down[0].record.intended)), Some(30));
    assert!(down.iter().all(|message| message.record.accepted.is_some()));
    assert_eq!(played.found.records.len(), 22);
    assert_eq!((played.duplicated, played.damaged), (0, 0));
}

#[test]
fn it_ends_with_the_recording_where_that_is_asked_for() {
    let replay = replay(AtEnd::Stop);
    assert_eq!(replay.ends_after().unwrap().as_millis(), 477);
    let played = play(&plan(replay), &|_| 1, &|_| false);
    assert_eq!(played.sent.map(|way| way.len()), [5, 5]);
    assert_eq!(played.found.records.len(), 10);
}

#[test]
fn what_is_lost_has_no_arrival_and_what_comes_twice_is_counted() {
    let lossy = play(
        &plan(replay(AtEnd::Stop)),
        &|nth| usize::from(nth != 2),
        &|_| false,
    );
    for way in &lossy.found.flows.unwrap().ways {
        let lost: Vec<_> = way.iter().map(|message| message.record.is_lost()).collect();
        assert_eq!(lost, [false, false, true, false, false]);
        assert!(way[2].record.accepted.is_some());
    }
    let doubled = play(&plan(replay(AtEnd::Stop)), &|_| 2, &|_| false);
    assert_eq!(doubled.duplicated, 10);
}

#[test]
fn what_is_refused_waits_and_its_delay_counts_from_its_own_time() {
    let full = |ms| (5_100..5_250).contains(&ms);
    let played = play(&plan(replay(AtEnd::Stop)), &|_| 1, &full);
    let [up, down] = played.found.flows.unwrap().ways;
    let [second, third] = [up[1].record, up[2].record];
    assert!(second.refused && !up[0].record.refused);
    assert_eq!(millis(second.accepted), Some(250));
    assert_eq!(millis(second.returned), Some(270));
    assert_eq!(millis(Some(third.intended)), Some(200));
    // The server's transport refused, too, and the client is notified.
    assert!(down[1].record.refused);
    assert_eq!(millis(down[1].record.accepted), Some(250));
}

#[test]
fn messages_are_distinguished_from_others_and_from_those_of_the_other_side() {
    let script = replay(AtEnd::Stop).script(&plan(replay(AtEnd::Stop)));
    let mut message = Vec::new();
    script.write(Direction::Up, 3, 43, &mut message);
    assert_eq!(script.read(Direction::Up, &message), Ok(3));
    assert_eq!(script.read(Direction::Down, &message), Err(Damaged));
    message.push(0);
    assert_eq!(script.read(Direction::Up, &message), Err(Damaged));
    // A number beyond the last, and one with another message's size.
    script.write(Direction::Up, 5, 40, &mut message);
    assert_eq!(script.read(Direction::Up, &message), Err(Damaged));
    script.write(Direction::Up, 3, 44, &mut message);
    assert_eq!(script.read(Direction::Up, &message), Err(Damaged));
}

#[test]
fn small_messages_are_filled_up() {
    let mut small = replay(AtEnd::Stop);
    small.load(b"0,up,0\n0.1,down,3\n").unwrap();
    let played = play(&plan(small), &|_| 1, &|_| false);
    assert_eq!(played.sent.map(|way| way[0].1), [8, 8]);
    assert_eq!(played.found.flows.unwrap().ways[0][0].bytes, 8);
}

#[test]
fn what_is_cut_for_another_machine_plays_the_same() {
    let whole = replay(AtEnd::Repeat);
    for span in [250, 430, 500, 2_000].map(Duration::from_millis) {
        let plan = Plan {
            duration: span,
            ..plan(whole.clone())
        };
        let (mut sent, log) = whole.within(span);
        sent.traffic = Arc::default();
        sent.load(log.as_bytes()).unwrap();
        let (here, there) = (whole.script(&plan), sent.script(&plan));
        for direction in Direction::BOTH {
            for number in 0..60 {
                let due = here.due(direction, number);
                assert_eq!(there.due(direction, number), due, "{span:?} {number}");
            }
        }
    }
}
