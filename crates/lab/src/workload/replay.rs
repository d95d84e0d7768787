//! A recording played again: the sizes and times of messages of a capture or a log, both
//! ways.
//!
//! ```toml
//! [workload.replay]
//! file = "match.pcapng"          # or a log; beside the experiment's file
//! client = "10.0.0.2:50123"      # which side is the client; who sent first where absent
//! # server = ":7777"             # which conversation is meant, where there are several
//! at_end = "repeat"              # or "stop": what comes after the recording's end
//! delivery = "unreliable"        # or "reliable", on a transport that has both
//! within = "100 ms"              # from how late on a message is of no use
//! ```
//!
//! [`traffic`](crate::traffic) says what files there are.

use std::sync::Arc;
use std::time::Duration;

use lagometer_link::Direction;
use lagometer_transport::Delivery;
use lagometer_units::{Span, Time};
use serde::{Deserialize, Serialize};

use super::lane_workload::LaneWorkload;
use super::scheduled::{ScheduledClient, ScheduledServer, Script, Way};
use super::{ClientApplication, ServerApplication};
use crate::plan::Plan;
use crate::traffic::{AddressPattern, BadTraffic, Choice, Traffic};

/// A recording played again, as an experiment says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The capture or log, from the folder of the experiment's file on.
    pub file: String,
    /// The client's address, port or both, in a capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<AddressPattern>,
    /// The server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<AddressPattern>,
    /// What comes after the recording's end.
    #[serde(default)]
    pub at_end: AtEnd,
    /// What is asked of a transport that has several promises.
    #[serde(default)]
    pub delivery: Promise,
    /// From how late on a message is of no use: the threshold of lag where the experiment
    /// names no other; 1 ms to 10 min.
    #[serde(default = "useful")]
    pub within: Span,
    /// The engine's tick, at which alone endpoints are looked after; see
    /// [`PacedEcho::tick`](super::PacedEcho::tick).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Span>,
    /// What is in the file, once it was read.
    #[serde(skip)]
    pub traffic: Arc<Traffic>,
}

/// What comes after a recording's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// It begins again, for as long as the experiment plays.
    #[default]
    Repeat,
    /// The experiment ends with it.
    Stop,
}

/// What is asked of a transport that has several promises; one with a single kind of
/// message carries all by that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Messages are sent once.
    #[default]
    Unreliable,
    /// Messages are sent until they have arrived.
    Reliable,
}

impl From<Promise> for Delivery {
    fn from(promise: Promise) -> Self {
        match promise {
            Promise::Unreliable => Self::Unreliable,
            Promise::Reliable => Self::Reliable,
        }
    }
}

/// A tenth of a second: what is felt to happen at once (J. Nielsen, "Usability Engineering",
/// 1993, chapter 5).
pub(super) const fn useful() -> Span {
    Span::from_millis(100)
}

impl LaneWorkload for Replay {
    fn check(&self) -> Result<(), (&'static str, String)> {
        if self.file.is_empty() {
            return Err(("file", "name a capture (pcapng, pcap) or a log".into()));
        }
        check_within(self.within)
    }

    fn file(&self) -> Option<&str> {
        Some(&self.file)
    }

    fn traffic(&self) -> Option<&Traffic> {
        Some(&self.traffic)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), BadTraffic> {
        let choice = Choice {
            client: self.client,
            server: self.server,
        };
        self.traffic = Arc::new(Traffic::read(bytes, &choice)?);
        Ok(())
    }

    /// From a second on a whole number of microseconds, which is how bundles and sweeps write it.
    fn ends_after(&self) -> Option<Duration> {
        let length = self.traffic.length();
        let below = u64::from(length.subsec_nanos() % 1000);
        let unwritten = if length < Duration::from_secs(1) {
            0
        } else {
            below
        };
        let end = length.saturating_sub(Duration::from_nanos(unwritten));
        (self.at_end == AtEnd::Stop).then_some(end)
    }

    fn of_use_within(&self) -> Option<Duration> {
        Some(self.within.duration())
    }

    fn tick(&self) -> Option<Span> {
        self.tick
    }

    fn set_tick(&mut self, tick: Span) {
        self.tick = Some(tick);
    }

    /// On average, of both sides together.
    fn interval(&self) -> Duration {
        let messages = u32::try_from(self.traffic.messages()).unwrap_or(u32::MAX);
        self.traffic.length() / messages.max(1)
    }

    fn remembered(&self, duration: Duration, _grace: Duration) -> u64 {
        let span = self.ends_after().map_or(duration, |end| duration.min(end));
        self.traffic.messages_within(span)
    }

    fn payload_bits_per_second(&self) -> [f64; 2] {
        Direction::BOTH.map(|direction| self.traffic.bits_per_second(direction))
    }

    fn client(&self, plan: &Plan, start: Time) -> Box<dyn ClientApplication> {
        Box::new(ScheduledClient::new(self.script(plan), start))
    }

    fn server(&self, plan: &Plan) -> Box<dyn ServerApplication> {
        Box::new(ScheduledServer::new(self.script(plan)))
    }
}

impl Replay {
    /// What is played of it within `span`, with a log of that.
    #[must_use]
    pub fn within(&self, span: Duration) -> (Self, String) {
        if span >= self.traffic.length() {
            return (self.clone(), self.traffic.to_log());
        }
        // A log that is cut says another length, and must not begin again after it.
        let cut = Self {
            at_end: AtEnd::Stop,
            ..self.clone()
        };
        (cut, self.traffic.log_before(span))
    }

    pub(super) fn script(&self, plan: &Plan) -> Script {
        let again = (self.at_end == AtEnd::Repeat).then(|| self.traffic.length());
        let ways = Direction::BOTH.map(|direction| Way::Recorded {
            traffic: Arc::clone(&self.traffic),
            direction,
            again,
        });
        Script::new(ways, self.delivery.into(), self.within.duration(), plan)
    }
}

/// Whether messages may be of use for so long.
pub(super) fn check_within(within: Span) -> Result<(), (&'static str, String)> {
    let useful = Span::from_millis(1)..=Span(Duration::from_mins(10));
    if useful.contains(&within) {
        return Ok(());
    }
    Err((
        "within",
        format!("`within` is 1 ms to 10 min, not {within}"),
    ))
}
