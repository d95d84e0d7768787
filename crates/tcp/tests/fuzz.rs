//! Whole conversations under attack, by seed: forged, damaged and absurd segments
//! at both ends while two streams go their ways. What arrives is what was written,
//! each byte once and in order, and the connection lives; or, where the peer
//! itself is mad, nothing panics, grows without bound or goes on for ever.
//!
//! `LAGOMETER_TCP_FUZZ=5000` plays so many seeds of each kind, `17-17` those
//! alone, to play a failure again.

#[path = "fuzz/icmp.rs"]
mod icmp;
mod support;

use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::wire::{Flags, parse_packet};
use lagometer_tcp::{Config, Connection, EcnMode, Endpoint, Instant, KeepAlive, Seq};
use support::forge::wrap;
use support::{Network, Path, Random, pattern};

/// Seeds where nobody asks for others.
const SEEDS: u64 = 1500;

/// Plays `conversation` with every seed asked for; a failure names its seed.
fn with_seeds(name: &str, conversation: fn(u64)) {
    for seed in seeds() {
        let played = catch_unwind(AssertUnwindSafe(|| conversation(seed)));
        assert!(
            played.is_ok(),
            "seed {seed}: LAGOMETER_TCP_FUZZ={seed}-{seed} cargo test -p lagometer-tcp --test \
             fuzz {name}"
        );
    }
}

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("LAGOMETER_TCP_FUZZ") else {
        return 0..SEEDS;
    };
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .expect("a number or a range of two")
    };
    match asked.split_once('-') {
        Some((first, last)) => number(first)..number(last) + 1,
        None => 0..number(&asked),
    }
}

/// What the forger knows: both addresses and ports, but not the numbers; it
/// guesses them nearly right. Each call gives a packet that RFC 5961 has the
/// receiver see through, on its way from `from`.
fn forged(network: &mut Network, from: usize, random: &mut Random) -> Vec<u8> {
    let (local, remote) = network.client(|c| (c.local(), c.remote()));
    let own = flow(network, from);
    let other = flow(network, 1 - from);
    // Beyond all that was sent and within any window, or anywhere; never what is
    // expected next.
    let near = own.1 + 1 + random.below(60_000) as u32;
    let anywhere = Seq(random.next() as u32);
    let is_ours = (anywhere - own.0) <= own.1 - own.0;
    let seq = if random.chance(0.7) || is_ours {
        near
    } else {
        anywhere
    };
    // Or what is expected next, where only the acknowledgement is not known.
    let is_exact = random.chance(0.2);
    let seq = if is_exact { own.1 } else { seq };
    // Never sent yet, or older than any window.
    let ack = if random.chance(0.5) {
        other.1 + 1 + random.below(1 << 28) as u32
    } else {
        other.0 - ((1 << 28) + random.below(1 << 28) as u32)
    };
    let flags = match random.below(6) {
        _ if is_exact => Flags::ACK.0 | random.next() as u8 & Flags::PSH.0,
        0 => Flags::RST.0,
        1 => Flags::RST.0 | Flags::ACK.0,
        2 => Flags::SYN.0 | random.next() as u8 & !Flags::RST.0,
        3 => Flags::FIN.0 | Flags::ACK.0,
        4 => random.next() as u8 & !(Flags::RST.0 | Flags::SYN.0) | Flags::ACK.0,
        // Without an acknowledgement nothing is taken.
        _ => Flags::PSH.0 | Flags::FIN.0,
    };
    let length = random.below(1400) as usize;
    let payload = vec![b'!'; if random.chance(0.5) { length } else { 0 }];
    let ports = [local.port(), remote.port()];
    let ports = if from == 0 {
        ports
    } else {
        [ports[1], ports[0]]
    };
    let addresses = [local.ip(), remote.ip()];
    let addresses = if from == 0 {
        addresses
    } else {
        [addresses[1], addresses[0]]
    };
    let options = if is_exact {
        let mut stamps = vec![1, 1, 8, 10];
        stamps.extend((random.next() as u32).to_be_bytes());
        stamps.extend((random.next() as u32).to_be_bytes());
        stamps
    } else {
        options(random)
    };
    let tcp = segment(ports, (seq, ack), flags, &options, &payload, random);
    wrap(addresses[0], addresses[1], tcp)
}

/// The oldest number not acknowledged of what a side sends, and the next.
fn flow(network: &mut Network, side: usize) -> (Seq, Seq) {
    let of = |c: &mut Connection| (c.flow().una, c.flow().next);
    if side == 0 {
        network.client(of)
    } else {
        network.server(of)
    }
}

/// TCP bytes with no checksum yet; any window and urgent pointer.
fn segment(
    ports: [u16; 2],
    (seq, ack): (Seq, Seq),
    flags: u8,
    options: &[u8],
    payload: &[u8],
    random: &mut Random,
) -> Vec<u8> {
    let mut tcp = Vec::new();
    tcp.extend(ports[0].to_be_bytes());
    tcp.extend(ports[1].to_be_bytes());
    tcp.extend(seq.0.to_be_bytes());
    tcp.extend(ack.0.to_be_bytes());
    tcp.extend([((20 + options.len()) / 4 * 16) as u8, flags]);
    tcp.extend((random.next() as u16).to_be_bytes());
    tcp.extend([0, 0]);
    tcp.extend((random.next() as u16).to_be_bytes());
    tcp.extend(options);
    tcp.extend(payload);
    tcp
}

/// Options as no stack sends them: any kinds, lengths that lie, values at their
/// ends, all in up to 40 bytes.
fn options(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    let room = 4 * random.below(11) as usize;
    while bytes.len() < room {
        let kind = *[0, 1, 2, 3, 4, 5, 8, 19, 28, 34, 254, random.next() as u8]
            .get(random.below(12) as usize)
            .unwrap();
        let honest = match kind {
            2 => 4,
            3 => 3,
            4 => 2,
            5 => 2 + 8 * (1 + random.below(4) as u8),
            8 => 10,
            _ => random.next() as u8,
        };
        let length = if random.chance(0.8) {
            honest
        } else {
            random.next() as u8
        };
        bytes.extend([kind, length]);
        let fill = [0, 1, 14, 255, random.next() as u8][random.below(5) as usize];
        bytes.extend(std::iter::repeat_n(
            fill,
            usize::from(length.saturating_sub(2)),
        ));
    }
    bytes.truncate(room);
    bytes
}

fn any_config(random: &mut Random) -> Config {
    Config {
        timestamps: random.chance(0.5),
        sack: random.chance(0.8),
        window_scaling: random.chance(0.8),
        ecn: if random.chance(0.3) {
            EcnMode::Always
        } else {
            EcnMode::WhenAsked
        },
        congestion: [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr][random.below(3) as usize],
        // Longer than any stretch in which nothing arrives of what these paths lose.
        user_timeout: random.chance(0.3).then_some(Duration::from_mins(10)),
        keep_alive: random.chance(0.3).then(|| KeepAlive {
            idle: Duration::from_millis(1_000 + random.below(5_000)),
            interval: Duration::from_millis(1_000 + random.below(5_000)),
            probes: 9,
        }),
        ..Config::default()
    }
}

/// Flips up to 15 bits that follow each other, which a checksum always sees.
fn damage(packet: &mut [u8], random: &mut Random) {
    let bits = packet.len() as u64 * 8;
    let first = random.below(bits - 14);
    let pattern = 1 | random.next() as u16 & 0x7FFF;
    for bit in 0..15 {
        if pattern >> bit & 1 == 1 {
            let at = first + bit;
            packet[(at / 8) as usize] ^= 0x80 >> (at % 8);
        }
    }
}

/// A segment with every number right, as an attacker on the path would make it,
/// but damaged.
fn damaged(network: &mut Network, from: usize, random: &mut Random) -> Vec<u8> {
    let (local, remote) = network.client(|c| (c.local(), c.remote()));
    let (own, other) = (flow(network, from), flow(network, 1 - from));
    let is_client = from == 0;
    let (source, destination) = if is_client {
        (local, remote)
    } else {
        (remote, local)
    };
    let ports = [source.port(), destination.port()];
    let tcp = segment(
        ports,
        (own.0, other.1),
        Flags::ACK.0,
        &[],
        b"forged",
        random,
    );
    let mut packet = wrap(source.ip(), destination.ip(), tcp);
    damage(&mut packet, random);
    packet
}

/// A stream each way, and how far it has come.
struct Streams {
    sent: [Vec<u8>; 2],
    written: [usize; 2],
    received: [Vec<u8>; 2],
}

impl Streams {
    /// Of up to 60,000 bytes.
    fn new(random: &mut Random) -> Self {
        Self {
            sent: [(); 2].map(|()| pattern(1 + random.below(60_000) as usize)),
            written: [0; 2],
            received: [Vec::new(), Vec::new()],
        }
    }

    fn have_arrived(&self) -> bool {
        (0..2).all(|side| self.received[side].len() >= self.sent[side].len())
    }

    /// `side` writes some of its stream, and the other reads what has come.
    fn pass(&mut self, network: &mut Network, side: usize, random: &mut Random) {
        let most = self.written[side] + random.below(9_000) as usize;
        let end = most.min(self.sent[side].len());
        let rest = &self.sent[side][self.written[side]..end];
        self.written[side] += network.write(side, rest);
        self.received[side].extend(network.read(1 - side));
        assert!(
            self.sent[side].starts_with(&self.received[side]),
            "something else arrived"
        );
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} bytes written", self.written)
    }
}

fn under_attack(seed: u64) {
    let mut random = Random::new(seed ^ 0xA77A_C4ED);
    let path = Path {
        loss: [0.0, 0.01, 0.05][random.below(3) as usize],
        duplicate: 0.01,
        reorder: [0.0, 0.1][random.below(2) as usize],
        ..Path::default()
    };
    let config = any_config(&mut random);
    let mut network = Network::connected(seed, path, &config);
    let mut streams = Streams::new(&mut random);
    let limit = network.now + Duration::from_mins(30);
    while !streams.have_arrived() {
        for side in 0..2 {
            streams.pass(&mut network, side, &mut random);
            if random.chance(0.3) {
                let packet = forged(&mut network, side, &mut random);
                network.inject(1 - side, &packet);
            }
            if random.chance(0.2) {
                let packet = damaged(&mut network, side, &mut random);
                network.inject(1 - side, &packet);
            }
        }
        let next = network.now + Duration::from_millis(10);
        network.step(next);
        assert!(network.now < limit, "the streams stand still: {streams:?}");
        let memory = network.server(|c| c.receive_memory());
        assert!(memory < 7 << 20, "{memory}");
    }
    for alive in [network.client(|c| c.state()), network.server(|c| c.state())] {
        assert!(alive.can_write(), "{alive:?}");
    }
}

#[test]
fn forged_and_damaged_segments_change_nothing_of_two_streams() {
    with_seeds(
        "forged_and_damaged_segments_change_nothing_of_two_streams",
        under_attack,
    );
}

const HOST: &str = "10.0.0.2";
const PEER: &str = "10.0.0.1";

/// A peer that answers with anything: any options in the handshake, then any
/// segments near the right numbers.
fn mad_peer(seed: u64) {
    let mut random = Random::new(seed ^ 0x0DD_BA11);
    let (host_address, peer): (IpAddr, IpAddr) = (HOST.parse().unwrap(), PEER.parse().unwrap());
    let config = any_config(&mut random);
    let mut host = Endpoint::new(host_address, config, seed);
    host.listen(80, 2);
    let mut now = Instant::from_millis(1_000);
    let ports = [1_000, 80];
    let mut own = Seq(random.next() as u32);
    let options_of_syn = options(&mut random);
    let syn = segment(
        ports,
        (own, Seq(0)),
        Flags::SYN.0,
        &options_of_syn,
        &[],
        &mut random,
    );
    let _ = host.receive(now, &wrap(peer, host_address, syn));
    own += 1;
    let mut received = Seq(0);
    let (mut accepted, mut sent) = (None, 0);
    for _ in 0..300 {
        while let Some(packet) = host.poll_transmit() {
            sent += 1;
            if let Ok((_, segment)) = parse_packet(&packet) {
                received = segment.end();
            }
        }
        accepted = accepted.or_else(|| host.accept(80));
        if let Some(id) = accepted {
            host.with(id, |connection| {
                connection.write(now, &pattern(3_000));
                connection.read(now, &mut [0; 3_000]);
                assert!(connection.receive_memory() < 7 << 20);
            });
        }
        let jitter = |random: &mut Random| match random.below(4) {
            0 | 1 => 0,
            2 => random.below(3_000) as u32,
            _ => (random.next() as u32) >> random.below(32),
        };
        let seq = own + jitter(&mut random);
        let ack = received - jitter(&mut random);
        let flags = match random.below(4) {
            0 => random.next() as u8,
            _ => Flags::ACK.0 | random.next() as u8 & Flags::PSH.0,
        };
        let payload = vec![7; random.below(1400) as usize];
        let absurd = options(&mut random);
        let tcp = segment(ports, (seq, ack), flags, &absurd, &payload, &mut random);
        if seq == own && flags & Flags::RST.0 == 0 {
            own += payload.len() as u32;
        }
        let _ = host.receive(now, &wrap(peer, host_address, tcp));
        now = now + Duration::from_micros(random.below(200_000));
        host.handle_deadline(now);
    }
    // Left alone it comes to an end, and is not loud on the way.
    if let Some(id) = accepted {
        host.with(id, |connection| connection.close(now));
    }
    let limit = now + Duration::from_hours(24);
    let mut deadlines = 0;
    while let Some(deadline) = host.next_deadline() {
        assert!(deadline < limit, "it goes on for ever");
        host.handle_deadline(deadline);
        while host.poll_transmit().is_some() {
            sent += 1;
        }
        deadlines += 1;
        assert!(deadlines < 20_000, "{deadlines} deadlines");
    }
    assert!(sent < 100_000, "{sent} packets");
}

#[test]
fn a_mad_peer_gets_no_panic_no_memory_and_an_end() {
    with_seeds("a_mad_peer_gets_no_panic_no_memory_and_an_end", mad_peer);
}

#[test]
fn forged_and_mutated_icmp_messages_leave_two_streams_whole() {
    with_seeds(
        "forged_and_mutated_icmp_messages_leave_two_streams_whole",
        icmp::under_icmp,
    );
}
