//! Metrics as people write them.

use std::str::FromStr;
use std::time::Duration;

use lagometer_units::Span;
use thiserror::Error;

use super::{Metric, Sampled, Statistic};

/// A name that no metric has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "there is no metric `{written}`; write one of \"within 150 ms\" (any limit), \"p50\", \"p90\", \
     \"p99\", \"p99.9\", \"max\", \"mean\", \"up p99\", \"down p99\", \"lost\", \"lag\", \
     \"freezes\", \"longest freeze\", \"recovery first\", \"recovery last\", \"episodes\", \
     \"episodes 500 ms\", \"worst episode\", \"worst recovery\", \"overhead\", \
     \"cpu per message\", \"bytes per player-hour\", \"money per player-hour\"; of a game \"view freezes\", \"view frozen\", \"interpolation needed\", \
     \"view freezes at 100 ms\" (any delay), \"view age p99\", \"input age p99\", \"event p99\", \"event within 300 ms\", \"view age within 100 ms\", \"rollback p99\", \"rollback stalled\", \
     \"voice late\"; of traffic that is not echoed \"throughput up\", \"throughput down\""
)]
pub struct UnknownMetric {
    /// The text that names no metric.
    pub written: String,
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(written: &str) -> Result<Self, UnknownMetric> {
        let words: Vec<String> = written
            .to_lowercase()
            .split(|c: char| c.is_whitespace() || c == '_')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        parse_words(&words.join(" ")).ok_or_else(|| UnknownMetric {
            written: written.to_owned(),
        })
    }
}

/// The metric that is counted at a limit in milliseconds.
type OfLimit = fn(u32) -> Metric;

/// What is counted within, or at, a limit in milliseconds that follows its name.
const LIMITED: [(&str, OfLimit); 3] = [
    ("within ", Metric::Within),
    ("view freezes at ", Metric::ViewFreezesAt),
    ("view freezes per min at ", Metric::ViewFreezesAt),
];

/// Reads a metric from lower-case words with one blank between them.
fn parse_words(words: &str) -> Option<Metric> {
    for (name, metric) in LIMITED {
        if let Some(limit) = words.strip_prefix(name) {
            return whole_millis(limit).map(metric);
        }
    }
    for of in Sampled::ALL {
        if let Some(rest) = words.strip_prefix(of.in_words()) {
            let rest = rest.trim_start();
            if let Some(limit) = rest.strip_prefix("within ") {
                return whole_limit(of, limit).map(|limit| Metric::ShareWithin(of, limit));
            }
            let statistic = rest.strip_prefix(of.unit());
            let statistic = statistic.and_then(|it| it.strip_prefix('.'));
            if let Some(statistic) = parse_statistic(statistic.unwrap_or(rest)) {
                return Some(of.statistic(statistic));
            }
        }
    }
    let round_trip = words.strip_prefix("rtt").map_or(words, str::trim_start);
    let round_trip = round_trip.strip_prefix("ms.").unwrap_or(round_trip);
    if let Some(statistic) = parse_statistic(round_trip) {
        return Some(Metric::Rtt(statistic));
    }
    Some(match words {
        "lost" => Metric::Lost,
        "lag" | "lag s per min" => Metric::Lag,
        "freezes" | "freezes per min" => Metric::Freezes,
        "longest freeze" | "longest freeze ms" => Metric::LongestFreeze,
        "recovery first" | "recovery first ms" => Metric::RecoveryFirst,
        "recovery last" | "recovery last ms" => Metric::RecoveryLast,
        "view freezes" | "view freezes per min" => Metric::ViewFreezes,
        "view frozen" | "view frozen s per min" => Metric::ViewFrozen,
        "interpolation needed" | "interpolation needed ms" => Metric::InterpolationNeeded,
        "rollback stalled" => Metric::RollbackStalled,
        "voice late" => Metric::VoiceLate,
        "episodes" => Metric::Episodes,
        "episodes 500ms" | "episodes 500 ms" => Metric::Episodes500ms,
        "worst episode" | "worst episode ms" => Metric::WorstEpisode,
        "worst recovery" | "worst recovery ms" => Metric::WorstRecovery,
        "throughput up" | "throughput up kbit per s" => Metric::ThroughputUp,
        "throughput down" | "throughput down kbit per s" => Metric::ThroughputDown,
        "overhead" => Metric::Overhead,
        "cpu per message" | "cpu ns per message" => Metric::CpuPerMessage,
        "bytes per player hour" | "bytes per player-hour" => Metric::BytesPerHour,
        "money per player hour" | "money per player-hour" => Metric::MoneyPerHour,
        _ => return None,
    })
}

fn parse_statistic(word: &str) -> Option<Statistic> {
    Some(match word {
        "min" => Statistic::Min,
        "p50" | "median" => Statistic::P50,
        "p90" => Statistic::P90,
        "p99" => Statistic::P99,
        "p99.9" | "p99 9" => Statistic::P99_9,
        "max" => Statistic::Max,
        "mean" => Statistic::Mean,
        _ => return None,
    })
}

/// A limit of a distribution, in its unit, if it is a whole number and not zero.
fn whole_limit(of: Sampled, written: &str) -> Option<u32> {
    match of {
        Sampled::Rollback => {
            let frames = written.strip_suffix(of.unit())?.trim_end();
            frames.parse().ok().filter(|&frames| frames > 0)
        }
        _ => whole_millis(written),
    }
}

/// A limit in milliseconds, if it is a whole number of them and not zero.
fn whole_millis(written: &str) -> Option<u32> {
    let limit = written.parse::<Span>().ok()?.duration();
    let limit_ms = u32::try_from(limit.as_millis()).ok()?;
    (limit == Duration::from_millis(u64::from(limit_ms)) && limit_ms > 0).then_some(limit_ms)
}
