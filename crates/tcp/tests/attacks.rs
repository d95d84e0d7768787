//! What a forger off the path, or a peer gone mad, can do: nothing to the
//! stream, no panic, no memory without limit.

mod support;

use std::time::Duration;

use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::wire::{Flags, parse_packet};
use lagometer_tcp::{Config, Connection, Endpoint, Instant, Seq, State};
use lagometer_units::{GOLDEN, mix};
use proptest::prelude::*;
use support::forge::wrap;
use support::{Network, Path, Random, pattern};

/// A packet of the client's as a template, with its parts replaced and its
/// checksums made right.
fn forge(
    network: &mut Network,
    from: usize,
    seq: Seq,
    ack: Seq,
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    forge_with_window(network, from, (seq, ack), flags, 256, payload)
}

/// The same with a window of so many bytes, unscaled.
fn forge_with_window(
    network: &mut Network,
    from: usize,
    (seq, ack): (Seq, Seq),
    flags: u8,
    window: u16,
    payload: &[u8],
) -> Vec<u8> {
    forge_with_options(network, from, (seq, ack), flags, window, &[], payload)
}

/// The same with options, whose bytes are a multiple of four.
fn forge_with_options(
    network: &mut Network,
    from: usize,
    (seq, ack): (Seq, Seq),
    flags: u8,
    window: u16,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let (source, destination) = if from == 0 {
        network.client(|c| (c.local(), c.remote()))
    } else {
        network.client(|c| (c.remote(), c.local()))
    };
    let mut tcp = Vec::new();
    tcp.extend_from_slice(&source.port().to_be_bytes());
    tcp.extend_from_slice(&destination.port().to_be_bytes());
    tcp.extend_from_slice(&seq.0.to_be_bytes());
    tcp.extend_from_slice(&ack.0.to_be_bytes());
    tcp.extend_from_slice(&[0x50 + 4 * options.len() as u8, flags]);
    tcp.extend_from_slice(&window.to_be_bytes());
    tcp.extend_from_slice(&[0; 4]);
    tcp.extend_from_slice(options);
    tcp.extend_from_slice(payload);
    wrap(source.ip(), destination.ip(), tcp)
}

fn established() -> Network {
    // Without time stamps a forger has only sequence numbers to guess.
    let config = Config {
        timestamps: false,
        ..Config::default()
    };
    let mut network = Network::connected(3, Path::default(), &config);
    let bytes = pattern(30_000);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
    network.run(Duration::from_secs(1));
    network.trace.clear();
    network
}

/// What the server expects next, and what it has sent.
fn expected(network: &mut Network) -> (Seq, Seq) {
    network.client(|c| (c.flow().next, c.flow().next));
    let next = network.client(|c| c.flow().next);
    let una = network.server(|c| c.flow().next);
    (next, una)
}

#[test]
fn a_blind_reset_inside_the_window_only_draws_a_challenge() {
    let mut network = established();
    let (next, ack) = expected(&mut network);
    for offset in [1, 100, 10_000, 60_000] {
        let forged = forge(&mut network, 0, next + offset, ack, Flags::RST.0, b"");
        network.inject(1, &forged);
    }
    assert_eq!(network.server(|c| c.state()), State::Established);
    assert_eq!(network.server(|c| c.counters().challenge_acks), 1);
    network.run(Duration::from_secs(1));
    let forged = forge(&mut network, 0, next + 5, ack, Flags::RST.0, b"");
    network.inject(1, &forged);
    assert_eq!(network.server(|c| c.counters().challenge_acks), 2);
    // Outside of the window it draws nothing.
    let sent = network.trace.len();
    network.run(Duration::from_secs(1));
    let forged = forge(&mut network, 0, next - 1_000_000, ack, Flags::RST.0, b"");
    network.inject(1, &forged);
    assert_eq!(network.trace.len() - sent, 0);
    let bytes = pattern(5_000);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
}

#[test]
fn an_exact_reset_is_believed() {
    let mut network = established();
    let (next, ack) = expected(&mut network);
    let forged = forge(&mut network, 0, next, ack, Flags::RST.0, b"");
    network.inject(1, &forged);
    assert_eq!(network.server(|c| c.state()), State::Closed);
    assert_eq!(network.write(1, b"to nobody"), 0);
}

#[test]
fn a_blind_syn_draws_a_challenge_at_any_number() {
    let mut network = established();
    let (next, ack) = expected(&mut network);
    for offset in [0, 1, 50_000, 1 << 30, 3 << 30] {
        let forged = forge(&mut network, 0, next + offset, ack, Flags::SYN.0, b"");
        network.inject(1, &forged);
        network.run(Duration::from_secs(1));
    }
    assert_eq!(network.server(|c| c.state()), State::Established);
    assert_eq!(network.server(|c| c.counters().challenge_acks), 5);
    let bytes = pattern(5_000);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
}

#[test]
fn blindly_injected_data_with_a_wrong_acknowledgement_is_not_taken() {
    let mut network = established();
    let (next, ack) = expected(&mut network);
    for wrong in [1, 1_000, 1 << 20, 1 << 30, 1 << 31, 3 << 30] {
        let forged = forge(&mut network, 0, next, ack + wrong, Flags::ACK.0, b"forged");
        network.inject(1, &forged);
        network.run(Duration::from_millis(600));
    }
    assert_eq!(network.server(|c| c.readable()), 0);
    let bytes = pattern(5_000);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
}

#[test]
fn a_time_stamp_with_a_wrong_acknowledgement_does_not_make_the_peers_stale() {
    for from in 0..2 {
        for wrong in [1_u32 << 20, 3 << 30] {
            for value in [0_u32, 1 << 30, 2 << 30, 3 << 30] {
                let mut network = Network::connected(3, Path::default(), &Config::default());
                let bytes = pattern(30_000);
                assert!(network.transfer(from, &bytes, Duration::from_secs(5)) == bytes);
                network.run(Duration::from_secs(1));
                let (client, server) = expected(&mut network);
                let (seq, ack) = [(client, server), (server, client)][from];
                let mut options = vec![1, 1, 8, 10];
                options.extend(value.to_be_bytes());
                options.extend([0; 4]);
                let numbers = (seq, ack + wrong);
                let flags = Flags::ACK.0;
                let forged =
                    forge_with_options(&mut network, from, numbers, flags, 256, &options, b"!");
                network.inject(1 - from, &forged);
                network.run(Duration::from_secs(1));
                assert!(
                    network.transfer(from, &bytes, Duration::from_secs(5)) == bytes,
                    "from {from}, {wrong} off, time stamp {value}"
                );
            }
        }
    }
}

#[test]
fn a_hosts_numbers_are_not_those_of_its_generator() {
    // Of SplitMix64 two numbers give the seed away (its output has an inverse), and with
    // the seed those of all other connections.
    let seed = 0xfeed_5eed_dead_1234_u64;
    let mut host = Endpoint::new("10.0.0.2".parse().unwrap(), Config::default(), seed);
    host.listen(80, 8);
    let generated = |seed: u64, count: u64| mix(seed.wrapping_add(count.wrapping_mul(GOLDEN)));
    let mut numbers = Vec::new();
    for count in 1..=4_u16 {
        let config = Config::default();
        let local = std::net::SocketAddr::new("10.0.0.9".parse().unwrap(), count);
        let remote = "10.0.0.2:80".parse().unwrap();
        let mut client = Connection::connect(&config, local, remote, 7, Instant::ZERO);
        let syn = client.poll_transmit().unwrap();
        host.receive(Instant::ZERO, &syn).unwrap();
        let answer = host.poll_transmit().unwrap();
        let (_, answer) = parse_packet(&answer).unwrap();
        let of_connection = generated(seed, count.into());
        assert_ne!(
            answer.seq.0,
            (generated(of_connection, 1) >> 32) as u32,
            "the initial number is what the generator gives"
        );
        numbers.push(answer.seq.0);
    }
    numbers.dedup();
    assert_eq!(numbers.len(), 4);
}

#[test]
fn an_echo_of_acknowledgements_does_not_go_on() {
    let mut network = established();
    let (next, ack) = expected(&mut network);
    for _ in 0..1_000 {
        let forged = forge(&mut network, 0, next - 70_000, ack, Flags::ACK.0, b"");
        network.inject(1, &forged);
    }
    assert!(network.trace.len() <= 1, "{} answers", network.trace.len());
}

#[test]
fn a_flood_of_single_bytes_out_of_order_stays_within_the_buffer() {
    let mut network = established();
    let (next, ack) = expected(&mut network);
    for i in 0..30_000_u32 {
        let forged = forge(&mut network, 0, next + 1 + 2 * i, ack, Flags::ACK.0, b"x");
        network.inject(1, &forged);
    }
    let memory = network.server(|c| c.receive_memory());
    assert!(memory <= 6 * 1024 * 1024 + 4_096, "{memory}");
    assert_eq!(network.server(|c| c.readable()), 0);
}

#[test]
fn a_window_of_one_byte_cuts_one_piece_off_what_is_sent_again() {
    let config = Config {
        timestamps: false,
        window_scaling: false,
        ..Config::default()
    };
    let mut network = Network::connected(3, Path::default(), &config);
    let bytes = pattern(200_000);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
    network.run(Duration::from_secs(1));
    network.drop_if = Some(Box::new(|_, _| true));
    network.write(0, &pattern(40_000));
    network.collect();
    let (una, seq) = network.client(|c| (c.flow().una, c.flow().next));
    assert!(seq - una >= 14_600, "{}", seq - una);
    let (_, seq) = expected(&mut network);
    let mut packets = network.client(|c| c.flow().packets_out);
    // It advertises ever one byte more, after each timeout.
    for known in 1..40 {
        let ack = una + 1_460 + known;
        let flags = Flags::ACK.0;
        let forged = forge_with_window(&mut network, 1, (seq, ack), flags, 1, b"");
        network.inject(0, &forged);
        let timeouts = network.client(|c| c.counters().timeouts);
        let limit = network.now + Duration::from_mins(10);
        network.run_until(limit, |network| {
            network.client(|c| c.counters().timeouts) > timeouts
        });
        let now = network.client(|c| c.flow().packets_out);
        assert!(now <= packets + 1, "{packets} became {now}");
        packets = now;
    }
    assert!(packets <= 30, "{packets}");
}

#[test]
fn answers_that_nobody_polls_stay_within_the_queue() {
    let config = Config::default();
    let mut host = Endpoint::new("10.0.0.2".parse().unwrap(), config.clone(), 1);
    let local = "10.0.0.1:1000".parse().unwrap();
    let remote = "10.0.0.2:80".parse().unwrap();
    let mut client = Connection::connect(&config, local, remote, 1, Instant::ZERO);
    let syn = client.poll_transmit().unwrap();
    for _ in 0..1_000_000 {
        host.receive(Instant::ZERO, &syn).unwrap();
    }
    assert_eq!(host.overflows(), 1_000_000 - 65_536);
    let polled = std::iter::from_fn(|| host.poll_transmit()).count();
    assert_eq!(polled, config.transmit_queue_packets);
}

#[test]
fn all_connections_of_a_host_share_one_queue() {
    let config = Config {
        transmit_queue_packets: 8,
        ..Config::default()
    };
    let mut host = Endpoint::new("10.0.0.1".parse().unwrap(), config, 1);
    for _ in 0..20 {
        host.connect(Instant::ZERO, "10.0.0.2:80".parse().unwrap())
            .unwrap();
    }
    assert_eq!(host.overflows(), 12);
    assert_eq!(std::iter::from_fn(|| host.poll_transmit()).count(), 8);
    // The SYNs that were dropped leave later.
    while host.overflows() > 0
        && let Some(deadline) = host.next_deadline()
        && deadline < Instant::from_millis(1_100)
    {
        host.handle_deadline(deadline);
    }
    assert_eq!(std::iter::from_fn(|| host.poll_transmit()).count(), 8);
}

#[test]
fn a_flood_of_handshakes_stays_within_the_backlog() {
    let config = Config::default();
    let mut host = Endpoint::new("10.0.0.2".parse().unwrap(), config.clone(), 1);
    host.listen(80, 8);
    for port in 1_000..3_000 {
        let local = std::net::SocketAddr::new("10.0.0.1".parse().unwrap(), port);
        let remote = "10.0.0.2:80".parse().unwrap();
        let mut client =
            Connection::connect(&config, local, remote, u64::from(port), Instant::ZERO);
        host.receive(Instant::ZERO, &client.poll_transmit().unwrap())
            .unwrap();
    }
    assert_eq!(host.len(), 8);
    // Unanswered handshakes go away after five retransmissions.
    while let Some(deadline) = host.next_deadline() {
        assert!(deadline < Instant::from_millis(200_000));
        host.handle_deadline(deadline);
    }
    assert!(host.is_empty());
}

/// Changes bytes of a packet's TCP part and makes the checksums right again.
fn mutate(packet: &[u8], random: &mut Random) -> Vec<u8> {
    let mut tcp = packet[20..].to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(tcp.len() as u64) as usize;
        // Ports stay, so that the packet finds its connection.
        if at >= 4 {
            tcp[at] = random.next() as u8;
        }
    }
    if random.chance(0.2) {
        let length = 20 + random.below(tcp.len() as u64 - 19) as usize;
        tcp.truncate(length);
    }
    let address = |at: usize| {
        let octets: [u8; 4] = packet[at..at + 4].try_into().unwrap();
        std::net::IpAddr::from(octets)
    };
    wrap(address(12), address(16), tcp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn mutated_segments_never_panic_and_memory_stays_bounded(
        seed in any::<u64>(),
        sack in any::<bool>(),
        timestamps in any::<bool>(),
        control in 0..3_usize,
    ) {
        let congestion = [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr][control];
        let config = Config { sack, timestamps, congestion, ..Config::default() };
        let mut random = Random::new(seed);
        let now = Instant::from_millis(5_000);
        let mut a = Endpoint::new("10.0.0.1".parse().unwrap(), config.clone(), seed);
        let mut b = Endpoint::new("10.0.0.2".parse().unwrap(), config.clone(), seed + 1);
        b.listen(80, 4);
        let client = a.connect(now, "10.0.0.2:80".parse().unwrap()).unwrap();
        let mut server = None;
        let mut now = now;
        for round in 0..400 {
            now = now + Duration::from_micros(random.below(30_000));
            let length = random.below(5_000) as usize;
            a.with(client, |c| c.write(now, &pattern(length)));
            server = server.or_else(|| b.accept(80));
            if let Some(server) = server {
                b.with(server, |c| {
                    c.write(now, b"answer");
                    c.read(now, &mut [0; 2_000]);
                });
            }
            if round == 390 {
                a.with(client, |c| c.close(now));
            }
            while let Some(packet) = a.poll_transmit() {
                if random.chance(0.2) {
                    let _ = b.receive(now, &mutate(&packet, &mut random));
                }
                let _ = b.receive(now, &packet);
            }
            while let Some(packet) = b.poll_transmit() {
                if random.chance(0.2) {
                    let _ = a.receive(now, &mutate(&packet, &mut random));
                }
                let _ = a.receive(now, &packet);
            }
            a.handle_deadline(now);
            b.handle_deadline(now);
            if let Some(server) = server.and_then(|server| b.get(server)) {
                prop_assert!(server.receive_memory() < 7 << 20);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_packet(&bytes);
        let mut host = Endpoint::new("10.0.0.2".parse().unwrap(), Config::default(), 1);
        let _ = host.receive(Instant::ZERO, &bytes);
    }

    #[test]
    fn a_stream_crosses_the_wrap_of_sequence_numbers(seed in any::<u64>(), loss in 0.0..0.1) {
        // Among many seeds some begin close to the wrap; a long stream from any
        // within a quarter of a million bytes of it crosses.
        let path = Path { loss, ..Path::default() };
        let mut network = Network::connected(seed, path, &Config::default());
        let bytes = pattern(20_000);
        prop_assert!(network.transfer(0, &bytes, Duration::from_mins(10)) == bytes);
    }
}

#[test]
fn a_seed_just_before_the_wrap_delivers_across_it() {
    // Searches a seed whose first sequence number lies shortly before the wrap.
    let config = Config::default();
    let local = "10.0.0.1:1000".parse().unwrap();
    let remote = "10.0.0.2:80".parse().unwrap();
    let near = (0..200_000_u64).find(|seed| {
        let connection = Connection::connect(&config, local, remote, *seed, Instant::ZERO);
        connection.flow().una.0 > u32::MAX - 100_000
    });
    let seed = near.expect("one in 43,000 seeds lies so close");
    let mut client = Connection::connect(&config, local, remote, seed, Instant::ZERO);
    let mut host = Endpoint::new(remote.ip(), config, 1);
    host.listen(80, 1);
    let bytes = pattern(400_000);
    let (mut written, mut received) = (0, Vec::new());
    let mut now = Instant::ZERO;
    let mut server = None;
    while received.len() < bytes.len() {
        now = now + Duration::from_millis(1);
        assert!(
            now < Instant::from_millis(60_000),
            "{} bytes",
            received.len()
        );
        written += client.write(now, &bytes[written..]);
        while let Some(packet) = client.poll_transmit() {
            host.receive(now, &packet).unwrap();
        }
        server = server.or_else(|| host.accept(80));
        if let Some(server) = server {
            host.with(server, |c| {
                let mut out = vec![0; c.readable()];
                c.read(now, &mut out);
                received.extend(out);
            });
        }
        while let Some(packet) = host.poll_transmit() {
            let (header, segment) = parse_packet(&packet).unwrap();
            client.receive(now, &header, &segment);
        }
        client.handle_deadline(now);
        host.handle_deadline(now);
    }
    assert!(received == bytes);
    assert!(client.flow().una.0 < 1_000_000);
}
