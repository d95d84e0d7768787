//! How a server takes GLOBAL, and the gateway in the state in which a world
//! begins: without the cells and entities of an earlier one.
//!
//! A world that ends takes away what it made. One that was killed could not:
//! entities whose numbers the next world's players get would keep them from
//! coming in. All that a world makes is marked, so whoever takes GLOBAL to begin
//! a world lists what bears the mark and removes it, as GLOBAL's owner may.

use std::collections::BTreeSet;
use std::ops::Range;

use lagometer_client::{Event, Outbox, SendError, Stub};
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
    ListChannelResultMessage,
};

use crate::sim::scenario::{Channels, Scenario};
use crate::wire::ids;
use crate::wire::messages::{self, GLOBAL};

/// How often what is left is listed: a gateway removes a channel within one of
/// its ticks, and answers in another.
const ROUNDS: u32 = 200;

const KEPT: &str =
    "it keeps channels of an earlier world, which its settings let nobody remove; start it anew";

const FOREIGN: &str =
    "it has entities of somebody else's, with the numbers that players get; start it anew";

/// A server on its way to owning GLOBAL.
#[derive(Debug)]
pub(super) struct GlobalOwnerBootstrap {
    /// Whether a world begins: what an earlier one left goes.
    begins: bool,
    /// The channels that the players' entities will have.
    needed: Range<u32>,
    conn_id: Option<u32>,
    state: BootstrapState,
}

#[derive(Debug)]
enum BootstrapState {
    /// It has asked for GLOBAL.
    Asking,
    /// The gateway gives it what an earlier connection of its name had.
    Recovering,
    /// It removes what is left of an earlier world.
    Clearing {
        lists: BTreeSet<Stub>,
        found: u32,
        rounds: u32,
    },
    /// It looks whether anything else is in the way.
    Looking(Stub),
    Done,
    Failed(&'static str),
}

impl GlobalOwnerBootstrap {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let entities = match scenario.channels {
            // They have no channels.
            Channels::Single => 0,
            Channels::Entity | Channels::Spatial => ids::EACH * scenario.players,
        };
        Self {
            begins: false,
            needed: ids::FIRST_ENTITY..ids::FIRST_ENTITY + entities,
            conn_id: None,
            state: BootstrapState::Asking,
        }
    }

    /// A world begins with this.
    pub(super) fn begin_world(&mut self) {
        self.begins = true;
    }

    pub(super) fn conn_id(&self) -> Option<u32> {
        self.conn_id
    }

    /// Whether the gateway has given it GLOBAL, and nothing is in the way.
    pub(super) fn is_done(&self) -> Result<bool, &'static str> {
        match self.state {
            BootstrapState::Done => Ok(true),
            BootstrapState::Failed(why) => Err(why),
            _ => Ok(false),
        }
    }

    /// Handles a message that concerns it; what could not be asked for is returned.
    pub(super) fn receive(
        &mut self,
        event: &Event<'_>,
        outbox: &mut Outbox,
    ) -> Result<(), SendError> {
        match event {
            Event::LoggedIn {
                conn_id,
                should_recover,
                ..
            } => {
                self.conn_id = Some(*conn_id);
                if *should_recover {
                    self.state = BootstrapState::Recovering;
                }
                Ok(())
            }
            Event::Message { stub, message, .. } => self.receive_answer(*stub, message, outbox),
            _ => Ok(()),
        }
    }

    fn receive_answer(
        &mut self,
        stub: Stub,
        message: &FromGateway,
        outbox: &mut Outbox,
    ) -> Result<(), SendError> {
        match (&mut self.state, message) {
            (
                BootstrapState::Asking | BootstrapState::Recovering,
                FromGateway::CreateChannel(made),
            ) if made.channel_id == GLOBAL && Some(made.owner_conn_id) == self.conn_id => {
                if self.begins {
                    return self.list(1, outbox);
                }
                // Whoever comes back is sent first what it had.
                if matches!(self.state, BootstrapState::Asking) {
                    self.state = BootstrapState::Done;
                }
            }
            // What it has got of GLOBAL is as the earlier one left it.
            (BootstrapState::Recovering, FromGateway::RecoveryEnd(_)) if self.begins => {
                outbox.unsubscribe(GLOBAL, self.conn_id.unwrap_or(0))?;
                return ask_for_global(outbox);
            }
            (BootstrapState::Recovering, FromGateway::RecoveryEnd(_)) => {
                self.state = BootstrapState::Done;
            }
            (BootstrapState::Clearing { .. }, FromGateway::ListChannel(listed)) => {
                return self.clear(stub, listed, outbox);
            }
            (BootstrapState::Looking(asked), FromGateway::ListChannel(listed))
                if *asked == stub =>
            {
                self.state = if self.is_free(listed) {
                    BootstrapState::Done
                } else {
                    BootstrapState::Failed(FOREIGN)
                };
            }
            _ => {}
        }
        Ok(())
    }

    /// Has what one of the lists names removed; after the last, asks again
    /// whether that is gone.
    fn clear(
        &mut self,
        stub: Stub,
        listed: &ListChannelResultMessage,
        outbox: &mut Outbox,
    ) -> Result<(), SendError> {
        let BootstrapState::Clearing {
            lists,
            found,
            rounds,
        } = &mut self.state
        else {
            return Ok(());
        };
        if !lists.remove(&stub) {
            return Ok(());
        }
        for channel in &listed.channels {
            *found += 1;
            outbox.remove_channel(channel.channel_id)?;
        }
        match (lists.len(), *found, *rounds) {
            (1.., ..) => Ok(()),
            (0, 0, _) => self.look(outbox),
            (0, _, ROUNDS) => {
                self.state = BootstrapState::Failed(KEPT);
                Ok(())
            }
            (0, _, rounds) => self.list(rounds + 1, outbox),
        }
    }

    /// Asks for what an earlier world left, for the `rounds`th time.
    fn list(&mut self, rounds: u32, outbox: &mut Outbox) -> Result<(), SendError> {
        let mut lists = BTreeSet::new();
        lists.insert(outbox.list_channels(ChannelType::Spatial, &[messages::CELL_MARK])?);
        for nth in 0..messages::ENTITY_MARKS {
            let mark = messages::entity_mark(nth);
            lists.insert(outbox.list_channels(ChannelType::Entity, &[&mark])?);
        }
        self.state = BootstrapState::Clearing {
            lists,
            found: 0,
            rounds,
        };
        Ok(())
    }

    fn look(&mut self, outbox: &mut Outbox) -> Result<(), SendError> {
        self.state = if self.needed.is_empty() {
            BootstrapState::Done
        } else {
            BootstrapState::Looking(outbox.list_channels(ChannelType::Entity, &[])?)
        };
        Ok(())
    }

    fn is_free(&self, listed: &ListChannelResultMessage) -> bool {
        let mut ids = listed.channels.iter().map(|channel| channel.channel_id);
        !ids.any(|id| self.needed.contains(&id))
    }
}

/// Logs in as `name` and asks for GLOBAL.
pub(super) fn begin(name: &str, outbox: &mut Outbox) -> Result<(), SendError> {
    outbox.authenticate(name, "test_lt")?;
    ask_for_global(outbox)
}

fn ask_for_global(outbox: &mut Outbox) -> Result<(), SendError> {
    let asked = outbox.create_channel(CreateChannelMessage {
        channel_type: ChannelType::Global.into(),
        sub_options: Some(ChannelSubscriptionOptions {
            data_access: Some(ChannelDataAccess::WriteAccess.into()),
            ..ChannelSubscriptionOptions::default()
        }),
        data: Some(messages::any(messages::WORLD_TYPE, Vec::new())),
        ..CreateChannelMessage::default()
    });
    asked.map(drop)
}

#[cfg(test)]
mod tests {
    use lagometer_client::{Session, Settings};
    use lagometer_protocol::messages::channeldpb::list_channel_result_message::ChannelInfo;
    use lagometer_protocol::messages::channeldpb::{
        CreateChannelResultMessage, EndRecoveryMesssage,
    };

    use super::*;
    use crate::sim::scenario::BUILT_IN;

    const OWN: u32 = 7;

    struct Server {
        bootstrap: GlobalOwnerBootstrap,
        session: Session,
    }

    impl Server {
        /// One of `lod` that has been let in.
        fn begins(should_recover: bool) -> Self {
            let lod = BUILT_IN.iter().find(|(name, _)| *name == "lod").unwrap();
            let mut bootstrap = GlobalOwnerBootstrap::new(&Scenario::parse("lod", lod.1).unwrap());
            bootstrap.begin_world();
            let mut server = Self {
                bootstrap,
                session: Session::new(Settings::default()),
            };
            server.receive(&Event::LoggedIn {
                stub: Stub(1),
                conn_id: OWN,
                should_recover,
            });
            server
        }

        fn receive(&mut self, event: &Event<'_>) {
            let received = self.bootstrap.receive(event, self.session.outbox());
            received.unwrap();
        }

        fn receive_answer(&mut self, stub: Stub, message: FromGateway) {
            self.receive(&Event::Message {
                channel_id: GLOBAL,
                stub,
                message,
            });
        }

        fn gets_global(&mut self) {
            let made = FromGateway::CreateChannel(CreateChannelResultMessage {
                owner_conn_id: OWN,
                channel_id: GLOBAL,
                ..CreateChannelResultMessage::default()
            });
            self.receive_answer(Stub(2), made);
        }

        /// Each list that was asked for has these channels.
        fn finds(&mut self, channels: &[u32]) {
            let stubs: Vec<Stub> = match &self.bootstrap.state {
                BootstrapState::Clearing { lists, .. } => lists.iter().copied().collect(),
                BootstrapState::Looking(stub) => vec![*stub],
                other => panic!("{other:?}"),
            };
            let channels = channels.iter().map(|&channel_id| ChannelInfo {
                channel_id,
                ..ChannelInfo::default()
            });
            let channels: Vec<ChannelInfo> = channels.collect();
            for stub in stubs {
                let channels = channels.clone();
                self.receive_answer(
                    stub,
                    FromGateway::ListChannel(ListChannelResultMessage { channels }),
                );
            }
        }
    }

    #[test]
    fn what_an_earlier_world_left_is_removed_first() {
        let mut server = Server::begins(false);
        server.gets_global();
        server.finds(&[ids::FIRST_ENTITY]);
        assert_eq!(server.bootstrap.is_done(), Ok(false), "is it gone?");
        server.finds(&[]);
        server.finds(&[]);
        assert_eq!(server.bootstrap.is_done(), Ok(true));
    }

    #[test]
    fn what_is_not_removed_is_said() {
        let mut server = Server::begins(false);
        server.gets_global();
        for _ in 0..ROUNDS {
            assert_eq!(server.bootstrap.is_done(), Ok(false));
            server.finds(&[ids::FIRST_ENTITY]);
        }
        assert_eq!(server.bootstrap.is_done(), Err(KEPT));
    }

    #[test]
    fn entities_of_others_are_in_the_way_where_players_get_their_numbers() {
        for (id, expected) in [(ids::FIRST_ENTITY + 1, Err(FOREIGN)), (u32::MAX, Ok(true))] {
            let mut server = Server::begins(false);
            server.gets_global();
            server.finds(&[]);
            server.finds(&[id]);
            assert_eq!(server.bootstrap.is_done(), expected);
        }
    }

    #[test]
    fn what_it_gets_back_it_takes_anew() {
        let mut server = Server::begins(true);
        let before = server.session.outbox().waiting_bytes();
        server.receive_answer(Stub(0), FromGateway::RecoveryEnd(EndRecoveryMesssage {}));
        assert!(server.session.outbox().waiting_bytes() > before);
        assert_eq!(server.bootstrap.is_done(), Ok(false));
        server.gets_global();
        server.finds(&[]);
        server.finds(&[]);
        assert_eq!(server.bootstrap.is_done(), Ok(true));
    }
}
