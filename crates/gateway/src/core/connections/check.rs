//! What must hold of a connection manager's tables between any two steps.

use crate::core::check::{Admitted, BrokenInvariant, Members, hold};
use crate::core::ids::Peer;

use super::ConnectionManager;

impl ConnectionManager {
    /// Whether the tables agree with each other: numbers lead to the
    /// connections that have them, groups are in order, what waits stays within
    /// its limit, counters are right.
    ///
    /// # Errors
    ///
    /// [`BrokenInvariant`]: what does not hold.
    pub fn check_invariants(&self) -> Result<(), BrokenInvariant> {
        let mut open = [0; 2];
        let mut numbered = 0;
        for key in self.table.keys() {
            let Some(connection) = self.table.get(key) else {
                continue;
            };
            open[connection.peer.index()] += 1;
            hold!(
                !connection.admitted || connection.id.is_some(),
                "slot {} was let in without a number",
                key.slot
            );
            let found = connection
                .id
                .map(|id| self.by_id.get(&id) == Some(&key.slot));
            numbered += usize::from(found == Some(true));
            hold!(
                found != Some(false) || connection.closing.is_some(),
                "{:?} does not lead to slot {}",
                connection.id,
                key.slot
            );
            hold!(
                connection.conflation.is_none() || connection.closing.is_none(),
                "slot {} is merged for although it is being closed",
                key.slot
            );
        }
        hold!(
            self.by_id.len() == numbered,
            "{} numbers lead to {numbered} connections",
            self.by_id.len()
        );
        for peer in Peer::ALL {
            hold!(
                self.counters.of(peer).open == open[peer.index()],
                "{} of {peer} counted as open, {} are",
                self.counters.of(peer).open,
                open[peer.index()]
            );
        }
        self.groups.check()
    }

    /// Those that were let in and are not being closed.
    pub(in crate::core) fn admitted(&self) -> Admitted {
        self.table
            .keys()
            .filter_map(|key| self.table.get(key))
            .filter(|connection| connection.admitted && connection.closing.is_none())
            .filter_map(|connection| Some((connection.id?, connection.key)))
            .collect()
    }

    /// The members of all groups.
    pub(in crate::core) fn members(&self) -> Members {
        self.groups.members()
    }
}
