//! Whether every character is simulated by exactly one server at every
//! instant.
//!
//! Servers say when they begin and end to simulate a character; the [`AuthorityChecker`]
//! holds what they say against each other. Between the old server's last frame
//! with a character that has left its part and the new server's first word
//! about it nobody simulates it: that is a handover's flight, and is timed.

mod checker;

use std::time::Duration;

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::sim::crowd::EntityId;

pub use checker::{AuthorityChecker, AuthoritySums, LONGEST_FLIGHT};

/// A server's word that it begins or ends to simulate a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The instant from which it holds.
    pub at: Time,
    /// How far the clock that gave that instant may have been off the run's.
    pub within: Duration,
    /// The character's pawn.
    pub entity: EntityId,
    /// The server, by its number among those that simulate.
    pub server: u32,
    /// What happened.
    pub what: Authority,
}

/// What became of a character at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Authority {
    /// It has left the server's part, and another is to go on with it.
    Gave,
    /// It has left the world.
    Dropped,
    /// The server has broken off, and with it what it simulated.
    Lost,
    /// The server simulates it from now on.
    Took,
}

/// A server that has broken off: nobody has what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When it was reported last.
    pub at: Time,
    /// The server, by its number among those that simulate.
    pub server: u32,
}

/// What servers say of whom they simulate, up to an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All that these servers claim of the time before this instant is here or
    /// was in an earlier report.
    pub until: Time,
    /// In any order.
    pub claims: Vec<Claim>,
    /// Those that have broken off.
    pub losses: Vec<Loss>,
}
