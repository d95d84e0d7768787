//! A game server that simulates a part of the world: a block of cells, whose
//! spatial channels it owns.
//!
//! A character whose state, as announced, lies in another server's cell is let go
//! of with that very state: the gateway hands it over on seeing it, and
//! whatever this server would still say of it would contradict its next one.

mod border;
mod departing;
mod players;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lagometer_client::{Event, Handler, Outbox, SendError};
use lagometer_protocol::messages::channeldpb::spatial_interest_query::SphereAoi;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
    SpatialInterestQuery, SpatialRegion,
};
use lagometer_protocol::{Broadcast, FromGateway};
use lagometer_units::Time;
use prost::Message as _;

use super::departure::Departure;
use super::entities::Entities;
use super::handover_state::{Followed, sign};
use super::server_player::{ServerPlayer, player_of};
use super::{ServerCounts, count_refusal};
use crate::measure::authority::{Authority, Claim};
use crate::sim::body::Body;
use crate::sim::crowd::{Crowd, EntityId};
use crate::sim::ground::Ground;
use crate::sim::scenario::Scenario;
use crate::sim::space::Space;
use crate::sim::vector::Vector;
use crate::wire::ids::EntityKind;
use crate::wire::messages::{self, GLOBAL};

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
    state: RegionState,
    /// What is wrong with the gateway.
    trouble: Option<&'static str>,
    /// The players whose characters it simulates.
    charges: BTreeMap<u32, Charge>,
    /// Players that wait for the channels of their entities.
    arriving: BTreeMap<u32, Arrival>,
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
    pub(super) departure: Departure,
    frozen: bool,
    counts: ServerCounts,
    buffer: Vec<u8>,
}

/// How far a server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionState {
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
    server_player: ServerPlayer,
    /// What the entity's data says its character has followed.
    announced: Followed,
    /// The entity's data says that this server simulates it.
    signed: bool,
    /// Where its interest was set last.
    interest_at: Vector,
}

/// A player that waits for the channels of its entities.
#[derive(Debug)]
struct Arrival {
    charge: Charge,
    body: Body,
    /// The cell that it came to and is shown.
    came_to: u32,
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
            state: RegionState::Beginning,
            trouble: None,
            charges: BTreeMap::new(),
            arriving: BTreeMap::new(),
            players: BTreeMap::new(),
            entities: Entities::default(),
            gone: BTreeSet::new(),
            recovered: Vec::new(),
            unclaimed: BTreeSet::new(),
            claims: Vec::new(),
            departure: Departure::default(),
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
        self.trouble.map_or(
            Ok(self.state == RegionState::Ready && self.block.is_some()),
            Err,
        )
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

    /// Simulates a frame that ends at `now`, sends what changed and lets go of
    /// whoever has left.
    pub fn frame(&mut self, now: Time, outbox: &mut Outbox) {
        if self.is_ready() != Ok(true) {
            return;
        }
        self.counts.frames += 1;
        if !self.frozen {
            self.crowd.frame(self.scenario.server_frame().as_secs_f64());
        }
        self.send(now, outbox);
        self.let_go_of_leavers(now);
        self.follow(outbox);
        self.acknowledge(now, outbox);
    }

    /// Each character that changed, in its own channel.
    fn send(&mut self, now: Time, outbox: &mut Outbox) {
        for (entity, body) in self.crowd.own() {
            let Some(charge) = player_of(entity).and_then(|player| self.charges.get_mut(&player))
            else {
                continue;
            };
            // What cannot be sent now must not count as sent: the character's
            // place as sent decides whose it is.
            let mut replica = charge.server_player.replica.clone();
            let Some(actor) = replica.actor_changes(body) else {
                continue;
            };
            let character = replica.character_changes(body);
            let mut data = messages::entity_update(actor, character, now.as_secs_f64() as f32);
            let followed = Followed::of(&charge.server_player.intent);
            if followed != charge.announced {
                followed.put_into(&mut data);
            }
            if let (false, Some(block)) = (charge.signed, self.block) {
                sign(block, &mut data);
            }
            self.buffer.clear();
            // A vector takes whatever is written.
            let _ = data.encode(&mut self.buffer);
            let sent = outbox.update(entity.0, messages::ENTITY_TYPE_URL, &self.buffer);
            if sent.is_ok() {
                self.counts.states += 1;
                charge.server_player.replica = replica;
                charge.announced = followed;
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
                let place = charge.server_player.replica.place()?;
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
                .server_player
                .replica
                .place()
                .and_then(|place| self.space.cell_at(place));
            let (true, Some(cell)) = (charge.server_player.answer_is_due(now), cell) else {
                continue;
            };
            let answer =
                messages::move_answer(EntityKind::Pawn.of(player), &charge.server_player.intent);
            let sent = outbox.message(
                cell,
                Broadcast(messages::SINGLE_CONNECTION),
                charge.server_player.conn_id,
                messages::RPC,
                &answer,
            );
            count_refusal(&mut self.counts, &sent);
        }
    }

    /// Simulates a character from now on.
    fn take(&mut self, player: u32, charge: Charge, body: Body) {
        let pawn = EntityKind::Pawn.of(player);
        self.players.insert(charge.server_player.conn_id, player);
        self.charges.insert(player, charge);
        self.crowd.take(pawn, body);
        self.claim(pawn, Authority::Took, self.clock.get());
    }

    /// Simulates a character no longer. Its channels are another's, or gone.
    fn release(&mut self, player: u32, what: Authority, now: Time) {
        let pawn = EntityKind::Pawn.of(player);
        self.entities.forget(player);
        if let Some(charge) = self.charges.remove(&player) {
            self.players.remove(&charge.server_player.conn_id);
        }
        if self.crowd.give_up(pawn).is_some() {
            self.claim(pawn, what, now);
        }
    }

    fn claim(&mut self, entity: EntityId, what: Authority, at: Time) {
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
                center: Some(messages::spatial(place)),
                radius: self.space.interest_radius_m * 100.0,
            }),
            ..SpatialInterestQuery::default()
        };
        let sent = outbox.update_interest(cell, charge.server_player.conn_id, query);
        count_refusal(&mut self.counts, &sent);
    }

    fn is_mine(&self, place: Vector) -> bool {
        let cell = self.space.cell_at(place);
        cell.is_some_and(|cell| self.cells.contains(&cell))
    }

    /// Asks for a block of cells.
    fn ask_for_cells(&mut self, conn_id: u32, outbox: &mut Outbox) {
        let options = |access: ChannelDataAccess| ChannelSubscriptionOptions {
            data_access: Some(access.into()),
            ..ChannelSubscriptionOptions::default()
        };
        let read = Some(options(ChannelDataAccess::ReadAccess));
        let subscribed = outbox.subscribe(GLOBAL, conn_id, read);
        count_refusal(&mut self.counts, &subscribed);
        let asked = outbox.create_channel(CreateChannelMessage {
            channel_type: ChannelType::Spatial.into(),
            sub_options: Some(options(ChannelDataAccess::WriteAccess)),
            metadata: messages::CELL_MARK.to_owned(),
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
                channel_id,
                msg_type,
                client_conn_id,
                payload,
                ..
            } => match msg_type {
                messages::LOW_LEVEL => self.asked_in(channel_id, client_conn_id, payload, outbox),
                _ => self.receive_from_player(outbox, client_conn_id, msg_type, payload),
            },
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
                    self.state = RegionState::Recovering;
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
                FromGateway::SpatialRegionsUpdate(announced) => {
                    self.compare_grid(&announced.regions);
                }
                FromGateway::SpatialChannelsReady(_) => self.state = RegionState::Ready,
                FromGateway::CreateEntityChannel(made) => {
                    self.opened(EntityId(made.channel_id), outbox);
                }
                FromGateway::ChannelDataHandover(handover) => self.handed_over(&handover, outbox),
                FromGateway::UnsubFromChannel(left) if Some(left.conn_id) == self.conn_id => {
                    self.lose(EntityId(channel_id), Authority::Gave);
                }
                FromGateway::RemoveChannel(removed) => {
                    self.departure.removed(removed.channel_id);
                    self.lose(EntityId(removed.channel_id), Authority::Dropped);
                }
                FromGateway::RecoveryChannelData(data) => self.recover(&data),
                FromGateway::RecoveryEnd(_) => self.recovered_all(outbox),
                _ => {}
            },
            _ => {}
        }
    }
}
