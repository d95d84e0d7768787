//! What a small tail costs: bytes on the wire against the 99.9th percentile of
//! the round trip, a point for each lane.

use lagometer_results::Lane;

use super::markup::{coordinate, esc, per_cent};
use super::scale::{LogScale, tick_label};
use super::view::View;
use crate::figure::Figure;
use crate::written;

/// Height of the plot.
const HEIGHT: f64 = 400.0;
/// Lanes that lost more than one message in a thousand stand here.
const LOST: f64 = 20.0;
/// Where the axis of round trips ends at the top.
const TOP: f64 = 52.0;
/// Where it ends at the bottom.
const BOTTOM: f64 = 372.0;

/// Room at the left for the labels of the vertical axis.
const INSET: f64 = 44.0;

/// The plot is laid out once for a wide page and once for a narrow one, since
/// labels that stand apart on one collide on the other. The style sheet shows
/// the one that fits.
const LAYOUTS: [(&str, f64); 2] = [("wide", 1080.0), ("narrow", 330.0)];

struct Point<'a> {
    place: usize,
    lane: &'a Lane,
    overhead: f64,
    p99_9: f64,
}

/// Appends the section; nothing where no lane knows its wire.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let points: Vec<Point<'_>> = view
        .lanes()
        .filter_map(|(place, lane)| {
            let overhead = Figure::Overhead.of(lane).filter(|each| *each > 0.0)?;
            Some(Point {
                place,
                lane,
                overhead,
                p99_9: Figure::P99_9.of(lane)?,
            })
        })
        .collect();
    if points.is_empty() {
        return;
    }
    let id = view.id("scatter");
    let x = overhead_axis(&points);
    let y = LogScale::around(&points.iter().map(|point| point.p99_9).collect::<Vec<_>>());
    let any_lost = points.iter().any(|point| point.p99_9.is_infinite());
    append!(
        out,
        r#"<section class="scatter" aria-labelledby="{id}"><h2 id="{id}">What the tail costs</h2>
<p class="note">Bytes on the wire against the round trip that one message in a thousand exceeds. Towards the lower left is better: fast in the worst moments and cheap. Hollow markers are unreliable lanes{}.</p>"#,
        if any_lost {
            "; in the band at the top are lanes that lost more than one message in a thousand, so that no round trip can be named"
        } else {
            ""
        }
    );
    for (class, width) in LAYOUTS {
        let layout = Layout { width, x, y };
        plot(view, &points, &layout, any_lost, class, out);
    }
    *out += r#"<p class="axis-name">across: bytes on the wire over payload bytes · up: p99.9 of the round trip</p></section>"#;
    out.push('\n');
}

/// From just under the leanest lane to just over the most lavish.
fn overhead_axis(points: &[Point<'_>]) -> LogScale {
    let least = points
        .iter()
        .map(|point| point.overhead)
        .fold(f64::INFINITY, f64::min);
    let most = points
        .iter()
        .map(|point| point.overhead)
        .fold(0.0, f64::max);
    let low = (least * 0.97).min(1.0).max(least / 20.0);
    LogScale {
        low,
        high: (most * 1.12).max(low * 1.5),
    }
}

/// One layout of the plot: its width, and where its axes put what they measure.
struct Layout {
    width: f64,
    x: LogScale,
    y: LogScale,
}

impl Layout {
    /// From the left, as a share of the width.
    fn x_of(&self, overhead: f64) -> f64 {
        (INSET + (self.width - INSET - 12.0) * self.x.position(overhead)) / self.width
    }

    /// From the top, in pixels.
    fn y_of(&self, rtt: f64) -> f64 {
        if rtt.is_infinite() {
            LOST
        } else {
            BOTTOM - (BOTTOM - TOP) * self.y.position(rtt)
        }
    }
}

fn plot(
    view: &View<'_>,
    points: &[Point<'_>],
    layout: &Layout,
    any_lost: bool,
    class: &str,
    out: &mut String,
) {
    append!(
        out,
        r#"<svg class="plot {class}" height="{HEIGHT}" role="img" aria-label="Wire overhead against the 99.9th percentile of the round trip">"#
    );
    delay_lines(layout.y, |rtt| layout.y_of(rtt), out);
    overhead_lines(layout, any_lost, out);
    if any_lost {
        append!(
            out,
            r#"<rect class="lost-band" width="100%" y="4" height="32"/><text class="tick" x="3" y="16">&gt; 0.1 %</text><text class="tick" x="3" y="28">lost</text>"#
        );
    }
    let places: Vec<(f64, f64)> = points
        .iter()
        .map(|point| {
            (
                layout.x_of(point.overhead) * layout.width,
                layout.y_of(point.p99_9),
            )
        })
        .collect();
    let labels = place_labels(points, &places, layout.width);
    for ((point, (at_x, at_y)), label) in points.iter().zip(&places).zip(labels) {
        let x = per_cent(at_x / layout.width);
        marker(view, point, &x, *at_y, out);
        if let Some(label) = label {
            label_text(point, &label, &x, *at_y, out);
        }
        *out += "</g>";
    }
    *out += "</svg>";
}

/// A line down the plot for each of the overheads that the axis names.
fn overhead_lines(layout: &Layout, any_lost: bool, out: &mut String) {
    for tick in [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0] {
        if (layout.x.low..=layout.x.high).contains(&tick) {
            let at = per_cent(layout.x_of(tick));
            append!(
                out,
                r#"<line class="grid" x1="{at}" x2="{at}" y1="{}" y2="{BOTTOM}"/><text class="tick" x="{at}" y="{}" text-anchor="middle">{} ×</text>"#,
                if any_lost { 4.0 } else { TOP },
                BOTTOM + 16.0,
                coordinate(tick)
            );
        }
    }
}

/// The beginning of a point's group: its marker, with what it says in words.
fn marker(view: &View<'_>, point: &Point<'_>, x: &str, at_y: f64, out: &mut String) {
    let look = view.look(point.place);
    let tail = if point.p99_9.is_infinite() {
        "p99.9 lost".to_owned()
    } else {
        format!("p99.9 {}", written::milliseconds_with_unit(point.p99_9))
    };
    append!(
        out,
        r#"<g class="point {}" data-lane="{}"><title>{}</title><svg x="{x}" y="{}" overflow="visible">{}</svg>"#,
        look.classes(),
        point.place,
        esc(&format!(
            "{}: {} × the payload, {tail}",
            point.lane.lane,
            written::factor(point.overhead)
        )),
        coordinate(at_y),
        look.marker(),
    );
}

/// The lane's name beside its point, with a line to it where it stands far off.
fn label_text(point: &Point<'_>, label: &Label, x: &str, at_y: f64, out: &mut String) {
    if label.dx.abs() > 20.0 {
        append!(
            out,
            r#"<svg x="{x}" y="{}" overflow="visible"><line class="leader" x1="0" y1="0" x2="{}" y2="{}"/></svg>"#,
            coordinate(at_y),
            coordinate(label.dx),
            coordinate(label.dy - 4.0),
        );
    }
    append!(
        out,
        r#"<text x="{x}" dx="{}" y="{}" text-anchor="{}">{}</text>"#,
        coordinate(label.dx),
        coordinate(at_y + label.dy),
        label.anchor,
        esc(&point.lane.lane)
    );
}

#[derive(Clone, Copy)]
struct Label {
    dx: f64,
    dy: f64,
    anchor: &'static str,
}

/// Around a point, the most legible place first; the far ones are joined to
/// their point by a line.
const AROUND: [Label; 16] = [
    label(8.0, 4.0, "start"),
    label(-8.0, 4.0, "end"),
    label(0.0, -9.0, "middle"),
    label(0.0, 17.0, "middle"),
    label(8.0, -7.0, "start"),
    label(8.0, 15.0, "start"),
    label(-8.0, -7.0, "end"),
    label(-8.0, 15.0, "end"),
    label(22.0, 24.0, "start"),
    label(22.0, -18.0, "start"),
    label(-22.0, 24.0, "end"),
    label(-22.0, -18.0, "end"),
    label(34.0, 40.0, "start"),
    label(34.0, -34.0, "start"),
    label(-34.0, 40.0, "end"),
    label(-34.0, -34.0, "end"),
];

const fn label(dx: f64, dy: f64, anchor: &'static str) -> Label {
    Label { dx, dy, anchor }
}

#[derive(Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// For each point the first place around it where its name covers neither
/// another name nor a point; none where there is no such place, and the name
/// is left to the tooltip and the table.
fn place_labels(points: &[Point<'_>], places: &[(f64, f64)], width: f64) -> Vec<Option<Label>> {
    let mut taken: Vec<Area> = places
        .iter()
        .map(|(x, y)| Area {
            left: x - 5.0,
            top: y - 5.0,
            right: x + 5.0,
            bottom: y + 5.0,
        })
        .collect();
    points
        .iter()
        .zip(places)
        .map(|(point, (x, y))| {
            // About what the system fonts take at 12 pixels.
            let text = unicode_width::UnicodeWidthStr::width(point.lane.lane.as_str()) as f64 * 6.6;
            AROUND.into_iter().find(|label| {
                let left = x + label.dx
                    - match label.anchor {
                        "start" => 0.0,
                        "end" => text,
                        _ => text / 2.0,
                    };
                let area = Area {
                    left,
                    top: y + label.dy - 10.0,
                    right: left + text,
                    bottom: y + label.dy + 3.0,
                };
                // Near the right edge names go to the left, so that they stay
                // on a page somewhat narrower than the layout.
                let far_right = *x > width * 0.8 && label.anchor != "end";
                let inside = area.left >= INSET && !far_right && area.top >= 0.0;
                let free = inside && !taken.iter().any(|each| each.overlaps(&area));
                if free {
                    taken.push(area);
                }
                free
            })
        })
        .collect()
}

/// A line across the plot for each of the delays that the axis names.
pub(super) fn delay_lines(y: LogScale, y_of: impl Fn(f64) -> f64, out: &mut String) {
    for tick in y.ticks() {
        let at = coordinate(y_of(tick));
        append!(
            out,
            r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/><text class="tick" x="3" y="{at}" dy="-3">{}</text>"#,
            tick_label(tick)
        );
    }
}
