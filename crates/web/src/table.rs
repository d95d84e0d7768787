//! The connections there are, oldest first, and who makes room when there are
//! too many.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use crate::connection::Connection;

/// Connections at once. Each is a file, and a request or an answer.
pub(crate) const PLACES: usize = 128;

/// Connections, oldest first, and where each comes from.
#[derive(Debug)]
pub(crate) struct Table<C> {
    entries: Vec<(IpAddr, C)>,
}

impl<C> Default for Table<C> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
}

impl<C> Table<C> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &C> {
        self.entries.iter().map(|(_, connection)| connection)
    }

    /// Takes in one more, for which another may have to go.
    pub(crate) fn insert(&mut self, address: IpAddr, connection: C) {
        if self.entries.len() >= PLACES {
            self.evict();
        }
        self.entries.push((address, connection));
    }

    /// Lets the oldest connection of the address go that has most.
    pub(crate) fn evict(&mut self) {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (address, _) in &self.entries {
            *counts.entry(*address).or_default() += 1;
        }
        let most = counts.iter().max_by_key(|(_, count)| **count);
        if let Some((&address, _)) = most
            && let Some(oldest) = self.entries.iter().position(|(of, _)| *of == address)
        {
            self.entries.remove(oldest);
        }
    }
}

impl Table<Connection> {
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
        self.entries.retain_mut(|(_, connection)| {
            let is_ready = ready.get(at).copied().unwrap_or_default();
            at += 1;
            let is_due = connection.deadline().is_some_and(|due| due <= now);
            !(is_ready || is_due) || advance(connection)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_with_most_connections_makes_room_with_its_oldest() {
        let (rude, honest) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut table = Table::default();
        table.insert(honest, usize::MAX);
        for n in 0..10 * PLACES {
            table.insert(rude, n);
        }
        assert_eq!(table.entries.len(), PLACES);
        assert_eq!(table.entries[0], (honest, usize::MAX));
        assert_eq!(table.entries.last(), Some(&(rude, 10 * PLACES - 1)));
        assert_eq!(table.entries[1].1, 10 * PLACES - (PLACES - 1));
    }
}
