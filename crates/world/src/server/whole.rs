//! A game server that owns the whole world, simulates all characters and sends
//! the gateway of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use lagometer_client::{Event, Handler, Outbox, SendError};
use lagometer_protocol::messages::channeldpb::{ChannelDataRecoveryMessage, ChannelType};
use lagometer_protocol::messages::unrealpb::SpawnObjectMessage;
use lagometer_protocol::{Broadcast, FromGateway};
use lagometer_units::Time;
use prost::Message as _;

use super::bootstrap::{self, GlobalOwnerBootstrap};
use super::departure::Departure;
use super::entities::Entities;
use super::server_player::{ServerPlayer, newcomer, player_of, read_move};
use super::{ServerCounts, count_refusal};
use crate::sim::crowd::{Crowd, EntityId};
use crate::sim::ground::Ground;
use crate::sim::scenario::{Channels, Scenario};
use crate::wire::ids::EntityKind;
use crate::wire::intent::Intent;
use crate::wire::messages::{self, GLOBAL};

/// A simulated game server that has the world to itself.
///
/// It handles the gateway's messages as a [`Handler`] and is given each frame's time.
/// What it sends goes into the outbox it is handed.
#[derive(Debug)]
pub struct GameServer {
    scenario: Arc<Scenario>,
    ground: Arc<Ground>,
    crowd: Crowd,
    /// The players in the game, by their numbers.
    server_players: BTreeMap<u32, ServerPlayer>,
    /// The numbers of the players behind connections.
    players: BTreeMap<u32, u32>,
    /// Entity channels asked for: what is to be sent once they are there.
    channels: Entities,
    clock: Rc<Cell<Time>>,
    bootstrap: GlobalOwnerBootstrap,
    pub(super) departure: Departure,
    frozen: bool,
    counts: ServerCounts,
    buffer: Vec<u8>,
}

impl GameServer {
    /// A server that has said nothing yet; `clock` is the time of the run,
    /// which whoever drives it keeps.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>, clock: Rc<Cell<Time>>) -> Self {
        let ground = Arc::new(Ground::new(&scenario.ground, scenario.seed));
        Self {
            crowd: Crowd::new(Arc::clone(&ground), scenario.movement),
            bootstrap: GlobalOwnerBootstrap::new(&scenario),
            departure: Departure::default(),
            scenario,
            ground,
            server_players: BTreeMap::new(),
            players: BTreeMap::new(),
            channels: Entities::default(),
            clock,
            frozen: false,
            counts: ServerCounts::default(),
            buffer: Vec::new(),
        }
    }

    /// Logs in and takes the world.
    ///
    /// # Errors
    ///
    /// [`SendError`] where the outbox takes nothing.
    pub fn begin(&self, outbox: &mut Outbox) -> Result<(), SendError> {
        bootstrap::begin("lagometer-world-server", outbox)
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

    /// Simulates a frame that ends at `now` and sends what changed.
    pub fn frame(&mut self, now: Time, outbox: &mut Outbox) {
        if self.is_ready() != Ok(true) {
            return;
        }
        self.counts.frames += 1;
        if !self.frozen {
            self.crowd.frame(self.scenario.server_frame().as_secs_f64());
        }
        match self.scenario.channels {
            Channels::Single => self.send_world(now, outbox),
            Channels::Entity | Channels::Spatial => self.send_entities(now, outbox),
        }
        self.acknowledge(now, outbox);
    }

    /// From now on nobody moves any more: what players see must become what
    /// is.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Whether the gateway has given it the world.
    ///
    /// # Errors
    ///
    /// What is wrong with the gateway.
    pub fn is_ready(&self) -> Result<bool, &'static str> {
        self.bootstrap.is_done()
    }

    /// The characters as they are.
    #[must_use]
    pub fn crowd(&self) -> &Crowd {
        &self.crowd
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// Whether any of its players is still there.
    #[must_use]
    pub fn has_players(&self) -> bool {
        !self.players.is_empty()
    }

    /// Has the channels removed that it has made.
    pub fn take_away(&mut self, outbox: &mut Outbox) {
        let entities = self.channels.all().map(|entity| entity.0);
        self.departure.remove(entities, outbox);
    }

    /// All characters in one update, or as many as a frame of the wire takes.
    fn send_world(&mut self, now: Time, outbox: &mut Outbox) {
        let mut update = messages::WorldUpdate::new(now.as_secs_f64());
        for (entity, body) in self.crowd.own() {
            let Some(server_player) =
                EntityKind::parse(entity).and_then(|(nth, _)| self.server_players.get_mut(&nth))
            else {
                continue;
            };
            let actor = server_player.replica.actor_changes(body);
            let character = server_player.replica.character_changes(body);
            self.counts.states += u64::from(actor.is_some());
            update.push(entity, actor, character);
            if update.is_full() {
                count_refusal(
                    &mut self.counts,
                    &outbox.update(GLOBAL, messages::WORLD_TYPE_URL, update.encode()),
                );
            }
        }
        count_refusal(
            &mut self.counts,
            &outbox.update(GLOBAL, messages::WORLD_TYPE_URL, update.encode()),
        );
    }

    /// Each character that changed in its own channel.
    fn send_entities(&mut self, now: Time, outbox: &mut Outbox) {
        for (entity, body) in self.crowd.own() {
            let Some(server_player) =
                EntityKind::parse(entity).and_then(|(nth, _)| self.server_players.get_mut(&nth))
            else {
                continue;
            };
            if !self.channels.is_open(entity) {
                continue;
            }
            let Some(actor) = server_player.replica.actor_changes(body) else {
                continue;
            };
            let character = server_player.replica.character_changes(body);
            let data = messages::entity_update(actor, character, now.as_secs_f64() as f32);
            self.buffer.clear();
            // A vector takes whatever is written.
            let _ = data.encode(&mut self.buffer);
            self.counts.states += 1;
            count_refusal(
                &mut self.counts,
                &outbox.update(entity.0, messages::ENTITY_TYPE_URL, &self.buffer),
            );
        }
    }

    /// Answers moves, as often as the engine does.
    fn acknowledge(&mut self, now: Time, outbox: &mut Outbox) {
        for (&player, server_player) in &mut self.server_players {
            if !server_player.answer_is_due(now) {
                continue;
            }
            let answer = messages::move_answer(EntityKind::Pawn.of(player), &server_player.intent);
            let sent = outbox.message(
                GLOBAL,
                Broadcast(messages::SINGLE_CONNECTION),
                server_player.conn_id,
                messages::RPC,
                &answer,
            );
            count_refusal(&mut self.counts, &sent);
        }
    }

    /// A player has come: it gets a pawn, and everybody is sent it.
    fn admit(&mut self, conn_id: u32, player: u32, outbox: &mut Outbox) {
        if self.server_players.contains_key(&player) || player >= self.scenario.players {
            return;
        }
        let (seed, radius_cm) = (self.scenario.seed, self.scenario.movement.radius_cm);
        let place = self
            .ground
            .starting_place(seed, player, radius_cm, |place| self.crowd.occupied(place));
        let Ok(place) = place else {
            self.counts.turned_away += 1;
            return;
        };
        let body = newcomer(&self.scenario, player, place);
        self.crowd.take(EntityKind::Pawn.of(player), body);
        let now = self.clock.get();
        self.players.insert(conn_id, player);
        for (&other, server_player) in &self.server_players {
            if self.scenario.channels == Channels::Single
                || self.channels.is_open(EntityKind::Pawn.of(other))
            {
                self.spawn(other, server_player.conn_id, Some(conn_id), outbox)
                    .unwrap_or(());
            }
        }
        self.server_players
            .insert(player, ServerPlayer::new(conn_id, now));
        let sent = match self.scenario.channels {
            Channels::Single => self.spawn(player, conn_id, None, outbox),
            Channels::Entity | Channels::Spatial => {
                self.channels.ask_for(GLOBAL, player, conn_id, None, outbox)
            }
        };
        count_refusal(&mut self.counts, &sent);
    }

    /// Announces to `to`, or everybody, that there is a player's pawn.
    fn spawn(
        &self,
        player: u32,
        owner_conn_id: u32,
        to: Option<u32>,
        outbox: &mut Outbox,
    ) -> Result<(), SendError> {
        let pawn = EntityKind::Pawn.of(player);
        let channel_id = match self.scenario.channels {
            Channels::Single => GLOBAL,
            Channels::Entity | Channels::Spatial => pawn.0,
        };
        let message = SpawnObjectMessage {
            obj: Some(messages::object(player, EntityKind::Pawn, owner_conn_id)),
            channel_id: Some(channel_id),
            local_role: Some(messages::SIMULATED_PROXY),
            ..SpawnObjectMessage::default()
        };
        let broadcast = to.map_or(messages::ALL_BUT_SERVER, |_| messages::SINGLE_CONNECTION);
        outbox.message(
            GLOBAL,
            Broadcast(broadcast),
            to.unwrap_or(0),
            messages::SPAWN,
            &message.encode_to_vec(),
        )
    }

    /// The gateway gives back a channel that an earlier connection had. What
    /// is known of its players is too little to go on with them: they get
    /// channels of their own anew.
    fn give_up(&mut self, recovered: &ChannelDataRecoveryMessage, outbox: &mut Outbox) {
        if recovered.channel_type == ChannelType::Entity as i32 {
            let sent = outbox.remove_channel(recovered.channel_id);
            count_refusal(&mut self.counts, &sent);
        }
    }

    /// A player has gone, and its pawn with it.
    fn dismiss(&mut self, conn_id: u32, outbox: &mut Outbox) {
        let Some(player) = self.players.remove(&conn_id) else {
            return;
        };
        if self.departure.has_begun() {
            return;
        }
        self.server_players.remove(&player);
        self.crowd.give_up(EntityKind::Pawn.of(player));
        let sent = match self.scenario.channels {
            Channels::Single => {
                let gone = messages::world_without(EntityKind::Pawn.of(player));
                outbox.update(GLOBAL, messages::WORLD_TYPE_URL, &gone)
            }
            Channels::Entity | Channels::Spatial => self.channels.close(player, outbox),
        };
        count_refusal(&mut self.counts, &sent);
    }

    /// A player said what it wants.
    fn apply_input(&mut self, player: u32, intent: Intent) {
        let Some(server_player) = self.server_players.get_mut(&player) else {
            return;
        };
        let (ground, scenario) = (&self.ground, &self.scenario);
        let applied = server_player.apply_input(player, intent, &mut self.crowd, ground, scenario);
        self.counts.moves += u64::from(applied);
    }

    fn receive_from_player(
        &mut self,
        outbox: &mut Outbox,
        conn_id: u32,
        msg_type: u32,
        payload: &[u8],
    ) {
        match msg_type {
            // Who is not answered now asks again.
            messages::LOW_LEVEL if self.is_ready() != Ok(true) => {}
            messages::LOW_LEVEL => match messages::read_login(payload) {
                Some(player) => self.admit(conn_id, player, outbox),
                None => self.counts.bad_moves += 1,
            },
            messages::RPC => match read_move(payload) {
                Some(intent) => {
                    if let Some(&player) = self.players.get(&conn_id) {
                        self.apply_input(player, intent);
                    }
                }
                None => self.counts.bad_moves += 1,
            },
            _ => {}
        }
    }
}

impl Handler for GameServer {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        let asked = self.bootstrap.receive(&event, outbox);
        count_refusal(&mut self.counts, &asked);
        match event {
            Event::User {
                msg_type,
                client_conn_id,
                payload,
                ..
            } => self.receive_from_player(outbox, client_conn_id, msg_type, payload),
            Event::Message { message, .. } => match message {
                FromGateway::RecoveryChannelData(data) => self.give_up(&data, outbox),
                FromGateway::CreateEntityChannel(result) => {
                    let entity = EntityId(result.channel_id);
                    let conn_id = self.channels.opened(entity);
                    if let (Some(player), Some(conn_id)) = (player_of(entity), conn_id) {
                        let sent = self.spawn(player, conn_id, None, outbox);
                        count_refusal(&mut self.counts, &sent);
                    }
                }
                FromGateway::UnsubFromChannel(result)
                    if self.players.contains_key(&result.conn_id) =>
                {
                    self.dismiss(result.conn_id, outbox);
                }
                FromGateway::RemoveChannel(removed) => self.departure.removed(removed.channel_id),
                _ => {}
            },
            _ => {}
        }
    }
}
