//! What a network does at fixed times, or once in each period, and what is played does not
//! meet, or not as often as the network has it.

use std::fmt;
use std::time::Duration;

use lagometer_link::{Profile, Scheduled};
use lagometer_results::Warning;
use lagometer_units::Span;

/// By which share of what a network has on average play may have more or less before
/// it is said.
const WORTH_SAYING: f64 = 0.25;

/// Play over a network, as far as what comes at fixed times hangs on it.
#[derive(Clone, Copy, Debug)]
pub struct Play<'a> {
    /// The network's name.
    pub network: &'a str,
    /// The network.
    pub profile: &'a Profile,
    /// The seeds of the network conditions that are met.
    pub seeds: &'a [u64],
    /// Whose conditions each of them is.
    pub each: Each,
    /// When play ends, from the start of the impairments.
    pub end: Duration,
}

/// Whose network conditions follow from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// All lanes', for as long as a seed is played.
    Seed,
    /// One player's of a world.
    Player,
}

/// What play does not meet, or not as often as the network has it. Written on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What it is: `the outage that ... has at 20 s is in no seed of 10 s`.
    what: String,
    /// What that means for what is found.
    why: &'static str,
    /// What to do for it to count.
    mend: &'static str,
}

/// Of what never comes.
const NOTHING_SAID: &str = "What was found says nothing of it.";

/// Of what comes at another rate.
const ANOTHER_RATE: &str = "What was found has it at another rate than the network does.";

impl fmt::Display for Unmet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.what, self.mend)
    }
}

impl From<Unmet> for Warning {
    fn from(unmet: Unmet) -> Self {
        Self {
            what: unmet.what,
            why: unmet.why.to_owned(),
            mend: unmet.mend.to_owned(),
        }
    }
}

impl Play<'_> {
    /// What of the network's outages and stalls is not met, each once.
    #[must_use]
    pub fn unmet(&self) -> Vec<Unmet> {
        let under_each = self.seeds.iter().map(|&seed| self.profile.scheduled(seed));
        let under_each: Vec<_> = under_each.collect();
        let is_reached = |scheduled: &Scheduled| {
            under_each.iter().flatten().any(|other| {
                other.first < self.end
                    && (other.kind, other.every) == (scheduled.kind, scheduled.every)
            })
        };
        let mut all = Vec::new();
        for scheduled in under_each.first().into_iter().flatten() {
            let found = if !scheduled.is_drawn {
                self.cut_short(scheduled)
            } else if is_reached(scheduled) {
                None
            } else {
                Some(self.never_drawn(scheduled))
            };
            all.extend(found.filter(|found| !all.contains(found)));
        }
        all
    }

    /// Every seed begins its network anew, so that a run of many short seeds meets what comes
    /// at fixed times never, or more or less often than the network has it.
    fn cut_short(&self, scheduled: &Scheduled) -> Option<Unmet> {
        let Scheduled { first, every, .. } = *scheduled;
        let (kind, network, end) = (scheduled.kind.name(), self.network, Span(self.end));
        if first >= self.end {
            let first = Span(first);
            let never = match self.each {
                Each::Seed => format!("is in no seed of {end}"),
                Each::Player => format!("comes after the {end} that are measured"),
            };
            return Some(Unmet {
                what: format!("the {kind} that `{network}` has at {first} {never}"),
                why: NOTHING_SAID,
                mend: "play for longer (`--for`) for it to count",
            });
        }
        let every = every?;
        let times = self
            .end
            .saturating_sub(first)
            .as_nanos()
            .div_ceil(every.as_nanos().max(1));
        let on_average = self.end.as_secs_f64() / every.as_secs_f64();
        if (times as f64 - on_average).abs() < WORTH_SAYING * on_average {
            return None;
        }
        let place = match self.each {
            Each::Seed => format!("in each seed of {end}"),
            Each::Player => format!("in the {end} that are measured"),
        };
        Some(Unmet {
            what: format!(
                "the {kind} that `{network}` has every {} is {place} {times} {}, where \
                 {on_average:.2} would be its share",
                Span(every),
                if times == 1 { "time" } else { "times" },
            ),
            why: ANOTHER_RATE,
            mend: "play for longer (`--for`) for it to be as frequent as that",
        })
    }

    /// What is said of an outage or stall whose first time each seed drew, and none drew
    /// within its play.
    fn never_drawn(&self, scheduled: &Scheduled) -> Unmet {
        let (kind, network) = (scheduled.kind.name(), self.network);
        let every = Span(scheduled.every.unwrap_or_default());
        let (end, many) = (Span(self.end), self.seeds.len());
        let (whose, none, mend) = match self.each {
            Each::Seed => (
                "each seed",
                if many == 1 {
                    format!("is not in this seed's {end}")
                } else {
                    format!("is in none of these {many} seeds of {end}")
                },
                "play more seeds (`--seeds`) or for longer (`--for`) for it to count",
            ),
            Each::Player => (
                "each player's link",
                format!("is on no link of {many} in the {end} that are measured"),
                "play for longer (`--for`) or with more players (`--players`) for it to count",
            ),
        };
        Unmet {
            what: format!(
                "the {kind} that `{network}` has once in {every}, at a time that {whose} draws, {none}"
            ),
            why: NOTHING_SAID,
            mend,
        }
    }
}
