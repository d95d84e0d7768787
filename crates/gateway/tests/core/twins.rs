//! Two channel managers that are handed the same, one of which is again and again written
//! down and read back: whatever a test does, both have to do the same.
//!
//! So every schedule of every test here is one of what a manager that was written and read
//! back does from then on.

use std::collections::VecDeque;
use std::ops::Deref;

use lagometer_gateway::core::bus::{ToChannels, ToConnections};
use lagometer_gateway::core::{
    AuthRequest, AuthVerdict, ChannelManager, ChannelSettings, Event, SideId, Ticket,
};
use lagometer_units::{SplitMix64, Time};

/// The other is read back after so many turns, one to so many of them.
const TURNS: u64 = 60;

/// One more turn for so many bytes: reading back is work.
const BYTES_PER_TURN: u64 = 200;

/// One that goes on, and one that was written and read back.
#[derive(Debug)]
pub(crate) struct Twins {
    one: ChannelManager,
    other: ChannelManager,
    settings: ChannelSettings,
    events: VecDeque<Event>,
    draw: SplitMix64,
    /// The other is read back after so many turns.
    turns_left: u64,
}

impl Twins {
    pub(crate) fn new(settings: ChannelSettings) -> Self {
        let new = || ChannelManager::new(settings.clone());
        Self {
            one: new(),
            other: new(),
            settings,
            events: VecDeque::new(),
            draw: SplitMix64::new(1),
            turns_left: 0,
        }
    }

    pub(crate) fn handle(&mut self, now: Time, from: SideId, message: ToChannels) {
        self.one.handle(now, from, message.clone());
        self.other.handle(now, from, message);
    }

    pub(crate) fn handle_deadline(&mut self, now: Time) {
        self.one.handle_deadline(now);
        self.other.handle_deadline(now);
    }

    pub(crate) fn answer_auth(&mut self, now: Time, ticket: Ticket, verdict: AuthVerdict) {
        self.one.answer_auth(now, ticket, verdict);
        self.other.answer_auth(now, ticket, verdict);
    }

    pub(crate) fn poll_auth_request(&mut self) -> Option<AuthRequest> {
        let request = self.one.poll_auth_request();
        assert_eq!(request, self.other.poll_auth_request());
        request
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.take_events();
        self.events.pop_front()
    }

    pub(crate) fn poll_bus(&mut self) -> Option<(SideId, ToConnections)> {
        let message = self.one.poll_bus();
        assert_eq!(message, self.other.poll_bus());
        assert_eq!(self.one.next_deadline(), self.other.next_deadline());
        if message.is_none() {
            self.turn();
        }
        message
    }

    fn take_events(&mut self) {
        while let Some(event) = self.one.poll_event() {
            assert_eq!(Some(&event), self.other.poll_event().as_ref());
            self.events.push_back(event);
        }
        assert_eq!(self.other.poll_event(), None);
    }

    /// Nothing is on the way.
    fn turn(&mut self) {
        if self.turns_left > 0 {
            self.turns_left -= 1;
            return;
        }
        self.take_events();
        let written = self.one.snapshot().expect("it is written");
        assert!(
            written == self.other.snapshot().expect("it is written"),
            "they have come to something else"
        );
        let other = ChannelManager::restore(self.settings.clone(), &written);
        self.other = other.expect("it is read back");
        let turns = self.draw.next_u64() % TURNS;
        self.turns_left = turns + written.len() as u64 / BYTES_PER_TURN;
    }

    /// What is written of it now.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        self.one.snapshot().expect("it is written")
    }

    pub(crate) fn settings(&self) -> &ChannelSettings {
        &self.settings
    }
}

impl Deref for Twins {
    type Target = ChannelManager;

    fn deref(&self) -> &ChannelManager {
        &self.one
    }
}
