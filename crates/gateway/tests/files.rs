//! A process that has used up its file descriptors: game servers get in and
//! health is answered all the same, and nobody is lost who has to wait.
//!
//! A test binary of its own, for the limit is the process's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use lagometer_gateway::server::Server;
use lagometer_gateway::server::config::FileConfig;
use rustix::process::{Resource, Rlimit, setrlimit};
use socket2::{Domain, Socket, Type};

/// Longer than anything here takes on a machine that is busy with others.
const TIMEOUT: Duration = Duration::from_mins(1);

/// AUTH of player "test" with the token "test".
const LOGIN: &[u8] = b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";

/// A socket that is not connected yet: its file is taken.
fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()
}

fn connect(socket: Socket, at: SocketAddr) -> TcpStream {
    socket.connect(&at.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Takes all files that are left.
fn take_all_files() -> Vec<OwnedFd> {
    let one = OwnedFd::from(socket());
    let mut all = Vec::new();
    while let Ok(more) = one.try_clone() {
        all.push(more);
    }
    all.push(one);
    all
}

fn logs_in(mut stream: TcpStream) -> TcpStream {
    stream.write_all(LOGIN).unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[..2], b"CH");
    stream
}

#[test]
fn without_a_file_left_servers_get_in_and_health_is_answered_and_clients_wait() {
    let limit = Rlimit {
        current: Some(256),
        maximum: Some(256),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let text = "dev = true\n[servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n\
        [clients]\nlisten = [\"tcp://127.0.0.1:0\"]\nwait_for_owner = false\n\
        [web]\nlisten = \"127.0.0.1:0\"\n[threads]\nconnections = 1\npin = false\n";
    let config = FileConfig::parse("test", text).unwrap();
    let server = Server::start(config.resolve(1).unwrap()).unwrap();
    let sockets: Vec<Socket> = (0..5).map(|_| socket()).collect();
    let files = take_all_files();

    let mut sockets = sockets.into_iter();
    let mut client = connect(sockets.next().unwrap(), server.clients()[0]);
    client.write_all(LOGIN).unwrap();
    // Their listener does not rest because the clients' does.
    let _servers: Vec<TcpStream> = (sockets.by_ref().take(2))
        .map(|socket| logs_in(connect(socket, server.servers()[0])))
        .collect();
    let mut get = |path: &str| {
        let mut web = connect(sockets.next().unwrap(), server.web().unwrap());
        write!(web, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        web.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    };
    get("/healthz");
    // Whoever waits is counted, and that nobody was accepted.
    let metrics = get("/metrics");
    let of = |name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}"))
            .trim()
            .parse()
            .unwrap()
    };
    assert!(of("gateway_accept_queue{connType=\"CLIENT\"}") >= 1.0);
    let waits = "gateway_accept_waits_total{connType=\"CLIENT\",reason=\"no_file\"}";
    assert!(of(waits) >= 1.0);

    // Whoever had to wait was not turned away.
    drop(files);
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[..2], b"CH");
    server.handle().drain();
    server.join().unwrap();
}
