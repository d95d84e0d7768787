//! The connections there are, and whose turn it is.

use std::net::IpAddr;
use std::time::Instant;

use lagometer_limits::Places;

use crate::connection::Connection;

/// Connections at once. Each is a file, and a request or an answer.
const PLACES: usize = 128;

/// Connections, oldest first. One more than there are places takes the place of
/// the oldest of the address that has most.
#[derive(Debug)]
pub(crate) struct Table {
    places: Places<Connection>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            places: Places::new(PLACES),
        }
    }
}

impl Table {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.places.iter()
    }

    /// Takes in one more, for which another may have to go.
    pub(crate) fn insert(&mut self, address: IpAddr, connection: Connection) {
        drop(self.places.take(address, connection));
    }

    /// Lets the oldest connection of the address go that has most.
    pub(crate) fn evict(&mut self) {
        drop(self.places.evict());
    }

    /// When the first of them runs out of time.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.iter().filter_map(Connection::deadline).min()
    }

    /// Advances those that are ready or out of time, and forgets those that
    /// are over.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        ready: &[bool],
        mut advance: impl FnMut(&mut Connection) -> bool,
    ) {
        let mut at = 0;
        self.places.retain(|connection| {
            let is_ready = ready.get(at).copied().unwrap_or_default();
            at += 1;
            let is_due = connection.deadline().is_some_and(|due| due <= now);
            !(is_ready || is_due) || advance(connection)
        });
    }
}
