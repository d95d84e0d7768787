//! Each wire the gateway speaks, with a peer of its kind: a login goes in, the
//! answer comes out, and a broadcast of some size after it.

mod tls_client;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use lagometer_gateway::server::Server;
use lagometer_gateway::server::config::FileConfig;
use lagometer_kcp::{Config, Engine};
use lagometer_protocol::{FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet};
use lagometer_units::Time;
use rustls::{ClientConnection, StreamOwned};
use tungstenite::{Message, WebSocket};

const TIMEOUT: Duration = Duration::from_secs(30);
const LOGIN: &[u8] = b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";

fn start(wire: &str) -> Server {
    start_with(wire, "[web]\nenabled = false\n[threads]\nconnections = 0\n")
}

fn start_with(wire: &str, sections: &str) -> Server {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let text = format!(
        "dev = true\n\
         [servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [clients]\nlisten = [\"{wire}://127.0.0.1:0\"]\nwait_for_owner = false\n\
         {sections}\
         [tls]\ncertificate = \"{data}/certificate.pem\"\nkey = \"{data}/key.pem\"\n",
        data = data.display()
    );
    let config = FileConfig::parse("test", &text)
        .unwrap()
        .resolve(1)
        .unwrap();
    Server::start(config).unwrap()
}

/// A peer of some kind.
trait Wire {
    fn write(&mut self, bytes: &[u8]);
    /// Some bytes, in pieces as they come.
    fn read(&mut self) -> Vec<u8>;
}

impl<S: Read + Write> Wire for S {
    fn write(&mut self, bytes: &[u8]) {
        self.write_all(bytes).unwrap();
        self.flush().unwrap();
    }

    fn read(&mut self) -> Vec<u8> {
        let mut buffer = vec![0; 64 << 10];
        let bytes = Read::read(self, &mut buffer).unwrap();
        assert!(bytes > 0, "the gateway has hung up");
        buffer.truncate(bytes);
        buffer
    }
}

/// Logs in over a wire, then is sent something large by a server.
fn converse(server: &Server, wire: &mut impl Wire) {
    wire.write(LOGIN);
    let mut arrived = Arrived::default();
    let (msg_type, answer) = arrived.next(wire);
    assert_eq!(msg_type, 1);
    // AuthResult: successful, connection number 1 and up.
    assert_eq!(answer[0], 0x10, "{answer:?}");
    let id = answer[1];

    let mut game = TcpStream::connect(server.servers()[0]).unwrap();
    game.set_read_timeout(Some(TIMEOUT)).unwrap();
    Wire::write(&mut game, LOGIN);
    let mut of_game = Arrived::default();
    assert_eq!(of_game.next(&mut game).0, 1);
    // To that one connection, whoever it is: a ServerForwardMessage.
    let mut body = vec![0x08, id, 0x12, 0xa8, 0xc3, 0x01];
    body.extend((0..25_000_u32).map(|n| n as u8));
    for _ in 0..3 {
        let mut builder = FrameBuilder::new();
        let message = MessagePack {
            broadcast: 1,
            msg_type: 100,
            body: &body,
            ..MessagePack::default()
        };
        builder.push(&message).unwrap();
        Wire::write(&mut game, builder.finish().unwrap());
    }
    for _ in 0..3 {
        let (msg_type, received) = arrived.next(wire);
        assert_eq!(msg_type, 100);
        assert_eq!(received, body);
    }
}

#[derive(Default)]
struct Arrived {
    decoder: Option<FrameDecoder>,
    waiting: std::collections::VecDeque<(u32, Vec<u8>)>,
}

impl Arrived {
    fn next(&mut self, wire: &mut impl Wire) -> (u32, Vec<u8>) {
        let decoder = self
            .decoder
            .get_or_insert_with(|| FrameDecoder::new(FrameLimits::default()));
        while self.waiting.is_empty() {
            let bytes = wire.read();
            let mut rest = &bytes[..];
            while let Some(frame) = decoder.next(&mut rest).unwrap() {
                for message in Packet::new_checked(frame.payload).unwrap().messages() {
                    self.waiting
                        .push_back((message.msg_type, message.body.to_owned()));
                }
            }
        }
        self.waiting.pop_front().unwrap()
    }
}

fn tcp(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn tls(at: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    tls_client::over(tcp(at))
}

/// A WebSocket client that insists on one frame a message.
struct Ws<S>(WebSocket<S>);

impl<S: Read + Write> Wire for Ws<S> {
    fn write(&mut self, bytes: &[u8]) {
        // Borders of messages mean nothing on the way in.
        let (first, second) = bytes.split_at(7);
        self.0.send(Message::binary(first.to_vec())).unwrap();
        self.0.send(Message::binary(second.to_vec())).unwrap();
    }

    fn read(&mut self) -> Vec<u8> {
        let bytes = self.0.read().unwrap().into_data();
        let len = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        assert_eq!(bytes.len(), 5 + len, "a message is a frame");
        bytes.to_vec()
    }
}

#[test]
fn tcp_is_spoken() {
    let server = start("tcp");
    converse(&server, &mut tcp(server.clients()[0]));
    server.handle().drain();
    server.join().unwrap();
}

#[test]
fn tls_is_spoken() {
    let server = start("tls");
    converse(&server, &mut tls(server.clients()[0]));
    server.handle().drain();
    server.join().unwrap();
}

#[test]
fn websocket_is_spoken() {
    let server = start("ws");
    let stream = tcp(server.clients()[0]);
    let (socket, _) = tungstenite::client("ws://localhost/some/path", stream).unwrap();
    let mut ws = Ws(socket);
    converse(&server, &mut ws);
    server.handle().drain();
    server.join().unwrap();
    // The goodbye says why.
    let Ok(Message::Close(Some(goodbye))) = ws.0.read() else {
        panic!("no goodbye");
    };
    assert!(goodbye.reason.contains("shutting down"), "{goodbye:?}");
}

#[test]
fn websocket_over_tls_is_spoken() {
    let server = start("wss");
    let stream = tls(server.clients()[0]);
    let (socket, _) = tungstenite::client("wss://localhost/", stream).unwrap();
    let mut ws = Ws(socket);
    converse(&server, &mut ws);
    server.handle().drain();
    server.join().unwrap();
}

/// A KCP client over a socket of its own.
struct Kcp {
    engine: Engine,
    socket: UdpSocket,
    begun: Instant,
}

impl Kcp {
    fn pump(&mut self) {
        let elapsed = self.begun.elapsed();
        let socket = &self.socket;
        self.engine.update(elapsed.as_millis() as u32, |datagram| {
            socket.send(datagram).unwrap();
        });
        let mut buffer = [0; 2048];
        while let Ok(bytes) = self.socket.recv(&mut buffer) {
            let now = Time::from_nanos(elapsed.as_nanos() as u64);
            self.engine.input(now, &buffer[..bytes]).unwrap();
        }
    }
}

impl Wire for Kcp {
    fn write(&mut self, bytes: &[u8]) {
        self.engine.send(bytes).unwrap();
        self.pump();
    }

    fn read(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        let give_up = Instant::now() + TIMEOUT;
        while self.engine.receive(&mut message).is_none() {
            assert!(Instant::now() < give_up, "nothing comes");
            self.pump();
        }
        message
    }
}

impl Kcp {
    fn to(gateway: SocketAddr, config: &Config) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(gateway).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(2)))
            .unwrap();
        Self {
            engine: Engine::new(0x1234_5678, config),
            socket,
            begun: Instant::now(),
        }
    }
}

fn speak_kcp(wire: &str, config: &Config) {
    let server = start(wire);
    let mut kcp = Kcp::to(server.clients()[0], config);
    converse(&server, &mut kcp);
    server.handle().drain();
    server.join().unwrap();
}

#[test]
fn kcp_is_spoken_as_channeld_does() {
    speak_kcp(
        "kcp",
        &Config {
            receive_window: 32,
            ..Config::default()
        },
    );
}

#[test]
fn kcp_is_spoken_tuned() {
    let config = Config {
        nodelay: 1,
        interval_ms: 10,
        resend: 2,
        congestion_control: false,
        ..Config::default()
    };
    speak_kcp("kcp-tuned", &config);
}

/// The page of the gateway's metrics.
fn metrics(server: &Server) -> String {
    let mut web = tcp(server.web().unwrap());
    web.write_all(b"GET /metrics HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    Read::read_to_string(&mut web, &mut page).unwrap();
    page
}

/// What a library does that hangs up without the protocol's goodbye, or the
/// kernel for a client that is killed.
#[test]
fn a_websocket_that_only_hangs_up_has_gone_and_sent_no_bad_bytes() {
    let server = start_with("ws", "[web]\nlisten = \"127.0.0.1:0\"\n");
    let stream = tcp(server.clients()[0]);
    let (mut socket, _) = tungstenite::client("ws://localhost/", stream).unwrap();
    socket.send(Message::Binary(LOGIN.to_vec().into())).unwrap();
    assert!(matches!(socket.read(), Ok(Message::Binary(_))));
    drop(socket);
    let give_up = Instant::now() + TIMEOUT;
    let page = loop {
        let page = metrics(&server);
        if page.contains("connection_num{type=\"CLIENT\"} 0\n") {
            break page;
        }
        assert!(Instant::now() < give_up, "it is still there: {page}");
    };
    assert!(
        page.contains("connection_closed{connType=\"CLIENT\"} 0\n"),
        "{page}"
    );
    server.handle().drain();
    server.join().unwrap();
}

#[test]
fn kcp_conversations_are_spread_over_the_threads() {
    let sections = "[web]\nlisten = \"127.0.0.1:0\"\n[threads]\nconnections = 2\npin = false\n";
    let server = start_with("kcp-tuned", sections);
    let address = server.clients()[0];
    let mut peers: Vec<Kcp> = (0..40)
        .map(|_| Kcp::to(address, &Config::default()))
        .collect();
    for peer in &mut peers {
        peer.write(LOGIN);
        let (msg_type, _) = Arrived::default().next(peer);
        assert_eq!(msg_type, 1);
    }
    let page = metrics(&server);
    let open: Vec<u32> = page
        .lines()
        .filter(|line| line.starts_with("gateway_loop_connections{"))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
        .collect();
    assert_eq!(open.iter().sum::<u32>(), 40, "{page}");
    // Forty coins that all fall alike are not to be expected.
    assert!(open.len() == 2 && !open.contains(&0), "{open:?}");

    // Nobody else gets in beside the sockets that share the address.
    assert!(UdpSocket::bind(address).is_err());
    server.handle().drain();
    server.join().unwrap();
}
