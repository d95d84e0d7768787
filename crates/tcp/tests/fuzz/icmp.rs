//! Whole conversations under forged and mutated ICMP messages (RFC 5927).

use std::net::IpAddr;
use std::time::Duration;

use lagometer_tcp::Connection;

use super::support::icmp::{self, Says, quote};
use super::support::{Network, Path, Random};
use super::{Streams, any_config, damage, flow};

/// Of both families, a host, its peer and a router between them.
const FAMILIES: [[&str; 3]; 2] = [
    ["10.0.0.1", "10.0.0.2", "10.0.0.9"],
    ["fd00::1", "fd00::2", "fd00::9"],
];

/// An MTU as a router may say it, or a liar.
fn any_mtu(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => random.below(100) as u32,
        1 => random.next() as u32,
        _ => 500 + random.below(1_100) as u32,
    }
}

/// What nobody off the path can forge: a packet that is not under way is too big,
/// another connection's is, or one under way cannot be delivered, which is for the
/// application to know (RFC 5927, section 5.2: no reason to give up).
fn forged_icmp(network: &mut Network, to: usize, router: IpAddr, random: &mut Random) -> Vec<u8> {
    let (una, next) = flow(network, to);
    let (local, remote) = network.client(|c| (c.local(), c.remote()));
    let [mut from, mut peer] = if to == 0 {
        [local, remote]
    } else {
        [remote, local]
    };
    let home = from.ip();
    let is_ipv4 = router.is_ipv4();
    let mut says = Says::too_big(is_ipv4, any_mtu(random));
    let mut seq = una + random.below(u64::from(next - una) + 1) as u32;
    match random.below(3) {
        0 => {
            // Outside of all that is under way, near it or anywhere.
            let reach = if random.chance(0.5) { 3_000 } else { 1 << 31 };
            seq = next + 1 + random.below(reach.min(u64::from(u32::MAX - (next - una)))) as u32;
            if random.chance(0.3) {
                seq = una - 1 - random.below(1 << 30) as u32;
            }
        }
        1 if random.chance(0.5) => from.set_port(from.port() ^ 1 << random.below(16)),
        1 => peer.set_port(peer.port() ^ 1 << random.below(16)),
        _ => {
            says.kind = if is_ipv4 { 3 } else { 1 };
            // Of ICMPv4, 4 is "fragmentation needed".
            says.code = (5 + random.below(12)) as u8 % 16;
            if is_ipv4 && says.code == 4 {
                says.code = 3;
            }
        }
    }
    icmp::message(router, home, says, &quote(from, peer, seq))
}

/// What somebody on the path can say: a packet under way is too big, whatever the
/// MTU; with any bits of it wrong, and half the time summed up all the same.
fn icmp_on_path(network: &mut Network, to: usize, router: IpAddr, random: &mut Random) -> Vec<u8> {
    let (una, next) = flow(network, to);
    let (local, remote) = network.client(|c| (c.local(), c.remote()));
    let [from, peer] = if to == 0 {
        [local, remote]
    } else {
        [remote, local]
    };
    let seq = una + random.below(u64::from(next - una) + 1) as u32;
    let says = Says::too_big(router.is_ipv4(), any_mtu(random));
    let mut packet = icmp::message(router, from.ip(), says, &quote(from, peer, seq));
    if random.chance(0.4) {
        let header = if router.is_ipv4() { 20 } else { 40 };
        damage(&mut packet[header..], random);
        if random.chance(0.5) {
            icmp::reseal(&mut packet);
        }
    }
    let whole = packet.len() as u64;
    if random.chance(0.1) {
        packet.truncate(random.below(whole) as usize);
    }
    packet
}

/// The smallest segment that a router can bring a host to: that of the least MTU that is
/// believed (552 bytes; RFC 8200 has 1,280), less headers and time stamps.
const fn least_mss(is_ipv4: bool) -> u32 {
    if is_ipv4 {
        552 - 20 - 20 - 12
    } else {
        1_280 - 40 - 20 - 12
    }
}

pub(super) fn under_icmp(seed: u64) {
    let mut random = Random::new(seed ^ 0x1C3B_0F5E);
    let [host, peer, router] = FAMILIES[random.below(2) as usize];
    let path = Path {
        loss: [0.0, 0.02][random.below(2) as usize],
        reorder: [0.0, 0.1][random.below(2) as usize],
        ..Path::default()
    };
    let config = any_config(&mut random);
    let mut network = Network::between([host, peer], seed, path, &config, &config);
    let router: IpAddr = router.parse().unwrap();
    let limit = network.now + Duration::from_mins(1);
    assert!(network.run_until(limit, |network| network.server.is_some()));
    let mut streams = Streams::new(&mut random);
    let limit = network.now + Duration::from_mins(30);
    while !streams.have_arrived() {
        for side in 0..2 {
            streams.pass(&mut network, side, &mut random);
            if random.chance(0.3) {
                network.collect();
                let before = state(&mut network, side);
                let packet = forged_icmp(&mut network, side, router, &mut random);
                network.inject(side, &packet);
                assert_eq!(state(&mut network, side), before, "a forgery was believed");
            }
            if random.chance(0.1) {
                let packet = icmp_on_path(&mut network, side, router, &mut random);
                network.inject(side, &packet);
            }
            let mss = state(&mut network, side).1;
            assert!(mss >= least_mss(router.is_ipv4()), "{mss}");
        }
        let next = network.now + Duration::from_millis(10);
        network.step(next);
        assert!(network.now < limit, "the streams stand still: {streams:?}");
    }
    for alive in [network.client(|c| c.state()), network.server(|c| c.state())] {
        assert!(alive.can_write(), "{alive:?}");
    }
}

/// What a message may change: what was sent, the size of segments and the window.
fn state(network: &mut Network, side: usize) -> (usize, u32, u32, u32) {
    let sent = network.trace.len();
    let of = |c: &mut Connection| (sent, c.flow().mss, c.flow().cwnd, c.flow().lost_out);
    if side == 0 {
        network.client(of)
    } else {
        network.server(of)
    }
}
