//! Connections of a host over time: when it forgets them, and who gets their ports.

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use lagometer_tcp::wire::{Segment, icmp_too_big, parse_packet};
use lagometer_tcp::{
    CloseReason, Config, ConnectError, Connection, ConnectionId, Endpoint, Instant, State,
};

const PORTS: usize = 28_232;

fn server_address() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

/// Hands over what two hosts send until they have no more to say.
fn exchange(now: Instant, a: &mut Endpoint, b: &mut Endpoint) {
    loop {
        let (from, to) = match a.poll_transmit() {
            Some(packet) => (packet, &mut *b),
            None => match b.poll_transmit() {
                Some(packet) => (packet, &mut *a),
                None => return,
            },
        };
        to.receive(now, &from).unwrap();
    }
}

fn client(config: &Config) -> Endpoint {
    Endpoint::new("10.0.0.1".parse().unwrap(), config.clone(), 1)
}

fn server() -> Endpoint {
    let mut server = Endpoint::new(server_address().ip(), Config::default(), 2);
    server.listen(80, 4);
    server
}

/// Opens and ends a connection, the client's end first, which forgets it once
/// TIME-WAIT is over.
fn visit(
    now: Instant,
    client: &mut Endpoint,
    server: &mut Endpoint,
) -> Result<ConnectionId, ConnectError> {
    let id = client.connect(now, server_address())?;
    exchange(now, client, server);
    let accepted = server.accept(80).unwrap();
    client.close(now, id);
    exchange(now, client, server);
    server.close(now, accepted);
    exchange(now, client, server);
    Ok(id)
}

#[test]
fn a_connection_left_to_the_host_is_forgotten_once_it_is_closed() {
    let (mut a, mut b) = (client(&Config::default()), server());
    let mut now = Instant::from_millis(10_000);
    let id = visit(now, &mut a, &mut b).unwrap();
    assert!(b.is_empty(), "the end that closed last is over");
    assert_eq!(a.get(id).unwrap().state(), State::TimeWait);
    while let Some(deadline) = a.next_deadline() {
        now = deadline;
        a.handle_deadline(now);
    }
    assert!(a.is_empty());
    assert!(now >= Instant::from_millis(70_000), "{now:?}");
    assert_eq!(a.poll_woken(), None);
}

#[test]
fn a_port_whose_connection_is_closed_is_given_again() {
    let mut a = client(&Config::default());
    let mut b = Endpoint::new(server_address().ip(), Config::default(), 2);
    let now = Instant::from_millis(10_000);
    for _ in 0..=PORTS {
        // Refused, and looked at no more.
        let id = a.connect(now, server_address()).unwrap();
        exchange(now, &mut a, &mut b);
        assert_eq!(
            a.get(id).unwrap().close_reason(),
            Some(CloseReason::Refused)
        );
    }
    assert_eq!(a.len(), PORTS + 1);
}

#[test]
fn a_port_in_time_wait_is_given_again_after_a_second_if_the_host_allows_it() {
    let config = Config {
        reuse_time_wait: true,
        ..Config::default()
    };
    let (mut a, mut b) = (client(&config), server());
    let now = Instant::from_millis(10_000);
    for _ in 0..PORTS {
        visit(now, &mut a, &mut b).unwrap();
    }
    let full = ConnectError::NoPort(server_address());
    assert_eq!(visit(now, &mut a, &mut b), Err(full));
    visit(now + Duration::from_secs(1), &mut a, &mut b).unwrap();
    assert_eq!(a.len(), PORTS);
}

/// The packet of a client of its own with a port that it chooses.
fn syn(config: &Config, seed: u64, now: Instant) -> (Connection, Vec<u8>) {
    let local = "10.0.0.1:4000".parse().unwrap();
    let mut client = Connection::connect(config, local, server_address(), seed, now);
    let packet = client.poll_transmit().unwrap();
    (client, packet)
}

fn answer(host: &mut Endpoint, action: impl FnOnce(&Segment<'_>)) {
    let packet = host.poll_transmit().unwrap();
    let (_, segment) = parse_packet(&packet).unwrap();
    action(&segment);
}

#[test]
fn a_new_connection_takes_the_place_of_one_in_time_wait() {
    // Linux 6.1 `tcp_timewait_state_process`: it begins beyond what the last one sent.
    let config = Config {
        timestamps: false,
        ..Config::default()
    };
    let mut host = server();
    let mut now = Instant::from_millis(10_000);
    let (mut last, packet) = syn(&config, 3, now);
    host.receive(now, &packet).unwrap();
    let mut accepted = None;
    for _ in 0..8 {
        while let Some(packet) = host.poll_transmit() {
            let (header, segment) = parse_packet(&packet).unwrap();
            last.receive(now, &header, &segment);
        }
        while let Some(packet) = last.poll_transmit() {
            host.receive(now, &packet).unwrap();
        }
        if let Some(id) = host.accept(80) {
            host.close(now, id);
            accepted = Some(id);
        } else {
            last.close(now);
        }
    }
    let old = host.get(accepted.unwrap()).unwrap();
    assert_eq!(
        (old.state(), last.state()),
        (State::TimeWait, State::Closed)
    );
    let (expected, next) = (last.flow().next, old.flow().next);
    now = now + Duration::from_millis(1);
    // One that begins before what was seen is late, and one beyond it is new.
    let seed = |is_later: bool| {
        (0..64_u64)
            .find(|seed| syn(&config, *seed, now).0.flow().una.after(expected) == is_later)
            .unwrap()
    };
    host.receive(now, &syn(&config, seed(false), now).1)
        .unwrap();
    answer(&mut host, |segment| assert_eq!(segment.ack, expected));
    assert_eq!(host.len(), 1);
    host.receive(now, &syn(&config, seed(true), now).1).unwrap();
    answer(&mut host, |segment| assert_eq!(segment.seq, next + 65_537));
    assert_eq!(host.len(), 1);
    assert!(host.get(accepted.unwrap()).is_none());
}

#[test]
fn only_connections_to_which_something_happened_are_reported() {
    let (mut a, mut b) = (client(&Config::default()), server());
    let now = Instant::from_millis(10_000);
    let ids = [(), ()].map(|()| a.connect(now, server_address()).unwrap());
    exchange(now, &mut a, &mut b);
    let woken = std::iter::from_fn(|| a.poll_woken()).collect::<Vec<_>>();
    assert_eq!(woken, ids);
    a.with(ids[1], |connection| connection.write(now, b"hello"));
    assert_eq!(a.poll_woken(), None);
    exchange(now, &mut a, &mut b);
    b.handle_deadline(now + Duration::from_millis(200));
    exchange(now, &mut a, &mut b);
    assert_eq!(a.poll_woken(), Some(ids[1]));
    assert_eq!(a.poll_woken(), None);
}

#[test]
fn a_router_s_message_for_a_connection_left_to_the_host_is_not_reported() {
    let (mut a, mut b) = (client(&Config::default()), server());
    let now = Instant::from_millis(10_000);
    let id = a.connect(now, server_address()).unwrap();
    exchange(now, &mut a, &mut b);
    a.with(id, |connection| connection.write(now, &[7; 5_000]));
    let refuse = |a: &mut Endpoint| {
        let first = a.poll_transmit().unwrap();
        let message = icmp_too_big("10.0.0.9".parse().unwrap(), &first, 1_000).unwrap();
        a.receive(now, &message).unwrap();
    };
    // While the application has it, it is notified.
    while a.poll_woken().is_some() {}
    refuse(&mut a);
    assert_eq!(a.poll_woken(), Some(id));
    a.close(now, id);
    refuse(&mut a);
    assert_eq!(a.poll_woken(), None);
}
