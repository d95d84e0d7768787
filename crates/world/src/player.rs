//! A simulated player: it walks, turns and jumps, subscribes to what it should
//! see, and keeps the newest of it.

mod ages;
mod around;
mod spatial;
pub(crate) mod view;
mod waiting;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lagometer_client::{Event, Handler, Outbox, SendError};
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{ChannelDataAccess, ChannelSubscriptionOptions};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::measure::input_digest::InputDigest;
use crate::measure::windows::Windows;
use crate::player::view::{Seen, View};
use crate::sim::bot::{BotBehavior, Turn};
use crate::sim::crowd::EntityId;
use crate::sim::scenario::{Channels, Scenario};
use crate::sim::vector::Vector;
use crate::wire::ids::EntityKind;
use crate::wire::intent::Intent;
use crate::wire::messages::{self, GLOBAL, read_spawn};
use crate::wire::sight::{read_entity, read_world};
use around::Around;

/// How long a player that has no pawn, or is not answered any more, waits until
/// it asks again to play.
pub(crate) const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// How long a player that receives nothing at all waits before it hangs up and comes back,
/// as games do that show "connection lost". A transport may not notice: KCP has no message
/// by which a conversation ends. As long as a gateway waits for a client of KCP by
/// default (`limits.kcp_silent_at_most`).
pub(crate) const SILENT_AT_MOST: Duration = Duration::from_secs(30);

/// What a player has done and been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerCounts {
    /// Data updates received.
    pub updates: u64,
    /// States of entities in them, where the player looked.
    pub states: u64,
    /// Moves sent.
    pub moves: u64,
    /// Answers to its moves.
    pub answers: u64,
    /// Changes of a subscription's interval with distance.
    pub tier_changes: u64,
    /// Updates that were none of the world's.
    pub bad_updates: u64,
    /// What the connection had no room for.
    pub refused: u64,
}

/// A simulated player.
#[derive(Debug)]
pub struct Player {
    number: u32,
    scenario: Arc<Scenario>,
    bot: BotBehavior,
    clock: Rc<Cell<Time>>,
    intent: Intent,
    decisions: u64,
    input_digest: InputDigest,
    conn_id: Option<u32>,
    /// Its own pawn, once it has one.
    pawn: Option<EntityId>,
    observes: bool,
    subscribed_at: Option<Time>,
    first_state_after: Option<Duration>,
    /// The others, and at which tier their channels are subscribed to.
    view: View,
    /// What it saw when its connection broke off, until it is sent an update.
    before: View,
    windows: Windows,
    /// The cells it is shown, where the world has cells.
    around: Around,
    /// When it last asked to play.
    asked_at: Time,
    /// When it last received anything, or began.
    received_at: Time,
    /// When the server last answered a move, or gave it its pawn.
    answered_at: Time,
    /// Times between the last state by one server and the first by the next.
    handover_gaps: Vec<Duration>,
    counts: PlayerCounts,
}

impl Player {
    /// The player numbered `number`, which has said nothing yet; `clock` is
    /// the time of the run, which whoever drives it keeps.
    #[must_use]
    pub fn new(number: u32, scenario: Arc<Scenario>, clock: Rc<Cell<Time>>) -> Self {
        let bot = BotBehavior::new(scenario.seed, number, scenario.bot_config);
        Self {
            number,
            bot,
            intent: Intent::default(),
            decisions: bot.decisions_by(clock.get()),
            input_digest: InputDigest::new(&bot, &scenario),
            conn_id: None,
            pawn: None,
            observes: number < scenario.observers || scenario.all_look(),
            subscribed_at: None,
            first_state_after: None,
            view: View::default(),
            before: View::default(),
            windows: Windows::since(clock.get()),
            around: Around::default(),
            asked_at: Time::ZERO,
            received_at: clock.get(),
            answered_at: Time::ZERO,
            handover_gaps: Vec::new(),
            counts: PlayerCounts::default(),
            scenario,
            clock,
        }
    }

    /// Logs in.
    ///
    /// # Errors
    ///
    /// [`SendError`] where the outbox takes nothing.
    pub fn begin(&self, outbox: &mut Outbox) -> Result<(), SendError> {
        let name = format!("player-{}", self.number);
        outbox.authenticate(&name, "test_lt").map(drop)
    }

    /// Decides what the time up to now brings and sends it to the server.
    pub fn frame(&mut self, now: Time, outbox: &mut Outbox) {
        let due = self.bot.decisions_by(now);
        for nth in self.decisions..due {
            let decision = self.bot.decision(nth);
            self.input_digest.note(nth, decision);
            if self.pawn.is_none() {
                continue;
            }
            self.intent.quarters += match decision.turn {
                Some(Turn::Left) => 1,
                Some(Turn::Right) => -1,
                None => 0,
            };
            self.intent.jumps += u32::from(decision.jump);
            self.intent.teleports += u32::from(decision.teleport);
        }
        self.decisions = due;
        if self.pawn.is_none() || self.is_forgotten(now) {
            self.ask_again(now, outbox);
        }
        let Some(pawn) = self.pawn else {
            return;
        };
        self.intent.sequence += 1;
        self.intent.at_ms = (now.as_nanos() / 1_000_000) as u32;
        let moved = messages::move_call(pawn, &self.intent);
        let listener = self.around.home().unwrap_or(GLOBAL);
        let sent = outbox.message_owner(listener, messages::RPC, &moved);
        self.counts.moves += u64::from(sent.is_ok());
        self.note(sent);
    }

    /// Its number, by which it plays.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What it sees.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether it keeps what it is sent.
    #[must_use]
    pub fn observes(&self) -> bool {
        self.observes
    }

    /// Whether what it subscribes to goes out together with its moves, as a
    /// game sends. Where entities come and go with the cells around it, it does
    /// not: having unsubscribed from one must be over before that comes again.
    #[must_use]
    pub fn speaks_once_a_frame(&self) -> bool {
        self.scenario.channels != Channels::Spatial
    }

    /// Whether it has its pawn.
    #[must_use]
    pub fn is_in_game(&self) -> bool {
        self.pawn.is_some()
    }

    /// The time from its subscription to the first state it was sent.
    #[must_use]
    pub fn first_state_after(&self) -> Option<Duration> {
        self.first_state_after
    }

    /// The times between the last state by one server and the first by the
    /// next, of each character it saw handed over, since it was last asked.
    pub fn take_handover_gaps(&mut self) -> Vec<Duration> {
        std::mem::take(&mut self.handover_gaps)
    }

    /// What it has done and been sent so far.
    #[must_use]
    pub fn counts(&self) -> PlayerCounts {
        self.counts
    }

    /// What it decided while the world was measured, as a fingerprint.
    #[must_use]
    pub fn input_digest(&self) -> u64 {
        self.input_digest.fingerprint()
    }

    /// Forgets the figures of the time before now; what it sees stays.
    pub fn begin_measuring(&mut self) {
        self.counts = PlayerCounts::default();
        self.windows = Windows::since(self.clock.get());
        self.handover_gaps.clear();
    }

    /// Whether the server does not answer any more: one that has the world
    /// alone may have broken off and come back without its players. One that
    /// only is slow has the player already and takes no notice.
    fn is_forgotten(&self, now: Time) -> bool {
        let is_alone = self.scenario.channels != Channels::Spatial;
        is_alone && now.since(self.answered_at) >= ASK_AGAIN_AFTER
    }

    /// Whether its connection is as good as gone, whatever the transport says.
    pub(crate) fn is_cut_off(&self, now: Time) -> bool {
        now.since(self.received_at) >= SILENT_AT_MOST
    }

    /// Asks again to play where the first asking was lost, with a server that
    /// broke off or was not there yet.
    fn ask_again(&mut self, now: Time, outbox: &mut Outbox) {
        let waits = self.conn_id.is_some() && now.since(self.asked_at) >= ASK_AGAIN_AFTER;
        if waits {
            let listener = self.around.home().unwrap_or(GLOBAL);
            self.ask_to_play(listener, outbox);
        }
    }

    fn others(&self) -> impl Iterator<Item = (EntityId, Seen)> {
        let own = self.pawn;
        self.view
            .entities()
            .filter(move |(entity, _)| Some(*entity) != own)
    }

    fn tier_by_distance(&self, place: Vector) -> usize {
        let own = self.pawn.and_then(|pawn| self.view.seen(pawn)?.place);
        let metres = own.map_or(0.0, |own| own.ground_distance_squared(place).sqrt() / 100.0);
        self.scenario.tier_at(metres)
    }

    fn options(&self, tier: usize) -> ChannelSubscriptionOptions {
        let every = self.scenario.tiers[tier].every.0;
        ChannelSubscriptionOptions {
            fan_out_interval_ms: Some(every.as_millis() as u32),
            ..ChannelSubscriptionOptions::default()
        }
    }

    fn logged_in(&mut self, conn_id: u32, outbox: &mut Outbox) {
        self.conn_id = Some(conn_id);
        self.subscribed_at = Some(self.clock.get());
        let options = ChannelSubscriptionOptions {
            data_access: Some(ChannelDataAccess::ReadAccess.into()),
            fan_out_delay_ms: Some(self.scenario.fan_out_delay.0.as_millis() as i32),
            ..self.options(0)
        };
        let asked = outbox.subscribe(GLOBAL, conn_id, Some(options)).map(drop);
        self.note(asked);
        self.ask_to_play(GLOBAL, outbox);
    }

    fn spawned(&mut self, channel_id: u32, payload: &[u8], outbox: &mut Outbox) {
        let Some((entity, owner)) = read_spawn(payload) else {
            self.counts.bad_updates += 1;
            return;
        };
        if owner.is_some() && owner == self.conn_id {
            let is_again = self.pawn.replace(entity) == Some(entity);
            if is_again && self.scenario.channels == Channels::Entity {
                self.subscribe_anew(outbox);
            }
            self.answered_at = self.clock.get();
            if self.scenario.channels != Channels::Spatial {
                self.forget_who_is_not_announced();
            }
            self.around.settle(channel_id);
        }
        if self.scenario.channels == Channels::Spatial {
            if self.around.shows(channel_id) {
                self.sight(entity, channel_id, outbox);
            }
            return;
        }
        if self.observes {
            self.view.learn(entity, self.clock.get());
        }
        if self.scenario.channels == Channels::Entity && self.view.tier(entity).is_none() {
            self.view.subscribe(entity, 0);
            self.read(entity, outbox);
        }
    }

    /// Subscribes to an entity's channel at the first tier's interval.
    fn read(&mut self, entity: EntityId, outbox: &mut Outbox) {
        let options = ChannelSubscriptionOptions {
            data_access: Some(ChannelDataAccess::ReadAccess.into()),
            ..self.options(0)
        };
        let asked = outbox.subscribe(entity.0, self.conn_id.unwrap_or(0), Some(options));
        self.note(asked.map(drop));
    }

    /// The player gets its pawn again without a message that it was
    /// gone: the server has broken off and makes all channels anew, and not
    /// every gateway says of the old ones that they are no more. Those that are
    /// there already are sent now, the others once they are announced.
    fn subscribe_anew(&mut self, outbox: &mut Outbox) {
        let entities: Vec<EntityId> = self.view.entities().map(|(entity, _)| entity).collect();
        for entity in entities {
            self.view.unsubscribe(entity);
            self.read(entity, outbox);
        }
    }

    fn receive(&mut self, channel_id: u32, data: &[u8], outbox: &mut Outbox) {
        let now = self.clock.get();
        self.counts.updates += 1;
        if channel_id == GLOBAL {
            self.windows.note(now);
        }
        if !self.observes {
            self.first_state(now);
            return;
        }
        let is_cell = |space: crate::Space| space.is_cell(channel_id);
        let read = match channel_id {
            GLOBAL => self.receive_world(data, now),
            cell if self.scenario.space.is_some_and(is_cell) => {
                self.receive_cell(cell, data, outbox)
            }
            _ => self.receive_entity(EntityId(channel_id), data, now, outbox),
        };
        if read.is_none() {
            self.counts.bad_updates += 1;
        }
    }

    fn receive_world(&mut self, data: &[u8], now: Time) -> Option<()> {
        let Self { view, counts, .. } = self;
        let at_s = read_world(data, |entity, sighting| {
            counts.states += 1;
            let _ = view.see(entity, &sighting, sighting.at_s.map(seconds), now);
        })
        .ok()?;
        if at_s.is_some() {
            self.first_state(now);
        }
        Some(())
    }

    fn receive_entity(
        &mut self,
        entity: EntityId,
        data: &[u8],
        now: Time,
        outbox: &mut Outbox,
    ) -> Option<()> {
        let Some((player, kind)) = EntityKind::parse(entity) else {
            return Some(());
        };
        if self.drop_if_out_of_sight(player, kind, outbox) || kind != EntityKind::Pawn {
            return Some(());
        }
        let sighting = read_entity(data).ok()?;
        self.counts.states += 1;
        let gap = self
            .view
            .see(entity, &sighting, sighting.at_s.map(seconds), now);
        self.handover_gaps.extend(gap);
        self.first_state(now);
        self.follow_distance(entity, outbox);
        Some(())
    }

    /// Subscribes at another interval when an entity has come to another
    /// tier's distance.
    fn follow_distance(&mut self, entity: EntityId, outbox: &mut Outbox) {
        if Some(entity) == self.pawn {
            return;
        }
        let Some(seen) = self.view.seen(entity) else {
            return;
        };
        let Some(place) = seen.place else {
            return;
        };
        let (before, tier) = (seen.tier, self.tier_by_distance(place));
        if before == Some(tier) {
            return;
        }
        self.view.subscribe(entity, tier);
        let every = |tier: usize| self.scenario.tiers[tier].every;
        if before.is_some_and(|before| every(before) == every(tier)) {
            return;
        }
        self.counts.tier_changes += 1;
        let asked = outbox.subscribe(
            entity.0,
            self.conn_id.unwrap_or(0),
            Some(self.options(tier)),
        );
        self.note(asked.map(drop));
    }

    fn first_state(&mut self, now: Time) {
        if let (None, Some(subscribed)) = (self.first_state_after, self.subscribed_at) {
            self.first_state_after = Some(now.since(subscribed));
        }
    }

    fn note(&mut self, sent: Result<(), SendError>) {
        self.counts.refused += u64::from(sent.is_err());
    }
}

impl Handler for Player {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        self.received_at = self.clock.get();
        match event {
            Event::Data {
                channel_id, value, ..
            } => self.receive(channel_id, value, outbox),
            Event::User {
                channel_id,
                msg_type: messages::SPAWN,
                payload,
                ..
            } => self.spawned(channel_id, payload, outbox),
            Event::User {
                msg_type: messages::RPC,
                ..
            } => {
                self.counts.answers += 1;
                self.answered_at = self.clock.get();
            }
            Event::LoggedIn { conn_id, .. } => self.logged_in(conn_id, outbox),
            // Of a channel whose owner is gone the gateway sends notice in GLOBAL.
            Event::Message {
                message: FromGateway::RemoveChannel(removed),
                ..
            } => {
                let entity = EntityId(removed.channel_id);
                self.view.forget(entity);
                self.before.forget(entity);
                self.view.unsubscribe(entity);
                self.around.forget(entity);
                if self.pawn == Some(entity) {
                    self.pawn = None;
                }
            }
            Event::Message {
                channel_id,
                message,
                ..
            } if self.scenario.channels == Channels::Spatial => {
                self.receive_space(channel_id, &message, outbox);
            }
            _ => {}
        }
    }
}

fn seconds(at_s: f64) -> Time {
    Time::from_nanos((at_s * 1e9) as u64)
}
