//! Requests and answers: the client asks, the server answers after a while; a shop, a lobby,
//! an inventory, a call of a service.
//!
//! ```toml
//! [workload.request-response]
//! request = "200 B"
//! response = "4 KB"
//! spread = 0.5             # of answers' sizes: the standard deviation of their logarithm
//! think = "5 ms"           # what the server takes for an answer
//! pause = "250 ms"         # from an answer to the next request …
//! # rate = 10              # … or so many requests a second, whatever comes back
//! outstanding = 4          # how many may be under way at once
//! timeout = "5 s"          # after which an answer is waited for no more
//! delivery = "reliable"    # or "unreliable"
//! within = "100 ms"        # from how late on an answer is of no use
//! ```
//!
//! What is larger than a datagram of every transport is cut into pieces of at most 1150 B,
//! on every transport alike, and has come when all of them have. Nothing is sent again
//! but by the transport: over datagrams alone a request is lost with any of its pieces, or
//! any of its answer's.

mod client;
mod pieces;
mod server;
#[cfg(test)]
mod tests;

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

pub use client::RequestClient;
pub use server::RequestServer;

use super::game::HEADER_BYTES;
use super::lane_workload::LaneWorkload;
use super::replay::{Promise, check_within, useful};
use super::{ClientApplication, ServerApplication};
use crate::draw::Draw;
use crate::plan::Plan;

/// What sizes of answers are drawn from.
const SIZES: u64 = 0x7271_0001;

/// Requests and answers, as an experiment says them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestResponse {
    /// Bytes of a request; 21 B (a number and a check) to 1 MiB.
    pub request: Size,
    /// Bytes of an answer; as many.
    pub response: Size,
    /// How answers' sizes vary: the standard deviation of their logarithm, which is normal;
    /// 0 to 2.
    #[serde(default)]
    pub spread: f64,
    /// How long the server takes for an answer; at most 10 min.
    #[serde(default)]
    pub think: Span,
    /// From an answer, or the timeout, to the next request of that place; see
    /// [`outstanding`](Self::outstanding).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// Requests a second, whatever comes back; 0.01 to 10 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How many requests may be under way at once; 1 to 1000. With a `pause` each of so many
    /// places has one or pauses; at a `rate` those beyond wait, and their delays count.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// After which an answer is waited for no more, from when the request takes its place;
    /// 10 ms to 10 min. One that comes later is lost, as for a client that has gone on.
    #[serde(default = "five_seconds")]
    pub timeout: Span,
    /// What is asked of a transport that has several promises.
    #[serde(default = "reliable")]
    pub delivery: Promise,
    /// From how late on an answer is of no use; see [`Replay`](super::Replay::within).
    #[serde(default = "useful")]
    pub within: Span,
    /// The engine's tick, at which alone endpoints are looked after; see
    /// [`PacedEcho::tick`](super::PacedEcho::tick).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Span>,
}

const fn one() -> u32 {
    1
}

const fn five_seconds() -> Span {
    Span::from_millis(5_000)
}

const fn reliable() -> Promise {
    Promise::Reliable
}

impl LaneWorkload for RequestResponse {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let sizes = Size(HEADER_BYTES as u64)..=Self::LARGEST;
        for (key, size) in [("request", self.request), ("response", self.response)] {
            if !sizes.contains(&size) {
                let (least, most) = (sizes.start(), sizes.end());
                return Err((key, format!("`{key}` is {least} to {most}, not {size}")));
            }
        }
        if !(0.0..=2.0).contains(&self.spread) {
            return Err(("spread", format!("`spread` is 0 to 2, not {}", self.spread)));
        }
        if !(1..=1000).contains(&self.outstanding) {
            let asked = self.outstanding;
            return Err((
                "outstanding",
                format!("`outstanding` is 1 to 1000, not {asked}"),
            ));
        }
        let most = Span(Duration::from_mins(10));
        if self.think > most {
            return Err((
                "think",
                format!("`think` is at most {most}, not {}", self.think),
            ));
        }
        if !(Span::from_millis(10)..=most).contains(&self.timeout) {
            let asked = self.timeout;
            return Err((
                "timeout",
                format!("`timeout` is 10 ms to {most}, not {asked}"),
            ));
        }
        match (self.pause, self.rate) {
            (Some(_), None) if self.closed_interval() < Duration::from_micros(10) => Err((
                "pause",
                "requests are at least 10 us apart: `pause` and `think` over `outstanding`".into(),
            )),
            (Some(_), None) => Ok(()),
            (None, Some(rate)) if (0.01..=10_000.0).contains(&rate) => Ok(()),
            (None, Some(rate)) => Err((
                "rate",
                format!("`rate` is 0.01 to 10000 a second, not {rate}"),
            )),
            _ => Err((
                "pause",
                "say either a `pause` between an answer and the next request, or a `rate` of \
                 requests a second"
                    .into(),
            )),
        }?;
        check_within(self.within)
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

    /// With a pause, the least that it can be.
    fn interval(&self) -> Duration {
        match self.rate {
            Some(rate) => Duration::from_secs_f64(1.0 / rate.max(0.01)),
            None => self.closed_interval(),
        }
    }

    /// Requests, at most.
    fn remembered(&self, duration: Duration, _grace: Duration) -> u64 {
        let interval = self.interval().as_nanos().max(1);
        let requests = u64::try_from(duration.as_nanos().div_ceil(interval)).unwrap_or(u64::MAX);
        requests.saturating_add(u64::from(self.outstanding))
    }

    /// At most.
    fn payload_bits_per_second(&self) -> [f64; 2] {
        let seconds = self.interval().as_secs_f64().max(1e-9);
        [self.request, self.response].map(|size| size.bytes() as f64 * 8.0 / seconds)
    }

    fn client(&self, plan: &Plan, start: Time) -> Box<dyn ClientApplication> {
        Box::new(RequestClient::new(*self, plan, start))
    }

    fn server(&self, plan: &Plan) -> Box<dyn ServerApplication> {
        Box::new(RequestServer::new(*self, plan))
    }
}

impl RequestResponse {
    /// The largest request or answer.
    pub const LARGEST: Size = Size(1 << 20);

    fn closed_interval(&self) -> Duration {
        let pause = self.pause.unwrap_or_default().duration();
        // A place is free again by the answer or by the timeout, whichever is first.
        let under_way = self.think.min(self.timeout).duration();
        (pause + under_way) / self.outstanding.max(1)
    }

    /// Bytes of the answer to request `number`.
    fn response_bytes(&self, seed: u64, number: u32) -> usize {
        let mean = self.response.bytes() as f64;
        let normal = Draw::of(&[seed, SIZES, u64::from(number)]).normal();
        let bytes = libm::round(mean * libm::exp(self.spread * normal)) as usize;
        bytes.clamp(HEADER_BYTES, Self::LARGEST.bytes() as usize)
    }
}
