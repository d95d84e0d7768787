//! How round trips are distributed, the tail drawn as large as the body: a
//! curve for each lane over *all intended messages*, so that a lane that loses
//! messages ends where its deliveries end instead of looking fast.

use lagometer_results::Lane;
use lagometer_stats::{Distribution, Quantile, QuantilePosition, in_millis, nanos, position_of};
use unicode_width::UnicodeWidthStr;

use super::markup::{coordinate, esc, per_cent};
use super::scale::{nines_ticks, tick_label};
use super::view::View;
use crate::written;

/// Height of the plot.
pub(crate) const HEIGHT: f64 = 440.0;
/// Room above the plot where no curve ends early.
const HEADROOM: f64 = 14.0;
/// Where it ends at the bottom; beneath are the labels.
pub(crate) const BOTTOM: f64 = 412.0;
/// Points of a curve.
const POINTS: usize = 240;
/// Height of one direct label.
const LABEL: f64 = 17.0;

/// A lane's curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Curve {
    /// Position on the axis of nines and round trip in milliseconds.
    pub(crate) points: Vec<(f64, f64)>,
    /// The curve ends before the last message: the rest was lost.
    pub(crate) ends_early: bool,
}

/// The curve of `lane`, up to `most_nines`; empty where its histogram cannot
/// be read or holds nothing.
pub(crate) fn curve(lane: &Lane, most_nines: f64) -> Curve {
    let Ok(histogram) = Distribution::from_base64(&lane.histogram) else {
        return Curve::default();
    };
    let intended = lane.messages.intended.max(histogram.len());
    if histogram.is_empty() || intended == 0 {
        return Curve::default();
    }
    let never = intended - histogram.len();
    let own_nines = libm::log10(intended as f64).min(most_nines);
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(POINTS);
    for index in 0..=POINTS {
        let nines = own_nines * index as f64 / POINTS as f64;
        let quantile = match index {
            POINTS => Quantile::MAX,
            _ => Quantile::nines(nines),
        };
        let QuantilePosition::Rank(rank) = position_of(quantile, histogram.len(), never) else {
            return Curve {
                points,
                ends_early: true,
            };
        };
        points.push((nines, in_millis(nanos(histogram.at_rank(rank)))));
    }
    Curve {
        points,
        ends_early: false,
    }
}

/// Appends the section.
pub(crate) fn render(view: &View<'_>, curves: &[Curve], out: &mut String) {
    let id = view.id("curves");
    let top = top(view, curves);
    append!(
        out,
        r#"<section class="curves" aria-labelledby="{id}"><h2 id="{id}">Percentiles</h2>
<p class="note">Read upwards from 99: one message in a hundred took longer than where the curve stands. Lower and flatter is better; every step to the right looks ten times deeper into the tail.{}</p>
<div class="labelled-plot">"#,
        if curves.iter().any(|curve| curve.ends_early) {
            " A curve that ends with × has no more to show: the rest of its messages never arrived."
        } else {
            ""
        }
    );
    gutter(view, top, out);
    append!(
        out,
        r#"<svg class="plot" height="{HEIGHT}" role="img" aria-label="Percentile curves of the round trip of each lane">"#
    );
    axes(view, top, out);
    append!(
        out,
        r#"<svg class="stretch" viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none">"#
    );
    for (place, lane) in view.lanes() {
        append!(
            out,
            r#"<path class="curve {}" data-lane="{place}" d="{}"><title>{}</title></path>"#,
            view.look(place).classes(),
            path(view, &curves[place], top),
            esc(&lane.lane)
        );
    }
    *out += "</svg>";
    mark_early_ends(view, curves, top, out);
    *out += r#"<g class="pointer"></g></svg>"#;
    direct_labels(view, curves, top, out);
    *out += r#"</div><p class="axis-name">share of all intended messages, in per cent, on a scale of nines</p></section>"#;
    out.push('\n');
}

fn y(view: &View<'_>, top: f64, rtt_ms: f64) -> f64 {
    BOTTOM - (BOTTOM - top) * view.rtt.position(rtt_ms)
}

fn path(view: &View<'_>, curve: &Curve, top: f64) -> String {
    let most = view.most_nines();
    let mut data = String::new();
    for (index, &(nines, rtt)) in curve.points.iter().enumerate() {
        append!(
            data,
            "{}{} {}",
            if index == 0 { 'M' } else { 'L' },
            coordinate(nines / most * 1000.0),
            coordinate(y(view, top, rtt))
        );
    }
    data
}

fn gutter(view: &View<'_>, top: f64, out: &mut String) {
    append!(
        out,
        r#"<svg class="gutter" height="{HEIGHT}" aria-hidden="true">"#
    );
    for tick in view.rtt.ticks() {
        append!(
            out,
            r#"<text class="tick" x="100%" dx="-6" y="{}" dy="4" text-anchor="end">{}</text>"#,
            coordinate(y(view, top, tick)),
            tick_label(tick)
        );
    }
    *out += "</svg>";
}

fn axes(view: &View<'_>, top: f64, out: &mut String) {
    for tick in view.rtt.ticks() {
        let at = coordinate(y(view, top, tick));
        append!(
            out,
            r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>"#
        );
    }
    let most = view.most_nines();
    for (nines, label) in nines_ticks(most) {
        let at = per_cent(nines / most);
        let minor = if label == "50" { " minor" } else { "" };
        append!(
            out,
            r#"<line class="grid{minor}" x1="{at}" x2="{at}" y1="{top}" y2="{BOTTOM}"/><text class="tick{minor}" x="{at}" y="{}" text-anchor="{}">{label}</text>"#,
            BOTTOM + 16.0,
            if nines == 0.0 { "start" } else { "middle" },
        );
    }
    append!(
        out,
        r#"<text class="tick" x="100%" y="{}" text-anchor="end">worst</text>"#,
        BOTTOM + 16.0
    );
    let limit = f64::from(view.about.limit_ms);
    if (view.rtt.low..view.rtt.high).contains(&limit) {
        let at = coordinate(y(view, top, limit));
        append!(
            out,
            r#"<line class="limit" x1="0" x2="100%" y1="{at}" y2="{at}"/><text class="tick limit-name" x="100%" dx="-4" y="{at}" dy="-4" text-anchor="end">{}</text>"#,
            tick_label(limit)
        );
    }
}

/// The end of a curve whose lane lost messages.
struct EarlyEnd<'a> {
    /// Position between 0 and 1.
    x: f64,
    rtt_ms: f64,
    place: usize,
    lane: &'a Lane,
    /// `2.98 % lost`.
    lost: String,
}

fn early_ends<'a>(view: &View<'a>, curves: &[Curve]) -> Vec<EarlyEnd<'a>> {
    let most = view.most_nines();
    let mut ends: Vec<EarlyEnd<'a>> = view
        .lanes()
        .filter(|&(place, _)| curves[place].ends_early)
        .filter_map(|(place, lane)| {
            let &(nines, rtt_ms) = curves[place].points.last()?;
            let lost = 1.0 - lane.messages.delivered as f64 / lane.messages.intended.max(1) as f64;
            let lost = format!("{} % lost", written::lost_share(lost));
            Some(EarlyEnd {
                x: nines / most,
                rtt_ms,
                place,
                lane,
                lost,
            })
        })
        .collect();
    ends.sort_by(|a, b| a.x.total_cmp(&b.x));
    ends
}

/// A plot's width in pixels, its class, and whether there is room to say how
/// much was lost: names are laid out for a wide page and for a narrow one, of
/// which the style sheet shows the one that fits.
const LAYOUTS: [(&str, f64, bool); 2] = [("wide", 900.0, true), ("narrow", 228.0, false)];

/// For each end the row above the plot, counted upwards from 0, in which its
/// name covers no other, and whether the name stands to the left.
fn rows_of_names(
    ends: &[EarlyEnd<'_>],
    (_, width, with_share): (&str, f64, bool),
) -> Vec<(usize, bool)> {
    let mut taken: Vec<(f64, f64, usize)> = Vec::new();
    ends.iter()
        .map(|end| {
            // About what the system fonts take at the sizes of the style sheet.
            let name = UnicodeWidthStr::width(end.lane.lane.as_str()) as f64;
            let text = if with_share {
                name * 7.8 + end.lost.len() as f64 * 6.2
            } else {
                name * 6.6
            };
            let at = end.x * width;
            let to_the_left = at + text > width;
            let (left, right) = if to_the_left {
                (at - text, at)
            } else {
                (at, at + text)
            };
            let covers = |row: usize| {
                taken.iter().any(|(other_left, other_right, other)| {
                    row == *other && left < *other_right && *other_left < right
                })
            };
            let row = (0..ends.len()).find(|row| !covers(*row)).unwrap_or(0);
            taken.push((left, right, row));
            (row, to_the_left)
        })
        .collect()
}

/// Where the axis of round trips ends at the top; above it is room for the
/// names of curves that end early.
pub(crate) fn top(view: &View<'_>, curves: &[Curve]) -> f64 {
    let ends = early_ends(view, curves);
    let rows = LAYOUTS
        .iter()
        .flat_map(|layout| rows_of_names(&ends, *layout))
        .map(|(row, _)| row + 1);
    HEADROOM + rows.max().unwrap_or(0) as f64 * LABEL
}

/// The crosses at early ends, and above the plot the names of their lanes.
fn mark_early_ends(view: &View<'_>, curves: &[Curve], top: f64, out: &mut String) {
    let ends = early_ends(view, curves);
    for end in &ends {
        let (x, at) = (per_cent(end.x), coordinate(y(view, top, end.rtt_ms)));
        append!(
            out,
            r#"<g class="early {}" data-lane="{}"><line class="gone" x1="{x}" x2="{x}" y1="{at}" y2="{}"/><svg x="{x}" y="{at}" overflow="visible"><path class="cross" d="M-4-4 4 4M4-4-4 4"/></svg></g>"#,
            view.look(end.place).classes(),
            end.place,
            coordinate(top - 6.0),
        );
    }
    for layout in LAYOUTS {
        let (class, _, with_share) = layout;
        append!(out, r#"<g class="{class}">"#);
        for (end, (row, to_the_left)) in ends.iter().zip(rows_of_names(&ends, layout)) {
            append!(
                out,
                r#"<g class="early {}" data-lane="{}"><text x="{}" y="{}" text-anchor="{}" dx="{}">{}"#,
                view.look(end.place).classes(),
                end.place,
                per_cent(end.x),
                coordinate(top - 9.0 - row as f64 * LABEL),
                if to_the_left { "end" } else { "start" },
                if to_the_left { 4 } else { -4 },
                esc(&end.lane.lane),
            );
            if with_share {
                append!(out, r#" <tspan class="why">{}</tspan>"#, end.lost);
            }
            *out += "</text></g>";
        }
        *out += "</g>";
    }
}

/// The names of curves that reach the edge, beside their ends and moved apart
/// where they would overlap, with a line that leads to each.
fn direct_labels(view: &View<'_>, curves: &[Curve], top: f64, out: &mut String) {
    let mut ends: Vec<(f64, usize, &Lane)> = view
        .lanes()
        .filter(|&(place, _)| !curves[place].ends_early)
        .filter_map(|(place, lane)| {
            Some((y(view, top, curves[place].points.last()?.1), place, lane))
        })
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let tops = moved_apart(
        &ends.iter().map(|end| end.0).collect::<Vec<_>>(),
        LABEL,
        top,
        BOTTOM,
    );
    append!(
        out,
        r#"<svg class="leaders" viewBox="0 0 16 {HEIGHT}" preserveAspectRatio="none" height="{HEIGHT}">"#
    );
    for ((end, place, _), top) in ends.iter().zip(&tops) {
        append!(
            out,
            r#"<path class="leader {}" data-lane="{place}" d="M0 {}L16 {}"/>"#,
            view.look(*place).classes(),
            coordinate(*end),
            coordinate(*top)
        );
    }
    *out += r#"</svg><div class="direct">"#;
    for ((_, place, lane), top) in ends.iter().zip(&tops) {
        append!(
            out,
            r#"<span class="{}" data-lane="{place}" style="top:{}px">{} <small>{}</small></span>"#,
            view.look(*place).classes(),
            coordinate(*top),
            esc(&lane.lane),
            written::milliseconds_with_unit(lane.rtt_delivered_ms.max)
        );
    }
    *out += "</div>";
}

/// Places for labels `height` tall at `wanted` (ascending), no two closer and
/// none outside `top..bottom` as long as there is room.
pub(crate) fn moved_apart(wanted: &[f64], height: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for &at in wanted {
        let least = places.last().map_or(top, |last| last + height);
        places.push(at.max(least));
    }
    let mut limit = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - height;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_apart_and_kept_inside() {
        assert_eq!(
            moved_apart(&[5.0, 6.0, 50.0], 10.0, 0.0, 100.0),
            [5.0, 15.0, 50.0]
        );
        assert_eq!(moved_apart(&[98.0, 99.0], 10.0, 0.0, 100.0), [90.0, 100.0]);
        assert!(moved_apart(&[], 10.0, 0.0, 100.0).is_empty());
    }
}
