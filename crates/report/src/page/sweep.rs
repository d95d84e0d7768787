//! A sweep on the page: a heat map of tests by sizes, and lines of latency and
//! bandwidth by size.

use lagometer_results::{Cell, Sweep};

use super::markup::{coordinate, esc, per_cent};
use super::scale::LogScale;
use super::view::View;
use crate::instruments::sweep::figure;
use crate::written;
use crate::written::units::{delay, rate, size};

/// Height of a chart.
const HEIGHT: f64 = 300.0;
/// Where the axis of values ends at the bottom.
const BOTTOM: f64 = 272.0;
/// Where it ends at the top.
const TOP: f64 = 12.0;
/// Room at the left for labels, as a share of the width.
const INSET: f64 = 0.07;
/// Shades in the style sheet, `s0` the strongest.
const SHADES: f64 = 8.0;

/// Appends the sections.
pub(crate) fn render(view: &View<'_>, sweep: &Sweep, out: &mut String) {
    let sizes = sweep.sizes();
    heat_map(view, sweep, &sizes, out);
    for (name, heading, is_latency) in [
        ("latency", "Latency by size", true),
        ("bandwidth", "Bandwidth by size", false),
    ] {
        let tests: Vec<&str> = sweep
            .tests()
            .into_iter()
            .filter(|test| test.ends_with("_lat") == is_latency)
            .collect();
        if sizes.len() > 1 && !tests.is_empty() {
            let chart = Chart::of(sweep, &tests, &sizes);
            lines(view, &chart, (name, heading, is_latency), out);
        }
    }
}

fn heat_map(view: &View<'_>, sweep: &Sweep, sizes: &[u32], out: &mut String) {
    let id = view.id("sweep");
    let tests = sweep.tests();
    let control = sweep
        .congestion_control
        .as_ref()
        .map_or_else(String::new, |name| format!(" TCP ran under {name}."));
    append!(
        out,
        r#"<section class="sweep" aria-labelledby="{id}"><h2 id="{id}">Every test at every size</h2><p class="note">Latency is one way, half of the mean round trip; bandwidth is payload that was received and verified byte by byte. The stronger the colour, the better within its column. Over UDP, 64 KiB stands for the 65 507 B that a datagram holds at most.{}</p><div class="scroll"><table class="heat"><thead><tr><th scope="col">size</th>"#,
        esc(&control)
    );
    for test in &tests {
        append!(out, r#"<th scope="col">{}</th>"#, esc(test));
    }
    *out += "</tr></thead><tbody>";
    for &bytes in sizes {
        append!(out, r#"<tr><th scope="row">{}</th>"#, size(bytes));
        for test in &tests {
            match sweep.cell(test, bytes) {
                Some(cell) => append!(
                    out,
                    r#"<td class="{}" title="{}">{}</td>"#,
                    shade(sweep, cell),
                    esc(&in_words(cell)),
                    esc(&figure(cell))
                ),
                None => *out += "<td></td>",
            }
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div></section>\n";
}

/// The class of a cell's colour: its place between the worst and the best of
/// its test, on a logarithmic scale.
fn shade(sweep: &Sweep, cell: &Cell) -> String {
    let Some(value) = cell.figure().filter(|value| *value > 0.0) else {
        return "heat-none".to_owned();
    };
    let of_test = sweep.cells.iter().filter(|each| each.test == cell.test);
    let values: Vec<f64> = of_test
        .filter_map(Cell::figure)
        .filter(|value| *value > 0.0)
        .collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let share = if most > least {
        libm::log(value / least) / libm::log(most / least)
    } else {
        1.0
    };
    let worse = if cell.latency_us.is_some() {
        share
    } else {
        1.0 - share
    };
    format!("heat{}", (worse * (SHADES - 1.0)).round() as u32)
}

fn in_words(cell: &Cell) -> String {
    let mut text = format!(
        "{} at {}: {}; {}; {}",
        cell.test,
        size(cell.size_bytes),
        cell.failure.clone().unwrap_or_else(|| figure(cell)),
        cell.method,
        cell.placement.in_words()
    );
    if let Some(sent) = cell.send_mbit_per_s {
        append!(text, "; sent at {}", rate(sent));
    }
    if cell.lost > 0 {
        let share = cell.lost as f64 / cell.sent.max(1) as f64;
        append!(text, "; {} % lost", written::lost_share(share));
    }
    text
}

/// A chart of one figure by size, a line for each test.
struct Chart<'a> {
    sweep: &'a Sweep,
    tests: &'a [&'a str],
    sizes: &'a [u32],
    y: LogScale,
}

impl<'a> Chart<'a> {
    fn of(sweep: &'a Sweep, tests: &'a [&'a str], sizes: &'a [u32]) -> Self {
        let value = |test: &str, bytes| sweep.cell(test, bytes).and_then(Cell::figure);
        let values = tests
            .iter()
            .flat_map(|test| sizes.iter().filter_map(move |&bytes| value(test, bytes)));
        Self {
            sweep,
            tests,
            sizes,
            y: LogScale::covering(values, 10.0),
        }
    }

    /// From the left, as a share of the width.
    fn x_of(&self, index: usize) -> f64 {
        let step = (1.0 - INSET - 0.03) / (self.sizes.len() - 1) as f64;
        INSET + step * index as f64
    }

    /// From the top, in pixels.
    fn y_of(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * self.y.position(value)
    }

    /// Which colour is which test's.
    fn key(&self, out: &mut String) {
        for (hue, test) in self.tests.iter().enumerate() {
            append!(
                out,
                r#"<span class="h{hue}"><svg width="22" height="10" aria-hidden="true"><line class="sweep-line" x1="0" x2="22" y1="5" y2="5"/></svg> {}</span> "#,
                esc(test)
            );
        }
    }

    /// A line across for each of the values that the axis names.
    fn value_lines(&self, is_latency: bool, out: &mut String) {
        for tick in self.y.ticks() {
            let at = coordinate(self.y_of(tick));
            let label = if is_latency {
                delay(tick / 1e3)
            } else {
                rate(tick)
            };
            append!(
                out,
                r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/><text class="tick" x="3" y="{at}" dy="-3">{label}</text>"#
            );
        }
    }

    fn size_labels(&self, out: &mut String) {
        for (index, &bytes) in self.sizes.iter().enumerate() {
            // A narrow page has no room for half a label beside the last size.
            let is_last = index > 0 && index + 1 == self.sizes.len();
            append!(
                out,
                r#"<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>"#,
                per_cent(self.x_of(index)),
                BOTTOM + 18.0,
                if is_last { "end" } else { "middle" },
                size(bytes)
            );
        }
    }

    /// A test's points, joined where sizes beside each other have a value.
    fn line(&self, test: &str, out: &mut String) {
        let mut before: Option<(usize, f64)> = None;
        for (index, &bytes) in self.sizes.iter().enumerate() {
            let cell = self.sweep.cell(test, bytes);
            let Some((cell, value)) = cell.and_then(|cell| Some((cell, cell.figure()?))) else {
                before = None;
                continue;
            };
            let (x, y) = (per_cent(self.x_of(index)), coordinate(self.y_of(value)));
            if let Some((from, last)) = before {
                append!(
                    out,
                    r#"<line class="sweep-line" x1="{}" y1="{}" x2="{x}" y2="{y}"/>"#,
                    per_cent(self.x_of(from)),
                    coordinate(self.y_of(last))
                );
            }
            append!(
                out,
                r#"<circle class="sweep-point" cx="{x}" cy="{y}" r="4"><title>{}</title></circle>"#,
                esc(&in_words(cell))
            );
            before = Some((index, value));
        }
    }
}

fn lines(
    view: &View<'_>,
    chart: &Chart<'_>,
    (name, heading, is_latency): (&str, &str, bool),
    out: &mut String,
) {
    let id = view.id(name);
    append!(
        out,
        r#"<section aria-labelledby="{id}"><h2 id="{id}">{heading}</h2><p class="lane-bar">"#
    );
    chart.key(out);
    append!(
        out,
        r#"</p><svg class="plot" height="{HEIGHT}" role="img" aria-label="{heading}">"#
    );
    chart.value_lines(is_latency, out);
    chart.size_labels(out);
    for (hue, test) in chart.tests.iter().enumerate() {
        append!(out, r#"<g class="h{hue}">"#);
        chart.line(test, out);
        *out += "</g>";
    }
    *out += "</svg></section>\n";
}
