//! What one player sees of the others, and how old it is.
//!
//! A thousand players who each see a thousand others keep a million entries,
//! and which of them is sent next is anybody's guess: an entry is as small
//! as can be, and lies where it is looked for first.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_units::Time;

use crate::sim::crowd::EntityId;
use crate::sim::scenario::MOST_TIERS;
use crate::sim::vector::Vector;
use crate::wire::ids;
use crate::wire::sight::Sighting;

/// The newest of an entity that a player knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Where it is, once the player has received it.
    pub place: Option<Vector>,
    /// The simulation's time of that state.
    pub at: Time,
    /// The tier at which the player is subscribed to it, where it has a
    /// channel of its own.
    pub tier: Option<usize>,
}

/// Everything one player knows of the others.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// In the order of their ids.
    entries: Vec<Entry>,
    /// Since when entities are known of whose place nothing is known yet.
    awaited: BTreeMap<EntityId, Time>,
    /// Who simulates the entities whose data says so.
    sources: BTreeMap<EntityId, Source>,
}

/// What is kept of one entity. Places come with 32 bits for each coordinate.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: EntityId,
    place: [f32; 3],
    at: Time,
    tier: Option<u8>,
    /// The player knows of it, rather than only being subscribed to it.
    is_known: bool,
    has_place: bool,
}

/// The server that reported an entity last.
#[derive(Clone, Copy, Debug)]
struct Source {
    number: u32,
    /// When the player received its state last.
    received_at: Time,
}

impl View {
    /// Learns that there is an entity.
    pub fn learn(&mut self, entity: EntityId, now: Time) {
        self.known(entity, now);
    }

    /// Forgets an entity; a subscription to it stays.
    pub fn forget(&mut self, entity: EntityId) {
        self.awaited.remove(&entity);
        self.sources.remove(&entity);
        if let Ok(index) = self.find(entity) {
            let entry = &mut self.entries[index];
            if entry.tier.is_some() {
                *entry = Entry {
                    tier: entry.tier,
                    ..Entry::of(entity)
                };
            } else {
                self.entries.remove(index);
            }
        }
    }

    /// The player is subscribed to an entity at a tier from now on. Returns
    /// the tier before.
    pub(crate) fn subscribe(&mut self, entity: EntityId, tier: usize) -> Option<usize> {
        debug_assert!(tier < MOST_TIERS, "no scenario has more");
        let index = self.place_of(entity);
        let before = self.entries[index].tier.replace(tier as u8);
        before.map(usize::from)
    }

    /// The player is not subscribed to an entity any more; what it knows of it
    /// stays.
    pub(crate) fn unsubscribe(&mut self, entity: EntityId) {
        if let Ok(index) = self.find(entity) {
            self.entries[index].tier = None;
            if !self.entries[index].is_known {
                self.entries.remove(index);
            }
        }
    }

    /// The tier at which the player is subscribed to an entity.
    pub(crate) fn tier(&self, entity: EntityId) -> Option<usize> {
        let index = self.find(entity).ok()?;
        self.entries[index].tier.map(usize::from)
    }

    /// Takes news of an entity. `at` is the simulation's time of the state.
    /// Returns how long the player received nothing of it, where another
    /// server than before sends now.
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
        let entry = self.known(entity, now);
        if let Some(at) = at {
            entry.at = entry.at.max(at);
        }
        if sighting.place.iter().any(Option::is_some) {
            for (received, coordinate) in sighting.place.into_iter().zip(&mut entry.place) {
                *coordinate = received.unwrap_or(*coordinate);
            }
            if !std::mem::replace(&mut entry.has_place, true) {
                self.awaited.remove(&entity);
            }
        }
        self.note_source(entity, sighting.by, now)
    }

    /// Takes over the places of another view, and how old they are, of entities
    /// that are not known here; without their subscriptions.
    pub(crate) fn take_places(&mut self, other: &Self) {
        for theirs in other.entries.iter().filter(|entry| entry.has_place) {
            let index = self.place_of(theirs.id);
            if !self.entries[index].is_known {
                self.entries[index] = Entry {
                    tier: None,
                    ..*theirs
                };
            }
        }
    }

    /// Forgets the entities with a place for which `keep` is false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(EntityId, Vector) -> bool) {
        let mut keep = |entry: &Entry| {
            let place = entry.seen().place;
            place.is_none_or(|place| keep(entry.id, place))
        };
        self.entries.retain(|entry| keep(entry));
    }

    /// Whether nothing is known of anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is known of an entity.
    #[must_use]
    pub fn seen(&self, entity: EntityId) -> Option<Seen> {
        let index = self.find(entity).ok()?;
        let entry = &self.entries[index];
        entry.is_known.then(|| entry.seen())
    }

    /// Everything known, in the order of ids.
    pub fn entities(&self) -> impl Iterator<Item = (EntityId, Seen)> {
        let known = self.entries.iter().filter(|entry| entry.is_known);
        known.map(|entry| (entry.id, entry.seen()))
    }

    /// Entities known for longer than `timeout` without a state of theirs.
    #[must_use]
    pub fn missing(&self, now: Time, timeout: Duration) -> usize {
        let since = self.awaited.values();
        since.filter(|&&since| now.since(since) > timeout).count()
    }

    /// The entry of an entity that is known, at the latest from now on.
    fn known(&mut self, entity: EntityId, now: Time) -> &mut Entry {
        let index = self.place_of(entity);
        let entry = &mut self.entries[index];
        if !std::mem::replace(&mut entry.is_known, true) {
            self.awaited.insert(entity, now);
        }
        entry
    }

    /// Notes who reported an entity. Returns how long nobody did, where another
    /// did before.
    fn note_source(&mut self, entity: EntityId, by: Option<u32>, now: Time) -> Option<Duration> {
        if self.sources.is_empty() && by.is_none() {
            return None;
        }
        let Some(source) = self.sources.get_mut(&entity) else {
            let received_at = now;
            let source = by.map(|number| {
                (
                    entity,
                    Source {
                        number,
                        received_at,
                    },
                )
            });
            self.sources.extend(source);
            return None;
        };
        let received_before = std::mem::replace(&mut source.received_at, now);
        let before = std::mem::replace(&mut source.number, by?);
        (before != source.number).then(|| now.since(received_before))
    }

    /// Where an entity's entry is, made if there is none.
    fn place_of(&mut self, entity: EntityId) -> usize {
        self.find(entity).unwrap_or_else(|index| {
            self.entries.insert(index, Entry::of(entity));
            index
        })
    }

    /// Where an entity's entry is, or where it would be.
    fn find(&self, entity: EntityId) -> Result<usize, usize> {
        let first = self.entries.first().ok_or(0_usize)?;
        // Who knows everybody has no gaps between ids.
        let guess = (entity.0.saturating_sub(first.id.0) / ids::EACH) as usize;
        match self.entries.get(guess) {
            Some(entry) if entry.id == entity => Ok(guess),
            _ => self.entries.binary_search_by_key(&entity, |entry| entry.id),
        }
    }
}

impl Entry {
    /// Of an entity of which nothing is known.
    fn of(id: EntityId) -> Self {
        Self {
            id,
            place: [0.0; 3],
            at: Time::ZERO,
            tier: None,
            is_known: false,
            has_place: false,
        }
    }

    fn seen(&self) -> Seen {
        let [x, y, z] = self.place.map(f64::from);
        Seen {
            place: self.has_place.then_some(Vector { x, y, z }),
            at: self.at,
            tier: self.tier.map(usize::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::ids::EntityKind;

    /// What may happen to a player's view of one entity.
    #[derive(Clone, Copy, Debug)]
    enum Happens {
        Learn,
        Forget,
        Subscribe(u8),
        Unsubscribe,
        See([Option<f32>; 3], Option<u32>, Option<u32>),
        Removed,
    }

    /// The same, said as plainly as can be.
    #[derive(Clone, Debug, Default)]
    struct Plain {
        known: BTreeMap<EntityId, PlainSeen>,
        tiers: BTreeMap<EntityId, usize>,
    }

    #[derive(Clone, Debug)]
    struct PlainSeen {
        since: Time,
        received_at: Time,
        place: Option<Vector>,
        at: Time,
        by: Option<u32>,
    }

    impl Plain {
        fn learn(&mut self, entity: EntityId, now: Time) -> &mut PlainSeen {
            self.known.entry(entity).or_insert(PlainSeen {
                since: now,
                received_at: now,
                place: None,
                at: Time::ZERO,
                by: None,
            })
        }

        fn see(
            &mut self,
            entity: EntityId,
            sighting: &Sighting,
            at: Option<Time>,
            now: Time,
        ) -> Option<Duration> {
            let seen = self.learn(entity, now);
            let [x, y, z] = sighting.place.map(|received| received.map(f64::from));
            if x.or(y).or(z).is_some() {
                let before = seen.place.unwrap_or_default();
                seen.place = Some(Vector {
                    x: x.unwrap_or(before.x),
                    y: y.unwrap_or(before.y),
                    z: z.unwrap_or(before.z),
                });
            }
            seen.at = seen.at.max(at.unwrap_or(Time::ZERO));
            let received_before = std::mem::replace(&mut seen.received_at, now);
            let by = sighting.by?;
            let before = seen.by.replace(by)?;
            (before != by).then(|| now.since(received_before))
        }
    }

    fn happens() -> impl Strategy<Value = Happens> {
        let coordinate = || proptest::option::of(-1e6_f32..1e6);
        let place = [coordinate(), coordinate(), coordinate()];
        let number = || proptest::option::of(0..3_u32);
        prop_oneof![
            2 => Just(Happens::Learn),
            1 => Just(Happens::Forget),
            2 => (0..3_u8).prop_map(Happens::Subscribe),
            1 => Just(Happens::Unsubscribe),
            6 => (place, number(), number()).prop_map(|(place, at, by)| Happens::See(place, at, by)),
            1 => Just(Happens::Removed),
        ]
    }

    proptest! {
        #[test]
        fn a_view_is_what_it_received(
            events in proptest::collection::vec((0..6_u32, any::<bool>(), happens()), 0..80),
        ) {
            let mut view = View::default();
            let mut plain = Plain::default();
            for (ms, (number, is_pawn, event)) in events.into_iter().enumerate() {
                let now = Time::from_millis(ms as u64);
                let entity = if is_pawn { EntityKind::Pawn.of(number) } else { EntityId(number) };
                match event {
                    Happens::Learn => {
                        view.learn(entity, now);
                        plain.learn(entity, now);
                    }
                    Happens::Forget => {
                        view.forget(entity);
                        plain.known.remove(&entity);
                    }
                    Happens::Subscribe(tier) => {
                        let tier = usize::from(tier);
                        let before = plain.tiers.insert(entity, tier);
                        prop_assert_eq!(view.subscribe(entity, tier), before);
                    }
                    Happens::Unsubscribe => {
                        view.unsubscribe(entity);
                        plain.tiers.remove(&entity);
                    }
                    Happens::See(place, at, by) => {
                        let sighting = Sighting { place, by, ..Sighting::default() };
                        let at = at.map(|at| Time::from_secs(u64::from(at)));
                        let gap = plain.see(entity, &sighting, at, now);
                        prop_assert_eq!(view.see(entity, &sighting, at, now), gap);
                    }
                    Happens::Removed => {
                        let sighting = Sighting { removed: true, ..Sighting::default() };
                        prop_assert_eq!(view.see(entity, &sighting, None, now), None);
                        plain.known.remove(&entity);
                    }
                }
                let received: Vec<_> = view.entities().collect();
                let wanted: Vec<_> = plain
                    .known
                    .iter()
                    .map(|(&entity, seen)| {
                        let tier = plain.tiers.get(&entity).copied();
                        (entity, Seen { place: seen.place, at: seen.at, tier })
                    })
                    .collect();
                prop_assert_eq!(received, wanted);
                let seen = plain.known.contains_key(&entity);
                prop_assert_eq!(view.seen(entity).is_some(), seen);
                prop_assert_eq!(view.tier(entity), plain.tiers.get(&entity).copied());
                let timeout = Duration::from_millis(5);
                let unplaced = plain.known.values().filter(|seen| seen.place.is_none());
                let missing = unplaced.filter(|seen| now.since(seen.since) > timeout).count();
                prop_assert_eq!(view.missing(now, timeout), missing);
            }
        }
    }

    #[test]
    fn an_entry_fills_half_a_cache_line() {
        assert_eq!(size_of::<Entry>(), 32);
    }
}
