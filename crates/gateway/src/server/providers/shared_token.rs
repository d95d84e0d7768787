//! One login token that all clients share.

use ring::hmac;

use crate::core::{AuthRequest, AuthVerdict};

/// The word, in a form that is compared in a time that reveals nothing of it.
#[derive(Debug)]
pub(in crate::server) struct SharedToken {
    key: hmac::Key,
    tag: hmac::Tag,
}

/// What both words are signed for: any text does, as long as it is the same.
const MARK: &[u8] = b"the shared token of a channel gateway";

impl SharedToken {
    pub(super) fn new(token: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, MARK);
        let tag = hmac::sign(&key, token.as_bytes());
        Self { key, tag }
    }

    pub(super) fn decide(&self, request: &AuthRequest) -> AuthVerdict {
        if request.player.is_empty() {
            return AuthVerdict::WrongPlayer;
        }
        let token = request.login_token.as_bytes();
        match hmac::verify(&self.key, token, self.tag.as_ref()) {
            Ok(()) => AuthVerdict::Admit,
            Err(_) => AuthVerdict::WrongLogin,
        }
    }
}
