//! What an endpoint does with its engine: when it is late, when acknowledgements
//! wait, and what memory the engine says it takes.

mod kcp_support;

use std::time::Duration;

use kcp_support::lane::Lane;
use lagometer_transport::Endpoint as _;
use lagometer_transport::kcp::{Settings, pair};
use lagometer_units::Time;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// The time that the first segment of a datagram bears, in milliseconds.
fn timestamp(datagram: &[u8]) -> u32 {
    u32::from_le_bytes(datagram[8..12].try_into().unwrap())
}

#[test]
fn what_a_late_driver_sends_bears_the_present_time() {
    let (mut client, _) = pair(&Settings::turbo(), 7, at(0)).unwrap();
    let mut datagram = Vec::new();
    let mut flushed_at = |millis: u64, buffer: &mut Vec<u8>| {
        client.send(at(millis), b"now").unwrap();
        // What was not acknowledged is sent again first.
        while client.poll_datagram(at(millis), buffer) {}
        let due = client.next_deadline().unwrap().max(at(millis));
        let late = due + Duration::from_millis(millis / 2);
        client.handle_deadline(late);
        assert!(client.poll_datagram(late, buffer));
        (late, timestamp(buffer))
    };
    let (on_time, first) = flushed_at(0, &mut datagram);
    // Half a second late.
    let (late, second) = flushed_at(1_000, &mut datagram);
    let between = (late.as_nanos() - on_time.as_nanos()) / 1_000_000;
    assert_eq!(u64::from(second.wrapping_sub(first)), between);
}

#[test]
fn an_acknowledgement_is_owed_from_the_segment_to_the_flush() {
    let mut lane = Lane::new(&Settings::turbo(), MS, |_, _, _: &[u8]| false);
    let owed = |lane: &Lane<_>| lane.ends[1].engine().owes_acknowledgement();
    assert!(!owed(&lane));
    lane.send(0, b"something");
    let mut millis = 0;
    while !owed(&lane) {
        millis += 1;
        assert!(millis < 100, "it arrives");
        lane.run_until(at(millis));
    }
    // Flushes come every 10 ms.
    lane.run_until(at(millis + 20));
    assert!(!owed(&lane));
}

#[test]
fn with_game_settings_the_acknowledgement_goes_out_with_what_it_answers() {
    let sent_by_server = |settings: &Settings| {
        let mut lane = Lane::new(settings, 5 * MS, |_, _, _: &[u8]| false);
        lane.run_until(at(1_003));
        lane.send(0, b"something");
        lane.run_until(at(1_100));
        let first_by = |side: usize| {
            let mut of_side = lane.datagrams.iter().filter(|sent| sent.1 == side);
            of_side.find(|sent| sent.0 >= at(1_003)).unwrap().0
        };
        let arrived = first_by(0) + lane.delay;
        Duration::from_nanos(first_by(1).as_nanos() - arrived.as_nanos())
    };
    assert_eq!(sent_by_server(&Settings::game()), Duration::ZERO);
    assert!(sent_by_server(&Settings::turbo()) > Duration::ZERO);
}

#[test]
fn memory_is_no_less_than_what_waits_and_no_more_than_the_windows() {
    let mut lane = Lane::new(&Settings::turbo(), MS, |_, _, _: &[u8]| false);
    lane.echoes = true;
    for step in 0..200 {
        lane.run_until(at(10 * step));
        lane.send(0, &[7; 1_000]);
    }
    for end in &lane.ends {
        let read = end.engine().held_bytes();
        // 128 segments of 1400 bytes, and some lists.
        assert!(read < 256 * 1_400, "{read} bytes");
    }
    lane.reads[1] = false;
    for step in 200..400 {
        lane.run_until(at(10 * step));
        lane.send(0, &[7; 1_000]);
    }
    let engine = lane.ends[1].engine();
    assert!(engine.unread_bytes() > 50_000, "{}", engine.unread_bytes());
    assert!(engine.held_bytes() >= engine.unread_bytes());
    assert!(engine.held_bytes() < 512 * 1_400, "{}", engine.held_bytes());
}
