//! What the endpoints do: the applications at both ends of a lane.
//!
//! An application is a state machine too: a testbed hands it the time and its
//! endpoint, and asks when it next wants to act. The same application runs in
//! virtual time and over real sockets.

mod application;
#[cfg(test)]
mod awaited_tests;
mod echo_client;
mod echo_server;
pub mod game;
mod lane_workload;
#[cfg(test)]
mod made_up_path;
mod paced_echo;
mod payload;
mod received;
pub mod replay;
pub mod request_response;
pub mod scheduled;
pub mod stream;

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

pub use application::{
    ClientApplication, Findings, Misdeliveries, RemoteArrival, ServerApplication, Stream, act,
};
pub use echo_client::EchoClient;
pub use echo_server::EchoServer;
pub use game::GameTraffic;
pub use lane_workload::LaneWorkload;
pub use paced_echo::PacedEcho;
pub use payload::{Damaged, Payload};
pub use replay::Replay;
pub use request_response::RequestResponse;
pub use stream::StreamTraffic;

use crate::plan::Plan;
use crate::traffic::{BadTraffic, Traffic};
use received::Received;

/// What the endpoints do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// A message every so often, each sent back by the remote end.
    PacedEcho(PacedEcho),
    /// A game's inputs, snapshots, events and voice.
    Game(Box<GameTraffic>),
    /// The messages of a capture or a log, at their times.
    Replay(Box<Replay>),
    /// Messages at a steady rate, or on and off, one way or both.
    Stream(Box<StreamTraffic>),
    /// Requests that are answered.
    RequestResponse(Box<RequestResponse>),
}

impl Workload {
    /// What the kind says of itself.
    fn kind(&self) -> &dyn LaneWorkload {
        match self {
            Self::PacedEcho(echo) => echo,
            Self::Game(game) => &**game,
            Self::Replay(replay) => &**replay,
            Self::Stream(stream) => &**stream,
            Self::RequestResponse(requests) => &**requests,
        }
    }

    fn kind_mut(&mut self) -> &mut dyn LaneWorkload {
        match self {
            Self::PacedEcho(echo) => echo,
            Self::Game(game) => &mut **game,
            Self::Replay(replay) => &mut **replay,
            Self::Stream(stream) => &mut **stream,
            Self::RequestResponse(requests) => &mut **requests,
        }
    }

    /// Checks the values against each other.
    ///
    /// # Errors
    ///
    /// The key that is wrong, and what is expected of it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.tick().is_some_and(|tick| tick < Span::from_millis(1)) {
            return Err((
                "tick",
                "a game's tick is at least 1 ms; leave it out for none".into(),
            ));
        }
        self.kind().check()
    }

    /// The file that it plays, as the experiment names it; none where it needs none.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.kind().file()
    }

    /// What is in the file that it plays, once that was read.
    #[must_use]
    pub fn traffic(&self) -> Option<&Traffic> {
        self.kind().traffic()
    }

    /// Reads what is in the file that it plays.
    ///
    /// # Errors
    ///
    /// [`BadTraffic`].
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), BadTraffic> {
        self.kind_mut().load(bytes)
    }

    /// How long there is something to play, where that has an end of its own.
    #[must_use]
    pub fn ends_after(&self) -> Option<Duration> {
        self.kind().ends_after()
    }

    /// From how late on a message is of no use, where the workload says so.
    #[must_use]
    pub fn of_use_within(&self) -> Option<Duration> {
        self.kind().of_use_within()
    }

    /// The game's tick, at which alone the endpoints are looked after; none where they
    /// are whenever something happens.
    #[must_use]
    pub fn tick(&self) -> Option<Span> {
        self.kind().tick()
    }

    /// Looks after the endpoints at a game's ticks alone.
    pub fn set_tick(&mut self, tick: Span) {
        self.kind_mut().set_tick(tick);
    }

    /// From one of the client's messages to the next; of a recording, from one message of
    /// either side to the next on average.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.kind().interval()
    }

    /// How many of the client's messages are meant to leave within `span`.
    #[must_use]
    pub fn messages_within(&self, span: Duration) -> u32 {
        self.kind().messages_within(span)
    }

    /// How much is to be remembered of a lane, in messages: what is played for `duration`,
    /// and a game through `grace` as well.
    #[must_use]
    pub fn remembered(&self, duration: Duration, grace: Duration) -> u64 {
        self.kind().remembered(duration, grace)
    }

    /// Bits of payload a second each way, about.
    #[must_use]
    pub fn payload_bits_per_second(&self) -> [f64; 2] {
        self.kind().payload_bits_per_second()
    }

    /// The same with messages of another size, where all have one.
    #[must_use]
    pub fn of_size(&self, size: Size) -> Self {
        self.kind().of_size(size).unwrap_or_else(|| self.clone())
    }

    /// The client of a plan's workload, whose first message is due at `start`.
    #[must_use]
    pub fn client(plan: &Plan, start: Time) -> Box<dyn ClientApplication> {
        plan.workload.kind().client(plan, start)
    }

    /// The server of a plan's workload.
    #[must_use]
    pub fn server(plan: &Plan) -> Box<dyn ServerApplication> {
        plan.workload.kind().server(plan)
    }
}
