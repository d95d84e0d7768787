//! Socket options and small writes as Linux has them, seen from outside.

mod support;

use std::time::Duration;

use lagometer_tcp::{Config, Connection, Event, KeepAlive};
use support::{Network, path, pattern, warm};

/// Acknowledgements without data that the server sent while the client wrote
/// twenty messages far apart and the server answered each 20 ms later, having
/// asked for quick acknowledgements after each read or not.
fn bare_acknowledgements_in_dialogue(asks: bool) -> usize {
    let mut network = warm(&Config::default());
    for message in 0..40 {
        if message == 20 {
            network.trace.clear();
        }
        network.write(0, b"ping");
        let limit = network.now + Duration::from_millis(100);
        assert!(network.run_until(limit, |n| n.server(|c| c.readable()) > 0));
        network.read(1);
        if asks {
            let now = network.now;
            network.server(|c| c.acknowledge_quickly(now));
        }
        network.run(Duration::from_millis(20));
        network.write(1, b"pong");
        network.run(Duration::from_millis(60));
        network.read(0);
    }
    let from_server = network.trace.iter().filter(|seen| seen.from == 1);
    from_server.filter(|seen| seen.length == 0).count()
}

#[test]
fn quick_acknowledgements_leave_before_the_answer_only_when_asked_for_after_each_read() {
    assert_eq!(bare_acknowledgements_in_dialogue(false), 0);
    assert_eq!(bare_acknowledgements_in_dialogue(true), 20);
}

#[test]
fn asking_for_quick_acknowledgements_with_nothing_owed_sends_nothing() {
    let mut network = warm(&Config::default());
    network.run(Duration::from_secs(1));
    network.trace.clear();
    let now = network.now;
    network.server(|c| c.acknowledge_quickly(now));
    network.run(Duration::from_millis(1));
    assert!(network.trace.is_empty());
}

#[test]
fn who_is_sent_data_does_not_ask_whether_the_sender_lives() {
    let keep_alive = KeepAlive {
        idle: Duration::from_secs(2),
        ..KeepAlive::default()
    };
    let mut network = warm(&Config {
        keep_alive: Some(keep_alive),
        ..Config::default()
    });
    for _ in 0..20 {
        network.write(0, b"again and again");
        network.run(Duration::from_millis(500));
        network.read(1);
    }
    let probes = |network: &Network| {
        let from_server = network.trace.iter().filter(|seen| seen.from == 1);
        let seqs: Vec<_> = from_server.map(|seen| seen.seq).collect();
        seqs.iter().filter(|seq| **seq != seqs[0]).count()
    };
    assert_eq!(probes(&network), 0);
    // Once nothing comes any more it does.
    network.run(Duration::from_secs(3));
    assert_eq!(probes(&network), 1);
}

#[test]
fn a_low_water_mark_bounds_what_was_written_and_not_sent_until_it_has_left() {
    let mark = 16 << 10;
    let written_at_once = |not_sent_low_water| {
        let config = Config {
            not_sent_low_water,
            send_buffer: (1 << 20, 4 << 20),
            ..Config::default()
        };
        let mut network = Network::connected(1, path(20), &config);
        let written = network.write(0, &pattern(1 << 20));
        let sent: usize = network.client(|c| c.flow().in_flight()) as usize * 1448;
        (network, written, sent)
    };
    let (_, unbounded, _) = written_at_once(None);
    let (mut network, written, sent) = written_at_once(Some(mark));
    assert!(unbounded > 8 * mark as usize, "{unbounded}");
    // A piece of up to 44 segments is begun below the mark.
    let most = sent + mark as usize + 44 * 1448;
    assert!((1..=most).contains(&written), "{written} of {sent} sent");
    assert_eq!(network.write(0, b"x"), 0);
    while network.client(Connection::poll_event).is_some() {}
    let limit = network.now + Duration::from_secs(2);
    let is_writable = network.run_until(limit, |n| {
        n.read(1);
        n.client(Connection::poll_event) == Some(Event::Writable)
    });
    assert!(is_writable);
    assert_eq!(network.write(0, b"x"), 1);
}

#[test]
fn small_segments_joined_when_sent_again_lose_nothing_when_the_first_was_acknowledged() {
    let config = Config {
        nodelay: true,
        ..Config::default()
    };
    let mut network = Network::connected(1, path(10), &config);
    let start = network.client(|c| c.flow().una);
    // The first write arrives; all else of both sides is lost for two seconds.
    network.drop_if = Some(Box::new(move |from, segment| {
        from == 1 || (segment.seq != start || segment.payload.len() > 100)
    }));
    let bytes = pattern(300);
    for piece in bytes.chunks(100) {
        assert_eq!(network.write(0, piece), 100);
    }
    network.run(Duration::from_secs(2));
    let mut arrived = network.read(1);
    assert_eq!(arrived, bytes[..100]);
    let has_joined = |seen: &support::Seen| seen.from == 0 && seen.length == 300;
    assert!(network.trace.iter().any(has_joined), "they were joined");
    // The acknowledgement of the first rides with an answer.
    network.drop_if = None;
    network.write(1, b"x");
    network.run(Duration::from_secs(5));
    arrived.extend(network.read(1));
    assert_eq!(arrived, bytes);
    assert_eq!(network.client(|c| c.unacknowledged()), 0);
}
