//! Address validation and authentication on a data socket, stateless until it is
//! done.
//!
//! ```text
//! client -> server  hello      magic, nonce, tag, padding        80 bytes
//! server -> client  challenge  magic, nonce, cookie              40 bytes
//! client -> server  proof      magic, nonce, cookie, tag         72 bytes
//! server -> client  welcome    magic, tag                        40 bytes
//! ```
//!
//! The tags are made with a key that only the two ends of one control connection
//! hold: datagrams without a valid tag are not answered. The cookie is a tag over
//! the hello's source address: only who receives at that address can return it,
//! so a captured hello that is replayed from a forged address causes no more than
//! one answer, shorter than the hello. The server keeps no state of an
//! unauthenticated address.
//!
//! The same four messages open a data connection over TCP.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lagometer_units::Time;

use crate::tag::{Key, TAG_BYTES};

const MAGIC: &[u8; 8] = b"LAGODATA";
const NONCE_BYTES: usize = 16;
const COOKIE_BYTES: usize = 16;
/// The length of a hello.
pub(crate) const HELLO_BYTES: usize = 80;
/// The length of a challenge and of a welcome.
pub(crate) const ANSWER_BYTES: usize = MAGIC.len() + NONCE_BYTES + COOKIE_BYTES;
/// The length of a proof.
pub(crate) const PROOF_BYTES: usize = MAGIC.len() + NONCE_BYTES + COOKIE_BYTES + TAG_BYTES;

/// Answers a second to hellos that are ours, on one data listener.
const ANSWERS_PER_SECOND: f64 = 100.0;
/// Answers that may be saved up.
const MOST_ANSWERS: f64 = 20.0;

/// After which time the local end says it again; doubles from time to time.
const FIRST_TIMEOUT: Duration = Duration::from_millis(200);
const MOST_TIMEOUT: Duration = Duration::from_secs(1);

/// The remote end's part: watches a data listener.
#[derive(Debug)]
pub(crate) struct Gate {
    key: Key,
    cookies: Key,
    answers_left: f64,
    counted_at: Time,
}

/// What a datagram at the data listener means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Nothing: not a word.
    Nothing,
    /// It is to be answered with this.
    Challenge(Vec<u8>),
    /// The address has proved itself and is to be notified with this.
    Proved(Vec<u8>),
}

impl Gate {
    /// Watches a data listener whose key is `key`; `cookies` are bytes that nobody
    /// else knows.
    pub(crate) fn new(key: Key, cookies: &[u8; 32]) -> Self {
        Self {
            key,
            cookies: Key::new(cookies),
            answers_left: MOST_ANSWERS,
            counted_at: Time::ZERO,
        }
    }

    /// What `datagram`, which came from `from`, means.
    pub(crate) fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Reply {
        match datagram.len() {
            HELLO_BYTES => self.hello(now, from, datagram),
            PROOF_BYTES => self.proof(from, datagram),
            _ => Reply::Nothing,
        }
    }

    fn hello(&mut self, now: Time, from: SocketAddr, hello: &[u8]) -> Reply {
        let Some((magic, nonce, rest)) = split(hello) else {
            return Reply::Nothing;
        };
        if magic != MAGIC || !self.key.accepts("hello", &[nonce], &rest[..TAG_BYTES]) {
            return Reply::Nothing;
        }
        if !self.may_answer(now) {
            return Reply::Nothing;
        }
        let cookie = self.cookie(from, nonce);
        Reply::Challenge([MAGIC, nonce, &cookie].concat())
    }

    fn proof(&self, from: SocketAddr, proof: &[u8]) -> Reply {
        let Some((magic, nonce, rest)) = split(proof) else {
            return Reply::Nothing;
        };
        let (cookie, tag) = rest.split_at(COOKIE_BYTES);
        if magic == MAGIC
            && self.key.accepts("proof", &[nonce, cookie], tag)
            && cookie == self.cookie(from, nonce)
        {
            let tag = self.key.tag("welcome", &[nonce]);
            Reply::Proved([&MAGIC[..], &tag].concat())
        } else {
            Reply::Nothing
        }
    }

    fn cookie(&self, from: SocketAddr, nonce: &[u8]) -> [u8; COOKIE_BYTES] {
        let port = from.port().to_be_bytes();
        let tag = match from.ip() {
            IpAddr::V4(ip) => self.cookies.tag("cookie", &[&ip.octets(), &port, nonce]),
            IpAddr::V6(ip) => self.cookies.tag("cookie", &[&ip.octets(), &port, nonce]),
        };
        let mut cookie = [0; COOKIE_BYTES];
        cookie.copy_from_slice(&tag[..COOKIE_BYTES]);
        cookie
    }

    fn may_answer(&mut self, now: Time) -> bool {
        let passed = now.since(self.counted_at).as_secs_f64();
        self.counted_at = self.counted_at.max(now);
        self.answers_left = (self.answers_left + passed * ANSWERS_PER_SECOND).min(MOST_ANSWERS);
        if self.answers_left < 1.0 {
            return false;
        }
        self.answers_left -= 1.0;
        true
    }
}

/// Magic, nonce and the rest.
fn split(datagram: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (magic, rest) = datagram.split_at_checked(MAGIC.len())?;
    let (nonce, rest) = rest.split_at_checked(NONCE_BYTES)?;
    Some((magic, nonce, rest))
}

/// The local end's part: hellos until it is let in.
#[derive(Debug)]
pub(crate) struct Hello {
    key: Key,
    nonce: [u8; NONCE_BYTES],
    /// What is said now: the hello, then the proof.
    saying: Vec<u8>,
    due: Time,
    timeout: Duration,
    is_in: bool,
}

impl Hello {
    /// Begins to hello at a data listener whose key is `key`.
    pub(crate) fn new(key: Key, nonce: [u8; NONCE_BYTES]) -> Self {
        let tag = key.tag("hello", &[&nonce]);
        let mut saying = [&MAGIC[..], &nonce, &tag].concat();
        saying.resize(HELLO_BYTES, 0);
        Self {
            key,
            nonce,
            saying,
            due: Time::ZERO,
            timeout: FIRST_TIMEOUT,
            is_in: false,
        }
    }

    /// The datagram to send now, if one is due.
    pub(crate) fn poll(&mut self, now: Time) -> Option<&[u8]> {
        if self.is_in || now < self.due {
            return None;
        }
        self.due = now + self.timeout;
        self.timeout = (self.timeout * 2).min(MOST_TIMEOUT);
        Some(&self.saying)
    }

    /// When there is something to send next.
    pub(crate) fn deadline(&self) -> Time {
        self.due
    }

    /// Whether the data listener is open.
    pub(crate) fn is_in(&self) -> bool {
        self.is_in
    }

    /// Takes a datagram from the remote end.
    pub(crate) fn handle(&mut self, datagram: &[u8]) {
        if datagram.len() != ANSWER_BYTES || !datagram.starts_with(MAGIC) {
            return;
        }
        let rest = &datagram[MAGIC.len()..];
        if self.key.accepts("welcome", &[&self.nonce], rest) {
            self.is_in = true;
        } else if let Some(cookie) = rest.strip_prefix(&self.nonce)
            && self.saying.len() == HELLO_BYTES
        {
            let tag = self.key.tag("proof", &[&self.nonce, cookie]);
            self.saying = [MAGIC, &self.nonce[..], cookie, &tag].concat();
            self.due = Time::ZERO;
            self.timeout = FIRST_TIMEOUT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends() -> (Gate, Hello) {
        let key = Key::new(b"the listener's key");
        (Gate::new(key.clone(), &[3; 32]), Hello::new(key, [4; 16]))
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 77, 0, 1], port))
    }

    #[test]
    fn a_holder_of_the_key_is_let_in_and_never_sent_more_than_it_sent() {
        let (mut gate, mut hello) = ends();
        let said = hello.poll(Time::ZERO).unwrap().to_vec();
        let Reply::Challenge(challenge) = gate.handle(Time::ZERO, address(1), &said) else {
            panic!("a hello is answered");
        };
        assert!(challenge.len() <= said.len());
        hello.handle(&challenge);
        let said = hello.poll(Time::ZERO).unwrap().to_vec();
        let Reply::Proved(welcome) = gate.handle(Time::ZERO, address(1), &said) else {
            panic!("a proof opens");
        };
        assert!(welcome.len() <= said.len());
        hello.handle(&welcome);
        assert!(hello.is_in());
        assert_eq!(hello.poll(Time::from_secs(9)), None);
    }

    #[test]
    fn what_is_lost_is_said_again_later_and_later() {
        let (_, mut hello) = ends();
        let mut sent = Vec::new();
        for millis in 0..4000 {
            if hello.poll(Time::from_millis(millis)).is_some() {
                sent.push(millis);
            }
        }
        assert_eq!(sent, [0, 200, 600, 1400, 2400, 3400]);
    }

    #[test]
    fn a_proof_is_worth_nothing_at_another_address_or_listener() {
        let (mut gate, mut hello) = ends();
        let said = hello.poll(Time::ZERO).unwrap().to_vec();
        let Reply::Challenge(challenge) = gate.handle(Time::ZERO, address(1), &said) else {
            panic!("a hello is answered");
        };
        hello.handle(&challenge);
        let proof = hello.poll(Time::ZERO).unwrap().to_vec();
        assert_eq!(gate.handle(Time::ZERO, address(2), &proof), Reply::Nothing);
        let mut other = Gate::new(Key::new(b"another listener's key"), &[3; 32]);
        assert_eq!(other.handle(Time::ZERO, address(1), &proof), Reply::Nothing);
    }

    #[test]
    fn overheard_hellos_sent_again_and_again_are_answered_a_few_times() {
        let (mut gate, mut hello) = ends();
        let said = hello.poll(Time::ZERO).unwrap().to_vec();
        let answers = (0..10_000_u64)
            .map(|index| gate.handle(Time::from_micros(index * 100), address(9), &said))
            .filter(|reply| matches!(reply, Reply::Challenge(_)))
            .count();
        assert!((100..=121).contains(&answers), "{answers} in a second");
    }

    proptest! {
        #[test]
        fn garbage_is_never_answered(
            bytes in proptest::collection::vec(any::<u8>(), 0..120),
            length in prop_oneof![Just(HELLO_BYTES), Just(PROOF_BYTES), 0_usize..120],
            with_magic: bool,
        ) {
            let (mut gate, mut hello) = ends();
            let mut bytes = bytes;
            bytes.resize(length, 0);
            if with_magic && length >= MAGIC.len() {
                bytes[..MAGIC.len()].copy_from_slice(MAGIC);
            }
            prop_assert_eq!(gate.handle(Time::ZERO, address(1), &bytes), Reply::Nothing);
            hello.handle(&bytes);
            prop_assert!(!hello.is_in());
        }
    }
}
