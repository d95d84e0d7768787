//! What a world is played on: connections to a gateway, and a clock. Sockets
//! in real time are one kind, links in virtual time another; the course of a
//! world is the same on all of them.

use std::io;
use std::time::Duration;

use lagometer_client::{Outbox, Settings};
use lagometer_results::GatewayMetrics;
use lagometer_units::Time;
use thiserror::Error;

use crate::driver::running_world::Peer;
use crate::measure::outcome::GatewayTicks;

/// One of the backend's connections. Never used again after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerId(pub usize);

/// Who a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A game server, at the gateway's place for servers.
    Server,
    /// The player of that number, at the gateway's place for players.
    Player(u32),
}

/// What went over all connections so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Bytes that peers received.
    pub received_bytes: u64,
    /// Bytes that they sent.
    pub sent_bytes: u64,
}

/// Why a world could not be played.
#[derive(Debug, Error)]
pub enum PlayError {
    /// No connection, or no more of them.
    #[error("cannot connect to the gateway at {at}: {source}")]
    Connect {
        /// Where it should be.
        at: String,
        /// What the system says.
        source: io::Error,
    },
    /// The gateway does not answer, or not as one.
    #[error("the gateway did not give its world to the game server: {0}")]
    NoWorld(String),
    /// The server's connection ended in the middle.
    #[error("the gateway closed the game server's connection: {0}")]
    ServerLost(String),
    /// Others play parts of the world, and one of them is gone.
    #[error("{0}")]
    Coordination(String),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Connections to a gateway, each with a [`Peer`] that receives what it says, and
/// the clock by which they are played.
///
/// The shared clock that peers read (see [`play_on`](crate::play_on)) is set
/// by whoever plays; a backend that know the instant of each arrival set it too.
pub trait ConnectionBackend {
    /// Time counts from here on; where others play too, once all are ready.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`] where they are not.
    fn start(&mut self) -> Result<(), PlayError>;

    /// The time since the start.
    fn now(&self) -> Time;

    /// Opens a connection. It may still be on its way when this returns; what
    /// is put into its outbox goes out once it stands.
    ///
    /// # Errors
    ///
    /// [`PlayError::Connect`].
    fn connect(&mut self, end: End, settings: Settings, peer: Peer) -> Result<PeerId, PlayError>;

    /// Lets up to `at_most` pass and serves the connections meanwhile.
    ///
    /// # Errors
    ///
    /// The system's; a connection that fails [ends](Self::take_ended) alone.
    fn poll(&mut self, at_most: Duration) -> Result<(), PlayError>;

    /// A connection's peer and outbox; `None` when it has ended.
    fn peer(&mut self, id: PeerId) -> Option<(&mut Peer, &mut Outbox)>;

    /// The connections that stand, in the order in which they were opened.
    fn peers(&self) -> impl Iterator<Item = &Peer>;

    /// Sends what is in a connection's outbox, as far as there is room; the
    /// rest goes when there is.
    fn flush(&mut self, id: PeerId);

    /// Ends a connection from this side, whatever is still in its outbox.
    fn hang_up(&mut self, id: PeerId);

    /// Ends a connection from this side because of `why`, with which it is among those
    /// that have ended.
    fn give_up(&mut self, id: PeerId, why: String);

    /// The next of the connections that have ended by themselves, with its peer
    /// and why; one that was [hung up](Self::hang_up) may be among them.
    fn take_ended(&mut self) -> Option<(Peer, String)>;

    /// What went over its connections so far.
    fn flow(&self) -> Flow;

    /// Processor time that servers and players have used; `None` where time is
    /// not the processor's.
    fn processor_time(&self) -> Option<Duration>;

    /// Everybody is in: what happens from now on is measured, and impairments, if
    /// there is any, begins.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn begin_measuring(&mut self) -> Result<(), PlayError>;

    /// What the gateway has said of its ticks since this was last asked, where
    /// it is asked for its metrics and has answered.
    fn gateway_ticks(&mut self) -> Option<GatewayTicks> {
        None
    }

    /// What is measured ends here. What the gateway says of the time since it began,
    /// where it is asked.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn end_measuring(&mut self) -> Result<Option<GatewayMetrics>, PlayError>;

    /// How much longer than on a calm path it may take until what was sent has
    /// arrived: lost packets are sent again, links are down for a while.
    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}
