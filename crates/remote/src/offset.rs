//! How far apart two clocks are, and how sure that is.
//!
//! A probe leaves the local end at `sent`, reaches the remote end at `received`,
//! is answered at `answered` and is back at `returned`. Whatever the two ways
//! took, each took some time: so the remote clock is ahead of the local one by at
//! most `received - sent` and at least `answered - returned`. Of many probes
//! the tightest bounds come from those that waited least, in each direction
//! for itself. Two clocks drift apart evenly, so their distance over time is a
//! straight line; every line that keeps within all bounds may be the true one.
//! What is reported is the middle of those lines, and as error the distance to
//! the outermost: the truth lies within it however asymmetric the path is, as
//! long as both clocks run evenly.
//!
//! Where no line keeps within all bounds, a clock did not run evenly. Old
//! bounds are forgotten until one does; if even neighbours contradict each
//! other, the clock was *stepped*, and that is counted.

use std::time::Duration;

use lagometer_units::Time;

/// Bounds that are kept. When there are more, neighbours become one.
const MOST_BOUNDS: usize = 256;

/// Drifts that are believed: quartz is good for 100 in a million, and a
/// daemon that corrects it slews by up to 500 at either end.
const MOST_DRIFT: f64 = 1000e-6;

/// One exchange of time; the first and last instants are the local clock's, the
/// two between them the remote clock's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When the local end asked.
    pub sent: Time,
    /// When the remote end was asked.
    pub received: Time,
    /// When it answered.
    pub answered: Time,
    /// When the answer was here.
    pub returned: Time,
}

impl Probe {
    /// How long it was under way, without the time at the remote end.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.returned
            .since(self.sent)
            .saturating_sub(self.answered.since(self.received))
    }
}

/// Collects probes and estimates from them.
#[derive(Clone, Debug, Default)]
pub struct OffsetEstimator {
    /// What the offsets are counted from, so that small numbers remain.
    reference: Option<Reference>,
    bounds: Vec<Bounds>,
    probes: u64,
    least_round_trip: Option<Duration>,
    steps: u32,
}

/// The first probe's local instant and offset, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Reference {
    local: i128,
    offset: i128,
}

/// The tightest bounds of a few probes that followed each other; each with its
/// local instant, in nanoseconds from the reference.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: (f64, f64),
    most: (f64, f64),
}

/// How far the remote clock is ahead of the local one at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// By how much the remote clock is ahead, in nanoseconds; negative if it is
    /// behind.
    pub nanos: i64,
    /// How far from that the truth can be, in nanoseconds.
    pub error_nanos: u64,
}

/// How far the remote clock is ahead of the local one over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    reference_local: i128,
    reference_offset: i128,
    /// First and last local instant that the probes cover, from the reference.
    from: f64,
    until: f64,
    /// Middle and half width at both.
    at_from: (f64, f64),
    at_until: (f64, f64),
    /// Millionths by which the remote clock runs faster, and how far from that
    /// the truth can be.
    drift_ppm: f64,
    drift_error_ppm: f64,
    /// Probes it rests on.
    probes: u64,
    least_round_trip: Duration,
    steps: u32,
}

impl OffsetEstimator {
    /// An estimator that knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a probe. One that returned before it was sent, or was answered
    /// before it was received, is passed over.
    pub fn add(&mut self, probe: Probe) {
        if probe.returned < probe.sent || probe.answered < probe.received {
            return;
        }
        let nanos = |time: Time| i128::from(time.as_nanos());
        let reference = *self.reference.get_or_insert(Reference {
            local: nanos(probe.sent),
            offset: nanos(probe.received) - nanos(probe.sent),
        });
        let at = |local: Time| (nanos(local) - reference.local) as f64;
        let ahead =
            |remote: Time, local: Time| (nanos(remote) - nanos(local) - reference.offset) as f64;
        self.bounds.push(Bounds {
            least: (at(probe.returned), ahead(probe.answered, probe.returned)),
            most: (at(probe.sent), ahead(probe.received, probe.sent)),
        });
        self.probes += 1;
        let round_trip = probe.round_trip();
        self.least_round_trip = Some(
            self.least_round_trip
                .map_or(round_trip, |least| least.min(round_trip)),
        );
        self.forget_what_contradicts();
        if self.bounds.len() > MOST_BOUNDS {
            self.bounds = self.bounds.chunks(2).map(tightest).collect();
        }
    }

    /// What the probes show; `None` while there are none.
    #[must_use]
    pub fn line(&self) -> Option<Line> {
        let reference = self.reference?;
        let from = self.bounds.first()?.most.0;
        let until = self.bounds.last()?.least.0;
        let drifts = self.drifts()?;
        let middle = |at: f64| {
            let (least, most) = (self.least_at(at, drifts), self.most_at(at, drifts));
            (f64::midpoint(least, most), (most - least).max(0.0) / 2.0)
        };
        Some(Line {
            reference_local: reference.local,
            reference_offset: reference.offset,
            from,
            until,
            at_from: middle(from),
            at_until: middle(until),
            drift_ppm: f64::midpoint(drifts.0, drifts.1) * 1e6,
            drift_error_ppm: (drifts.1 - drifts.0) / 2.0 * 1e6,
            probes: self.probes,
            least_round_trip: self.least_round_trip?,
            steps: self.steps,
        })
    }

    /// How many probes were taken.
    #[must_use]
    pub const fn probes(&self) -> u64 {
        self.probes
    }

    /// How often a clock was found to have been stepped.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.steps
    }

    fn forget_what_contradicts(&mut self) {
        if self.drifts().is_some() {
            return;
        }
        let newest = self.bounds.len() - 1;
        // Neighbours that contradict each other at any drift: a step.
        let stepped = Self {
            bounds: self.bounds[newest.saturating_sub(1)..].to_vec(),
            ..Self::default()
        };
        if stepped.drifts().is_none() {
            self.steps += 1;
            self.bounds.drain(..newest);
            return;
        }
        while self.drifts().is_none() && self.bounds.len() > 1 {
            let oldest = self.bounds.len().div_ceil(8);
            self.bounds.drain(..oldest.min(self.bounds.len() - 1));
        }
    }

    /// By how much lines of a drift can be moved and keep within all bounds;
    /// negative if there are none. Concave in the drift: the least of some
    /// straight lines less the greatest of others.
    fn room(&self, drift: f64) -> f64 {
        self.highest(drift) - self.lowest(drift)
    }

    /// Where the highest line of a drift crosses the reference's instant.
    fn highest(&self, drift: f64) -> f64 {
        self.bounds
            .iter()
            .map(|bounds| bounds.most.1 - drift * bounds.most.0)
            .fold(f64::INFINITY, f64::min)
    }

    fn lowest(&self, drift: f64) -> f64 {
        self.bounds
            .iter()
            .map(|bounds| bounds.least.1 - drift * bounds.least.0)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// The least and the greatest drift of a line that keeps within all
    /// bounds; `None` if no line does.
    fn drifts(&self) -> Option<(f64, f64)> {
        let roomiest = peak((-MOST_DRIFT, MOST_DRIFT), |drift| self.room(drift));
        // A nanosecond is what clocks count in.
        if self.room(roomiest) < -1.0 {
            return None;
        }
        let edge = |mut inside: f64, mut outside: f64| {
            if self.room(outside) >= 0.0 {
                return outside;
            }
            for _ in 0..60 {
                let between = f64::midpoint(inside, outside);
                if self.room(between) >= 0.0 {
                    inside = between;
                } else {
                    outside = between;
                }
            }
            inside
        };
        Some((edge(roomiest, -MOST_DRIFT), edge(roomiest, MOST_DRIFT)))
    }

    /// The most that a line which keeps within all bounds has at `at`.
    fn most_at(&self, at: f64, drifts: (f64, f64)) -> f64 {
        let height = |drift: f64| drift * at + self.highest(drift);
        height(peak(drifts, height))
    }

    fn least_at(&self, at: f64, drifts: (f64, f64)) -> f64 {
        let depth = |drift: f64| -(drift * at + self.lowest(drift));
        -depth(peak(drifts, depth))
    }
}

impl Line {
    /// The offset at an instant of the local clock. Beyond the probes it is
    /// less and less sure.
    #[must_use]
    pub fn at_local(&self, local: Time) -> Offset {
        let at = (i128::from(local.as_nanos()) - self.reference_local) as f64;
        let length = self.until - self.from;
        let (middle, error) = if length > 0.0 {
            let share = (at - self.from) / length;
            let middle = self.at_from.0 + (self.at_until.0 - self.at_from.0) * share;
            let within = share.clamp(0.0, 1.0);
            let error = self.at_from.1 + (self.at_until.1 - self.at_from.1) * within;
            let beyond = (self.from - at).max(at - self.until).max(0.0);
            (middle, error + beyond * self.drift_error_ppm * 2e-6)
        } else {
            (
                self.at_from.0,
                self.at_from.1 + (at - self.from).abs() * MOST_DRIFT,
            )
        };
        Offset {
            nanos: i64::try_from(self.reference_offset + middle.round() as i128)
                .unwrap_or(i64::MAX),
            error_nanos: error.ceil() as u64,
        }
    }

    /// The remote clock's instant that an instant of the local clock is.
    #[must_use]
    pub fn to_remote(&self, local: Time) -> Time {
        let nanos = i128::from(local.as_nanos()) + i128::from(self.at_local(local).nanos);
        Time::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }

    /// The local clock's instant that an instant of the remote clock is. Instants
    /// before the local clock began become its beginning.
    #[must_use]
    pub fn to_local(&self, remote: Time) -> Time {
        // The offset changes by less than a thousandth of what it is asked
        // at, so two steps come to within the nanosecond.
        let shifted = |offset: Offset| {
            let nanos = i128::from(remote.as_nanos()) - i128::from(offset.nanos);
            Time::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
        };
        let about = shifted(self.at_local(shifted(self.at_local(Time::from_nanos(
            u64::try_from(self.reference_local.max(0)).unwrap_or(u64::MAX),
        )))));
        shifted(self.at_local(about))
    }

    /// The largest error anywhere within the probes.
    #[must_use]
    pub fn error(&self) -> Duration {
        Duration::from_nanos(self.at_from.1.max(self.at_until.1).ceil() as u64)
    }

    /// Microseconds that the remote clock gains in each second of the local one,
    /// and how far from that the truth can be.
    #[must_use]
    pub const fn drift_ppm(&self) -> (f64, f64) {
        (self.drift_ppm, self.drift_error_ppm)
    }

    /// How many probes were taken.
    #[must_use]
    pub const fn probes(&self) -> u64 {
        self.probes
    }

    /// The least time a probe was under way.
    #[must_use]
    pub const fn least_round_trip(&self) -> Duration {
        self.least_round_trip
    }

    /// How often a clock was found to have been stepped. What was measured
    /// before the last step cannot be converted with this line.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.steps
    }
}

/// The tightest of some bounds.
fn tightest(some: &[Bounds]) -> Bounds {
    let mut tightest = some[0];
    for bounds in &some[1..] {
        if bounds.least.1 > tightest.least.1 {
            tightest.least = bounds.least;
        }
        if bounds.most.1 < tightest.most.1 {
            tightest.most = bounds.most;
        }
    }
    tightest
}

/// Where a concave function is greatest, by ternary search.
fn peak(range: (f64, f64), of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = range;
    for _ in 0..100 {
        let third = (high - low) / 3.0;
        if of(low + third) < of(high - third) {
            low += third;
        } else {
            high -= third;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests;
