//! Characters that come and go over a server's border, and those it comes back
//! for after it broke off.

use lagometer_client::Outbox;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelDataHandoverMessage, ChannelDataRecoveryMessage,
    ChannelSubscriptionOptions, ChannelType,
};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::SpatialChannelData;
use lagometer_units::Time;
use prost::Message as _;

use super::{Charge, Region, RegionState};
use crate::measure::authority::Authority;
use crate::server::count_refusal;
use crate::server::handover_state::HandoverState;
use crate::server::server_player::{ServerPlayer, player_of};
use crate::sim::crowd::EntityId;

/// What a server that came back is sent of what it had.
#[derive(Debug)]
pub(super) enum Recovered {
    /// An entity that it owned, with its data.
    Entity(EntityId, Box<EntityChannelData>),
    /// The entities in one of its cells.
    Cell(Vec<EntityId>),
}

impl Region {
    /// Lets go of those whom the last frame has reported to be in another server's
    /// cells.
    pub(super) fn let_go_of_leavers(&mut self, now: Time) {
        let leavers: Vec<u32> = self
            .charges
            .iter()
            .filter(|(_, charge)| {
                let place = charge.server_player.replica.place();
                place.is_some_and(|place| !self.is_mine(place))
            })
            .map(|(&player, _)| player)
            .collect();
        for player in leavers {
            self.release(player, Authority::Gave, now);
        }
    }

    /// The gateway has handed entities from one cell to another.
    pub(super) fn handed_over(
        &mut self,
        handover: &ChannelDataHandoverMessage,
        outbox: &mut Outbox,
    ) {
        let from_here = self.cells.contains(&handover.src_channel_id);
        let to_here = self.cells.contains(&handover.dst_channel_id);
        let data = handover.data.as_ref();
        let Some(Ok(data)) = data.map(|data| SpatialChannelData::decode(&*data.value)) else {
            self.counts.bad_handovers += 1;
            return;
        };
        for (id, state) in data.entities {
            let entity = EntityId(id);
            let Some(player) = player_of(entity) else {
                continue;
            };
            if !to_here {
                // Known already where this server reported the crossing.
                self.lose(entity, Authority::Gave);
                continue;
            }
            if from_here {
                if let Some(charge) = self.charges.get(&player)
                    && let Some(place) = charge.server_player.replica.place()
                {
                    self.counts.cell_changes += 1;
                    self.set_interest(player, place, outbox);
                }
                continue;
            }
            let known = state.entity_data;
            let known = known.and_then(|data| EntityChannelData::decode(&*data.value).ok());
            match known {
                Some(known) if self.take_over(entity, &known, outbox) => {
                    self.counts.taken_over += 1;
                }
                _ => self.counts.bad_handovers += 1,
            }
        }
    }

    /// Goes on with a character where another server, or an earlier connection
    /// of this one, left it. Returns whether it could.
    fn take_over(
        &mut self,
        entity: EntityId,
        data: &EntityChannelData,
        outbox: &mut Outbox,
    ) -> bool {
        let (Some(player), Some(handover_state)) = (player_of(entity), HandoverState::read(data))
        else {
            return false;
        };
        if self.charges.contains_key(&player) {
            return true;
        }
        let (conn_id, place) = (handover_state.conn_id, handover_state.place);
        let server_player = ServerPlayer {
            conn_id,
            intent: handover_state.followed.intent(),
            replica: handover_state.replica,
            acknowledged_at: self.clock.get(),
        };
        let charge = Charge {
            server_player,
            announced: handover_state.followed,
            signed: false,
            interest_at: place,
        };
        self.entities.take_over(player, conn_id);
        self.take(player, charge, handover_state.body);
        if self.gone.contains(&conn_id) {
            self.dismiss(conn_id, outbox);
        } else {
            self.set_interest(player, place, outbox);
        }
        true
    }

    /// An entity is another's, or gone.
    pub(super) fn lose(&mut self, entity: EntityId, what: Authority) {
        self.unclaimed.remove(&entity);
        if let Some(player) = player_of(entity) {
            self.release(player, what, self.clock.get());
        }
    }

    /// The gateway sends what an earlier connection of this server had.
    pub(super) fn recover(&mut self, announced: &ChannelDataRecoveryMessage) {
        let id = announced.channel_id;
        let data = announced.channel_data.as_ref();
        if announced.channel_type == ChannelType::Spatial as i32 {
            if Some(announced.owner_conn_id) == self.conn_id {
                self.own([id]);
            }
            let cell = data.and_then(|data| SpatialChannelData::decode(&*data.value).ok());
            let entities = cell.unwrap_or_default().entities;
            let entities = entities.into_keys().map(EntityId).collect();
            self.recovered.push(Recovered::Cell(entities));
        } else if announced.channel_type == ChannelType::Entity as i32
            && Some(announced.owner_conn_id) == self.conn_id
            && let Some(Ok(data)) = data.map(|data| EntityChannelData::decode(&*data.value))
        {
            self.recovered
                .push(Recovered::Entity(EntityId(id), Box::new(data)));
        }
    }

    /// That was all: the server goes on where it was.
    pub(super) fn recovered_all(&mut self, outbox: &mut Outbox) {
        if self.cells.is_empty() {
            // Somebody has removed what it had.
            self.state = RegionState::Beginning;
            self.ask_for_cells(self.conn_id.unwrap_or(0), outbox);
            return;
        }
        let recovered = std::mem::take(&mut self.recovered);
        let mut in_cells = Vec::new();
        for had in recovered {
            match had {
                Recovered::Entity(entity, data) => {
                    if player_of(entity).is_some() && !self.take_over(entity, &data, outbox) {
                        self.counts.bad_handovers += 1;
                    }
                }
                Recovered::Cell(entities) => in_cells.extend(entities),
            }
        }
        // Who came while nobody was here has no owner: it is asked for, and
        // taken up once its data has come.
        for entity in in_cells {
            let Some(player) = player_of(entity) else {
                continue;
            };
            if self.charges.contains_key(&player) {
                continue;
            }
            self.unclaimed.insert(entity);
            let write = ChannelSubscriptionOptions {
                data_access: Some(ChannelDataAccess::WriteAccess.into()),
                ..ChannelSubscriptionOptions::default()
            };
            let conn_id = self.conn_id.unwrap_or(0);
            let sent = outbox.subscribe(entity.0, conn_id, Some(write));
            count_refusal(&mut self.counts, &sent);
        }
        self.state = RegionState::Ready;
    }

    /// The data of an entity that nobody simulates has come.
    pub(super) fn see(&mut self, entity: EntityId, value: &[u8], outbox: &mut Outbox) {
        if !self.unclaimed.remove(&entity) {
            return;
        }
        let data = EntityChannelData::decode(value);
        let is_here = |data: &EntityChannelData| {
            HandoverState::read(data)
                .is_some_and(|handover_state| self.is_mine(handover_state.place))
        };
        match data {
            Ok(data) if is_here(&data) => {
                self.take_over(entity, &data, outbox);
            }
            _ => self.counts.bad_handovers += 1,
        }
    }
}
