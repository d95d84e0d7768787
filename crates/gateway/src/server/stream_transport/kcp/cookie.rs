//! The gateway's part of the exchange that proves an address: cookies that it
//! need not remember, for only it can make them.

use std::net::{IpAddr, SocketAddr};

use lagometer_transport::kcp::Cookie;
use lagometer_units::Time;
use ring::hmac;
use ring::rand::SystemRandom;

/// A cookie is good in the span in which it was made and in the next.
const SPAN_MS: u64 = 5_000;

/// Bytes of the digest that fit a cookie. Guessing 64 bits takes more datagrams
/// than a path carries in ten seconds.
const DIGEST_BYTES: usize = 8;

/// The key of a port's cookies, which nobody else knows. It lives as long as the
/// port.
#[derive(Debug)]
pub(super) struct CookieKey(hmac::Key);

impl CookieKey {
    /// A key that follows from nothing.
    ///
    /// # Panics
    ///
    /// If the operating system has no randomness to give.
    pub(super) fn generate() -> Self {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Self(key.expect("the operating system gives randomness"))
    }

    /// The cookie for a peer and a conversation.
    pub(super) fn cookie(&self, now: Time, peer: SocketAddr, conversation: u32) -> Cookie {
        let span = (now.as_millis() / SPAN_MS) as u32;
        self.of_span(span, peer, conversation)
    }

    /// Whether a cookie is one of the last made for that peer and conversation.
    pub(super) fn is_good(
        &self,
        now: Time,
        peer: SocketAddr,
        conversation: u32,
        cookie: Cookie,
    ) -> bool {
        let [a, b, c, d, ..] = cookie;
        let span = u32::from_le_bytes([a, b, c, d]);
        let age = ((now.as_millis() / SPAN_MS) as u32).wrapping_sub(span);
        let good = self.of_span(span, peer, conversation);
        age <= 1 && is_equal(&good, &cookie)
    }

    /// A number for a conversation's clock that only its true peer sees.
    pub(super) fn clock_offset_ms(&self, now: Time, peer: SocketAddr, conversation: u32) -> u32 {
        let at = now.as_nanos().to_le_bytes();
        let [a, b, c, d, ..] = self.digest(b"clock", &at, peer, conversation);
        u32::from_le_bytes([a, b, c, d])
    }

    fn of_span(&self, span: u32, peer: SocketAddr, conversation: u32) -> Cookie {
        let span = span.to_le_bytes();
        let mut cookie = Cookie::default();
        cookie[..4].copy_from_slice(&span);
        cookie[4..].copy_from_slice(&self.digest(b"cookie", &span, peer, conversation));
        cookie
    }

    fn digest(
        &self,
        what_for: &[u8],
        at: &[u8],
        peer: SocketAddr,
        conversation: u32,
    ) -> [u8; DIGEST_BYTES] {
        let mut digest = hmac::Context::with_key(&self.0);
        digest.update(what_for);
        digest.update(at);
        match peer.ip() {
            IpAddr::V4(address) => digest.update(&address.octets()),
            IpAddr::V6(address) => digest.update(&address.octets()),
        }
        digest.update(&peer.port().to_le_bytes());
        digest.update(&conversation.to_le_bytes());
        let tag = digest.sign();
        let mut first = [0; DIGEST_BYTES];
        first.copy_from_slice(&tag.as_ref()[..DIGEST_BYTES]);
        first
    }
}

/// Compares all bytes, however early they differ: the time it takes tells
/// nothing.
fn is_equal(one: &Cookie, other: &Cookie) -> bool {
    let different = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    different == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_conversation_and_ten_seconds_alone() {
        let key = CookieKey::generate();
        let at = Time::from_millis;
        let peer: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let other: SocketAddr = "192.0.2.1:5001".parse().unwrap();
        let cookie = key.cookie(at(4_999), peer, 7);
        assert!(key.is_good(at(4_999), peer, 7, cookie));
        assert!(key.is_good(at(9_999), peer, 7, cookie));
        assert!(!key.is_good(at(10_000), peer, 7, cookie));
        assert!(!key.is_good(at(4_999), other, 7, cookie));
        assert!(!key.is_good(at(4_999), peer, 8, cookie));
        assert!(!CookieKey::generate().is_good(at(4_999), peer, 7, cookie));
        for byte in 0..cookie.len() {
            let mut forged = cookie;
            forged[byte] ^= 1;
            assert!(!key.is_good(at(4_999), peer, 7, forged), "byte {byte}");
        }
    }
}
