//! A game's traffic: inputs up, snapshots of the world down, events both ways and voice
//! if asked for, each with a promise of its own.
//!
//! ```toml
//! [workload.game]
//! interpolation = "100 ms"   # how far behind the newest snapshot the client shows the world
//!
//! [workload.game.inputs]
//! rate = 64                  # a second
//! size = "24 B"              # of one
//! repeat = 2                 # how many of those before go along with each
//!
//! [workload.game.snapshots]
//! rate = 32                  # a second: the server's steps
//! full = "900 B"             # all that the player sees
//! delta = "160 B"            # what changes of it from one snapshot to the next
//! spread = 0.4               # of sizes: the standard deviation of their logarithm
//!
//! [workload.game.events]
//! up = 0.5                   # a second, at random
//! down = 1.5
//! size = "60 B"
//! ```
//!
//! Inputs, snapshots and voice are sent once where the transport lets that be asked for;
//! events must arrive, in order. How that is laid on a transport is its
//! [`Offer`](lagometer_transport::Offer):
//!
//! - On **one pipe** everything takes it. As nothing gets lost there, inputs are not
//!   repeated, and a snapshot is a delta against the one sent before, as in games on TCP.
//! - Over **datagrams** alone the game sends an event again itself until it is
//!   acknowledged.
//! - With **channels**, or **streams and datagrams**, events take the reliable one.
//!
//! Where a message may get lost, a snapshot is a delta against the newest one that the
//! client has acknowledged, so it grows with the round trip and with loss: of what the
//! player sees, each snapshot changes the share `delta / full`, and after *k* of them
//! `1 − (1 − delta / full)^k` has changed.
//!
//! All that is drawn (sizes, when events are, how the server's steps lie to the client's)
//! follows from the seed and the number of the message alone, and is the same for every
//! lane.

mod client;
mod events;
mod message;
mod schedule;
mod server;

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use super::lane_workload::LaneWorkload;
use super::{ClientApplication, ServerApplication};
use crate::plan::Plan;

pub use client::GameClient;
pub(super) use message::{Codec, HEADER_BYTES, Header, Kind};
pub use schedule::Schedule;
pub use server::GameServer;

/// A game's traffic, as an experiment says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameTraffic {
    /// How far behind the newest snapshot the client shows the world; 0 to 10 s.
    pub interpolation: Span,
    /// The engine's tick, at which alone endpoints are looked after; see
    /// [`PacedEcho::tick`](super::PacedEcho::tick).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Span>,
    /// What the client sends all the time.
    pub inputs: Inputs,
    /// What the server sends all the time.
    pub snapshots: Snapshots,
    /// What both send now and then, and must arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Events>,
    /// Voice both ways, all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// The game plays frames again when an input comes late: the snapshots are the other
    /// player's inputs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackRules>,
}

/// A player's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// How many a second; 1 to 1000.
    pub rate: u32,
    /// Bytes of one; 1 B to 256 B.
    pub size: Size,
    /// How many of the last inputs are sent again with each; 0 to 63. None are where the
    /// transport loses nothing.
    #[serde(default)]
    pub repeat: u32,
}

/// What the server sends of the world.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshots {
    /// How many a second; 1 to 1000.
    pub rate: u32,
    /// Bytes of all that the player sees; at most [`Self::LARGEST`].
    pub full: Size,
    /// Bytes of what changes of it from one to the next; at most `full`.
    pub delta: Size,
    /// How sizes vary: the standard deviation of their logarithm, which is normal; 0 to 2.
    #[serde(default)]
    pub spread: f64,
    /// How many of the last snapshots are sent again with each, as a game does whose
    /// snapshots are the other player's inputs; 0 to 63.
    #[serde(default)]
    pub repeat: u32,
}

/// Events: hits, purchases, chat, whatever must arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// How many a second the client sends on average, at random; 0 to 100.
    #[serde(default)]
    pub up: f64,
    /// How many a second the server sends to one client.
    #[serde(default)]
    pub down: f64,
    /// Bytes of one; 1 B to 1000 B.
    pub size: Size,
}

/// Voice: a stream of frames each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// From one frame to the next; 5 ms to 1 s.
    pub every: Span,
    /// Bytes of one; 1 B to 1000 B.
    pub size: Size,
    /// From how late on a frame is of no use. 150 ms where absent: what ITU-T G.114 holds
    /// for the most that does not disturb a conversation.
    #[serde(default = "useful_voice")]
    pub within: Span,
}

/// How a game rolls back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackRules {
    /// How many frames after it was made an input takes effect, on both sides; 0 to 60. A
    /// frame is as long as from one input to the next.
    pub input_delay: u32,
    /// How many frames can be played again; 1 to 60. Beyond, the game stops and waits.
    pub most: u32,
}

const fn useful_voice() -> Span {
    Span::from_millis(150)
}

impl Snapshots {
    /// The largest message of a game: what fits a datagram of every transport.
    pub const LARGEST: Size = Size(1150);
}

impl LaneWorkload for GameTraffic {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let (inputs, snapshots) = (&self.inputs, &self.snapshots);
        let bytes = |size: Size| size.bytes() as f64;
        within(
            "interpolation",
            self.interpolation.as_millis_f64(),
            0.0,
            10_000.0,
            "ms",
        )?;
        within("rate", f64::from(inputs.rate), 1.0, 1000.0, "a second")?;
        within("rate", f64::from(snapshots.rate), 1.0, 1000.0, "a second")?;
        within("size", bytes(inputs.size), 1.0, 256.0, "B")?;
        within("repeat", f64::from(inputs.repeat), 0.0, 63.0, "")?;
        within("repeat", f64::from(snapshots.repeat), 0.0, 63.0, "")?;
        within(
            "full",
            bytes(snapshots.full),
            1.0,
            bytes(Snapshots::LARGEST),
            "B",
        )?;
        within(
            "delta",
            bytes(snapshots.delta),
            1.0,
            bytes(snapshots.full),
            "B (`full`)",
        )?;
        within("spread", snapshots.spread, 0.0, 2.0, "")?;
        let inputs_bytes = u64::from(inputs.repeat + 1) * inputs.size.bytes();
        within(
            "repeat",
            inputs_bytes as f64,
            1.0,
            1000.0,
            "B for all the inputs of a message",
        )?;
        let states_bytes = u64::from(snapshots.repeat + 1) * snapshots.delta.bytes();
        if snapshots.repeat > 0 {
            within(
                "repeat",
                states_bytes as f64,
                1.0,
                1000.0,
                "B for all the snapshots of one",
            )?;
        }
        if let Some(events) = &self.events {
            within("up", events.up, 0.0, 100.0, "a second")?;
            within("down", events.down, 0.0, 100.0, "a second")?;
            within("size", bytes(events.size), 1.0, 1000.0, "B")?;
        }
        if let Some(voice) = &self.voice {
            within("every", voice.every.as_millis_f64(), 5.0, 1000.0, "ms")?;
            within("size", bytes(voice.size), 1.0, 1000.0, "B")?;
            within("within", voice.within.as_millis_f64(), 1.0, 10_000.0, "ms")?;
        }
        if let Some(rollback) = &self.rollback {
            within(
                "input_delay",
                f64::from(rollback.input_delay),
                0.0,
                60.0,
                "frames",
            )?;
            within("most", f64::from(rollback.most), 1.0, 60.0, "frames")?;
        }
        Ok(())
    }

    fn tick(&self) -> Option<Span> {
        self.tick
    }

    fn set_tick(&mut self, tick: Span) {
        self.tick = Some(tick);
    }

    /// From one input to the next.
    fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.inputs.rate.max(1)
    }

    fn remembered(&self, duration: Duration, grace: Duration) -> u64 {
        let messages = self.messages_a_second() * (duration + grace).as_secs_f64();
        messages as u64
    }

    /// Of inputs that are not repeated and snapshots one apart.
    fn payload_bits_per_second(&self) -> [f64; 2] {
        let bytes = |rate: u32, size: Size| f64::from(rate) * size.bytes() as f64;
        [
            bytes(self.inputs.rate, self.inputs.size) * 8.0,
            bytes(self.snapshots.rate, self.snapshots.delta) * 8.0,
        ]
    }

    fn client(&self, plan: &Plan, start: Time) -> Box<dyn ClientApplication> {
        Box::new(GameClient::new(Schedule::new(self, plan), start))
    }

    fn server(&self, plan: &Plan) -> Box<dyn ServerApplication> {
        Box::new(GameServer::new(Schedule::new(self, plan)))
    }
}

impl GameTraffic {
    /// How many messages there are a second, both ways.
    #[must_use]
    pub fn messages_a_second(&self) -> f64 {
        let events = self.events.map_or(0.0, |events| events.up + events.down);
        let voice = self
            .voice
            .map_or(0.0, |voice| 2.0 / voice.every.duration().as_secs_f64());
        f64::from(self.inputs.rate) + f64::from(self.snapshots.rate) + events + voice
    }
}

/// Refuses a value outside its range, which may be written with `unit` behind it.
fn within(
    key: &'static str,
    value: f64,
    least: f64,
    most: f64,
    unit: &str,
) -> Result<(), (&'static str, String)> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let words = format!("`{key}` is {least} to {most} {unit}");
    Err((key, format!("{}, not {value}", words.trim_end())))
}

#[cfg(test)]
mod tests;
