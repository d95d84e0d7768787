//! Whether two lanes differ, or only seem to.
//!
//! A difference is called one only where it exceeds what chance makes of it.
//! Lanes of one run met the same weather, so their figures are compared pair
//! by pair:
//!
//! - played with **several seeds**, the differences seed by seed have a 95 %
//!   confidence interval by Student's t-distribution (Student, "The probable
//!   error of a mean", 1908);
//! - played with **one seed**, the run's own stretches are drawn anew for both
//!   lanes alike (see [`Resamples`](crate::Resamples)), and the interval is
//!   the middle 95 % of the differences draw by draw (B. Efron's percentile
//!   interval, 1979). It tells what other stretches of the same weather would
//!   have shown, not other weather.
//!
//! Where a quantile was lost under some seed or in some draw it is infinite.
//! It then counts as twice the longest that either lane has: so that a lane
//! that loses it every time is worse for certain, and one that loses it now and
//! then varies a lot.
//!
//! The difference is real if the interval leaves out zero. Where lanes ran in
//! real time, it must also exceed what the machine's late wake-ups can do.

use crate::document::{Document, Lane, Resamples};
use crate::metric::{Metric, Unit};
use crate::quantiles::nearest_rank;

/// The difference of one figure between two lanes, first less second, with
/// its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean difference, in the metric's unit.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
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
    /// There is too little to tell by: one short seed, or a figure that is
    /// missing or not kept.
    Unknown,
}

/// The smallest and the largest value of a figure over the seeds of a lane,
/// infinite where it was lost; `None` with fewer than two seeds or where it is
/// not kept by seed.
#[must_use]
pub fn spread(metric: Metric, lane: &Lane) -> Option<(f64, f64)> {
    let values = by_seed(metric, lane)?;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some((low, high))
}

/// The difference between two lanes of one run; `None` where there is too
/// little to tell by.
#[must_use]
pub fn difference(metric: Metric, first: &Lane, second: &Lane) -> Option<Difference> {
    let seeds = |lane: &Lane| -> Vec<u64> { lane.per_seed.iter().map(|each| each.seed).collect() };
    if !first.per_seed.is_empty() || !second.per_seed.is_empty() {
        if seeds(first) != seeds(second) {
            return None;
        }
        let (first, second) = (by_seed(metric, first)?, by_seed(metric, second)?);
        return by_student(&paired(&first, &second));
    }
    let (first, second) = (first.resamples.as_ref()?, second.resamples.as_ref()?);
    if first.blocks != second.blocks {
        return None;
    }
    let name = metric.to_string();
    let draws = |of: &Resamples| -> Option<Vec<f64>> {
        let values = of.values.get(&name)?;
        Some(
            values
                .iter()
                .map(|value| value.unwrap_or(f64::INFINITY))
                .collect(),
        )
    };
    let (first, second) = (draws(first)?, draws(second)?);
    if first.len() != second.len() {
        return None;
    }
    by_percentile(paired(&first, &second))
}

/// Which of two lanes of one run is better by a figure, if either is.
///
/// `noise_ms` is what the machine alone can add to a delay, see
/// [`noise_ms`](noise_ms()).
#[must_use]
pub fn judge(metric: Metric, first: &Lane, second: &Lane, noise_ms: f64) -> Judgement {
    let Some(difference) = difference(metric, first, second) else {
        return Judgement::Unknown;
    };
    let floor = match metric.unit() {
        Unit::Milliseconds => noise_ms,
        Unit::Share | Unit::Number => 0.0,
    };
    let real = difference.low > 0.0 || difference.high < 0.0;
    if !real || difference.mean.abs() <= floor {
        Judgement::Neither
    } else if (difference.mean > 0.0) == metric.more_is_better() {
        Judgement::First
    } else {
        Judgement::Second
    }
}

/// What the machine alone can add to a round trip of this run, in
/// milliseconds: in virtual time nothing, otherwise a late wake-up at either
/// end. Zero where it was not measured.
#[must_use]
pub fn noise_ms(document: &Document) -> f64 {
    match (&document.testbed, &document.host.noise) {
        (Some(testbed), Some(noise)) if testbed != "sim" => 2.0 * noise.wake_us.p99 / 1e3,
        _ => 0.0,
    }
}

fn by_seed(metric: Metric, lane: &Lane) -> Option<Vec<f64>> {
    if lane.per_seed.len() < 2 {
        return None;
    }
    lane.per_seed
        .iter()
        .map(|seed| metric.of_seed(seed))
        .collect()
}

fn paired(first: &[f64], second: &[f64]) -> Vec<f64> {
    let values = || first.iter().chain(second);
    let longest = values()
        .copied()
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    let ceiling = if longest > 0.0 { 2.0 * longest } else { 1.0 };
    let capped = |value: f64| if value.is_finite() { value } else { ceiling };
    first
        .iter()
        .zip(second)
        .map(|(&first, &second)| capped(first) - capped(second))
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn by_student(differences: &[f64]) -> Option<Difference> {
    let freedom = differences
        .len()
        .checked_sub(1)
        .filter(|&freedom| freedom > 0)?;
    let mean = mean(differences);
    let squares: f64 = differences.iter().map(|each| (each - mean).powi(2)).sum();
    let error = (squares / freedom as f64 / differences.len() as f64).sqrt();
    let half_width = student_t(freedom) * error;
    Some(Difference {
        mean,
        low: mean - half_width,
        high: mean + half_width,
    })
}

/// The 97.5th percentile of Student's t-distribution, from the usual tables;
/// between its rows the row above is taken, which errs on the side of chance.
fn student_t(freedom: usize) -> f64 {
    const FIRST_TEN: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=10 => FIRST_TEN[freedom - 1],
        11..=14 => 2.201,
        15..=19 => 2.131,
        20..=29 => 2.086,
        30..=59 => 2.042,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

fn by_percentile(mut differences: Vec<f64>) -> Option<Difference> {
    if differences.is_empty() {
        return None;
    }
    let mean = mean(&differences);
    differences.sort_unstable_by(f64::total_cmp);
    let at = |per_mille| {
        let rank = nearest_rank(differences.len() as u64, per_mille);
        differences[rank.saturating_sub(1) as usize]
    };
    Some(Difference {
        mean,
        low: at(25),
        high: at(975),
    })
}

#[cfg(test)]
mod tests;
