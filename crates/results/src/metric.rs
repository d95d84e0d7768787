//! The figures of a lane by name: what budgets limit, comparisons compare and
//! verdicts rank by.

use std::fmt;

use crate::document::{
    CensoredQuantiles, Game, Lag, Lane, Lasted, Milliseconds, PlayerCost, Population, Quantiles,
    SeedFigures,
};
use crate::figures::longest_ms;
use crate::within::share;

mod sampled;
mod written;

pub use sampled::Sampled;
pub use written::UnknownMetric;

/// One figure of a lane.
///
/// Written by [`Display`](fmt::Display) as documents name it
/// (`within_150ms`, `rtt_ms.p99`) and read as people write it, too
/// ("within 150 ms", "p99", "worst episode").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Share of all intended messages whose echo arrived within so many
    /// milliseconds. More is better.
    Within(u32),
    /// A statistic of the round trip from the intended send, in milliseconds.
    /// A lost message counts as one that never ends.
    Rtt(Statistic),
    /// A statistic of the one-way delay to the remote end, in milliseconds. A
    /// message that never got there counts as one that takes forever.
    Up(Statistic),
    /// A statistic of the one-way delay of the echoes that set out, in
    /// milliseconds. A lost one takes forever.
    Down(Statistic),
    /// Share of all intended messages that were lost.
    Lost,
    /// Seconds of lag in a minute of play, by the experiment's threshold.
    Lag,
    /// Freezes in a minute of play.
    Freezes,
    /// The longest freeze in milliseconds; endless if its end was not seen.
    LongestFreeze,
    /// The longest recovery from the first disturbance that a freeze touched,
    /// in milliseconds; endless if its end was not seen, zero where no freeze
    /// touched one.
    RecoveryFirst,
    /// The same from the last disturbance that a freeze touched.
    RecoveryLast,
    /// Freezes of a game's view in a minute, at its interpolation delay.
    ViewFreezes,
    /// Seconds of a minute in which a game's view stands still.
    ViewFrozen,
    /// The interpolation delay in milliseconds from which on the view would freeze at
    /// most once a minute.
    InterpolationNeeded,
    /// Freezes of a game's view in a minute, were its interpolation delay so many
    /// milliseconds.
    ViewFreezesAt(u32),
    /// A statistic of the age of what a game's client has of the world, over time, in
    /// milliseconds.
    ViewAge(Statistic),
    /// A statistic of the age of the newest input at the server's steps, in milliseconds.
    InputAge(Statistic),
    /// A statistic of the delay of a game's events both ways, in milliseconds. One that
    /// never came takes forever.
    Event(Statistic),
    /// Share of the samples of a distribution that are within so many milliseconds, or
    /// frames of a rollback; of an age the share of time. More is better.
    ShareWithin(Sampled, u32),
    /// A statistic of the frames that an input rolled a game back by.
    Rollback(Statistic),
    /// Share of inputs for which a game that rolls back had to stop and wait.
    RollbackStalled,
    /// Share of a game's voice frames that were late or lost.
    VoiceLate,
    /// Number of lag episodes, over all seeds together.
    Episodes,
    /// Number of episodes above a fixed 500 ms, over all seeds together.
    Episodes500ms,
    /// The longest lag episode in milliseconds.
    WorstEpisode,
    /// The longest recovery in milliseconds; zero where no episode has one.
    WorstRecovery,
    /// Payload that came up within the time of play, in kbit/s. More is better.
    ThroughputUp,
    /// The same down.
    ThroughputDown,
    /// Bytes on the wire over payload bytes.
    Overhead,
    /// CPU time for each message in nanoseconds.
    CpuPerMessage,
    /// Bytes on the wire both ways in a player's hour, headers included.
    BytesPerHour,
    /// What a player's hour costs by the first price list, in its currency.
    MoneyPerHour,
}

/// A statistic of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// Smallest.
    Min,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P99_9,
    /// Largest.
    Max,
    /// Mean.
    Mean,
}

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share between 0 and 1.
    Share,
    /// Milliseconds.
    Milliseconds,
    /// A plain number.
    Number,
}

impl Metric {
    /// The metric in a sentence: `share within 150 ms`, `p99 of the round trip`; as it
    /// is written in an experiment where that says it.
    #[must_use]
    pub fn in_words(self) -> String {
        match self {
            Self::Within(limit) => format!("share within {limit} ms"),
            Self::Rtt(statistic) => format!("{statistic} of the round trip"),
            Self::ShareWithin(of, limit) => {
                format!("share of the {} within {limit} {}", of.noun(), of.unit())
            }
            other => match (other.statistic(), other.sampled()) {
                (Some(statistic), Some(of)) => format!("{statistic} of the {}", of.noun()),
                _ => other.to_string(),
            },
        }
    }

    /// What the metric is measured in.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::Within(_)
            | Self::ShareWithin(..)
            | Self::Lost
            | Self::RollbackStalled
            | Self::VoiceLate => Unit::Share,
            Self::Rtt(_)
            | Self::Up(_)
            | Self::Down(_)
            | Self::InterpolationNeeded
            | Self::ViewAge(_)
            | Self::InputAge(_)
            | Self::Event(_)
            | Self::LongestFreeze
            | Self::RecoveryFirst
            | Self::RecoveryLast
            | Self::WorstEpisode
            | Self::WorstRecovery => Unit::Milliseconds,
            Self::Lag
            | Self::Freezes
            | Self::ViewFreezes
            | Self::ViewFreezesAt(_)
            | Self::ViewFrozen
            | Self::Rollback(_)
            | Self::Episodes
            | Self::Episodes500ms
            | Self::ThroughputUp
            | Self::ThroughputDown
            | Self::Overhead
            | Self::CpuPerMessage
            | Self::BytesPerHour
            | Self::MoneyPerHour => Unit::Number,
        }
    }

    /// Whether a larger value is the better one.
    #[must_use]
    pub const fn more_is_better(self) -> bool {
        matches!(
            self,
            Self::Within(_) | Self::ShareWithin(..) | Self::ThroughputUp | Self::ThroughputDown
        )
    }

    /// Whether the figure stands for what would be found again and again, and so varies
    /// with the luck of the run: it is judged by an interval. Others are facts of the run:
    /// its least and its most, the longest freeze, and what a processor did.
    #[must_use]
    pub const fn is_estimated(self) -> bool {
        match self {
            Self::Rtt(statistic)
            | Self::Up(statistic)
            | Self::Down(statistic)
            | Self::ViewAge(statistic)
            | Self::InputAge(statistic)
            | Self::Event(statistic)
            | Self::Rollback(statistic) => !matches!(statistic, Statistic::Min | Statistic::Max),
            Self::LongestFreeze
            | Self::RecoveryFirst
            | Self::RecoveryLast
            | Self::WorstEpisode
            | Self::WorstRecovery
            | Self::CpuPerMessage => false,
            Self::Within(_)
            | Self::ShareWithin(..)
            | Self::Lost
            | Self::Lag
            | Self::Freezes
            | Self::Episodes
            | Self::Episodes500ms
            | Self::ViewFreezes
            | Self::ViewFreezesAt(_)
            | Self::ViewFrozen
            | Self::InterpolationNeeded
            | Self::RollbackStalled
            | Self::VoiceLate
            | Self::ThroughputUp
            | Self::ThroughputDown
            | Self::Overhead
            | Self::BytesPerHour
            | Self::MoneyPerHour => true,
        }
    }

    /// The lane's value. Infinite where so many messages were lost that a
    /// quantile lies among them; `None` where the lane has no such figure.
    #[must_use]
    pub fn of(self, lane: &Lane) -> Option<f64> {
        match self {
            Self::Within(limit_ms) => lane.within.get(&Milliseconds(limit_ms)).copied(),
            Self::Rtt(statistic) if lane.messages.intended > 0 => {
                Some(statistic.among(&lane.rtt_ms))
            }
            Self::Rtt(_) => None,
            Self::Up(statistic) => Some(statistic.among(lane.up_ms.as_ref()?)),
            Self::Down(statistic) => Some(statistic.among(lane.down_ms.as_ref()?)),
            Self::Lost => Some(share(lane.messages.lost, lane.messages.intended)),
            Self::Lag
            | Self::Freezes
            | Self::LongestFreeze
            | Self::RecoveryFirst
            | Self::RecoveryLast => self.of_lag(lane.lag.as_ref()?),
            Self::ViewFreezes
            | Self::ViewFreezesAt(_)
            | Self::ViewFrozen
            | Self::InterpolationNeeded
            | Self::ViewAge(_)
            | Self::InputAge(_)
            | Self::Event(_)
            | Self::ShareWithin(Sampled::Event, _)
            | Self::Rollback(_)
            | Self::RollbackStalled
            | Self::VoiceLate => self.of_game(lane.game.as_ref()?),
            Self::ShareWithin(..) => lane.shares_within.get(&self.to_string()).copied(),
            Self::Episodes => Some(lane.episodes.len() as f64),
            Self::Episodes500ms => Some(lane.episodes_500ms.len() as f64),
            Self::WorstEpisode => Some(longest_ms(&lane.episodes)),
            Self::WorstRecovery => Some(
                lane.episodes
                    .iter()
                    .filter_map(|episode| episode.recovery_ms)
                    .fold(0.0, f64::max),
            ),
            Self::ThroughputUp => Some(lane.traffic.as_ref()?.up.as_ref()?.kbit_per_s),
            Self::ThroughputDown => Some(lane.traffic.as_ref()?.down.as_ref()?.kbit_per_s),
            Self::Overhead => Some(lane.wire.as_ref()?.overhead),
            Self::CpuPerMessage => lane.cpu_ns_per_message,
            Self::BytesPerHour => lane.cost.as_ref().map(PlayerCost::bytes_per_hour),
            Self::MoneyPerHour => Some(lane.cost.as_ref()?.money.first()?.per_hour),
        }
    }

    /// The value under one seed. Infinite as in [`of`](Self::of); `None` for
    /// metrics that are not kept by seed.
    #[must_use]
    pub fn of_seed(self, seed: &SeedFigures) -> Option<f64> {
        match self {
            Self::Within(limit_ms) => seed.within.get(&Milliseconds(limit_ms)).copied(),
            Self::Rtt(statistic) if seed.rtt_ms.of != Population::Delivered => {
                Some(statistic.among(&seed.rtt_ms))
            }
            Self::Lost => Some(share(seed.messages.lost, seed.messages.intended)),
            Self::Lag
            | Self::Freezes
            | Self::LongestFreeze
            | Self::RecoveryFirst
            | Self::RecoveryLast => self.of_lag(seed.lag.as_ref()?),
            Self::ViewFreezes
            | Self::ViewFreezesAt(_)
            | Self::ViewFrozen
            | Self::InterpolationNeeded
            | Self::ViewAge(_)
            | Self::InputAge(_)
            | Self::Event(_)
            | Self::ShareWithin(Sampled::Event, _)
            | Self::Rollback(_)
            | Self::RollbackStalled
            | Self::VoiceLate => self.of_game(seed.game.as_ref()?),
            Self::Episodes => Some(seed.episodes as f64),
            Self::WorstEpisode => Some(seed.worst_episode_ms),
            Self::Overhead => seed.overhead,
            Self::BytesPerHour => Some(seed.cost?.bytes_per_hour),
            Self::MoneyPerHour => seed.cost?.money_per_hour,
            Self::Rtt(_)
            | Self::Up(_)
            | Self::Down(_)
            | Self::ShareWithin(..)
            | Self::Episodes500ms
            | Self::WorstRecovery
            | Self::ThroughputUp
            | Self::ThroughputDown
            | Self::CpuPerMessage => None,
        }
    }

    /// The value of a figure of a game.
    fn of_game(self, game: &Game) -> Option<f64> {
        match self {
            Self::ViewFreezes => Some(game.freezes_per_min),
            Self::ViewFreezesAt(delay_ms) => game
                .freezes_per_min_at
                .get(&Milliseconds(delay_ms))
                .copied(),
            Self::ViewFrozen => Some(game.frozen_s_per_min),
            Self::InterpolationNeeded => Some(game.interpolation_needed_ms),
            Self::ViewAge(statistic) => Some(statistic.of(&game.view_age_ms)),
            Self::InputAge(statistic) => Some(statistic.of(&game.input_age_ms)),
            Self::Event(statistic) => Some(statistic.among(game.event_ms.as_ref()?)),
            Self::ShareWithin(Sampled::Event, limit_ms) => {
                game.events_within.get(&Milliseconds(limit_ms)).copied()
            }
            Self::Rollback(statistic) => Some(statistic.among(game.rollback_frames.as_ref()?)),
            Self::RollbackStalled => game.rollback_stalled,
            Self::VoiceLate => game.voice_late,
            _ => None,
        }
    }

    /// The value of a figure of lag.
    fn of_lag(self, lag: &Lag) -> Option<f64> {
        match self {
            Self::Lag => Some(lag.s_per_min),
            Self::Freezes => Some(lag.freezes_per_min),
            Self::LongestFreeze | Self::RecoveryFirst | Self::RecoveryLast => {
                Some(self.lasted(lag).map_or(0.0, Lasted::censored_ms))
            }
            _ => None,
        }
    }

    /// How long that lasted which the figure is the longest of; `None` where there was
    /// nothing, and of other figures.
    const fn lasted(self, lag: &Lag) -> Option<Lasted> {
        match self {
            Self::LongestFreeze => lag.longest_freeze,
            Self::RecoveryFirst => lag.recovery_first,
            Self::RecoveryLast => lag.recovery_last,
            _ => None,
        }
    }

    /// Milliseconds that were seen of a freeze or a recovery whose end was not; `None` of
    /// one that ended and of other figures.
    pub(crate) fn seen_ms(self, lane: &Lane) -> Option<f64> {
        let lasted = self.lasted(lane.lag.as_ref()?)?;
        lasted.at_least.then_some(lasted.ms)
    }
}

impl Statistic {
    /// The statistic's value.
    #[must_use]
    pub const fn of(self, quantiles: &Quantiles) -> f64 {
        match self {
            Self::Min => quantiles.min,
            Self::P50 => quantiles.p50,
            Self::P90 => quantiles.p90,
            Self::P99 => quantiles.p99,
            Self::P99_9 => quantiles.p99_9,
            Self::Max => quantiles.max,
            Self::Mean => quantiles.mean,
        }
    }

    /// The statistic's value, infinite where it lies among what was lost.
    fn among(self, quantiles: &CensoredQuantiles) -> f64 {
        let value = match self {
            Self::Min => quantiles.min,
            Self::P50 => quantiles.p50,
            Self::P90 => quantiles.p90,
            Self::P99 => quantiles.p99,
            Self::P99_9 => quantiles.p99_9,
            Self::Max => quantiles.max,
            Self::Mean => quantiles.mean,
        };
        value.unwrap_or(f64::INFINITY)
    }

    /// The quantile it is, in thousandths; a mean is none.
    #[must_use]
    pub const fn per_mille(self) -> Option<u32> {
        Some(match self {
            Self::Min => 0,
            Self::P50 => 500,
            Self::P90 => 900,
            Self::P99 => 990,
            Self::P99_9 => 999,
            Self::Max => 1000,
            Self::Mean => return None,
        })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within(limit_ms) => write!(formatter, "within_{limit_ms}ms"),
            Self::Rtt(statistic) => write!(formatter, "rtt_ms.{statistic}"),
            Self::Up(statistic) => write!(formatter, "up_ms.{statistic}"),
            Self::Down(statistic) => write!(formatter, "down_ms.{statistic}"),
            Self::Lost => formatter.write_str("lost"),
            Self::Lag => formatter.write_str("lag_s_per_min"),
            Self::Freezes => formatter.write_str("freezes_per_min"),
            Self::LongestFreeze => formatter.write_str("longest_freeze_ms"),
            Self::RecoveryFirst => formatter.write_str("recovery_first_ms"),
            Self::RecoveryLast => formatter.write_str("recovery_last_ms"),
            Self::ViewFreezes => formatter.write_str("view_freezes_per_min"),
            Self::ViewFreezesAt(delay_ms) => {
                write!(formatter, "view_freezes_per_min_at_{delay_ms}ms")
            }
            Self::ViewFrozen => formatter.write_str("view_frozen_s_per_min"),
            Self::InterpolationNeeded => formatter.write_str("interpolation_needed_ms"),
            Self::ViewAge(statistic) => write!(formatter, "view_age_ms.{statistic}"),
            Self::InputAge(statistic) => write!(formatter, "input_age_ms.{statistic}"),
            Self::Event(statistic) => write!(formatter, "event_ms.{statistic}"),
            Self::ShareWithin(of, limit) => write!(formatter, "{of}_within_{limit}{}", of.unit()),
            Self::Rollback(statistic) => write!(formatter, "rollback_frames.{statistic}"),
            Self::RollbackStalled => formatter.write_str("rollback_stalled"),
            Self::VoiceLate => formatter.write_str("voice_late"),
            Self::Episodes => formatter.write_str("episodes"),
            Self::Episodes500ms => formatter.write_str("episodes_500ms"),
            Self::WorstEpisode => formatter.write_str("worst_episode_ms"),
            Self::WorstRecovery => formatter.write_str("worst_recovery_ms"),
            Self::ThroughputUp => formatter.write_str("throughput_up_kbit_per_s"),
            Self::ThroughputDown => formatter.write_str("throughput_down_kbit_per_s"),
            Self::Overhead => formatter.write_str("overhead"),
            Self::CpuPerMessage => formatter.write_str("cpu_ns_per_message"),
            Self::BytesPerHour => formatter.write_str("bytes_per_player_hour"),
            Self::MoneyPerHour => formatter.write_str("money_per_player_hour"),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P99_9 => "p99_9",
            Self::Max => "max",
            Self::Mean => "mean",
        })
    }
}

#[cfg(test)]
mod tests;
