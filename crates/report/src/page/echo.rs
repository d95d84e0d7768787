//! An echo run on the page: its figures, its rate over time, the placements
//! that were tried.

use lagometer_results::Echo;

use super::markup::{coordinate, esc, per_cent};
use super::view::View;
use crate::instruments::echo::facts;
use crate::written;

/// Height of the chart.
const HEIGHT: f64 = 180.0;

/// Appends the sections.
pub(crate) fn render(view: &View<'_>, echo: &Echo, out: &mut String) {
    let id = view.id("echo");
    append!(
        out,
        r#"<section class="echo" aria-labelledby="{id}"><h2 id="{id}">Echo</h2><div class="scroll"><table><tbody>"#
    );
    for (name, value) in facts(echo) {
        append!(
            out,
            r#"<tr><th scope="row">{}</th><td>{}</td></tr>"#,
            esc(name),
            esc(&value)
        );
    }
    *out += "</tbody></table></div></section>\n";
    tried(view, echo, out);
    series(view, echo, out);
}

/// The placements that were tried, a bar each.
fn tried(view: &View<'_>, echo: &Echo, out: &mut String) {
    let most = echo
        .placement
        .tried
        .iter()
        .map(|trial| trial.rate)
        .fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let id = view.id("placements");
    append!(
        out,
        r#"<section class="within" aria-labelledby="{id}"><h2 id="{id}">Placements</h2><p class="note">What each placement of the two ends gave when it was tried for a moment. The best was taken.</p>"#
    );
    for trial in &echo.placement.tried {
        let cpus = match (trial.local_cpu, trial.remote_cpu) {
            (Some(local), Some(remote)) => format!(" ({local}, {remote})"),
            (Some(local), None) => format!(" ({local})"),
            _ => String::new(),
        };
        append!(
            out,
            r#"<div class="bar-row"><span class="name">{}</span><svg class="plot" height="20" role="img" aria-label="{} echoes each second"><rect class="track" width="100%" y="3" height="14"/><rect class="s1" width="{}" y="3" height="14"/></svg><span class="number">{}</span></div>"#,
            esc(&format!("{}{cpus}", trial.name)),
            trial.rate.round(),
            per_cent((trial.rate / most).clamp(0.0, 1.0)),
            written::count(trial.rate.max(0.0).round() as u64)
        );
    }
    *out += "</section>\n";
}

/// Echoes each second, over time.
fn series(view: &View<'_>, echo: &Echo, out: &mut String) {
    let most = echo.series.iter().copied().fold(0.0, f64::max);
    if echo.series.len() < 2 || most <= 0.0 {
        return;
    }
    let id = view.id("rate");
    append!(
        out,
        r#"<section aria-labelledby="{id}"><h2 id="{id}">Echoes each second</h2><p class="note">Step by step; the top of the chart is {} a second, the bottom none.</p><svg class="plot" height="{HEIGHT}" role="img" aria-label="Echoes each second over time">"#,
        written::count(most.round() as u64)
    );
    let width = 1.0 / echo.series.len() as f64;
    for (index, rate) in echo.series.iter().enumerate() {
        let share = if rate.is_finite() {
            (rate / most).clamp(0.0, 1.0)
        } else {
            0.0
        };
        append!(
            out,
            r#"<rect class="s2" x="{}" width="{}" y="{}" height="{}"><title>{}</title></rect>"#,
            per_cent(index as f64 * width),
            per_cent(width * 0.96),
            coordinate(HEIGHT * (1.0 - share)),
            coordinate(HEIGHT * share),
            esc(&format!(
                "{:.2} s: {} echoes/s",
                index as f64 * echo.step_s,
                written::count(rate.max(0.0).round() as u64)
            ))
        );
    }
    *out += "</svg></section>\n";
}
