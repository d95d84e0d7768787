//! The instruments between two ends of one process, over real sockets on
//! loopback: every size, losses, remote ends that die or stay away.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_instruments::echo::local::{self, Ended, Plan};
use lagometer_instruments::echo::{self, Transport};
use lagometer_instruments::payload::Payload;
use lagometer_instruments::placement::Pin;
use lagometer_instruments::sweep::{self, Test};
use lagometer_instruments::wire::{Datagrams, Unblock, Waiting};
use lagometer_instruments::{Error, services};
use lagometer_remote::{Limits, Registry, Remote, Secret, Server, ServerSettings};

/// One byte, the rims of the header, of the Ethernet MTU and of loopback's.
const SIZES: [usize; 14] = [
    1, 2, 7, 8, 9, 100, 1400, 1472, 1473, 9000, 32_753, 32_754, 65_507, 65_536,
];

fn own() -> Remote {
    Remote::own(services(Registry::new())).unwrap()
}

fn settings(transport: Transport, size: usize) -> echo::Settings {
    echo::Settings {
        transport,
        size,
        outstanding: 1,
        span: Duration::from_millis(30),
        spin: false,
        pin: Pin::Free,
        timeout: Duration::from_secs(1),
    }
}

#[test]
fn every_size_is_echoed_and_verified_over_both_transports() {
    let remote = own();
    for transport in [Transport::Udp, Transport::Tcp] {
        for size in SIZES.map(|size| size.min(transport.largest())) {
            let settings = settings(transport, size);
            let (found, ended) = echo::measure(&remote, &settings, &mut |_| true).unwrap();
            let counts = &found.messages;
            assert_eq!(ended, Ended::OnTime);
            assert!(counts.echoed > 0, "{transport:?} {size} B");
            assert_eq!(
                (counts.corrupt, counts.lost),
                (0, 0),
                "{transport:?} {size} B: {counts:?}"
            );
            let delay = found.delay_ms.unwrap();
            assert!((delay * found.iops * 2.0 - 1000.0).abs() < 1e-6);
        }
    }
}

#[test]
fn spinning_ends_and_many_on_their_way_work_too() {
    let remote = own();
    for (spin, outstanding, pin) in [(true, 1, Pin::Same), (false, 100, Pin::Free)] {
        let settings = echo::Settings {
            spin,
            outstanding,
            pin,
            ..settings(Transport::Udp, 16)
        };
        let (found, _) = echo::measure(&remote, &settings, &mut |_| true).unwrap();
        assert!(found.messages.echoed > 10, "{:?}", found.messages);
        assert_eq!(found.messages.corrupt, 0);
    }
}

#[test]
fn the_best_placement_is_chosen_among_those_tried() {
    let settings = echo::Settings {
        pin: Pin::Best,
        ..settings(Transport::Udp, 8)
    };
    let (found, _) = echo::measure(&own(), &settings, &mut |_| true).unwrap();
    let placement = &found.placement;
    assert!(!placement.asked);
    if let Some(best) = placement
        .tried
        .iter()
        .map(|trial| trial.rate)
        .reduce(f64::max)
    {
        let chosen = placement
            .tried
            .iter()
            .find(|trial| {
                trial.local_cpu == placement.local_cpu && trial.remote_cpu == placement.remote_cpu
            })
            .unwrap();
        assert!(chosen.rate * 1.2 >= best, "{placement:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_mend() {
    let remote = own();
    let udp = settings(Transport::Udp, 8);
    for (wrong, word) in [
        (
            echo::Settings {
                span: Duration::ZERO,
                ..udp
            },
            "--for",
        ),
        (echo::Settings { size: 0, ..udp }, "--size"),
        (
            echo::Settings {
                size: 65_508,
                ..udp
            },
            "--size",
        ),
        (
            echo::Settings {
                size: 1,
                outstanding: 200,
                ..udp
            },
            "--outstanding",
        ),
        (
            echo::Settings {
                timeout: Duration::ZERO,
                ..udp
            },
            "--timeout",
        ),
    ] {
        let error = echo::measure(&remote, &wrong, &mut |_| true).unwrap_err();
        assert!(matches!(error, Error::Settings(_)));
        let said = error.to_string();
        assert!(
            said.starts_with(word) && said.lines().count() == 1,
            "{said}"
        );
    }
}

/// A remote end that echoes all but every `nth` datagram.
fn losing(nth: u64) -> (UdpSocket, thread::JoinHandle<()>) {
    let remote = UdpSocket::bind("127.0.0.1:0").unwrap();
    let local = UdpSocket::bind("127.0.0.1:0").unwrap();
    remote.connect(local.local_addr().unwrap()).unwrap();
    local.connect(remote.local_addr().unwrap()).unwrap();
    remote
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let echoing = thread::spawn(move || {
        let mut buffer = [0; 2048];
        let mut count = 0;
        while let Ok(length) = remote.recv(&mut buffer) {
            count += 1;
            if count % nth != 0 && remote.send(&buffer[..length]).is_err() {
                break;
            }
        }
    });
    (local, echoing)
}

fn over(socket: UdpSocket, plan: &Plan) -> local::Outcome {
    let unblock = Unblock::default();
    unblock.udp(&socket).unwrap();
    let nudging = socket.try_clone().unwrap();
    let wire = Datagrams::new(socket, Waiting::Asleep).unwrap();
    let nudge = |message: &[u8]| drop(nudging.send(message));
    let payload = Payload::new(1, 64);
    local::run(wire, &payload, plan, &unblock, &nudge, &mut |_, _| true).unwrap()
}

const PLAN: Plan = Plan {
    outstanding: 1,
    span: Duration::from_millis(600),
    timeout: Duration::from_millis(20),
    silence: Duration::from_millis(400),
    cpu: None,
};

#[test]
fn loss_is_reported_and_the_run_goes_on() {
    let (socket, echoing) = losing(50);
    let outcome = over(socket, &PLAN);
    let counts = &outcome.stats.counts;
    assert_eq!(outcome.ended, Ended::OnTime);
    // What is sent again in time is echoed after all, but not silently.
    assert!(counts.lost + counts.nudges >= 2, "{counts:?}");
    assert_eq!(counts.sent, counts.echoed + counts.lost);
    // All but one of the fifty that pass between two losses come back.
    assert!(counts.echoed >= counts.lost * 40, "{counts:?}");
    echoing.join().unwrap();
}

#[test]
fn loss_among_many_on_their_way_stops_none_of_the_others() {
    let (socket, echoing) = losing(50);
    let plan = Plan {
        outstanding: 16,
        ..PLAN
    };
    let outcome = over(socket, &plan);
    let counts = &outcome.stats.counts;
    assert!(counts.lost >= 2, "{counts:?}");
    assert!(counts.echoed > counts.lost, "{counts:?}");
    echoing.join().unwrap();
}

#[test]
fn a_remote_end_that_never_answers_is_given_up() {
    // Bound, so that nothing is refused, and deaf.
    let remote = UdpSocket::bind("127.0.0.1:0").unwrap();
    let local = UdpSocket::bind("127.0.0.1:0").unwrap();
    local.connect(remote.local_addr().unwrap()).unwrap();
    let plan = Plan {
        span: Duration::from_mins(1),
        ..PLAN
    };
    let began = Instant::now();
    let outcome = over(local, &plan);
    assert!(matches!(outcome.ended, Ended::Gone(_)));
    assert_eq!(outcome.stats.counts.echoed, 0);
    assert!(outcome.stats.counts.lost > 0);
    assert!(began.elapsed() < plan.span / 4, "it waited for ever");
}

#[test]
fn a_remote_end_that_dies_ends_the_run_with_what_was_found() {
    let settings = echo::Settings {
        span: Duration::from_mins(1),
        timeout: Duration::from_millis(20),
        ..settings(Transport::Tcp, 8)
    };
    let secret = Secret::generate();
    let server = Server::start(ServerSettings {
        bind: "127.0.0.1:0".parse().unwrap(),
        secret: secret.clone(),
        registry: services(Registry::new()),
        data_ports: None,
        limits: Limits::default(),
        on_event: Box::new(|_| {}),
    })
    .unwrap();
    let dying = Remote::connect(&server.address().to_string(), &secret).unwrap();
    let mut server = Some(server);
    let (found, ended) = echo::measure(&dying, &settings, &mut |progress| {
        if let echo::Progress::Echoed(_, echoed) = progress
            && echoed > 100
        {
            server.take();
        }
        true
    })
    .unwrap();
    assert!(matches!(ended, Ended::Gone(_)), "{ended:?}");
    assert!(found.messages.echoed > 100);
}

#[test]
fn the_user_can_stop_a_run() {
    let looks = AtomicU64::new(0);
    let settings = echo::Settings {
        span: Duration::from_mins(1),
        ..settings(Transport::Udp, 8)
    };
    let (_, ended) = echo::measure(&own(), &settings, &mut |_| {
        looks.fetch_add(1, Ordering::Relaxed) < 5
    })
    .unwrap();
    assert_eq!(ended, Ended::Stopped);
}

#[test]
fn a_sweep_fills_every_cell_with_verified_figures() {
    let settings = sweep::Settings {
        tests: Test::ALL.to_vec(),
        sizes: vec![1, 8, 1400, 1473, 65_536],
        span: Duration::from_millis(30),
        pin: Pin::Free,
        congestion: None,
    };
    let (found, ended) = sweep::measure(&own(), &settings, &mut |_| true).unwrap();
    assert_eq!(ended, Ended::OnTime);
    assert_eq!(found.cells.len(), 30);
    assert!(found.congestion_control.is_some());
    for cell in &found.cells {
        let what = format!("{cell:?}");
        assert_eq!((&cell.failure, cell.corrupt), (&None, 0), "{what}");
        assert!(cell.received > 0, "{what}");
        assert_eq!(cell.sent, cell.received + cell.lost, "{what}");
        assert_eq!(cell.latency_us.is_some(), cell.test.ends_with("_lat"));
        if cell.test.starts_with("tcp") {
            assert_eq!(cell.lost, 0, "{what}");
        }
    }
}

#[test]
fn two_local_ends_are_served_at_once_over_both_versions_of_ip() {
    let secret = Secret::generate();
    let server = |bind: &str| {
        Server::start(ServerSettings {
            bind: bind.parse().unwrap(),
            secret: secret.clone(),
            registry: services(Registry::new()),
            data_ports: None,
            limits: Limits::default(),
            on_event: Box::new(|_| {}),
        })
        .unwrap()
    };
    let (four, six) = (server("127.0.0.1:0"), server("[::1]:0"));
    thread::scope(|scope| {
        for address in [four.address(), four.address(), six.address()] {
            let secret = &secret;
            scope.spawn(move || {
                let remote = Remote::connect(&address.to_string(), secret).unwrap();
                let settings = settings(Transport::Udp, 100);
                let (found, _) = echo::measure(&remote, &settings, &mut |_| true).unwrap();
                assert!(found.messages.echoed > 0 && found.messages.corrupt == 0);
                let sweep = sweep::Settings {
                    tests: vec![Test::UdpBwBatched, Test::TcpBw],
                    sizes: vec![1000],
                    span: Duration::from_millis(30),
                    pin: Pin::Free,
                    congestion: None,
                };
                let (found, _) = sweep::measure(&remote, &sweep, &mut |_| true).unwrap();
                assert!(found.cells.iter().all(|cell| cell.received > 0));
            });
        }
    });
}
