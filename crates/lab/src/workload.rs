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

use lagometer_units::{Size, Span};
use serde::{Deserialize, Serialize};

pub use application::{
    ClientApplication, Findings, Misdeliveries, RemoteArrival, ServerApplication, Stream, act,
};
pub use echo_client::EchoClient;
pub use echo_server::EchoServer;
pub use game::GameTraffic;
pub use paced_echo::PacedEcho;
pub use payload::{Damaged, Payload};
pub use replay::Replay;
pub use request_response::RequestResponse;
pub use stream::StreamTraffic;

use crate::plan::Plan;
use crate::traffic::{BadTraffic, Traffic};
use game::{GameClient, GameServer, Schedule};
use lagometer_units::Time;
use received::Received;
use request_response::{RequestClient, RequestServer};
use scheduled::{ScheduledClient, ScheduledServer};

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
        match self {
            Self::PacedEcho(echo) => echo.check(),
            Self::Game(game) => game.check(),
            Self::Replay(replay) => replay.check(),
            Self::Stream(stream) => stream.check(),
            Self::RequestResponse(requests) => requests.check(),
        }
    }

    /// The file that it plays, as the experiment names it; none where it needs none.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Replay(replay) => Some(&replay.file),
            _ => None,
        }
    }

    /// What is in the file that it plays, once that was read.
    #[must_use]
    pub fn traffic(&self) -> Option<&Traffic> {
        match self {
            Self::Replay(replay) => Some(&replay.traffic),
            _ => None,
        }
    }

    /// Reads what is in the file that it plays.
    ///
    /// # Errors
    ///
    /// [`BadTraffic`].
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), BadTraffic> {
        match self {
            Self::Replay(replay) => replay.load(bytes),
            _ => Ok(()),
        }
    }

    /// How long there is something to play, where that has an end of its own.
    #[must_use]
    pub fn ends_after(&self) -> Option<Duration> {
        match self {
            Self::Replay(replay) => replay.ends_after(),
            _ => None,
        }
    }

    /// From how late on a message is of no use, where the workload says so.
    #[must_use]
    pub fn of_use_within(&self) -> Option<Duration> {
        match self {
            Self::Replay(replay) => Some(replay.within.duration()),
            Self::Stream(stream) => Some(stream.within.duration()),
            Self::RequestResponse(requests) => Some(requests.within.duration()),
            Self::PacedEcho(_) | Self::Game(_) => None,
        }
    }

    /// The game's tick, at which alone the endpoints are looked after; none where they
    /// are whenever something happens.
    #[must_use]
    pub fn tick(&self) -> Option<Span> {
        match self {
            Self::PacedEcho(echo) => echo.tick,
            Self::Game(game) => game.tick,
            Self::Replay(replay) => replay.tick,
            Self::Stream(stream) => stream.tick,
            Self::RequestResponse(requests) => requests.tick,
        }
    }

    /// Looks after the endpoints at a game's ticks alone.
    pub fn set_tick(&mut self, tick: Span) {
        match self {
            Self::PacedEcho(echo) => echo.tick = Some(tick),
            Self::Game(game) => game.tick = Some(tick),
            Self::Replay(replay) => replay.tick = Some(tick),
            Self::Stream(stream) => stream.tick = Some(tick),
            Self::RequestResponse(requests) => requests.tick = Some(tick),
        }
    }

    /// From one of the client's messages to the next; of a recording, from one message of
    /// either side to the next on average.
    #[must_use]
    pub fn interval(&self) -> Duration {
        match self {
            Self::PacedEcho(echo) => echo.interval.duration(),
            Self::Game(game) => game.input_interval(),
            Self::Replay(replay) => replay.interval(),
            Self::Stream(stream) => stream.interval(),
            Self::RequestResponse(requests) => requests.interval(),
        }
    }

    /// How many of the client's messages are meant to leave within `span`.
    #[must_use]
    pub fn messages_within(&self, span: Duration) -> u32 {
        let interval = self.interval().as_nanos().max(1);
        u32::try_from(span.as_nanos().div_ceil(interval)).unwrap_or(u32::MAX)
    }

    /// How much is to be remembered of a lane, in messages: what is played for `duration`,
    /// and a game through `grace` as well.
    #[must_use]
    pub fn remembered(&self, duration: Duration, grace: Duration) -> u64 {
        match self {
            Self::PacedEcho(_) => u64::from(self.messages_within(duration)),
            Self::Game(game) => {
                let messages = game.messages_a_second() * (duration + grace).as_secs_f64();
                messages as u64
            }
            Self::Replay(replay) => replay.messages_within(duration),
            Self::Stream(stream) => stream.messages_within(duration),
            Self::RequestResponse(requests) => requests.messages_within(duration),
        }
    }

    /// Bits of payload a second each way, about.
    #[must_use]
    pub fn payload_bits_per_second(&self) -> [f64; 2] {
        match self {
            Self::PacedEcho(echo) => {
                let seconds = echo.interval.duration().as_secs_f64();
                [echo.size.bytes() as f64 * 8.0 / seconds.max(1e-9); 2]
            }
            Self::Game(game) => game.bits_per_second(),
            Self::Replay(replay) => replay.bits_per_second(),
            Self::Stream(stream) => stream.bits_per_second(),
            Self::RequestResponse(requests) => requests.bits_per_second(),
        }
    }

    /// The same with messages of another size, where all have one.
    #[must_use]
    pub fn of_size(&self, size: Size) -> Self {
        match self {
            Self::PacedEcho(echo) => Self::PacedEcho(PacedEcho { size, ..*echo }),
            _ => self.clone(),
        }
    }

    /// The client of a plan's workload, whose first message is due at `start`.
    #[must_use]
    pub fn client(plan: &Plan, start: Time) -> Box<dyn ClientApplication> {
        match &plan.workload {
            Self::PacedEcho(echo) => Box::new(EchoClient::new(
                *echo,
                Payload::new(plan.seed, echo.size.bytes() as usize),
                start,
                plan.messages(),
            )),
            Self::Game(game) => Box::new(GameClient::new(Schedule::new(game, plan), start)),
            Self::Replay(replay) => Box::new(ScheduledClient::new(replay.script(plan), start)),
            Self::Stream(stream) => Box::new(ScheduledClient::new(stream.script(plan), start)),
            Self::RequestResponse(requests) => {
                Box::new(RequestClient::new(**requests, plan, start))
            }
        }
    }

    /// The server of a plan's workload.
    #[must_use]
    pub fn server(plan: &Plan) -> Box<dyn ServerApplication> {
        match &plan.workload {
            Self::PacedEcho(echo) => {
                let payload = Payload::new(plan.seed, echo.size.bytes() as usize);
                Box::new(EchoServer::new(payload, plan.messages()))
            }
            Self::Game(game) => Box::new(GameServer::new(Schedule::new(game, plan))),
            Self::Replay(replay) => Box::new(ScheduledServer::new(replay.script(plan))),
            Self::Stream(stream) => Box::new(ScheduledServer::new(stream.script(plan))),
            Self::RequestResponse(requests) => Box::new(RequestServer::new(**requests, plan)),
        }
    }
}
