//! What a crowd does, and how its players are spread over rooms.

use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Who updates the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Every player updates its own state.
    Client,
    /// One server updates all; players send it messages.
    Server,
}

/// What a crowd does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Where game servers connect.
    pub(crate) servers: SocketAddr,
    /// Where players connect.
    pub(crate) clients: SocketAddr,
    /// How many players.
    pub(crate) players: usize,
    /// Channels the players are spread over; a single one is GLOBAL.
    pub(crate) rooms: usize,
    /// Who updates.
    pub(crate) mode: Mode,
    /// Updates of each state a second; 0 for players who only listen.
    pub(crate) rate_hz: u32,
    /// Milliseconds between two windows.
    pub(crate) fan_out_ms: u32,
    /// How many players check every state they get. Of the others bytes are counted.
    pub(crate) checked: usize,
    /// Traffic before it counts.
    pub(crate) warm_up: Duration,
    /// Traffic that counts.
    pub(crate) measured: Duration,
}

impl Plan {
    /// The most players a room has.
    pub(crate) fn room_size(&self) -> usize {
        self.players.div_ceil(self.rooms)
    }

    /// The room of a player and its id there, from 1.
    pub(super) fn place_of(&self, player: usize) -> (usize, usize) {
        (player % self.rooms, player / self.rooms + 1)
    }

    /// Whether a player checks what it gets: those who do are spread over all.
    pub(super) fn is_checked(&self, player: usize) -> bool {
        player * self.checked % self.players < self.checked
    }

    pub(super) fn members_of(&self, room: usize) -> usize {
        (self.players + self.rooms - 1 - room) / self.rooms
    }
}
