//! The batched socket on loopback: nothing is lost, changed or reordered,
//! whatever the sizes and whichever way the datagrams go.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use lagometer_socket::udp::{Incoming, LONGEST_DATAGRAM, Offload, Options, Outgoing, Socket};
use proptest::prelude::*;

const V4: &str = "127.0.0.1:0";
const V6: &str = "[::1]:0";
const WAYS: [Offload; 3] = [Offload::Full, Offload::Batches, Offload::Plain];

fn options(offload: Offload) -> Options {
    Options {
        offload,
        ..Options::default()
    }
}

/// A connected sender and an open receiver.
fn pair(local: &str, offload: Offload) -> (Socket, Socket) {
    let receiver = Socket::bind(local.parse().unwrap(), &options(offload)).unwrap();
    let sender = Socket::connected(receiver.local_addr().unwrap(), &options(offload)).unwrap();
    (sender, receiver)
}

/// Reads until `count` datagrams have come.
fn read(receiver: &mut Socket, count: usize) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut incoming = Incoming::new(16);
    let mut came = Vec::new();
    let timeout = Instant::now() + Duration::from_secs(20);
    while came.len() < count {
        assert!(Instant::now() < timeout, "only {} came", came.len());
        receiver
            .wait_readable(Some(Duration::from_millis(100)))
            .unwrap();
        receiver.receive(&mut incoming).unwrap();
        let datagrams = incoming.iter().map(|it| (it.bytes.to_vec(), it.from));
        came.extend(datagrams);
    }
    came
}

/// Datagrams of the sizes given, no two alike but for the empty ones.
fn datagrams(sizes: &[usize]) -> Vec<Vec<u8>> {
    let numbered = sizes.iter().enumerate();
    numbered
        .map(|(number, &size)| (0..size).map(|at| (number * 31 + at) as u8).collect())
        .collect()
}

fn crosses_whole(local: &str, offload: Offload, sizes: &[usize]) {
    let (mut sender, mut receiver) = pair(local, offload);
    let wanted = datagrams(sizes);
    let mut outgoing = Outgoing::new(sizes.len());
    for datagram in &wanted {
        assert!(outgoing.push(datagram, None));
    }
    assert!(sender.send(&mut outgoing).unwrap());
    let came = read(&mut receiver, wanted.len());
    let from = sender.local_addr().unwrap();
    assert!(came.iter().all(|(_, sender)| *sender == from));
    let came: Vec<Vec<u8>> = came.into_iter().map(|(bytes, _)| bytes).collect();
    assert_eq!(came, wanted);
    let sent = sender.counters();
    assert_eq!(sent.sent_datagrams, sizes.len() as u64);
    assert_eq!(sent.sent_bytes, sizes.iter().sum::<usize>() as u64);
    assert_eq!(receiver.counters().received_bytes, sent.sent_bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_mix_of_sizes_crosses_whole_on_every_way(
        sizes in prop::collection::vec(
            prop_oneof![3 => Just(1200_usize), 1 => 0..3000_usize, 1 => 0..20_000_usize],
            1..80,
        ),
        way in prop::sample::select(&WAYS[..]),
        local in prop::sample::select(&[V4, V6][..]),
    ) {
        crosses_whole(local, way, &sizes);
    }
}

#[test]
fn the_longest_datagram_and_the_empty_one_cross() {
    for way in WAYS {
        crosses_whole(V4, way, &[LONGEST_DATAGRAM, 0, LONGEST_DATAGRAM, 1, 0]);
    }
}

#[test]
fn a_run_of_equal_datagrams_takes_a_call_where_one_by_one_takes_many() {
    let calls = |offload| {
        let (mut sender, mut receiver) = pair(V4, offload);
        let mut outgoing = Outgoing::new(640);
        while outgoing.push(&[7; 1000], None) {}
        assert!(sender.send(&mut outgoing).unwrap());
        assert_eq!(read(&mut receiver, 640).len(), 640);
        (sender.counters().send_calls, sender.path().to_string())
    };
    assert_eq!(calls(Offload::Full), (1, "gso+gro".to_owned()));
    assert_eq!(calls(Offload::Batches), (10, "mmsg".to_owned()));
    assert_eq!(calls(Offload::Plain), (640, "plain".to_owned()));
}

#[test]
fn an_open_socket_sends_to_several_and_knows_senders_apart() {
    for local in [V4, V6] {
        let mut hub = Socket::bind(local.parse().unwrap(), &Options::default()).unwrap();
        let mut spokes: Vec<Socket> = (0..3)
            .map(|_| Socket::connected(hub.local_addr().unwrap(), &Options::default()).unwrap())
            .collect();
        for spoke in &mut spokes {
            let mut outgoing = Outgoing::new(1);
            outgoing.push(b"here", None);
            assert!(spoke.send(&mut outgoing).unwrap());
        }
        let mut outgoing = Outgoing::new(64);
        for (_, from) in read(&mut hub, 3) {
            for _ in 0..10 {
                outgoing.push(from.to_string().as_bytes(), Some(from));
            }
        }
        assert!(hub.send(&mut outgoing).unwrap());
        for spoke in &mut spokes {
            let own = spoke.local_addr().unwrap().to_string();
            let came = read(spoke, 10);
            assert!(came.iter().all(|(bytes, _)| *bytes == own.as_bytes()));
            assert!(
                came.iter()
                    .all(|(_, from)| *from == hub.local_addr().unwrap())
            );
        }
    }
}

#[test]
fn an_absent_peer_is_counted_and_a_late_one_is_met() {
    let place = UdpSocket::bind(V4).unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let mut sender = Socket::connected(address, &Options::default()).unwrap();
    let mut outgoing = Outgoing::new(4);
    let mut incoming = Incoming::new(1);
    for _ in 0..20 {
        outgoing.push(b"anybody?", None);
        assert!(sender.send(&mut outgoing).unwrap());
        assert_eq!(sender.receive(&mut incoming).unwrap(), 0);
    }
    assert!(sender.counters().unreachable > 0);
    let mut late = Socket::bind(address, &Options::default()).unwrap();
    outgoing.push(b"there you are", None);
    assert!(sender.send(&mut outgoing).unwrap());
    assert_eq!(read(&mut late, 1)[0].0, b"there you are");
}

#[test]
fn a_full_kernel_keeps_the_rest_waiting() {
    // The loopback device takes everything and drops what is too much. A
    // local socket has the same calls and a queue that is full at some point.
    let (here, there) = UnixDatagram::pair().unwrap();
    let socket = UdpSocket::from(OwnedFd::from(here));
    let narrow = Options {
        send_buffer: 0,
        ..Options::default()
    };
    let mut sender = Socket::from_std(socket, &narrow).unwrap();
    assert_eq!(sender.path().to_string(), "mmsg");
    let mut outgoing = Outgoing::new(5000);
    let mut number = 0_u16;
    while outgoing.push(&number.to_le_bytes(), None) {
        number += 1;
    }
    let mut came = 0;
    while !sender.send(&mut outgoing).unwrap() {
        assert!(!outgoing.is_empty());
        let mut bytes = [0; 2];
        assert_eq!(there.recv(&mut bytes).unwrap(), 2);
        assert_eq!(u16::from_le_bytes(bytes), came);
        came += 1;
    }
    assert!(came > 0 && outgoing.is_empty());
    assert_eq!(sender.counters().sent_datagrams, 5000);
}

#[test]
fn a_datagram_longer_than_any_is_dropped_and_the_next_goes() {
    for way in WAYS {
        let (mut sender, mut receiver) = pair(V4, way);
        let mut outgoing = Outgoing::new(8);
        outgoing.push(&vec![1; LONGEST_DATAGRAM + 1], None);
        outgoing.push(b"next", None);
        assert!(sender.send(&mut outgoing).unwrap());
        assert_eq!(sender.counters().refused_datagrams, 1);
        assert_eq!(read(&mut receiver, 1)[0].0, b"next");
    }
}

#[test]
fn nothing_there_is_said_at_once() {
    let (mut sender, _receiver) = pair(V4, Offload::Full);
    let mut incoming = Incoming::new(4);
    assert_eq!(sender.receive(&mut incoming).unwrap(), 0);
    assert!(incoming.is_empty() && incoming.iter().next().is_none());
    assert!(!sender.wait_readable(Some(Duration::ZERO)).unwrap());
}
