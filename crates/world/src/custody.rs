//! Whether every character is simulated by exactly one server at every
//! instant.
//!
//! Servers say when they begin and end to simulate a character; the ledger
//! holds what they say against each other. Between the old server's last frame
//! with a character that has left its part and the new server's first word
//! about it nobody simulates it: that is a handover's flight, and is timed.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_stats::Distribution;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::crowd::EntityId;

/// A flight that takes longer is no handover under way any more: the character
/// is nobody's. Some frames of a server whose machine is busy.
pub const LONGEST_FLIGHT: Duration = Duration::from_secs(1);

/// A server's word that it begins or ends to simulate a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The instant from which it holds.
    pub at: Time,
    /// The character's pawn.
    pub entity: EntityId,
    /// The server, by its number among those that simulate.
    pub server: u32,
    /// What happened.
    pub what: Custody,
}

/// What became of a character at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Custody {
    /// It has left the server's part, and another is to go on with it.
    Gave,
    /// It has left the world.
    Dropped,
    /// The server has broken off, and with it what it simulated.
    Lost,
    /// The server simulates it from now on.
    Took,
}

/// What the claims of all servers come to.
#[derive(Clone, Debug)]
pub struct Ledger {
    held: BTreeMap<EntityId, Holding>,
    flights: Distribution,
    sums: CustodySums,
}

/// Sums of a [`Ledger`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustodySums {
    /// Handovers begun: a server let go of a character for another.
    pub begun: u64,
    /// Handovers completed: another took it up.
    pub completed: u64,
    /// Times a server took up what another still simulated.
    pub doubled: u64,
    /// Times a character was nobody's for longer than a handover may fly.
    pub orphaned: u64,
}

/// Who has a character.
#[derive(Clone, Debug)]
enum Holding {
    /// One server, or by mistake several.
    By(Vec<u32>),
    /// Nobody since then: handed over, or its server broke off.
    Nobody { since: Time, handed_over: bool },
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            flights: Distribution::new(),
            sums: CustodySums::default(),
        }
    }
}

impl Ledger {
    /// Takes claims of any servers. Claims up to the latest of them must have
    /// come before the next call, or with it; within a call they may come in
    /// any order.
    pub fn take(&mut self, mut claims: Vec<Claim>) {
        claims.sort_by_key(|claim| (claim.at, claim.what, claim.entity, claim.server));
        for claim in claims {
            self.note(&claim);
        }
    }

    /// A server has broken off at `at`: nobody has what it had.
    pub fn lose(&mut self, server: u32, at: Time) {
        let had: Vec<EntityId> = self
            .held
            .iter()
            .filter(|(_, holding)| matches!(holding, Holding::By(by) if by.contains(&server)))
            .map(|(&entity, _)| entity)
            .collect();
        for entity in had {
            self.note(&Claim {
                at,
                entity,
                server,
                what: Custody::Lost,
            });
        }
    }

    /// Begins to count anew; who has what stays known, and handovers under way
    /// count as begun.
    pub fn begin_counting(&mut self) {
        let under_way = |holding: &&Holding| {
            matches!(
                holding,
                Holding::Nobody {
                    handed_over: true,
                    ..
                }
            )
        };
        self.flights = Distribution::new();
        self.sums = CustodySums {
            begun: self.held.values().filter(under_way).count() as u64,
            ..CustodySums::default()
        };
    }

    /// What was counted.
    #[must_use]
    pub fn sums(&self) -> CustodySums {
        self.sums
    }

    /// How long handovers took, from the old server's last frame to when the
    /// new one had the character.
    #[must_use]
    pub fn flights(&self) -> &Distribution {
        &self.flights
    }

    /// Characters that nobody has at `now`, those in a handover's flight left
    /// out.
    #[must_use]
    pub fn orphans(&self, now: Time) -> usize {
        let is_orphan = |holding: &Holding| match holding {
            Holding::By(by) => by.is_empty(),
            Holding::Nobody { since, .. } => now.since(*since) > LONGEST_FLIGHT,
        };
        self.held.values().filter(|held| is_orphan(held)).count()
    }

    fn note(&mut self, claim: &Claim) {
        let Claim {
            at, entity, server, ..
        } = *claim;
        match claim.what {
            Custody::Took => {
                let taken = Holding::By(vec![server]);
                match self.held.insert(entity, taken) {
                    None => {}
                    Some(Holding::Nobody { since, handed_over }) => {
                        let flight = at.since(since);
                        self.sums.orphaned += u64::from(flight > LONGEST_FLIGHT);
                        if handed_over {
                            self.sums.completed += 1;
                            self.flights.record(flight);
                        }
                    }
                    Some(Holding::By(mut others)) => {
                        others.retain(|&other| other != server);
                        self.sums.doubled += u64::from(!others.is_empty());
                        others.push(server);
                        self.held.insert(entity, Holding::By(others));
                    }
                }
            }
            Custody::Gave | Custody::Lost | Custody::Dropped => {
                let Some(Holding::By(by)) = self.held.get_mut(&entity) else {
                    return;
                };
                by.retain(|&holder| holder != server);
                if !by.is_empty() {
                    return;
                }
                if claim.what == Custody::Dropped {
                    self.held.remove(&entity);
                    return;
                }
                let handed_over = claim.what == Custody::Gave;
                self.sums.begun += u64::from(handed_over);
                let since = at;
                self.held
                    .insert(entity, Holding::Nobody { since, handed_over });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAWN: EntityId = EntityId(0x8_0000);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn claim(ms: u64, server: u32, what: Custody) -> Claim {
        Claim {
            at: at(ms),
            entity: PAWN,
            server,
            what,
        }
    }

    #[test]
    fn a_handover_is_begun_flies_and_is_completed() {
        let mut ledger = Ledger::default();
        // In whatever order the servers are asked.
        ledger.take(vec![
            claim(140, 2, Custody::Took),
            claim(0, 1, Custody::Took),
            claim(100, 1, Custody::Gave),
        ]);
        let sums = ledger.sums();
        assert_eq!((sums.begun, sums.completed), (1, 1));
        assert_eq!((sums.doubled, sums.orphaned), (0, 0));
        let flight = ledger.flights().at_share(1.0).as_millis();
        assert!((40..=41).contains(&flight), "{flight}");
        assert_eq!(ledger.orphans(at(9_999)), 0);
    }

    #[test]
    fn two_servers_at_once_are_one_too_many() {
        let mut ledger = Ledger::default();
        ledger.take(vec![claim(0, 1, Custody::Took)]);
        ledger.take(vec![claim(50, 2, Custody::Took)]);
        ledger.take(vec![claim(60, 1, Custody::Gave)]);
        assert_eq!(ledger.sums().doubled, 1);
        // The second still has it.
        assert_eq!(ledger.sums().begun, 0);
        assert_eq!(ledger.orphans(at(9_999)), 0);
    }

    #[test]
    fn what_nobody_takes_up_is_an_orphan() {
        let mut ledger = Ledger::default();
        ledger.take(vec![
            claim(0, 1, Custody::Took),
            claim(100, 1, Custody::Gave),
        ]);
        assert_eq!(ledger.orphans(at(1_000)), 0, "it may still fly");
        assert_eq!(ledger.orphans(at(1_101)), 1);
        ledger.take(vec![claim(2_000, 2, Custody::Took)]);
        assert_eq!(ledger.orphans(at(9_999)), 0);
        assert_eq!(ledger.sums().orphaned, 1);
    }

    #[test]
    fn a_handover_under_way_is_counted_whole() {
        let mut ledger = Ledger::default();
        ledger.take(vec![
            claim(0, 1, Custody::Took),
            claim(100, 1, Custody::Gave),
        ]);
        ledger.begin_counting();
        ledger.take(vec![claim(120, 2, Custody::Took)]);
        assert_eq!((ledger.sums().begun, ledger.sums().completed), (1, 1));
    }

    #[test]
    fn who_breaks_off_has_nothing_and_who_leaves_is_nobodys() {
        let mut ledger = Ledger::default();
        ledger.take(vec![claim(0, 1, Custody::Took)]);
        ledger.lose(1, at(10));
        assert_eq!(ledger.orphans(at(2_000)), 1);
        ledger.take(vec![claim(500, 1, Custody::Took)]);
        let sums = ledger.sums();
        assert_eq!((sums.begun, sums.doubled), (0, 0), "no handover");
        ledger.take(vec![claim(600, 1, Custody::Dropped)]);
        assert_eq!(ledger.orphans(at(9_999)), 0);
    }
}
