//! Whatever is sent over IP arrives, and only through the link.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_emu::{LaneAddresses, Settings};
use libtest_mimic::Trial;

use crate::bench::{TIMEOUT, devices, link, listener, network, network_with, udp_pair};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        test("udp_goes_both_ways_in_every_lane", udp_goes_both_ways),
        test("tcp_carries_a_megabyte_whole", tcp_carries_a_megabyte),
        test("hosts_have_loopback", hosts_have_loopback),
        test(
            "a_lane_does_not_reach_another",
            a_lane_does_not_reach_another,
        ),
        test(
            "a_link_that_loses_all_delivers_nothing",
            a_link_that_loses_all,
        ),
        test("large_packets_vanish_in_a_black_hole", black_hole),
        test("large_packets_are_refused_aloud", refused_aloud),
        test("damage_does_not_get_past_the_checksum", damage),
        test("copies_arrive_twice", copies),
        test("a_network_begins_anew", begins_anew),
    ]
}

fn test(name: &str, body: fn()) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

const TEN_MS: &str = "[both]\ndelay = \"10 ms\"\n";

fn families(lane: u8) -> [(IpAddr, IpAddr); 2] {
    let addresses = LaneAddresses::of(lane);
    [
        (addresses.local_v4.into(), addresses.remote_v4.into()),
        (addresses.local_v6.into(), addresses.remote_v6.into()),
    ]
}

fn udp_goes_both_ways() {
    for device in devices() {
        let settings = Settings {
            device,
            ..Settings::default()
        };
        let network = network_with(&settings, &[TEN_MS, TEN_MS]);
        for lane in 0..2 {
            for (local, remote) in families(lane) {
                let (local, remote) = udp_pair(&network, local, remote);
                let mut buffer = [0; 2000];
                let sent = Instant::now();
                local.send(b"there").unwrap();
                assert_eq!(remote.recv(&mut buffer).unwrap(), 5);
                remote.send(b"and back").unwrap();
                assert_eq!(local.recv(&mut buffer).unwrap(), 8);
                assert!(sent.elapsed() >= Duration::from_millis(20));
            }
        }
        let audit = network.stop().unwrap().audit;
        for lane in &audit.lanes {
            for way in [&lane.up, &lane.down] {
                assert_eq!((way.packets, way.delivered), (2, 2), "{lane:?}");
                assert_eq!((way.malformed, way.lost_by_accident()), (0, 0), "{lane:?}");
            }
            // 20 + 8 + 5, and 40 + 8 + 5.
            assert_eq!(lane.up.bytes, 86);
        }
    }
}

fn tcp_carries_a_megabyte() {
    for device in devices() {
        let settings = Settings {
            device,
            ..Settings::default()
        };
        let network = network_with(&settings, &["[both]\ndelay = \"2 ms\"\n"]);
        for (_, remote) in families(0) {
            let listener = listener(network.remote(), remote);
            let address = listener.local_addr().unwrap();
            let sender = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
                stream.write_all(&bytes).unwrap();
            });
            let stream = network.local().run(move || TcpStream::connect(address));
            let mut stream = stream.unwrap().unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            sender.join().unwrap();
            assert_eq!(bytes.len(), 1_000_000);
            assert!(
                bytes
                    .iter()
                    .zip(0_u32..)
                    .all(|(&b, n)| b == (n % 251) as u8)
            );
        }
        // An offload that is on would show as packets that are too long.
        let audit = network.stop().unwrap().audit;
        assert_eq!(audit.lanes[0].up.malformed, 0);
        assert_eq!(audit.lanes[0].down.malformed, 0);
        assert_eq!(audit.lanes[0].down.lost_by_accident(), 0);
        assert!(audit.lanes[0].down.bytes > 2_000_000);
    }
}

fn hosts_have_loopback() {
    let network = network(&[]);
    let (one, two) = udp_pair_within(&network);
    one.send(b"here").unwrap();
    assert_eq!(two.recv(&mut [0; 10]).unwrap(), 4);
}

fn udp_pair_within(network: &lagometer_emu::Network) -> (std::net::UdpSocket, std::net::UdpSocket) {
    let loopback = std::net::Ipv4Addr::LOCALHOST;
    let one = crate::bench::udp(network.local(), loopback);
    let two = crate::bench::udp(network.local(), loopback);
    one.connect(two.local_addr().unwrap()).unwrap();
    (one, two)
}

fn a_lane_does_not_reach_another() {
    let network = network(&[TEN_MS, TEN_MS]);
    let (_, remote) = udp_pair(
        &network,
        LaneAddresses::of(1).local_v4,
        LaneAddresses::of(1).remote_v4,
    );
    // From the other lane's address, over this lane's device.
    let foreign = crate::bench::udp(network.local(), LaneAddresses::of(0).local_v4);
    foreign
        .send_to(b"hello", remote.local_addr().unwrap())
        .unwrap();
    remote
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    assert!(remote.recv(&mut [0; 10]).is_err());
    let audit = network.stop().unwrap().audit;
    assert_eq!(audit.lanes[1].up.foreign, 1);
    assert_eq!(audit.lanes[1].up.packets, 0);
}

fn a_link_that_loses_all() {
    let network = network(&["[up]\nloss = \"100 %\"\n"]);
    let [(local, remote), _] = families(0);
    let (local, remote) = udp_pair(&network, local, remote);
    for _ in 0..5 {
        local.send(b"lost").unwrap();
        remote.send(b"arrives").unwrap();
        assert_eq!(local.recv(&mut [0; 10]).unwrap(), 7);
    }
    remote
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(remote.recv(&mut [0; 10]).is_err());
    let audit = network.stop().unwrap().audit;
    assert_eq!(audit.lanes[0].up.dropped["loss"], 5);
    assert!((audit.lanes[0].up.asked.loss_pct - 100.0).abs() < 1e-9);
    assert!((audit.lanes[0].up.realised.loss_pct - 100.0).abs() < 1e-9);
}

fn black_hole() {
    let network = network(&["[both]\nmtu = \"1300 B\"\noversize = \"vanish\"\n"]);
    for (local, remote) in families(0) {
        let headers = if local.is_ipv4() { 28 } else { 48 };
        let (local, remote) = udp_pair(&network, local, remote);
        let mut buffer = [0; 2000];
        local.send(&vec![0; 1300 - headers]).unwrap();
        assert_eq!(remote.recv(&mut buffer).unwrap(), 1300 - headers);
        local.send(&vec![0; 1301 - headers]).unwrap();
        local.send(b"small").unwrap();
        assert_eq!(remote.recv(&mut buffer).unwrap(), 5);
    }
    let audit = network.stop().unwrap().audit;
    assert_eq!(audit.lanes[0].up.dropped["oversize"], 2);
}

fn refused_aloud() {
    let network = network(&["[both]\nmtu = \"1300 B\"\noversize = \"refuse\"\n"]);
    for (local, remote) in families(0) {
        let headers = if local.is_ipv4() { 28 } else { 48 };
        let (local, remote) = udp_pair(&network, local, remote);
        let mut buffer = [0; 2000];
        local.send(&vec![0; 1400 - headers]).unwrap();
        // The host is notified, asynchronously, and from then on cuts packets to
        // what fits or refuses them itself.
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match local.send(&vec![7; 1400 - headers]) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(90) => {}
                Err(error) => panic!("{error}"),
            }
            remote
                .set_read_timeout(Some(Duration::from_millis(20)))
                .unwrap();
            match remote.recv(&mut buffer) {
                Ok(length) => {
                    assert_eq!(length, 1400 - headers);
                    assert_eq!(buffer[0], 7);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            assert!(Instant::now() < deadline, "the host was never notified");
        }
    }
    let audit = network.stop().unwrap().audit;
    assert!(audit.lanes[0].up.refused >= 2, "{:?}", audit.lanes[0].up);
}

fn damage() {
    let network = network(&["[up]\ncorruption = \"100 %\"\n"]);
    let [(local, remote), _] = families(0);
    let (local, remote) = udp_pair(&network, local, remote);
    for _ in 0..50 {
        local.send(b"a message that will not be the same").unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    remote
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(remote.recv(&mut [0; 100]).is_err());
    let audit = network.stop().unwrap().audit;
    assert_eq!(audit.lanes[0].up.damaged, 50);
    assert_eq!(audit.lanes[0].up.delivered, 50);
    assert_eq!(audit.lanes[0].up.lost_by_accident(), 0);
}

fn copies() {
    let network = network(&["[up]\nduplication = { share = \"100 %\", apart = \"5 ms\" }\n"]);
    let [(local, remote), _] = families(0);
    let (local, remote) = udp_pair(&network, local, remote);
    local.send(b"echo").unwrap();
    for _ in 0..2 {
        assert_eq!(remote.recv(&mut [0; 10]).unwrap(), 4);
    }
    let audit = network.stop().unwrap().audit;
    assert_eq!(
        (audit.lanes[0].up.delivered, audit.lanes[0].up.copies),
        (1, 1)
    );
}

fn begins_anew() {
    let mut network = network(&["[both]\nloss = \"100 %\"\n"]);
    let [(local, remote), _] = families(0);
    let (local, remote) = udp_pair(&network, local, remote);
    local.send(b"lost").unwrap();
    thread::sleep(Duration::from_millis(20));
    network.begin(vec![link(TEN_MS).into()]).unwrap();
    local.send(b"found").unwrap();
    assert_eq!(remote.recv(&mut [0; 10]).unwrap(), 5);
    let audit = network.stop().unwrap().audit;
    let up = &audit.lanes[0].up;
    assert_eq!((up.packets, up.delivered), (1, 1));
    assert!(up.dropped.is_empty());
}
