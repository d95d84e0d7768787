//! What each kind of workload says of itself. [`Workload`] is the list of kinds and asks
//! them; nothing else tells them apart.

use std::time::Duration;

use lagometer_units::{Size, Span, Time};

use super::{ClientApplication, ServerApplication, Workload};
use crate::plan::Plan;
use crate::traffic::{BadTraffic, Traffic};

/// A kind of workload, with its values from an experiment.
pub trait LaneWorkload {
    /// Checks the values against each other.
    ///
    /// # Errors
    ///
    /// The key that is wrong, and what is expected of it.
    fn check(&self) -> Result<(), (&'static str, String)>;

    /// The file that it plays, as the experiment names it; none where it needs none.
    fn file(&self) -> Option<&str> {
        None
    }

    /// What is in the file that it plays, once that was read.
    fn traffic(&self) -> Option<&Traffic> {
        None
    }

    /// Reads what is in the file that it plays.
    ///
    /// # Errors
    ///
    /// [`BadTraffic`].
    fn load(&mut self, _bytes: &[u8]) -> Result<(), BadTraffic> {
        Ok(())
    }

    /// How long there is something to play, where that has an end of its own.
    fn ends_after(&self) -> Option<Duration> {
        None
    }

    /// From how late on a message is of no use, where the workload says so.
    fn of_use_within(&self) -> Option<Duration> {
        None
    }

    /// The game's tick, at which alone the endpoints are looked after; none where they
    /// are whenever something happens.
    fn tick(&self) -> Option<Span>;

    /// Looks after the endpoints at a game's ticks alone.
    fn set_tick(&mut self, tick: Span);

    /// From one of the client's messages to the next, or as near to that as there is.
    fn interval(&self) -> Duration;

    /// How many of the client's messages are meant to leave within `span`.
    fn messages_within(&self, span: Duration) -> u32 {
        let interval = self.interval().as_nanos().max(1);
        u32::try_from(span.as_nanos().div_ceil(interval)).unwrap_or(u32::MAX)
    }

    /// How much is to be remembered of a lane, in messages of both sides: what is played
    /// for `duration`, and what goes on after it for `grace`.
    fn remembered(&self, duration: Duration, grace: Duration) -> u64;

    /// Bits of payload a second up and down, about.
    fn payload_bits_per_second(&self) -> [f64; 2];

    /// The same with messages of another size, where all have one.
    fn of_size(&self, _size: Size) -> Option<Workload> {
        None
    }

    /// The client of a plan with this workload, whose first message is due at `start`.
    fn client(&self, plan: &Plan, start: Time) -> Box<dyn ClientApplication>;

    /// The server of a plan with this workload.
    fn server(&self, plan: &Plan) -> Box<dyn ServerApplication>;
}
