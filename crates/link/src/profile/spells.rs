//! The rules for outages and stalls: checked, and in the model's numbers; and what
//! comes under a seed at times that can be named beforehand.

use std::time::Duration;

use lagometer_units::Span;

use super::Profile;
use super::plan::{Complaint, SHORTEST, nanos};
use super::written::Spell;
use crate::impairments;
use crate::interval::{Length, Onset};
use crate::{Direction, DisturbanceKind};

/// What outages or stalls may together cover in the long run. Merged intervals
/// would never end if they covered everything.
const MOST_COVERED: f64 = 0.9;

/// Checks rules for outages or stalls and puts them in the model's numbers.
pub(crate) fn spells(
    key: &'static str,
    spells: &[Spell],
) -> Result<Vec<(Onset, Length)>, Complaint> {
    let plans: Vec<_> = spells
        .iter()
        .map(|one| spell(one).map_err(|message| Complaint::new(key, message)))
        .collect::<Result<_, _>>()?;
    let covered = covered(&plans);
    if covered > MOST_COVERED {
        return Err(Complaint::new(
            key,
            format!(
                "the {key} cover {:.0} % of the time; expected at most {:.0} % in sum",
                covered * 100.0,
                MOST_COVERED * 100.0
            ),
        ));
    }
    Ok(plans)
}

/// The share of time that rules cover in the long run, counted twice where they overlap.
pub(crate) fn covered(spells: &[(Onset, Length)]) -> f64 {
    let shares = spells.iter().map(|(onset, length)| share(onset, length));
    shares.sum()
}

fn spell(spell: &Spell) -> Result<(Onset, Length), &'static str> {
    let length = match (spell.lasts, spell.up_to, spell.mean_for) {
        (Some(lasts), None, None) if lasts > Span::ZERO => Length::Fixed(nanos(lasts)),
        (Some(from), Some(to), None) if to > from => Length::Uniform {
            from: nanos(from),
            to: nanos(to),
        },
        (None, None, Some(mean)) if mean > Span::ZERO => Length::Exponential {
            mean: nanos(mean) as f64,
        },
        _ => {
            return Err(
                "expected how long it lasts: `for`, `for` and a longer `up_to`, or `mean_for`, \
                 above 0",
            );
        }
    };
    let onset = match (spell.at, spell.every, spell.mean_gap) {
        (Some(at), every, None) => Onset::At {
            first: nanos(at),
            every: every.map(nanos),
        },
        (None, Some(every), None) => Onset::Every(nanos(every)),
        (None, None, Some(gap)) if gap >= SHORTEST => Onset::AfterGap {
            mean: nanos(gap) as f64,
        },
        _ => {
            return Err(
                "expected when it starts: `at`, `at` and `every`, `every` alone, or `mean_gap` of at \
                 least 1 ms",
            );
        }
    };
    if let Onset::At {
        every: Some(every), ..
    }
    | Onset::Every(every) = onset
    {
        let longest = match length {
            Length::Fixed(longest) | Length::Uniform { to: longest, .. } => longest,
            Length::Exponential { .. } => {
                return Err("with `every`, expected `for` (and `up_to`) instead of `mean_for`");
            }
        };
        if every <= longest || every < nanos(SHORTEST) {
            return Err("`every` must be at least 1 ms and longer than it lasts");
        }
    }
    Ok((onset, length))
}

/// The share of time a rule covers in the long run.
fn share(onset: &Onset, length: &Length) -> f64 {
    let mean = match *length {
        Length::Fixed(length) => length as f64,
        Length::Uniform { from, to } => f64::midpoint(from as f64, to as f64),
        Length::Exponential { mean } => mean,
    };
    match *onset {
        Onset::At { every: None, .. } => 0.0,
        Onset::At {
            every: Some(every), ..
        }
        | Onset::Every(every) => mean / every as f64,
        Onset::AfterGap { mean: gap } => mean / (gap + mean),
    }
}

/// An outage or stall whose times one seed says: it comes at a given instant, or once
/// in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Outage or stall.
    pub kind: DisturbanceKind,
    /// When the first one begins, from the start of the impairments.
    pub first: Duration,
    /// Whether the seed drew when the first one begins; else it is the same under all.
    pub is_drawn: bool,
    /// How long after its start the next one begins, if there is one.
    pub every: Option<Duration>,
}

impl Profile {
    /// What comes under `seed` at a given instant or once in each period, once where both
    /// directions have it at the same time.
    #[must_use]
    pub fn scheduled(&self, seed: u64) -> Vec<Scheduled> {
        let mut all = Vec::new();
        for direction in Direction::BOTH {
            let plan = self.plan(direction);
            for (kind, sources) in [
                (
                    DisturbanceKind::Outage,
                    impairments::outages(plan, seed, direction),
                ),
                (
                    DisturbanceKind::Stall,
                    impairments::stalls(plan, seed, direction),
                ),
            ] {
                for source in sources {
                    let Some(first) = source.first() else {
                        continue;
                    };
                    let (is_drawn, every) = match source.onset {
                        Onset::At { every, .. } => (false, every),
                        Onset::Every(every) => (true, Some(every)),
                        Onset::AfterGap { .. } => continue,
                    };
                    let found = Scheduled {
                        kind,
                        first: Duration::from_nanos(first),
                        is_drawn,
                        every: every.map(Duration::from_nanos),
                    };
                    if !all.contains(&found) {
                        all.push(found);
                    }
                }
            }
        }
        all
    }
}
