//! What is asked of a measurement, and what cannot be.

use std::time::Duration;

use lagometer_socket::udp::Offload;
use lagometer_units::{Size, Span};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Shortest and longest transfer of one lane.
const DURATIONS: [Duration; 2] = [Duration::from_millis(100), Duration::from_hours(24)];
/// Longest time between two messages: so that some are sent.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);
/// The largest message any transport is asked for.
pub(super) const LARGEST_CHUNK: u64 = 16 << 20;
/// A message has room for its number.
pub(super) const SMALLEST_CHUNK: u64 = super::payload::NUMBER_BYTES as u64;

/// How every lane is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How long messages are offered, 100 ms to 24 h.
    pub duration: Duration,
    /// Bytes of a message, 8 B to 16 MiB; what fits one datagram of the
    /// transport where none is said.
    pub chunk: Option<Size>,
    /// From one message to the next, up to 10 s; as fast as it goes where none
    /// is said, or zero.
    pub every: Option<Duration>,
    /// The processors of the sending and the receiving thread; the system's
    /// choice where none is said.
    pub pin: Option<Pin>,
    /// What UDP sockets may use.
    pub offload: Offload,
    /// The seed of the payload and of the connection.
    pub seed: u64,
    /// Ends of presets sleep until something is due. Elsewhere than on a machine whose
    /// clock stands still while anybody computes that is slower: they look for
    /// a while first, since a sleep ends late.
    pub sleeps: bool,
}

/// [`Offload`], as it is sent to the remote end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    Full,
    Batches,
    Plain,
}

impl From<Offload> for Way {
    fn from(offload: Offload) -> Self {
        match offload {
            Offload::Full => Self::Full,
            Offload::Batches => Self::Batches,
            Offload::Plain => Self::Plain,
        }
    }
}

impl From<Way> for Offload {
    fn from(way: Way) -> Self {
        match way {
            Way::Full => Self::Full,
            Way::Batches => Self::Batches,
            Way::Plain => Self::Plain,
        }
    }
}

/// Processors, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// That of the sending thread.
    pub send: usize,
    /// That of the receiving thread.
    pub receive: usize,
}

/// What cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadPlan {
    /// The transfer is too short or too long.
    #[error("--for {0}: expected 100 ms to 24 h")]
    Duration(Span),
    /// The messages are too small or too large.
    #[error("--chunk {0}: expected 8 B to 16 MiB")]
    Chunk(Size),
    /// The messages are too far apart.
    #[error("--every {0}: expected 0 (as fast as it goes) to 10 s")]
    Every(Span),
    /// There is no such processor.
    #[error("--pin {0}: there are processors 0 to {1}")]
    Processor(usize, usize),
}

impl Default for Plan {
    /// Ten seconds, as fast as it goes.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(10),
            chunk: None,
            every: None,
            pin: None,
            offload: Offload::Full,
            seed: 1,
            sleeps: false,
        }
    }
}

impl Plan {
    /// Whether it can be done.
    ///
    /// # Errors
    ///
    /// [`BadPlan`] names the first flag that is out of its range.
    pub fn check(&self) -> Result<(), BadPlan> {
        if !(DURATIONS[0]..=DURATIONS[1]).contains(&self.duration) {
            return Err(BadPlan::Duration(Span(self.duration)));
        }
        if let Some(chunk) = self.chunk
            && !(SMALLEST_CHUNK..=LARGEST_CHUNK).contains(&chunk.bytes())
        {
            return Err(BadPlan::Chunk(chunk));
        }
        if let Some(every) = self.every.filter(|&every| every > LONGEST_INTERVAL) {
            return Err(BadPlan::Every(Span(every)));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if let Some(pin) = self.pin {
            let highest = pin.send.max(pin.receive);
            if highest >= processors {
                return Err(BadPlan::Processor(highest, processors - 1));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_named_with_its_range() {
        type Change = fn(&mut Plan);
        let plans: [(Change, &str); 6] = [
            (|plan| plan.duration = Duration::ZERO, "--for 0"),
            (
                |plan| plan.duration = Duration::from_hours(25),
                "--for 25 h",
            ),
            (|plan| plan.chunk = Some(Size(7)), "--chunk 7 B"),
            (|plan| plan.chunk = Some(Size(1 << 30)), "--chunk"),
            (
                |plan| plan.every = Some(Duration::from_secs(11)),
                "--every 11 s",
            ),
            (
                |plan| {
                    plan.pin = Some(Pin {
                        send: 0,
                        receive: 100_000,
                    });
                },
                "--pin 100000",
            ),
        ];
        for (change, start) in plans {
            let mut plan = Plan::default();
            assert_eq!(plan.check(), Ok(()));
            change(&mut plan);
            let refused = plan.check().unwrap_err().to_string();
            assert!(refused.starts_with(start), "{refused}");
        }
    }
}
