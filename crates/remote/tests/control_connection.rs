//! Both ends in one process: what each may and may not do.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lagometer_remote::{
    Accepted, Error, Job, Limits, Refusal, Registry, Remote, Secret, Server, ServerSettings,
    Service, Session, Worker,
};
use serde_json::{Value, json};

/// Longer than anything here takes, on any machine.
const LONG: Duration = Duration::from_secs(30);

/// Sends every datagram back, or every byte where TCP is asked for.
#[derive(Default)]
struct Echo {
    under_way: Arc<AtomicUsize>,
}

struct EchoJob {
    worker: Worker<u64>,
    under_way: Arc<AtomicUsize>,
}

impl Service for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let (port, worker) = match request["over"].as_str() {
            Some("udp") => {
                let data_listener = session.udp()?;
                let port = data_listener.port();
                let worker = session.spawn("echo", move |stop| {
                    let Ok(socket) = data_listener.admit(LONG) else {
                        return 0;
                    };
                    socket
                        .set_read_timeout(Some(Duration::from_millis(20)))
                        .unwrap();
                    let mut echoed = 0;
                    let mut buffer = [0; 2048];
                    while !stop.is_raised() {
                        if let Ok(length) = socket.recv(&mut buffer) {
                            echoed += 1;
                            let _ = socket.send(&buffer[..length]);
                        }
                    }
                    echoed
                })?;
                (port, worker)
            }
            Some("tcp") => {
                let data_listener = session.tcp()?;
                let port = data_listener.port();
                let worker = session.spawn("echo", move |_| {
                    let Ok(mut stream) = data_listener.admit(LONG) else {
                        return 0;
                    };
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    stream.write_all(&byte).unwrap();
                    1
                })?;
                (port, worker)
            }
            _ => return Err(Refusal::new("`over` is udp or tcp")),
        };
        self.under_way.fetch_add(1, Ordering::SeqCst);
        session.send_event(&json!("begun"));
        Ok(Accepted::new(
            json!({ "port": port }),
            EchoJob {
                worker,
                under_way: Arc::clone(&self.under_way),
            },
        ))
    }
}

impl Job for EchoJob {
    fn ask(&mut self, body: &Value) -> Result<Value, Refusal> {
        Ok(json!({ "asked": body, "over": self.worker.is_over() }))
    }

    fn finish(self: Box<Self>) -> Value {
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        json!({ "echoed": self.worker.finish() })
    }
}

/// A remote end, what it reported, and how many of its jobs were not finished.
struct House {
    server: Server,
    secret: Secret,
    reported: Arc<Mutex<Vec<String>>>,
    under_way: Arc<AtomicUsize>,
}

fn house(limits: Limits) -> House {
    let secret = Secret::generate();
    let reported: Arc<Mutex<Vec<String>>> = Arc::default();
    let (echo, listener) = (Echo::default(), Arc::clone(&reported));
    let under_way = Arc::clone(&echo.under_way);
    let server = Server::start(ServerSettings {
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        secret: secret.clone(),
        registry: Registry::new().with(echo),
        data_ports: None,
        limits,
        on_event: Box::new(move |event| listener.lock().unwrap().push(event.to_string())),
    })
    .unwrap();
    House {
        server,
        secret,
        reported,
        under_way,
    }
}

impl House {
    fn visit(&self) -> Remote {
        Remote::connect(&self.server.address().to_string(), &self.secret).unwrap()
    }

    fn has_reported(&self, of: &str) -> bool {
        eventually(|| {
            self.reported
                .lock()
                .unwrap()
                .iter()
                .any(|line| line.contains(of))
        })
    }
}

fn eventually(is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < LONG {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn a_job_echoes_answers_and_reports() {
    let house = house(Limits::default());
    let remote = house.visit();
    let job = remote.open("echo", &json!({ "over": "udp" })).unwrap();
    assert_eq!(job.next_event(LONG), Some(json!("begun")));
    let socket = job.udp(job.port("port").unwrap()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let mut buffer = [0; 100];
    for index in 0..100_u8 {
        socket.send(&[index; 9]).unwrap();
        assert_eq!(socket.recv(&mut buffer).unwrap(), 9);
        assert_eq!(buffer[..9], [index; 9]);
    }
    assert_eq!(
        job.ask(&json!(7)).unwrap(),
        json!({ "asked": 7, "over": false })
    );
    assert_eq!(job.finish().unwrap(), json!({ "echoed": 100 }));
    assert!(house.has_reported("closed session=1 service=\"echo\""));
    drop(remote);
    assert!(house.has_reported("left session=1"));
    assert!(eventually(|| house.server.sessions() == 0));
}

#[test]
fn an_authenticated_connection_is_accepted_and_an_unauthenticated_one_is_not() {
    let house = house(Limits::default());
    let remote = house.visit();
    let job = remote.open("echo", &json!({ "over": "tcp" })).unwrap();
    let port = job.port("port").unwrap();
    let mut unauthenticated = TcpStream::connect(job.data_listener(port)).unwrap();
    unauthenticated.set_read_timeout(Some(LONG)).unwrap();
    unauthenticated.write_all(&[7; 80]).unwrap();
    let received = unauthenticated.read(&mut [0; 10]);
    assert!(matches!(received, Ok(0) | Err(_)), "{received:?}");
    let mut stream = job.tcp(port).unwrap();
    stream.write_all(b"x").unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"x");
    assert_eq!(job.finish().unwrap(), json!({ "echoed": 1 }));
}

#[test]
fn unauthenticated_datagrams_are_neither_answered_nor_delivered() {
    let house = house(Limits::default());
    let remote = house.visit();
    let job = remote.open("echo", &json!({ "over": "udp" })).unwrap();
    let port = job.port("port").unwrap();
    let unauthenticated = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, 8, 72, 80, 200, 1400] {
        let mut datagram = vec![0xA5; length];
        if length >= 8 {
            datagram[..8].copy_from_slice(b"LAGODATA");
        }
        unauthenticated
            .send_to(&datagram, job.data_listener(port))
            .unwrap();
    }
    let socket = job.udp(port).unwrap();
    // It sends again when the data listener is open for somebody else; the system no
    // longer passes it on, and on loopback says so to nobody.
    unauthenticated
        .send_to(b"me too", job.data_listener(port))
        .unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let mut buffer = [0; 100];
    socket.send(b"mine").unwrap();
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"mine");
    unauthenticated.set_nonblocking(true).unwrap();
    assert!(unauthenticated.recv(&mut buffer).is_err());
    assert_eq!(job.finish().unwrap(), json!({ "echoed": 1 }));
}

#[test]
fn another_secret_an_unknown_service_and_a_bad_request_are_refused_with_the_reason() {
    let house = house(Limits::default());
    let other = Secret::generate();
    let refused = Remote::connect(&house.server.address().to_string(), &other);
    assert!(matches!(refused, Err(Error::OtherSecret)), "{refused:?}");
    assert!(house.has_reported("turned-away"));
    let remote = house.visit();
    let unknown = remote.open("ecco", &Value::Null).unwrap_err().to_string();
    assert!(unknown.contains("there are: echo"), "{unknown}");
    let bad = remote.open("echo", &Value::Null).unwrap_err().to_string();
    assert!(bad.contains("`over` is udp or tcp"), "{bad}");
}

#[test]
fn another_program_at_the_port_is_not_taken_for_a_remote_end() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let web = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 64]).unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    let found = Remote::connect(&address.to_string(), &Secret::generate());
    assert!(
        matches!(found, Err(Error::UnknownProtocol { .. })),
        "{found:?}"
    );
    web.join().unwrap();
    let nobody = Remote::connect(&address.to_string(), &Secret::generate());
    assert!(
        matches!(nobody, Err(Error::Unreachable { .. })),
        "{nobody:?}"
    );
}

#[test]
fn a_conversation_that_ends_ends_its_jobs() {
    let house = house(Limits::default());
    let remote = house.visit();
    let job = remote.open("echo", &json!({ "over": "udp" })).unwrap();
    drop(remote);
    assert!(house.has_reported("closed session=1"));
    assert!(matches!(job.ask(&Value::Null), Err(Error::Gone { .. })));
    assert_eq!(
        house.under_way.load(Ordering::SeqCst),
        1,
        "it was not finished"
    );
}

#[test]
fn a_remote_end_that_stops_closes_its_sessions_and_leaves_nothing() {
    let house = house(Limits::default());
    let address = house.server.address();
    let remote = house.visit();
    let job = remote.open("echo", &json!({ "over": "udp" })).unwrap();
    drop(house.server);
    assert!(matches!(job.ask(&Value::Null), Err(Error::Gone { .. })));
    assert!(remote.gone().is_some());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn limits_are_enforced_and_named_in_the_refusal() {
    let house = house(Limits {
        sessions: 2,
        jobs_per_session: 3,
        sockets_per_session: 2,
        ..Limits::default()
    });
    let (first, second) = (house.visit(), house.visit());
    let third = Remote::connect(&house.server.address().to_string(), &house.secret);
    assert!(matches!(third, Err(Error::Busy)), "{third:?}");
    let open = |remote: &Remote| remote.open("echo", &json!({ "over": "udp" }));
    let jobs = [open(&first).unwrap(), open(&first).unwrap()];
    let refused = open(&first).unwrap_err().to_string();
    assert!(refused.contains("no more than 2 data sockets"), "{refused}");
    drop(jobs);
    assert!(open(&first).is_ok(), "what has ended counts no more");
    drop(second);
    assert!(eventually(|| house.server.sessions() == 1));
    assert!(open(&house.visit()).is_ok());
}

#[test]
fn whoever_does_not_prove_itself_is_sent_away_in_time() {
    let house = house(Limits {
        proof_within: Duration::from_millis(100),
        pending: 4,
        ..Limits::default()
    });
    let idlers: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(house.server.address()).unwrap())
        .collect();
    let remote = house.visit();
    assert!(remote.open("echo", &json!({ "over": "udp" })).is_ok());
    for mut idler in idlers {
        idler.set_read_timeout(Some(LONG)).unwrap();
        assert!(matches!(idler.read(&mut [0]), Ok(0) | Err(_)));
    }
}

#[test]
fn silent_connections_to_the_control_port_do_not_block_others() {
    // Each might stay for as long as a proof may take.
    let house = house(Limits {
        proof_within: 2 * LONG,
        pending: 4,
        ..Limits::default()
    });
    let mute: Vec<TcpStream> = (0..16)
        .map(|_| TcpStream::connect(house.server.address()).unwrap())
        .collect();
    let remote = house.visit();
    assert!(remote.open("echo", &json!({ "over": "udp" })).is_ok());
    // Those who came last keep what they have.
    let mut last = mute.last().unwrap();
    last.set_nonblocking(true).unwrap();
    let waits = last.read(&mut [0]).unwrap_err().kind();
    assert_eq!(waits, std::io::ErrorKind::WouldBlock);
}

#[test]
fn silent_connections_to_a_tcp_data_listener_do_not_block_others() {
    let house = house(Limits::default());
    let remote = house.visit();
    let job = remote.open("echo", &json!({ "over": "tcp" })).unwrap();
    let port = job.port("port").unwrap();
    // One after the other they would take more than a minute.
    let mute: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(job.data_listener(port)).unwrap())
        .collect();
    let mut stream = job.tcp(port).unwrap();
    stream.write_all(b"x").unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    assert_eq!(job.finish().unwrap(), json!({ "echoed": 1 }));
    drop(mute);
}

#[test]
fn garbage_during_or_after_the_handshake_closes_the_control_connection() {
    let house = house(Limits::default());
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xFF; 200],
        b"LAGOFAR\n\x00\x02short",
    ] {
        let mut stream = TcpStream::connect(house.server.address()).unwrap();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        assert!(received.len() <= garbage.len());
    }
    assert!(
        house
            .visit()
            .open("echo", &json!({ "over": "udp" }))
            .is_ok()
    );
}

#[test]
fn the_clock_of_the_same_machine_is_found_to_run_evenly() {
    let house = house(Limits::default());
    let remote = house.visit();
    let line = remote.offset_after(10, LONG).unwrap();
    assert!(line.probes() >= 10);
    assert_eq!(line.steps(), 0);
    let (drift, error) = line.drift_ppm();
    assert!(drift.abs() <= error + 0.1, "{drift} ± {error}");
    // Both count from when they began, the remote end a little earlier.
    let offset = line.at_local(remote.clock().now());
    assert!(
        offset.nanos + offset.error_nanos.cast_signed() > 0,
        "{offset:?}"
    );
}

#[test]
fn one_of_its_own_is_a_remote_end_like_any_other() {
    let remote = Remote::own(Registry::new().with(Echo::default())).unwrap();
    assert!(remote.is_own());
    let job = remote.open("echo", &json!({ "over": "udp" })).unwrap();
    let socket = job.udp(job.port("port").unwrap()).unwrap();
    socket.send(b"x").unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 1);
}
