//! What the link did, drawn on the time axis of the ribbons: delay, loss, rate
//! and disturbances of each direction.

use lagometer_results::{DirectionImpairments, Disturbance, Impairments};

use super::band::{Band, COLUMNS, WIDTH};
use super::markup::{coordinate, esc, fine_per_cent, per_cent};
use super::scale::{LogScale, clock, tick_label, time_ticks};
use super::view::View;
use crate::written::milliseconds_with_unit;

/// Height of one row of the panel, without its gap.
pub(crate) const ROW: f64 = 34.0;
/// Gap between two rows.
const GAP: f64 = 8.0;
/// Height of the bars that show disturbances of one direction.
const BARS: f64 = 11.0;
/// Room for the labels of the time axis.
const AXIS: f64 = 18.0;

/// Labelled instants on the time axis of a wide page; the script chooses anew
/// for other widths.
const TIME_TICKS: usize = 10;

/// A row of the panel that shows one series of both directions.
#[derive(Clone, Debug)]
pub(crate) struct SeriesRow {
    /// What it shows, with its unit.
    pub(crate) name: &'static str,
    /// Top of the row.
    pub(crate) top: f64,
    /// The vertical axis.
    pub(crate) axis: Axis,
    /// Up and down.
    pub(crate) bands: [Band; 2],
}

/// A row's vertical axis.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Axis {
    /// Logarithmic.
    Log(LogScale),
    /// Square root from zero to this: small values stay visible beside large
    /// ones, and zero is zero.
    Root(f64),
}

impl Axis {
    /// The values at its ends.
    fn ends(self) -> [f64; 2] {
        match self {
            Self::Log(scale) => [scale.low, scale.high],
            Self::Root(most) => [0.0, most],
        }
    }

    /// Where `value` stands between 0 and 1.
    pub(crate) fn position(self, value: f64) -> f64 {
        match self {
            Self::Log(scale) => scale.position(value),
            Self::Root(most) => (value.max(0.0) / most).min(1.0).sqrt(),
        }
    }
}

impl SeriesRow {
    fn y(&self, value: f64) -> f64 {
        self.top + ROW - ROW * self.axis.position(value)
    }
}

/// The rows for what `network conditions` knows.
pub(crate) fn series_rows(impairments: &Impairments) -> Vec<SeriesRow> {
    let both = [&impairments.up, &impairments.down];
    let band = |of: fn(&DirectionImpairments) -> &[f64]| {
        both.map(|each| Band::along(each.step_s, of(each)))
    };
    let values = |bands: &[Band; 2]| -> Vec<f64> {
        bands
            .iter()
            .flat_map(|band| band.ranges.iter().flatten().map(|range| range.1))
            .collect()
    };
    let mut rows = Vec::new();
    let mut push = |name, bands: [Band; 2], axis: Axis| {
        let top = 4.0 + rows.len() as f64 * (ROW + GAP);
        rows.push(SeriesRow {
            name,
            top,
            axis,
            bands,
        });
    };
    let delay = band(|each| &each.delay_ms);
    let delays = values(&delay);
    if delays.iter().any(|&delay| delay > 0.0) {
        push(
            "delay",
            delay,
            Axis::Log(LogScale::covering(delays.into_iter(), 10.0)),
        );
    }
    let loss = band(|each| &each.loss_pct);
    let most = values(&loss).into_iter().fold(0.0, f64::max);
    if most > 0.0 {
        push("loss", loss, Axis::Root(most.clamp(0.01, 100.0)));
    }
    let rate = band(|each| &each.rate_kbit_per_s);
    let rates = values(&rate);
    // A rate that never changes is said in words, see [`constant_rate`].
    let most = rates.into_iter().fold(0.0, f64::max);
    if most > 0.0 && both.iter().any(|each| constant_rate(each).is_none()) {
        push("rate, Mbit/s", rate, Axis::Root(most));
    }
    rows
}

/// The rate of a direction that never changes, in kbit/s.
fn constant_rate(impairments: &DirectionImpairments) -> Option<f64> {
    let (first, rest) = impairments.rate_kbit_per_s.split_first()?;
    rest.iter()
        .all(|rate| (rate - first).abs() <= first.abs() * 1e-9)
        .then_some(*first)
}

/// Top of the bars of direction 0 (up) or 1 (down).
fn bars_top(rows: usize, direction: usize) -> f64 {
    4.0 + rows as f64 * (ROW + GAP) + direction as f64 * (BARS + 4.0)
}

/// Appends the panel with the time axis; the axis alone where the link's
/// truth is not known.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let Some(impairments) = &view.document.impairments else {
        append!(
            out,
            r#"<div class="truth"><div class="strip-name"></div><span></span><svg class="plot" height="{AXIS}">"#
        );
        time_axis(view, 0.0, out);
        *out += "</svg></div>";
        return;
    };
    let rows = series_rows(impairments);
    let bars_end = bars_top(rows.len(), 1) + BARS;
    *out += r#"<div class="truth"><div class="strip-name"><b>the link</b> <span class="way"><i class="up"></i>up <i class="down"></i>down</span>"#;
    *out += &legend(impairments);
    gutter(&rows, bars_end + AXIS, out);
    append!(
        out,
        r#"<svg class="plot" height="{}" role="img" aria-label="What the link did: delay, loss and disturbances over time, up and down">"#,
        bars_end + AXIS
    );
    backdrop(view, bars_end, out);
    for (index, row) in rows.iter().enumerate() {
        series(view, index, row, out);
    }
    for (direction, (name, impairments)) in [("up", &impairments.up), ("down", &impairments.down)]
        .into_iter()
        .enumerate()
    {
        let top = bars_top(rows.len(), direction);
        append!(out, r#"<g class="bars {name}">"#);
        for each in drawable(view, impairments) {
            bar(view, each, name, top, out);
        }
        *out += "</g>";
    }
    time_axis(view, bars_end, out);
    *out += "</svg></div>";
}

/// Appends a shade behind the plot for every outage and stall; bursts are too
/// many to shade.
pub(crate) fn backdrop(view: &View<'_>, height: f64, out: &mut String) {
    let Some(impairments) = &view.document.impairments else {
        return;
    };
    *out += r#"<g class="backdrop">"#;
    for each in [&impairments.up, &impairments.down]
        .into_iter()
        .flat_map(|each| drawable(view, each))
    {
        if each.kind != "burst" {
            let (start, width) = extent(view, each);
            append!(
                out,
                r#"<rect class="shade {}" x="{start}" width="{width}" y="0" height="{}"/>"#,
                kind_class(&each.kind),
                coordinate(height)
            );
        }
    }
    *out += "</g>";
}

/// Disturbances that reach into the run, with times that can be drawn.
pub(crate) fn drawable<'a>(
    view: &View<'_>,
    impairments: &'a DirectionImpairments,
) -> impl Iterator<Item = &'a Disturbance> {
    let span = view.span_s;
    impairments.disturbances.iter().filter(move |each| {
        each.start_s.is_finite()
            && each.end_s >= each.start_s
            && each.end_s >= 0.0
            && each.start_s <= span
    })
}

/// The class of a kind of disturbance; a kind unknown here is shown as such.
pub(crate) fn kind_class(kind: &str) -> &'static str {
    match kind {
        "outage" => "outage",
        "stall" => "stall",
        "burst" => "burst",
        _ => "other",
    }
}

fn extent(view: &View<'_>, each: &Disturbance) -> (String, String) {
    let start = (each.start_s / view.span_s).clamp(0.0, 1.0);
    let end = (each.end_s / view.span_s).clamp(start, 1.0);
    (fine_per_cent(start), fine_per_cent(end - start))
}

fn bar(view: &View<'_>, each: &Disturbance, direction: &str, top: f64, out: &mut String) {
    let (start, width) = extent(view, each);
    // Kinds differ in height as well as in colour.
    let height = match kind_class(&each.kind) {
        "outage" => BARS,
        "stall" => BARS * 0.7,
        _ => BARS * 0.4,
    };
    append!(
        out,
        r#"<rect class="bar {}" x="{start}" width="{width}" y="{}" height="{}"><title>{}</title></rect>"#,
        kind_class(&each.kind),
        coordinate(top + BARS - height),
        coordinate(height),
        esc(&format!(
            "{} {direction}, from {}, {} long",
            each.kind,
            clock(each.start_s, 0.5),
            milliseconds_with_unit((each.end_s - each.start_s) * 1e3)
        ))
    );
}

/// The labels of all rows, left of the plot.
fn gutter(rows: &[SeriesRow], height: f64, out: &mut String) {
    append!(
        out,
        r#"</div><svg class="gutter" height="{}" aria-hidden="true">"#,
        coordinate(height)
    );
    let mut label = |y: f64, text: &str| {
        append!(
            out,
            r#"<text class="tick" x="100%" dx="-6" y="{}" text-anchor="end">{text}</text>"#,
            coordinate(y)
        );
    };
    for row in rows {
        let [low, high] = row.axis.ends();
        label(row.y(low) + 1.0, &row_label(row.name, low));
        label(row.y(high) + 7.0, &row_label(row.name, high));
    }
    for (direction, name) in ["up", "down"].into_iter().enumerate() {
        label(bars_top(rows.len(), direction) + BARS - 1.0, name);
    }
    *out += "</svg>";
}

fn series(view: &View<'_>, index: usize, row: &SeriesRow, out: &mut String) {
    for value in row.axis.ends() {
        let at = coordinate(row.y(value));
        append!(
            out,
            r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>"#
        );
    }
    append!(
        out,
        r#"<svg class="stretch" viewBox="0 0 {WIDTH} {}" y="0" height="{}" preserveAspectRatio="none">"#,
        coordinate(row.top + ROW + 1.0),
        coordinate(row.top + ROW + 1.0),
    );
    for (direction, band) in ["up", "down"].into_iter().zip(&row.bands) {
        append!(
            out,
            r#"<path class="series {direction}" data-row="{index}" d="{}"/>"#,
            band.thinned(COLUMNS)
                .path(view.span_s, |value| row.y(value))
        );
    }
    append!(
        out,
        r#"</svg><text class="row-name" x="100%" dx="-4" y="{}" text-anchor="end">{}</text>"#,
        coordinate(row.top + 9.0),
        row.name
    );
}

fn row_label(row: &str, value: f64) -> String {
    match row {
        "delay" => tick_label(value),
        "loss" => format!("{} %", coordinate(value)),
        _ => coordinate(value / 1e3),
    }
}

fn legend(impairments: &Impairments) -> String {
    let mut out = String::from(r#"<span class="kinds">"#);
    for (kind, meaning) in [
        ("outage", "drops all"),
        ("stall", "holds all"),
        ("burst", "loses many"),
    ] {
        let mut both = impairments
            .up
            .disturbances
            .iter()
            .chain(&impairments.down.disturbances);
        if both.any(|each| each.kind == kind) {
            append!(
                out,
                r#"<span><i class="{kind}"></i>{kind} <em>{meaning}</em></span> "#
            );
        }
    }
    if let (Some(up), Some(down)) = (
        constant_rate(&impairments.up),
        constant_rate(&impairments.down),
    ) {
        append!(
            out,
            "<span>{} up, {} down <em>Mbit/s</em></span>",
            coordinate(up / 1e3),
            coordinate(down / 1e3)
        );
    }
    out + "</span>"
}

fn time_axis(view: &View<'_>, top: f64, out: &mut String) {
    append!(
        out,
        r#"<g class="time-axis" data-top="{}">"#,
        coordinate(top)
    );
    for (seconds, label) in time_ticks(0.0, view.span_s, TIME_TICKS) {
        let position = seconds / view.span_s;
        append!(
            out,
            r#"<text class="tick" x="{}" y="{}" text-anchor="{}">{label}</text>"#,
            per_cent(position),
            coordinate(top + 13.0),
            anchor(position)
        );
    }
    *out += "</g>";
}

/// Labels at the ends stay inside the plot.
pub(crate) fn anchor(position: f64) -> &'static str {
    if position < 0.02 {
        "start"
    } else if position > 0.98 {
        "end"
    } else {
        "middle"
    }
}
