//! Two ends of a route, between which frames are lost, come twice, or wait.

use super::*;

fn end() -> RouteEnd {
    RouteEnd::new(Time::ZERO, NodeTimes::default())
}

/// Carries what each has for the other, but for the frames of `one` that `loses`
/// names by their number; returns what came to the other.
fn carry(
    one: &mut RouteEnd,
    other: &mut RouteEnd,
    now: Time,
    mut loses: impl FnMut(usize) -> bool,
) -> Vec<Bytes> {
    let (mut out, mut none) = (Vec::new(), Vec::new());
    for number in 0.. {
        let mut moved = false;
        if let Some(data) = one.poll(now) {
            moved = true;
            if !loses(number) {
                other.take(now, data, &mut out).unwrap();
            }
        }
        if let Some(data) = other.poll(now) {
            moved = true;
            one.take(now, data, &mut none).unwrap();
        }
        if !moved {
            break;
        }
    }
    assert!(none.is_empty());
    out
}

#[test]
fn what_is_lost_is_sent_again_and_comes_in_order_and_once() {
    let (mut one, mut other) = (end(), end());
    let mut now = Time::from_millis(1);
    let long: Vec<u8> = (0..500_000_u32).map(|n| n as u8).collect();
    let wanted = [
        Bytes::from_static(b"a"),
        long.into(),
        Bytes::from_static(b"z"),
    ];
    for message in &wanted {
        one.push(now, message, None);
    }
    let mut out = carry(&mut one, &mut other, now, |number| number % 2 == 1);
    while out.len() < wanted.len() {
        now += Duration::from_millis(50);
        assert!(now < Time::from_secs(5));
        out.extend(carry(&mut one, &mut other, now, |number| number % 2 == 1));
    }
    assert_eq!(out, wanted);
    assert!(one.counters().resent > 0 && other.counters().gaps > 0);
    assert_eq!(one.waiting(), 0);
}

#[test]
fn a_frame_that_comes_twice_is_taken_once() {
    let (mut one, mut other) = (end(), end());
    one.push(Time::ZERO, &Bytes::from_static(b"a"), None);
    let data = one.poll(Time::ZERO).unwrap();
    let mut out = Vec::new();
    other.take(Time::ZERO, data.clone(), &mut out).unwrap();
    other.take(Time::ZERO, data, &mut out).unwrap();
    assert_eq!(out.len(), 1);
    assert_eq!(other.counters().repeated, 1);
}

#[test]
fn what_is_held_is_neither_sent_nor_acknowledged_until_it_is_released() {
    let (mut one, mut other) = (end(), end());
    let now = Time::from_millis(1);
    let say = |end: &mut RouteEnd, text: &'static str| {
        end.push(now, &Bytes::from_static(text.as_bytes()), None);
    };
    say(&mut one, "before");
    one.hold_from(one.position());
    say(&mut one, "held");
    assert_eq!(carry(&mut one, &mut other, now, |_| false), ["before"]);
    say(&mut other, "taken");
    let data = other.poll(now).unwrap();
    let news = one.news(&data).unwrap();
    assert_eq!((news.first, news.pieces.len()), (0, 1));
    let mut out = Vec::new();
    one.take(now, data.clone(), &mut out).unwrap();
    assert_eq!(out, ["taken"]);
    assert_eq!(one.news(&data), None);
    assert!(one.poll(now).is_none(), "there is nothing to say");
    assert!(one.next_deadline(now) > now);
    assert!(other.waiting() > 0);
    one.hold_from(one.position());
    assert_eq!(carry(&mut one, &mut other, now, |_| false), ["held"]);
    assert_eq!(other.waiting(), 0);
    say(&mut one, "held again");
    one.open();
    assert_eq!(carry(&mut one, &mut other, now, |_| false), ["held again"]);
}

#[test]
fn another_node_s_end_that_receives_what_was_taken_goes_on_with_the_same_numbers() {
    let (mut one, mut edge) = (end(), end());
    let now = Time::from_millis(1);
    let saved = one.save(now);
    let mut replica = RouteEnd::restore(now, NodeTimes::default(), saved).unwrap();
    for text in ["a", "b", "c"] {
        let bytes = Bytes::from_static(text.as_bytes());
        one.push(now, &bytes, None);
        replica.push(now, &bytes, None);
    }
    let (mut out, mut none) = (Vec::new(), Vec::new());
    edge.take(now, one.poll(now).unwrap(), &mut out).unwrap();
    assert_eq!(out, ["a", "b", "c"]);
    // What the edge has taken is known to the owner, and the rest is not.
    let data = edge.poll(now).unwrap();
    let news = one
        .news(&Data {
            received: 2,
            ..data
        })
        .unwrap();
    replica.replay(now, news, &mut none).unwrap();
    assert_eq!(replica.acknowledged_to(), 2);
    replica.take_over(now);
    edge.go_on(now);
    let again = replica.poll(now).unwrap();
    assert_eq!((again.first, again.pieces.len()), (2, 1));
    edge.take(now, again, &mut out).unwrap();
    assert_eq!(out.len(), 3, "it had come");
    edge.push(now, &Bytes::from_static(b"goes on"), None);
    assert_eq!(carry(&mut edge, &mut replica, now, |_| false), ["goes on"]);
    let strange = Data {
        first: 7,
        ..Data::default()
    };
    assert!(replica.replay(now, strange, &mut none).is_err());
}

#[test]
fn silence_and_what_nobody_takes_give_a_route_up() {
    let (mut one, mut other) = (end(), end());
    let at = Time::from_secs;
    assert_eq!(one.is_lost(at(4)), None);
    assert!(one.is_lost(at(5)).is_some());
    // Heard, but nothing that was sent arrives there.
    one.push(at(8), &Bytes::from_static(b"a"), None);
    let _ = one.poll(at(8));
    for second in 9..13 {
        let data = other.poll(at(second)).unwrap();
        one.take(at(second), data, &mut Vec::new()).unwrap();
        assert_eq!(one.is_lost(at(second)), None, "{second}");
    }
    assert_eq!(one.is_lost(at(13)), Some("the other node takes nothing"));
}

#[test]
fn who_acknowledges_what_was_never_sent_speaks_nonsense() {
    let data = Data {
        received: 1,
        ..Data::default()
    };
    assert_eq!(end().take(Time::ZERO, data, &mut Vec::new()), Err(Nonsense));
}
