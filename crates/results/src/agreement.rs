//! Whether two testbeds report the same of the same experiment: virtual time
//! beside real sockets, lane by lane.
//!
//! Both play the same seeds over the same network conditions, yet not the same
//! packets: real threads wake late, kernels have buffers of their own, and a
//! packet that leaves a millisecond later may meet another coin. So a figure is
//! held to be the same within a margin that is stated, and that it is must be
//! shown: by [`equivalence`](crate::equivalence) over the seeds, which calls
//! nothing equal that is apart by the margin more than once in twenty times.
//! That a figure differs is said of all figures of all lanes together with one chance of
//! erring (Holm's procedure); that all are equal needs no such thing. What luck does to
//! single packets makes an answer harder to get and never widens a margin. What a machine's
//! late wake-ups can do widens those of delays, up to a limit; on a machine that wakes later
//! than that nothing is decided.

use lagometer_stats::{
    EQUIVALENCE_CHANCE, Equivalence, EquivalenceFinding, FEWEST_EQUIVALENCE_SEEDS, equivalence,
    unsure,
};

use crate::difference::noise_ms;
use crate::document::{Document, Lane, WITHIN_LIMITS_MS, WayAudit};
use crate::metric::{Metric, Statistic};

/// The largest differences between two testbeds that do not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Of medians of round trips.
    pub median: Margin,
    /// Of their 99th percentiles.
    pub p99: Margin,
    /// Of shares delivered within a limit, as a share between 0 and 1.
    pub within: f64,
}

impl Default for Margins {
    /// In the middle a tenth, and two milliseconds at most; at the edge a quarter, since there
    /// a single packet's luck is a whole retransmission; two points of a hundred delivered
    /// within each limit. On short paths no less than what the emulator's own
    /// steps and the system's way to a socket make of a round trip.
    fn default() -> Self {
        Self {
            median: Margin {
                share: 0.1,
                least_ms: 0.5,
                most_ms: 2.0,
            },
            p99: Margin {
                share: 0.25,
                least_ms: 2.0,
                most_ms: f64::INFINITY,
            },
            within: 0.02,
        }
    }
}

/// The largest difference of a delay that does not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// This share of the larger of the two, between 0 and 1, …
    pub share: f64,
    /// … but no less than so many milliseconds …
    pub least_ms: f64,
    /// … and no more than so many.
    pub most_ms: f64,
}

impl Margin {
    /// For two delays in milliseconds, of which those that were lost do not count, without
    /// what late wake-ups do.
    fn of(self, delays_ms: [Option<f64>; 2]) -> f64 {
        let known = delays_ms.into_iter().flatten().filter(|ms| ms.is_finite());
        let larger = known.fold(0.0, f64::max);
        (self.share * larger).clamp(self.least_ms, self.most_ms)
    }
}

/// The most by which late wake-ups may widen a margin of a delay, as a share of it: what they
/// can hide is then smaller than what the margin is for.
const NOISE_SHARE: f64 = 0.5;

/// The finest difference that round trips are told apart by, in milliseconds.
const RESOLUTION_MS: f64 = 0.1;

const MEDIAN: Metric = Metric::Rtt(Statistic::P50);
const P99: Metric = Metric::Rtt(Statistic::P99);

/// How two runs of one experiment agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The testbeds' names, as in `sim` and `emu`.
    pub testbeds: [String; 2],
    /// What does not matter.
    pub margins: Margins,
    /// How many seeds both played.
    pub seeds: usize,
    /// How many messages a lane was to send in one of them, at least.
    pub messages_of_a_seed: u64,
    /// What late wake-ups of the machines can add, in milliseconds. Margins of delays are
    /// wider by it, or by half of themselves if that is less.
    pub noise_ms: f64,
    /// The most of it that the narrowest margin of a median lets through, in milliseconds.
    pub bearable_noise_ms: f64,
    /// Why neither can be held against the other, where that is so: a run
    /// that is not valid.
    pub invalid: Option<String>,
    /// The lanes both runs measured, in the first one's order.
    pub lanes: Vec<LaneAgreement>,
}

/// A figure in both testbeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedFigure {
    /// The figure that is compared.
    pub metric: Metric,
    /// Over all seeds together, in the first testbed. Infinite where lost.
    pub first: f64,
    /// Over all seeds together, in the second testbed. Infinite where lost.
    pub second: f64,
    /// What is known of the mean difference, seed by seed.
    pub is: Equivalence,
    /// Of how many figures it is the one that is least shown to be equal.
    pub least_of: usize,
}

/// How one lane's two runs agree.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneAgreement {
    /// The lane's name, the same in both runs.
    pub lane: String,
    /// By how much packets there and back came later than the link asked for, in the
    /// mean, as each run's own audit has it, in milliseconds.
    pub audited_ms: [Option<f64>; 2],
    /// Median, 99th percentile, and of the shares delivered within a limit the
    /// one that is least shown to be equal.
    pub figures: Vec<ComparedFigure>,
    /// Bytes on the wire over payload bytes, in the first and in the second.
    pub overhead: [Option<f64>; 2],
    /// Why the lane cannot be held to anything: a run that failed.
    pub failure: Option<String>,
}

impl LaneAgreement {
    /// What can be said of the lane: equal if every figure is, different if one
    /// is, or if a run failed.
    #[must_use]
    pub fn finding(&self) -> EquivalenceFinding {
        let any = |finding| {
            self.figures
                .iter()
                .any(|figure| figure.is.finding == finding)
        };
        if self.failure.is_some() || any(EquivalenceFinding::Different) {
            EquivalenceFinding::Different
        } else if self.figures.is_empty() || any(EquivalenceFinding::Undecided) {
            EquivalenceFinding::Undecided
        } else {
            EquivalenceFinding::Equivalent
        }
    }
}

impl Agreement {
    /// What can be said of both runs: equal if every lane is, and enough seeds
    /// were played; nothing where there is no lane, a run is not valid or the machine is
    /// too noisy.
    #[must_use]
    pub fn finding(&self) -> EquivalenceFinding {
        let any = |finding| self.lanes.iter().any(|lane| lane.finding() == finding);
        if self.invalid.is_some() || self.lanes.is_empty() || self.is_too_noisy() {
            EquivalenceFinding::Undecided
        } else if any(EquivalenceFinding::Different) {
            EquivalenceFinding::Different
        } else if self.seeds < FEWEST_EQUIVALENCE_SEEDS || any(EquivalenceFinding::Undecided) {
            EquivalenceFinding::Undecided
        } else {
            EquivalenceFinding::Equivalent
        }
    }

    /// Whether late wake-ups can add more than they may widen a margin by, so that
    /// neither a difference nor its absence is the testbeds'.
    #[must_use]
    pub const fn is_too_noisy(&self) -> bool {
        self.noise_ms > self.bearable_noise_ms
    }

    /// Whether the two are shown to be equal.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.finding() == EquivalenceFinding::Equivalent
    }
}

/// Sets a run in the second testbed beside one of the same seeds in the first,
/// lane by lane.
#[must_use]
pub fn agreement(first: &Document, second: &Document, margins: Margins) -> Agreement {
    let noise_ms = noise_ms(first) + noise_ms(second);
    let invalid = [first, second]
        .into_iter()
        .filter_map(|document| document.audit.as_ref())
        .find(|audit| !audit.valid)
        .map(|audit| audit.faults.join("; "));
    let named = |lane: &Lane| second.lanes.iter().find(|other| other.lane == lane.lane);
    let both = first.lanes.iter();
    let both: Vec<(&Lane, &Lane)> = both.filter_map(|lane| Some((lane, named(lane)?))).collect();
    let mut lanes: Vec<LaneAgreement> = both
        .iter()
        .map(|(lane, other)| {
            let audited_ms = [first, second].map(|document| audited_ms(document, &lane.lane));
            LaneAgreement {
                audited_ms,
                ..of_lane(lane, other, margins, noise_ms)
            }
        })
        .collect();
    keep_what_is_sure(&mut lanes);
    let seeds = lanes
        .iter()
        .flat_map(|lane| lane.figures.iter().map(|figure| figure.is.seeds))
        .min();
    let bearable_noise_ms = both
        .iter()
        .map(|(lane, other)| NOISE_SHARE * margins.median.of(delays_ms(MEDIAN, lane, other)))
        .fold(NOISE_SHARE * margins.median.most_ms, f64::min);
    let messages_of_a_seed = first.lanes.iter().map(messages_of_a_seed).min();
    let name = |document: &Document| document.testbed.clone().unwrap_or_default();
    Agreement {
        testbeds: [name(first), name(second)],
        margins,
        // Of fewer than two nothing is compared.
        seeds: seeds.unwrap_or_else(|| seeds_of_both(first, second)),
        messages_of_a_seed: messages_of_a_seed.unwrap_or(0),
        noise_ms,
        bearable_noise_ms,
        invalid,
        lanes,
    }
}

fn seeds_of_both(first: &Document, second: &Document) -> usize {
    let is_in_both = |seed: &&u64| second.seeds.contains(seed);
    first.seeds.iter().filter(is_in_both).count()
}

/// Takes back differences that chance could have made, all figures of all lanes together.
fn keep_what_is_sure(lanes: &mut [LaneAgreement]) {
    let figures = lanes.iter_mut().flat_map(|lane| &mut lane.figures);
    let judged = figures.map(|figure| {
        let p_value = (figure.is.difference_p_value * figure.least_of as f64).min(1.0);
        (figure, p_value)
    });
    for figure in unsure(judged, EQUIVALENCE_CHANCE) {
        if figure.is.finding == EquivalenceFinding::Different {
            figure.is.finding = EquivalenceFinding::Undecided;
        }
    }
}

fn of_lane(first: &Lane, second: &Lane, margins: Margins, noise_ms: f64) -> LaneAgreement {
    let compare = |metric: Metric, margin: f64, resolution: f64| {
        let pairs = pairs_of(metric, first, second);
        Some(ComparedFigure {
            metric,
            first: metric.of(first)?,
            second: metric.of(second)?,
            is: equivalence(&pairs, margin, resolution)?,
            least_of: 1,
        })
    };
    let delay = |metric: Metric, margin: Margin| {
        let margin_ms = margin.of(delays_ms(metric, first, second));
        let noise_ms = noise_ms.min(NOISE_SHARE * margin_ms);
        compare(metric, margin_ms + noise_ms, RESOLUTION_MS)
    };
    let least_share = 1.0 / (messages_of_a_seed(first) as f64).max(1.0);
    // The limit at which least is shown.
    let shares: Vec<ComparedFigure> = WITHIN_LIMITS_MS
        .into_iter()
        .filter_map(|limit| compare(Metric::Within(limit), margins.within, least_share))
        .collect();
    let least_of = shares.len();
    let within = shares
        .into_iter()
        .max_by(|a, b| a.is.p_value.total_cmp(&b.is.p_value))
        .map(|least| ComparedFigure { least_of, ..least });
    let figures = [
        delay(MEDIAN, margins.median),
        delay(P99, margins.p99),
        within,
    ];
    let failure = [(first, "first"), (second, "second")]
        .into_iter()
        .find_map(|(lane, which)| {
            let why = lane.failure.as_ref()?;
            Some(format!("the {which} run failed: {why}"))
        });
    LaneAgreement {
        lane: first.lane.clone(),
        audited_ms: [None; 2],
        figures: figures.into_iter().flatten().collect(),
        overhead: [first, second].map(|lane| lane.wire.as_ref().map(|wire| wire.overhead)),
        failure,
    }
}

/// By how much a run's own audit has the packets of a lane late, there and back: by the
/// kernel's stamps where there are any, else by the router's clock.
fn audited_ms(document: &Document, lane: &str) -> Option<f64> {
    let audit = document.audit.as_ref()?;
    let lane = audit.lanes.iter().find(|audited| audited.lane == lane)?;
    let late_ms = |way: &WayAudit| match way.outside_error_us {
        Some(seen) => seen.mean / 1e3,
        None => way.realised.delay_ms.mean - way.asked.delay_ms.mean,
    };
    Some(late_ms(&lane.up) + late_ms(&lane.down))
}

/// The figure's values under each seed that both played.
fn pairs_of(metric: Metric, first: &Lane, second: &Lane) -> Vec<(f64, f64)> {
    let other = |seed| second.per_seed.iter().find(|other| other.seed == seed);
    first
        .per_seed
        .iter()
        .filter_map(|seed| Some((metric.of_seed(seed)?, metric.of_seed(other(seed.seed)?)?)))
        .collect()
}

fn messages_of_a_seed(lane: &Lane) -> u64 {
    let of_one = lane.per_seed.first().map(|seed| &seed.messages);
    // A run of one seed is that seed.
    of_one.unwrap_or(&lane.messages).intended
}

/// A figure of round trips in both runs, in milliseconds.
fn delays_ms(metric: Metric, first: &Lane, second: &Lane) -> [Option<f64>; 2] {
    [metric.of(first), metric.of(second)]
}

#[cfg(test)]
mod tests;
