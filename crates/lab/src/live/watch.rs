//! What lanes do now, for whoever watches a run in real time.
//!
//! A lane's client leaves its figures in atomic counters as it plays; whoever watches
//! reads them when it likes. The lane waits for nobody and does the same whether it is
//! watched or not.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lagometer_units::{Clock, Time};

/// What is played now. Threads share it.
#[derive(Debug, Default)]
pub struct RunWatch {
    seed: Mutex<Option<Arc<WatchedSeed>>>,
}

/// A seed that is being played.
#[derive(Debug)]
pub struct WatchedSeed {
    /// The seed.
    pub seed: u64,
    /// The clock that its lanes go by.
    pub clock: Clock,
    /// The lanes, in the experiment's order.
    pub lanes: Vec<Arc<LaneFigures>>,
}

/// What one lane did until now. Instants are those of the lanes' clock.
#[derive(Debug)]
pub struct LaneFigures {
    /// From how long after its intended send on a player lags who waits for a message.
    threshold: Duration,
    is_ready: AtomicBool,
    is_over: AtomicBool,
    failure: Mutex<Option<String>>,
    /// In nanoseconds; 0 as long as it is not known.
    starts_at: AtomicU64,
    /// When the schedule ends: nobody waits for anything after it.
    ends_at: AtomicU64,
    returned: AtomicU32,
    latest_round_trip_ns: AtomicU64,
    worst_round_trip_ns: AtomicU64,
    /// When the first message is meant to leave that is newer than all that are back; the
    /// end of time where there is none, or it is not known.
    awaited_ns: AtomicU64,
    freezes: AtomicU32,
    frozen_ns: AtomicU64,
    longest_ns: AtomicU64,
}

/// A lane's figures at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneMoment {
    /// The connection stands, or stood.
    pub is_ready: bool,
    /// The lane is over.
    pub is_over: bool,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// When its schedule starts, once that is known.
    pub starts_at: Option<Time>,
    /// Messages that came back.
    pub returned: u32,
    /// The round trip of the message that came back last.
    pub latest: Option<Duration>,
    /// The longest round trip of those that came back since this was last asked.
    pub worst: Option<Duration>,
    /// For how long a newer message has been awaited beyond what a player tolerates, where
    /// one is.
    pub frozen_for: Option<Duration>,
    /// Freezes, the present one included.
    pub freezes: u32,
    /// How long they took together.
    pub frozen: Duration,
    /// How long the longest took.
    pub longest: Duration,
}

impl RunWatch {
    /// What is played now, once something is.
    #[must_use]
    pub fn seed(&self) -> Option<Arc<WatchedSeed>> {
        let seed = self.seed.lock().unwrap_or_else(PoisonError::into_inner);
        seed.clone()
    }

    /// From now on these lanes are played.
    pub(crate) fn begin(&self, seed: WatchedSeed) {
        let mut watched = self.seed.lock().unwrap_or_else(PoisonError::into_inner);
        *watched = Some(Arc::new(seed));
    }
}

impl LaneFigures {
    /// Of a lane of which nothing is known yet. A player lags from `threshold` on.
    #[must_use]
    pub fn new(threshold: Duration) -> Self {
        Self {
            threshold,
            is_ready: AtomicBool::default(),
            is_over: AtomicBool::default(),
            failure: Mutex::default(),
            starts_at: AtomicU64::default(),
            ends_at: AtomicU64::default(),
            returned: AtomicU32::default(),
            latest_round_trip_ns: AtomicU64::default(),
            worst_round_trip_ns: AtomicU64::default(),
            awaited_ns: AtomicU64::new(u64::MAX),
            freezes: AtomicU32::default(),
            frozen_ns: AtomicU64::default(),
            longest_ns: AtomicU64::default(),
        }
    }

    /// The connection stands.
    pub fn note_ready(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
    }

    /// The schedule starts at `at` and goes on for `duration`; what is awaited first is
    /// meant to leave at `awaited`, if this end can know.
    pub fn note_start(&self, at: Time, duration: Duration, awaited: Option<Time>) {
        let ends_at = (at + duration).as_nanos();
        self.ends_at.store(ends_at, Ordering::Relaxed);
        let awaited = awaited.unwrap_or(Time::MAX).as_nanos();
        self.awaited_ns.store(awaited, Ordering::Relaxed);
        self.starts_at
            .store(at.as_nanos().max(1), Ordering::Relaxed);
    }

    /// The lane has come to its end, early where there is a reason.
    pub fn note_end(&self, failure: Option<String>) {
        let mut why = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *why = failure;
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Messages came back at `now`, `returned` by then, the longest of these after `worst`;
    /// what is awaited next is meant to leave at `awaited`. To be called by one thread.
    pub fn note_returned(
        &self,
        now: Time,
        returned: u32,
        worst: Option<Duration>,
        awaited: Option<Time>,
    ) {
        self.returned.store(returned, Ordering::Relaxed);
        if let Some(round_trip) = worst {
            let nanos = nanos_of(round_trip);
            self.latest_round_trip_ns.store(nanos, Ordering::Relaxed);
            self.worst_round_trip_ns.fetch_max(nanos, Ordering::Relaxed);
        }
        let Some(awaited) = awaited else { return };
        let before = Time::from_nanos(self.awaited_ns.load(Ordering::Relaxed));
        if awaited <= before {
            return;
        }
        self.awaited_ns.store(awaited.as_nanos(), Ordering::Relaxed);
        let frozen = self.before_end(now).since(before + self.threshold);
        if !frozen.is_zero() {
            self.freezes.fetch_add(1, Ordering::Relaxed);
            self.frozen_ns
                .fetch_add(nanos_of(frozen), Ordering::Relaxed);
            self.longest_ns
                .fetch_max(nanos_of(frozen), Ordering::Relaxed);
        }
    }

    /// The instant itself, or the schedule's end where that is before.
    fn before_end(&self, now: Time) -> Time {
        now.min(Time::from_nanos(self.ends_at.load(Ordering::Relaxed)))
    }

    /// What can be said at `now`.
    #[must_use]
    pub fn look(&self, now: Time) -> LaneMoment {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let some = |nanos: u64| (nanos > 0).then(|| Duration::from_nanos(nanos));
        let starts_at = some(load(&self.starts_at)).map(|since| Time::ZERO + since);
        let is_over = self.is_over.load(Ordering::Relaxed);
        let awaited = Time::from_nanos(load(&self.awaited_ns));
        let is_playing = starts_at.is_some() && self.before_end(now) == now;
        let since = is_playing.then(|| now.since(awaited + self.threshold));
        let frozen_for = since.filter(|since| !since.is_zero() && !is_over);
        let present = frozen_for.unwrap_or_default();
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        LaneMoment {
            is_ready: self.is_ready.load(Ordering::Relaxed),
            is_over,
            failure: failure.clone(),
            starts_at,
            returned: self.returned.load(Ordering::Relaxed),
            latest: some(load(&self.latest_round_trip_ns)),
            worst: some(self.worst_round_trip_ns.swap(0, Ordering::Relaxed)),
            frozen_for,
            freezes: self.freezes.load(Ordering::Relaxed) + u32::from(frozen_for.is_some()),
            frozen: Duration::from_nanos(load(&self.frozen_ns)) + present,
            longest: Duration::from_nanos(load(&self.longest_ns)).max(present),
        }
    }
}

fn nanos_of(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane whose first message leaves at `at_ms`, played for so long.
    fn started(at_ms: u64, duration: Duration) -> LaneFigures {
        let figures = LaneFigures::new(Duration::from_millis(150));
        figures.note_ready();
        let at = Time::from_millis(at_ms);
        figures.note_start(at, duration, Some(at));
        figures
    }

    /// A message came back after so long; now another is awaited.
    fn returned(figures: &LaneFigures, now_ms: u64, worst_ms: u64, awaited_ms: u64) {
        let before = figures.look(Time::from_millis(now_ms)).returned;
        figures.note_returned(
            Time::from_millis(now_ms),
            before + 1,
            Some(Duration::from_millis(worst_ms)),
            Some(Time::from_millis(awaited_ms)),
        );
    }

    #[test]
    fn a_freeze_lasts_from_when_the_next_is_too_late_until_something_newer_is_back() {
        let figures = started(1000, Duration::from_mins(1));
        returned(&figures, 1040, 40, 1050);
        let calm = figures.look(Time::from_millis(1200));
        assert_eq!((calm.freezes, calm.frozen_for), (0, None));
        let frozen = figures.look(Time::from_millis(1400));
        assert_eq!(frozen.frozen_for, Some(Duration::from_millis(200)));
        assert_eq!(frozen.freezes, 1);
        assert_eq!(frozen.longest, Duration::from_millis(200));
        // An older message ends no freeze.
        returned(&figures, 1450, 550, 1050);
        assert_eq!(figures.look(Time::from_millis(1450)).freezes, 1);
        returned(&figures, 1500, 50, 1500);
        let after = figures.look(Time::from_millis(1510));
        assert_eq!((after.freezes, after.frozen_for), (1, None));
        assert_eq!(after.frozen, Duration::from_millis(300));
        assert_eq!(after.returned, 3);
    }

    #[test]
    fn the_worst_is_that_of_the_time_since_it_was_last_asked() {
        let figures = started(1000, Duration::from_mins(1));
        let at = |ms| Time::from_millis(ms);
        let ms = |ms| Some(Duration::from_millis(ms));
        figures.note_returned(at(1040), 1, ms(40), Some(at(1050)));
        figures.note_returned(at(1080), 2, ms(30), Some(at(1100)));
        let first = figures.look(at(1100));
        assert_eq!(first.worst, ms(40));
        assert_eq!(first.latest, ms(30));
        assert_eq!(figures.look(at(1100)).worst, None);
    }

    #[test]
    fn nobody_is_frozen_when_no_newer_message_is_to_come() {
        let figures = started(2900, Duration::from_millis(100));
        returned(&figures, 2990, 40, 2995);
        let moment = figures.look(Time::from_secs(5));
        assert_eq!((moment.frozen_for, moment.freezes), (None, 0));
        // As in a pause of a stream: the next leaves later.
        let figures = started(1000, Duration::from_mins(1));
        returned(&figures, 1040, 40, 9000);
        assert_eq!(figures.look(Time::from_secs(9)).frozen_for, None);
        assert!(figures.look(Time::from_secs(10)).frozen_for.is_some());
    }

    #[test]
    fn of_an_end_that_cannot_know_no_freeze_is_reported() {
        let figures = LaneFigures::new(Duration::from_millis(150));
        figures.note_start(Time::from_secs(1), Duration::from_mins(1), None);
        figures.note_returned(Time::from_secs(2), 1, None, None);
        let moment = figures.look(Time::from_secs(9));
        assert_eq!((moment.returned, moment.frozen_for), (1, None));
    }

    #[test]
    fn a_lane_that_is_over_is_not_frozen() {
        let figures = started(1000, Duration::from_mins(1));
        assert!(figures.look(Time::from_secs(8)).frozen_for.is_some());
        figures.note_end(Some("the peer stopped answering".to_owned()));
        let moment = figures.look(Time::from_secs(9));
        assert_eq!(moment.frozen_for, None);
        assert!(moment.failure.is_some());
    }
}
