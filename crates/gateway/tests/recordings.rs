//! What clients sent until the gateway's end is recorded when it has ended.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use lagometer_gateway::server::Server;
use lagometer_gateway::server::config::FileConfig;

/// Longer than anything here takes on a machine that is busy with others.
const TIMEOUT: Duration = Duration::from_mins(1);

/// AUTH of player "test" with the token "test".
const LOGIN: &[u8] = b"CH\0\x12\0\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";

/// Enough that the disk is not done with them when the last thread ends.
const CLIENTS: usize = 200;

fn logged_in(at: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(LOGIN).unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    stream
}

/// Recordings there are when a gateway has ended that was asked to while its
/// clients were there.
fn recordings_after_the_end(shutdown: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "dev = true\n[servers]\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [clients]\nlisten = [\"tcp://127.0.0.1:0\"]\nwait_for_owner = false\n\
         record_to = \"{}\"\n[web]\nenabled = false\n\
         [threads]\nconnections = 1\npin = false\n{shutdown}",
        folder.path().display()
    );
    let config = FileConfig::parse("test", &text).unwrap();
    let server = Server::start(config.resolve(1).unwrap()).unwrap();
    let at = server.clients()[0];
    let _clients: Vec<TcpStream> = (0..CLIENTS).map(|_| logged_in(at)).collect();
    server.handle().drain();
    server.join().unwrap();
    std::fs::read_dir(folder.path()).unwrap().count()
}

#[test]
fn clients_that_are_asked_to_go_at_the_end_are_recorded() {
    assert_eq!(recordings_after_the_end(""), CLIENTS);
}

#[test]
fn clients_that_are_closed_because_the_end_took_too_long_are_recorded() {
    let shutdown = "[shutdown]\nwithin = \"0 s\"\n";
    assert_eq!(recordings_after_the_end(shutdown), CLIENTS);
}
