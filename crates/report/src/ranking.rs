//! The order in which lanes are shown: transports that promise delivery apart
//! from those that do not, the best of each first, those that could not be
//! measured last.

use lagometer_results::{Document, Lane, Metric, leaders, noise_ms};

use crate::figure::Figure;

/// Lanes that may fairly be compared with each other.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// What they have in common; none where the document does not say.
    pub(crate) label: Option<&'static str>,
    /// The lanes, best first.
    pub(crate) lanes: Vec<&'a Lane>,
}

/// The measured lanes of `document` by promise, each group with the lane that
/// delivered most within `limit_ms` first; then the p99, p99.9 and worst round
/// trips decide, and last the order of the document.
pub(crate) fn groups(document: &Document, limit_ms: u32) -> Vec<Group<'_>> {
    if is_game(document) {
        // The game makes up for what a transport does not promise.
        let mut lanes: Vec<&Lane> = document
            .lanes
            .iter()
            .filter(|lane| is_measured(lane))
            .collect();
        lanes.sort_by(|a, b| {
            let view = if a
                .game
                .as_ref()
                .is_some_and(|game| game.rollback_frames.is_some())
            {
                Figure::RollbackStalled
            } else {
                Figure::InterpolationNeeded
            };
            [view, Figure::Event, Figure::P99]
                .into_iter()
                .fold(std::cmp::Ordering::Equal, |so_far, figure| {
                    so_far.then_with(|| by(figure, a, b))
                })
        });
        let label = None;
        return Some(Group { label, lanes })
            .filter(|group| !group.lanes.is_empty())
            .into_iter()
            .collect();
    }
    let promises = [
        (
            Some(true),
            "reliable: every message arrives while the connection lives",
        ),
        (Some(false), "unreliable: what the link loses stays lost"),
        (None, "promise not stated"),
    ];
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (promise, label) in promises {
        let mut lanes: Vec<&Lane> = document
            .lanes
            .iter()
            .filter(|lane| is_measured(lane))
            .filter(|lane| {
                lane.properties
                    .as_ref()
                    .map(|properties| properties.reliable)
                    == promise
            })
            .collect();
        lanes.sort_by(|a, b| better(a, b, limit_ms));
        if !lanes.is_empty() {
            groups.push(Group {
                label: Some(label),
                lanes,
            });
        }
    }
    if let [only] = groups.as_mut_slice()
        && only.lanes.iter().all(|lane| lane.properties.is_none())
    {
        only.label = None;
    }
    groups
}

/// Whether the lanes carried a game.
pub(crate) fn is_game(document: &Document) -> bool {
    document.lanes.iter().any(|lane| lane.game.is_some())
}

/// All lanes in the order shown, those without a measurement last.
pub(crate) fn in_order(document: &Document, limit_ms: u32) -> Vec<&Lane> {
    let mut lanes: Vec<&Lane> = groups(document, limit_ms)
        .into_iter()
        .flat_map(|group| group.lanes)
        .collect();
    lanes.extend(unmeasured(document));
    lanes
}

/// Lanes of which nothing was measured.
pub(crate) fn unmeasured(document: &Document) -> impl Iterator<Item = &Lane> {
    document.lanes.iter().filter(|lane| !is_measured(lane))
}

/// Whether the lane has any result at all; a lane that failed halfway has.
pub(crate) fn is_measured(lane: &Lane) -> bool {
    lane.messages.intended > 0
}

/// Which lanes of each group of a table stand out by each of its figures, in the order of
/// all three: those that no other of the group is shown to surpass, where any is beaten. None
/// does by a figure that does not rank, or of which it is not known how it varies.
pub(crate) fn best(
    document: &Document,
    groups: &[Group<'_>],
    figures: &[Figure],
) -> Vec<Vec<Vec<bool>>> {
    let metric = |figure: &Figure| figure.metric().filter(|_| figure.is_ranked());
    let metrics: Vec<Metric> = figures.iter().filter_map(metric).collect();
    let lanes: Vec<&[&Lane]> = groups.iter().map(|group| &group.lanes[..]).collect();
    let with_unranked = |leads: Vec<bool>| -> Vec<bool> {
        let mut leads = leads.into_iter();
        let of = |figure| metric(figure).is_some() && leads.next() == Some(true);
        figures.iter().map(of).collect()
    };
    leaders(&metrics, &lanes, noise_ms(document))
        .into_iter()
        .map(|lanes| lanes.into_iter().map(with_unranked).collect())
        .collect()
}

/// Which of two lanes is better by a figure; one that lacks it is worse.
fn by(figure: Figure, a: &Lane, b: &Lane) -> std::cmp::Ordering {
    let missing = if figure.smaller_is_better() {
        f64::INFINITY
    } else {
        f64::NEG_INFINITY
    };
    let (a, b) = (
        figure.of(a).unwrap_or(missing),
        figure.of(b).unwrap_or(missing),
    );
    if figure.smaller_is_better() {
        a.total_cmp(&b)
    } else {
        b.total_cmp(&a)
    }
}

fn better(a: &Lane, b: &Lane, limit_ms: u32) -> std::cmp::Ordering {
    by(Figure::Within(limit_ms), a, b)
        .then_with(|| by(Figure::P99, a, b))
        .then_with(|| by(Figure::P99_9, a, b))
        .then_with(|| by(Figure::Worst, a, b))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lagometer_results::{Disturbed, MessageRecord, SeedRun, figures};
    use lagometer_units::Time;

    use super::*;

    /// Five seeds of half a minute of a message each 50 ms, in order, late by so much
    /// in an outage of so many milliseconds in every five seconds and by `always`.
    fn lane(name: &str, outage_ms: u64, always: u64) -> Lane {
        let disturbed: Vec<Disturbed> = (0..6)
            .map(|nth| Disturbed {
                from: Time::from_millis(nth * 5_000 + 1_000),
                until: Time::from_millis(nth * 5_000 + 1_000 + outage_ms),
            })
            .collect();
        let records: Vec<MessageRecord> = (0..600)
            .map(|index| {
                let intended = Time::from_millis(index * 50);
                let held = disturbed
                    .iter()
                    .find(|each| (each.from..each.until).contains(&intended))
                    .map_or(intended, |each| each.until);
                MessageRecord {
                    returned: Some(held + Duration::from_millis(20 + always)),
                    ..MessageRecord::due(intended)
                }
            })
            .collect();
        let runs = [1, 2, 3, 4, 5].map(|seed| SeedRun {
            seed,
            records: &records,
            disturbed: &disturbed,
            overhead: None,
            cost: None,
            game: None,
            flows: None,
        });
        figures(&runs, &[], Some(Duration::from_millis(170))).into_lane(name, "kcp")
    }

    #[test]
    fn a_lane_that_is_always_late_leads_in_no_column_of_lag() {
        for always in [200, 1_000, 20_000] {
            for outage_ms in [0, 100, 300, 1_500] {
                let late = lane("late", outage_ms, always);
                let usual = lane("usual", outage_ms, 0);
                let group = Group {
                    label: None,
                    lanes: vec![&usual, &late],
                };
                let figures = [
                    Figure::Lag,
                    Figure::Freezes,
                    Figure::LongestFreeze,
                    Figure::RecoveryFirst,
                    Figure::RecoveryLast,
                    Figure::Episodes,
                    Figure::LongestEpisode,
                    Figure::Recovery,
                ];
                let best = best(&Document::empty("run"), &[group], &figures).remove(0);
                assert_eq!(
                    best[1], [false; 8],
                    "{figures:?} of {outage_ms} ms, {always} ms late"
                );
                let lag = |lane: &Lane| Figure::Lag.of(lane).unwrap();
                assert!(lag(&late) > 50.0 || always > 10_000, "{}", lag(&late));
                assert!(lag(&usual) < 20.0, "{}", lag(&usual));
                assert_eq!(best[0], figures.map(|figure| figure == Figure::Lag));
            }
        }
    }
}
