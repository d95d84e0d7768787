//! The server that lets players in where others simulate them.
//!
//! It owns GLOBAL. A player that has come is subscribed to the cell it is to
//! start in, whose server then receives its messages; a player that has gone is announced
//! to all servers, of which one has its character.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lagometer_client::{Event, Handler, Outbox, SendError, Stub};
use lagometer_protocol::messages::channeldpb::{
    BroadcastType, ChannelDataAccess, ChannelSubscriptionOptions,
    UnsubscribedFromChannelResultMessage,
};
use lagometer_protocol::{Broadcast, FromGateway};
use prost::Message as _;

use super::bootstrap::{self, GlobalOwnerBootstrap};
use super::{ServerCounts, count_refusal};
use crate::sim::ground::Ground;
use crate::sim::scenario::Scenario;
use crate::wire::messages::{self, GLOBAL};

/// To all servers but the sender.
const TO_SERVERS: u32 = BroadcastType::AllButClient as u32 | BroadcastType::AllButSender as u32;

/// A server that owns GLOBAL and simulates nobody.
#[derive(Debug)]
pub struct Master {
    scenario: Arc<Scenario>,
    ground: Ground,
    bootstrap: GlobalOwnerBootstrap,
    /// The connections of players that have asked to come in.
    players: BTreeSet<u32>,
    /// The connections of players whose cell was asked for.
    asked: BTreeMap<Stub, u32>,
    counts: ServerCounts,
}

impl Master {
    /// A master that has said nothing yet.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>) -> Self {
        Self {
            ground: Ground::new(&scenario.ground, scenario.seed),
            bootstrap: GlobalOwnerBootstrap::new(&scenario),
            scenario,
            players: BTreeSet::new(),
            asked: BTreeMap::new(),
            counts: ServerCounts::default(),
        }
    }

    /// Logs in and takes GLOBAL.
    ///
    /// # Errors
    ///
    /// [`SendError`] where the outbox takes nothing.
    pub fn begin(&self, outbox: &mut Outbox) -> Result<(), SendError> {
        bootstrap::begin("lagometer-world-master", outbox)
    }

    /// The number of its connection, once the gateway has let it in.
    #[must_use]
    pub fn conn_id(&self) -> Option<u32> {
        self.bootstrap.conn_id()
    }

    /// A world begins with this: what an earlier one left on the gateway goes.
    pub fn begin_world(&mut self) {
        self.bootstrap.begin_world();
    }

    /// Whether the gateway has given it GLOBAL.
    ///
    /// # Errors
    ///
    /// What is wrong with the gateway.
    pub fn is_ready(&self) -> Result<bool, &'static str> {
        self.bootstrap.is_done()
    }

    /// Whether any player that asked it to come in is still there.
    #[must_use]
    pub fn has_players(&self) -> bool {
        !self.players.is_empty()
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// A player wants to come in: where its starting place lies is for the
    /// gateway to say.
    fn receive(&mut self, conn_id: u32, player: u32, outbox: &mut Outbox) {
        self.players.insert(conn_id);
        let (seed, radius_cm) = (self.scenario.seed, self.scenario.movement.radius_cm);
        let place = self
            .ground
            .starting_place(seed, player, radius_cm, |_| false);
        let Ok(place) = place else {
            self.counts.turned_away += 1;
            return;
        };
        let asked = outbox.query_spatial(vec![messages::spatial(place)]);
        if let Ok(stub) = asked {
            self.asked.insert(stub, conn_id);
        }
        count_refusal(&mut self.counts, &asked);
    }

    fn show_in(&mut self, conn_id: u32, cell: u32, outbox: &mut Outbox) {
        if cell == 0 {
            self.counts.turned_away += 1;
            return;
        }
        let options = ChannelSubscriptionOptions {
            data_access: Some(ChannelDataAccess::ReadAccess.into()),
            fan_out_interval_ms: Some(self.scenario.tiers[0].every.0.as_millis() as u32),
            fan_out_delay_ms: Some(self.scenario.fan_out_delay.0.as_millis() as i32),
            ..ChannelSubscriptionOptions::default()
        };
        let sent = outbox.subscribe(cell, conn_id, Some(options));
        count_refusal(&mut self.counts, &sent);
    }

    fn announce(&mut self, left: &UnsubscribedFromChannelResultMessage, outbox: &mut Outbox) {
        self.players.remove(&left.conn_id);
        let sent = outbox.message(
            GLOBAL,
            Broadcast(TO_SERVERS),
            0,
            messages::PLAYER_LEFT,
            &left.encode_to_vec(),
        );
        count_refusal(&mut self.counts, &sent);
    }
}

impl Handler for Master {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        let asked = self.bootstrap.receive(&event, outbox);
        count_refusal(&mut self.counts, &asked);
        match event {
            Event::User {
                msg_type: messages::LOW_LEVEL,
                client_conn_id,
                payload,
                ..
            } => match messages::read_login(payload) {
                Some(player) if player < self.scenario.players => {
                    self.receive(client_conn_id, player, outbox);
                }
                _ => self.counts.bad_moves += 1,
            },
            Event::Message {
                stub,
                message: FromGateway::QuerySpatialChannel(found),
                ..
            } => {
                let conn_id = self.asked.remove(&stub);
                if let (Some(conn_id), Some(&cell)) = (conn_id, found.channel_id.first()) {
                    self.show_in(conn_id, cell, outbox);
                }
            }
            Event::Message {
                channel_id: GLOBAL,
                message: FromGateway::UnsubFromChannel(left),
                ..
            } => self.announce(&left, outbox),
            _ => {}
        }
    }
}
