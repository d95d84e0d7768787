//! What a search for settings found, in the words that the table and the page share.

use lagometer_results::{Metric, Tune, TuneFinding, TunedFigure, TunedLane, Unit};
use serde_json::Value;

use crate::cost::{amount, megabytes};
use crate::written;

/// The lanes that were found, as an experiment has them; with a remark where one is not
/// better than what it would take the place of.
#[must_use]
pub fn lanes_to_paste(tune: &Tune) -> String {
    let lanes = tune.lanes.iter().map(|lane| {
        let remark = match lane.finding {
            TuneFinding::Same => return String::new(),
            TuneFinding::Better => String::new(),
            TuneFinding::Worse => format!("# Worse than {}.\n", lane.lane),
            TuneFinding::NotDistinguished => format!("# Not told apart from {}.\n", lane.lane),
        };
        format!("{remark}{}\n", lane.toml)
    });
    lanes.collect()
}

/// A value of a search's goal with its unit.
pub(crate) fn goal(goal: &str, value: Option<f64>) -> String {
    let Some(value) = value else {
        return written::NOTHING.to_owned();
    };
    match metric(goal).map(|metric| (metric, metric.unit())) {
        Some((_, Unit::Share)) => format!("{} %", written::share(value)),
        Some((_, Unit::Milliseconds)) => written::milliseconds_with_unit(value),
        Some((Metric::BytesPerHour, _)) => format!("{} MB", megabytes(value)),
        Some((Metric::MoneyPerHour, _)) => amount(value),
        _ => written::factor(value),
    }
}

/// A change of the goal with its sign, in points of a per cent where it is a share.
pub(crate) fn change(goal: &str, value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    let size = value.abs();
    let written = match metric(goal).map(|metric| (metric, metric.unit())) {
        Some((_, Unit::Share)) => format!("{:.2}", size * 100.0),
        Some((_, Unit::Milliseconds)) => written::milliseconds(size),
        Some((Metric::BytesPerHour, _)) => megabytes(size),
        Some((Metric::MoneyPerHour, _)) => amount(size),
        _ => written::factor(size),
    };
    format!("{sign}{written}")
}

/// The interval of a change, in brackets; nothing where it is not known.
pub(crate) fn change_interval(goal: &str, figure: &TunedFigure) -> String {
    figure
        .difference_interval
        .map(|[low, high]| format!("[{}, {}]", change(goal, low), change(goal, high)))
        .unwrap_or_default()
}

fn metric(goal: &str) -> Option<Metric> {
    goal.parse().ok()
}

/// What was searched for, in a sentence: `share within 150 ms`.
pub(crate) fn goal_in_words(goal: &str) -> String {
    match metric(goal) {
        Some(Metric::BytesPerHour) => "bytes of a player's hour".to_owned(),
        Some(Metric::MoneyPerHour) => "money for 1000 hours of a player".to_owned(),
        Some(metric) => metric.in_words(),
        None => goal.to_owned(),
    }
}

/// What can be said of found settings, in a few words.
pub(crate) const fn finding(finding: TuneFinding) -> &'static str {
    match finding {
        TuneFinding::Better => "better",
        TuneFinding::Worse => "worse",
        TuneFinding::NotDistinguished => "not told apart",
        TuneFinding::Same => "best as it is",
    }
}

/// What can be said of the limits, where there are any.
pub(crate) fn limits(tune: &Tune, lane: &TunedLane) -> Option<&'static str> {
    let said = match lane.limits_kept {
        Some(true) => "all limits are kept",
        Some(false) => "not all limits are kept",
        None => "whether all limits are kept is not decided by the seeds that judged",
    };
    (!tune.limits.is_empty()).then_some(said)
}

/// Settings as they are written in an experiment: `resend = 1, interval = "10 ms"`.
pub(crate) fn settings(settings: &Value) -> String {
    let mut written = Vec::new();
    flatten("", settings, &mut written);
    written.join(", ")
}

fn flatten(path: &str, value: &Value, written: &mut Vec<String>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                flatten(&path, value, written);
            }
        }
        value => written.push(format!("{path} = {value}")),
    }
}

/// What was chosen of a lane: its preset if it is another, and settings.
pub(crate) fn choice(lane: &TunedLane) -> String {
    let settings = settings(&lane.settings);
    match (lane.finding, settings.as_str()) {
        (TuneFinding::Same, _) => "as it is".to_owned(),
        (_, "") => format!("the preset {}", lane.preset),
        (_, settings) if lane.preset == lane.lane => settings.to_owned(),
        (_, settings) => format!("from {}: {settings}", lane.preset),
    }
}

/// What the settings do that move the goal at all, the strongest first.
pub(crate) fn what_matters(goal: &str, lane: &TunedLane) -> String {
    let moving: Vec<String> = lane
        .sensitivity
        .iter()
        .take(4)
        .filter(|each| each.swing > 0.0)
        .map(|each| {
            let swing = change(goal, each.swing);
            format!("{} {}", each.setting, swing.trim_start_matches('+'))
        })
        .collect();
    if moving.is_empty() {
        "no setting moves the goal".to_owned()
    } else {
        moving.join(", ")
    }
}
