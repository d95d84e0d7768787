//! A gateway that runs in a process of its own, and peers that speak to it byte
//! by byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use lagometer_protocol::{FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet};

use crate::gateway_process;

/// How long anything may take before the test fails: far longer than it does.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// The binary under test.
pub(crate) fn lagometer() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.arg("gateway");
    command
}

/// A gateway, killed when dropped.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    pub(crate) servers: SocketAddr,
    pub(crate) clients: SocketAddr,
    pub(crate) web: SocketAddr,
}

impl Gateway {
    /// Starts one that lets everyone in, on ports that are free.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let (child, line) = gateway_process::start(&[&["-ca=127.0.0.1:0"], arguments].concat());
        Self::named_in(&line, child)
    }

    /// The gateway that wrote, in that line of its log, where it listens. A node for channels
    /// has no addresses for peers.
    pub(crate) fn named_in(line: &str, child: Child) -> Self {
        let address = |key| gateway_process::address(line, key);
        Self {
            servers: address("servers="),
            clients: address("clients="),
            web: address("web="),
            child,
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(sent.unwrap().success());
    }

    /// What it answers to a GET: the status and the body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.web).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: gateway\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        (status, body)
    }

    /// The value of a metric, all its labels written out as Prometheus does.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200, "{text}");
        let line = text.lines().find(|line| {
            line.rsplit_once(' ')
                .is_some_and(|(found, _)| found == name)
        });
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    /// A sample that counts things.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.metric(name) as u64
    }

    /// Waits until something holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let give_up = Instant::now() + TIMEOUT;
        while !holds(self) {
            assert!(Instant::now() < give_up, "never: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message that arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) msg_type: u32,
    pub(crate) body: Vec<u8>,
}

/// One connection.
pub(crate) struct Talker {
    pub(crate) stream: TcpStream,
    decoder: FrameDecoder,
    arrived: std::collections::VecDeque<Arrived>,
}

impl Talker {
    pub(crate) fn connect(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    /// One over a stream that is connected.
    pub(crate) fn over(stream: TcpStream) -> Self {
        Self {
            stream,
            decoder: FrameDecoder::new(FrameLimits::default()),
            arrived: std::collections::VecDeque::new(),
        }
    }

    /// Connects and logs in.
    pub(crate) fn let_in(at: SocketAddr) -> Self {
        let mut talker = Self::connect(at);
        talker.send(0, 1, b"\x0a\x04test\x12\x04test");
        talker.until(1);
        talker
    }

    pub(crate) fn send(&mut self, channel_id: u32, msg_type: u32, body: &[u8]) {
        let mut builder = FrameBuilder::new();
        let message = MessagePack {
            channel_id,
            msg_type,
            body,
            ..MessagePack::default()
        };
        builder.push(&message).unwrap();
        self.stream.write_all(builder.finish().unwrap()).unwrap();
    }

    /// The next message; none once the gateway has closed.
    pub(crate) fn next(&mut self) -> Option<Arrived> {
        self.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut buffer = vec![0; 64 << 10];
        while self.arrived.is_empty() {
            let bytes = match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing comes: {error}"),
            };
            let mut rest = &buffer[..bytes];
            while let Some(frame) = self.decoder.next(&mut rest).unwrap() {
                let mut scratch = Vec::new();
                let packet = frame.packet_bytes(1 << 20, &mut scratch).unwrap();
                for message in Packet::new_checked(packet).unwrap().messages() {
                    self.arrived.push_back(Arrived {
                        msg_type: message.msg_type,
                        body: message.body.to_owned(),
                    });
                }
            }
        }
        self.arrived.pop_front()
    }

    /// The next message of a type; others are passed over.
    pub(crate) fn until(&mut self, msg_type: u32) -> Arrived {
        loop {
            let message = self.next().expect("the gateway has hung up");
            if message.msg_type == msg_type {
                return message;
            }
        }
    }
}
