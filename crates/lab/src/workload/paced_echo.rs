//! The paced echo: a message every so often, each sent back by the remote end.

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use super::lane_workload::LaneWorkload;
use super::{ClientApplication, EchoClient, EchoServer, Payload, ServerApplication, Workload};
use crate::plan::Plan;

/// A message of one size at a fixed pace, echoed: the traffic of a game in
/// which both sides speak all the time.
///
/// The schedule is open loop: message *i* is meant to leave at *i* times the
/// interval, whatever became of the messages before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacedEcho {
    /// Size of a message; at least [`Self::SMALLEST`].
    pub size: Size,
    /// From one intended send to the next.
    pub interval: Span,
    /// The game's tick, at which alone the endpoints are pumped, as engines
    /// do; without one they are pumped whenever something happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Span>,
}

impl LaneWorkload for PacedEcho {
    fn check(&self) -> Result<(), (&'static str, String)> {
        Self::check_size(self.size)?;
        if self.interval < Self::FASTEST {
            return Err((
                "interval",
                format!("messages are at least {} apart", Self::FASTEST),
            ));
        }
        Ok(())
    }

    fn tick(&self) -> Option<Span> {
        self.tick
    }

    fn set_tick(&mut self, tick: Span) {
        self.tick = Some(tick);
    }

    fn interval(&self) -> Duration {
        self.interval.duration()
    }

    fn remembered(&self, duration: Duration, _grace: Duration) -> u64 {
        u64::from(self.messages_within(duration))
    }

    fn payload_bits_per_second(&self) -> [f64; 2] {
        let seconds = self.interval.duration().as_secs_f64();
        [self.size.bytes() as f64 * 8.0 / seconds.max(1e-9); 2]
    }

    fn of_size(&self, size: Size) -> Option<Workload> {
        Some(Workload::PacedEcho(Self { size, ..*self }))
    }

    fn client(&self, plan: &Plan, start: Time) -> Box<dyn ClientApplication> {
        let payload = Payload::new(plan.seed, self.size.bytes() as usize);
        Box::new(EchoClient::new(*self, payload, start, plan.messages()))
    }

    fn server(&self, plan: &Plan) -> Box<dyn ServerApplication> {
        let payload = Payload::new(plan.seed, self.size.bytes() as usize);
        Box::new(EchoServer::new(payload, plan.messages()))
    }
}

impl PacedEcho {
    /// The smallest message that can carry its number and its check.
    pub const SMALLEST: Size = Size(8);
    /// The largest message a workload may ask for.
    pub const LARGEST: Size = Size(1 << 20);
    /// The shortest interval a workload may ask for.
    pub const FASTEST: Span = Span(Duration::from_micros(10));

    /// When message `index` is meant to leave, if the first leaves at `start`.
    #[must_use]
    pub fn intended(&self, start: Time, index: u32) -> Time {
        start + self.interval.duration().saturating_mul(index)
    }

    /// Whether a message can have so many bytes.
    ///
    /// # Errors
    ///
    /// The key that is wrong, and what is expected of it.
    pub fn check_size(bytes: Size) -> Result<(), (&'static str, String)> {
        let sizes = Self::SMALLEST..=Self::LARGEST;
        if sizes.contains(&bytes) {
            return Ok(());
        }
        let (least, most) = (sizes.start(), sizes.end());
        Err((
            "size",
            format!("a message has {least} to {most}, not {bytes}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_does_not_drift() {
        let workload = PacedEcho {
            size: Size(500),
            interval: Span::from_millis(50),
            tick: None,
        };
        assert_eq!(
            workload.intended(Time::from_secs(10), 12_000),
            Time::from_secs(610),
        );
    }
}
