//! A player in a world of cells: it sees who is in those it is shown.

use lagometer_client::Outbox;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataHandoverMessage, ConnectionType, SubscribedToChannelResultMessage,
};
use lagometer_protocol::messages::unrealpb::SpatialChannelData;
use prost::Message as _;

use super::Player;
use crate::sim::crowd::EntityId;
use crate::sim::vector::Vector;
use crate::wire::ids::EntityKind;
use crate::wire::messages;

impl Player {
    /// Whether a place is in what this player is shown.
    #[must_use]
    pub fn is_shown(&self, place: Vector) -> bool {
        self.scenario.space.is_none_or(|space| {
            let cell = space.cell_at(place);
            cell.is_some_and(|cell| self.around.shows(cell))
        })
    }

    /// Handles messages about cells and handovers.
    pub(super) fn receive_space(
        &mut self,
        channel_id: u32,
        message: &FromGateway,
        outbox: &mut Outbox,
    ) {
        match message {
            FromGateway::SubToChannel(result) if self.is_own(result.conn_id) => {
                self.subscribed_to(channel_id, result, outbox);
            }
            FromGateway::UnsubFromChannel(result) if self.is_own(result.conn_id) => {
                self.unsubscribed_from(channel_id, outbox);
            }
            FromGateway::ChannelDataHandover(handover) => self.handed_over(handover, outbox),
            _ => {}
        }
    }

    /// A cell says who is in it.
    pub(super) fn receive_cell(
        &mut self,
        cell: u32,
        data: &[u8],
        outbox: &mut Outbox,
    ) -> Option<()> {
        let data = SpatialChannelData::decode(data).ok()?;
        let is_home = self.around.home() == Some(cell);
        let own = self.pawn.filter(|_| is_home);
        let is_settled = own.is_some_and(|own| data.entities.contains_key(&own.0));
        for (id, state) in data.entities {
            let pawn = EntityId(id);
            if !is_pawn(pawn) {
                continue;
            }
            if state.removed {
                // Only from where it was: it may have been handed on since.
                if self.around.is_in(pawn, cell) {
                    self.lose_sight(pawn, outbox);
                    self.around.forget(pawn);
                    self.view.forget(pawn);
                }
            } else if self.around.shows(cell) && !self.around.has_left(pawn, cell) {
                self.sight(pawn, cell, outbox);
            }
        }
        if !self.before.is_empty() {
            self.forget_who_left(cell, is_settled);
        }
        Some(())
    }

    /// A pawn is in a cell that is shown.
    pub(super) fn sight(&mut self, pawn: EntityId, cell: u32, outbox: &mut Outbox) {
        self.view.learn(pawn, self.clock.get());
        if !self.around.appear(pawn, cell) {
            return;
        }
        self.view.subscribe(pawn, 0);
        self.read(pawn, outbox);
    }

    /// A pawn is in no cell that is shown. A player never loses sight of its
    /// own.
    fn lose_sight(&mut self, pawn: EntityId, outbox: &mut Outbox) {
        if Some(pawn) == self.pawn {
            return;
        }
        self.view.forget(pawn);
        self.view.unsubscribe(pawn);
        let conn_id = self.conn_id.unwrap_or(0);
        for entity in self.around.disappear(pawn) {
            let asked = outbox.unsubscribe(entity.0, conn_id);
            self.note(asked.map(drop));
        }
    }

    /// Ends the subscription to somebody's entity of which something comes, if that is out of
    /// sight: it was on its way when its pawn went, or the gateway has subscribed the player so
    /// late that it had gone by then. Returns whether it is.
    pub(super) fn drop_if_out_of_sight(
        &mut self,
        player: u32,
        kind: EntityKind,
        outbox: &mut Outbox,
    ) -> bool {
        let pawn = EntityKind::Pawn.of(player);
        // What everybody may know of a player stays known.
        let comes_and_goes = self.scenario.space.is_some() && kind != EntityKind::PlayerState;
        let is_out = comes_and_goes && self.view.seen(pawn).is_none();
        if is_out {
            self.lose_sight(pawn, outbox);
        }
        is_out
    }

    fn subscribed_to(
        &mut self,
        channel_id: u32,
        result: &SubscribedToChannelResultMessage,
        outbox: &mut Outbox,
    ) {
        let is_cell = |space: crate::Space| space.is_cell(channel_id);
        if self.scenario.space.is_some_and(is_cell) {
            self.around.show(channel_id);
            if self.around.home().is_none() {
                self.around.settle(channel_id);
                self.ask_to_play(channel_id, outbox);
            }
            return;
        }
        let entity = EntityId(channel_id);
        if EntityKind::parse(entity).is_some() && result.conn_type == ConnectionType::Client as i32
        {
            self.around.subscribed(entity);
        }
    }

    /// The gateway has ended a subscription, as the player asked, or since a cell is not
    /// shown any more.
    fn unsubscribed_from(&mut self, channel_id: u32, outbox: &mut Outbox) {
        for pawn in self.around.hide(channel_id) {
            self.lose_sight(pawn, outbox);
        }
        let entity = EntityId(channel_id);
        if self.around.unsubscribed(entity)
            && let Some(cell) = self.around.cell_of(entity)
        {
            // It has come back into sight since the player asked.
            self.sight(entity, cell, outbox);
        }
    }

    fn handed_over(&mut self, handover: &ChannelDataHandoverMessage, outbox: &mut Outbox) {
        let data = handover.data.as_ref();
        let Some(Ok(data)) = data.map(|data| SpatialChannelData::decode(&*data.value)) else {
            self.counts.bad_updates += 1;
            return;
        };
        let cell = handover.dst_channel_id;
        let is_shown = self.around.shows(cell);
        for (id, state) in data.entities {
            let pawn = EntityId(id);
            if !is_pawn(pawn) {
                continue;
            }
            if Some(pawn) == self.pawn {
                self.around.settle(cell);
            }
            if !is_shown && Some(pawn) != self.pawn {
                self.lose_sight(pawn, outbox);
                continue;
            }
            self.around.handed_over(pawn, handover.src_channel_id);
            self.sight(pawn, cell, outbox);
            if let Some(known) = state.entity_data {
                let now = self.clock.get();
                if self
                    .receive_entity(pawn, &known.value, now, outbox)
                    .is_none()
                {
                    self.counts.bad_updates += 1;
                }
            }
        }
    }

    fn is_own(&self, conn_id: u32) -> bool {
        Some(conn_id) == self.conn_id
    }

    /// Notifies a channel's owner who wants to play.
    pub(super) fn ask_to_play(&mut self, channel_id: u32, outbox: &mut Outbox) {
        self.asked_at = self.clock.get();
        let login = messages::login(self.number);
        let sent = outbox.message_owner(channel_id, messages::LOW_LEVEL, &login);
        self.note(sent);
    }
}

fn is_pawn(entity: EntityId) -> bool {
    matches!(EntityKind::parse(entity), Some((_, EntityKind::Pawn)))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;

    use lagometer_client::{Session, Settings};
    use lagometer_protocol::messages::channeldpb::{
        ChannelType, UnsubscribedFromChannelResultMessage,
    };
    use lagometer_units::Time;

    use super::*;
    use crate::sim::scenario::{BUILT_IN, Scenario};

    const CONN_ID: u32 = 7;

    /// A player that is shown one cell.
    struct Watching {
        player: Player,
        session: Session,
        cell: u32,
    }

    impl Watching {
        fn new() -> Self {
            let (_, text) = BUILT_IN
                .iter()
                .find(|(name, _)| *name == "spatial")
                .unwrap();
            let scenario = Arc::new(Scenario::parse("spatial", text).unwrap());
            let cell = scenario.space.unwrap().cell_at(Vector::default()).unwrap();
            let clock = Rc::new(Cell::new(Time::ZERO));
            let mut player = Player::new(0, scenario, clock);
            player.conn_id = Some(CONN_ID);
            player.pawn = Some(EntityKind::Pawn.of(0));
            player.around.show(cell);
            let session = Session::new(Settings::default());
            Self {
                player,
                session,
                cell,
            }
        }

        /// Does something; returns how many bytes of requests that made.
        fn asks(&mut self, act: impl FnOnce(&mut Player, u32, &mut Outbox)) -> usize {
            let outbox = self.session.outbox();
            let before = outbox.waiting_bytes();
            act(&mut self.player, self.cell, outbox);
            outbox.waiting_bytes() - before
        }

        fn sights(&mut self, pawn: EntityId) -> usize {
            self.asks(|player, cell, outbox| player.sight(pawn, cell, outbox))
        }

        fn loses(&mut self, pawn: EntityId) -> usize {
            self.asks(|player, _, outbox| player.lose_sight(pawn, outbox))
        }

        fn receives(&mut self, entity: EntityId, message: &FromGateway) -> usize {
            self.asks(|player, _, outbox| player.receive_space(entity.0, message, outbox))
        }
    }

    fn subscribed() -> FromGateway {
        FromGateway::SubToChannel(SubscribedToChannelResultMessage {
            conn_id: CONN_ID,
            sub_options: None,
            conn_type: ConnectionType::Client.into(),
            channel_type: ChannelType::Entity.into(),
        })
    }

    fn unsubscribed() -> FromGateway {
        FromGateway::UnsubFromChannel(UnsubscribedFromChannelResultMessage {
            conn_id: CONN_ID,
            conn_type: ConnectionType::Client.into(),
            channel_type: ChannelType::Entity.into(),
        })
    }

    /// One that comes into sight and goes at once. That the gateway has subscribed the player
    /// comes after that, by another node.
    fn subscribed_too_late(pawn: EntityId) -> Watching {
        let mut watching = Watching::new();
        assert!(watching.sights(pawn) > 0);
        assert!(watching.loses(pawn) > 0);
        assert_eq!(watching.receives(pawn, &subscribed()), 0);
        watching
    }

    #[test]
    fn who_comes_back_into_sight_is_subscribed_to_though_the_gateway_did_it_once_too_late() {
        let pawn = EntityKind::Pawn.of(3);
        let mut watching = subscribed_too_late(pawn);
        assert_eq!(watching.receives(pawn, &unsubscribed()), 0);
        assert!(watching.sights(pawn) > 0, "it is not subscribed");
    }

    #[test]
    fn who_came_back_into_sight_before_its_subscription_had_ended_is_subscribed_to_again() {
        let pawn = EntityKind::Pawn.of(3);
        let mut watching = subscribed_too_late(pawn);
        assert_eq!(
            watching.sights(pawn),
            0,
            "the gateway says it is subscribed"
        );
        assert!(watching.receives(pawn, &unsubscribed()) > 0);
        assert!(watching.player.view.tier(pawn).is_some());
    }

    #[test]
    fn who_is_out_of_sight_before_the_gateway_has_subscribed_the_player_is_not_read() {
        for kind in [EntityKind::Pawn, EntityKind::Controller] {
            let mut watching = Watching::new();
            let pawn = EntityKind::Pawn.of(3);
            assert_eq!(watching.loses(pawn), 0);
            assert_eq!(watching.receives(kind.of(3), &subscribed()), 0);
            let now = Time::from_millis(100);
            let receive = |player: &mut Player, _, outbox: &mut Outbox| {
                let received = player.receive_entity(kind.of(3), &[], now, outbox);
                received.expect("a state");
            };
            assert!(watching.asks(receive) > 0, "it unsubscribes");
            assert_eq!(watching.asks(receive), 0, "once");
            assert_eq!(watching.player.view.seen(pawn), None);
            assert!(watching.sights(pawn) > 0, "it has to subscribe anew");
        }
    }
}
