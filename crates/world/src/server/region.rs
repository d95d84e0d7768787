//! A game server that simulates a part of the world: a block of cells, whose
//! spatial channels it owns.
//!
//! A character whose state, as told, lies in another server's cell is let go
//! of with that very state: the gateway hands it over on seeing it, and
//! whatever this server would still say of it would contradict its next one.

mod border;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lagometer_client::{Event, Handler, Outbox, SendError};
use lagometer_protocol::messages::channeldpb::spatial_interest_query::SphereAoi;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataAccess, ChannelSubscriptionOptions, ChannelType,
    CreateChannelMessage, EntityGroupType, SpatialInterestQuery, SpatialRegion,
    UnsubscribedFromChannelResultMessage,
};
use lagometer_protocol::messages::unrealpb::{FVector, SpawnObjectMessage};
use lagometer_protocol::{Broadcast, FromGateway, ToGateway};
use lagometer_units::Time;
use prost::Message as _;

use super::entities::Entities;
use super::luggage::{Followed, sign};
use super::pupil::{Pupil, newcomer, player_of, read_move};
use super::{ServerCounts, count_refusal};
use crate::body::Body;
use crate::crowd::{Crowd, EntityId};
use crate::custody::{Claim, Custody};
use crate::ground::Ground;
use crate::ids::Part;
use crate::scenario::Scenario;
use crate::space::Space;
use crate::vector::Vector;
use crate::words::{self, GLOBAL};

/// Centimetres by which a gateway's cells may lie apart from the scenario's.
const GRID_TOLERANCE_CM: f64 = 0.5;

/// A game server that simulates the characters in its cells.
#[derive(Debug)]
pub struct Region {
    /// Its number among those that simulate, by which it logs in.
    number: u32,
    scenario: Arc<Scenario>,
    space: Space,
    ground: Arc<Ground>,
    crowd: Crowd,
    clock: Rc<Cell<Time>>,
    conn_id: Option<u32>,
    /// The channels of its cells.
    cells: BTreeSet<u32>,
    /// Which of the grid's blocks they are.
    block: Option<u32>,
    stage: Stage,
    /// What is wrong with the gateway.
    trouble: Option<&'static str>,
    /// The players whose characters it simulates.
    charges: BTreeMap<u32, Charge>,
    /// Players that wait for the channels of their entities.
    arriving: BTreeMap<u32, (Charge, Body)>,
    /// The players behind connections.
    players: BTreeMap<u32, u32>,
    entities: Entities,
    /// Connections that are gone, in case their characters are still on their
    /// way here.
    gone: BTreeSet<u32>,
    /// What an earlier connection of this server had, while it comes back.
    recovered: Vec<border::Recovered>,
    /// Entities that were in its cells while nobody simulated them.
    unclaimed: BTreeSet<EntityId>,
    claims: Vec<Claim>,
    frozen: bool,
    counts: ServerCounts,
    buffer: Vec<u8>,
}

/// How far a server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It asks for its cells.
    Beginning,
    /// It takes up what an earlier connection of its had.
    Recovering,
    /// It simulates.
    Ready,
}

/// A player whose character this server simulates.
#[derive(Debug)]
struct Charge {
    pupil: Pupil,
    /// What the entity's data says its character has followed.
    told: Followed,
    /// The entity's data says that this server simulates it.
    signed: bool,
    /// Where its interest was set last.
    interest_at: Vector,
}

impl Region {
    /// The server numbered `number` of those that simulate; `clock` is the
    /// time of the run, which whoever drives it keeps.
    #[must_use]
    pub fn new(number: u32, scenario: Arc<Scenario>, space: Space, clock: Rc<Cell<Time>>) -> Self {
        let ground = Arc::new(Ground::new(&scenario.ground, scenario.seed));
        Self {
            number,
            crowd: Crowd::new(Arc::clone(&ground), scenario.movement),
            scenario,
            space,
            ground,
            clock,
            conn_id: None,
            cells: BTreeSet::new(),
            block: None,
            stage: Stage::Beginning,
            trouble: None,
            charges: BTreeMap::new(),
            arriving: BTreeMap::new(),
            players: BTreeMap::new(),
            entities: Entities::default(),
            gone: BTreeSet::new(),
            recovered: Vec::new(),
            unclaimed: BTreeSet::new(),
            claims: Vec::new(),
            frozen: false,
            counts: ServerCounts::default(),
            buffer: Vec::new(),
        }
    }

    /// Logs in, under a name of its own so that it may come back for what it
    /// had.
    ///
    /// # Errors
    ///
    /// [`SendError`] where the outbox takes nothing.
    pub fn begin(&self, outbox: &mut Outbox) -> Result<(), SendError> {
        let name = format!("lagometer-world-server-{}", self.number);
        outbox.authenticate(&name, "test_lt").map(drop)
    }

    /// Whether it simulates.
    ///
    /// # Errors
    ///
    /// What is wrong with the gateway.
    pub fn is_ready(&self) -> Result<bool, &'static str> {
        self.trouble
            .map_or(Ok(self.stage == Stage::Ready && self.block.is_some()), Err)
    }

    /// From now on nobody moves any more.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// The characters that it simulates.
    #[must_use]
    pub fn crowd(&self) -> &Crowd {
        &self.crowd
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// Whether it has begun or ended to simulate somebody since it was last
    /// asked.
    #[must_use]
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// What it began and ended to simulate since it was last asked.
    pub fn take_claims(&mut self) -> Vec<Claim> {
        std::mem::take(&mut self.claims)
    }

    /// Simulates a frame that ends at `now`, tells what changed and lets go of
    /// whoever has left.
    pub fn frame(&mut self, now: Time, outbox: &mut Outbox) {
        if self.is_ready() != Ok(true) {
            return;
        }
        self.counts.frames += 1;
        if !self.frozen {
            self.crowd.frame(self.scenario.server_frame().as_secs_f64());
        }
        self.tell(now, outbox);
        self.let_go_of_leavers(now);
        self.follow(outbox);
        self.acknowledge(now, outbox);
    }

    /// Each character that changed, in its own channel.
    fn tell(&mut self, now: Time, outbox: &mut Outbox) {
        for (entity, body) in self.crowd.own() {
            let Some(charge) = player_of(entity).and_then(|player| self.charges.get_mut(&player))
            else {
                continue;
            };
            // What cannot be sent now must not count as told: the character's
            // place as told decides whose it is.
            let mut replica = charge.pupil.replica.clone();
            let Some(actor) = replica.actor_changes(body) else {
                continue;
            };
            let character = replica.character_changes(body);
            let mut data = words::entity_update(actor, character, now.as_secs_f64() as f32);
            let followed = Followed::of(&charge.pupil.intent);
            if followed != charge.told {
                followed.put_into(&mut data);
            }
            if let (false, Some(block)) = (charge.signed, self.block) {
                sign(block, &mut data);
            }
            self.buffer.clear();
            // A vector takes whatever is written.
            let _ = data.encode(&mut self.buffer);
            let sent = outbox.update(entity.0, words::ENTITY_TYPE_URL, &self.buffer);
            if sent.is_ok() {
                self.counts.states += 1;
                charge.pupil.replica = replica;
                charge.told = followed;
                charge.signed = true;
            }
            count_refusal(&mut self.counts, &sent);
        }
    }

    /// Sets the interest of players anew whose characters have gone far.
    fn follow(&mut self, outbox: &mut Outbox) {
        let Some(follow_m) = self.space.follow_m else {
            return;
        };
        let far_cm2 = follow_m * follow_m * 1e4;
        let far: Vec<(u32, Vector)> = self
            .charges
            .iter()
            .filter_map(|(&player, charge)| {
                let place = charge.pupil.replica.place()?;
                let gone_cm2 = place.ground_distance_squared(charge.interest_at);
                (gone_cm2 >= far_cm2).then_some((player, place))
            })
            .collect();
        for (player, place) in far {
            self.set_interest(player, place, outbox);
        }
    }

    /// Answers moves, as often as the engine does.
    fn acknowledge(&mut self, now: Time, outbox: &mut Outbox) {
        for (&player, charge) in &mut self.charges {
            let cell = charge
                .pupil
                .replica
                .place()
                .and_then(|place| self.space.cell_at(place));
            let (true, Some(cell)) = (charge.pupil.answer_is_due(now), cell) else {
                continue;
            };
            let answer = words::move_answer(Part::Pawn.of(player), &charge.pupil.intent);
            let sent = outbox.message(
                cell,
                Broadcast(words::SINGLE_CONNECTION),
                charge.pupil.conn_id,
                words::RPC,
                &answer,
            );
            count_refusal(&mut self.counts, &sent);
        }
    }

    /// A player has come to one of the cells: its entities get their channels.
    fn admit(&mut self, conn_id: u32, player: u32, outbox: &mut Outbox) {
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
        let mut pupil = Pupil::new(conn_id, now);
        let actor = pupil.replica.actor_changes(&body).unwrap_or_default();
        let character = pupil.replica.character_changes(&body);
        let data = words::entity_update(actor, character, now.as_secs_f64() as f32);
        let charge = Charge {
            pupil,
            told: Followed::default(),
            signed: false,
            interest_at: place,
        };
        self.players.insert(conn_id, player);
        self.arriving.insert(player, (charge, body));
        let asked = self
            .entities
            .ask_for(cell, player, conn_id, Some(&data), outbox);
        count_refusal(&mut self.counts, &asked);
    }

    /// The gateway has opened an entity's channel. With the last of a player's
    /// its character comes into the world.
    fn opened(&mut self, entity: EntityId, outbox: &mut Outbox) {
        let Some((player, _)) = Part::parse(entity) else {
            return;
        };
        if self.entities.opened(entity).is_none() || !self.entities.all_open(player) {
            return;
        }
        let Some((charge, body)) = self.arriving.remove(&player) else {
            return;
        };
        let (conn_id, place) = (charge.pupil.conn_id, body.place);
        let pawn = Part::Pawn.of(player);
        let Some(cell) = self.space.cell_at(place) else {
            return;
        };
        let grouped = outbox.ask(
            pawn.0,
            &ToGateway::EntityGroupAdd(AddEntityGroupMessage {
                r#type: EntityGroupType::Handover.into(),
                entities_to_add: Part::ALL.map(|part| part.of(player).0).to_vec(),
            }),
        );
        count_refusal(&mut self.counts, &grouped);
        let message = SpawnObjectMessage {
            obj: Some(words::object(player, Part::Pawn, conn_id)),
            channel_id: Some(cell),
            local_role: Some(words::SIMULATED_PROXY),
            location: Some(FVector {
                x: Some(place.x as f32),
                y: Some(place.y as f32),
                z: Some(place.z as f32),
            }),
        };
        let spawned = outbox.message(
            cell,
            Broadcast(words::ALL_BUT_SERVER),
            0,
            words::SPAWN,
            &message.encode_to_vec(),
        );
        count_refusal(&mut self.counts, &spawned);
        self.take(player, charge, body);
        self.set_interest(player, place, outbox);
    }

    /// Simulates a character from now on.
    fn take(&mut self, player: u32, charge: Charge, body: Body) {
        let pawn = Part::Pawn.of(player);
        self.players.insert(charge.pupil.conn_id, player);
        self.charges.insert(player, charge);
        self.crowd.take(pawn, body);
        self.claim(pawn, Custody::Took, self.clock.get());
    }

    /// Simulates a character no longer. Its channels are another's, or gone.
    fn release(&mut self, player: u32, what: Custody, now: Time) {
        let pawn = Part::Pawn.of(player);
        self.entities.forget(player);
        if let Some(charge) = self.charges.remove(&player) {
            self.players.remove(&charge.pupil.conn_id);
        }
        if self.crowd.give_up(pawn).is_some() {
            self.claim(pawn, what, now);
        }
    }

    fn claim(&mut self, entity: EntityId, what: Custody, at: Time) {
        self.claims.push(Claim {
            at,
            // Whoever shares the clock with others knows how well.
            within: Duration::ZERO,
            entity,
            server: self.number,
            what,
        });
    }

    /// Has the gateway show a player the cells around `place`.
    fn set_interest(&mut self, player: u32, place: Vector, outbox: &mut Outbox) {
        let cell = self.space.cell_at(place);
        let (Some(cell), Some(charge)) = (cell, self.charges.get_mut(&player)) else {
            return;
        };
        charge.interest_at = place;
        let query = SpatialInterestQuery {
            sphere_aoi: Some(SphereAoi {
                center: Some(words::spatial(place)),
                radius: self.space.interest_radius_m * 100.0,
            }),
            ..SpatialInterestQuery::default()
        };
        let sent = outbox.update_interest(cell, charge.pupil.conn_id, query);
        count_refusal(&mut self.counts, &sent);
    }

    /// A player has gone, and its character with it.
    fn dismiss(&mut self, conn_id: u32, outbox: &mut Outbox) {
        self.gone.insert(conn_id);
        let Some(player) = self.players.remove(&conn_id) else {
            return;
        };
        let arriving = self.arriving.remove(&player).map(|(_, body)| body.place);
        let charge = self.charges.get(&player);
        let place = charge.and_then(|charge| charge.pupil.replica.place());
        if let Some(cell) = place.or(arriving).and_then(|it| self.space.cell_at(it)) {
            let gone = words::cell_without(player);
            let sent = outbox.update(cell, words::CELL_TYPE_URL, &gone);
            count_refusal(&mut self.counts, &sent);
        }
        self.release(player, Custody::Dropped, self.clock.get());
    }

    fn is_mine(&self, place: Vector) -> bool {
        let cell = self.space.cell_at(place);
        cell.is_some_and(|cell| self.cells.contains(&cell))
    }

    fn hear_player(&mut self, outbox: &mut Outbox, conn_id: u32, msg_type: u32, payload: &[u8]) {
        match msg_type {
            words::LOW_LEVEL => match words::read_login(payload) {
                Some(player) => self.admit(conn_id, player, outbox),
                None => self.counts.bad_moves += 1,
            },
            words::RPC => match read_move(payload) {
                // Who has just been handed over may still be heard here.
                Some(_) if self.frozen => {}
                Some(intent) => {
                    let player = self.players.get(&conn_id).copied();
                    let charge = player.and_then(|player| self.charges.get_mut(&player));
                    if let (Some(player), Some(charge)) = (player, charge) {
                        let (ground, scenario) = (&self.ground, &self.scenario);
                        let crowd = &mut self.crowd;
                        let obeyed = charge.pupil.obey(player, intent, crowd, ground, scenario);
                        self.counts.moves += u64::from(obeyed);
                    }
                }
                None => self.counts.bad_moves += 1,
            },
            words::PLAYER_LEFT => match UnsubscribedFromChannelResultMessage::decode(payload) {
                Ok(left) => self.dismiss(left.conn_id, outbox),
                Err(_) => self.counts.bad_moves += 1,
            },
            _ => {}
        }
    }

    /// Asks for a block of cells.
    fn ask_for_cells(&mut self, conn_id: u32, outbox: &mut Outbox) {
        let options = |access: ChannelDataAccess| ChannelSubscriptionOptions {
            data_access: Some(access.into()),
            ..ChannelSubscriptionOptions::default()
        };
        let read = Some(options(ChannelDataAccess::ReadAccess));
        let hears = outbox.subscribe(GLOBAL, conn_id, read);
        count_refusal(&mut self.counts, &hears);
        let asked = outbox.create_channel(CreateChannelMessage {
            channel_type: ChannelType::Spatial.into(),
            sub_options: Some(options(ChannelDataAccess::WriteAccess)),
            ..CreateChannelMessage::default()
        });
        count_refusal(&mut self.counts, &asked);
    }

    /// Checks that the gateway's cells are the scenario's.
    fn compare_grid(&mut self, regions: &[SpatialRegion]) {
        let [columns, rows] = self.space.cells;
        let agrees = |region: &SpatialRegion| {
            let corner = self.space.corner_of(region.channel_id)?;
            let low = region.min?;
            let near = |one: f64, other: f64| (one - other).abs() <= GRID_TOLERANCE_CM;
            let same = near(corner.x, low.x)
                && near(corner.y, low.z)
                && self.space.server_of(region.channel_id) == Some(region.server_index);
            same.then_some(())
        };
        let all = regions.len() == (columns * rows) as usize;
        if !all || regions.iter().any(|region| agrees(region).is_none()) {
            self.trouble = Some(
                "its grid of cells is not the scenario's; `-scc` must name the file that fits `[space]`",
            );
        }
    }

    /// Knows its cells.
    fn own(&mut self, cells: impl IntoIterator<Item = u32>) {
        self.cells.extend(cells);
        let first = self.cells.first();
        self.block = first.and_then(|&cell| self.space.server_of(cell));
    }
}

impl Handler for Region {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        match event {
            Event::User {
                msg_type,
                client_conn_id,
                payload,
                ..
            } => self.hear_player(outbox, client_conn_id, msg_type, payload),
            Event::Data {
                channel_id, value, ..
            } => self.see(EntityId(channel_id), value, outbox),
            Event::LoggedIn {
                conn_id,
                should_recover,
                ..
            } => {
                self.conn_id = Some(conn_id);
                if should_recover {
                    self.stage = Stage::Recovering;
                } else {
                    self.ask_for_cells(conn_id, outbox);
                }
            }
            Event::Message {
                channel_id,
                message,
                ..
            } => match message {
                FromGateway::CreateSpatialChannel(made) => self.own(made.spatial_channel_id),
                FromGateway::SpatialRegionsUpdate(told) => self.compare_grid(&told.regions),
                FromGateway::SpatialChannelsReady(_) => self.stage = Stage::Ready,
                FromGateway::CreateEntityChannel(made) => {
                    self.opened(EntityId(made.channel_id), outbox);
                }
                FromGateway::ChannelDataHandover(handover) => self.handed_over(&handover, outbox),
                FromGateway::UnsubFromChannel(left) if Some(left.conn_id) == self.conn_id => {
                    self.lose(EntityId(channel_id), Custody::Gave);
                }
                FromGateway::RemoveChannel(removed) => {
                    self.lose(EntityId(removed.channel_id), Custody::Dropped);
                }
                FromGateway::RecoveryChannelData(data) => self.recover(&data),
                FromGateway::RecoveryEnd(_) => self.recovered_all(outbox),
                _ => {}
            },
            _ => {}
        }
    }
}
