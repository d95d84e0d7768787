//! The channel manager with what it needs around it: who decides about logins, and
//! the log.

use lagometer_units::Time;

use crate::core::bus::{ToChannels, ToConnections};
use crate::core::{
    AuthVerdict, ChannelCounters, ChannelManager, ChannelSettings, ConnNumbers, Shard, SideId,
    SnapshotError, Ticket,
};
use crate::nodes::Replayed;

use super::clock::Clock;
use super::config::{AuthChoice, Config};
use super::journal::Journal;
use super::poller::Waker;
use super::providers::{Authenticator, Waiting};
use super::randomness::unforeseeable;

/// So few logins that wait are kept even if nobody wants them any more.
const FORGET_AT: usize = 64;

/// Owns all channels.
#[derive(Debug)]
pub(super) struct ChannelWorker {
    side: ChannelManager,
    authenticator: Authenticator,
    /// What the settings ask for it.
    auth: AuthChoice,
    /// Earlier providers that have logins in hand still.
    retired: Vec<Authenticator>,
    /// Logins that nobody was asked about yet.
    waiting: Waiting,
    /// At so many of them it is looked which are wanted still.
    forget_at: usize,
    journal: Journal,
    clock: Clock,
    /// How long the last fan-out tick took, in milliseconds.
    tick_at_ms: f64,
}

impl ChannelWorker {
    pub(super) fn new(config: &Config, shard: Shard, clock: Clock, waker: &Waker) -> Self {
        let settings = settings(config, shard, clock.unix_ns_at_zero());
        Self::with(ChannelManager::new(settings), config, clock, waker)
    }

    /// With the channels that another node has written down.
    pub(super) fn restore(
        config: &Config,
        shard: Shard,
        clock: Clock,
        waker: &Waker,
        bytes: &[u8],
    ) -> Result<Self, SnapshotError> {
        let settings = settings(config, shard, clock.unix_ns_at_zero());
        let side = ChannelManager::restore(settings, bytes)?;
        Ok(Self::with(side, config, clock, waker))
    }

    /// One of several shards: in which epoch its channels begin.
    pub(super) fn begin_in_epoch(&mut self, epoch: u64) {
        self.side.begin_in_epoch(epoch);
    }

    fn with(side: ChannelManager, config: &Config, clock: Clock, waker: &Waker) -> Self {
        Self {
            side,
            authenticator: Authenticator::new(&config.auth, waker),
            auth: config.auth.clone(),
            retired: Vec::new(),
            waiting: Waiting::default(),
            forget_at: FORGET_AT,
            journal: Journal::default(),
            clock,
            tick_at_ms: 0.0,
        }
    }

    /// Takes other settings. Logins that the provider there was has in hand it
    /// decides still; those that wait are for the new one.
    pub(super) fn reload(&mut self, config: &Config, waker: &Waker) {
        self.side.set_settings(config.channels.clone());
        if config.auth != self.auth {
            let provider = Authenticator::new(&config.auth, waker);
            self.auth = config.auth.clone();
            self.retired
                .push(std::mem::replace(&mut self.authenticator, provider));
        }
    }

    /// Writes the channels down; `None`, and a line in the log, if that cannot be done.
    pub(super) fn snapshot(&self) -> Option<Vec<u8>> {
        let written = self.side.snapshot();
        written.map_err(|error| tracing::warn!("{error}")).ok()
    }

    /// It goes on with channels that were another node's, whose clock is so many nanoseconds
    /// ahead of the clock here.
    pub(super) fn go_on(&mut self, ahead_ns: i64) {
        let unix_ns_at_zero = self.clock.unix_ns_at_zero().saturating_sub(ahead_ns);
        self.side.set_unix_ns_at_zero(unix_ns_at_zero);
        self.side.ask_again();
    }

    /// Does what the owner of the channels has done, as a replica of it. Nobody is asked
    /// about its logins, and the log is the owner's.
    pub(super) fn replay(&mut self, at: Time, what: Replayed) {
        match what {
            Replayed::Message(side, message) => self.side.handle(at, side, message),
            Replayed::Deadline => self.side.handle_deadline(at),
            Replayed::Verdict(ticket, verdict) => self.side.answer_auth(at, ticket, verdict),
        }
        while self.side.poll_auth_request().is_some() {}
        while self.side.poll_event().is_some() {}
    }

    pub(super) fn handle(&mut self, now: Time, from: SideId, message: ToChannels) {
        self.side.handle(now, from, message);
    }

    /// Lets the provider decide what is to be decided, and keeps the log.
    pub(super) fn settle(&mut self, now: Time) {
        self.settle_and_report(now, |_, _| {});
    }

    /// Likewise; each verdict is reported before it is acted on.
    pub(super) fn settle_and_report(
        &mut self,
        now: Time,
        mut report: impl FnMut(Ticket, AuthVerdict),
    ) {
        while let Some(request) = self.side.poll_auth_request() {
            if let Some(dropped) = self.waiting.push(request) {
                report(dropped, AuthVerdict::Failed);
                self.side.answer_auth(now, dropped, AuthVerdict::Failed);
            }
        }
        for provider in self.retired.iter().chain([&self.authenticator]) {
            while let Some((ticket, verdict)) = provider.poll() {
                report(ticket, verdict);
                self.side.answer_auth(now, ticket, verdict);
            }
        }
        self.retired.retain(Authenticator::has_any_in_hand);
        while self.authenticator.is_free()
            && let Some(request) = self.waiting.pop(|ticket| self.side.wants(ticket))
        {
            let ticket = request.ticket;
            let unix_seconds = Clock::unix_seconds_now();
            if let Some(verdict) = self.authenticator.decide(unix_seconds, request) {
                report(ticket, verdict);
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

    /// Whether [`handle_deadline`](Self::handle_deadline) does anything.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.side.next_deadline().is_some_and(|due| due <= now)
    }

    pub(super) fn handle_deadline(&mut self, now: Time) {
        if self.is_due(now) {
            // The channels' clock may be another node's.
            let began = self.clock.now();
            self.side.handle_deadline(now);
            self.tick_at_ms = self.clock.now().since(began).as_secs_f64() * 1e3;
        }
    }

    /// Whether clients may come.
    pub(super) fn has_owner(&self) -> bool {
        self.side.has_global_owner()
    }

    /// What was counted, and how long the last fan-out tick took in milliseconds.
    pub(super) fn report(&self) -> (ChannelCounters, f64) {
        (self.side.counters(), self.tick_at_ms)
    }
}

/// What a channel manager is given.
fn settings(config: &Config, shard: Shard, unix_ns_at_zero: i64) -> ChannelSettings {
    ChannelSettings {
        unix_ns_at_zero,
        shard,
        // Games in development want numbers they can read.
        conn_numbers: if config.channels.development {
            ConnNumbers::Counted
        } else {
            ConnNumbers::Drawn(unforeseeable())
        },
        ..config.channels.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::core::bus::AuthAttempt;
    use crate::core::{ConnKey, Peer};
    use crate::server::config::FileConfig;
    use crate::server::poller::{Events, Poller, waker};
    use crate::server::providers::signed_token::tests::{KEY, sign};

    /// A login of a client.
    fn attempt(player: &str, login_token: String) -> ToChannels {
        ToChannels::Auth(AuthAttempt {
            key: ConnKey {
                slot: 0,
                generation: 1,
            },
            peer: Peer::Client,
            address: None,
            is_address_forgeable: false,
            stub_id: 0,
            broadcast: 0,
            player: player.to_owned(),
            login_token,
        })
    }

    fn config(text: &str) -> Config {
        let config = FileConfig::parse("test", text).unwrap();
        config.resolve(1).unwrap()
    }

    /// Whether a client gets in with a token that expires then, where the
    /// gateway started while its machine's calendar was an hour slow.
    fn gets_in(expires_at: u64) -> bool {
        let data = tempfile::tempdir().unwrap();
        let secret = data.path().join("key");
        std::fs::write(&secret, KEY).unwrap();
        let config = config(&format!(
            "[auth]\nprovider = \"signed-token\"\nsecret_file = \"{}\"\n",
            secret.display()
        ));
        let poller = Poller::new().unwrap();
        let waker = waker(&poller, 0).unwrap();
        let clock = Clock::started_too_early_by(Duration::from_hours(1));
        let mut worker = ChannelWorker::new(&config, Shard::WHOLE, clock, &waker);
        let claims = format!(r#"{{"sub":"eve","exp":{expires_at}}}"#);
        let login_token = sign(r#"{"alg":"HS256"}"#, &claims);
        let now = Time::from_secs(1);
        worker.handle(now, SideId(0), attempt("eve", login_token));
        worker.settle(now);
        match worker.poll_bus() {
            Some((_, ToConnections::AuthAnswer { admitted, .. })) => admitted,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn logins_that_a_provider_has_in_hand_are_decided_after_another_has_its_place() {
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let config_of = |url: &str| {
            config(&format!(
                "[auth]\nprovider = \"http\"\nurl = \"{url}\"\ntimeout = \"1min\"\n"
            ))
        };
        let first = config_of(&format!("http://{}/", service.local_addr().unwrap()));
        let poller = Poller::new().unwrap();
        let waker = waker(&poller, 0).unwrap();
        let mut worker = ChannelWorker::new(&first, Shard::WHOLE, Clock::start(), &waker);
        let now = Time::from_secs(1);
        worker.handle(now, SideId(0), attempt("eve", "secret".to_owned()));
        worker.settle(now);
        // It is with the service when the settings change.
        let (mut asked, _) = service.accept().unwrap();
        worker.reload(&config_of("http://127.0.0.1:9/"), &waker);
        assert_eq!(worker.retired.len(), 1);
        let mut buffer = [0; 4096];
        while !buffer.contains(&b'}') {
            let _ = asked.read(&mut buffer).unwrap();
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        asked.write_all(answer).unwrap();
        let timeout = Some(Duration::from_secs(30));
        poller.wait(timeout, &mut Events::new()).unwrap();
        worker.settle(now);
        let answered = worker.poll_bus();
        assert!(
            matches!(
                answered,
                Some((_, ToConnections::AuthAnswer { admitted: true, .. }))
            ),
            "{answered:?}"
        );
        assert!(worker.retired.is_empty());
    }

    #[test]
    fn a_provider_whose_settings_stay_stays() {
        let poller = Poller::new().unwrap();
        let waker = waker(&poller, 0).unwrap();
        let same = config("[auth]\nprovider = \"http\"\nurl = \"http://127.0.0.1:9/\"\n");
        let mut worker = ChannelWorker::new(&same, Shard::WHOLE, Clock::start(), &waker);
        worker.reload(&same, &waker);
        assert!(worker.retired.is_empty());
    }

    #[test]
    fn a_token_that_expired_after_the_clock_was_set_right_lets_nobody_in() {
        let now = Clock::unix_seconds_now();
        assert!(gets_in(now + 600));
        assert!(!gets_in(now - 600));
    }
}
