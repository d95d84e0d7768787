//! Simulated game servers: they own the world or a part of it, simulate its
//! characters and send the gateway their states.

mod bootstrap;
mod departure;
mod entities;
mod handover_state;
mod master;
mod region;
mod server_player;
mod whole;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use lagometer_client::{Event, Handler, Outbox, SendError};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::measure::authority::Claim;
use crate::sim::crowd::Crowd;
use crate::sim::scenario::{Channels, Scenario};

pub use master::Master;
pub use region::Region;
pub use whole::GameServer;

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounts {
    /// Frames simulated.
    pub frames: u64,
    /// States of characters sent.
    pub states: u64,
    /// Moves taken from players.
    pub moves: u64,
    /// Moves that were none.
    pub bad_moves: u64,
    /// What the connection had no room for.
    pub refused: u64,
    /// Players that found no place on the map.
    pub turned_away: u64,
    /// Characters that came to another cell of the same server.
    pub cell_changes: u64,
    /// Characters that other servers handed over.
    pub taken_over: u64,
    /// Handovers that carried too little to go on with the character.
    pub bad_handovers: u64,
}

impl ServerCounts {
    /// What came since `before`, players turned away excepted: those are counted
    /// altogether.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames - before.frames,
            states: self.states - before.states,
            moves: self.moves - before.moves,
            bad_moves: self.bad_moves - before.bad_moves,
            refused: self.refused - before.refused,
            turned_away: self.turned_away,
            cell_changes: self.cell_changes - before.cell_changes,
            taken_over: self.taken_over - before.taken_over,
            bad_handovers: self.bad_handovers - before.bad_handovers,
        }
    }
}

impl std::ops::AddAssign for ServerCounts {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.states += other.states;
        self.moves += other.moves;
        self.bad_moves += other.bad_moves;
        self.refused += other.refused;
        self.turned_away += other.turned_away;
        self.cell_changes += other.cell_changes;
        self.taken_over += other.taken_over;
        self.bad_handovers += other.bad_handovers;
    }
}

/// Any of the game servers that a scenario needs, each with a connection of
/// its own.
///
/// It handles the gateway's messages as a [`Handler`] and is given each frame's time.
/// What it sends goes into the outbox it is handed.
#[derive(Debug)]
pub enum Server {
    /// The world's only one.
    Whole(Box<GameServer>),
    /// The one that lets players in where others simulate them.
    Master(Box<Master>),
    /// One of those that simulate a part of the world each.
    Region(Box<Region>),
}

impl Server {
    /// All servers of a scenario, in the order in which they are to begin;
    /// `clock` is the time of the run, which whoever drives them keeps.
    #[must_use]
    pub fn all(scenario: &Arc<Scenario>, clock: &Rc<Cell<Time>>) -> Vec<Self> {
        match (scenario.channels, &scenario.space) {
            (Channels::Spatial, Some(space)) => {
                let master = Master::new(Arc::clone(scenario));
                let regions = (0..space.server_count()).map(|nth| {
                    Self::Region(Box::new(Region::new(
                        nth,
                        Arc::clone(scenario),
                        *space,
                        Rc::clone(clock),
                    )))
                });
                std::iter::once(Self::Master(Box::new(master)))
                    .chain(regions)
                    .collect()
            }
            _ => vec![Self::Whole(Box::new(GameServer::new(
                Arc::clone(scenario),
                Rc::clone(clock),
            )))],
        }
    }

    /// How many servers a scenario has.
    #[must_use]
    pub fn count(scenario: &Scenario) -> u32 {
        match (scenario.channels, &scenario.space) {
            (Channels::Spatial, Some(_)) => 1 + scenario.simulating(),
            _ => 1,
        }
    }

    /// The number among those that simulate of the server of that number; none
    /// of a master, which comes before them.
    #[must_use]
    pub fn simulating(scenario: &Scenario, number: u32) -> Option<u32> {
        number.checked_sub(Self::count(scenario) - scenario.simulating())
    }

    /// Logs in and asks for what it is to own.
    ///
    /// # Errors
    ///
    /// [`SendError`] where the outbox takes nothing.
    pub fn begin(&self, outbox: &mut Outbox) -> Result<(), SendError> {
        match self {
            Self::Whole(server) => server.begin(outbox),
            Self::Master(server) => server.begin(outbox),
            Self::Region(server) => server.begin(outbox),
        }
    }

    /// The number of its connection, once the gateway has let it in.
    #[must_use]
    pub fn conn_id(&self) -> Option<u32> {
        match self {
            Self::Whole(server) => server.conn_id(),
            Self::Master(server) => server.conn_id(),
            Self::Region(server) => server.conn_id(),
        }
    }

    /// A world begins with this server: once it has GLOBAL, it removes what an
    /// earlier world left on the gateway, and is ready when that is gone.
    pub fn begin_world(&mut self) {
        match self {
            Self::Whole(server) => server.begin_world(),
            Self::Master(server) => server.begin_world(),
            Self::Region(_) => {}
        }
    }

    /// Whether it has what it is to own. `Err` where it never will have, with
    /// the reason.
    ///
    /// # Errors
    ///
    /// What is wrong with the gateway.
    pub fn is_ready(&self) -> Result<bool, &'static str> {
        match self {
            Self::Whole(server) => server.is_ready(),
            Self::Master(server) => server.is_ready(),
            Self::Region(server) => server.is_ready(),
        }
    }

    /// Whether it simulates characters, and so has frames.
    #[must_use]
    pub fn simulates(&self) -> bool {
        !matches!(self, Self::Master(_))
    }

    /// Simulates a frame that ends at `now` and sends what changed.
    pub fn frame(&mut self, now: Time, outbox: &mut Outbox) {
        match self {
            Self::Whole(server) => server.frame(now, outbox),
            Self::Master(_) => {}
            Self::Region(server) => server.frame(now, outbox),
        }
    }

    /// From now on nobody moves any more.
    pub fn freeze(&mut self) {
        match self {
            Self::Whole(server) => server.freeze(),
            Self::Master(_) => {}
            Self::Region(server) => server.freeze(),
        }
    }

    /// The world is over: players are about to go, and nothing need be done for
    /// those who stay.
    pub fn begin_to_leave(&mut self) {
        match self {
            Self::Whole(server) => server.departure.begin(),
            Self::Master(_) => {}
            Self::Region(server) => server.departure.begin(),
        }
    }

    /// Whether it knows of players that have not gone yet.
    #[must_use]
    pub fn has_players(&self) -> bool {
        match self {
            Self::Whole(server) => server.has_players(),
            Self::Master(server) => server.has_players(),
            Self::Region(server) => server.has_players(),
        }
    }

    /// Has the channels removed that it has made. What it receives afterwards of
    /// their going is counted.
    pub fn take_away(&mut self, outbox: &mut Outbox) {
        match self {
            Self::Whole(server) => server.take_away(outbox),
            Self::Master(_) => {}
            Self::Region(server) => server.take_away(outbox),
        }
    }

    /// Whether all of them are gone.
    #[must_use]
    pub fn has_taken_away(&self) -> bool {
        match self {
            Self::Whole(server) => server.departure.is_clear(),
            Self::Master(_) => true,
            Self::Region(server) => server.departure.is_clear(),
        }
    }

    /// The characters that it simulates, as they are.
    #[must_use]
    pub fn crowd(&self) -> Option<&Crowd> {
        match self {
            Self::Whole(server) => Some(server.crowd()),
            Self::Master(_) => None,
            Self::Region(server) => Some(server.crowd()),
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> ServerCounts {
        match self {
            Self::Whole(server) => server.counts(),
            Self::Master(server) => server.counts(),
            Self::Region(server) => server.counts(),
        }
    }

    /// Whether it has begun or ended to simulate somebody since it was last
    /// asked.
    #[must_use]
    pub fn has_claims(&self) -> bool {
        match self {
            Self::Region(server) => server.has_claims(),
            Self::Whole(_) | Self::Master(_) => false,
        }
    }

    /// What it began and ended to simulate since it was last asked.
    pub fn take_claims(&mut self) -> Vec<Claim> {
        match self {
            Self::Region(server) => server.take_claims(),
            Self::Whole(_) | Self::Master(_) => Vec::new(),
        }
    }
}

impl Handler for Server {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        match self {
            Self::Whole(server) => server.on_event(outbox, event),
            Self::Master(server) => server.on_event(outbox, event),
            Self::Region(server) => server.on_event(outbox, event),
        }
    }
}

/// Counts what found no room; a server does not wait for its gateway.
fn count_refusal<T>(counts: &mut ServerCounts, sent: &Result<T, SendError>) {
    counts.refused += u64::from(sent.is_err());
}
