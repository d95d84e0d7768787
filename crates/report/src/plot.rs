//! The percentile curves of several runs in one drawing that stands alone, for
//! a text that shows them: an SVG of fixed size, without script or style sheet.

use lagometer_results::Document;

use crate::page::{Curve, LogScale, coordinate, curve, esc, most_nines, nines_ticks, tick_label};

/// One drawing of all `documents`' lanes, the first document's in solid lines.
///
/// The horizontal axis is the share of all intended messages on a scale of
/// nines, the vertical one the round trip on a logarithmic scale. A curve that
/// ends with × ends where its deliveries do. Lanes are named as in their
/// documents, those of later documents with the document's name in front.
#[must_use]
pub fn plot(documents: &[Document]) -> String {
    let lines = lines(documents);
    let most = most_nines(lines.iter().map(|line| line.intended).max().unwrap_or(0));
    let values = lines.iter().flat_map(|line| &line.curve.points);
    let scale = LogScale::covering(values.map(|&(_, rtt_ms)| rtt_ms), 10.0);
    let legend_height = LEGEND_LINE * lines.len() as f64;
    let height = HEIGHT.max(TOP + legend_height + 20.0);
    let mut out = String::new();
    append!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12" fill="#333"><rect width="100%" height="100%" fill="#fff"/>"##
    );
    axes(scale, most, &mut out);
    for (index, line) in lines.iter().enumerate() {
        draw(line, index, scale, most, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 372.0;
const LEGEND_LINE: f64 = 18.0;

/// Hues that stay apart for every kind of colour vision, after Okabe and Ito,
/// "Color universal design", dark enough for a white ground.
const HUES: [&str; 8] = [
    "#0072b2", "#d55e00", "#00805f", "#b0408f", "#8a6d00", "#3a9bd0", "#222222", "#7a4fbf",
];

/// The lines of the first document, the second, and so on.
const DASHES: [&str; 3] = ["none", "7 4", "2 3"];

struct Line {
    name: String,
    curve: Curve,
    intended: u64,
    dashes: &'static str,
    /// The place of the lane in its own document.
    place: usize,
}

fn lines(documents: &[Document]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        for (place, lane) in document.lanes.iter().enumerate() {
            let intended = lane.messages.intended;
            let curve = curve(lane, most_nines(intended));
            if curve.points.is_empty() {
                continue;
            }
            let run = &document.command;
            lines.push(Line {
                name: match number {
                    0 => lane.lane.clone(),
                    _ => format!("{run}: {}", lane.lane),
                },
                curve,
                intended,
                dashes: DASHES[number % DASHES.len()],
                place,
            });
        }
    }
    lines
}

fn x(nines: f64, most: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (nines / most).clamp(0.0, 1.0)
}

fn y(rtt_ms: f64, scale: LogScale) -> f64 {
    BOTTOM - (BOTTOM - TOP) * scale.position(rtt_ms)
}

fn axes(scale: LogScale, most: f64, out: &mut String) {
    for tick in scale.ticks() {
        let at = coordinate(y(tick, scale));
        append!(
            out,
            r##"<path d="M{LEFT} {at}H{RIGHT}" stroke="#ddd"/><text x="{}" y="{at}" dy="4" text-anchor="end">{}</text>"##,
            LEFT - 6.0,
            tick_label(tick)
        );
    }
    for (nines, label) in nines_ticks(most) {
        let at = coordinate(x(nines, most));
        append!(
            out,
            r##"<path d="M{at} {TOP}V{BOTTOM}" stroke="#ddd"/><text x="{at}" y="{}" text-anchor="middle">{label}</text>"##,
            BOTTOM + 18.0
        );
    }
    append!(
        out,
        r#"<text x="{}" y="{}" text-anchor="middle">round trip within, for this share of all intended messages (%)</text>"#,
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 38.0
    );
}

fn draw(line: &Line, index: usize, scale: LogScale, most: f64, out: &mut String) {
    let hue = HUES[line.place % HUES.len()];
    let mut data = String::new();
    for (point, &(nines, rtt_ms)) in line.curve.points.iter().enumerate() {
        append!(
            data,
            "{}{} {}",
            if point == 0 { 'M' } else { 'L' },
            coordinate(x(nines, most)),
            coordinate(y(rtt_ms, scale))
        );
    }
    let dashes = line.dashes;
    append!(
        out,
        r#"<path d="{data}" fill="none" stroke="{hue}" stroke-width="1.8" stroke-dasharray="{dashes}"/>"#
    );
    if let (true, Some(&(nines, rtt_ms))) = (line.curve.ends_early, line.curve.points.last()) {
        append!(
            out,
            r#"<text x="{}" y="{}" dy="4" text-anchor="middle" fill="{hue}">×</text>"#,
            coordinate(x(nines, most)),
            coordinate(y(rtt_ms, scale))
        );
    }
    let at = TOP + 12.0 + LEGEND_LINE * index as f64;
    append!(
        out,
        r#"<path d="M{} {at}h34" stroke="{hue}" stroke-width="1.8" stroke-dasharray="{dashes}"/><text x="{}" y="{at}" dy="4">{}</text>"#,
        RIGHT + 16.0,
        RIGHT + 56.0,
        esc(&line.name)
    );
}
