//! Round trips over time: for each lane a ribbon from the smallest to the
//! largest, its freezes beneath, lost messages above, and behind it the
//! moments at which the link itself was in trouble.

use lagometer_results::{Episode, Freeze, Lane};

use super::band::{Band, COLUMNS, WIDTH};
use super::markup::{coordinate, esc, fine_per_cent};
use super::scale::{clock, tick_label};
use super::truth;
use super::view::View;
use crate::written::milliseconds_with_unit;

/// How a strip is divided, in pixels from its top; the script draws with the
/// same measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strip {
    /// Its height: fewer lanes have more room each.
    pub(crate) height: f64,
    /// Where the largest round trip of the axis is drawn.
    pub(crate) top: f64,
    /// Where the smallest round trip of the axis is drawn.
    pub(crate) bottom: f64,
}

impl Strip {
    /// The division for a page of so many lanes.
    pub(crate) fn among(lanes: usize) -> Self {
        let height = match lanes {
            0..=4 => 104.0,
            5..=8 => 80.0,
            _ => 62.0,
        };
        Self {
            height,
            top: 9.0,
            bottom: height - 10.0,
        }
    }
}

/// Appends the section.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let id = view.id("time");
    let with_truth = view.document.impairments.is_some();
    append!(
        out,
        r#"<section class="time" aria-labelledby="{id}"><h2 id="{id}">Round trips over time</h2>
<p class="note">Each ribbon spans the smallest to the largest round trip of a moment, on a logarithmic scale; <span class="key episode-key"></span> marks {}, <span class="key lost-key"></span> lost messages.{}{}</p>
<div class="zoombar js-only"><span class="zoomed" role="status"></span><button type="button" class="reset" hidden>Show the whole run</button><span class="hint">Drag across the ribbons to zoom in; with the keyboard, focus them and use ← → + − and 0.</span></div>
<div class="timeplot" tabindex="0" role="group" aria-label="Round trips over time, zoomable">"#,
        if view.lanes().any(|(_, lane)| lane.lag.is_some()) {
            "freezes"
        } else {
            "lag episodes"
        },
        if with_truth {
            " Beneath, on the same time axis, is what the link did to every lane alike."
        } else {
            ""
        },
        if view.document.seeds.len() > 1 {
            " Shown is the first seed."
        } else {
            ""
        },
    );
    let measures = Strip::among(view.lanes().count());
    for (place, lane) in view.lanes() {
        strip(view, place, lane, measures, out);
    }
    truth::render(view, out);
    *out += "</div></section>\n";
}

/// One lane's strip: its name, the axis beside it, its ribbon.
fn strip(view: &View<'_>, place: usize, lane: &Lane, measures: Strip, out: &mut String) {
    let Strip {
        height,
        top,
        bottom,
    } = measures;
    let y = |value: f64| bottom - (bottom - top) * view.rtt.position(value);
    append!(
        out,
        r#"<div class="strip {}" data-lane="{place}"><div class="strip-name"><b>{}</b> <span>{}</span></div>"#,
        view.look(place).classes(),
        esc(&lane.lane),
        in_short(view, lane),
    );
    let decades: Vec<(f64, String)> = view
        .rtt
        .decades()
        .into_iter()
        .map(|decade| (y(decade), tick_label(decade)))
        .filter(|(at, _)| *at > top + 3.0 && *at < bottom - 1.0)
        .collect();
    gutter(height, &decades, out);
    append!(
        out,
        r#"<svg class="plot" height="{height}" role="img" aria-label="{}">"#,
        esc(&format!(
            "{}: round trips over time, {}",
            lane.lane,
            in_short(view, lane)
        )),
    );
    truth::backdrop(view, height, out);
    for (at, _) in &decades {
        let at = coordinate(*at);
        append!(
            out,
            r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>"#
        );
    }
    ribbon(view, lane, height, y, out);
    append_marks(view, lane, height, out);
    *out += "</svg></div>";
}

/// The names of the axis' lines, left of the plot.
fn gutter(height: f64, decades: &[(f64, String)], out: &mut String) {
    append!(
        out,
        r#"<svg class="gutter" height="{height}" aria-hidden="true">"#
    );
    for (at, label) in decades {
        append!(
            out,
            r#"<text class="tick" x="100%" dx="-6" y="{}" dy="4" text-anchor="end">{label}</text>"#,
            coordinate(*at)
        );
    }
    *out += "</svg>";
}

/// The ribbon itself, and lost messages above it.
fn ribbon(view: &View<'_>, lane: &Lane, height: f64, y: impl Fn(f64) -> f64, out: &mut String) {
    let timeline = &lane.timeline;
    let band = Band::between(timeline.step_s, &timeline.min_ms, &timeline.max_ms).thinned(COLUMNS);
    append!(
        out,
        r#"<svg class="stretch" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none"><path class="ribbon" d="{}"/><path class="lost" d="{}"/></svg>"#,
        band.path(view.span_s, y),
        lost_path(&timeline.lost, timeline.step_s, view.span_s),
    );
}

/// What is marked beneath the ribbon.
fn append_marks(view: &View<'_>, lane: &Lane, height: f64, out: &mut String) {
    *out += r#"<g class="episodes">"#;
    for Mark {
        start_s,
        duration_ms,
        words,
    } in marks(view, lane)
    {
        let (start, width) = (start_s / view.span_s, duration_ms / 1e3 / view.span_s);
        append!(
            out,
            r#"<rect class="episode" x="{}" width="{}" y="{}" height="5"><title>{}</title></rect>"#,
            fine_per_cent(start.clamp(0.0, 1.0)),
            fine_per_cent(width.clamp(0.0, 1.0 - start.clamp(0.0, 1.0))),
            height - 6.0,
            words,
        );
    }
    *out += "</g>";
}

/// What is marked beneath a ribbon.
struct Mark {
    start_s: f64,
    duration_ms: f64,
    words: String,
}

/// The freezes of the seed that is shown; lag episodes of a document that knows
/// no freezes.
fn marks(view: &View<'_>, lane: &Lane) -> Vec<Mark> {
    let mark = |start_s, duration_ms, words| Mark {
        start_s,
        duration_ms,
        words,
    };
    let all: Vec<(Option<u64>, Mark)> = match &lane.lag {
        Some(lag) => lag
            .freezes
            .iter()
            .map(|each| {
                let words = freeze_in_words(each);
                (each.seed, mark(each.start_s, each.duration_ms, words))
            })
            .collect(),
        None => lane
            .episodes
            .iter()
            .map(|each| {
                let words = episode_in_words(each);
                (each.seed, mark(each.start_s, each.duration_ms, words))
            })
            .collect(),
    };
    all.into_iter()
        .filter(|&(seed, _)| is_of_first_seed(view, seed))
        .map(|(_, mark)| mark)
        .filter(|mark| mark.start_s.is_finite() && mark.duration_ms.is_finite())
        .collect()
}

/// The timeline is that of the first seed, and so must be what is marked in it.
pub(crate) fn is_of_first_seed(view: &View<'_>, seed: Option<u64>) -> bool {
    seed.is_none_or(|seed| seed == view.document.seed)
}

/// `Frozen from 3:06.2 for 412 ms, recovered 120 ms after the disturbance`.
pub(crate) fn freeze_in_words(freeze: &Freeze) -> String {
    let mut words = format!(
        "Frozen from {} for {}{}",
        clock(freeze.start_s, 0.5),
        if freeze.over { "" } else { "at least " },
        milliseconds_with_unit(freeze.duration_ms),
    );
    match (freeze.recovery_first_ms, freeze.recovery_last_ms) {
        _ if !freeze.over => {}
        (Some(first), Some(last)) if first > last => append!(
            words,
            ", recovered {} after the first disturbance and {} after the last",
            milliseconds_with_unit(first),
            milliseconds_with_unit(last)
        ),
        (Some(first), _) => append!(
            words,
            ", recovered {} after the disturbance",
            milliseconds_with_unit(first)
        ),
        (None, _) => {}
    }
    words
}

/// `from 3:06.2, 412 ms long, worst 590 ms, 3 lost, recovered in 120 ms`.
pub(crate) fn episode_in_words(episode: &Episode) -> String {
    let mut words = format!(
        "Lag from {}, {} long, {} messages late",
        clock(episode.start_s, 0.5),
        milliseconds_with_unit(episode.duration_ms),
        episode.messages,
    );
    if let Some(worst) = episode.worst_ms {
        append!(words, ", worst {}", milliseconds_with_unit(worst));
    }
    if episode.lost > 0 {
        append!(words, ", {} lost", episode.lost);
    }
    if let Some(recovery) = episode.recovery_ms {
        append!(
            words,
            ", recovered {} after the disturbance",
            milliseconds_with_unit(recovery)
        );
    }
    words
}

/// The words beside a strip's name, of the seed that the strip shows.
fn in_short(view: &View<'_>, lane: &Lane) -> String {
    let rtt = lane
        .per_seed
        .first()
        .map_or(&lane.rtt_ms, |seed| &seed.rtt_ms);
    let lags = marks(view, lane).len();
    if lane.messages.delivered == 0 {
        return "nothing arrived".to_owned();
    }
    let lags = match lags {
        0 => "no freeze".to_owned(),
        1 => "1 freeze".to_owned(),
        many => format!("{many} freezes"),
    };
    match rtt.max {
        Some(worst) => format!("{lags}, worst {}", milliseconds_with_unit(worst)),
        None => format!("{lags}, some lost"),
    }
}

/// A tick at the top for every column in which messages were lost.
fn lost_path(lost: &[u32], step_s: f64, span_s: f64) -> String {
    let joined = lost.len().div_ceil(COLUMNS).max(1);
    let mut data = String::new();
    for (index, chunk) in lost.chunks(joined).enumerate() {
        if chunk.iter().any(|&lost| lost > 0) {
            let x = (index as f64 + 0.5) * joined as f64 * step_s / span_s * WIDTH;
            append!(data, "M{} 1v5", coordinate(x.min(WIDTH)));
        }
    }
    data
}
