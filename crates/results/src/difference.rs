//! What chance makes of a figure, and of the difference between two lanes.
//!
//! Every figure is drawn anew many times from independent units of play (see
//! [`Resamples`]); the standard deviation of the draws is the figure's standard
//! error (B. Efron, 1979), enlarged by n/(n-1) since the draws vary around the
//! units at hand. Intervals and p-values are those of Student's t-distribution
//! with n-1 degrees of freedom ("The probable error of a mean", 1908), n being
//! the number of seeds, or half the number of stretches of one run, since those
//! are nearly independent and no more. Lanes of one run met the same network conditions, and so did their
//! draws: a difference is taken draw by draw, which leaves out what the
//! network conditions did to both.
//!
//! Late messages are few and come together, so a share of them is skewed: runs
//! with few show little variance. Whether a difference is one is therefore
//! asked where the variance does not hang on the value: of the arcsine of the
//! root of a late share, of messages or of play (M. S. Bartlett, "The use of
//! transformations", 1947), of a count's root and of a delay's logarithm.
//!
//! That a budget is kept wants more than that ([`beyond`]).
//!
//! No error is taken to be smaller than the figure's resolution allows: some
//! units that happen to agree to the message are no proof of certainty.
//!
//! Where a quantile was lost, in the run or in some draw, it is infinite. It
//! then counts as twice the longest that either lane has: a lane that loses it
//! every time is worse for certain, and one that loses it now and then varies a
//! lot.
//!
//! Where lanes ran in real time, a difference must also exceed what the
//! machine's late wake-ups can do.

use lagometer_stats::{holm, student};

use crate::document::{Document, Lane, ResampleUnit, Resamples};
use crate::lag::per_minute;
use crate::metric::{Metric, Sampled, Unit};

mod beyond;
mod mixture;
mod of_runs;

pub(crate) use beyond::{beyond, is_enough_to_keep, is_spent, judged_by, whole_limits};
pub use mixture::{mixed, mixed_difference, mixed_interval};
pub use of_runs::{TWO_RUNS_ERRING, difference_of_runs, may_compare};

/// How sure an interval is that stands by itself.
pub const CONFIDENCE: f64 = 0.95;

/// A quantile beyond which fewer messages lie is a matter of single ones: its
/// draws show no more than those.
const FEWEST_BEYOND: u64 = 10;

/// Histograms keep three significant digits; what is closer is the same.
const RESOLUTION: f64 = 1e-3;

/// The difference of one figure between two lanes, first less second, with
/// its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The difference, in the metric's unit.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How many standard errors it is from zero, where the variance does not
    /// hang on the value.
    pub t: f64,
    /// Degrees of freedom of its error.
    pub freedom: u32,
}

/// Which of two lanes is better by a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The first, beyond chance and noise.
    First,
    /// The second, beyond chance and noise.
    Second,
    /// There is no difference that chance or noise could not have made.
    Neither,
    /// There is too little to judge by: few seeds, a short run, or a figure
    /// that is missing or not kept.
    Unknown,
}

/// A figure's 95 % confidence interval, in its unit; the upper end is infinite
/// where it reaches what was lost. `None` where there is too little to judge by
/// or the figure is a fact of the run, as a maximum is.
#[must_use]
pub fn interval(metric: Metric, lane: &Lane) -> Option<(f64, f64)> {
    Some(Drawn::of(metric, lane)?.interval(resolution(metric, lane)))
}

/// The difference between two lanes of one run; `None` where there is too
/// little to tell by.
#[must_use]
pub fn difference(metric: Metric, first: &Lane, second: &Lane) -> Option<Difference> {
    let resolution = resolution(metric, first).max(resolution(metric, second));
    Drawn::of(metric, first)?.less(&Drawn::of(metric, second)?, resolution)
}

/// Which of two lanes of one run is better by a figure, if either is, for a
/// comparison that stands by itself: with a chance of one in twenty to find a
/// difference where there is none.
///
/// `noise_ms` is what the machine alone can add to a delay, see
/// [`noise_ms`](noise_ms()).
#[must_use]
pub fn judge(metric: Metric, first: &Lane, second: &Lane, noise_ms: f64) -> Judgement {
    judge_together(&[(metric, first, second)], noise_ms)[0]
}

/// The same of comparisons that a reader takes in at once, as those of a table: all of
/// them together find a difference where there is none with that chance (Holm's
/// procedure).
#[must_use]
pub fn judge_together(pairs: &[(Metric, &Lane, &Lane)], noise_ms: f64) -> Vec<Judgement> {
    let found: Vec<Option<(Metric, Difference)>> = pairs
        .iter()
        .map(|&(metric, first, second)| Some((metric, difference(metric, first, second)?)))
        .collect();
    let known = found.iter().flatten();
    let p_values: Vec<f64> = known
        .map(|(metric, found)| found.p_value(floor(*metric, noise_ms)))
        .collect();
    let mut sure = holm(&p_values, 1.0 - CONFIDENCE).into_iter();
    let judged = found.into_iter().map(|found| {
        let (metric, found) = found?;
        let is_first = (found.mean > 0.0) == metric.more_is_better();
        Some(match (sure.next()?, is_first) {
            (false, _) => Judgement::Neither,
            (true, true) => Judgement::First,
            (true, false) => Judgement::Second,
        })
    });
    judged
        .map(|judged| judged.unwrap_or(Judgement::Unknown))
        .collect()
}

/// What a difference of `metric` must exceed beside chance.
pub(crate) const fn floor(metric: Metric, noise_ms: f64) -> f64 {
    match metric.unit() {
        Unit::Milliseconds => noise_ms,
        Unit::Share | Unit::Number => 0.0,
    }
}

/// What the machine alone can add to a round trip of this run, in
/// milliseconds: in virtual time nothing, otherwise a late wake-up at either
/// end. Zero where it was not measured.
#[must_use]
pub fn noise_ms(document: &Document) -> f64 {
    match (&document.testbed, &document.host.noise) {
        (Some(testbed), Some(noise)) if !is_virtual_time(testbed) => 2.0 * noise.wake_us.p99 / 1e3,
        _ => 0.0,
    }
}

/// Whether nobody wakes late in a testbed.
pub(crate) fn is_virtual_time(testbed: &str) -> bool {
    matches!(testbed, "sim" | "kernel")
}

impl Difference {
    /// The chance of a difference at least as large, either way, where the
    /// true one is no larger than `floor`.
    #[must_use]
    pub fn p_value(&self, floor: f64) -> f64 {
        let excess = self.mean.abs() - floor;
        if excess <= 0.0 {
            return 1.0;
        }
        student::two_sided_p(self.t * excess / self.mean.abs(), self.freedom)
    }
}

/// Where a figure's variance does not hang on its value.
#[derive(Clone, Copy)]
enum Scale {
    /// Of a share of good messages: the arcsine of the root of the others.
    Good,
    /// Of a share of bad messages.
    Bad,
    /// Of seconds in a minute: the same of their share.
    Minute,
    /// Of a number: its root.
    Root,
    /// Of a delay: its logarithm.
    Log,
}

impl Scale {
    fn of(metric: Metric) -> Self {
        match metric.unit() {
            _ if metric == Metric::Lag => Self::Minute,
            Unit::Share if metric.more_is_better() => Self::Good,
            Unit::Share => Self::Bad,
            Unit::Number => Self::Root,
            Unit::Milliseconds => Self::Log,
        }
    }

    /// By functions that give the same on every system: what a document decides hangs on
    /// them.
    fn to(self, value: f64) -> f64 {
        match self {
            Self::Good => libm::asin((1.0 - value).clamp(0.0, 1.0).sqrt()),
            Self::Bad => libm::asin(value.clamp(0.0, 1.0).sqrt()),
            Self::Minute => Self::Bad.to(value / 60.0),
            Self::Root => value.max(0.0).sqrt(),
            Self::Log => libm::log1p(value.max(0.0)),
        }
    }

    /// The largest value there can be.
    const fn most(self) -> f64 {
        match self {
            Self::Good | Self::Bad => 1.0,
            Self::Minute => 60.0,
            Self::Root | Self::Log => f64::INFINITY,
        }
    }

    fn back(self, scaled: f64) -> f64 {
        let angle = scaled.clamp(0.0, std::f64::consts::FRAC_PI_2);
        match self {
            Self::Good => 1.0 - squared(libm::sin(angle)),
            Self::Bad => squared(libm::sin(angle)),
            Self::Minute => 60.0 * Self::Bad.back(scaled),
            Self::Root => squared(scaled.max(0.0)),
            Self::Log => libm::expm1(scaled.max(0.0)),
        }
    }
}

fn squared(value: f64) -> f64 {
    value * value
}

/// The smallest step by which the figure of all messages can differ because of
/// one message in a unit of play.
fn resolution(metric: Metric, lane: &Lane) -> f64 {
    let units = lane.resamples.as_ref().map_or(1, |drawn| drawn.blocks);
    let units = f64::from(units.max(1));
    match metric {
        Metric::Episodes | Metric::Episodes500ms => units.sqrt(),
        Metric::ShareWithin(Sampled::Event, _) => {
            let events = lane.game.as_ref().and_then(|game| game.events);
            units.sqrt() / events.unwrap_or(1).max(1) as f64
        }
        // A message that comes by one interval later, as a part of all play.
        Metric::Lag => 60.0 * units.sqrt() / lane.messages.intended.max(1) as f64,
        Metric::Freezes => {
            let seconds = lane.resamples.as_ref().map_or(0.0, |drawn| drawn.block_s);
            per_minute(units.sqrt(), units * seconds)
        }
        _ => match metric.unit() {
            Unit::Share => units.sqrt() / lane.messages.intended.max(1) as f64,
            Unit::Milliseconds | Unit::Number => {
                let value = metric.of(lane).filter(|value| value.is_finite());
                value.unwrap_or_default().abs() * RESOLUTION
            }
        },
    }
}

/// Whether a quantile would have [`FEWEST_BEYOND`] samples beyond it if the lane played so
/// many times what it did. Other figures need none.
pub(crate) fn has_enough_beyond(metric: Metric, lane: &Lane, times: f64) -> bool {
    let Some(per_mille) = metric.quantile_per_mille() else {
        return true;
    };
    let samples = match metric {
        Metric::Event(_) => lane.game.as_ref().and_then(|game| game.events),
        _ => Some(lane.messages.intended),
    };
    samples.is_none_or(|samples| {
        let samples = (samples as f64 * times) as u64;
        u64::from(1000 - per_mille) * samples / 1000 >= FEWEST_BEYOND
    })
}

/// A figure and what became of it in every draw, with infinity where it was
/// lost.
struct Drawn {
    scale: Scale,
    value: f64,
    draws: Vec<f64>,
    units: u32,
    freedom: u32,
}

impl Drawn {
    fn of(metric: Metric, lane: &Lane) -> Option<Self> {
        let resamples: &Resamples = lane.resamples.as_ref().filter(|drawn| drawn.suffice())?;
        let values = resamples.values.get(&metric.to_string())?;
        if !has_enough_beyond(metric, lane, 1.0) {
            return None;
        }
        Some(Self {
            scale: Scale::of(metric),
            value: metric.of(lane)?,
            draws: values
                .iter()
                .map(|value| value.unwrap_or(f64::INFINITY))
                .collect(),
            units: resamples.blocks,
            freedom: match resamples.unit {
                ResampleUnit::Seed => resamples.blocks,
                ResampleUnit::Stretch => resamples.blocks / 2,
            }
            .saturating_sub(1)
            .max(1),
        })
        .filter(|drawn| !drawn.draws.is_empty())
    }

    /// A figure that does not vary, in as many draws as `like`.
    fn constant(value: f64, like: &Self) -> Self {
        Self {
            scale: like.scale,
            value,
            draws: vec![value; like.draws.len()],
            units: like.units,
            freedom: like.freedom,
        }
    }

    /// The difference draw by draw; `None` where the draws are not of the same
    /// units.
    fn less(&self, other: &Self, resolution: f64) -> Option<Difference> {
        if self.units != other.units || self.draws.len() != other.draws.len() {
            return None;
        }
        let all = || self.draws.iter().chain(&other.draws).copied();
        let longest = all()
            .chain([self.value, other.value])
            .filter(|value| value.is_finite())
            .fold(0.0, f64::max);
        let ceiling = if longest > 0.0 { 2.0 * longest } else { 1.0 };
        let capped = |value: f64| if value.is_finite() { value } else { ceiling };
        let apart = |of: &dyn Fn(f64) -> f64| {
            let each = self.draws.iter().zip(&other.draws);
            let draws = each.map(|(&first, &second)| of(capped(first)) - of(capped(second)));
            (
                of(capped(self.value)) - of(capped(other.value)),
                self.error(draws),
            )
        };
        let (mean, error) = apart(&|value| value);
        let (scaled, scaled_error) = apart(&|value| self.scale.to(value));
        let error = error.max(resolution).max(f64::MIN_POSITIVE);
        let half_width = student::two_sided_quantile(1.0 - CONFIDENCE, self.freedom) * error;
        Some(Difference {
            mean,
            low: mean - half_width,
            high: mean + half_width,
            t: (scaled.abs() / scaled_error.max(f64::MIN_POSITIVE))
                .min(mean.abs() / resolution.max(f64::MIN_POSITIVE)),
            freedom: self.freedom,
        })
    }

    /// The figure's 95 % interval.
    fn interval(&self, resolution: f64) -> (f64, f64) {
        if self.draws.iter().all(|draw| draw.is_finite()) && self.value.is_finite() {
            return self.finite_interval(resolution);
        }
        // A mean of infinities says nothing: the middle of the draws does.
        let mut draws = self.draws.clone();
        draws.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| draws[((draws.len() - 1) as f64 * share).round() as usize];
        (
            at((1.0 - CONFIDENCE) / 2.0),
            at(f64::midpoint(1.0, CONFIDENCE)),
        )
    }

    /// The 95 % interval of a figure that was never lost.
    fn finite_interval(&self, resolution: f64) -> (f64, f64) {
        let value = self.scale.to(self.value);
        let error = self.error(self.draws.iter().map(|&draw| self.scale.to(draw)));
        let half_width = student::two_sided_quantile(1.0 - CONFIDENCE, self.freedom) * error;
        let ends = [value - half_width, value + half_width].map(|end| self.scale.back(end));
        (
            ends[0].min(ends[1]).min((self.value - resolution).max(0.0)),
            ends[0]
                .max(ends[1])
                .max((self.value + resolution).min(self.scale.most())),
        )
    }

    /// The standard error of what was drawn.
    fn error(&self, draws: impl Iterator<Item = f64>) -> f64 {
        let draws: Vec<f64> = draws.collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let squares: f64 = draws.iter().map(|draw| squared(draw - mean)).sum();
        let variance = squares / (draws.len() as f64 - 1.0).max(1.0);
        let units = f64::from(self.units);
        (variance * units / (units - 1.0).max(1.0)).sqrt()
    }
}

#[cfg(test)]
pub(crate) mod tests;
