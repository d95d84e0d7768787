//! The figures by which lanes are judged: what each is called, where it stands
//! in the document, how it is written, which way is better, and how far it
//! varies between seeds.
//!
//! Tables, the page and comparisons all draw from this list, so a figure means
//! the same everywhere.

use lagometer_results::{Lag, Lane, Lasted, Metric, SeedFigures, Statistic};

use crate::written;

mod spread;

pub(crate) use spread::Spread;

/// What a percentile is written as that no delivered message reaches.
pub(crate) const LOST: &str = "lost";

/// What a freeze is written as where there was none.
const NONE: &str = "none";

/// What something is written as whose end was not seen.
const NEVER: &str = "no end";

/// One figure of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Share of all intended messages echoed within so many milliseconds.
    Within(u32),
    /// Median round trip.
    P50,
    /// 90th percentile of the round trip.
    P90,
    /// 99th percentile of the round trip.
    P99,
    /// 99.9th percentile of the round trip.
    P99_9,
    /// Longest round trip.
    Worst,
    /// Seconds of lag in a minute of play.
    Lag,
    /// Freezes in a minute of play.
    Freezes,
    /// Duration of the longest freeze.
    LongestFreeze,
    /// Longest recovery from the first disturbance that a freeze touched.
    RecoveryFirst,
    /// Longest recovery from the last disturbance that a freeze touched.
    RecoveryLast,
    /// Number of lag episodes, the mean of all seeds.
    Episodes,
    /// Duration of the longest lag episode.
    LongestEpisode,
    /// Longest recovery after a disturbance.
    Recovery,
    /// Share of all intended messages that never came back.
    Lost,
    /// Bytes on the wire over payload bytes.
    Overhead,
    /// Share of late delay spent waiting behind an earlier message.
    HeadOfLine,
    /// CPU time per message.
    Cpu,
    /// Freezes of a game's view in a minute.
    ViewFreezes,
    /// Seconds of a minute in which a game's view stands still.
    ViewFrozen,
    /// The interpolation delay that would freeze once a minute.
    InterpolationNeeded,
    /// 99th percentile of the age of what a game's client has.
    ViewAge,
    /// 99th percentile of the age of the newest input at the server.
    InputAge,
    /// 99th percentile of the delay of a game's events.
    Event,
    /// 99th percentile of the frames that an input rolls a game back by.
    Rollback,
    /// Share of inputs for which a game that rolls back has to wait.
    RollbackStalled,
    /// Share of voice frames that were late or lost.
    VoiceLate,
}

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Between 0 and 1, written in per cent.
    Share,
    /// Milliseconds.
    Milliseconds,
    /// A number of things.
    Count,
    /// Seconds or things in a minute of play.
    PerMinute,
    /// A ratio.
    Factor,
    /// Nanoseconds, written in microseconds.
    Nanoseconds,
}

impl Figure {
    /// Those of every lane but the share within a limit, in the order in which they are
    /// best shown.
    pub(crate) const OF_LANES: [Self; 11] = [
        Self::P50,
        Self::P99,
        Self::P99_9,
        Self::Worst,
        Self::Lag,
        Self::Freezes,
        Self::LongestFreeze,
        Self::Episodes,
        Self::LongestEpisode,
        Self::Lost,
        Self::Overhead,
    ];

    /// Those of games alone, in the order in which they are best shown.
    pub(crate) const OF_GAMES: [Self; 9] = [
        Self::InterpolationNeeded,
        Self::ViewFreezes,
        Self::ViewFrozen,
        Self::ViewAge,
        Self::Rollback,
        Self::RollbackStalled,
        Self::InputAge,
        Self::Event,
        Self::VoiceLate,
    ];

    /// The heading of the figure's column.
    pub(crate) fn heading(self) -> String {
        match self {
            Self::Within(limit) => return format!("≤{limit} ms"),
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
            Self::Worst => "worst",
            Self::Lag => "lag",
            Self::Freezes | Self::ViewFreezes => "freezes",
            Self::LongestFreeze => "freeze",
            Self::RecoveryFirst => "recovery",
            Self::RecoveryLast => "from last",
            Self::Episodes => "episodes",
            Self::LongestEpisode => "longest episode",
            Self::Recovery => "episode recovery",
            Self::Lost => "lost",
            Self::Overhead => "wire",
            Self::HeadOfLine => "blocked",
            Self::Cpu => "cpu",
            Self::ViewFrozen => "frozen",
            Self::InterpolationNeeded => "needs",
            Self::ViewAge => "view age",
            Self::InputAge => "input age",
            Self::Event => "events",
            Self::Rollback => "rollback",
            Self::RollbackStalled => "stalled",
            Self::VoiceLate => "voice late",
        }
        .to_owned()
    }

    /// The unit beneath the heading.
    pub(crate) fn unit_label(self) -> &'static str {
        match self.unit() {
            Unit::Share => "%",
            Unit::Milliseconds => "ms",
            Unit::Count if self == Self::Rollback => "frames",
            Unit::Count => "n",
            Unit::PerMinute if matches!(self, Self::Lag | Self::ViewFrozen) => "s/min",
            Unit::PerMinute => "/min",
            Unit::Factor => "×",
            Unit::Nanoseconds => "µs/msg",
        }
    }

    /// What the figure is counted in.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Within(_)
            | Self::Lost
            | Self::HeadOfLine
            | Self::RollbackStalled
            | Self::VoiceLate => Unit::Share,
            Self::Lag | Self::Freezes | Self::ViewFreezes | Self::ViewFrozen => Unit::PerMinute,
            Self::Episodes | Self::Rollback => Unit::Count,
            Self::Overhead => Unit::Factor,
            Self::Cpu => Unit::Nanoseconds,
            _ => Unit::Milliseconds,
        }
    }

    /// One sentence that says what the figure is.
    pub(crate) fn meaning(self) -> String {
        match self {
            Self::Within(limit) => {
                return format!(
                    "Share of all intended messages whose echo arrived within {limit} ms; lost messages count as late."
                );
            }
            Self::P50 => "Half of the echoes came back faster than this.",
            Self::P90 => "One echo in ten took longer than this.",
            Self::P99 => "One echo in a hundred took longer than this.",
            Self::P99_9 => "One echo in a thousand took longer than this.",
            Self::Worst => "The longest round trip of the run; lost where a message was.",
            Self::Lag => {
                "Seconds in a minute of play in which nothing newer had come for longer than the threshold, the same for every lane."
            }
            Self::Freezes => "How often in a minute of play lag set in; pauses of less than 250 ms are counted in.",
            Self::LongestFreeze => "The longest stretch of lag; ≥ where nothing newer came to end it.",
            Self::RecoveryFirst => {
                "The longest time from the end of the first disturbance of the link that a freeze touched to the freeze's own end; ≥ where it never came."
            }
            Self::RecoveryLast => {
                "The longest time from the end of the last disturbance of the link that a freeze touched to the freeze's own end; ≥ where it never came."
            }
            Self::Episodes => {
                "Lag episodes for each seed: stretches in which round trips exceeded three medians and 100 ms."
            }
            Self::LongestEpisode => "How long the longest lag episode lasted.",
            Self::Recovery => {
                "The longest time from the end of a disturbance of the link to the end of the lag it caused."
            }
            Self::Lost => "Share of all intended messages whose echo never came.",
            Self::Overhead => "All bytes on the wire, both ways with every header, over payload bytes.",
            Self::HeadOfLine => {
                "Share of all delay above the median that complete messages spent waiting for an earlier one."
            }
            Self::Cpu => "CPU time for each message, both ends, with the kernel's share where it is known, else that of the lane's own threads alone, their system calls included; depends on the machine.",
            Self::ViewFreezes => "How often in a minute the view froze: the newest snapshot was older than the interpolation delay, so that there was nothing to show next.",
            Self::ViewFrozen => "Seconds of a minute in which the view was frozen.",
            Self::InterpolationNeeded => "The least interpolation delay with which the view would have frozen at most once a minute.",
            Self::ViewAge => "For one hundredth of the time what the client had of the world was older than this.",
            Self::InputAge => "At one step of the server in a hundred the newest input that it had was older than this.",
            Self::Event => "One event in a hundred, of those both ways, arrived later than this after its intended send.",
            Self::Rollback => "One input in a hundred rolled the other side back by more frames than this.",
            Self::RollbackStalled => "Share of inputs for which the game had to stop and wait.",
            Self::VoiceLate => "Share of voice frames that came too late for a conversation, or never.",
        }
        .to_owned()
    }

    /// Whether a smaller value is the better one.
    pub(crate) fn smaller_is_better(self) -> bool {
        !matches!(self, Self::Within(_))
    }

    /// Whether less of it, or more, is better for certain. Counts are not: a lane
    /// that is always late lags once. What begins at the last disturbance
    /// forgives a lane for having lagged since the first.
    pub(crate) fn is_ranked(self) -> bool {
        !matches!(
            self,
            Self::Freezes
                | Self::RecoveryLast
                | Self::Episodes
                | Self::LongestEpisode
                | Self::Recovery
                | Self::ViewFreezes
        )
    }

    /// The figure of `lane`; none where it was not measured.
    ///
    /// Percentiles and the worst are those of all intended messages, a lost one
    /// counting as one that takes forever: infinite where they are lost.
    pub(crate) fn of(self, lane: &Lane) -> Option<f64> {
        if lane.messages.intended == 0 {
            return None;
        }
        match self {
            Self::LongestEpisode if lane.episodes.is_empty() => None,
            Self::LongestFreeze | Self::RecoveryFirst | Self::RecoveryLast => {
                let lag = lane.lag.as_ref()?;
                match self.lasted(lag) {
                    Some(lasted) => Some(lasted.censored_ms()),
                    // Where there was no freeze there was nothing to recover from.
                    None => (lag.freezes_per_min <= 0.0).then_some(0.0),
                }
            }
            Self::Recovery => {
                let all = lane.episodes.iter().filter_map(|each| each.recovery_ms);
                all.filter(|each| each.is_finite()).reduce(f64::max)
            }
            // A run of five seeds does not lag five times as much.
            Self::Episodes => Some(lane.episodes.len() as f64 / self.counted_in(lane)),
            Self::HeadOfLine => Some(lane.head_of_line.as_ref()?.share_of_late_delay),
            // Logs of 2015 hold the answers that came, and none of what was lost.
            Self::Lost if lane.imported.is_some() => None,
            _ => self.metric()?.of(lane),
        }
        .filter(|value| !value.is_nan())
    }

    /// The figure of `lane` as people read it, without the unit in the heading:
    /// of what was not seen to end, how long it lasted at least.
    pub(crate) fn written_of(self, lane: &Lane) -> Option<String> {
        let value = self.of(lane)?;
        let lasted = lane.lag.as_ref().and_then(|lag| self.lasted(lag));
        Some(match lasted.filter(|lasted| lasted.at_least) {
            Some(lasted) => format!("≥{}", written::milliseconds(lasted.ms)),
            None => self.written(value),
        })
    }

    /// How long something lasted that the figure is; none of other figures and
    /// where there was nothing of the kind.
    fn lasted(self, lag: &Lag) -> Option<Lasted> {
        match self {
            Self::LongestFreeze => lag.longest_freeze,
            Self::RecoveryFirst => lag.recovery_first,
            Self::RecoveryLast => lag.recovery_last,
            _ => None,
        }
    }

    /// What the metric's value is divided by to be the figure: episodes are written for
    /// each seed.
    pub(crate) fn counted_in(self, lane: &Lane) -> f64 {
        match self {
            Self::Episodes => lane.per_seed.len().max(1) as f64,
            _ => 1.0,
        }
    }

    /// The value as people read it, without the unit in the heading.
    pub(crate) fn written(self, value: f64) -> String {
        let lasts = matches!(
            self,
            Self::LongestFreeze | Self::RecoveryFirst | Self::RecoveryLast
        );
        if value.is_infinite() {
            return if lasts { NEVER } else { LOST }.to_owned();
        }
        if lasts && value <= 0.0 {
            return NONE.to_owned();
        }
        match self.unit() {
            Unit::Share if self.is_of_losses() => written::lost_share(value),
            Unit::Share => written::share(value),
            Unit::Milliseconds => written::milliseconds(value),
            Unit::Count if value.fract() > 0.0 && value < 100.0 => format!("{value:.1}"),
            Unit::Count => format!("{value:.0}"),
            Unit::Factor | Unit::PerMinute => written::factor(value),
            Unit::Nanoseconds => written::factor(value / 1e3),
        }
    }

    /// Whether it is a share that should be none.
    const fn is_of_losses(self) -> bool {
        matches!(self, Self::Lost | Self::RollbackStalled | Self::VoiceLate)
    }

    /// The value with its unit.
    pub(crate) fn written_with_unit(self, value: f64) -> String {
        if value.is_infinite() {
            return self.written(value);
        }
        match self.unit() {
            Unit::Share => format!("{} %", self.written(value)),
            Unit::Milliseconds => written::milliseconds_with_unit(value),
            Unit::Factor => format!("{} ×", written::factor(value)),
            Unit::PerMinute if matches!(self, Self::Lag | Self::ViewFrozen) => {
                format!("{} s/min", self.written(value))
            }
            Unit::PerMinute => format!("{} a minute", self.written(value)),
            Unit::Nanoseconds => format!("{} µs", self.written(value)),
            Unit::Count => self.written(value),
        }
    }

    /// The figure a budget's metric speaks of, as in `within_150ms`,
    /// `rtt_ms.p99`, `episodes`; none for those not shown here.
    pub(crate) fn named(metric: &str) -> Option<Self> {
        Some(match metric.parse().ok()? {
            Metric::Within(limit) => Self::Within(limit),
            Metric::Rtt(Statistic::P50) => Self::P50,
            Metric::Rtt(Statistic::P90) => Self::P90,
            Metric::Rtt(Statistic::P99) => Self::P99,
            Metric::Rtt(Statistic::P99_9) => Self::P99_9,
            Metric::Rtt(Statistic::Max) => Self::Worst,
            Metric::Lag => Self::Lag,
            Metric::Freezes => Self::Freezes,
            Metric::LongestFreeze => Self::LongestFreeze,
            Metric::RecoveryFirst => Self::RecoveryFirst,
            Metric::RecoveryLast => Self::RecoveryLast,
            Metric::Episodes => Self::Episodes,
            Metric::WorstEpisode => Self::LongestEpisode,
            Metric::WorstRecovery => Self::Recovery,
            Metric::Lost => Self::Lost,
            Metric::Overhead => Self::Overhead,
            Metric::CpuPerMessage => Self::Cpu,
            Metric::ViewFreezes => Self::ViewFreezes,
            Metric::ViewFrozen => Self::ViewFrozen,
            Metric::InterpolationNeeded => Self::InterpolationNeeded,
            Metric::ViewAge(Statistic::P99) => Self::ViewAge,
            Metric::InputAge(Statistic::P99) => Self::InputAge,
            Metric::Event(Statistic::P99) => Self::Event,
            Metric::Rollback(Statistic::P99) => Self::Rollback,
            Metric::RollbackStalled => Self::RollbackStalled,
            Metric::VoiceLate => Self::VoiceLate,
            Metric::ViewAge(_)
            | Metric::ViewFreezesAt(_)
            | Metric::InputAge(_)
            | Metric::Event(_)
            | Metric::ShareWithin(..)
            | Metric::Rollback(_)
            | Metric::Rtt(_)
            | Metric::Up(_)
            | Metric::Down(_)
            | Metric::ThroughputUp
            | Metric::ThroughputDown
            | Metric::BytesPerHour
            | Metric::MoneyPerHour
            | Metric::Episodes500ms => {
                return None;
            }
        })
    }

    /// The metric by which the rest of the project knows the figure; none for
    /// one known here alone.
    pub(crate) fn metric(self) -> Option<Metric> {
        Some(match self {
            Self::Within(limit) => Metric::Within(limit),
            Self::P50 => Metric::Rtt(Statistic::P50),
            Self::P90 => Metric::Rtt(Statistic::P90),
            Self::P99 => Metric::Rtt(Statistic::P99),
            Self::P99_9 => Metric::Rtt(Statistic::P99_9),
            Self::Worst => Metric::Rtt(Statistic::Max),
            Self::Lag => Metric::Lag,
            Self::Freezes => Metric::Freezes,
            Self::LongestFreeze => Metric::LongestFreeze,
            Self::RecoveryFirst => Metric::RecoveryFirst,
            Self::RecoveryLast => Metric::RecoveryLast,
            Self::Episodes => Metric::Episodes,
            Self::LongestEpisode => Metric::WorstEpisode,
            Self::Recovery => Metric::WorstRecovery,
            Self::Lost => Metric::Lost,
            Self::Overhead => Metric::Overhead,
            Self::Cpu => Metric::CpuPerMessage,
            Self::ViewFreezes => Metric::ViewFreezes,
            Self::ViewFrozen => Metric::ViewFrozen,
            Self::InterpolationNeeded => Metric::InterpolationNeeded,
            Self::ViewAge => Metric::ViewAge(Statistic::P99),
            Self::InputAge => Metric::InputAge(Statistic::P99),
            Self::Event => Metric::Event(Statistic::P99),
            Self::Rollback => Metric::Rollback(Statistic::P99),
            Self::RollbackStalled => Metric::RollbackStalled,
            Self::VoiceLate => Metric::VoiceLate,
            Self::HeadOfLine => return None,
        })
    }

    /// The figure under one seed; none for those not kept by seed.
    pub(crate) fn of_seed(self, seed: &SeedFigures) -> Option<f64> {
        self.metric()?.of_seed(seed).filter(|value| !value.is_nan())
    }
}
