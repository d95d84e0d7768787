//! A search for settings on the page: what was found in figures, the frontier of
//! delay against bytes drawn with a curve for each lane, and what each setting does.

use lagometer_results::{Tune, TunedFigure, TunedLane};

use super::capacity::look;
use super::markup::{coordinate, esc, per_cent};
use super::scale::LogScale;
use super::scatter::delay_lines;
use super::view::View;
use crate::tuned::{
    change, change_interval, choice, finding, goal, goal_in_words, lanes_to_paste, limits, settings,
};
use crate::written;

/// Height of the plot, and where it begins and ends.
const HEIGHT: f64 = 360.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 330.0;

/// Where the plot begins, as a share of the width.
const LEFT: f64 = 0.05;

/// Appends the sections.
pub(crate) fn render(view: &View<'_>, tune: &Tune, out: &mut String) {
    figures(view, tune, out);
    plot(view, tune, out);
    sensitivities(view, tune, out);
}

fn figures(view: &View<'_>, tune: &Tune, out: &mut String) {
    append!(
        out,
        r#"<section aria-labelledby="{id}"><h2 id="{id}">What was found</h2><p class="note">The goal is {}; figures are those of seeds that the search never played, beside them what it saw on its own.</p><div class="scroll"><table class="tuned"><thead><tr><th scope="col">lane</th>"#,
        esc(&goal_in_words(&tune.goal)),
        id = view.id("tuned")
    );
    for heading in [
        "as it was",
        "tuned",
        "tuned, on the seeds searched",
        "change, 95 %",
        "bytes × payload",
        "p99",
    ] {
        append!(out, r#"<th scope="col" class="number">{heading}</th>"#);
    }
    *out += r#"<th scope="col">finding</th></tr></thead>"#;
    for (nth, lane) in tune.lanes.iter().enumerate() {
        append!(
            out,
            r#"<tbody><tr><th scope="row" class="{}">{}{}</th>"#,
            look(nth).classes(),
            look(nth).swatch(),
            esc(&lane.lane)
        );
        let difference = lane.goal.difference.map_or_else(String::new, |value| {
            let by = change(&tune.goal, value);
            format!("{by} {}", change_interval(&tune.goal, &lane.goal))
        });
        for cell in [
            goal(&tune.goal, lane.goal.before),
            goal(&tune.goal, lane.goal.found),
            goal(&tune.goal, lane.goal.found_searched),
            difference,
            both(&lane.overhead, written::factor),
            both(&lane.p99_ms, written::milliseconds_with_unit),
        ] {
            append!(out, r#"<td class="number">{}</td>"#, esc(&cell));
        }
        append!(
            out,
            r#"<td>{}</td></tr><tr><td class="settings" colspan="8"><code>{}</code>{}</td></tr></tbody>"#,
            finding(lane.finding),
            esc(&choice(lane)),
            limits(tune, lane).map_or_else(String::new, |said| format!(" · {said}"))
        );
    }
    *out += "</table></div>";
    for lane in &tune.lanes {
        for transfer in &lane.transfer {
            append!(
                out,
                "<p>{}</p>",
                esc(&format!(
                    "{} on {}, which its search never played: {} instead of {} {}",
                    lane.lane,
                    transfer.network,
                    goal(&tune.goal, transfer.goal.found),
                    goal(&tune.goal, transfer.goal.before),
                    change_interval(&tune.goal, &transfer.goal)
                ))
            );
        }
    }
    let pasted = lanes_to_paste(tune);
    if !pasted.is_empty() {
        append!(out, "<pre>{}</pre>", esc(&pasted));
    }
    *out += "</section>\n";
}

fn both(figure: &TunedFigure, write: fn(f64) -> String) -> String {
    let written = |value: Option<f64>| value.map_or(written::NOTHING.to_owned(), write);
    match (written(figure.before), written(figure.found)) {
        (before, found) if before == found => before,
        (before, found) => format!("{before} → {found}"),
    }
}

/// Bytes and delay of every point that is drawn of a lane: its frontier, then the
/// lane as it was and as it was found.
fn points(lane: &TunedLane) -> impl Iterator<Item = (f64, f64)> {
    let ends = [
        lane.overhead.before.zip(lane.p99_ms.before),
        lane.overhead.found.zip(lane.p99_ms.found),
    ];
    let frontier = lane.frontier.iter();
    frontier
        .filter_map(|point| Some((point.overhead, point.p99_ms?)))
        .chain(ends.into_iter().flatten())
}

fn plot(view: &View<'_>, tune: &Tune, out: &mut String) {
    let all: Vec<(f64, f64)> = tune.lanes.iter().flat_map(points).collect();
    if all.is_empty() {
        return;
    }
    let x = LogScale::around(&all.iter().map(|point| point.0).collect::<Vec<_>>());
    let y = LogScale::around(&all.iter().map(|point| point.1).collect::<Vec<_>>());
    let x_of = |overhead: f64| LEFT + (0.98 - LEFT) * x.position(overhead);
    let y_of = |delay: f64| BOTTOM - (BOTTOM - TOP) * y.position(delay);
    append!(
        out,
        r#"<section class="scatter" aria-labelledby="{id}"><h2 id="{id}">Delay against bytes</h2><p class="note">Each curve joins settings of one lane of which none is better both by bytes and by delay; the small mark is the lane as it was, the large one what was found, by all its messages together; points of curves are means over seeds. Towards the lower left is better.</p><svg class="plot" height="{HEIGHT}" role="img" aria-label="Bytes on the wire against the 99th percentile of the round trip, a curve for each lane">"#,
        id = view.id("frontier")
    );
    delay_lines(y, y_of, out);
    for tick in x.ticks() {
        let at = per_cent(x_of(tick));
        append!(
            out,
            r#"<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{BOTTOM}"/><text class="tick" x="{at}" y="{}" text-anchor="middle">{} ×</text>"#,
            BOTTOM + 16.0,
            coordinate(tick)
        );
    }
    for (nth, lane) in tune.lanes.iter().enumerate() {
        curve(nth, lane, x_of, y_of, out);
    }
    *out += r#"</svg><p class="axis-name">across: bytes on the wire over payload bytes · up: p99 of the round trip, ms</p></section>"#;
    out.push('\n');
}

fn curve(
    nth: usize,
    lane: &TunedLane,
    x_of: impl Fn(f64) -> f64,
    y_of: impl Fn(f64) -> f64,
    out: &mut String,
) {
    let classes = look(nth).classes();
    append!(
        out,
        r#"<svg class="stretch" viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none" height="{HEIGHT}"><path class="curve {classes}" vector-effect="non-scaling-stroke" d=""#
    );
    let known = lane
        .frontier
        .iter()
        .filter_map(|point| Some((point, point.p99_ms?)));
    for (place, (point, delay)) in known.clone().enumerate() {
        append!(
            out,
            "{}{} {}",
            if place == 0 { 'M' } else { 'L' },
            coordinate(1000.0 * x_of(point.overhead)),
            coordinate(y_of(delay))
        );
    }
    *out += r#""/></svg>"#;
    let mut mark = |overhead: f64, delay: f64, radius: f64, what: &str| {
        append!(
            out,
            r#"<g class="point {classes}"><title>{}</title><circle class="marker" cx="{}" cy="{}" r="{radius}"/></g>"#,
            esc(&format!(
                "{}, {what}: {} × the payload, p99 {}",
                lane.lane,
                written::factor(overhead),
                written::milliseconds_with_unit(delay)
            )),
            per_cent(x_of(overhead)),
            coordinate(y_of(delay))
        );
    };
    for (point, delay) in known {
        let of = settings(&point.settings);
        let what = format!("{} {of}", point.preset);
        mark(point.overhead, delay, 2.0, what.trim_end());
    }
    if let (Some(overhead), Some(delay)) = (lane.overhead.before, lane.p99_ms.before) {
        mark(overhead, delay, 4.0, "as it was");
    }
    if let (Some(overhead), Some(delay)) = (lane.overhead.found, lane.p99_ms.found) {
        mark(overhead, delay, 6.0, "found");
        append!(
            out,
            r#"<g class="point {classes}"><text x="{}" dx="9" y="{}" dy="4">{}</text></g>"#,
            per_cent(x_of(overhead)),
            coordinate(y_of(delay)),
            esc(&lane.lane)
        );
    }
}

fn sensitivities(view: &View<'_>, tune: &Tune, out: &mut String) {
    append!(
        out,
        r#"<section aria-labelledby="{id}"><h2 id="{id}">What matters</h2><p class="note">How far the goal moves when one setting goes over its whole range and all others are as found, under the same seeds.</p><div class="scroll"><table><thead><tr><th scope="col">lane</th><th scope="col">setting</th><th scope="col">found</th><th scope="col" class="number">moves the goal by</th><th scope="col">the goal at each value</th></tr></thead><tbody>"#,
        id = view.id("sensitivity")
    );
    for lane in &tune.lanes {
        for each in lane.sensitivity.iter().filter(|each| each.swing > 0.0) {
            let levels: Vec<String> = each
                .levels
                .iter()
                .map(|level| format!("{}: {}", level.value, goal(&tune.goal, Some(level.goal))))
                .collect();
            append!(
                out,
                r#"<tr><td>{}</td><td><code>{}</code></td><td>{}</td><td class="number">{}</td><td>{}</td></tr>"#,
                esc(&lane.lane),
                esc(&each.setting),
                esc(&each.found.to_string()),
                esc(change(&tune.goal, each.swing).trim_start_matches('+')),
                esc(&levels.join(" · "))
            );
        }
    }
    *out += "</tbody></table></div></section>\n";
}
