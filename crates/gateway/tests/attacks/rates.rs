//! What is read of one client in a second, whatever it is made of and however often
//! it comes.

use std::path::Path;
use std::time::Instant;

use socket2::SockRef;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::{Message, WebSocket};

use super::*;

const OVER: &str = "gateway_over_budget_total{peer=\"client\",budget=\"messages\"}";

/// A client that has logged in over a WebSocket.
pub(crate) fn websocket(at: SocketAddr) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let (mut socket, _) = tungstenite::client("ws://localhost/", stream).unwrap();
    socket.send(Message::binary(LOGIN)).unwrap();
    while !socket.read().unwrap().is_binary() {}
    socket
}

/// Reads until so many messages of the game have come.
fn receive_messages(game: &mut Peer, messages: usize) {
    let mut received = 0;
    while received < messages {
        let (msg_type, _) = game.next().expect("the server was cut off");
        received += usize::from(msg_type == USER_MESSAGE);
    }
}

/// They had their share of a turn and cost nothing: a hundred connections that sent
/// nothing else held everybody up.
#[test]
fn pings_empty_messages_and_parts_of_messages_count_as_messages() {
    let sections = format!("[limits]\nmessages_per_second = 2000\n{THREADS}");
    let server = start_as("dev = true\n", &["ws"], &sections);
    let mut game = Peer::game_server(server.servers()[0]);
    let part = |opcode, is_last, payload: &[u8]| {
        let frame = Frame::message(payload.to_vec(), OpCode::Data(opcode), is_last);
        Message::Frame(frame)
    };
    let hello = frame(USER_MESSAGE, b"at last");
    for (begin, flood, end) in [
        (
            None,
            Message::Ping(Vec::new().into()),
            Message::binary(hello.clone()),
        ),
        (
            None,
            Message::binary(Vec::new()),
            Message::binary(hello.clone()),
        ),
        (
            Some(part(Data::Binary, false, b"")),
            part(Data::Continue, false, b""),
            part(Data::Continue, true, &hello),
        ),
    ] {
        let before = metric(&server, OVER);
        let mut client = websocket(server.clients()[0]);
        if let Some(part) = begin {
            client.write(part).unwrap();
        }
        for _ in 0..6000 {
            client.write(flood.clone()).unwrap();
        }
        client.send(end).unwrap();
        receive_messages(&mut game, 1);
        assert!(metric(&server, OVER) > before, "{flood:?}");
    }
    stop(server);
}

/// Each record is decrypted by itself, however little is in it.
#[test]
fn records_of_tls_count_as_messages() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let sections = format!(
        "[limits]\nmessages_per_second = 2000\n[tls]\ncertificate = \"{data}/certificate.pem\"\n\
         key = \"{data}/key.pem\"\n{THREADS}",
        data = data.display()
    );
    let server = start_as("dev = true\n", &["tls"], &sections);
    let mut game = Peer::game_server(server.servers()[0]);
    let stream = TcpStream::connect(server.clients()[0]).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut client = tls_client::over(stream);
    client.write_all(LOGIN).unwrap();
    assert!(client.read(&mut [0; 100]).unwrap() > 0);
    let message = frame(USER_MESSAGE, b"");
    let messages = 6000 / message.len();
    for byte in message.repeat(messages) {
        client.write_all(&[byte]).unwrap();
    }
    receive_messages(&mut game, messages);
    assert!(metric(&server, OVER) >= 1.0);
    stop(server);
}

/// The poller reports one that has gone again and again: it was read without a
/// pause, so as to be rid of it.
#[test]
fn who_resets_a_websocket_is_not_read_faster_for_it() {
    const RATE: usize = 500;
    let sections = format!("[limits]\nmessages_per_second = {RATE}\n{THREADS}");
    let server = start_as("dev = true\n", &["ws"], &sections);
    let mut game = Peer::game_server(server.servers()[0]);
    let mut client = websocket(server.clients()[0]);
    let begun = Instant::now();
    for _ in 0..6000 {
        let message = Message::binary(frame(USER_MESSAGE, b""));
        client.write(message).unwrap();
    }
    client.flush().unwrap();
    while metric(&server, OVER) < 1.0 {}
    let no_linger = Some(Duration::ZERO);
    SockRef::from(client.get_ref())
        .set_linger(no_linger)
        .unwrap();
    drop(client);
    // Once it has been read to its end; a reset may cost the rest.
    let mut received = 0;
    let gone = "connection_num{type=\"CLIENT\"}";
    while metric(&server, gone) > 0.0 {
        std::thread::yield_now();
    }
    let passed = begun.elapsed();
    game.send(LIST_CHANNEL, &[]);
    loop {
        match game.next().expect("the server was cut off").0 {
            USER_MESSAGE => received += 1,
            LIST_CHANNEL => break,
            _ => {}
        }
    }
    // Two seconds at once, what one turn takes beyond, and the rate.
    let most = 2 * RATE + 2048 + (passed.as_secs_f64() * RATE as f64) as usize;
    assert!(received <= most, "{received} in {passed:?}");
    stop(server);
}

/// Who sent two seconds' worth, hung up and came again began anew each time.
#[test]
fn who_hangs_up_and_comes_again_is_read_no_faster_for_it() {
    let server = start(&format!("[limits]\nmessages_per_second = 50\n{THREADS}"));
    let mut game = Peer::game_server(server.servers()[0]);
    for _ in 0..20 {
        if metric(&server, OVER) >= 1.0 {
            break;
        }
        let mut client = Peer::login(server.clients()[0]);
        let flood = frame(USER_MESSAGE, b"").repeat(100);
        client.stream.write_all(&flood).unwrap();
        receive_messages(&mut game, 100);
        drop(client);
        while metric(&server, "connection_num{type=\"CLIENT\"}") > 0.0 {}
    }
    assert!(metric(&server, OVER) >= 1.0);
    stop(server);
}

/// It received that it was let in, and was hung up on.
#[test]
fn a_login_whose_place_was_given_away_is_not_answered_as_let_in() {
    // Three places for clients, of which two are taken.
    let server = start(
        "[limits]\nconnections = 4\nreserved_for_servers = 1\n[threads]\nconnections = 0\npin = false\n",
    );
    let mut game = Peer::game_server(server.servers()[0]);
    let _players = [(); 2].map(|()| Peer::login(server.clients()[0]));
    for _ in 0..200 {
        let mut first = Peer::connect(server.clients()[0]);
        first.stream.write_all(LOGIN).unwrap();
        let second = Peer::connect(server.clients()[0]);
        if let Some((msg_type, _)) = first.next() {
            assert_eq!(msg_type, AUTH);
            // It has a place: the game receives what it sends.
            first.send(USER_MESSAGE, b"here");
            while game.next().expect("the server was cut off").0 != USER_MESSAGE {}
        }
        drop((first, second));
        while metric(&server, "connection_num{type=\"CLIENT\"}") > 2.0 {}
    }
    stop(server);
}
