//! What of a character's state is to be sent: what differs from what was sent
//! last, component by component, as the engine's replicators do.

use lagometer_protocol::messages::unrealpb::{ActorState, CharacterState, FRepMovement, FVector};

use crate::sim::body::Body;
use crate::sim::vector::Vector;

/// Smaller differences are not sent: the engine's own tolerance.
const TOLERANCE: f32 = 0.001;

/// The engine's number for walking.
const WALKING: u32 = 1;
/// The engine's number for falling, which jumping is too.
const FALLING: u32 = 3;

/// What the others have been sent of one character.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    location: Option<[f32; 3]>,
    velocity: Option<[f32; 3]>,
    rotation: Option<[f32; 3]>,
    movement_mode: Option<u32>,
}

impl Replica {
    /// What the others know of a character whose states are these.
    pub fn as_sent(actor: &ActorState, character: Option<&CharacterState>) -> Self {
        let movement = actor.replicated_movement.as_ref();
        let components = |vector: Option<&FVector>| {
            let vector = vector?;
            Some([vector.x?, vector.y?, vector.z?])
        };
        Self {
            location: components(movement.and_then(|it| it.location.as_ref())),
            velocity: components(movement.and_then(|it| it.linear_velocity.as_ref())),
            rotation: components(movement.and_then(|it| it.rotation.as_ref())),
            movement_mode: character.and_then(|character| character.movement_mode),
        }
    }

    /// Where the others were last sent that it is.
    #[must_use]
    pub fn place(&self) -> Option<Vector> {
        let [x, y, z] = self.location?.map(f64::from);
        Some(Vector { x, y, z })
    }

    /// What is to be sent of the actor itself, where anything is; from then on
    /// it counts as sent.
    pub fn actor_changes(&mut self, body: &Body) -> Option<ActorState> {
        let location = changes(&mut self.location, components(body.place));
        let velocity = changes(&mut self.velocity, components(body.speed));
        let rotation = changes(&mut self.rotation, [0.0, body.yaw.degrees() as f32, 0.0]);
        if location.is_none() && velocity.is_none() && rotation.is_none() {
            return None;
        }
        Some(ActorState {
            replicated_movement: Some(FRepMovement {
                linear_velocity: velocity,
                location,
                rotation,
                ..FRepMovement::default()
            }),
            ..ActorState::default()
        })
    }

    /// What is to be sent of it as a character: whether it walks or falls,
    /// where that changed.
    pub fn character_changes(&mut self, body: &Body) -> Option<CharacterState> {
        let mode = if body.airborne() { FALLING } else { WALKING };
        if self.movement_mode.replace(mode) == Some(mode) {
            return None;
        }
        Some(CharacterState {
            movement_mode: Some(mode),
            ..CharacterState::default()
        })
    }
}

fn components(vector: Vector) -> [f32; 3] {
    [vector.x as f32, vector.y as f32, vector.z as f32]
}

/// The components that differ from what was sent; all of them the first time.
fn changes(sent: &mut Option<[f32; 3]>, now: [f32; 3]) -> Option<FVector> {
    let before = sent.replace(now);
    let mut changed = [None; 3];
    for axis in 0..3 {
        let differs = before.is_none_or(|before| (before[axis] - now[axis]).abs() > TOLERANCE);
        if differs {
            changed[axis] = Some(now[axis]);
        } else if let (Some(sent), Some(before)) = (sent.as_mut(), before) {
            // Else small steps would add up unseen.
            sent[axis] = before[axis];
        }
    }
    let [x, y, z] = changed;
    changed
        .iter()
        .any(Option::is_some)
        .then_some(FVector { x, y, z })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::vector::Yaw;
    use lagometer_protocol::messages::tpspb::EntityChannelData;

    fn body(x: f64) -> Body {
        Body {
            place: Vector::on_ground(x, 123.0),
            speed: Vector::on_ground(600.0, 0.0),
            yaw: Yaw::new(0.0),
        }
    }

    fn encoded_len(changes: ActorState) -> usize {
        let data = EntityChannelData {
            actor_state: Some(changes),
            ..EntityChannelData::default()
        };
        prost::Message::encoded_len(&data)
    }

    #[test]
    fn walking_along_an_axis_costs_what_was_published() {
        let mut replica = Replica::default();
        replica.actor_changes(&body(0.0)).unwrap();
        let changes = replica.actor_changes(&body(20.0)).unwrap();
        assert_eq!(encoded_len(changes), 11);
    }

    #[test]
    fn nothing_new_is_nothing_sent() {
        let mut replica = Replica::default();
        assert!(replica.actor_changes(&body(0.0)).is_some());
        assert!(replica.actor_changes(&body(0.0)).is_none());
        assert!(replica.character_changes(&body(0.0)).is_some());
        assert!(replica.character_changes(&body(0.0)).is_none());
    }

    #[test]
    fn small_steps_add_up() {
        let mut replica = Replica::default();
        replica.actor_changes(&body(0.0)).unwrap();
        let sent = (1..=10)
            .filter(|&step| {
                replica
                    .actor_changes(&body(f64::from(step) * 0.0004))
                    .is_some()
            })
            .count();
        assert_eq!(sent, 3);
    }
}
