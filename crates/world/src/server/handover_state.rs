//! What goes over to another server with a character.
//!
//! A handover brings the data of the entity's channel and nothing else, so
//! what the next server must know to go on without a seam is in there: in
//! fields of the engine's messages that the world has no other use for.

use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::{FVector, PawnState, PlayerState};

use crate::sim::body::Body;
use crate::sim::vector::{Vector, Yaw};
use crate::wire::intent::Intent;
use crate::wire::replica::Replica;

/// What of a player's wishes its character has already followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Followed {
    quarters: i32,
    jumps: u32,
    teleports: u32,
}

impl Followed {
    pub(super) fn of(intent: &Intent) -> Self {
        Self {
            quarters: intent.quarters,
            jumps: intent.jumps,
            teleports: intent.teleports,
        }
    }

    /// As an intent that any new one comes after.
    pub(super) fn intent(self) -> Intent {
        Intent {
            quarters: self.quarters,
            jumps: self.jumps,
            teleports: self.teleports,
            ..Intent::default()
        }
    }

    /// Writes it into an update.
    pub(super) fn put_into(self, update: &mut EntityChannelData) {
        update.player_state = Some(PlayerState {
            player_id: Some(self.quarters),
            ping: Some(self.jumps),
            // A player that lives for months teleports less often than a
            // float can count.
            score: Some(self.teleports as f32),
            ..PlayerState::default()
        });
    }

    fn read(data: &EntityChannelData) -> Self {
        let state = data.player_state.clone().unwrap_or_default();
        Self {
            quarters: state.player_id.unwrap_or_default(),
            jumps: state.ping.unwrap_or_default(),
            teleports: state.score.unwrap_or_default() as u32,
        }
    }
}

/// Writes into an update that the server numbered `server` simulates the
/// character from now on.
pub(super) fn sign(server: u32, update: &mut EntityChannelData) {
    update.pawn_state = Some(PawnState {
        remote_view_pitch: Some(server + 1),
        ..PawnState::default()
    });
}

/// A character as another server left it.
#[derive(Clone, Debug)]
pub(super) struct HandoverState {
    /// The connection of its player.
    pub(super) conn_id: u32,
    pub(super) body: Body,
    pub(super) followed: Followed,
    /// What all have been sent of it.
    pub(super) replica: Replica,
    /// Where that says it is.
    pub(super) place: Vector,
}

impl HandoverState {
    /// Reads an entity channel's whole data; `None` where it does not say
    /// whose character it is, or where.
    pub(super) fn read(data: &EntityChannelData) -> Option<Self> {
        let actor = data.actor_state.as_ref()?;
        let movement = actor.replicated_movement.as_ref()?;
        let replica = Replica::as_sent(actor, data.character_state.as_ref());
        let place = replica.place()?;
        let degrees = movement.rotation.as_ref().and_then(|rotation| rotation.y);
        let body = Body {
            place,
            speed: movement
                .linear_velocity
                .as_ref()
                .map(vector)
                .unwrap_or_default(),
            yaw: Yaw::new(degrees.unwrap_or_default().into()),
        };
        Some(Self {
            conn_id: data.obj_ref.as_ref()?.owning_conn_id?,
            body,
            followed: Followed::read(data),
            replica,
            place,
        })
    }
}

fn vector(received: &FVector) -> Vector {
    let component = |component: Option<f32>| component.unwrap_or_default().into();
    Vector {
        x: component(received.x),
        y: component(received.y),
        z: component(received.z),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ids::EntityKind;
    use crate::wire::messages;

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut body = Body::standing(Vector::on_ground(-1234.5, 777.25), Yaw::new(33.0));
        body.speed = Vector {
            x: 503.25,
            y: -3.0,
            z: 420.0,
        };
        body.place.z = 12.0;
        body.yaw.turn(3);
        let intent = Intent {
            sequence: 99,
            at_ms: 5,
            quarters: -7,
            jumps: 12,
            teleports: 3,
        };
        let mut replica = Replica::default();
        let actor = replica.actor_changes(&body).unwrap();
        let mut data = messages::entity_update(actor, replica.character_changes(&body), 1.5);
        data.obj_ref = Some(messages::object(4, EntityKind::Pawn, 88));
        Followed::of(&intent).put_into(&mut data);
        let unpacked = HandoverState::read(&data).unwrap();
        assert_eq!(unpacked.conn_id, 88);
        assert_eq!(unpacked.body.place, body.place);
        assert_eq!(unpacked.body.speed, body.speed);
        assert!((unpacked.body.yaw.degrees() - body.yaw.degrees()).abs() < 1e-4);
        assert_eq!(unpacked.followed, Followed::of(&intent));
        assert_eq!(unpacked.followed.intent().sequence, 0);
        // The next server sends only what changes from here.
        let mut replica = unpacked.replica;
        assert!(replica.actor_changes(&unpacked.body).is_none());
        assert!(replica.character_changes(&unpacked.body).is_none());
    }

    #[test]
    fn what_says_too_little_is_nothing() {
        assert!(HandoverState::read(&EntityChannelData::default()).is_none());
    }
}
