//! The channel side with what it needs around it: who decides about logins, and
//! the log.

use lagometer_units::Time;

use crate::core::bus::{ToChannels, ToConnections};
use crate::core::{ChannelCounters, ChannelSettings, ChannelSide, SideId};

use super::clock::Clock;
use super::config::Config;
use super::journal;
use super::poller::Waker;
use super::providers::Authenticator;

/// Owns all channels.
#[derive(Debug)]
pub(super) struct ChannelWorker {
    side: ChannelSide,
    authenticator: Authenticator,
    clock: Clock,
    /// How long the last beat took, in milliseconds.
    beat_ms: f64,
}

impl ChannelWorker {
    pub(super) fn new(config: &Config, clock: Clock, waker: &Waker) -> Self {
        Self {
            side: ChannelSide::new(ChannelSettings {
                unix_ns_at_zero: clock.unix_ns_at_zero(),
                ..config.channels.clone()
            }),
            authenticator: Authenticator::new(&config.auth, waker),
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
            let unix_ns = self.clock.unix_ns_at_zero().unsigned_abs() + now.as_nanos();
            let ticket = request.ticket;
            if let Some(verdict) = self.authenticator.decide(unix_ns / 1_000_000_000, request) {
                self.side.answer_auth(now, ticket, verdict);
            }
        }
        while let Some((ticket, verdict)) = self.authenticator.poll() {
            self.side.answer_auth(now, ticket, verdict);
        }
        while let Some(event) = self.side.poll_event() {
            journal::write(&event);
        }
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
