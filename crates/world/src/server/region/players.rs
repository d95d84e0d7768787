//! Players that come to a server's cells, what they want there, and their
//! going.

use lagometer_client::Outbox;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, EntityGroupType, UnsubscribedFromChannelResultMessage,
};
use lagometer_protocol::messages::unrealpb::{FVector, SpawnObjectMessage};
use lagometer_protocol::{Broadcast, ToGateway};
use prost::Message as _;

use super::{Arrival, Charge, Region};
use crate::measure::authority::Authority;
use crate::server::count_refusal;
use crate::server::handover_state::Followed;
use crate::server::server_player::{ServerPlayer, newcomer, read_move};
use crate::sim::crowd::EntityId;
use crate::wire::ids::EntityKind;
use crate::wire::messages;

impl Region {
    /// Something that a player says.
    pub(super) fn receive_from_player(
        &mut self,
        outbox: &mut Outbox,
        conn_id: u32,
        msg_type: u32,
        payload: &[u8],
    ) {
        match msg_type {
            messages::RPC => match read_move(payload) {
                // Messages of one that was just handed over may still arrive here.
                Some(_) if self.frozen => {}
                Some(intent) => {
                    let player = self.players.get(&conn_id).copied();
                    let charge = player.and_then(|player| self.charges.get_mut(&player));
                    if let (Some(player), Some(charge)) = (player, charge) {
                        let (ground, scenario) = (&self.ground, &self.scenario);
                        let crowd = &mut self.crowd;
                        let applied = charge
                            .server_player
                            .apply_input(player, intent, crowd, ground, scenario);
                        self.counts.moves += u64::from(applied);
                    }
                }
                None => self.counts.bad_moves += 1,
            },
            messages::PLAYER_LEFT => match UnsubscribedFromChannelResultMessage::decode(payload) {
                Ok(left) => self.dismiss(left.conn_id, outbox),
                Err(_) => self.counts.bad_moves += 1,
            },
            _ => {}
        }
    }

    /// A player that was let in asks to play in one of the cells.
    pub(super) fn asked_in(
        &mut self,
        cell: u32,
        conn_id: u32,
        payload: &[u8],
        outbox: &mut Outbox,
    ) {
        match messages::read_login(payload) {
            Some(player) => self.admit(cell, conn_id, player, outbox),
            None => self.counts.bad_moves += 1,
        }
    }

    /// A player has come to one of the cells: its entities get their channels.
    fn admit(&mut self, came_to: u32, conn_id: u32, player: u32, outbox: &mut Outbox) {
        if player >= self.scenario.players || self.charges.contains_key(&player) {
            return;
        }
        let now = self.clock.get();
        let (seed, radius_cm) = (self.scenario.seed, self.scenario.movement.radius_cm);
        // The first place that the master found is here, unless somebody has
        // come to stand there.
        let place = self
            .ground
            .starting_place(seed, player, radius_cm, |place| {
                !self.is_mine(place) || self.crowd.occupied(place)
            });
        let Ok(place) = place else {
            self.counts.turned_away += 1;
            return;
        };
        let Some(cell) = self.space.cell_at(place) else {
            return;
        };
        let body = newcomer(&self.scenario, player, place);
        let mut server_player = ServerPlayer::new(conn_id, now);
        let actor = server_player
            .replica
            .actor_changes(&body)
            .unwrap_or_default();
        let character = server_player.replica.character_changes(&body);
        let data = messages::entity_update(actor, character, now.as_secs_f64() as f32);
        let charge = Charge {
            server_player,
            announced: Followed::default(),
            signed: false,
            interest_at: place,
        };
        self.players.insert(conn_id, player);
        let arrival = Arrival {
            charge,
            body,
            came_to,
        };
        self.arriving.insert(player, arrival);
        let asked = self
            .entities
            .ask_for(cell, player, conn_id, Some(&data), outbox);
        count_refusal(&mut self.counts, &asked);
    }

    /// The gateway has opened an entity's channel. With the last of a player's
    /// its character comes into the world.
    pub(super) fn opened(&mut self, entity: EntityId, outbox: &mut Outbox) {
        let Some((player, _)) = EntityKind::parse(entity) else {
            return;
        };
        if self.entities.opened(entity).is_none() || !self.entities.all_open(player) {
            return;
        }
        let Some(arrival) = self.arriving.remove(&player) else {
            return;
        };
        let Arrival {
            charge,
            body,
            came_to,
        } = arrival;
        let (conn_id, place) = (charge.server_player.conn_id, body.place);
        let pawn = EntityKind::Pawn.of(player);
        let Some(cell) = self.space.cell_at(place) else {
            return;
        };
        let grouped = outbox.ask(
            pawn.0,
            &ToGateway::EntityGroupAdd(AddEntityGroupMessage {
                r#type: EntityGroupType::Handover.into(),
                entities_to_add: EntityKind::ALL.map(|kind| kind.of(player).0).to_vec(),
            }),
        );
        count_refusal(&mut self.counts, &grouped);
        let message = SpawnObjectMessage {
            obj: Some(messages::object(player, EntityKind::Pawn, conn_id)),
            channel_id: Some(cell),
            local_role: Some(messages::SIMULATED_PROXY),
            location: Some(FVector {
                x: Some(place.x as f32),
                y: Some(place.y as f32),
                z: Some(place.z as f32),
            }),
        };
        let message = message.encode_to_vec();
        let mut send = |whom: u32, conn_id: u32, outbox: &mut Outbox| {
            let sent = outbox.message(cell, Broadcast(whom), conn_id, messages::SPAWN, &message);
            count_refusal(&mut self.counts, &sent);
        };
        send(messages::ALL_BUT_SERVER, 0, outbox);
        if cell != came_to {
            // Somebody stood where it was to start. It is not shown this cell
            // yet, and is to know its pawn.
            send(messages::SINGLE_CONNECTION, conn_id, outbox);
        }
        self.take(player, charge, body);
        self.set_interest(player, place, outbox);
    }

    /// A player has gone, and its character with it.
    pub(super) fn dismiss(&mut self, conn_id: u32, outbox: &mut Outbox) {
        self.gone.insert(conn_id);
        let Some(player) = self.players.remove(&conn_id) else {
            return;
        };
        if self.departure.has_begun() {
            return;
        }
        let arriving = self.arriving.remove(&player).map(|it| it.body.place);
        let charge = self.charges.get(&player);
        let place = charge.and_then(|charge| charge.server_player.replica.place());
        if let Some(cell) = place.or(arriving).and_then(|it| self.space.cell_at(it)) {
            let gone = messages::cell_without(player);
            let sent = outbox.update(cell, messages::CELL_TYPE_URL, &gone);
            count_refusal(&mut self.counts, &sent);
        }
        self.release(player, Authority::Dropped, self.clock.get());
    }
}
