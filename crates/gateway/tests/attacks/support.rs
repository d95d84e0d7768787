//! What the attacks have in common: a gateway on loopback, peers that speak its
//! protocol over TCP, hostile frames, and its metrics.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use lagometer_gateway::server::Server;
use lagometer_gateway::server::config::FileConfig;
use lagometer_protocol::{
    Compression, Compressor, FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet,
    frame_header,
};

/// Longer than anything here takes on a machine that is busy with others.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// AUTH of player "test" with the token "test".
pub(crate) const LOGIN: &[u8] = b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";

pub(crate) const AUTH: u32 = 1;
pub(crate) const CREATE_CHANNEL: u32 = 3;
pub(crate) const LIST_CHANNEL: u32 = 5;
pub(crate) const USER_MESSAGE: u32 = 100;

pub(crate) fn start(sections: &str) -> Server {
    start_as("dev = true\n", &["tcp"], sections)
}

pub(crate) fn start_as(top: &str, wires: &[&str], sections: &str) -> Server {
    let clients: Vec<String> = wires
        .iter()
        .map(|wire| format!("\"{wire}://127.0.0.1:0\""))
        .collect();
    let text = format!(
        "{top}[servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [clients]\nlisten = [{}]\nwait_for_owner = false\n\
         [web]\nlisten = \"127.0.0.1:0\"\n{sections}",
        clients.join(", ")
    );
    let config = FileConfig::parse("test", &text).unwrap();
    Server::start(config.resolve(1).unwrap()).unwrap()
}

/// One loop for connections and one for channels.
pub(crate) const THREADS: &str = "[threads]\nconnections = 1\npin = false\n";

pub(crate) fn stop(server: Server) {
    server.handle().drain();
    server.join().unwrap();
}

/// A peer that speaks frames over TCP.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    pub(crate) decoder: FrameDecoder,
    pub(crate) waiting: std::collections::VecDeque<(u32, Vec<u8>)>,
}

impl Peer {
    pub(crate) fn connect(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Self {
            stream,
            decoder: FrameDecoder::new(FrameLimits::default()),
            waiting: std::collections::VecDeque::new(),
        }
    }

    /// Connects and logs in.
    pub(crate) fn login(at: SocketAddr) -> Self {
        let mut peer = Self::connect(at);
        peer.stream.write_all(LOGIN).unwrap();
        assert_eq!(peer.next().unwrap().0, AUTH);
        peer
    }

    /// A game server that owns GLOBAL.
    pub(crate) fn game_server(at: SocketAddr) -> Self {
        let mut server = Self::login(at);
        // CreateChannelMessage { channel_type: GLOBAL }
        server.send(CREATE_CHANNEL, &[0x08, 0x01]);
        while server.next().unwrap().0 != CREATE_CHANNEL {}
        server
    }

    pub(crate) fn send(&mut self, msg_type: u32, body: &[u8]) {
        self.stream.write_all(&frame(msg_type, body)).unwrap();
    }

    /// The next message; `None` once the gateway has hung up.
    pub(crate) fn next(&mut self) -> Option<(u32, Vec<u8>)> {
        let mut buffer = vec![0; 64 << 10];
        while self.waiting.is_empty() {
            let bytes = match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            };
            let mut rest = &buffer[..bytes];
            while let Some(frame) = self.decoder.next(&mut rest).unwrap() {
                for message in Packet::new_checked(frame.payload).unwrap().messages() {
                    self.waiting
                        .push_back((message.msg_type, message.body.to_owned()));
                }
            }
        }
        self.waiting.pop_front()
    }
}

pub(crate) fn frame(msg_type: u32, body: &[u8]) -> Vec<u8> {
    frame_of(&[MessagePack {
        msg_type,
        body,
        ..MessagePack::default()
    }])
}

pub(crate) fn frame_of(messages: &[MessagePack<'_>]) -> Vec<u8> {
    let mut builder = FrameBuilder::new();
    for message in messages {
        builder.push(message).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

/// Short messages, `count` of them, in one frame of snappy.
pub(crate) fn bomb(count: usize, message: &[u8]) -> Vec<u8> {
    let packet = message.repeat(count);
    let mut compressor = Compressor::new();
    let snappy = compressor.compress(&packet).unwrap();
    let len = u16::try_from(snappy.len()).unwrap();
    let mut frame = frame_header(len, Compression::Snappy).to_vec();
    frame.extend_from_slice(snappy);
    frame
}

pub(crate) fn get(server: &Server, path: &str) -> String {
    let mut web = TcpStream::connect(server.web().unwrap()).unwrap();
    web.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(web, "GET {path} HTTP/1.1\r\nHost: gateway\r\n\r\n").unwrap();
    let mut page = String::new();
    web.read_to_string(&mut page).unwrap();
    page
}

pub(crate) fn metric(server: &Server, line: &str) -> f64 {
    let page = get(server, "/metrics");
    let value = page.lines().find_map(|it| it.strip_prefix(line));
    value
        .unwrap_or_else(|| panic!("no {line} in {page}"))
        .trim()
        .parse()
        .unwrap()
}
