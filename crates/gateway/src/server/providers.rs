//! Who decides about logins.
//!
//! A provider is handed the core's request and answers with a verdict, at once
//! where it can, later where somebody else has to be asked.

mod http;
mod shared_token;
pub(super) mod signed_token;
mod waiting;

use std::sync::Arc;

use crate::core::{AuthRequest, AuthVerdict, Ticket};

use super::config::AuthChoice;
use super::poller::Waker;

use http::HttpProvider;
use shared_token::SharedToken;
use signed_token::SignedToken;
pub(super) use waiting::Waiting;

/// The provider that the settings ask for.
#[derive(Debug)]
pub(super) enum Authenticator {
    /// Nobody is let in who has to ask.
    Nobody,
    /// One word for all.
    SharedToken(SharedToken),
    /// A signature.
    SignedToken(SignedToken),
    /// A service.
    Http(Arc<HttpProvider>),
}

impl Authenticator {
    /// The provider; `waker` is woken when a verdict has come later.
    pub(super) fn new(choice: &AuthChoice, waker: &Waker) -> Self {
        match choice {
            // Where everyone is let in the core does not ask.
            AuthChoice::Everyone | AuthChoice::Nobody => Self::Nobody,
            AuthChoice::SharedToken(token) => Self::SharedToken(SharedToken::new(token)),
            AuthChoice::SignedToken(key) => Self::SignedToken(SignedToken::new(key)),
            AuthChoice::Http { url, timeout } => {
                Self::Http(HttpProvider::start(url, *timeout, waker.clone()))
            }
        }
    }

    /// Whether it can be asked now: logins wait where they can still be
    /// cancelled, rather than with a provider that cannot keep up.
    pub(super) fn is_free(&self) -> bool {
        match self {
            Self::Http(provider) => provider.is_free(),
            _ => true,
        }
    }

    /// The verdict, where it is known at once; otherwise [`poll`](Self::poll) returns
    /// it later.
    pub(super) fn decide(&self, unix_seconds: u64, request: AuthRequest) -> Option<AuthVerdict> {
        match self {
            Self::Nobody => Some(AuthVerdict::WrongLogin),
            Self::SharedToken(token) => Some(token.decide(&request)),
            Self::SignedToken(key) => Some(key.decide(unix_seconds, &request)),
            Self::Http(provider) => provider.ask(request),
        }
    }

    /// Whether verdicts are still to come, or to be polled.
    pub(super) fn has_any_in_hand(&self) -> bool {
        match self {
            Self::Http(provider) => provider.has_any_in_hand(),
            _ => false,
        }
    }

    /// The next verdict that has come later.
    pub(super) fn poll(&self) -> Option<(Ticket, AuthVerdict)> {
        match self {
            Self::Http(provider) => provider.poll(),
            _ => None,
        }
    }
}
