//! All characters of one server, frame by frame.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sim::body::{Body, Movement};
use crate::sim::ground::{Grid, Ground};
use crate::sim::vector::Vector;

/// The network id of a character, which is its entity channel's too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

/// The characters that one server simulates, on a ground that it may share
/// with characters of other servers.
#[derive(Clone, Debug)]
pub struct Crowd {
    ground: Arc<Ground>,
    movement: Movement,
    own: BTreeMap<EntityId, Body>,
    /// Characters of other servers: in the way, but not ours to move.
    foreign: BTreeMap<EntityId, Vector>,
    /// Everybody's places in this frame, and where to find them.
    places: Vec<(EntityId, Vector)>,
    grid: Grid,
}

impl Crowd {
    /// Nobody yet.
    #[must_use]
    pub fn new(ground: Arc<Ground>, movement: Movement) -> Self {
        Self {
            grid: Grid::new(ground.half_side_cm()),
            ground,
            movement,
            own: BTreeMap::new(),
            foreign: BTreeMap::new(),
            places: Vec::new(),
        }
    }

    /// Takes over a character; one that was known as another server's is ours
    /// from now on.
    pub fn take(&mut self, id: EntityId, body: Body) {
        self.foreign.remove(&id);
        self.own.insert(id, body);
    }

    /// Gives a character up, for another server or for good.
    pub fn give_up(&mut self, id: EntityId) -> Option<Body> {
        self.own.remove(&id)
    }

    /// Learns where another server's character is; ours are not moved by it.
    pub fn see_foreign(&mut self, id: EntityId, place: Vector) {
        if !self.own.contains_key(&id) {
            self.foreign.insert(id, place);
        }
    }

    /// Forgets another server's character.
    pub fn forget_foreign(&mut self, id: EntityId) {
        self.foreign.remove(&id);
    }

    /// One of our characters, to turn it or let it jump.
    pub fn body_mut(&mut self, id: EntityId) -> Option<&mut Body> {
        self.own.get_mut(&id)
    }

    /// Lets one of our characters take off.
    pub fn jump(&mut self, id: EntityId) {
        if let Some(body) = self.own.get_mut(&id) {
            body.jump(&self.movement);
        }
    }

    /// Moves everybody by a frame of `seconds`. Who meets an obstacle, the
    /// edge or another character stops and turns round.
    ///
    /// In the order of their ids: each sees those before it where they are now
    /// and the others where they were.
    pub fn frame(&mut self, seconds: f64) {
        self.note_places();
        let Self {
            ground,
            movement,
            own,
            places,
            grid,
            ..
        } = self;
        let radius_cm = movement.radius_cm;
        for (index, (&id, body)) in own.iter_mut().enumerate() {
            let step = body.step(movement, seconds);
            // Who overlaps already, perhaps because two servers let them, may
            // part.
            let blocked = !ground.free(step.place, radius_cm)
                || grid
                    .near(step.place, 3.0 * radius_cm)
                    .map(|other| places[other as usize])
                    .any(|(other, place)| {
                        let apart = place.ground_distance_squared(step.place);
                        other != id
                            && apart < 4.0 * radius_cm * radius_cm
                            && apart < place.ground_distance_squared(body.place)
                    });
            if blocked {
                body.turn_round(step);
            } else {
                body.go(step);
            }
            places[index].1 = body.place;
        }
    }

    /// Our characters, in the order of their ids.
    pub fn own(&self) -> impl Iterator<Item = (EntityId, &Body)> {
        self.own.iter().map(|(&id, body)| (id, body))
    }

    /// One of our characters.
    #[must_use]
    pub fn body(&self, id: EntityId) -> Option<&Body> {
        self.own.get(&id)
    }

    /// How many are ours.
    #[must_use]
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether none is ours.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Whether a character at `place` would overlap one of ours or a known one
    /// of another server.
    #[must_use]
    pub fn occupied(&self, place: Vector) -> bool {
        let nearest = 4.0 * self.movement.radius_cm * self.movement.radius_cm;
        let own = self.own.values().map(|body| body.place);
        own.chain(self.foreign.values().copied())
            .any(|other| other.ground_distance_squared(place) < nearest)
    }

    /// Writes everybody's place down, ours first and in their order.
    fn note_places(&mut self) {
        self.places.clear();
        let own = self.own.iter().map(|(&id, body)| (id, body.place));
        let foreign = self.foreign.iter().map(|(&id, &place)| (id, place));
        self.places.extend(own.chain(foreign));
        self.grid.clear();
        for (index, (_, place)) in self.places.iter().enumerate() {
            // A character moves less than its reach in `frame` in one frame,
            // so the square it is in at first will do.
            self.grid.put(index as u32, *place, *place);
        }
    }
}

#[cfg(test)]
mod tests;
