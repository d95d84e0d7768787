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
    holm,
};

use crate::difference::noise_ms;
use crate::document::{Document, Lane, WITHIN_LIMITS_MS, WayAudit};
use crate::metric::{Metric, Statistic};

/// The largest differences between two testbeds that do not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Of medians, in milliseconds, beside what late wake-ups can do.
    pub median_ms: f64,
    /// Of 99th percentiles, in milliseconds: this …
    pub p99_ms: f64,
    /// … or this share of the larger one, whichever is more.
    pub p99_share: f64,
    /// Of shares delivered within a limit, as a share between 0 and 1.
    pub within: f64,
    /// The most by which late wake-ups may widen a margin of a delay, in milliseconds.
    pub noise_ms: f64,
}

impl Default for Margins {
    /// Two milliseconds in the middle; at the edge a quarter or 15 ms, since
    /// there a single packet's luck is a whole retransmission; two points of
    /// a hundred delivered within each limit. Late wake-ups add half of the median's
    /// margin at most: what they can hide is then smaller than what the margin is for.
    fn default() -> Self {
        Self {
            median_ms: 2.0,
            p99_ms: 15.0,
            p99_share: 0.25,
            within: 0.02,
            noise_ms: 1.0,
        }
    }
}

/// The finest difference that round trips are told apart by, in milliseconds.
const RESOLUTION_MS: f64 = 0.1;

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
    /// wider by it, or by [`Margins::noise_ms`] if that is less.
    pub noise_ms: f64,
    /// Why neither can be held against the other, where that is so: a run
    /// that is not valid.
    pub invalid: Option<String>,
    /// The lanes both runs measured, in the first one's order.
    pub lanes: Vec<LaneAgreement>,
}

/// A figure in both testbeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedFigure {
    /// Which.
    pub metric: Metric,
    /// Over all seeds together, in the first testbed. Infinite where lost.
    pub first: f64,
    /// In the second.
    pub second: f64,
    /// What is known of the mean difference, seed by seed.
    pub is: Equivalence,
    /// Of how many figures it is the one that is least shown to be equal.
    pub least_of: usize,
}

/// How one lane's two runs agree.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneAgreement {
    /// The lane.
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
        self.noise_ms > self.margins.noise_ms
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
    let mut lanes: Vec<LaneAgreement> = first
        .lanes
        .iter()
        .filter_map(|lane| {
            let audited_ms = [first, second].map(|document| audited_ms(document, &lane.lane));
            Some(LaneAgreement {
                audited_ms,
                ..of_lane(lane, named(lane)?, margins, noise_ms.min(margins.noise_ms))
            })
        })
        .collect();
    keep_what_is_sure(&mut lanes);
    let seeds = lanes
        .iter()
        .flat_map(|lane| lane.figures.iter().map(|figure| figure.is.seeds))
        .min();
    let messages_of_a_seed = first.lanes.iter().map(messages_of_a_seed).min();
    let name = |document: &Document| document.testbed.clone().unwrap_or_default();
    Agreement {
        testbeds: [name(first), name(second)],
        margins,
        seeds: seeds.unwrap_or(0),
        messages_of_a_seed: messages_of_a_seed.unwrap_or(0),
        noise_ms,
        invalid,
        lanes,
    }
}

/// Takes back differences that chance could have made, all figures of all lanes together.
fn keep_what_is_sure(lanes: &mut [LaneAgreement]) {
    let figures: Vec<&mut ComparedFigure> = lanes
        .iter_mut()
        .flat_map(|lane| &mut lane.figures)
        .collect();
    let p_values: Vec<f64> = figures
        .iter()
        .map(|figure| (figure.is.difference_p_value * figure.least_of as f64).min(1.0))
        .collect();
    for (figure, is_sure) in figures.into_iter().zip(holm(&p_values, EQUIVALENCE_CHANCE)) {
        if !is_sure && figure.is.finding == EquivalenceFinding::Different {
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
    let median = Metric::Rtt(Statistic::P50);
    let p99 = Metric::Rtt(Statistic::P99);
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
        compare(median, margins.median_ms + noise_ms, RESOLUTION_MS),
        compare(
            p99,
            p99_margin_ms(first, second, margins) + noise_ms,
            RESOLUTION_MS,
        ),
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
    let messages = lane.per_seed.first().map(|seed| seed.messages.intended);
    messages.unwrap_or(0)
}

/// In milliseconds, without what late wake-ups do.
fn p99_margin_ms(first: &Lane, second: &Lane, margins: Margins) -> f64 {
    let of = |lane| {
        Metric::Rtt(Statistic::P99)
            .of(lane)
            .filter(|p99| p99.is_finite())
    };
    let larger = of(first).into_iter().chain(of(second)).fold(0.0, f64::max);
    margins.p99_ms.max(margins.p99_share * larger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::sample::sample_document;
    use crate::document::{Audit, Milliseconds, SeedFigures};

    /// Two runs of `seeds` seeds that find the same.
    fn pair(seeds: u64) -> [Document; 2] {
        let mut document = sample_document();
        document.audit = None;
        for lane in &mut document.lanes {
            let of_seed = |seed| SeedFigures {
                seed,
                messages: lane.messages.clone(),
                rtt_ms: lane.rtt_ms.clone(),
                within: lane.within.clone(),
                lag: None,
                game: None,
                episodes: 0,
                worst_episode_ms: 0.0,
                overhead: None,
                cost: None,
            };
            lane.per_seed = (1..=seeds).map(of_seed).collect();
        }
        [document.clone(), document]
    }

    fn agreed(first: &Document, second: &Document) -> Agreement {
        agreement(first, second, Margins::default())
    }

    /// Moves the 99th percentile of a lane's seeds by turns up and down, and all
    /// of them by as much as `mean_ms`.
    fn scatter(document: &mut Document, by_ms: f64, mean_ms: f64) {
        for (seed, sign) in document.lanes[0]
            .per_seed
            .iter_mut()
            .zip([1.0, -1.0].iter().cycle())
        {
            seed.rtt_ms.p99 = seed.rtt_ms.p99.map(|p99| p99 + mean_ms + sign * by_ms);
        }
    }

    #[test]
    fn twenty_seeds_show_that_a_run_agrees_with_itself_and_fewer_do_not() {
        let [first, second] = pair(20);
        let found = agreed(&first, &second);
        assert!(found.holds(), "{found:?}");
        assert_eq!((found.lanes.len(), found.seeds), (2, 20));
        let [first, second] = pair(19);
        assert_eq!(
            agreed(&first, &second).finding(),
            EquivalenceFinding::Undecided
        );
    }

    #[test]
    fn each_figure_is_held_to_its_own_margin() {
        type Damage = fn(&mut SeedFigures);
        let damages: [(Damage, Metric); 4] = [
            (
                |seed| seed.rtt_ms.p50 = seed.rtt_ms.p50.map(|p50| p50 + 2.5),
                Metric::Rtt(Statistic::P50),
            ),
            (
                |seed| seed.rtt_ms.p99 = seed.rtt_ms.p99.map(|p99| p99 + 150.0),
                Metric::Rtt(Statistic::P99),
            ),
            (|seed| seed.rtt_ms.p99 = None, Metric::Rtt(Statistic::P99)),
            (
                |seed| *seed.within.get_mut(&Milliseconds(500)).unwrap() -= 0.021,
                Metric::Within(500),
            ),
        ];
        for (damage, metric) in damages {
            let [first, mut second] = pair(20);
            second.lanes[0].per_seed.iter_mut().for_each(damage);
            let found = agreed(&first, &second);
            assert_eq!(found.finding(), EquivalenceFinding::Different, "{metric:?}");
            let [touched, sound] = [0, 1].map(|index| &found.lanes[index]);
            let different: Vec<Metric> = touched
                .figures
                .iter()
                .filter(|figure| figure.is.finding == EquivalenceFinding::Different)
                .map(|figure| figure.metric)
                .collect();
            assert_eq!(different, [metric]);
            assert_eq!(sound.finding(), EquivalenceFinding::Equivalent);
        }
    }

    #[test]
    fn noise_never_makes_two_runs_equal() {
        let [first, mut second] = pair(20);
        scatter(&mut second, 20.0, 0.0);
        assert!(agreed(&first, &second).holds(), "known to within 8 ms");
        let [_, mut second] = pair(20);
        scatter(&mut second, 600.0, 0.0);
        let found = agreed(&first, &second);
        assert_eq!(found.finding(), EquivalenceFinding::Undecided);
        let p99 = found.lanes[0].figures[1];
        assert!(p99.is.smallest_detectable > p99.is.margin);
        assert!(p99.is.seeds_needed().unwrap() > 20);
    }

    /// Two runs that find the same, the second over real sockets on a machine whose late
    /// wake-ups can add so much.
    fn on_a_machine(noise_ms: f64) -> [Document; 2] {
        let [mut first, mut second] = pair(20);
        first.testbed = Some("sim".to_owned());
        second.testbed = Some("emu".to_owned());
        let noise = second.host.noise.as_mut().unwrap();
        noise.wake_us.p99 = noise_ms * 1e3 / 2.0;
        [first, second]
    }

    #[test]
    fn late_wake_ups_widen_the_margins_of_delays_by_a_millisecond_at_most() {
        for (noise_ms, wider_by) in [(0.0, 0.0), (0.4, 0.4), (1.0, 1.0), (7.0, 1.0)] {
            let [first, second] = on_a_machine(noise_ms);
            let found = agreed(&first, &second);
            let lanes = found.lanes.iter();
            for margin in lanes.map(|lane| lane.figures[0].is.margin) {
                assert!(
                    (margin - 2.0 - wider_by).abs() < 1e-9,
                    "{noise_ms}: {margin}"
                );
            }
            let within = found.lanes[0].figures[2];
            assert!((within.is.margin - 0.02).abs() < 1e-9);
        }
    }

    #[test]
    fn a_machine_that_wakes_later_than_a_margin_may_widen_decides_nothing() {
        let [first, second] = on_a_machine(1.0);
        assert!(agreed(&first, &second).holds());
        let [first, second] = on_a_machine(1.1);
        let found = agreed(&first, &second);
        assert!(found.is_too_noisy());
        assert_eq!(found.finding(), EquivalenceFinding::Undecided);
        // Nor is what differs a difference of the testbeds.
        let [first, mut second] = on_a_machine(1.1);
        for seed in &mut second.lanes[0].per_seed {
            seed.rtt_ms.p50 = seed.rtt_ms.p50.map(|p50| p50 + 50.0);
        }
        let found = agreed(&first, &second);
        assert_eq!(found.finding(), EquivalenceFinding::Undecided);
    }

    #[test]
    fn virtual_time_has_no_late_wake_ups() {
        for testbed in ["sim", "kernel"] {
            let [_, mut second] = on_a_machine(0.4);
            let mut first = second.clone();
            first.testbed = Some(testbed.to_owned());
            assert!((agreed(&first, &second).noise_ms - 0.4).abs() < 1e-9);
            second.testbed.clone_from(&first.testbed);
            assert!(agreed(&first, &second).noise_ms.abs() < 1e-9);
        }
    }

    #[test]
    fn what_failed_or_is_not_valid_agrees_with_nothing() {
        let [first, mut second] = pair(20);
        second.lanes[0].failure = Some("gone".to_owned());
        let found = agreed(&first, &second);
        assert_eq!(found.finding(), EquivalenceFinding::Different);
        assert_eq!(
            found.lanes[0].failure.as_deref(),
            Some("the second run failed: gone")
        );
        let [first, mut second] = pair(20);
        second.audit = sample_document().audit.map(|audit| Audit {
            valid: false,
            ..audit
        });
        assert!(!agreed(&first, &second).holds());
        second.audit = None;
        second.lanes.clear();
        assert!(!agreed(&first, &second).holds());
    }
}
