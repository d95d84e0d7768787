//! Lag as a player sees it: how long nothing newer came than what is there
//! already, against one threshold that is the same for every lane.
//!
//! At an instant of play, the *awaited* message is the oldest one that is newer
//! than all whose echo has come. The player *lags* while that message has been
//! due for longer than the threshold. What is lost or comes late does not matter
//! once something newer is there: a lane is charged for the time in which its
//! player looks at the past, once, however many messages were behind it.
//!
//! The threshold is fixed by the experiment, above the round trip of the calm
//! path. One that followed each lane's own median would forgive a lane that is
//! always late. Lag never falls where a message comes later or not at all.

use std::ops::Add;
use std::time::Duration;

use lagometer_units::Time;

use crate::document::{Freeze, Lag, Lasted};
use crate::episodes::{Disturbed, JOINED_WITHIN};
use crate::record::{MessageRecord, millis};

/// How far above the calm path's round trip lag begins where the experiment
/// does not say: what shooters can just about hide.
pub const LAG_ABOVE: Duration = Duration::from_millis(150);

/// So many freezes are kept one by one, the longest ones.
const MOST_KEPT: usize = 500;

/// The lag of one seed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeedLag {
    /// How long was played.
    pub(crate) played: Duration,
    /// Every freeze, in order of time.
    pub(crate) freezes: Vec<Freeze>,
    /// The lag itself, from and until, within the time of play.
    pub(crate) lagging: Vec<(Time, Time)>,
}

/// A stretch in which the player lagged.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    /// When the message was due that was awaited in it.
    due: Time,
    from: Time,
    /// When something newer came; `None` if nothing ever did.
    until: Option<Time>,
}

/// The lag of a seed whose messages are in order of their intended send and
/// that was played for `played`.
///
/// A *freeze* is a maximal row of stretches of lag with less than
/// [`JOINED_WITHIN`] between them. It ends when something newer comes, though it
/// be in the time that last echoes are waited for; lag itself is counted within
/// the time of play.
pub(crate) fn lag_of(
    records: &[MessageRecord],
    played: Duration,
    threshold: Duration,
    disturbed: &[Disturbed],
) -> SeedLag {
    let end = Time::ZERO + played;
    let mut freezes: Vec<Freeze> = Vec::new();
    let mut row: Vec<Stretch> = Vec::new();
    let mut lagging = Vec::new();
    for stretch in stretches(records, threshold) {
        if stretch.from >= end {
            break;
        }
        let joins = row
            .last()
            .and_then(|last| last.until)
            .is_some_and(|until| stretch.from.since(until) < JOINED_WITHIN);
        if !joins {
            freezes.extend(freeze(&row, end, threshold, disturbed));
            row.clear();
        }
        lagging.push((stretch.from, stretch.until.unwrap_or(end).min(end)));
        row.push(stretch);
    }
    freezes.extend(freeze(&row, end, threshold, disturbed));
    SeedLag {
        played,
        freezes,
        lagging,
    }
}

/// Every stretch of lag, in order of time. None reaches into the next: a message
/// is awaited from the arrival of the one before it on.
fn stretches(records: &[MessageRecord], threshold: Duration) -> Vec<Stretch> {
    let mut arrivals: Vec<(Time, usize)> = records
        .iter()
        .enumerate()
        .filter_map(|(index, record)| Some((record.returned?, index)))
        .collect();
    arrivals.sort_unstable();
    let mut found = Vec::new();
    let (mut awaited, mut since) = (0, Time::ZERO);
    let arrivals = arrivals.into_iter().map(|(at, index)| (Some(at), index));
    for (until, index) in arrivals.chain([(None, records.len())]) {
        if index < awaited {
            continue;
        }
        if let Some(record) = records.get(awaited) {
            let from = (record.intended + threshold).max(since);
            if until.is_none_or(|until| until > from) {
                found.push(Stretch {
                    due: record.intended,
                    from,
                    until,
                });
            }
        }
        (awaited, since) = (index + 1, until.unwrap_or(since));
    }
    found
}

/// The freeze that a row of stretches is; `None` of an empty row.
fn freeze(
    row: &[Stretch],
    end: Time,
    threshold: Duration,
    disturbed: &[Disturbed],
) -> Option<Freeze> {
    let (first, last) = (row.first()?, row.last()?);
    let until = last.until.unwrap_or(end);
    let lag: Duration = row
        .iter()
        .map(|stretch| stretch.until.unwrap_or(end).min(end).since(stretch.from))
        .sum();
    // A message may be held for the threshold without lag, and still delay the
    // ones behind it.
    let touches = |spell: &&Disturbed| spell.from <= until && spell.until + threshold >= first.due;
    let ends = || disturbed.iter().filter(touches).map(|spell| spell.until);
    let since = |cleared: Time| millis(until.since(cleared));
    Some(Freeze {
        seed: None,
        start_s: first.from.as_secs_f64(),
        duration_ms: millis(until.since(first.from)),
        lag_ms: millis(lag),
        over: last.until.is_some(),
        recovery_first_ms: ends().min().map(since),
        recovery_last_ms: ends().max().map(since),
    })
}

/// So much in so many seconds, for each minute; nothing in no time.
pub(crate) fn per_minute(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        amount * 60.0 / seconds
    } else {
        0.0
    }
}

/// The lag of a lane over all its seeds.
pub(crate) fn pooled(seeds: &[SeedLag], threshold: Duration) -> Lag {
    let played: f64 = seeds.iter().map(|seed| seed.played.as_secs_f64()).sum();
    let all = || seeds.iter().flat_map(|seed| &seed.freezes);
    // Of one that did not end it is not known how long it is: the longest may be any
    // longer than what was seen.
    let longest = |of: fn(&Freeze) -> Option<f64>| {
        all()
            .filter_map(|freeze| {
                Some(Lasted {
                    ms: of(freeze)?,
                    at_least: !freeze.over,
                })
            })
            .reduce(|one, other| Lasted {
                ms: one.ms.max(other.ms),
                at_least: one.at_least || other.at_least,
            })
    };
    let mut kept: Vec<Freeze> = all().cloned().collect();
    if kept.len() > MOST_KEPT {
        kept.sort_by(|one, other| other.duration_ms.total_cmp(&one.duration_ms));
        kept.truncate(MOST_KEPT);
        kept.sort_by(|one, other| {
            let key = |freeze: &Freeze| (freeze.seed, freeze.start_s.to_bits());
            key(one).cmp(&key(other))
        });
    }
    Lag {
        threshold_ms: millis(threshold),
        // An empty sum is -0.0, which would be shown with its sign.
        s_per_min: per_minute(
            all().map(|freeze| freeze.lag_ms / 1e3).fold(0.0, Add::add),
            played,
        ),
        freezes_per_min: per_minute(all().count() as f64, played),
        longest_freeze: longest(|freeze| Some(freeze.duration_ms)),
        recovery_first: longest(|freeze| freeze.recovery_first_ms),
        recovery_last: longest(|freeze| freeze.recovery_last_ms),
        freezes: kept,
    }
}

#[cfg(test)]
mod tests;
