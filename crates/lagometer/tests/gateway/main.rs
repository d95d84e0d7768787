//! The gateway as a user meets it: through the binary, over real sockets, with
//! peers that misbehave.

mod command_lines;
#[path = "../gateway_process/mod.rs"]
mod gateway_process;
#[path = "../nats_server/mod.rs"]
mod nats_server;
mod prometheus;
mod recordings;
mod running;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use running::{Gateway, TIMEOUT, Talker, lagometer};

/// Creates GLOBAL; a new list takes the old one's place, so nothing grows.
const CREATE_GLOBAL: &[u8] = b"\x08\x01\x2a\x02\x08\x01";
/// Subscribes to read, every 20 ms.
const SUBSCRIBE: &[u8] = b"\x12\x04\x08\x01\x18\x14";

/// An update of GLOBAL: one line of chat.
fn update(text: &str) -> Vec<u8> {
    use prost::Message as _;
    let data = lagometer_protocol::messages::chatpb::ChatChannelData {
        chat_messages: vec![lagometer_protocol::messages::chatpb::ChatMessage {
            content: text.to_owned(),
            ..Default::default()
        }],
    };
    lagometer_protocol::messages::channeldpb::ChannelDataUpdateMessage {
        data: Some(prost_types::Any {
            type_url: "type.googleapis.com/chatpb.ChatChannelData".into(),
            value: data.encode_to_vec(),
        }),
        context_conn_id: 0,
    }
    .encode_to_vec()
}

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = lagometer().args(arguments).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn mistakes_in_settings_are_reported_on_one_line_with_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let toml = file("gateway.toml", "dev = true\n[limits]\nconections = 1\n");
    let unit = file("unit.toml", "[slow_readers]\nclose_after = 10\n");
    let fsm = file("fsm.json", "{ \"States\": [ { \"Name\": 5 } ] }");
    let proto = file("game.proto", "message {");
    for (arguments, expected) in [
        (
            vec!["--config", &toml],
            "gateway.toml:3: unknown field `conections`",
        ),
        (vec!["--config", &unit], "unit.toml:2:"),
        (vec!["--config", "/nowhere.toml"], "/nowhere.toml"),
        (vec!["-cfsm", &fsm], "fsm.json"),
        (vec!["-scc=/nowhere.json"], "/nowhere.json"),
        (vec!["--schema", &proto], "game.proto"),
        (vec!["-mcb=40"], "connection_id_bits"),
        (vec!["-sa=somewhere"], "-sa"),
        (vec!["-cn=pigeon"], "-cn"),
    ] {
        let (code, printed) = refused(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(printed.contains(expected), "{expected} is not in {printed}");
    }
}

#[test]
fn a_port_that_is_taken_is_an_environment_that_lacks_something() {
    let gateway = Gateway::start(&[]);
    let taken = format!("-sa={}", gateway.servers);
    let (code, printed) = refused(&["-dev", &taken, "-ca=127.0.0.1:0", "--web=none"]);
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("cannot listen at"), "{printed}");
}

#[test]
fn clients_cannot_connect_before_a_server_owns_global() {
    for threads in ["--threads=0", "--threads=2"] {
        let gateway = Gateway::start(&["-cwm=true", threads]);
        assert!(TcpStream::connect(gateway.clients).is_err());
        assert_eq!(gateway.get("/readyz").0, 200);
        let mut master = Talker::let_in(gateway.servers);
        master.send(0, 3, CREATE_GLOBAL);
        gateway.until("the port opens", |gateway| {
            TcpStream::connect(gateway.clients).is_ok()
        });
    }
}

#[test]
fn updates_go_from_one_to_others_on_one_thread_and_on_three() {
    for threads in ["--threads=0", "--threads=2"] {
        let gateway = Gateway::start(&[threads]);
        let mut master = Talker::let_in(gateway.servers);
        master.send(0, 3, CREATE_GLOBAL);
        master.until(3);
        let mut clients: Vec<Talker> = (0..5).map(|_| Talker::let_in(gateway.clients)).collect();
        for client in &mut clients {
            client.send(0, 6, SUBSCRIBE);
            client.until(6);
        }
        master.send(0, 8, &update("good morning"));
        for client in &mut clients {
            let received = client.until(8).body;
            assert!(received.windows(12).any(|text| text == b"good morning"));
        }
        assert_eq!(gateway.count("connection_num{type=\"CLIENT\"}"), 5);
        assert_eq!(gateway.count("channel_num{type=\"GLOBAL\"}"), 1);
    }
}

#[test]
fn ten_thousand_come_and_go_and_leave_nothing_behind() {
    const EACH: usize = 2_500;
    let gateway = Gateway::start(&["--threads=0"]);
    let at = gateway.clients;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut stream = TcpStream::connect(at).unwrap();
                    // Some say half a word, some a whole one, some nothing.
                    let words: &[u8] = match number % 3 {
                        0 => b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test",
                        1 => b"CH\0",
                        _ => b"",
                    };
                    stream.write_all(words).unwrap();
                    socket2::SockRef::from(&stream)
                        .set_linger(Some(Duration::ZERO))
                        .unwrap();
                }
            });
        }
    });
    let clients = "connection_num{type=\"CLIENT\"}";
    gateway.until("all are gone", |gateway| gateway.metric(clients) == 0.0);
    assert!(gateway.metric("gateway_connections_opened_total{connType=\"CLIENT\"}") > 9_000.0);
    let _still_there = Talker::let_in(gateway.clients);
}

#[test]
fn a_setting_that_serves_nobody_is_refused_with_its_line_and_what_would_mend_it() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("gateway.toml");
    std::fs::write(
        &settings,
        "dev = true\n[limits]\nmasks = 8\nwork_per_second = 0\n",
    )
    .unwrap();
    let settings = settings.to_str().unwrap();
    let (code, printed) = refused(&["--check", "--config", settings]);
    assert_eq!(code, Some(2), "{printed}");
    let begins = format!("{settings}:4: limits.work_per_second: must be at least 1000");
    assert!(printed.contains(&begins), "{printed}");
    assert_eq!(printed.trim().lines().count(), 1, "{printed}");
}

#[test]
fn one_who_stops_reading_harms_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("gateway.toml");
    std::fs::write(&settings, "[slow_readers]\nclose_after = \"1 s\"\n").unwrap();
    let gateway = Gateway::start(&["--config", settings.to_str().unwrap()]);
    let mut master = Talker::let_in(gateway.servers);
    master.send(0, 3, CREATE_GLOBAL);
    master.until(3);
    let mut lazy = Talker::let_in(gateway.clients);
    let mut eager = Talker::let_in(gateway.clients);
    // Its system holds little for it, which makes the wait shorter.
    socket2::SockRef::from(&lazy.stream)
        .set_recv_buffer_size(16 << 10)
        .unwrap();
    for client in [&mut lazy, &mut eager] {
        client.send(0, 6, SUBSCRIBE);
        client.until(6);
    }
    let text = "x".repeat(30_000);
    let give_up = Instant::now() + TIMEOUT;
    let closed = "gateway_slow_readers_closed_total{connType=\"CLIENT\"}";
    let mut rounds = 0;
    while gateway.metric(closed) == 0.0 {
        for _ in 0..20 {
            // Each is received before the next is sent: nobody is held up.
            master.send(0, 8, &update(&format!("{rounds}-{text}")));
            eager.until(8);
            rounds += 1;
        }
        assert!(Instant::now() < give_up, "the lazy one stays for ever");
    }
    assert!(gateway.metric("gateway_slow_readers_total{connType=\"CLIENT\"}") >= 1.0);
    assert_eq!(gateway.count("connection_num{type=\"CLIENT\"}"), 1);
}

#[test]
fn one_who_speaks_a_byte_at_a_time_is_understood_and_one_who_never_ends_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("gateway.toml");
    std::fs::write(&settings, "[limits]\nlogin_within = \"2 s\"\n").unwrap();
    let gateway = Gateway::start(&["--config", settings.to_str().unwrap()]);
    let mut slow = Talker::connect(gateway.clients);
    for byte in b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test" {
        slow.stream.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    slow.until(1);
    let mut endless = Talker::connect(gateway.clients);
    let begun = Instant::now();
    endless.stream.write_all(b"CH\xff\xff\0").unwrap();
    assert!(endless.next().is_none());
    assert!(begun.elapsed() >= Duration::from_secs(2));
    // The first one was let in, and stays.
    slow.send(0, 5, b"");
    slow.until(5);
}

#[test]
fn a_bomb_and_noise_are_hung_up_on() {
    let gateway = Gateway::start(&[]);
    // A snappy block that claims a gigabyte.
    let bomb = b"CH\0\x08\x01\x80\x80\x80\x80\x04\x00\x00\x00";
    // A frame that is no packet, another tag, an empty frame.
    for words in [
        &bomb[..],
        b"CH\0\x03\0\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"CH\0\0\0",
    ] {
        let mut noisy = Talker::connect(gateway.clients);
        noisy.stream.write_all(words).unwrap();
        assert!(noisy.next().is_none(), "{words:?}");
    }
    assert_eq!(gateway.count("connection_closed{connType=\"CLIENT\"}"), 4);
    assert!(gateway.metric("process_resident_memory_bytes") < 500e6);
}

#[test]
fn on_sigterm_owners_are_notified_who_left_and_the_gateway_ends_in_order() {
    for threads in ["--threads=0", "--threads=2"] {
        let mut gateway = Gateway::start(&[threads]);
        let mut master = Talker::let_in(gateway.servers);
        master.send(0, 3, CREATE_GLOBAL);
        master.until(3);
        let mut client = Talker::let_in(gateway.clients);
        client.send(0, 6, SUBSCRIBE);
        client.until(6);
        gateway.signal("TERM");
        assert!(
            client.next().is_none(),
            "the client is notified by the end of the stream"
        );
        master.until(7);
        while master.next().is_some() {}
        let status = gateway.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn on_sighup_the_settings_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("gateway.toml");
    std::fs::write(&settings, "").unwrap();
    let gateway = Gateway::start(&["--config", settings.to_str().unwrap()]);
    let _before = Talker::let_in(gateway.clients);
    std::fs::write(&settings, "[limits]\nbanned = [\"127.0.0.0/8\"]\n").unwrap();
    gateway.signal("HUP");
    gateway.until("nobody is accepted", |gateway| {
        let mut stream = TcpStream::connect(gateway.clients).unwrap();
        // An end or a reset: the gateway has hung up without a word.
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        match stream.read(&mut [0; 1]) {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    });
    std::fs::write(&settings, "[limits]\nbaned = []\n").unwrap();
    gateway.signal("HUP");
    assert!(gateway.metric("gateway_connections_turned_away_total{reason=\"banned\"}") >= 1.0);
    assert_eq!(gateway.get("/healthz").0, 200);
}

#[test]
fn health_is_answered_and_rubbish_is_not() {
    let gateway = Gateway::start(&[]);
    assert_eq!(gateway.get("/healthz"), (200, "alive\n".into()));
    assert_eq!(gateway.get("/readyz"), (200, "ready\n".into()));
    assert_eq!(gateway.get("/elsewhere").0, 404);
    let mut rude = TcpStream::connect(gateway.web).unwrap();
    let _ = rude.write_all(&vec![b'x'; 100_000]);
    let _ = rude.shutdown(Shutdown::Write);
    assert_eq!(gateway.get("/healthz").0, 200);
}
