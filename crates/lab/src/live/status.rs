//! What the threads of a lane and their testbed signal to each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lagometer_transport::{Closed, State};
use lagometer_units::Time;

use super::watch::LaneFigures;

/// Which side of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that opens the connection.
    Client,
    /// The side that waits for it.
    Server,
}

/// When a lane's measuring starts, once that is known, and whether it is to
/// stop.
#[derive(Debug, Default)]
pub struct Cue {
    /// In nanoseconds; 0 as long as it is not known.
    starts_at: AtomicU64,
    stops: AtomicBool,
}

/// What the two threads of a lane and the testbed share: whether each is ready, closes, or has
/// ended. One for each lane and seed.
#[derive(Debug)]
pub struct LaneStatus {
    /// When measuring starts.
    pub cue: Cue,
    ready: [AtomicBool; 2],
    closed: [Mutex<Option<Closed>>; 2],
    is_over: AtomicBool,
    /// When the remote end last received a message, in nanoseconds.
    received_at: AtomicU64,
    figures: Arc<LaneFigures>,
}

impl Cue {
    /// Measuring starts at `at`, which is after [`Time::ZERO`].
    pub fn start(&self, at: Time) {
        self.starts_at
            .store(at.as_nanos().max(1), Ordering::Release);
    }

    /// The lane is to end where it is.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Release);
    }

    /// When measuring starts, if that is known.
    #[must_use]
    pub fn starts_at(&self) -> Option<Time> {
        match self.starts_at.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(Time::from_nanos(nanos)),
        }
    }

    /// Whether the lane is to end where it is.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }
}

impl Default for LaneStatus {
    fn default() -> Self {
        Self::watched(Arc::new(LaneFigures::new(Duration::MAX)))
    }
}

impl LaneStatus {
    /// Of a lane that leaves its `figures` for whoever watches.
    #[must_use]
    pub fn watched(figures: Arc<LaneFigures>) -> Self {
        Self {
            cue: Cue::default(),
            ready: Default::default(),
            closed: Default::default(),
            is_over: AtomicBool::default(),
            received_at: AtomicU64::default(),
            figures,
        }
    }

    pub(super) fn figures(&self) -> &LaneFigures {
        &self.figures
    }

    /// Whether both sides have had their connection, or there will be none:
    /// there is no use in waiting for this lane.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let all_ready = self.ready.iter().all(|ready| ready.load(Ordering::Acquire));
        all_ready || self.closed().is_some() || self.is_over()
    }

    /// Why a side closed, if one did.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        let mut reasons = self.closed.iter().map(|closed| {
            closed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        });
        reasons.find_map(|reason| reason)
    }

    /// Whether the client has come to the lane's end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn note_state(&self, role: Role, state: State) {
        match state {
            State::Connecting => {}
            State::Ready => self.ready[role as usize].store(true, Ordering::Release),
            State::Closed(why) => {
                let mut closed = self.closed[role as usize]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                closed.get_or_insert(why);
            }
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.ready.iter().all(|ready| ready.load(Ordering::Acquire))
    }

    /// The lane is over because one of its threads cannot go on.
    pub fn give_up(&self) {
        self.cue.stop();
        self.end();
    }

    /// Whether a side has, or had, a connection.
    pub(crate) fn was_ready(&self, role: Role) -> bool {
        self.ready[role as usize].load(Ordering::Acquire)
    }

    /// When the remote end last received a message, if it has.
    pub(crate) fn received_at(&self) -> Option<Time> {
        match self.received_at.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(Time::from_nanos(nanos)),
        }
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(crate) fn note_received(&self, at: Time) {
        self.received_at.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// How long before `now` the remote end last received a message; since `start`
    /// if it has received none.
    pub(super) fn silence(&self, now: Time, start: Time) -> Duration {
        let received = Time::from_nanos(self.received_at.load(Ordering::Relaxed));
        now.since(received.max(start))
    }
}
