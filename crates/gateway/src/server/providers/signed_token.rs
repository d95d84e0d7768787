//! Login tokens that somebody who knows the key has signed: JSON Web Tokens
//! with HS256 (RFC 7515, 7519), which every language has a library for.
//!
//! `sub` has to be the player that wants in, `exp` is required, `nbf` is kept
//! to where there is one. No other algorithm is taken, whatever the header
//! says.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::Deserialize;

use crate::core::{AuthRequest, AuthVerdict};

/// The longest token that is looked at.
const TOKEN_BYTES: usize = 8 << 10;

/// The key of the signatures.
#[derive(Debug)]
pub(in crate::server) struct SignedToken {
    key: hmac::Key,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    exp: u64,
    nbf: Option<u64>,
}

impl SignedToken {
    pub(super) fn new(key: &[u8]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    pub(super) fn decide(&self, unix_seconds: u64, request: &AuthRequest) -> AuthVerdict {
        match self.claims(&request.login_token) {
            Some(claims) if claims.sub != request.player => AuthVerdict::WrongPlayer,
            Some(claims)
                if unix_seconds < claims.exp
                    && claims.nbf.is_none_or(|begin| begin <= unix_seconds) =>
            {
                AuthVerdict::Admit
            }
            _ => AuthVerdict::WrongLogin,
        }
    }

    /// What the token says, if it is signed.
    fn claims(&self, token: &str) -> Option<Claims> {
        if token.len() > TOKEN_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.key, signed.as_bytes(), &signature).ok()?;
        let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        if header.alg != "HS256" {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

#[cfg(test)]
pub(in crate::server) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::{ChannelManager, ChannelSettings, ConnectionManager, ConnectionSettings};
    use crate::core::{Peer, SideId};
    use lagometer_units::Time;

    pub(in crate::server) const KEY: &[u8] = b"a key for tests";

    pub(in crate::server) fn sign(header: &str, claims: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", encode(header), encode(claims));
        let key = hmac::Key::new(hmac::HMAC_SHA256, KEY);
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// A request as the core makes it: its ticket has no other maker.
    pub(in crate::server) fn request(player: &str, login_token: &str) -> AuthRequest {
        AuthRequest {
            player: player.to_owned(),
            login_token: login_token.to_owned(),
            ..requests(1).remove(0)
        }
    }

    /// As many requests, each of a connection of its own.
    pub(in crate::server) fn requests(count: usize) -> Vec<AuthRequest> {
        let mut connections = ConnectionManager::new(ConnectionSettings::default());
        let mut channels = ChannelManager::new(ChannelSettings::default());
        for _ in 0..count {
            let key = connections.open(Time::ZERO, Peer::Client, None).unwrap();
            let login = b"CH\x00\x12\x00\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";
            connections.receive(Time::ZERO, key, login);
        }
        while let Some(message) = connections.poll_bus() {
            channels.handle(Time::ZERO, SideId(0), message);
        }
        std::iter::from_fn(|| channels.poll_auth_request()).collect()
    }

    #[test]
    fn a_token_of_rfc_7515_is_read() {
        // Appendix A.1 of RFC 7515, with its key.
        let key = URL_SAFE_NO_PAD
            .decode(
                "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
            )
            .unwrap();
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9\
                     .eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ\
                     .dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let provider = SignedToken::new(&key);
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        assert!(hmac::verify(&provider.key, signed.as_bytes(), &signature).is_ok());
        // It names no player, and so lets none in.
        let verdict = provider.decide(1_300_819_000, &request("joe", token));
        assert_eq!(verdict, AuthVerdict::WrongLogin);
    }

    #[test]
    fn only_the_player_named_in_time_and_signed_is_let_in() {
        let provider = SignedToken::new(KEY);
        let good = sign(r#"{"alg":"HS256"}"#, r#"{"sub":"eve","exp":100,"nbf":10}"#);
        let decide = |at, player: &str, token: &str| provider.decide(at, &request(player, token));
        assert_eq!(decide(99, "eve", &good), AuthVerdict::Admit);
        assert_eq!(decide(100, "eve", &good), AuthVerdict::WrongLogin);
        assert_eq!(decide(9, "eve", &good), AuthVerdict::WrongLogin);
        assert_eq!(decide(99, "adam", &good), AuthVerdict::WrongPlayer);
        let none = sign(r#"{"alg":"none"}"#, r#"{"sub":"eve","exp":100}"#);
        assert_eq!(decide(99, "eve", &none), AuthVerdict::WrongLogin);
        let mut other = good.clone().into_bytes();
        let last = other.len() - 10;
        other[last] ^= 1;
        let other = String::from_utf8(other).unwrap();
        assert_eq!(decide(99, "eve", &other), AuthVerdict::WrongLogin);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(token in ".{0,200}") {
            prop_assert!(SignedToken::new(KEY).claims(&token).is_none());
        }
    }
}
