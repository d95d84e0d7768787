//! KCP and WebSocket in the place of TCP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use lagometer_client::{Event, Outbox, OwnedEvent, Session, Settings as ClientSettings};
use lagometer_kcp::{Config, Engine};
use lagometer_protocol::messages::channeldpb::{ChannelType, CreateChannelMessage};
use lagometer_units::Time;

use crate::harness::{Gateway, SOON, Settings, Whose};

fn gateway(whose: Whose, transport: &'static str) -> Gateway {
    Gateway::start_with(
        whose,
        &Settings {
            transport,
            ..Settings::default()
        },
    )
}

fn take(session: &mut Session, bytes: &[u8], events: &mut Vec<OwnedEvent>) {
    session
        .receive(bytes, &mut |_: &mut Outbox, event: Event<'_>| {
            events.push(event.into_owned());
        })
        .unwrap();
}

fn pending(session: &mut Session) -> Vec<u8> {
    let bytes = session.outbox().pending().to_vec();
    session.outbox().sent(bytes.len());
    bytes
}

/// Logs in, then makes a channel with a name longer than a segment, so that
/// request and answers have to be cut.
fn talk(mut exchange: impl FnMut(&[u8]) -> Vec<u8>) {
    let mut session = Session::new(ClientSettings::default());
    let mut events = Vec::new();
    session.outbox().authenticate("carried", "lt").unwrap();
    let deadline = Instant::now() + SOON;
    let mut has_asked = false;
    let long = "name ".repeat(1000);
    let named = |event: &OwnedEvent| {
        matches!(event, OwnedEvent::Message {
            message: lagometer_protocol::FromGateway::CreateChannel(made), ..
        } if made.metadata == long)
    };
    while !events.iter().any(named) {
        assert!(Instant::now() < deadline, "{events:?}");
        let sent = pending(&mut session);
        let arrived = exchange(&sent);
        take(&mut session, &arrived, &mut events);
        if session.conn_id().is_some() && !has_asked {
            has_asked = true;
            session
                .outbox()
                .create_channel(CreateChannelMessage {
                    channel_type: ChannelType::Test.into(),
                    metadata: long.clone(),
                    ..Default::default()
                })
                .unwrap();
        }
    }
}

pub(crate) fn c24_kcp_as_kcp_go_speaks_it(whose: Whose) {
    let gateway = gateway(whose, "kcp");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(gateway.clients).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    let mut engine = Engine::new(0x1234_5678, &Config::kcp_go());
    let start = Instant::now();
    talk(|sent| {
        for piece in sent.chunks(1376) {
            engine.send(piece).unwrap();
        }
        let now = start.elapsed();
        engine.update(u32::try_from(now.as_millis()).unwrap(), |datagram| {
            socket.send(datagram).unwrap();
        });
        let mut datagram = [0; 2048];
        if let Ok(bytes) = socket.recv(&mut datagram) {
            engine
                .input(Time::ZERO + start.elapsed(), &datagram[..bytes])
                .unwrap();
        }
        let (mut arrived, mut message) = (Vec::new(), Vec::new());
        while engine.receive(&mut message).is_some() {
            arrived.extend_from_slice(&message);
            message.clear();
        }
        arrived
    });
}

/// A WebSocket by hand: one that a browser would open.
struct WebSocket {
    stream: TcpStream,
    buffered: Vec<u8>,
}

impl WebSocket {
    fn open(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut buffered = Vec::new();
        let deadline = Instant::now() + SOON;
        let end = loop {
            assert!(Instant::now() < deadline, "no handshake");
            read_some(&mut stream, &mut buffered);
            if let Some(at) = buffered.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let head = String::from_utf8(buffered.drain(..end).collect()).unwrap();
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        Self { stream, buffered }
    }

    /// Sends one binary message in as many frames as there are pieces.
    fn send(&mut self, pieces: &[&[u8]]) {
        let mask = [1, 2, 3, 4];
        for (at, piece) in pieces.iter().enumerate() {
            let last = u8::from(at + 1 == pieces.len()) << 7;
            let opcode = if at == 0 { 2 } else { 0 };
            let mut frame = vec![last | opcode, 0x80 | 0x7e];
            frame.extend_from_slice(&u16::try_from(piece.len()).unwrap().to_be_bytes());
            frame.extend_from_slice(&mask);
            frame.extend(piece.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b));
            self.stream.write_all(&frame).unwrap();
        }
    }

    /// The contents of the binary messages that have come.
    fn receive(&mut self) -> Vec<u8> {
        read_some(&mut self.stream, &mut self.buffered);
        let mut contents = Vec::new();
        while let [head, short, rest @ ..] = &self.buffered[..] {
            assert_eq!(head & 0x0f & !2, 0, "binary messages only");
            let (len, rest) = match (short & 0x7f, rest) {
                (126, [high, low, rest @ ..]) => {
                    (usize::from(u16::from_be_bytes([*high, *low])), rest)
                }
                (126.., _) => break,
                (len, rest) => (usize::from(len), rest),
            };
            let Some(content) = rest.get(..len) else {
                break;
            };
            contents.extend_from_slice(content);
            self.buffered = rest[len..].to_vec();
        }
        contents
    }
}

fn read_some(stream: &mut TcpStream, buffered: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    if let Ok(bytes) = stream.read(&mut buffer) {
        assert!(bytes > 0, "closed");
        buffered.extend_from_slice(&buffer[..bytes]);
    }
}

pub(crate) fn c25_websocket_messages_of_one_and_of_many_frames(whose: Whose) {
    let gateway = gateway(whose, "ws");
    // The port accepts once the gateway listens.
    let deadline = Instant::now() + SOON;
    while TcpStream::connect(gateway.clients).is_err() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    for pieces in [1, 3] {
        let mut socket = WebSocket::open(gateway.clients);
        talk(|sent| {
            if !sent.is_empty() {
                let cut: Vec<&[u8]> = sent.chunks(sent.len().div_ceil(pieces)).collect();
                socket.send(&cut);
            }
            socket.receive()
        });
    }
}
