use super::*;

const MS: u64 = 1_000_000;

fn took(fingerprint: Fingerprint, number: Option<u64>) -> RouterEvent {
    RouterEvent::Took {
        way: 0,
        fingerprint,
        number,
    }
}

fn released(fingerprint: Fingerprint, number: Option<u64>, asked_ms: u64) -> RouterEvent {
    RouterEvent::Released {
        way: 0,
        fingerprint,
        number,
        asked: Duration::from_millis(asked_ms),
        generation: 0,
    }
}

/// What is found of packets sent and arrived at these milliseconds.
fn found(
    sent: &[(Fingerprint, u64)],
    arrived: &[(Fingerprint, u64)],
    events: &[RouterEvent],
) -> Outside {
    let mut clock = OutsideClock::new(1);
    for &event in events {
        clock.note(event);
    }
    for &(fingerprint, at) in sent {
        clock.sent(0, fingerprint, at * MS);
    }
    for &(fingerprint, at) in arrived {
        clock.arrived(0, fingerprint, at * MS);
    }
    clock.settle();
    clock.findings().remove(0)
}

#[test]
fn what_a_packet_waited_before_the_router_read_it_is_in_the_error() {
    // The router read it at 8 ms and, by its own clock, was on time.
    let found = found(
        &[(7, 0)],
        &[(7, 28)],
        &[took(7, Some(1)), released(7, Some(1), 20)],
    );
    assert_eq!(found.unseen, 0);
    assert_eq!(found.error.in_millis().count, 1);
    assert!((found.error.in_millis().max - 8.0).abs() < 0.02);
}

#[test]
fn packets_that_look_the_same_are_matched_by_their_order() {
    let events = [
        took(7, Some(1)),
        took(7, None),
        took(7, Some(2)),
        released(7, Some(1), 20),
        released(7, Some(2), 20),
    ];
    let found = found(&[(7, 0), (7, 5), (7, 9)], &[(7, 20), (7, 29)], &events);
    assert_eq!((found.error.in_millis().count, found.unseen), (2, 0));
    assert!(found.error.in_millis().max < 0.01);
}

#[test]
fn what_the_router_never_took_and_what_is_not_from_it_is_passed_over() {
    // The first was lost in the device; a message about the path arrived besides.
    let events = [took(8, Some(1)), released(8, Some(1), 20)];
    let found = found(&[(7, 0), (8, 1)], &[(99, 2), (8, 21)], &events);
    assert_eq!((found.error.in_millis().count, found.unseen), (1, 0));
    assert!(found.error.in_millis().max < 0.01);
}

#[test]
fn a_damaged_packet_is_followed_and_a_copy_is_not_counted_twice() {
    let events = [
        took(7, Some(1)),
        released(70, Some(1), 20),
        released(7, None, 25),
    ];
    let found = found(&[(7, 0)], &[(70, 20), (7, 25)], &events);
    assert_eq!((found.error.in_millis().count, found.unseen), (1, 0));
}

#[test]
fn packets_that_no_tap_saw_are_counted_and_not_taken_for_others() {
    let events = [
        took(7, Some(1)),
        took(8, Some(2)),
        released(7, Some(1), 20),
        released(8, Some(2), 20),
    ];
    let found = found(&[(8, 1)], &[(7, 20), (8, 21)], &events);
    assert_eq!((found.error.in_millis().count, found.unseen), (1, 1));
    assert!(found.error.in_millis().max < 0.01);
}

#[test]
fn packets_of_the_counters_before_are_in_none() {
    let mut clock = OutsideClock::new(1);
    clock.note(took(7, Some(1)));
    clock.sent(0, 7, 0);
    clock.settle();
    clock.note(RouterEvent::Began { generation: 1 });
    clock.note(released(7, Some(1), 20));
    clock.arrived(0, 7, 90 * MS);
    clock.settle();
    let found = clock.findings().remove(0);
    assert_eq!((found.error.in_millis().count, found.unseen), (0, 0));
}
