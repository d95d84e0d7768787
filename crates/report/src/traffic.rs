//! The figures of a lane's directions, where messages were not echoed, as the terminal and
//! the page show them.

use lagometer_results::{DelayOf, Flow, Lane, Traffic};

use crate::figure::LOST;
use crate::written;

/// The columns of a direction: heading and unit.
pub(crate) const HEADINGS: [(&str, &str); 7] = [
    ("messages", "n"),
    ("on time", "%"),
    ("p50", "ms"),
    ("p99", "ms"),
    ("freezes", "/min"),
    ("longest", "ms"),
    ("came", "kbit/s"),
];

/// The directions of a lane that carried anything, each with its name.
pub(crate) fn ways(lane: &Lane) -> Vec<(&'static str, &Flow)> {
    let Some(traffic) = &lane.traffic else {
        return Vec::new();
    };
    let ways = [("up", &traffic.up), ("down", &traffic.down)];
    ways.into_iter()
        .filter_map(|(way, flow)| Some((way, flow.as_ref()?)))
        .collect()
}

/// What stands in the columns.
pub(crate) fn cells(flow: &Flow) -> [String; 7] {
    let delay = |value: Option<f64>| value.map_or_else(|| LOST.to_owned(), written::milliseconds);
    let longest = flow.longest_freeze.map_or_else(
        || "none".to_owned(),
        |freeze| {
            let at_least = if freeze.at_least { "≥" } else { "" };
            format!("{at_least}{}", written::milliseconds(freeze.ms))
        },
    );
    [
        written::count(flow.intended),
        written::share(flow.on_time),
        delay(flow.delay_ms.p50),
        delay(flow.delay_ms.p99),
        written::factor(flow.freezes_per_min),
        longest,
        written::factor(flow.kbit_per_s),
    ]
}

/// What the lane's delays are of.
pub(crate) fn delay_of(traffic: &Traffic) -> &'static str {
    match traffic.delay {
        DelayOf::OneWay => {
            "delays of the lanes are one way, from a message's intended send to its arrival, of \
             both directions together"
        }
        DelayOf::Answer => {
            "delays of the lanes are from a request's intended send until its answer had come whole"
        }
    }
}

/// What the columns say.
pub(crate) fn note(traffic: &Traffic) -> String {
    format!(
        "{} · on time: within {} ms, of all that were meant to be sent · freezes: stretches in \
         which nothing newer came for longer than that · came: payload within the time of play",
        delay_of(traffic),
        written::milliseconds(traffic.within_ms)
    )
}
