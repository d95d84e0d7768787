//! The channel side with what it needs around it: who decides about logins, and
//! the log.

use lagometer_units::Time;

use crate::core::bus::{ToChannels, ToConnections};
use crate::core::{
    AuthVerdict, ChannelCounters, ChannelSettings, ChannelSide, ConnNumbers, SideId,
};

use super::clock::Clock;
use super::config::Config;
use super::journal::Journal;
use super::poller::Waker;
use super::providers::{Authenticator, Waiting};
use super::randomness::unforeseeable;

/// So few logins that wait are kept even if nobody wants them any more.
const FORGET_AT: usize = 64;

/// Owns all channels.
#[derive(Debug)]
pub(super) struct ChannelWorker {
    side: ChannelSide,
    authenticator: Authenticator,
    /// Logins that nobody was asked about yet.
    waiting: Waiting,
    /// At so many of them it is looked which are wanted still.
    forget_at: usize,
    journal: Journal,
    clock: Clock,
    /// How long the last beat took, in milliseconds.
    beat_ms: f64,
}

impl ChannelWorker {
    pub(super) fn new(config: &Config, clock: Clock, waker: &Waker) -> Self {
        Self {
            side: ChannelSide::new(ChannelSettings {
                unix_ns_at_zero: clock.unix_ns_at_zero(),
                // Games in development want numbers they can read.
                conn_numbers: if config.channels.development {
                    ConnNumbers::Counted
                } else {
                    ConnNumbers::Drawn(unforeseeable())
                },
                ..config.channels.clone()
            }),
            authenticator: Authenticator::new(&config.auth, waker),
            waiting: Waiting::default(),
            forget_at: FORGET_AT,
            journal: Journal::default(),
            clock,
            beat_ms: 0.0,
        }
    }

    /// Takes other settings.
    pub(super) fn reload(&mut self, config: &Config, waker: &Waker) {
        self.side.set_settings(config.channels.clone());
        self.authenticator = Authenticator::new(&config.auth, waker);
    }

    pub(super) fn handle(&mut self, now: Time, from: SideId, message: ToChannels) {
        self.side.handle(now, from, message);
    }

    /// Lets the provider decide what is to be decided, and keeps the log.
    pub(super) fn settle(&mut self, now: Time) {
        while let Some(request) = self.side.poll_auth_request() {
            if let Some(dropped) = self.waiting.push(request) {
                self.side.answer_auth(now, dropped, AuthVerdict::Failed);
            }
        }
        while let Some((ticket, verdict)) = self.authenticator.poll() {
            self.side.answer_auth(now, ticket, verdict);
        }
        while self.authenticator.is_free()
            && let Some(request) = self.waiting.pop(|ticket| self.side.wants(ticket))
        {
            let ticket = request.ticket;
            let unix_seconds = Clock::unix_seconds_now();
            if let Some(verdict) = self.authenticator.decide(unix_seconds, request) {
                self.side.answer_auth(now, ticket, verdict);
            }
        }
        if self.waiting.len() >= self.forget_at {
            self.waiting.retain(|ticket| self.side.wants(ticket));
            self.forget_at = FORGET_AT.max(2 * self.waiting.len());
        }
        while let Some(event) = self.side.poll_event() {
            self.journal.write(now, &event);
        }
        self.journal.settle(now);
    }

    pub(super) fn poll_bus(&mut self) -> Option<(SideId, ToConnections)> {
        self.side.poll_bus()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.side.next_deadline()
    }

    pub(super) fn handle_deadline(&mut self, now: Time) {
        if self.side.next_deadline().is_some_and(|due| due <= now) {
            self.side.handle_deadline(now);
            self.beat_ms = self.clock.now().since(now).as_secs_f64() * 1e3;
        }
    }

    /// Whether clients may come.
    pub(super) fn has_owner(&self) -> bool {
        self.side.has_global_owner()
    }

    /// What was counted, and how long the last beat took in milliseconds.
    pub(super) fn report(&self) -> (ChannelCounters, f64) {
        (self.side.counters(), self.beat_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::bus::AuthAttempt;
    use crate::core::{ConnKey, Peer};
    use crate::server::config::FileConfig;
    use crate::server::poller::{Poller, waker};
    use crate::server::providers::signed_token::tests::{KEY, sign};

    /// Whether a client gets in with a token that expires then, where the
    /// gateway started while its machine's calendar was an hour slow.
    fn gets_in(expires_at: u64) -> bool {
        let data = tempfile::tempdir().unwrap();
        let secret = data.path().join("key");
        std::fs::write(&secret, KEY).unwrap();
        let text = format!(
            "[auth]\nprovider = \"signed-token\"\nsecret_file = \"{}\"\n",
            secret.display()
        );
        let config = FileConfig::parse("test", &text).unwrap();
        let config = config.resolve(1).unwrap();
        let poller = Poller::new().unwrap();
        let waker = waker(&poller, 0).unwrap();
        let clock = Clock::started_too_early_by(Duration::from_hours(1));
        let mut worker = ChannelWorker::new(&config, clock, &waker);
        let claims = format!(r#"{{"sub":"eve","exp":{expires_at}}}"#);
        let attempt = AuthAttempt {
            key: ConnKey {
                slot: 0,
                generation: 1,
            },
            peer: Peer::Client,
            address: None,
            is_address_forgeable: false,
            stub_id: 0,
            broadcast: 0,
            player: "eve".to_owned(),
            login_token: sign(r#"{"alg":"HS256"}"#, &claims),
        };
        let now = Time::from_secs(1);
        worker.handle(now, SideId(0), ToChannels::Auth(attempt));
        worker.settle(now);
        match worker.poll_bus() {
            Some((_, ToConnections::AuthAnswer { admitted, .. })) => admitted,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_token_that_expired_after_the_clock_was_set_right_lets_nobody_in() {
        let now = Clock::unix_seconds_now();
        assert!(gets_in(now + 600));
        assert!(!gets_in(now - 600));
    }
}
