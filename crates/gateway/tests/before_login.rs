//! What peers that have not logged in may have the gateway keep in memory, beneath
//! its frames too: each no more than a login needs, all together no more than
//! `unauthenticated_memory`.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use lagometer_gateway::server::Server;
use lagometer_gateway::server::config::FileConfig;
use lagometer_protocol::{Compression, FrameBuilder, MessagePack, frame_header};
use lagometer_transport::kcp::AddressProof;
use tungstenite::Message;

/// Longer than anything here takes on a machine that is busy with others.
const TIMEOUT: Duration = Duration::from_mins(2);

/// AUTH of player "test" with the token "test".
const LOGIN: &[u8] = b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn start(wire: &str, limits: &str) -> Server {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let text = format!(
        "dev = true\n\
         [servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [clients]\nlisten = [\"{wire}://127.0.0.1:0\"]\nwait_for_owner = false\n\
         [web]\nlisten = \"127.0.0.1:0\"\n\
         [threads]\nconnections = 1\npin = false\n\
         [tls]\ncertificate = \"{data}/certificate.pem\"\nkey = \"{data}/key.pem\"\n\
         [limits]\nlogin_within = \"10min\"\n{limits}\n",
        data = data.display()
    );
    let config = FileConfig::parse("test", &text).unwrap();
    Server::start(config.resolve(1).unwrap()).unwrap()
}

fn stop(server: Server) {
    server.handle().drain();
    server.join().unwrap();
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Reads until the gateway has hung up.
fn is_hung_up_on(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn metric(server: &Server, name: &str) -> f64 {
    let mut web = connect(server.web().unwrap());
    web.write_all(b"GET /metrics HTTP/1.1\r\nHost: gateway\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    web.read_to_string(&mut page).unwrap();
    let value = page.lines().find_map(|line| line.strip_prefix(name));
    value
        .unwrap_or_else(|| panic!("no {name} in {page}"))
        .trim()
        .parse()
        .unwrap()
}

fn over(server: &Server, budget: &str) -> f64 {
    let name = format!("gateway_over_budget_total{{peer=\"client\",budget=\"{budget}\"}}");
    metric(server, &name)
}

fn held(server: &Server, pool: &str) -> f64 {
    let name = format!("gateway_unauthenticated_memory_bytes{{pool=\"{pool}\"}}");
    metric(server, &name)
}

/// Until that holds.
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < give_up, "{what}");
    }
}

/// A library that looks for the end of the request kept up to 64 KiB of it.
#[test]
fn a_websocket_request_that_never_ends_costs_its_sender_the_connection_at_16_kib() {
    for bytes in [15 << 10, 17 << 10] {
        let server = start("ws", "");
        let mut attacker = connect(server.clients()[0]);
        let mut request = REQUEST.to_vec();
        request.extend_from_slice(b"Cookie: ");
        request.resize(bytes, b'a');
        attacker.write_all(&request).unwrap();
        if bytes > 16 << 10 {
            is_hung_up_on(&mut attacker);
            assert!(over(&server, "login_bytes") >= 1.0);
        } else {
            // As long as a browser's may be: it may end.
            attacker.write_all(b"\r\n\r\n").unwrap();
            let mut answer = [0; 12];
            attacker.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 101");
        }
        stop(server);
    }
}

/// The first message of TLS may have 64 KiB, and its parts were kept.
#[test]
fn a_tls_handshake_that_never_ends_costs_its_sender_the_connection_at_16_kib() {
    for wire in ["tls", "wss"] {
        let server = start(wire, "");
        let mut attacker = connect(server.clients()[0]);
        // A ClientHello of 60,000 bytes, a kilobyte of it a record.
        let mut hello = vec![0x01, 0, 0xea, 0x60];
        hello.resize(20 << 10, 0);
        for part in hello.chunks(1 << 10) {
            let mut record = vec![0x16, 3, 1];
            record.extend_from_slice(&(part.len() as u16).to_be_bytes());
            record.extend_from_slice(part);
            if attacker.write_all(&record).is_err() {
                break;
            }
        }
        is_hung_up_on(&mut attacker);
        assert!(over(&server, "login_bytes") >= 1.0, "{wire}");
        stop(server);
    }
}

/// Pings, and empty parts of a message, were no frames, and counted nowhere.
#[test]
fn what_a_websocket_carries_beside_frames_counts_before_the_login() {
    let server = start("ws", "login_bytes = \"16 KiB\"");
    let stream = connect(server.clients()[0]);
    let (mut socket, _) = tungstenite::client("ws://localhost/", stream).unwrap();
    for _ in 0..1000 {
        // Its payload: up to 125 bytes.
        let ping = Message::Ping(vec![7; 120].into());
        if socket.write(ping).and_then(|()| socket.flush()).is_err() {
            break;
        }
    }
    is_hung_up_on(socket.get_mut());
    assert!(over(&server, "login_bytes") >= 1.0);
    stop(server);
}

/// A token may be as long as the settings say, on a WebSocket too.
#[test]
fn a_login_with_a_long_token_passes_in_one_websocket_message() {
    let server = start("ws", "login_token = \"40 KiB\"");
    let stream = connect(server.clients()[0]);
    let (mut socket, _) = tungstenite::client("ws://localhost/", stream).unwrap();
    let token = [
        &[0x0a, 4],
        &b"test"[..],
        &[0x12, 0x80, 0xc0, 0x02],
        &vec![b't'; 40 << 10],
    ]
    .concat();
    let mut builder = FrameBuilder::new();
    let login = MessagePack {
        msg_type: 1,
        body: &token,
        ..MessagePack::default()
    };
    builder.push(&login).unwrap();
    let frame = builder.finish().unwrap().to_vec();
    socket.send(Message::Binary(frame.into())).unwrap();
    assert!(socket.read().unwrap().is_binary());
    stop(server);
}

/// Each within what it may keep, and together far more than all may.
#[test]
fn all_who_have_not_logged_in_keep_no_more_than_their_memory_and_a_newcomer_logs_in() {
    for (wire, connections) in [("tcp", 200), ("ws", 100)] {
        let server = start(wire, "unauthenticated_memory = \"1 MiB\"");
        let at = server.clients()[0];
        let mut unfinished = frame_header(60_000, Compression::None).to_vec();
        unfinished.resize(15 << 10, 7);
        let _attackers: Vec<TcpStream> = (0..connections)
            .map(|_| {
                let mut attacker = connect(at);
                if wire == "ws" {
                    attacker.write_all(REQUEST).unwrap();
                    attacker.write_all(b"\r\n").unwrap();
                    // Nothing may come behind a request before its answer.
                    assert!(attacker.read(&mut [0; 4096]).unwrap() > 0);
                    // A message of 15 KiB, masked, of which the end does not come.
                    attacker
                        .write_all(&[0x82, 0xfe, 0x3c, 0x01, 0, 0, 0, 0])
                        .unwrap();
                }
                let _ = attacker.write_all(&unfinished);
                attacker
            })
            .collect();
        wait("nobody was closed", || {
            over(&server, "login_memory") >= 20.0
        });
        let clients = held(&server, "clients");
        assert!(clients <= 768.0 * 1024.0, "{wire}: {clients} bytes");
        // Most of it is taken, which keeps nobody out.
        assert!(clients > 512.0 * 1024.0, "{wire}: {clients} bytes");
        let mut newcomer = connect(at);
        if wire == "ws" {
            let (mut socket, _) = tungstenite::client("ws://localhost/", newcomer).unwrap();
            socket.send(Message::Binary(LOGIN.into())).unwrap();
            assert!(socket.read().unwrap().is_binary());
        } else {
            newcomer.write_all(LOGIN).unwrap();
            newcomer.read_exact(&mut [0; 5]).unwrap();
        }
        stop(server);
    }
}

/// A datagram with a data segment.
fn segment(conversation: u32, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; 24];
    datagram[..4].copy_from_slice(&conversation.to_le_bytes());
    datagram[4] = 81;
    datagram[6] = 32;
    datagram[12..16].copy_from_slice(&sequence.to_le_bytes());
    datagram[20..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    datagram.extend_from_slice(payload);
    datagram
}

/// A conversation that has returned its cookie was kept 128 KiB of, all of which
/// could wait for a segment that was left out.
#[test]
fn segments_of_a_proven_peer_that_wait_for_the_first_are_no_more_than_a_login_needs() {
    // More than all that is sent here: its number alone does not end the conversation.
    let server = start("kcp", "login_bytes = \"1 MiB\"");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.clients()[0]).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let hello = AddressProof::Hello { conversation: 7 };
    let mut buffer = [0; 2048];
    wait("no cookie comes", || {
        socket.send(&hello.to_bytes()).unwrap();
        let Ok(bytes) = socket.recv(&mut buffer) else {
            return false;
        };
        let Some(AddressProof::Challenge { cookie, .. }) = AddressProof::parse(&buffer[..bytes])
        else {
            return false;
        };
        let answer = AddressProof::Answer {
            conversation: 7,
            cookie,
        };
        socket.send(&answer.to_bytes()).unwrap();
        true
    });
    // What a busy machine loses comes again: sixteen segments, 22 KiB in all.
    let mut rounds = 0;
    wait("they are kept", || {
        rounds += 1;
        assert!(rounds <= 40, "they are kept");
        for sequence in 1..17 {
            let _ = socket.send(&segment(7, sequence, &[7; 1400]));
        }
        over(&server, "login_bytes") >= 1.0
    });
    let events = "gateway_kcp_events_total{event=\"proven_by_cookie\"}";
    assert_eq!(metric(&server, events) as u64, 1);
    let received = metric(&server, "bytes_in{connType=\"CLIENT\"}");
    assert_eq!(received as u64, 0, "nothing came in order");
    stop(server);
}

/// Unproven conversations have places by the thousand, each for a login.
#[test]
fn unproven_conversations_keep_no_more_than_their_share_of_the_memory() {
    let server = start("kcp", "unauthenticated_memory = \"1 MiB\"");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.clients()[0]).unwrap();
    let mut conversation = 0;
    wait("they keep what they like", || {
        for _ in 0..100 {
            conversation += 1;
            for sequence in 1..6 {
                let _ = socket.send(&segment(conversation, sequence, &[7; 1400]));
            }
        }
        let unproven = held(&server, "kcp_unproven");
        assert!(unproven <= 256.0 * 1024.0, "{unproven} bytes");
        over(&server, "login_memory") >= 100.0
    });
    assert!(held(&server, "kcp_unproven") > 128.0 * 1024.0);
    stop(server);
}
