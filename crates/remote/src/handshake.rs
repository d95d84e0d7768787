//! The handshake of a control connection: versions, nonces, and proofs of the
//! shared secret.
//!
//! ```text
//! client -> server  magic, version, client nonce, padding  64 bytes
//! server -> client  magic, version, status, server nonce   43 bytes
//! client -> server  tag("client", both hellos)             32 bytes
//! server -> client  status, tag("server", both hellos)     33 bytes
//! ```
//!
//! The client authenticates first: for one that cannot, the server has drawn a
//! nonce and done nothing else. Magic and version stay at the same offsets in
//! every later version. Neither end sends more than it has received, so that the
//! handshake amplifies nothing. The keys of later frames and of the data sockets
//! are derived from the secret and both nonces.

mod client;
mod server;

pub(crate) use client::{ClientHandshake, ClientStep};
pub(crate) use server::{ServerHandshake, ServerStep};

use crate::tag::Key;

const MAGIC: &[u8; 8] = b"LAGOFAR\n";
const NONCE_BYTES: usize = 32;
const CLIENT_HELLO_BYTES: usize = 64;
const SERVER_HELLO_BYTES: usize = MAGIC.len() + 2 + 1 + NONCE_BYTES;

/// The remote end goes on.
const STATUS_WELCOME: u8 = 0;
/// It speaks another version.
const STATUS_OTHER_VERSION: u8 = 1;
/// It serves as many as it can.
const STATUS_BUSY: u8 = 2;
/// The proof was wrong.
const STATUS_OTHER_SECRET: u8 = 3;

/// A number used once.
pub(crate) type Nonce = [u8; NONCE_BYTES];

/// What both ends hold once each has proved itself.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// Seals what the local end says.
    pub(crate) up: Key,
    /// Seals what the remote end says.
    pub(crate) down: Key,
    /// Lets addresses into data sockets.
    pub(crate) data: Key,
}

impl Keys {
    fn of(secret: &Key, hellos: [&[u8]; 2]) -> Self {
        let key = secret.derive("conversation", &hellos);
        Self {
            up: key.derive("up", &[]),
            down: key.derive("down", &[]),
            data: key.derive("data", &[]),
        }
    }
}

/// Takes the first `count` bytes off `buffer`, once they are there.
fn take(buffer: &mut Vec<u8>, count: usize) -> Option<Vec<u8>> {
    (buffer.len() >= count).then(|| buffer.drain(..count).collect())
}

/// The version in a hello; `None` if it is no hello of ours.
fn version_of(hello: &[u8]) -> Option<u16> {
    let rest = hello.strip_prefix(MAGIC)?;
    Some(u16::from_be_bytes([*rest.first()?, *rest.get(1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use proptest::prelude::*;

    /// Passes bytes between the ends, `chunk` at a time, until both are done
    /// or one gives up.
    fn converse(
        client: &mut ClientHandshake,
        server: &mut ServerHandshake,
        chunk: usize,
    ) -> (ClientStep, ServerStep) {
        let mut up = client.start();
        let mut client_step = ClientStep::Wait;
        let mut server_step = ServerStep::Wait;
        let (mut received, mut sent) = (0, 0);
        for _ in 0..20 {
            for piece in std::mem::take(&mut up).chunks(chunk) {
                received += piece.len();
                server_step = server.handle(piece);
                let down = server.output();
                sent += down.len();
                assert!(sent <= received, "{sent} sent for {received} received");
                for piece in down.chunks(chunk) {
                    client_step = client.handle(piece);
                }
                up.extend(client.output());
            }
            if up.is_empty() {
                break;
            }
        }
        (client_step, server_step)
    }

    fn ends(client: &str, server: &str) -> (ClientHandshake, ServerHandshake) {
        let key = |text: &str| Secret::from_text(text).unwrap().key();
        (
            ClientHandshake::new(key(client), [1; 32]),
            ServerHandshake::new(key(server), [2; 32], true),
        )
    }

    const RIGHT: &str = "the right secret";
    const WRONG: &str = "the wrong secret";

    #[test]
    fn the_same_secret_gives_the_same_keys() {
        for chunk in [1, 7, 100] {
            let (mut client, mut server) = ends(RIGHT, RIGHT);
            let (ClientStep::Done(mine), ServerStep::Done(theirs)) =
                converse(&mut client, &mut server, chunk)
            else {
                panic!("both are done");
            };
            for (one, other) in [
                (&mine.up, &theirs.up),
                (&mine.down, &theirs.down),
                (&mine.data, &theirs.data),
            ] {
                assert_eq!(one.tag("x", &[]), other.tag("x", &[]));
            }
            assert_ne!(mine.up.tag("x", &[]), mine.down.tag("x", &[]));
        }
    }

    #[test]
    fn another_secret_is_reported_at_both_ends() {
        let (mut client, mut server) = ends(RIGHT, WRONG);
        let steps = converse(&mut client, &mut server, 100);
        assert!(matches!(
            steps,
            (ClientStep::OtherSecret, ServerStep::OtherSecret)
        ));
    }

    #[test]
    fn an_impostor_of_the_server_end_is_found_out() {
        let (mut client, _) = ends(RIGHT, RIGHT);
        client.start();
        let mut hello = MAGIC.to_vec();
        hello.extend(crate::VERSION.to_be_bytes());
        hello.push(STATUS_WELCOME);
        hello.extend([7; 32]);
        assert!(matches!(client.handle(&hello), ClientStep::Wait));
        // It reflects the local end's own proof.
        let mut proof = vec![STATUS_WELCOME];
        proof.extend(client.output());
        assert!(matches!(client.handle(&proof), ClientStep::OtherSecret));
    }

    #[test]
    fn another_version_is_reported_at_both_ends_before_anything_else() {
        let (mut client, mut server) = ends(RIGHT, WRONG);
        let mut hello = client.start();
        hello[9] = 200;
        assert!(matches!(
            server.handle(&hello),
            ServerStep::OtherVersion(200)
        ));
        let answer = server.output();
        assert!(matches!(
            client.handle(&answer),
            ClientStep::UnknownProtocol
        ));

        let (mut client, mut server) = ends(RIGHT, WRONG);
        let mut hello = client.start();
        hello[9] = 200;
        let _ = server.handle(&hello);
        let mut answer = server.output();
        answer[9] = 201;
        assert!(matches!(
            client.handle(&answer),
            ClientStep::OtherVersion(201)
        ));
    }

    #[test]
    fn a_server_end_that_is_busy_says_so() {
        let key = Secret::from_text(RIGHT).unwrap().key();
        let mut client = ClientHandshake::new(key.clone(), [1; 32]);
        let mut server = ServerHandshake::new(key, [2; 32], false);
        let steps = converse(&mut client, &mut server, 100);
        assert!(matches!(steps, (ClientStep::Busy, ServerStep::Busy)));
    }

    proptest! {
        #[test]
        fn garbage_is_never_let_in(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..8),
            begins_well: bool,
        ) {
            let (mut client, mut server) = ends(RIGHT, RIGHT);
            if begins_well {
                let hello = client.start();
                server.handle(&hello);
                let answer = server.output();
                client.handle(&answer);
                client.output();
            }
            for piece in &pieces {
                prop_assert!(!matches!(server.handle(piece), ServerStep::Done(_)));
                prop_assert!(!matches!(client.handle(piece), ClientStep::Done(_)));
            }
        }

        #[test]
        fn a_flipped_bit_keeps_everyone_out(message in 0_usize..4, bit in 0_usize..8 * 43) {
            let (mut client, mut server) = ends(RIGHT, RIGHT);
            let flip = |bytes: &mut Vec<u8>, now: bool| {
                let bits = bytes.len() * 8;
                if now && bits > 0 {
                    bytes[bit % bits / 8] ^= 1 << (bit % 8);
                }
            };
            let mut bytes = client.start();
            flip(&mut bytes, message == 0);
            let _ = server.handle(&bytes);
            let mut bytes = server.output();
            flip(&mut bytes, message == 1);
            let _ = client.handle(&bytes);
            let mut bytes = client.output();
            flip(&mut bytes, message == 2);
            let server_step = server.handle(&bytes);
            let mut bytes = server.output();
            flip(&mut bytes, message == 3);
            let client_step = client.handle(&bytes);
            prop_assert!(!matches!(client_step, ClientStep::Done(_)));
            prop_assert!(message == 3 || !matches!(server_step, ServerStep::Done(_)));
        }
    }
}
