//! Those who play a world together, each in a process of its own.
//!
//! Every process goes through the course of the world by the same clock, with
//! the shard it plays ([`Shard`](crate::Shard)). What it must learn of the others
//! it learns from its [`Coordination`]; a process that plays the whole world keeps
//! its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use lagometer_stats::Distribution;
use serde::{Deserialize, Serialize};

use crate::driver::backend::PlayError;
use crate::measure::authority::Report;
use crate::measure::merging::{merge, sum};
use crate::measure::outcome::{Moment, Outcome};
use crate::sim::crowd::EntityId;
use crate::sim::vector::Vector;

/// Where everybody is.
pub type Truth = BTreeMap<EntityId, Vector>;

/// What happened in one shard in half a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Counted from 0; the same half second at all who play.
    pub nth: u32,
    /// How it went there.
    pub moment: Moment,
    /// The ages that were sampled there.
    pub ages: Distribution,
    /// Players that have come there so far, whether they are still connected or
    /// not.
    pub came: u32,
    /// Players there that are connected.
    pub connected: u32,
}

impl Note {
    /// Adds what happened in another shard at the same time.
    pub fn absorb(&mut self, other: &Self) {
        // One of all asks the gateway.
        let ticks = self.moment.gateway_ticks.or(other.moment.gateway_ticks);
        self.moment.gateway_ticks = ticks;
        let (mine, theirs) = (&mut self.moment.world, &other.moment.world);
        mine.at_s = mine.at_s.max(theirs.at_s);
        mine.players += theirs.players;
        mine.updates_per_s += theirs.updates_per_s;
        mine.bytes_per_s += theirs.bytes_per_s;
        mine.frames_per_s += theirs.frames_per_s;
        mine.frame_late_ms = mine.frame_late_ms.max(theirs.frame_late_ms);
        mine.generator_cpu_pct = sum(mine.generator_cpu_pct, theirs.generator_cpu_pct);
        mine.handovers_per_s = sum(mine.handovers_per_s, theirs.handovers_per_s);
        merge(&mut self.ages, &other.ages);
        self.moment.set_ages(&self.ages);
        self.came += other.came;
        self.connected += other.connected;
    }
}

/// Those who play a world together, as one of them sees them.
pub trait Coordination {
    /// How many of this shard's players, in the order of their numbers, had come
    /// to another process that played it and is lost: they come back.
    fn came_before(&self) -> u32 {
        0
    }

    /// Whether all are to stop where they are. Asked often.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`] where one of the others is gone, as in all that
    /// follows.
    fn is_stopped(&mut self) -> Result<bool, PlayError>;

    /// Takes what happened here in half a second; `so_far` is all that was
    /// found here up to now, for whoever keeps it in case this shard is lost.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`].
    fn note(&mut self, note: Note, so_far: &dyn Fn() -> Outcome) -> Result<(), PlayError>;

    /// Takes what this shard's servers say of whom they simulate: where they say
    /// something, before the gateway receives what follows from it. Returns what
    /// is to be held against each other here: what all servers say, up to the
    /// instant that all have reported, or nothing where another has the checker.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`].
    fn report(&mut self, own: Report) -> Result<Report, PlayError>;

    /// Takes where the characters of this shard's servers are, if it has any,
    /// after nobody has moved for a while and those who came back have been sent
    /// everything. May be sent again.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`].
    fn stand(&mut self, own: Truth) -> Result<(), PlayError>;

    /// Where the characters of all servers are; `None` while that is not
    /// known.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`].
    fn truth(&mut self) -> Result<Option<Truth>, PlayError>;

    /// Takes what was found here.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`].
    fn found(&mut self, outcome: &Outcome) -> Result<(), PlayError>;

    /// Whether this shard's connections may end: nobody looks at them any more.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`].
    fn is_over(&mut self) -> Result<bool, PlayError>;
}

/// Nobody else: this process plays the whole world.
pub struct SingleProcess<'a> {
    progress: &'a mut dyn FnMut(&Moment),
    stop: &'a AtomicBool,
    truth: Option<Truth>,
}

impl<'a> SingleProcess<'a> {
    /// `progress` is called every half second; when `stop` becomes true, the
    /// world stops where it is.
    #[must_use]
    pub fn new(progress: &'a mut dyn FnMut(&Moment), stop: &'a AtomicBool) -> Self {
        Self {
            progress,
            stop,
            truth: None,
        }
    }
}

impl Coordination for SingleProcess<'_> {
    fn is_stopped(&mut self) -> Result<bool, PlayError> {
        Ok(self.stop.load(Ordering::Relaxed))
    }

    fn note(&mut self, note: Note, _so_far: &dyn Fn() -> Outcome) -> Result<(), PlayError> {
        (self.progress)(&note.moment);
        Ok(())
    }

    fn report(&mut self, own: Report) -> Result<Report, PlayError> {
        Ok(own)
    }

    fn stand(&mut self, own: Truth) -> Result<(), PlayError> {
        self.truth = Some(own);
        Ok(())
    }

    fn truth(&mut self) -> Result<Option<Truth>, PlayError> {
        Ok(self.truth.take())
    }

    fn found(&mut self, _outcome: &Outcome) -> Result<(), PlayError> {
        Ok(())
    }

    fn is_over(&mut self) -> Result<bool, PlayError> {
        Ok(true)
    }
}
