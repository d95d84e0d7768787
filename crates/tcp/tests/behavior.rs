//! Acknowledgements, small writes, windows, and the end of a connection as Linux's
//! TCP has them, seen from outside.

mod support;

use std::time::Duration;

use lagometer_tcp::wire::{Flags, parse_packet};
use lagometer_tcp::{CloseReason, Config, Connection, Event, Instant, KeepAlive, State};
use support::{Network, ms, path, pattern, warm};

#[test]
fn an_acknowledgement_is_delayed_by_40_ms() {
    let config = Config {
        timer_wheel: false,
        ..Config::default()
    };
    let mut network = Network::connected(1, path(5), &config);
    // Use up the quick acknowledgements of the start.
    for _ in 0..40 {
        network.write(0, b"x");
        network.run(Duration::from_millis(150));
        network.read(1);
    }
    network.trace.clear();
    let begin = network.now;
    network.write(0, b"x");
    network.run(Duration::from_millis(300));
    let ack = network.trace.iter().find(|seen| seen.from == 1).unwrap();
    assert_eq!(ack.length, 0);
    assert_eq!(ms(ack.at - begin), 5 + 40);
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut network = Network::connected(1, path(5), &Config::default());
    network.trace.clear();
    for _ in 0..8 {
        let begin = network.now;
        network.write(0, b"x");
        network.run(Duration::from_millis(20));
        let ack = network.trace.iter().rfind(|seen| seen.from == 1).unwrap();
        assert_eq!(ms(ack.at - begin), 5);
    }
}

#[test]
fn an_answer_carries_the_acknowledgement_along() {
    let mut network = warm(&Config::default());
    for _ in 0..20 {
        network.write(0, b"ping");
        network.run(Duration::from_millis(60));
        network.read(1);
        network.write(1, b"pong");
        network.run(Duration::from_millis(60));
        network.read(0);
    }
    network.trace.clear();
    network.write(0, b"ping");
    let limit = network.now + Duration::from_millis(100);
    assert!(network.run_until(limit, |n| n.server(|c| c.readable()) > 0));
    network.read(1);
    network.run(Duration::from_millis(10));
    network.write(1, b"pong");
    network.collect();
    let from_server: Vec<_> = network.trace.iter().filter(|seen| seen.from == 1).collect();
    assert_eq!(from_server.len(), 1);
    assert_eq!(from_server[0].length, 4);
}

#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let mut network = warm(&Config::default());
    let bytes = pattern(1448 * 200);
    network.transfer(0, &bytes, Duration::from_secs(10));
    let acks = network
        .trace
        .iter()
        .filter(|seen| seen.from == 1 && seen.length == 0)
        .count();
    assert!((80..=205).contains(&acks), "{acks}");
}

#[test]
fn nagle_holds_a_second_small_write_until_the_first_is_acknowledged() {
    for nodelay in [false, true] {
        let config = Config {
            nodelay,
            ..Config::default()
        };
        let mut network = warm(&config);
        let begin = network.now;
        network.write(0, b"one");
        network.write(0, b"two");
        network.write(0, b"three");
        network.run(Duration::from_millis(500));
        let sent = network.data_of(0);
        if nodelay {
            assert_eq!(sent.len(), 3);
            assert!(sent.iter().all(|seen| seen.at == begin));
        } else {
            assert_eq!(
                sent.iter().map(|seen| seen.length).collect::<Vec<_>>(),
                [3, 8]
            );
            assert!(ms(sent[1].at - begin) >= 80);
        }
    }
}

#[test]
fn nagle_lets_a_small_end_follow_full_segments() {
    let mut network = warm(&Config::default());
    let begin = network.now;
    network.write(0, &pattern(1448 * 2 + 100));
    network.collect();
    let sent = network.data_of(0);
    assert_eq!(
        sent.iter().map(|seen| seen.length).collect::<Vec<_>>(),
        [1448, 1448, 100]
    );
    assert!(sent.iter().all(|seen| seen.at == begin));
}

/// RFC 9293, section 3.9.1: the last segment of a write is pushed, also where it fills a
/// buffer to the byte (Linux 6.1 `tcp_sendmsg_locked`, which looks whether data is left first).
#[test]
fn the_last_segment_of_a_write_is_pushed_whatever_its_length() {
    for segments in 1..=45 {
        let mut network = warm(&Config::default());
        network.write(0, &pattern(1448 * segments));
        network.run(Duration::from_secs(1));
        let sent = network.data_of(0);
        assert!(sent.len() >= segments, "{segments}");
        let last = sent
            .iter()
            .max_by_key(|seen| seen.seq.0.wrapping_sub(sent[0].seq.0));
        let is_pushed = last.is_some_and(|last| last.flags.0 & Flags::PSH.0 != 0);
        assert!(is_pushed, "{segments} segments");
    }
}

#[test]
fn a_cork_holds_the_partial_segment_until_it_is_taken_out() {
    let mut network = warm(&Config::default());
    let now = network.now;
    network.client(|c| c.set_cork(now, true));
    network.write(0, &pattern(1448 + 10));
    network.run(Duration::from_millis(100));
    assert_eq!(
        network
            .data_of(0)
            .iter()
            .map(|seen| seen.length)
            .sum::<usize>(),
        1448
    );
    let now = network.now;
    network.client(|c| c.set_cork(now, false));
    network.collect();
    assert_eq!(
        network
            .data_of(0)
            .iter()
            .map(|seen| seen.length)
            .sum::<usize>(),
        1458
    );
}

#[test]
fn a_closed_window_is_probed_and_opens_again() {
    let mut network = warm(&Config::default());
    let bytes = pattern(3_000_000);
    let mut written = 0;
    let limit = network.now + Duration::from_secs(20);
    while network.now < limit {
        written += network.write(0, &bytes[written..]);
        if !network.step(limit) {
            break;
        }
    }
    assert_eq!(network.client(|c| c.send_window()), 0);
    let probes = network.client(|c| c.counters().window_probes);
    assert!(probes >= 3, "{probes}");
    assert!(network.server(|c| c.receive_memory()) < 7 << 20);
    let mut received = network.read(1);
    let limit = network.now + Duration::from_mins(1);
    while received.len() < bytes.len() && network.step(limit) {
        written += network.write(0, &bytes[written..]);
        received.extend(network.read(1));
    }
    assert!(received == bytes);
    assert_eq!(network.client(|c| c.state()), State::Established);
}

#[test]
fn a_window_that_stays_closed_ends_what_its_application_has_closed() {
    // The peer lives and answers every probe: it only never reads.
    for retries in [15, 3] {
        let config = Config {
            retries,
            ..Config::default()
        };
        let mut network = warm(&config);
        let bytes = pattern(3_000_000);
        let mut written = 0;
        let filled = network.now + Duration::from_secs(20);
        while network.now < filled {
            written += network.write(0, &bytes[written..]);
            network.run(Duration::from_millis(100));
        }
        // One that is still open waits for as long as it is answered.
        network.run(Duration::from_hours(1));
        assert_eq!(network.client(|c| c.state()), State::Established);
        assert_eq!(network.client(|c| c.send_window()), 0);
        let now = network.now;
        network.client(|c| c.close(now));
        network.run(Duration::from_mins(10));
        let reason = network.client(|c| c.close_reason());
        assert_eq!(reason, Some(CloseReason::TimedOut), "{retries} retries");
    }
}

#[test]
fn the_receive_window_grows_with_what_is_read() {
    let mut network = warm(&Config::default());
    let before = network.server(|c| c.receive_window());
    network.transfer(0, &pattern(8_000_000), Duration::from_secs(30));
    let after = network.server(|c| c.receive_window());
    assert!(after > 8 * before, "{before} to {after}");
    assert!(after <= 3 * 1024 * 1024 + 65_536);
}

#[test]
fn keep_alive_gives_a_dead_peer_up() {
    let keep_alive = KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(2),
        probes: 3,
    };
    let config = Config {
        keep_alive: Some(keep_alive),
        ..Config::default()
    };
    let mut network = warm(&config);
    network.run(Duration::from_mins(1));
    assert_eq!(network.client(|c| c.state()), State::Established);
    network.drop_if = Some(Box::new(|_, _| true));
    network.run(Duration::from_mins(1));
    assert_eq!(
        network.client(|c| c.close_reason()),
        Some(CloseReason::TimedOut)
    );
}

#[test]
fn a_port_nobody_listens_on_refuses() {
    let mut network = Network::new(1, path(10), &Config::default(), &Config::default());
    let now = network.now;
    let id = network.hosts[0]
        .connect(now, "10.0.0.2:81".parse().unwrap())
        .unwrap();
    network.client = id;
    network.run(Duration::from_secs(1));
    assert_eq!(
        network.client(|c| c.close_reason()),
        Some(CloseReason::Refused)
    );
}

#[test]
fn unread_data_makes_a_close_a_reset() {
    let mut network = warm(&Config::default());
    network.write(0, b"unread");
    network.run(Duration::from_millis(200));
    let now = network.now;
    network.server(|c| c.close(now));
    network.run(Duration::from_millis(200));
    assert_eq!(
        network.client(|c| c.close_reason()),
        Some(CloseReason::Reset)
    );
}

#[test]
fn both_sides_may_close_at_once() {
    let mut network = warm(&Config::default());
    let now = network.now;
    network.client(|c| c.close(now));
    network.server(|c| c.close(now));
    network.collect();
    network.run(Duration::from_secs(1));
    assert_eq!(network.client(|c| c.state()), State::TimeWait);
    assert_eq!(network.server(|c| c.state()), State::TimeWait);
    network.run(Duration::from_secs(70));
    assert_eq!(
        network.client(|c| c.close_reason()),
        Some(CloseReason::Finished)
    );
}

#[test]
fn events_report_what_happened_once() {
    let mut network = Network::connected(1, path(10), &Config::default());
    network.run(Duration::from_millis(100));
    assert_eq!(
        network.client(lagometer_tcp::Connection::poll_event),
        Some(Event::Connected)
    );
    assert_eq!(
        network.client(lagometer_tcp::Connection::poll_event),
        Some(Event::Writable)
    );
    assert_eq!(network.client(lagometer_tcp::Connection::poll_event), None);
    network.write(1, b"hello");
    let now = network.now;
    network.server(|c| c.finish(now));
    network.run(Duration::from_millis(100));
    assert_eq!(
        network.client(lagometer_tcp::Connection::poll_event),
        Some(Event::Readable)
    );
    assert_eq!(
        network.client(lagometer_tcp::Connection::poll_event),
        Some(Event::PeerFinished)
    );
    assert!(network.read(0) == b"hello");
    assert!(network.client(|c| c.is_finished()));
}

/// Two ends that open towards each other at the same moment, without a
/// listener.
fn simultaneous(config: &Config, loses_first_answer: bool) -> [Connection; 2] {
    let addresses: [std::net::SocketAddr; 2] =
        ["10.0.0.1:1000", "10.0.0.2:2000"].map(|address| address.parse().unwrap());
    let mut now = Instant::ZERO;
    let mut ends = [0, 1].map(|side: usize| {
        Connection::connect(
            config,
            addresses[side],
            addresses[1 - side],
            side as u64,
            now,
        )
    });
    let mut lost = !loses_first_answer;
    for _ in 0..4_000 {
        now = now + Duration::from_millis(1);
        let packets = ends
            .each_mut()
            .map(|end| std::iter::from_fn(|| end.poll_transmit()).collect::<Vec<_>>());
        for (side, packets) in packets.into_iter().enumerate() {
            for packet in packets {
                let (header, segment) = parse_packet(&packet).unwrap();
                if !lost && segment.has(Flags::ACK) {
                    lost = true;
                    continue;
                }
                ends[1 - side].receive(now, &header, &segment);
            }
        }
        for end in &mut ends {
            end.handle_deadline(now);
        }
    }
    for (from, to) in [(0, 1), (1, 0)] {
        assert_eq!(ends[from].write(now, b"hello"), 5);
        while let Some(packet) = ends[from].poll_transmit() {
            let (header, segment) = parse_packet(&packet).unwrap();
            ends[to].receive(now, &header, &segment);
        }
    }
    ends
}

#[test]
fn both_sides_may_open_at_once_even_if_an_answer_is_lost() {
    for timestamps in [false, true] {
        for loses_first_answer in [false, true] {
            let config = Config {
                timestamps,
                ..Config::default()
            };
            for end in simultaneous(&config, loses_first_answer) {
                assert_eq!(end.state(), State::Established);
                assert_eq!(end.readable(), 5);
            }
        }
    }
}

#[test]
fn a_half_closed_connection_still_receives() {
    let mut network = warm(&Config::default());
    let now = network.now;
    network.client(|c| c.finish(now));
    network.run(Duration::from_millis(300));
    assert_eq!(network.client(|c| c.state()), State::FinWait2);
    let bytes = pattern(50_000);
    assert!(network.transfer(1, &bytes, Duration::from_secs(10)) == bytes);
    assert_eq!(network.write(0, b"too late"), 0);
}

#[test]
fn data_for_a_closed_reader_is_answered_with_a_reset() {
    let mut network = warm(&Config::default());
    let now = network.now;
    network.client(|c| c.close(now));
    network.run(Duration::from_millis(300));
    network.write(1, b"nobody reads this");
    network.run(Duration::from_millis(300));
    assert_eq!(
        network.server(|c| c.close_reason()),
        Some(CloseReason::Reset)
    );
}

#[test]
fn the_right_edge_of_the_window_never_moves_back() {
    let mut network = warm(&Config::default());
    let bytes = pattern(2_000_000);
    let mut written = 0;
    let limit = network.now + Duration::from_secs(5);
    while network.now < limit {
        written += network.write(0, &bytes[written..]);
        if network.now.as_nanos().is_multiple_of(3) {
            network.read(1);
        }
        if !network.step(limit) {
            break;
        }
    }
    // The scale of a receive buffer of 6 MiB.
    let scale = 7;
    let edges: Vec<_> = network
        .trace
        .iter()
        .filter(|seen| seen.from == 1)
        .map(|seen| seen.ack + (u32::from(seen.window) << scale))
        .collect();
    assert!(edges.len() > 100);
    for pair in edges.windows(2) {
        // Rounding to the unit of the scale may cost less than a unit.
        assert!(!pair[1].before(pair[0] - 127), "{pair:?}");
    }
}
