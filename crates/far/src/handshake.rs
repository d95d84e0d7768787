//! The first words of a control conversation: versions, then nonces, then
//! proofs.
//!
//! ```text
//! near -> far   magic, version, near nonce, padding          64 bytes
//! far -> near   magic, version, status, far nonce            43 bytes
//! near -> far   tag("near", both hellos)                     32 bytes
//! far -> near   status, tag("far", both hellos)              33 bytes
//! ```
//!
//! The near end proves itself first, so the far end has done nothing for
//! whoever cannot but draw a nonce. Magic and version stand at the same place
//! in every version to come. What either end sends is never longer than what
//! it has received. From the secret and both nonces follow the keys by which
//! every later frame is sealed, and by which data sockets admit addresses.

mod far;
mod near;

pub(crate) use far::{FarHandshake, FarStep};
pub(crate) use near::{NearHandshake, NearStep};

use crate::tag::Key;

const MAGIC: &[u8; 8] = b"LAGOFAR\n";
const NONCE_BYTES: usize = 32;
const NEAR_HELLO_BYTES: usize = 64;
const FAR_HELLO_BYTES: usize = MAGIC.len() + 2 + 1 + NONCE_BYTES;

/// The far end goes on.
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
    /// Seals what the near end says.
    pub(crate) up: Key,
    /// Seals what the far end says.
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
        near: &mut NearHandshake,
        far: &mut FarHandshake,
        chunk: usize,
    ) -> (NearStep, FarStep) {
        let mut up = near.start();
        let mut near_step = NearStep::Wait;
        let mut far_step = FarStep::Wait;
        let (mut received, mut sent) = (0, 0);
        for _ in 0..20 {
            for piece in std::mem::take(&mut up).chunks(chunk) {
                received += piece.len();
                far_step = far.handle(piece);
                let down = far.output();
                sent += down.len();
                assert!(sent <= received, "{sent} sent for {received} received");
                for piece in down.chunks(chunk) {
                    near_step = near.handle(piece);
                }
                up.extend(near.output());
            }
            if up.is_empty() {
                break;
            }
        }
        (near_step, far_step)
    }

    fn ends(near: &str, far: &str) -> (NearHandshake, FarHandshake) {
        let key = |text: &str| Secret::from_text(text).unwrap().key();
        (
            NearHandshake::new(key(near), [1; 32]),
            FarHandshake::new(key(far), [2; 32], true),
        )
    }

    const RIGHT: &str = "the right secret";
    const WRONG: &str = "the wrong secret";

    #[test]
    fn the_same_secret_gives_the_same_keys() {
        for chunk in [1, 7, 100] {
            let (mut near, mut far) = ends(RIGHT, RIGHT);
            let (NearStep::Done(mine), FarStep::Done(theirs)) =
                converse(&mut near, &mut far, chunk)
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
    fn another_secret_is_told_at_both_ends() {
        let (mut near, mut far) = ends(RIGHT, WRONG);
        let steps = converse(&mut near, &mut far, 100);
        assert!(matches!(
            steps,
            (NearStep::OtherSecret, FarStep::OtherSecret)
        ));
    }

    #[test]
    fn an_impostor_of_the_far_end_is_found_out() {
        let (mut near, _) = ends(RIGHT, RIGHT);
        near.start();
        let mut hello = MAGIC.to_vec();
        hello.extend(crate::VERSION.to_be_bytes());
        hello.push(STATUS_WELCOME);
        hello.extend([7; 32]);
        assert!(matches!(near.handle(&hello), NearStep::Wait));
        // It reflects the near end's own proof.
        let mut proof = vec![STATUS_WELCOME];
        proof.extend(near.output());
        assert!(matches!(near.handle(&proof), NearStep::OtherSecret));
    }

    #[test]
    fn another_version_is_told_at_both_ends_before_anything_else() {
        let (mut near, mut far) = ends(RIGHT, WRONG);
        let mut hello = near.start();
        hello[9] = 200;
        assert!(matches!(far.handle(&hello), FarStep::OtherVersion(200)));
        let answer = far.output();
        assert!(matches!(near.handle(&answer), NearStep::Stranger));

        let (mut near, mut far) = ends(RIGHT, WRONG);
        let mut hello = near.start();
        hello[9] = 200;
        let _ = far.handle(&hello);
        let mut answer = far.output();
        answer[9] = 201;
        assert!(matches!(near.handle(&answer), NearStep::OtherVersion(201)));
    }

    #[test]
    fn a_far_end_that_is_busy_says_so() {
        let key = Secret::from_text(RIGHT).unwrap().key();
        let mut near = NearHandshake::new(key.clone(), [1; 32]);
        let mut far = FarHandshake::new(key, [2; 32], false);
        let steps = converse(&mut near, &mut far, 100);
        assert!(matches!(steps, (NearStep::Busy, FarStep::Busy)));
    }

    proptest! {
        #[test]
        fn garbage_is_never_let_in(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..8),
            begins_well: bool,
        ) {
            let (mut near, mut far) = ends(RIGHT, RIGHT);
            if begins_well {
                let hello = near.start();
                far.handle(&hello);
                let answer = far.output();
                near.handle(&answer);
                near.output();
            }
            for piece in &pieces {
                prop_assert!(!matches!(far.handle(piece), FarStep::Done(_)));
                prop_assert!(!matches!(near.handle(piece), NearStep::Done(_)));
            }
        }

        #[test]
        fn a_flipped_bit_keeps_everyone_out(message in 0_usize..4, bit in 0_usize..8 * 43) {
            let (mut near, mut far) = ends(RIGHT, RIGHT);
            let flip = |bytes: &mut Vec<u8>, now: bool| {
                let bits = bytes.len() * 8;
                if now && bits > 0 {
                    bytes[bit % bits / 8] ^= 1 << (bit % 8);
                }
            };
            let mut bytes = near.start();
            flip(&mut bytes, message == 0);
            let _ = far.handle(&bytes);
            let mut bytes = far.output();
            flip(&mut bytes, message == 1);
            let _ = near.handle(&bytes);
            let mut bytes = near.output();
            flip(&mut bytes, message == 2);
            let far_step = far.handle(&bytes);
            let mut bytes = far.output();
            flip(&mut bytes, message == 3);
            let near_step = near.handle(&bytes);
            prop_assert!(!matches!(near_step, NearStep::Done(_)));
            prop_assert!(message == 3 || !matches!(far_step, FarStep::Done(_)));
        }
    }
}
