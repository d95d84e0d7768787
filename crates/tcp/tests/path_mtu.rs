//! The size of segments: what routers refuse, and what probing finds.

mod support;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lagometer_tcp::wire::Flags;
use lagometer_tcp::{Config, MtuProbing};
use support::{Network, Path, pattern};

const IPV6: [&str; 2] = ["fd00::1", "fd00::2"];

fn connected_over_ipv6(config: &Config) -> Network {
    let mut network = Network::between(IPV6, 1, Path::default(), config, config);
    let limit = network.now + Duration::from_mins(1);
    network.run_until(limit, |network| network.server.is_some());
    network
}

#[test]
fn a_packet_too_big_makes_segments_smaller_without_a_reduction() {
    let mut network = Network::connected(1, Path::default(), &Config::default());
    let seq = {
        network.write(0, &pattern(1448 * 8));
        network.collect();
        network.data_of(0)[0].seq
    };
    let now = network.now;
    let cwnd = network.client(|c| c.flow().cwnd);
    network.client(|c| c.on_packet_too_big(now, seq, 1_000));
    assert_eq!(network.client(|c| c.flow().mss), 948);
    assert_eq!(network.client(|c| c.flow().cwnd), cwnd);
    // One for another connection's packet, or below the least MTU, is ignored.
    network.client(|c| c.on_packet_too_big(now, seq - 1_000_000, 700));
    assert_eq!(network.client(|c| c.flow().mss), 948);
    network.run(Duration::from_secs(2));
    assert!(network.read(1) == pattern(1448 * 8));
}

#[test]
fn a_path_that_swallows_large_packets_is_found_out() {
    let config = Config {
        mtu_probing: MtuProbing::AfterBlackHole,
        ..Config::default()
    };
    let path = Path {
        mtu: 1_200,
        ..Path::default()
    };
    let mut network = Network::connected(1, path, &config);
    let bytes = pattern(100_000);
    assert!(network.transfer(0, &bytes, Duration::from_mins(2)) == bytes);
}

#[test]
fn probing_finds_a_larger_mtu() {
    let config = Config {
        mtu_probing: MtuProbing::Always,
        ..Config::default()
    };
    let mut network = Network::connected(1, Path::default(), &config);
    let bytes = pattern(2_000_000);
    assert!(network.transfer(0, &bytes, Duration::from_mins(2)) == bytes);
    assert!(network.client(|c| c.flow().mss) > 1_400);
}

#[test]
fn what_is_too_large_is_sent_again_whole_bursts_at_a_time_with_the_time_from_before() {
    let mut network = Network::connected(1, Path::default(), &Config::default());
    let sent = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&sent);
    network.drop_if = Some(Box::new(move |from, segment| {
        if from == 0 && !segment.payload.is_empty() {
            let stamp = segment.options.timestamps.map(|(stamp, _)| stamp);
            let push = segment.has(Flags::PSH);
            seen.borrow_mut().push((segment.payload.len(), push, stamp));
        }
        false
    }));
    network.write(0, &pattern(1448 * 4));
    network.collect();
    let (seq, stamp) = (network.data_of(0)[0].seq, sent.borrow()[0].2);
    // What is under way is neither acknowledged nor lost yet.
    network.run(Duration::from_millis(30));
    sent.borrow_mut().clear();
    let now = network.now;
    network.client(|c| c.on_packet_too_big(now, seq, 1_000));
    network.collect();
    let again = sent.borrow();
    let lengths = again.iter().map(|(length, ..)| *length);
    assert_eq!(lengths.clone().sum::<usize>(), 1448 * 4, "{again:?}");
    assert!(lengths.clone().all(|length| length <= 948), "{again:?}");
    // A burst pushes with its last segment alone.
    assert!(again.iter().any(|(_, push, _)| !push), "{again:?}");
    assert!(again.iter().all(|(.., again)| *again == stamp), "{again:?}");
}

#[test]
fn over_ipv6_what_the_segments_keep_to_and_what_is_too_small_change_nothing() {
    let searching = Config {
        mtu_probing: MtuProbing::Always,
        ..Config::default()
    };
    for (config, mtu) in [(&searching, 1_280), (&Config::default(), 1_279)] {
        let mut network = connected_over_ipv6(config);
        network.write(0, &pattern(8_000));
        network.collect();
        let seq = network.data_of(0)[0].seq;
        let (now, mss) = (network.now, network.client(|c| c.flow().mss));
        network.client(|c| c.on_packet_too_big(now, seq, mtu));
        assert_eq!(network.client(|c| c.flow().mss), mss, "{mtu}");
        assert_eq!(network.client(|c| c.counters().retransmissions), 0, "{mtu}");
    }
}

#[test]
fn a_search_begins_small_where_one_connects_and_with_the_next_window_where_one_accepts() {
    let config = Config {
        mtu_probing: MtuProbing::Always,
        ..Config::default()
    };
    let mut network = Network::connected(1, Path::default(), &config);
    assert_eq!(network.client(|c| c.flow().mss), 1_024);
    assert_eq!(network.server(|c| c.flow().mss), 1_448);
    // What the client reads lets its window grow.
    let bytes = pattern(60_000);
    assert!(network.transfer(1, &bytes, Duration::from_mins(1)) == bytes);
    network.write(1, &bytes);
    network.collect();
    let longest = network.data_of(1).iter().map(|seen| seen.length).max();
    assert!(network.server(|c| c.flow().mss) < 1_448, "{longest:?}");
}
