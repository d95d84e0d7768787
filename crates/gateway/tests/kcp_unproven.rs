//! What those can do over KCP who may not be where they say: forge addresses,
//! have others sent more than they sent, end others' sessions, vanish.
//!
//! Everything stays on loopback: forged addresses are sockets of 127.0.0.0/8.
//! What a gateway sends to one of them after its socket is gone goes to whoever
//! has that port then. So that this is no other test's gateway, each has an
//! address of its own from which nothing is forged.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_gateway::server::Server;
use lagometer_gateway::server::config::FileConfig;
use lagometer_kcp::{Config, Engine};
use lagometer_protocol::{FrameBuilder, MessagePack};
use lagometer_transport::kcp::{AddressProof, Prover};
use lagometer_units::Time;

/// For what must happen.
const TIMEOUT: Duration = Duration::from_secs(30);
const LOGIN: &[u8] = b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";
const FORGED: u32 = 100_000;

fn start(limits: &str) -> Server {
    start_with("dev = true", limits)
}

fn start_with(first: &str, limits: &str) -> Server {
    static GATEWAYS: AtomicU8 = AtomicU8::new(1);
    let address = Ipv4Addr::new(127, 9, 0, GATEWAYS.fetch_add(1, Ordering::Relaxed));
    let text = format!(
        "{first}\n\
         [servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [clients]\nlisten = [\"kcp://{address}:0\"]\nwait_for_owner = false\n\
         [web]\nlisten = \"127.0.0.1:0\"\n[threads]\nconnections = 0\n\
         [limits]\n{limits}\n"
    );
    let config = FileConfig::parse("test", &text).unwrap();
    Server::start(config.resolve(1).unwrap()).unwrap()
}

fn clients_of(server: &Server) -> SocketAddr {
    server.clients()[0]
}

fn end(server: Server) {
    server.handle().drain();
    server.join().unwrap();
}

/// How often something has happened, as the metrics report it.
fn events(server: &Server, name: &str) -> u64 {
    let label = format!("event=\"{name}\"");
    counted(server, "gateway_kcp_events_total", &label)
}

/// What the metrics report under a name and a label; they may be refused to who
/// asks too often.
fn counted(server: &Server, name: &str, label: &str) -> u64 {
    let give_up = Instant::now() + TIMEOUT;
    loop {
        if let Some(count) = scrape(server, name, label) {
            return count;
        }
        assert!(Instant::now() < give_up, "{name} of {label} is not counted");
    }
}

fn scrape(server: &Server, name: &str, label: &str) -> Option<u64> {
    let mut web = TcpStream::connect(server.web().unwrap()).ok()?;
    web.set_read_timeout(Some(TIMEOUT)).unwrap();
    web.write_all(b"GET /metrics HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
        .ok()?;
    let mut page = String::new();
    web.read_to_string(&mut page).ok()?;
    let is_it = |line: &&str| line.starts_with(name) && line.contains(label);
    let line = page.lines().find(is_it)?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A client as kcp-go is.
struct Kcp {
    engine: Engine,
    socket: UdpSocket,
    begun: Instant,
    arrived: Vec<u8>,
    /// Its number at the gateway, as it is encoded.
    conn_id: Vec<u8>,
}

impl Kcp {
    fn new(conversation: u32, socket: UdpSocket) -> Self {
        socket
            .set_read_timeout(Some(Duration::from_millis(2)))
            .unwrap();
        Self {
            engine: Engine::new(conversation, &Config::kcp_go()),
            socket,
            begun: Instant::now(),
            arrived: Vec::new(),
            conn_id: Vec::new(),
        }
    }

    fn to(gateway: SocketAddr, conversation: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(gateway).unwrap();
        Self::new(conversation, socket)
    }

    fn pump(&mut self) {
        let elapsed = self.begun.elapsed();
        let socket = &self.socket;
        self.engine.update(elapsed.as_millis() as u32, |datagram| {
            // The gateway's port may have no room just now.
            let _ = socket.send(datagram);
        });
        let mut buffer = [0; 2048];
        while let Ok(bytes) = self.socket.recv(&mut buffer) {
            let now = Time::from_nanos(elapsed.as_nanos() as u64);
            // Other conversations of the socket are not this one's.
            let _ = self.engine.input(now, &buffer[..bytes]);
        }
        let mut message = Vec::new();
        while self.engine.receive(&mut message).is_some() {
            self.arrived.extend_from_slice(&message);
        }
    }

    /// Pumps until that holds.
    fn pump_until(&mut self, mut is_so: impl FnMut(&Self) -> bool, what: &str) {
        let give_up = Instant::now() + TIMEOUT;
        while !is_so(self) {
            assert!(Instant::now() < give_up, "{what}");
            self.pump();
        }
    }

    /// Logs in, and has shown then that it receives what it is sent.
    fn log_in(&mut self) {
        self.log_in_with(LOGIN);
    }

    /// … with a login of the test's own.
    fn log_in_with(&mut self, login: &[u8]) {
        self.engine.send(login).unwrap();
        self.pump_until(|it| !it.arrived.is_empty(), "the login is not answered");
        assert_eq!(&self.arrived[..2], b"CH");
        // The body of the answer: its length, and field 2.
        let body = self
            .arrived
            .windows(3)
            .position(|it| it[0] == 0x2a && it[2] == 0x10);
        let at = body.expect("an AuthResult");
        let end = at + 2 + usize::from(self.arrived[at + 1]);
        self.conn_id = self.arrived[at + 3..end].to_vec();
        // The acknowledgement of the answer leaves with the next flush.
        self.pump_until(|it| !it.engine.owes_acknowledgement(), "nothing is flushed");
    }

    /// A game server's broadcast comes.
    fn receives(&mut self, server: &Server) {
        self.arrived.clear();
        let mut game = TcpStream::connect(server.servers()[0]).unwrap();
        game.set_read_timeout(Some(TIMEOUT)).unwrap();
        game.write_all(LOGIN).unwrap();
        let mut answer = [0; 5];
        game.read_exact(&mut answer).unwrap();
        let mut builder = FrameBuilder::new();
        let body = [&[0x08], &self.conn_id[..], &[0x12, 3], b"abc"].concat();
        let message = MessagePack {
            broadcast: 1,
            msg_type: 100,
            body: &body,
            ..MessagePack::default()
        };
        builder.push(&message).unwrap();
        game.write_all(builder.finish().unwrap()).unwrap();
        self.pump_until(|it| it.arrived.ends_with(b"abc"), "the session is over");
    }
}

/// A datagram with one data segment.
fn first_segment(conversation: u32, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; 24];
    datagram[..4].copy_from_slice(&conversation.to_le_bytes());
    datagram[4] = 81;
    datagram[6] = 32;
    datagram[20] = payload.len() as u8;
    datagram.extend_from_slice(payload);
    datagram
}

/// Datagrams of as many addresses, every tenth with a login.
fn forge(gateway: SocketAddr) {
    for number in 0..FORGED {
        let [_, a, b, c] = number.to_be_bytes();
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::new(127, 1 + a, b, c), 0)) else {
            continue;
        };
        let payload = if number % 10 == 0 { LOGIN } else { &[] };
        let _ = socket.send_to(&first_segment(number, payload), gateway);
    }
}

#[test]
fn a_flood_from_forged_addresses_keeps_neither_players_nor_game_servers_out() {
    let server = start("connections = 100");
    let gateway = clients_of(&server);
    thread::scope(|scope| {
        let flood = scope.spawn(|| forge(gateway));
        let mut inside = Vec::new();
        while !flood.is_finished() || inside.len() < 5 {
            let mut player = Kcp::to(gateway, 0x1000_0000 + inside.len() as u32);
            player.log_in();
            if inside.len() < 50 {
                inside.push(player);
            }
        }
        inside[0].receives(&server);
    });
    // 24 bytes that say nothing cost nothing; a login has a place in the table.
    assert!(events(&server, "ignored") > u64::from(FORGED) / 2);
    assert!(events(&server, "opened") > 5);
    end(server);
}

#[test]
fn an_address_that_answers_nothing_is_sent_three_times_what_came_from_it_at_most() {
    let server = start("");
    let gateway = clients_of(&server);
    let victim = UdpSocket::bind("127.0.0.1:0").unwrap();
    victim
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let request = first_segment(7, LOGIN);
    victim.send_to(&request, gateway).unwrap();
    let (mut received, mut buffer) = (0, [0; 2048]);
    // Until the gateway would have sent more, and did not.
    let give_up = Instant::now() + TIMEOUT;
    while events(&server, "held_back") == 0 {
        assert!(Instant::now() < give_up, "nothing was held back");
        while let Ok(bytes) = victim.recv(&mut buffer) {
            received += bytes;
        }
    }
    while let Ok(bytes) = victim.recv(&mut buffer) {
        received += bytes;
    }
    assert!(received > 0, "the login is answered");
    assert!(
        received <= 3 * request.len(),
        "{received} bytes for {}",
        request.len()
    );
    end(server);
}

#[test]
fn segments_that_wait_for_the_first_cost_no_more_than_a_login_may() {
    let server = start("");
    let unproven = UdpSocket::bind("127.0.0.1:0").unwrap();
    unproven.connect(clients_of(&server)).unwrap();
    let over = || {
        let label = "peer=\"client\",budget=\"login_bytes\"";
        scrape(&server, "gateway_over_budget_total", label).unwrap_or(0)
    };
    // A window of segments of which the first never comes, again and again.
    let give_up = Instant::now() + TIMEOUT;
    while over() == 0 {
        assert!(Instant::now() < give_up, "everything is taken");
        for sequence in 1..32 {
            let mut datagram = first_segment(7, &[0; 200]);
            datagram[12] = sequence;
            let _ = unproven.send(&datagram);
        }
    }
    end(server);
}

#[test]
fn a_datagram_longer_than_any_of_kcp_go_opens_no_conversation() {
    let server = start("");
    let unproven = UdpSocket::bind("127.0.0.1:0").unwrap();
    unproven.connect(clients_of(&server)).unwrap();
    let payload_bytes = 1501 - 24_u16;
    let mut long = first_segment(8, &[]);
    long[20..22].copy_from_slice(&payload_bytes.to_le_bytes());
    long.resize(1501, 0);
    let give_up = Instant::now() + TIMEOUT;
    while events(&server, "ignored") == 0 {
        assert!(Instant::now() < give_up, "it is taken in");
        unproven.send(&long).unwrap();
    }
    assert_eq!(events(&server, "opened"), 0);
    end(server);
}

#[test]
fn logins_that_forged_addresses_begin_and_do_not_end_bar_no_address() {
    let auth = "anti_ddos = true\nlogin_within = \"1 s\"\nmax_failed = 2";
    let server = start_with(&format!("dev = true\n[auth]\n{auth}"), "");
    let gateway = clients_of(&server);
    // Whoever is at 127.0.0.1 has not sent these.
    for conversation in 10..20 {
        let forged = UdpSocket::bind("127.0.0.1:0").unwrap();
        let half = first_segment(conversation, &LOGIN[..7]);
        forged.send_to(&half, gateway).unwrap();
    }
    let give_up = Instant::now() + TIMEOUT;
    let opened = || counted(&server, "gateway_connections_opened_total", "CLIENT");
    let open = || counted(&server, "connection_num", "CLIENT");
    while opened() < 10 || open() > 0 {
        assert!(Instant::now() < give_up, "they are not closed");
    }
    // What this sends goes to the channels behind what the timeouts sent.
    Kcp::to(gateway, 1).log_in();
    assert_eq!(counted(&server, "gateway_logins_refused_total", ""), 0);
    end(server);
}

/// The acknowledgement of the first data segment among a gateway's segments.
fn acknowledgement(segments: &[u8]) -> Option<Vec<u8>> {
    // Before it stand acknowledgements at most, which are headers alone.
    let mut segment = segments.chunks_exact(24).find(|it| it[4] == 81)?.to_vec();
    segment[4] = 82;
    segment[20..].fill(0);
    Some(segment)
}

/// Else what it does is held against whoever is at the address it forged.
#[test]
fn what_is_sent_after_a_login_waits_until_the_answer_to_it_is_acknowledged() {
    const USER_MESSAGE: &[u8] = b"CH\0\x04\0\x0a\x02\x20\x64";
    let server = start("");
    let taken_in = || counted(&server, "messages_in{", "connType=\"CLIENT\"");
    let unproven = Kcp::to(clients_of(&server), 7).socket;
    unproven.set_read_timeout(Some(TIMEOUT)).unwrap();
    unproven.send(&first_segment(7, LOGIN)).unwrap();
    let mut buffer = [0; 2048];
    let mut answered = || loop {
        let bytes = unproven.recv(&mut buffer).expect("no answer");
        if let Some(found) = acknowledgement(&buffer[..bytes]) {
            break found;
        }
    };
    answered(); // And what acknowledges it is lost, save for its number.
    let mut says = first_segment(7, USER_MESSAGE);
    (says[12], says[16]) = (1, 1);
    unproven.send(&says).unwrap();
    // What this sends comes behind it.
    Kcp::to(clients_of(&server), 1).log_in();
    assert_eq!(taken_in(), 2, "two logins");
    unproven.send(&answered()).unwrap();
    let give_up = Instant::now() + TIMEOUT;
    while taken_in() < 3 {
        assert!(Instant::now() < give_up, "it is not read");
    }
    end(server);
}

#[test]
fn wrong_tokens_from_forged_addresses_do_not_bar_a_name_there() {
    let data = tempfile::tempdir().unwrap();
    let secret = data.path().join("secret");
    std::fs::write(&secret, "tokenful").unwrap();
    let auth = format!(
        "[auth]\nprovider = \"shared-token\"\nsecret_file = \"{}\"\n\
         anti_ddos = true\nmax_failed = 2",
        secret.display()
    );
    let server = start_with(&auth, "");
    let gateway = clients_of(&server);
    let right = b"CH\0\x16\0\x0a\x14\x20\x01\x2a\x10\x0a\x04test\x12\x08tokenful";
    let mut wrong = right.to_vec();
    *wrong.last_mut().unwrap() = b'!';
    for conversation in 10..15 {
        let forged = UdpSocket::bind("127.0.0.1:0").unwrap();
        let login = first_segment(conversation, &wrong);
        forged.send_to(&login, gateway).unwrap();
    }
    let give_up = Instant::now() + TIMEOUT;
    while counted(&server, "gateway_logins_refused_total", "") < 5 {
        assert!(Instant::now() < give_up, "they are not refused");
    }
    // The same name, at the same address, with the right token.
    Kcp::to(gateway, 1).log_in_with(right);
    assert_eq!(counted(&server, "gateway_logins_refused_total", ""), 5);
    end(server);
}

#[test]
fn a_forged_datagram_with_another_number_does_not_end_a_session() {
    let server = start("");
    let mut player = Kcp::to(clients_of(&server), 1);
    player.log_in();
    for payload in [&[][..], LOGIN] {
        player.socket.send(&first_segment(2, payload)).unwrap();
    }
    player.receives(&server);
    assert_eq!(events(&server, "replaced"), 0);

    // One that logs in and receives the answer is the same peer, begun anew.
    let socket = player.socket.try_clone().unwrap();
    let mut again = Kcp::new(3, socket);
    again.log_in();
    again.pump_until(|_| events(&server, "replaced") == 1, "the old one stays");
    end(server);
}

#[test]
fn a_peer_that_vanishes_is_noticed_and_an_idle_one_is_left_alone() {
    let server = start("kcp_silent_at_most = \"1 s\"");
    let gateway = clients_of(&server);
    let mut idle = Kcp::to(gateway, 1);
    idle.log_in();
    let mut vanishing = Kcp::to(gateway, 2);
    vanishing.log_in();
    idle.pump_until(|_| events(&server, "vanished") == 1, "it is not noticed");
    // It says nothing by itself, but answers.
    idle.receives(&server);
    assert!(events(&server, "probed") > 0);
    end(server);
}

#[test]
fn a_hello_costs_the_gateway_nothing_and_a_returned_cookie_proves_the_address() {
    let server = start("");
    let gateway = clients_of(&server);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(gateway).unwrap();
    let begun = Instant::now();
    let mut prover = Prover::new(9, true, Time::ZERO);
    let mut buffer = [0; 2048];
    socket
        .set_read_timeout(Some(Duration::from_millis(2)))
        .unwrap();
    while prover.next_deadline().is_some() {
        let now = Time::from_nanos(begun.elapsed().as_nanos() as u64);
        assert_eq!(events(&server, "opened"), 0);
        prover.tick(now, &mut |bytes| {
            socket.send(bytes).unwrap();
        });
        if let Ok(bytes) = socket.recv(&mut buffer) {
            prover.input(&buffer[..bytes], &mut |bytes| {
                socket.send(bytes).unwrap();
            });
        }
    }
    assert!(begun.elapsed() < TIMEOUT);
    let mut player = Kcp::new(9, socket);
    player.log_in();
    // However often the hello was sent, the cookie comes back once.
    assert_eq!(events(&server, "proven_by_cookie"), 1);
    assert_eq!(events(&server, "opened"), 1);

    // Another's cookie, or none, is worth nothing.
    let thief = UdpSocket::bind("127.0.0.1:0").unwrap();
    let answer = AddressProof::Answer {
        conversation: 9,
        cookie: [0; 12],
    };
    thief.send_to(&answer.to_bytes(), gateway).unwrap();
    player.pump_until(
        |_| events(&server, "bad_cookie") == 1,
        "it was not looked at",
    );
    assert_eq!(events(&server, "opened"), 1);
    end(server);
}

#[test]
fn a_player_that_floods_its_conversation_with_datagrams_is_not_answered_to_all_of_them() {
    let server = start("messages_per_second = 10");
    let mut player = Kcp::to(clients_of(&server), 7);
    player.log_in();
    let over = || {
        let label = "peer=\"client\",budget=\"messages\"";
        counted(&server, "gateway_over_budget_total", label)
    };
    assert_eq!(over(), 0);
    // Nothing is in them but the question how much room there is.
    let mut ask = first_segment(7, b"");
    ask[4] = 83;
    let give_up = Instant::now() + TIMEOUT;
    while over() == 0 {
        assert!(Instant::now() < give_up, "all are answered");
        for _ in 0..500 {
            let _ = player.socket.send(&ask);
        }
    }
    // What it sends is read as before once it has stopped.
    player.receives(&server);
    end(server);
}
