//! Who sits at one connection.

use lagometer_client::{Event, Handler, Outbox};

use crate::player::Player;
use crate::server::Server;

/// A game server or a player.
#[derive(Debug)]
pub enum Peer {
    /// A game server.
    Server(Server),
    /// A player.
    Player(Box<Player>),
}

impl Peer {
    pub(super) fn server(&self) -> Option<&Server> {
        match self {
            Self::Server(server) => Some(server),
            Self::Player(_) => None,
        }
    }

    pub(super) fn player(&self) -> Option<&Player> {
        match self {
            Self::Player(player) => Some(player),
            Self::Server(_) => None,
        }
    }
}

impl Handler for Peer {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        match self {
            Self::Server(server) => server.on_event(outbox, event),
            Self::Player(player) => player.on_event(outbox, event),
        }
    }
}
