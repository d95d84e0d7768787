//! What one player sees of the others, and how old it is.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_units::Time;

use crate::crowd::EntityId;
use crate::sight::Sighting;
use crate::vector::Vector;

/// The newest of an entity that a player knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// When the player learned that there is such an entity.
    pub known_since: Time,
    /// Where it is, once the player has been told.
    pub place: Option<Vector>,
    /// The simulation's time of that state.
    pub at: Time,
    /// When the player was told last.
    pub told_at: Time,
    /// The number of the server that simulates it, where its data says so.
    pub by: Option<u32>,
}

/// Everything one player knows of the others.
#[derive(Clone, Debug, Default)]
pub struct View {
    entities: BTreeMap<EntityId, Seen>,
}

impl View {
    /// Learns that there is an entity.
    pub fn learn(&mut self, entity: EntityId, now: Time) {
        self.entities.entry(entity).or_insert(Seen {
            known_since: now,
            place: None,
            at: Time::ZERO,
            told_at: now,
            by: None,
        });
    }

    /// Forgets an entity.
    pub fn forget(&mut self, entity: EntityId) {
        self.entities.remove(&entity);
    }

    /// Takes news of an entity. `at` is the simulation's time of the state.
    /// Returns how long the player was told nothing of it, where another
    /// server than before tells now.
    pub(crate) fn see(
        &mut self,
        entity: EntityId,
        sighting: &Sighting,
        at: Option<Time>,
        now: Time,
    ) -> Option<Duration> {
        if sighting.removed {
            self.forget(entity);
            return None;
        }
        self.learn(entity, now);
        let seen = self.entities.get_mut(&entity)?;
        if sighting.place.iter().any(Option::is_some) {
            sighting.apply(seen.place.get_or_insert_default());
        }
        if let Some(at) = at {
            seen.at = seen.at.max(at);
        }
        let told_before = std::mem::replace(&mut seen.told_at, now);
        let by = sighting.by?;
        let before = seen.by.replace(by)?;
        (before != by).then(|| now.since(told_before))
    }

    /// Everything known is as of `at`: a channel that holds all entities says
    /// of those it does not name that they are as they were.
    pub(crate) fn all_as_of(&mut self, at: Time) {
        for seen in self
            .entities
            .values_mut()
            .filter(|seen| seen.place.is_some())
        {
            seen.at = seen.at.max(at);
        }
    }

    /// What is known of an entity.
    #[must_use]
    pub fn seen(&self, entity: EntityId) -> Option<&Seen> {
        self.entities.get(&entity)
    }

    /// Everything known, in the order of ids.
    pub fn entities(&self) -> impl Iterator<Item = (EntityId, &Seen)> {
        self.entities.iter().map(|(&entity, seen)| (entity, seen))
    }

    /// Entities known for longer than `patience` without a state of theirs.
    #[must_use]
    pub fn missing(&self, now: Time, patience: Duration) -> usize {
        self.entities
            .values()
            .filter(|seen| seen.place.is_none() && now.since(seen.known_since) > patience)
            .count()
    }
}
