//! What hostile peers do to a gateway, over loopback, and that nobody else
//! suffers for it. Each test is an attack that once worked.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lagometer_protocol::{Compression, MessagePack, ServerForward, frame_header};

#[path = "attacks/rates.rs"]
mod rates;
#[path = "attacks/support.rs"]
mod support;
mod tls_client;

use support::{
    AUTH, LIST_CHANNEL, LOGIN, Peer, THREADS, TIMEOUT, USER_MESSAGE, bomb, frame, frame_of, get,
    metric, start, start_as, stop,
};

/// Thousands of logins at once: what they lead to fills the queue to the connection
/// loop, and the channel loop went to sleep before a full inbox.
#[test]
fn a_flood_of_logins_does_not_put_the_channel_loop_to_sleep_for_good() {
    let data = tempfile::tempdir().unwrap();
    let secret = data.path().join("secret");
    std::fs::write(&secret, "tokenful").unwrap();
    let sections = format!(
        "[auth]\nprovider = \"shared-token\"\nsecret_file = \"{}\"\n\
         [limits]\nlogin_messages = 10000000\nlogin_attempts = 10000000\nlogin_bytes = \"1000 MiB\"\n\
         login_work = \"10min\"\n\
         [threads]\nconnections = 1\npin = false\nqueue = 1\n",
        secret.display()
    );
    let server = start_as("", &["tcp"], &sections);
    // It receives notice of each who is let in: two answers to a login.
    let _game = Peer::game_server(server.servers()[0]);
    let mut attacker = Peer::connect(server.clients()[0]);
    let login = |body| MessagePack {
        msg_type: AUTH,
        body,
        ..MessagePack::default()
    };
    let right = frame_of(&[login(b"\x0a\x04test\x12\x08tokenful")]);
    // Frames that may come in pieces before a login, each with more than the
    // queues hold.
    let flood = frame_of(&vec![login(b"\x0a\x04test\x12\x04test"); 700]).repeat(3);
    for _ in 0..10 {
        attacker.stream.write_all(&flood).unwrap();
        // Each time others come, all at once, and are answered.
        let mut players: Vec<Peer> = (0..40)
            .map(|_| Peer::connect(server.clients()[0]))
            .collect();
        for player in &mut players {
            player.stream.write_all(&right).unwrap();
        }
        for player in &mut players {
            assert_eq!(player.next().expect("hung up").0, AUTH);
            player.stream.shutdown(Shutdown::Write).unwrap();
        }
        for player in &mut players {
            assert_eq!(player.next(), None);
        }
    }
    let page = get(&server, "/healthz");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    stop(server);
}

/// The same without logins: more answers than the queues hold, and nobody else
/// who would wake the loops.
#[test]
fn a_flood_of_requests_is_answered_to_the_end_though_nothing_else_happens() {
    let server = start("[threads]\nconnections = 1\npin = false\nqueue = 4\n");
    let mut asking = Peer::login(server.servers()[0]);
    let question = MessagePack {
        msg_type: LIST_CHANNEL,
        ..MessagePack::default()
    };
    let flood = frame_of(&[question; 10]).repeat(100);
    asking.stream.write_all(&flood).unwrap();
    let mut answers = 0;
    while answers < 1000 {
        answers += u32::from(asking.next().expect("hung up").0 == LIST_CHANNEL);
    }
    stop(server);
}

/// 49 kB of snappy that unpack to half a million messages, before any login.
#[test]
fn a_frame_that_unpacks_to_half_a_million_messages_costs_its_sender_the_connection() {
    let server = start(THREADS);
    let mut attacker = Peer::connect(server.clients()[0]);
    attacker
        .stream
        .write_all(&bomb(520_000, &[0x0a, 0x00]))
        .unwrap();
    assert_eq!(attacker.next(), None);
    // Short enough to be unpacked, too many all the same.
    let mut attacker = Peer::connect(server.clients()[0]);
    let _ = attacker.stream.write_all(&bomb(60_000, &[0x0a, 0x00]));
    assert_eq!(attacker.next(), None);
    let over = metric(
        &server,
        "gateway_over_budget_total{peer=\"client\",budget=\"login_messages\"}",
    );
    assert!(over >= 1.0, "{over}");
    // And after the login.
    let mut attacker = Peer::login(server.clients()[0]);
    let _ = attacker.stream.write_all(&bomb(520_000, &[0x0a, 0x00]));
    assert_eq!(attacker.next(), None);
    Peer::login(server.clients()[0]);
    stop(server);
}

/// Bytes, messages and logins before a login have an end.
#[test]
fn a_connection_that_has_not_logged_in_is_closed_once_it_costs_too_much() {
    let data = tempfile::tempdir().unwrap();
    let secret = data.path().join("secret");
    std::fs::write(&secret, "a secret word").unwrap();
    let sections = format!(
        "[auth]\nprovider = \"shared-token\"\nsecret_file = \"{}\"\n[limits]\nlogin_bytes = \"8 KiB\"\nlogin_token = \"4 KiB\"\n{THREADS}",
        secret.display()
    );
    let server = start_as("", &["tcp"], &sections);
    for (budget, flood) in [
        ("login_bytes", frame(USER_MESSAGE, &[7; 2000])),
        ("login_attempts", LOGIN.to_vec()),
    ] {
        let mut attacker = Peer::connect(server.clients()[0]);
        for _ in 0..20 {
            let _ = attacker.stream.write_all(&flood);
            // One login at a time is decided.
            if budget == "login_attempts" && attacker.next().is_none() {
                break;
            }
        }
        while attacker.next().is_some() {}
        let line = format!("gateway_over_budget_total{{peer=\"client\",budget=\"{budget}\"}}");
        assert!(metric(&server, &line) >= 1.0, "{budget}");
    }
    stop(server);
}

/// A frame that is announced and never ends was kept up to `login_bytes`, for
/// each of as many connections as there are places before the login.
#[test]
fn an_unfinished_frame_before_the_login_is_no_longer_than_a_login() {
    let server = start(THREADS);
    let mut attacker = Peer::connect(server.clients()[0]);
    let header = frame_header(60_000, Compression::None);
    let _ = attacker.stream.write_all(&header);
    let _ = attacker.stream.write_all(&vec![7; 20 << 10]);
    assert!(attacker.next().is_none());
    let line = "gateway_over_budget_total{peer=\"client\",budget=\"login_bytes\"}";
    assert!(metric(&server, line) >= 1.0);
    stop(server);

    // A token that is allowed to be longer may come in pieces.
    let server = start(&format!("[limits]\nlogin_token = \"40 KiB\"\n{THREADS}"));
    let mut client = Peer::connect(server.clients()[0]);
    let token = [
        &[0x0a, 4],
        &b"test"[..],
        &[0x12, 0x80, 0xc0, 0x02],
        &vec![b't'; 40 << 10],
    ]
    .concat();
    let login = frame(AUTH, &token);
    let (beginning, end) = login.split_at(login.len() - 1);
    client.stream.write_all(beginning).unwrap();
    // Both have been read before the last byte comes.
    let turns = "gateway_loop_turns_total{loop=\"connections-0\"}";
    let before = metric(&server, turns);
    while metric(&server, turns) < before + 8.0 {}
    client.stream.write_all(end).unwrap();
    assert_eq!(client.next().unwrap().0, AUTH);
    stop(server);
}

/// Ends a flood when it is dropped, be it by a test that fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Pings and empty messages have no bytes, and so never filled a turn.
#[test]
fn a_flood_of_empty_websocket_messages_and_pings_leaves_a_thread_to_others() {
    // Neither what a login may cost nor a client's rate is to end the flood.
    let rates = "[limits]\nmessages_per_second = 1000000000\nbytes_per_second = \"10000 MiB\"\n";
    let server = start_as("dev = true\n", &["ws", "tcp"], &format!("{rates}{THREADS}"));
    let (ws, tcp) = (server.clients()[0], server.clients()[1]);
    let (begun, is_over) = (Barrier::new(3), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        // A ping and a binary message, both empty and masked with zeros.
        for frame in [[0x89, 0x80, 0, 0, 0, 0], [0x82, 0x80, 0, 0, 0, 0]] {
            let (begun, is_over) = (&begun, &is_over);
            let mut stream = rates::websocket(ws).get_ref().try_clone().unwrap();
            let pause = Some(Duration::from_millis(50));
            stream.set_write_timeout(pause).unwrap();
            // Many at once: faster than they are read one by one.
            let flood = frame.repeat(10_000);
            scope.spawn(move || {
                let mut sent_bytes = stream.write(&flood).unwrap();
                begun.wait();
                while !is_over.load(Ordering::Relaxed) {
                    match stream.write(&flood[sent_bytes % flood.len()..]) {
                        Ok(bytes) => sent_bytes += bytes,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(_) => break,
                    }
                }
            });
        }
        begun.wait();
        for _ in 0..20 {
            Peer::login(tcp);
        }
        let page = get(&server, "/healthz");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    });
    stop(server);
}

/// A client sends as fast as it can to the owner of GLOBAL, which reads nothing
/// for a while.
#[test]
fn a_client_that_floods_its_server_is_read_more_slowly_and_the_server_stays() {
    let server = start(&format!(
        "[limits]\nmessages_per_second = 10000000\nbytes_per_second = \"10000 MiB\"\n{THREADS}"
    ));
    let mut game = Peer::game_server(server.servers()[0]);
    let mut attacker = Peer::login(server.clients()[0]);
    let mut bystander = Peer::login(server.clients()[0]);
    // As much as the gateway takes, which has to be less than the server is
    // closed for; on the way there its own sockets are filled.
    attacker
        .stream
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let flood = frame(USER_MESSAGE, &[7; 1000]);
    let (mut sent_bytes, most_bytes) = (0, 256 << 20);
    while sent_bytes < most_bytes {
        match attacker.stream.write(&flood[sent_bytes % flood.len()..]) {
            Ok(bytes) => sent_bytes += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent_bytes < most_bytes, "it was read as fast as it sent");
    // The bystander has said nothing to the server, and is answered.
    bystander.send(USER_MESSAGE, b"I am here");
    // The server reads on, and gets all that was sent, and the bystander's.
    let (mut flood_seen, mut bystander_seen) = (0, false);
    while flood_seen < sent_bytes / flood.len() || !bystander_seen {
        let (msg_type, body) = game.next().expect("the server was cut off");
        if msg_type == USER_MESSAGE {
            match ServerForward::parse(&body).unwrap().payload {
                b"I am here" => bystander_seen = true,
                _ => flood_seen += 1,
            }
        }
    }
    assert!(metric(&server, "gateway_pauses_total{connType=\"CLIENT\"}") >= 1.0);
    stop(server);
}

/// More than `messages_per_second` is read later, not punished.
#[test]
fn a_client_above_its_rate_is_read_in_full_and_more_slowly() {
    let server = start(&format!("[limits]\nmessages_per_second = 500\n{THREADS}"));
    let mut game = Peer::game_server(server.servers()[0]);
    let mut client = Peer::login(server.clients()[0]);
    for n in 0..1500_u32 {
        client.send(USER_MESSAGE, &n.to_be_bytes());
    }
    let mut next = 0_u32;
    while next < 1500 {
        let (msg_type, body) = game.next().expect("the server was cut off");
        if msg_type == USER_MESSAGE {
            let forward = ServerForward::parse(&body).unwrap();
            assert_eq!(forward.payload, next.to_be_bytes());
            next += 1;
        }
    }
    let line = "gateway_over_budget_total{peer=\"client\",budget=\"messages\"}";
    assert!(metric(&server, line) >= 1.0);
    stop(server);
}

/// Neither are those of one address who send more than it may: they were
/// disconnected, whoever of them it was that sent most.
#[test]
fn clients_of_an_address_above_its_rate_are_read_in_full_and_more_slowly() {
    let limits = "[limits]\nmessages_per_second_per_address = 500\n";
    let server = start(&format!("{limits}{THREADS}"));
    let mut game = Peer::game_server(server.servers()[0]);
    let mut clients = [(); 2].map(|()| Peer::login(server.clients()[0]));
    for _ in 0..700 {
        for client in &mut clients {
            client.send(USER_MESSAGE, b"more");
        }
    }
    let mut received = 0;
    while received < 1400 {
        let (msg_type, _) = game.next().expect("the server was cut off");
        received += usize::from(msg_type == USER_MESSAGE);
    }
    let line = "gateway_over_budget_total{peer=\"client\",budget=\"messages\"}";
    assert!(metric(&server, line) >= 1.0);
    stop(server);
}

/// It stood in the list of those to be read several times, and had several shares.
#[test]
fn a_connection_that_floods_is_read_its_share_of_a_turn_and_no_more() {
    let server = start(&format!(
        "[limits]\nmessages_per_second = 10000000\nbytes_per_second = \"10000 MiB\"\n{THREADS}"
    ));
    let (turns, received) = (
        "gateway_loop_turns_total{loop=\"connections-0\"}",
        "bytes_in{connType=\"CLIENT\"}",
    );
    let mut attacker = Peer::login(server.clients()[0]);
    let before = [turns, received].map(|line| metric(&server, line));
    let flood = frame(USER_MESSAGE, &vec![7; 60_000]);
    for _ in 0..300 {
        attacker.stream.write_all(&flood).unwrap();
    }
    // It is hung up on when all before its own end was read.
    attacker.stream.shutdown(Shutdown::Write).unwrap();
    while attacker.next().is_some() {}
    let after = [turns, received].map(|line| metric(&server, line));
    let (turns, received) = (after[0] - before[0], after[1] - before[1]);
    assert!(received >= 300.0 * 60_000.0);
    assert!(
        received <= (turns + 1.0) * f64::from(64 << 10),
        "{received} bytes in {turns} turns"
    );
    stop(server);
}

/// Connections that say nothing fill all places.
#[test]
fn silent_connections_keep_neither_players_nor_servers_out() {
    let server = start(&format!(
        "[limits]\nconnections = 40\nreserved_for_servers = 4\nunauthenticated = 1000\n{THREADS}"
    ));
    let mut player = Peer::login(server.clients()[0]);
    let mut silent: Vec<Peer> = (0..100)
        .map(|_| Peer::connect(server.clients()[0]))
        .collect();
    let mut newcomer = Peer::login(server.clients()[0]);
    let mut game = Peer::game_server(server.servers()[0]);
    // The oldest of the silent had to go, those who play did not.
    assert_eq!(silent[0].next(), None);
    for peer in [&mut player, &mut newcomer] {
        peer.send(USER_MESSAGE, b"still here");
        while game.next().expect("the server was cut off").0 != USER_MESSAGE {}
    }
    let line = "gateway_connections_evicted_total{connType=\"CLIENT\"}";
    assert!(metric(&server, line) >= 60.0);
    stop(server);
}

/// Fifty places, of which ten are the servers'.
const FIFTY: &str = "[limits]\nconnections = 50\nreserved_for_servers = 10\n";

/// Who had logged in counted for half a second as if it had not, was evicted for
/// the next who came, and had a place beyond all limits given to it.
#[test]
fn logins_in_quick_succession_take_no_more_than_the_clients_places() {
    for threads in [THREADS, "[threads]\nconnections = 2\npin = false\n"] {
        let server = start(&format!("{FIFTY}{threads}"));
        let mut game = Peer::game_server(server.servers()[0]);
        let flood: Vec<Peer> = (0..300)
            .map(|_| {
                let mut peer = Peer::connect(server.clients()[0]);
                // It is answered or hung up on.
                let _ = peer.stream.write_all(LOGIN);
                let _ = peer.next();
                peer
            })
            .collect();
        let _servers: Vec<Peer> = (0..9).map(|_| Peer::login(server.servers()[0])).collect();
        drop(flood);
        game.send(LIST_CHANNEL, &[]);
        while game.next().expect("the server was cut off").0 != LIST_CHANNEL {}
        stop(server);
    }
}

/// Players stay, and who comes when their places are taken is turned away at once.
#[test]
fn who_has_logged_in_keeps_its_place_and_is_counted_at_once() {
    let server = start(&format!("{FIFTY}{THREADS}"));
    let mut game = Peer::game_server(server.servers()[0]);
    let mut players: Vec<Peer> = (0..40).map(|_| Peer::login(server.clients()[0])).collect();
    for n in 0..20 {
        let mut newcomer = Peer::connect(server.clients()[0]);
        assert_eq!(newcomer.next(), None, "newcomer {n} has a place");
    }
    for player in &mut players {
        player.send(USER_MESSAGE, b"still here");
        while game.next().expect("the server was cut off").0 != USER_MESSAGE {}
    }
    let line = "gateway_connections_turned_away_total{reason=\"full\"}";
    assert!(metric(&server, line) >= 20.0);
    stop(server);
}

/// A login service that counts how often it is asked, and lets everybody in.
fn login_service(asked: &'static AtomicUsize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.contains(&b'}') {
                match stream.read(&mut buffer) {
                    Ok(bytes) if bytes > 0 => request.extend_from_slice(&buffer[..bytes]),
                    _ => break,
                }
            }
            asked.fetch_add(1, Ordering::SeqCst);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    at
}

/// Thousands of logins of connections that hang up at once.
#[test]
fn a_flood_of_logins_does_not_block_the_login_service() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let service = login_service(&ASKED);
    let sections = format!("[auth]\nprovider = \"http\"\nurl = \"http://{service}/\"\n{THREADS}");
    let server = start_as("", &["tcp"], &sections);
    let login = MessagePack {
        msg_type: AUTH,
        body: b"\x0a\x04test\x12\x04test",
        ..MessagePack::default()
    };
    // Frames that may come in pieces before a login, each with more than the
    // queues hold.
    let flood = frame_of(&vec![login; 700]).repeat(3);
    for _ in 0..2 {
        let mut attacker = Peer::connect(server.clients()[0]);
        let _ = attacker.stream.write_all(&flood);
        let _ = attacker.stream.shutdown(Shutdown::Both);
    }
    Peer::login(server.clients()[0]);
    let asked = ASKED.load(Ordering::SeqCst);
    assert!(asked < 50, "the service was asked {asked} times");
    stop(server);
}
