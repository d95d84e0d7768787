//! The real library over loopback: both modes, its epoll, its errors, its
//! threads and what is left of them.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lagometer_native::udt::{
    Error, Kind, Library, Mode, Options, Order, Poll, RateControl, Socket, State,
};

/// Far longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(20);

fn udp() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// Tries until `attempt` gives something.
fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(begun.elapsed() < TIMEOUT, "{what}: not in {TIMEOUT:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

struct Pair {
    client: Socket,
    server: Socket,
    _listener: Socket,
}

fn pair(mode: Mode, options: &Options) -> Pair {
    let library = Library::start().unwrap();
    let listener = Socket::new(&library, mode, false, options).unwrap();
    let listening = udp();
    let address = listening.local_addr().unwrap();
    listener.bind(listening).unwrap();
    listener.listen(4).unwrap();
    let client = Socket::new(&library, mode, false, options).unwrap();
    client.bind(udp()).unwrap();
    client.connect(address).unwrap();
    let (server, peer) = eventually("a connection", || listener.accept().ok());
    assert!(peer.is_some_and(|peer| peer.ip().is_loopback()));
    eventually("being connected", || {
        (client.state() == State::Connected).then_some(())
    });
    Pair {
        client,
        server,
        _listener: listener,
    }
}

fn patiently<T>(mut call: impl FnMut() -> Result<T, Error>) -> T {
    eventually("a call", || match call() {
        Ok(value) => Some(value),
        Err(error) if error.would_block() => None,
        Err(error) => panic!("{error}"),
    })
}

fn carries_messages(options: &Options) {
    let pair = pair(Mode::Messages, options);
    let mut buffer = [0; 4096];
    for number in 0..50_u16 {
        let message = vec![number as u8; 1 + usize::from(number) * 60];
        patiently(|| pair.client.send_message(&message, None, Order::Kept));
        let length = patiently(|| pair.server.receive_message(&mut buffer));
        assert_eq!(buffer[..length], message);
        patiently(|| pair.server.send_message(&message, None, Order::Free));
        let length = patiently(|| pair.client.receive_message(&mut buffer));
        assert_eq!(buffer[..length], message);
    }
    let statistics = pair.client.statistics().unwrap();
    assert!(statistics.sent_packets >= 50, "{statistics:?}");
    assert!(statistics.round_trip < TIMEOUT, "{statistics:?}");
}

#[test]
fn messages_arrive_whole_and_in_order_under_every_rate_control() {
    for rate_control in [
        RateControl::Library,
        RateControl::Release410,
        RateControl::FixedWindow {
            window_packets: 64,
            timeout: None,
            repeats_reports: true,
        },
        RateControl::FixedWindow {
            window_packets: 64,
            timeout: Some(Duration::from_millis(100)),
            repeats_reports: false,
        },
    ] {
        carries_messages(&Options {
            rate_control,
            ..Options::default()
        });
    }
}

#[test]
fn a_stream_keeps_its_bytes() {
    let pair = pair(Mode::Stream, &Options::default());
    let sent: Vec<u8> = (0..300_000_u32).map(|byte| (byte % 251) as u8).collect();
    let mut received = Vec::new();
    let mut rest = &sent[..];
    let mut buffer = vec![0; 65_536];
    eventually("the stream's end", || {
        if !rest.is_empty() {
            match pair.client.send(rest) {
                Ok(length) => rest = &rest[length..],
                Err(error) => assert!(error.would_block(), "{error}"),
            }
        }
        match pair.server.receive(&mut buffer) {
            Ok(length) => received.extend_from_slice(&buffer[..length]),
            Err(error) => assert!(error.would_block(), "{error}"),
        }
        (received.len() >= sent.len()).then_some(())
    });
    assert_eq!(received, sent);
}

#[test]
fn the_poll_reports_when_to_read_and_stops_reporting() {
    let pair = pair(Mode::Messages, &Options::default());
    let server = Arc::new(pair.server);
    let mut poll = Poll::new(Arc::clone(&server)).unwrap();
    let ready = poll.wait(Duration::ZERO).unwrap();
    assert!(!ready.readable && !ready.writable, "{ready:?}");
    patiently(|| pair.client.send_message(b"ping", None, Order::Kept));
    eventually("readability", || {
        poll.wait(Duration::from_millis(10))
            .unwrap()
            .readable
            .then_some(())
    });
    let mut buffer = [0; 64];
    assert_eq!(server.receive_message(&mut buffer), Ok(4));
    assert!(
        server
            .receive_message(&mut buffer)
            .unwrap_err()
            .would_block()
    );
    poll.read_empty().unwrap();
    assert!(!poll.wait(Duration::ZERO).unwrap().readable);
    poll.watch_writing(true).unwrap();
    assert!(poll.wait(Duration::from_millis(10)).unwrap().writable);
    poll.watch_writing(false).unwrap();
    assert!(!poll.wait(Duration::ZERO).unwrap().writable);
}

#[test]
fn a_full_buffer_and_a_too_large_message_are_distinguished() {
    let options = Options {
        send_buffer_bytes: 4 * 1472,
        ..Options::default()
    };
    let pair = pair(Mode::Messages, &options);
    let error = pair
        .client
        .send_message(&[0; 10_000], None, Order::Kept)
        .unwrap_err();
    assert_eq!(error.kind(), Kind::TooLarge);
    // Four slots; whether they are still taken after a refusal depends on how
    // soon the peer acknowledges.
    eventually("packets without acknowledgement in a full buffer", || {
        let refusal = pair
            .client
            .send_message(&[1; 10], None, Order::Kept)
            .err()?;
        assert_eq!(refusal.kind(), Kind::WouldBlock);
        (pair.client.unacknowledged_packets() > 0).then_some(())
    });
}

#[test]
fn closing_wakes_whoever_waits() {
    let pair = pair(
        Mode::Messages,
        &Options {
            receive_waits: true,
            ..Options::default()
        },
    );
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pair.client.receive_message(&mut [0; 64]));
        patiently(|| pair.server.send_message(b"first", None, Order::Kept));
        assert_eq!(waiting.join().unwrap(), Ok(5));
        let waiting = scope.spawn(|| pair.client.receive_message(&mut [0; 64]));
        pair.client.close();
        assert!(waiting.join().unwrap().is_err());
    });
    assert!(
        pair.client
            .send_message(b"late", None, Order::Kept)
            .is_err()
    );
    assert!(matches!(pair.client.state(), State::Broken | State::Closed));
}

#[test]
fn the_peer_learns_of_the_end() {
    let Pair {
        client,
        server,
        _listener,
    } = pair(Mode::Messages, &Options::default());
    drop(client);
    eventually("the end", || {
        matches!(server.state(), State::Broken | State::Closed).then_some(())
    });
    assert!(server.receive_message(&mut [0; 64]).is_err());
}

#[test]
fn nobody_there_is_reported() {
    let library = Library::start().unwrap();
    let silent = udp();
    let client = Socket::new(
        &library,
        Mode::Messages,
        false,
        &Options {
            receive_waits: true,
            ..Options::default()
        },
    )
    .unwrap();
    client.bind(udp()).unwrap();
    let error = client.connect(silent.local_addr().unwrap()).unwrap_err();
    assert_eq!(error.kind(), Kind::NoServer);
}

fn listen(library: &Library, udp: UdpSocket) -> Result<Socket, Error> {
    let listener = Socket::new(library, Mode::Messages, false, &Options::default())?;
    listener.bind(udp)?;
    listener.listen(1)?;
    Ok(listener)
}

/// Connects to `listener` and sends one message each way.
fn exchange(library: &Library, listener: &Socket, address: SocketAddr) {
    let client = Socket::new(library, Mode::Messages, false, &Options::default()).unwrap();
    client.bind(udp()).unwrap();
    client.connect(address).unwrap();
    let (server, _) = eventually("a connection", || listener.accept().ok());
    eventually("being connected", || {
        (client.state() == State::Connected).then_some(())
    });
    let mut buffer = [0; 16];
    patiently(|| client.send_message(b"ping", None, Order::Kept));
    assert_eq!(patiently(|| server.receive_message(&mut buffer)), 4);
    patiently(|| server.send_message(b"pong", None, Order::Kept));
    assert_eq!(patiently(|| client.receive_message(&mut buffer)), 4);
}

#[test]
fn a_port_number_is_refused_while_another_socket_has_it() {
    let library = Library::start().unwrap();
    let first = udp();
    let port = first.local_addr().unwrap().port();
    let elsewhere = || UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), port)).unwrap();
    let first = listen(&library, first).unwrap();
    let error = listen(&library, elsewhere()).unwrap_err();
    assert_eq!(error.kind(), Kind::PortTaken(port));
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    drop(first);
    listen(&library, elsewhere()).unwrap();
}

#[test]
fn a_port_number_may_be_used_again_while_udt_still_clears_up_its_last_owner() {
    let library = Library::start().unwrap();
    let first = udp();
    let port = first.local_addr().unwrap().port();
    let address = first.local_addr().unwrap();
    let listener = listen(&library, first).unwrap();
    exchange(&library, &listener, address);
    drop(listener);
    for host in 2..5 {
        let udp = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, host), port)).unwrap();
        let address = udp.local_addr().unwrap();
        let listener = listen(&library, udp).unwrap();
        exchange(&library, &listener, address);
    }
}

#[test]
fn bad_options_are_refused() {
    let library = Library::start().unwrap();
    let options = Options {
        packet_bytes: 10,
        ..Options::default()
    };
    let error = Socket::new(&library, Mode::Messages, false, &options).unwrap_err();
    assert_eq!(error.kind(), Kind::BadArgument);
}

#[test]
fn a_sockets_threads_are_counted_and_end() {
    let pair = pair(Mode::Messages, &Options::default());
    assert_eq!(pair.client.thread_count(), 2);
    assert_eq!(pair.server.thread_count(), 2);
    let before = pair.client.cpu();
    for _ in 0..100 {
        patiently(|| pair.client.send_message(&[7; 100], None, Order::Kept));
        patiently(|| pair.server.receive_message(&mut [0; 200]));
    }
    assert!(pair.client.cpu() > before);
    assert!(pair.server.cpu() > Duration::ZERO);
    pair.client.close();
    eventually("the threads' end", || {
        (pair.client.thread_count() == 0).then_some(())
    });
    // What they used is not forgotten with them.
    assert!(pair.client.cpu() > before);
}

#[test]
fn a_quiet_round_trip_waits_for_no_timer() {
    let pair = pair(Mode::Messages, &Options::default());
    let mut buffer = [0; 16];
    let mut prompt = 0;
    for _ in 0..40 {
        let begun = Instant::now();
        patiently(|| pair.client.send_message(b"ping", None, Order::Kept));
        patiently(|| pair.server.receive_message(&mut buffer));
        patiently(|| pair.server.send_message(b"pong", None, Order::Kept));
        patiently(|| pair.client.receive_message(&mut buffer));
        // UDT looks at its timers every 100 ms where nothing else happens.
        prompt += u32::from(begun.elapsed() < Duration::from_millis(50));
        thread::sleep(Duration::from_millis(20));
    }
    // A busy machine may hold some up.
    assert!(prompt >= 20, "{prompt} of 40 round trips were prompt");
}

#[test]
fn ipv6_works_too() {
    let library = Library::start().unwrap();
    let options = Options::default();
    let Ok(listening) = UdpSocket::bind("[::1]:0") else {
        eprintln!("skipped: this machine has no IPv6 on its loopback");
        return;
    };
    let address = listening.local_addr().unwrap();
    let listener = Socket::new(&library, Mode::Messages, true, &options).unwrap();
    listener.bind(listening).unwrap();
    listener.listen(1).unwrap();
    let client = Socket::new(&library, Mode::Messages, true, &options).unwrap();
    client.bind(UdpSocket::bind("[::1]:0").unwrap()).unwrap();
    client.connect(address).unwrap();
    let (server, peer) = eventually("a connection", || listener.accept().ok());
    assert!(peer.is_some_and(|peer| peer.is_ipv6()));
    // The server has its end before the client knows.
    eventually("being connected", || {
        (client.state() == State::Connected).then_some(())
    });
    patiently(|| server.send_message(b"six", None, Order::Kept));
    let mut buffer = [0; 16];
    assert_eq!(patiently(|| client.receive_message(&mut buffer)), 3);
}
