//! The same conversations with a whole gateway over loopback: its threads, its
//! queues, TCP, WebSocket and KCP. Clients attack, logged in or not; a game
//! server and its players must be served meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use lagometer_gateway::server::Server;
use lagometer_gateway::server::config::FileConfig;
use lagometer_kcp::{Config, Engine};
use lagometer_protocol::messages::channeldpb::{AuthMessage, AuthResultMessage, MessagePack};
use lagometer_protocol::{FrameDecoder, FrameLimits, Packet};
use lagometer_units::Time;
use prost::Message as _;
use tungstenite::{Message, WebSocket};

use super::choices::Choices;
use super::clock::monotonic;
use super::hostile::NAMES;
use super::script::{Act, Form, Script, SentFrame};
use super::sentinels::{self, Sentinels};

/// After so long without an answer the gateway is taken to have stopped:
/// long, for the machine may be busy with something else.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Attackers at once.
const ATTACKERS: usize = 24;

/// How clients may come in.
const WIRES: [&str; 3] = ["tcp", "ws", "kcp"];

/// A well-behaved peer, over TCP.
struct Polite {
    stream: TcpStream,
    decoder: FrameDecoder,
    id: u32,
}

impl Polite {
    fn log_in(at: SocketAddr, name: &str) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        let mut peer = Self {
            stream,
            decoder: FrameDecoder::new(FrameLimits::default()),
            id: 0,
        };
        peer.say(login(name));
        let began = monotonic();
        while peer.id == 0 {
            assert!(monotonic().since(began) < TIMEOUT, "{name} is not let in");
            for message in peer.receive() {
                if message.msg_type == 1 && message.stub_id == 3 {
                    peer.id = AuthResultMessage::decode(&*message.msg_body)
                        .unwrap()
                        .conn_id;
                }
            }
        }
        peer
    }

    fn say(&mut self, message: MessagePack) {
        let frame = SentFrame {
            messages: vec![message],
            times: 1,
            form: Form::Plain,
        };
        self.stream
            .write_all(&frame.bytes())
            .expect("a sentinel is served");
    }

    /// What has come within a few milliseconds.
    fn receive(&mut self) -> Vec<MessagePack> {
        let mut buffer = vec![0; 64 << 10];
        let bytes = match self.stream.read(&mut buffer) {
            Ok(0) => panic!("a sentinel was cut off"),
            Ok(bytes) => &buffer[..bytes],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Vec::new();
            }
            Err(error) => panic!("a sentinel was cut off: {error}"),
        };
        let mut rest = bytes;
        let (mut messages, mut scratch) = (Vec::new(), Vec::new());
        while let Some(frame) = self.decoder.next(&mut rest).expect("frames") {
            let packet = frame.packet_bytes(1 << 20, &mut scratch).expect("a packet");
            let packet = Packet::new_checked(packet).expect("a packet");
            messages.extend(packet.messages().map(MessagePack::from));
        }
        messages
    }
}

/// An attacker's end of a connection; what it cannot write is lost.
enum Wire {
    Tcp(TcpStream),
    WebSocket(Box<WebSocket<TcpStream>>),
    Kcp(Box<(Engine, UdpSocket)>),
}

impl Wire {
    fn open(wire: &str, at: SocketAddr, number: u32) -> Option<Self> {
        if wire == "kcp" {
            let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
            socket.connect(at).ok()?;
            socket.set_nonblocking(true).ok()?;
            let engine = Engine::new(0x1000 + number, &Config::default());
            return Some(Self::Kcp(Box::new((engine, socket))));
        }
        let stream = TcpStream::connect(at).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        if wire == "tcp" {
            stream.set_nonblocking(true).ok()?;
            return Some(Self::Tcp(stream));
        }
        let (socket, _) = tungstenite::client("ws://localhost/", stream).ok()?;
        socket.get_ref().set_nonblocking(true).ok()?;
        Some(Self::WebSocket(Box::new(socket)))
    }

    fn write(&mut self, bytes: &[u8], piece: usize) {
        for piece in bytes.chunks(piece.min(bytes.len().max(1)).max(64)) {
            let _lost = match self {
                Self::Tcp(stream) => stream.write(piece).is_err(),
                Self::WebSocket(socket) => socket.send(Message::binary(piece.to_vec())).is_err(),
                Self::Kcp(kcp) => kcp.0.send(&piece[..piece.len().min(1300)]).is_err(),
            };
        }
        self.turn();
    }

    /// Moves what KCP has.
    fn turn(&mut self) {
        let Self::Kcp(kcp) = self else { return };
        let (engine, socket) = &mut **kcp;
        engine.update(monotonic().as_millis() as u32, |datagram| {
            let _ = socket.send(datagram);
        });
        let mut buffer = [0; 2048];
        while let Ok(bytes) = socket.recv(&mut buffer) {
            let _ = engine.input(monotonic(), &buffer[..bytes]);
        }
    }

    /// Reads what there is, up to a limit, and forgets it.
    fn read(&mut self) {
        self.turn();
        let mut buffer = vec![0; 64 << 10];
        for _ in 0..16 {
            let more = match self {
                Self::Tcp(stream) => stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0),
                Self::WebSocket(socket) => socket.read().is_ok(),
                Self::Kcp(kcp) => kcp.0.receive(&mut buffer).is_some(),
            };
            if !more {
                return;
            }
        }
    }
}

/// A gateway, the well-behaved, and who attacks.
struct Siege {
    server: Polite,
    readers: [Polite; 2],
    sentinels: Sentinels,
    alone: bool,
    attackers: Vec<(Wire, bool)>,
    came: u32,
    at: Vec<SocketAddr>,
    began: Time,
}

impl Siege {
    fn act(&mut self, act: &Act) {
        match act {
            Act::Come { mute, name, .. } => {
                self.came += 1;
                let wire = self.came as usize % WIRES.len();
                let opened = Wire::open(WIRES[wire], self.at[wire], self.came);
                if let Some(mut wire) = opened {
                    if !mute {
                        wire.write(&frame(login(NAMES[*name])), usize::MAX);
                    }
                    self.attackers.push((wire, false));
                }
                if self.attackers.len() > ATTACKERS {
                    self.attackers.remove(0);
                }
            }
            Act::Send { who, frames, piece } => {
                let bytes: Vec<u8> = frames.iter().flat_map(SentFrame::bytes).collect();
                if let Some((wire, _)) = self.attacker(*who) {
                    wire.write(&bytes, *piece);
                }
            }
            Act::Crush { attackers, frame } => {
                let bytes = frame.bytes();
                for (wire, _) in self.attackers.iter_mut().rev().take(*attackers) {
                    wire.write(&bytes, usize::MAX);
                }
            }
            Act::Go { who } if !self.attackers.is_empty() => {
                let who = who % self.attackers.len();
                self.attackers.remove(who);
            }
            Act::Stall { who, stalls } => {
                if let Some((_, stalled)) = self.attacker(*who) {
                    *stalled = *stalls;
                }
            }
            Act::Write => {
                let line = self.sentinels.write(self.now());
                self.server.say(line);
                self.until_served();
            }
            Act::Echo { reader } => {
                let question = self.sentinels.ask(self.now(), *reader);
                self.readers[*reader].say(question);
                self.until_served();
            }
            _ => {}
        }
        for (wire, stalls) in &mut self.attackers {
            if !*stalls {
                wire.read();
            }
        }
    }

    fn attacker(&mut self, who: usize) -> Option<&mut (Wire, bool)> {
        let count = self.attackers.len();
        self.attackers.get_mut(who % count.max(1))
    }

    fn now(&self) -> Time {
        Time::ZERO + monotonic().since(self.began)
    }

    /// The well-behaved have all that is due to them, however the attackers'
    /// KCP may pass the time.
    fn until_served(&mut self) {
        let began = monotonic();
        while !self.sentinels.are_served(self.alone) {
            assert!(
                monotonic().since(began) < TIMEOUT,
                "the well-behaved are not served"
            );
            let ids = [self.readers[0].id, self.readers[1].id];
            for message in self.server.receive() {
                if let Some(answer) = Sentinels::answer(&message, ids) {
                    self.server.say(answer);
                }
            }
            for index in 0..2 {
                for message in self.readers[index].receive() {
                    let on_message = self.sentinels.on_message(index, &message, self.alone);
                    assert_eq!(on_message, Ok(()));
                }
            }
            for (wire, _) in &mut self.attackers {
                wire.turn();
            }
        }
    }
}

fn frame(message: MessagePack) -> Vec<u8> {
    SentFrame {
        messages: vec![message],
        times: 1,
        form: Form::Plain,
    }
    .bytes()
}

fn login(name: &str) -> MessagePack {
    let message = AuthMessage {
        player_identifier_token: name.to_owned(),
        login_token: "secret".to_owned(),
    };
    sentinels::pack(0, 3, 1, &message)
}

/// One conversation with a gateway of so many threads.
fn lay_siege(seed: u64, threads: u16) {
    let mut script = Script::draw(&mut Choices::seeded(seed));
    script.settings.hostile_servers = false;
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("clients.json");
    let states = r#"{ "States": [ { "Name": "INIT", "MsgTypeWhitelist": "1" },
        { "Name": "OPEN", "MsgTypeWhitelist": "3-8, 15-65535" } ] }"#;
    std::fs::write(&machine, states).unwrap();
    let machine = if script.settings.clients_decide {
        format!("state_machine = \"{}\"\n", machine.display())
    } else {
        String::new()
    };
    let listen = WIRES
        .map(|wire| format!("\"{wire}://127.0.0.1:0\""))
        .join(", ");
    let text = format!(
        "dev = true\n[servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [clients]\nlisten = [{listen}]\nwait_for_owner = false\n{machine}\
         [web]\nenabled = false\n[threads]\nconnections = {threads}\npin = false\n"
    );
    let config = FileConfig::parse("test", &text)
        .unwrap()
        .resolve(2)
        .unwrap();
    let gateway = Server::start(config).unwrap();
    let mut server = Polite::log_in(gateway.servers()[0], "master");
    server.say(sentinels::take_global());
    server.say(sentinels::make_channel());
    let readers = ["reader-1", "reader-2"].map(|name| Polite::log_in(gateway.clients()[0], name));
    for reader in &readers {
        server.say(sentinels::subscribe(reader.id));
    }
    let mut siege = Siege {
        server,
        readers,
        sentinels: Sentinels::default(),
        alone: !script.settings.clients_decide,
        attackers: Vec::new(),
        came: 0,
        at: gateway.clients().to_vec(),
        began: monotonic(),
    };
    for act in &script.acts {
        siege.act(act);
    }
    siege.act(&Act::Write);
    siege.act(&Act::Echo { reader: 0 });
    drop(siege);
    gateway.handle().drain();
    gateway.join().expect("the gateway ends in order");
}

#[test]
fn a_gateway_under_attack_serves_the_well_behaved_whatever_its_threads() {
    for seed in 0..6 {
        for threads in [0, 1, 2] {
            let result = std::panic::catch_unwind(|| lay_siege(seed, threads));
            assert!(
                result.is_ok(),
                "seed {seed} with {threads} threads:\n{}",
                Script::draw(&mut Choices::seeded(seed))
            );
        }
    }
}
