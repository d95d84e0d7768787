//! The gateway's dissector on the traffic of a gateway that runs: two players of the client
//! library reach it through a relay that keeps what passes, and what Wireshark shows of
//! that is held against the protocol's own decoder.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_capture::{UdpHeaders, checksum, pcapng};
use lagometer_client::blocking::Client;
use lagometer_client::swarm::{Swarm, Wire};
use lagometer_client::{Event, Handler, Outbox, Settings, Stub};
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{FrameDecoder, FrameLimits, Packet};
use lagometer_transport::kcp::StreamProfile;
use prost::Message as _;

use super::{OF_MESSAGES, hex, joined, little};
use crate::{fields, gateway_process, tshark};

/// How long anything may take before the test fails: far longer than it does.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The gateway's port in captures; players have those from the next on.
const PORT: u16 = 12_108;

/// A gateway in a process of its own, killed when dropped.
struct Gateway {
    child: Child,
    servers: SocketAddr,
    clients: SocketAddr,
}

impl Gateway {
    fn start(scheme: &str) -> Self {
        let clients = format!("-ca={scheme}://127.0.0.1:0");
        let (child, line) = gateway_process::start(&[&clients]);
        let address = |key| gateway_process::address(&line, key);
        Self {
            servers: address("servers="),
            clients: address("clients="),
            child,
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What passed the relay: of which player, whether to the gateway, and the bytes.
type Passed = Arc<Mutex<Vec<(usize, bool, Vec<u8>)>>>;

/// Starts a relay of so many connections over TCP to `to`; where it listens.
fn relay_tcp(to: SocketAddr, players: usize, passed: &Passed) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let passed = Arc::clone(passed);
    thread::spawn(move || {
        for player in 0..players {
            let (client, _) = listener.accept().unwrap();
            let gateway = TcpStream::connect(to).unwrap();
            let ends = [(&client, &gateway, true), (&gateway, &client, false)];
            for (from, to, is_up) in ends {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let passed = Arc::clone(&passed);
                thread::spawn(move || {
                    let mut bytes = vec![0; 1400];
                    while let Ok(read @ 1..) = from.read(&mut bytes) {
                        let piece = bytes[..read].to_vec();
                        passed.lock().unwrap().push((player, is_up, piece));
                        if to.write_all(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    at
}

/// Starts a relay of one player's datagrams to `to`; where it listens.
fn relay_udp(to: SocketAddr, player: usize, passed: &Passed) -> SocketAddr {
    let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = front.local_addr().unwrap();
    let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    back.connect(to).unwrap();
    let passed = Arc::clone(passed);
    thread::spawn(move || {
        let mut bytes = vec![0; 2000];
        let (read, client) = front.recv_from(&mut bytes).unwrap();
        front.connect(client).unwrap();
        let keep = |is_up, datagram: &[u8]| {
            passed
                .lock()
                .unwrap()
                .push((player, is_up, datagram.to_vec()));
        };
        keep(true, &bytes[..read]);
        back.send(&bytes[..read]).unwrap();
        thread::scope(|scope| {
            for (from, to, is_up) in [(&front, &back, true), (&back, &front, false)] {
                let keep = &keep;
                scope.spawn(move || {
                    let mut bytes = vec![0; 2000];
                    while let Ok(read) = from.recv(&mut bytes) {
                        keep(is_up, &bytes[..read]);
                        if to.send(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                });
            }
        });
    });
    at
}

/// A player: how many updates it was sent, and what was answered last.
#[derive(Default)]
struct Player {
    updates: usize,
    answered: Option<Stub>,
}

impl Handler for Player {
    fn on_event(&mut self, _: &mut Outbox, event: Event<'_>) {
        match event {
            Event::Data { .. } => self.updates += 1,
            Event::Message { stub, .. } => self.answered = Some(stub),
            _ => {}
        }
    }
}

/// Has two players log in over these connections and read GLOBAL, which a server updates.
fn play(gateway: &Gateway, connections: [Wire; 2]) {
    let settings = Settings::default();
    let mut server = Client::connect(gateway.servers, settings, Schema::bundled()).unwrap();
    server.login("server", "secret", TIMEOUT).unwrap();
    let created = server.outbox().create_channel(CreateChannelMessage {
        channel_type: ChannelType::Global.into(),
        ..CreateChannelMessage::default()
    });
    server.answer(created.unwrap(), TIMEOUT).unwrap();
    let mut swarm = Swarm::new().unwrap();
    let players = connections.map(|wire| swarm.add(wire, settings, Player::default()).unwrap());
    for (number, &player) in players.iter().enumerate() {
        let (_, outbox) = swarm.member(player).unwrap();
        let name = format!("player {number}");
        outbox.authenticate(&name, "secret").unwrap();
        let every_20_ms = ChannelSubscriptionOptions {
            fan_out_interval_ms: Some(20),
            ..ChannelSubscriptionOptions::default()
        };
        outbox.subscribe(0, 0, Some(every_20_ms)).unwrap();
        swarm.flush(player);
    }
    // Long ones are compressed, and in several segments.
    for line in 1..=5 {
        let data = ChatChannelData {
            chat_messages: vec![ChatMessage {
                content: format!("good morning, {}", "and again ".repeat(300 * (line % 2))),
                ..ChatMessage::default()
            }],
        };
        let url = "type.googleapis.com/chatpb.ChatChannelData";
        let sent = server.outbox().update(0, url, &data.encode_to_vec());
        sent.unwrap();
        server.flush().unwrap();
        until(&mut swarm, |player| player.updates >= line);
        for player in players {
            let (_, outbox) = swarm.member(player).unwrap();
            outbox
                .message_owner(0, 100 + line as u32, b"thanks")
                .unwrap();
            swarm.flush(player);
        }
    }
    // What was said last has passed once it is answered.
    for player in players {
        let conn_id = swarm.conn_id(player).unwrap();
        let (_, outbox) = swarm.member(player).unwrap();
        let asked = Some(outbox.unsubscribe(0, conn_id).unwrap());
        swarm.flush(player);
        let give_up = Instant::now() + TIMEOUT;
        while swarm.member(player).unwrap().0.answered != asked {
            assert!(
                Instant::now() < give_up,
                "the last question is not answered"
            );
            swarm.poll(Duration::from_millis(20)).unwrap();
        }
    }
}

/// Polls until something holds of all players.
fn until(swarm: &mut Swarm<Player>, holds: impl Fn(&Player) -> bool) {
    let give_up = Instant::now() + TIMEOUT;
    while !swarm.members().all(|(_, player)| holds(player)) {
        assert!(Instant::now() < give_up, "it does not come");
        swarm.poll(Duration::from_millis(20)).unwrap();
    }
}

/// The addresses of a player and the gateway in a capture.
fn ends(player: usize, is_up: bool) -> [SocketAddr; 2] {
    let client = SocketAddr::from(([10, 77, 0, 1], PORT + 1 + player as u16));
    let gateway = SocketAddr::from(([10, 77, 0, 2], PORT));
    if is_up {
        [client, gateway]
    } else {
        [gateway, client]
    }
}

/// A segment with these places in both streams.
fn segment(player: usize, is_up: bool, places: [u32; 2], payload: &[u8]) -> Vec<u8> {
    let [from, to] = ends(player, is_up);
    let mut packet = vec![0; 40];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 6]);
    for (at, end) in [(12, from), (16, to)] {
        let SocketAddr::V4(end) = end else {
            unreachable!("addresses are of version 4")
        };
        packet[at..at + 4].copy_from_slice(&end.ip().octets());
    }
    let sum = checksum(&[&packet[..20]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..22].copy_from_slice(&from.port().to_be_bytes());
    packet[22..24].copy_from_slice(&to.port().to_be_bytes());
    for (at, place) in [24, 28].into_iter().zip(places) {
        packet[at..at + 4].copy_from_slice(&place.to_be_bytes());
    }
    packet[32..36].copy_from_slice(&[0x50, 0x18, 0xff, 0xff]);
    packet.extend_from_slice(payload);
    packet
}

/// Writes what passed as a capture.
fn write(path: &Path, passed: &[(usize, bool, Vec<u8>)], is_tcp: bool) {
    let mut file = Vec::new();
    pcapng::beginning(&mut file, ["relay"].into_iter());
    let mut places: BTreeMap<(usize, bool), u32> = BTreeMap::new();
    for (number, (player, is_up, bytes)) in passed.iter().enumerate() {
        let packet = if is_tcp {
            let back = *places.get(&(*player, !is_up)).unwrap_or(&1);
            let place = places.entry((*player, *is_up)).or_insert(1);
            let packet = segment(*player, *is_up, [*place, back], bytes);
            *place += bytes.len() as u32;
            packet
        } else {
            let [from, to] = ends(*player, *is_up);
            UdpHeaders::new(from, to).packet(bytes)
        };
        let at = number as u64 * 1_000_000;
        let interface = pcapng::interface_of(0, *is_up);
        pcapng::packet(&mut file, interface, at, &packet, format_args!(""));
    }
    std::fs::write(path, file).unwrap();
}

/// The stream in a player's datagrams one way: the payloads of KCP's segments in order.
fn stream_of_kcp<'a>(datagrams: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    const PUSH: u8 = 81;
    let mut payloads = BTreeMap::new();
    for mut rest in datagrams {
        while rest.len() >= 24 {
            let length = little(rest, 20, 4) as usize;
            if rest[4] == PUSH {
                payloads.insert(little(rest, 12, 4), &rest[24..24 + length]);
            }
            rest = &rest[24 + length..];
        }
    }
    payloads.into_values().flatten().copied().collect()
}

/// What the decoder of the protocol makes of a stream, as [`joined`] has it.
fn decoded(stream: &[u8]) -> ([Vec<u64>; 4], String) {
    let mut decoder = FrameDecoder::new(FrameLimits::default());
    let mut columns: [Vec<u64>; 4] = Default::default();
    let mut bodies = String::new();
    let mut rest = stream;
    while let Some(frame) = decoder.next(&mut rest).unwrap() {
        let mut scratch = Vec::new();
        let packet = frame.packet_bytes(1 << 20, &mut scratch).unwrap();
        for message in Packet::new_checked(packet).unwrap().messages() {
            let numbers = [
                message.channel_id,
                message.broadcast,
                message.stub_id,
                message.msg_type,
            ];
            for (column, number) in columns.iter_mut().zip(numbers) {
                column.push(u64::from(number));
            }
            bodies.extend(message.body.iter().map(|&byte| hex(byte)));
        }
    }
    (columns, bodies)
}

#[test]
fn what_a_running_gateway_and_its_players_say_is_read_over_tcp_and_kcp() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for scheme in ["tcp", "kcp"] {
        let gateway = Gateway::start(scheme);
        let passed = Passed::default();
        let connections = if scheme == "tcp" {
            let at = relay_tcp(gateway.clients, 2, &passed);
            [(); 2].map(|()| Wire::Tcp(TcpStream::connect(at).unwrap()))
        } else {
            [0, 1].map(|player| {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                let at = relay_udp(gateway.clients, player, &passed);
                socket.connect(at).unwrap();
                Wire::Kcp(socket, StreamProfile::KcpGo)
            })
        };
        play(&gateway, connections);
        drop(gateway);
        let passed = passed.lock().unwrap().clone();
        let path = folder.path().join("gateway.pcapng");
        write(&path, &passed, scheme == "tcp");
        let below = if scheme == "tcp" { "tcp" } else { "udp" };
        for (player, is_up) in [(0, true), (0, false), (1, true), (1, false)] {
            let pieces = passed.iter().filter(|it| (it.0, it.1) == (player, is_up));
            let pieces = pieces.map(|(_, _, bytes)| &bytes[..]);
            let stream = if scheme == "tcp" {
                pieces.collect::<Vec<_>>().concat()
            } else {
                stream_of_kcp(pieces)
            };
            let expected = decoded(&stream);
            // The login, the subscription, five words of thanks and the last question; as
            // many answers, and five updates.
            let messages = expected.0[3].len();
            assert!(messages >= 8, "{scheme}: {messages} messages");
            let [from, to] = ends(player, is_up).map(|end| end.port());
            let filter =
                format!("channeld.type && {below}.srcport == {from} && {below}.dstport == {to}");
            let rows = fields(&path, &filter, &OF_MESSAGES);
            assert_eq!(joined(&rows), expected, "{scheme} {player} {is_up}");
        }
    }
}
