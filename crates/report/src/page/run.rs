//! One run on the page: who it is, its verdict, its warnings, its charts in
//! the order in which they answer questions.

use super::markup::esc;
use super::percentile_curves::{self, Curve};
use super::view::View;
use super::{
    bottleneck, bulk, capacity, cost, details, echo, embedded, lane_table, properties, ribbon,
    scatter, sweep, traffic, trust, tune, within_bars, world, worlds,
};
use crate::budget;
use crate::capacity::by_players;
use crate::trust::invalid;

/// Appends the run.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let most = view.most_nines();
    let curves: Vec<Curve> = view
        .document
        .lanes
        .iter()
        .map(|lane| percentile_curves::curve(lane, most))
        .collect();
    append!(out, r#"<article class="run" id="{}">"#, view.id("top"));
    header(view, out);
    verdict(view, out);
    if let Some(found) = &view.document.echo {
        echo::render(view, found, out);
    }
    if let Some(found) = &view.document.sweep {
        sweep::render(view, found, out);
    }
    if let Some(played) = &view.document.world {
        world::render(view, played, out);
    }
    if by_players(&view.document.worlds) {
        capacity::render(view, &view.document.worlds, out);
    } else {
        worlds::render(view, &view.document.worlds, out);
    }
    if let Some(found) = &view.document.tune {
        tune::render(view, found, out);
    } else if view.document.lanes.is_empty() && is_laneless(view) {
        // There are no lanes to speak of.
    } else if view.document.lanes.iter().any(|lane| lane.bulk.is_some()) {
        bulk::render(view, out);
    } else if view.groups.is_empty() {
        *out += r#"<p class="verdict">No lane was measured.</p>"#;
        lane_table::render(view, out);
    } else {
        lane_bar(view, out);
        lane_table::render(view, out);
        traffic::render(view, out);
        ribbon::render(view, out);
        percentile_curves::render(view, &curves, out);
        within_bars::render(view, out);
        scatter::render(view, out);
        cost::render(view, out);
        bottleneck::render(view, out);
    }
    properties::render(view, out);
    trust::render(view, out);
    details::render(view, out);
    append!(
        out,
        "<script type=\"application/json\" class=\"data\">{}</script></article>",
        embedded::data(view, &curves)
    );
}

/// Whether the run was not one of lanes.
fn is_laneless(view: &View<'_>) -> bool {
    let document = view.document;
    document.echo.is_some()
        || document.sweep.is_some()
        || document.world.is_some()
        || !document.worlds.is_empty()
}

/// The graph that gave the project its name: good, late and lost moments.
const MARK: &str = r#"<svg class="mark" viewBox="0 0 46 20" aria-hidden="true"><path class="on-time" d="M1 20v-6h3v6zM5 20v-7h3v7zM9 20v-6h3v6zM13 20v-8h3v8zM33 20v-7h3v7zM37 20v-6h3v6zM41 20v-7h3v7z"/><path class="late" d="M17 20V8h3v12zM25 20V4h3v16zM29 20V9h3v11z"/><path class="gone" d="M21 20V0h3v20z"/></svg>"#;

fn header(view: &View<'_>, out: &mut String) {
    let about = &view.about;
    let heading = match &about.network {
        Some(network) => format!(
            "{} <span>on</span> {}",
            esc(&about.experiment),
            esc(network)
        ),
        None => esc(&about.experiment).to_string(),
    };
    let name = view
        .name
        .map_or_else(String::new, |name| format!("<span>{}: </span>", esc(name)));
    let lanes = view.document.lanes.len();
    append!(
        out,
        r#"<header><p class="brand">{MARK} Lagometer</p><h1>{name}{heading}</h1>"#
    );
    if let Some(summary) = &about.summary {
        append!(out, r#"<p class="summary">{}</p>"#, esc(summary));
    }
    *out += r#"<ul class="facts">"#;
    for fact in &about.conditions {
        append!(out, "<li>{}</li>", esc(fact));
    }
    append!(
        out,
        "{}<li>{}</li></ul>",
        match lanes {
            0 => String::new(),
            1 => "<li>1 lane</li>".to_owned(),
            many => format!("<li>{many} lanes</li>"),
        },
        esc(&view.document.started.replace('T', " ").replace('Z', " UTC"))
    );
    if let Some(replay) = &about.replay {
        append!(
            out,
            r#"<div class="replay"><span>Play it again</span><code>{}</code><button type="button" class="copy js-only">Copy</button></div>"#,
            esc(replay)
        );
    }
    *out += "</header>\n";
}

fn verdict(view: &View<'_>, out: &mut String) {
    let document = view.document;
    if let Some(words) = invalid(document) {
        append!(
            out,
            r#"<div class="warning invalid" role="alert"><b>Not valid.</b> {}</div>"#,
            esc(&words)
        );
    }
    if let Some(verdict) = &document.verdict {
        append!(out, r#"<p class="verdict">{}</p>"#, esc(verdict));
    }
    if document.partial {
        *out += r#"<div class="warning"><b>The run was cut short.</b> All figures cover what was played until then.</div>"#;
    }
    for warning in &document.warnings {
        append!(
            out,
            r#"<div class="warning"><b>{}</b> {}{}</div>"#,
            esc(&warning.what),
            esc(&warning.why),
            if warning.mend.is_empty() {
                String::new()
            } else {
                format!(r#" <span class="mend">→ {}</span>"#, esc(&warning.mend))
            }
        );
    }
    budgets(view, out);
}

fn budgets(view: &View<'_>, out: &mut String) {
    let budgets = &view.document.budgets;
    if budgets.is_empty() {
        return;
    }
    *out += r#"<dl class="budgets">"#;
    for limit in budget::by_limit(budgets) {
        let (met, open, missed) = (&limit.met, limit.undecided.len(), limit.missed.len());
        let by = match met.as_slice() {
            [] => "met by none".to_owned(),
            [only] => format!("met by {only} alone"),
            [..] if met.len() <= 5 => format!("met by {}", met.join(", ")),
            [..] => format!("met by {} lanes", met.len()),
        };
        let (class, outcome) = match (met.len(), open, missed) {
            (_, 0, 0) => ("ok", "met by every lane".to_owned()),
            (0, 0, _) => ("bad", "missed by every lane".to_owned()),
            (_, 0, missed) => ("", format!("{by}, missed by {missed}")),
            (_, open, 0) => ("", format!("{by}, not decided for {open}")),
            (_, open, missed) => (
                "",
                format!("{by}, missed by {missed}, not decided for {open}"),
            ),
        };
        append!(
            out,
            r#"<div class="{class}"><dt>Budget: {}</dt><dd>{}</dd></div>"#,
            esc(&limit.asked),
            esc(&outcome)
        );
    }
    *out += "</dl>";
}

/// The lanes as buttons that hide and show them everywhere; a legend without
/// the script.
fn lane_bar(view: &View<'_>, out: &mut String) {
    *out += r#"<div class="lane-bar" role="group" aria-label="Lanes shown">"#;
    for (place, lane) in view.lanes() {
        append!(
            out,
            r#"<button type="button" class="lane-button {}" data-toggle="{place}" aria-pressed="true">{}{}</button>"#,
            view.look(place).classes(),
            view.look(place).swatch(),
            esc(&lane.lane)
        );
    }
    *out += r#"<span class="choices js-only"><button type="button" data-choose="all">all</button>"#;
    if view.groups.len() > 1 {
        for (group, name) in view.groups.iter().zip(["reliable", "unreliable", "others"]) {
            let places: Vec<String> = group
                .lanes
                .iter()
                .map(|lane| view.place(lane).to_string())
                .collect();
            let name = match group.lanes[0]
                .properties
                .as_ref()
                .map(|properties| properties.reliable)
            {
                Some(true) => "reliable",
                Some(false) => "unreliable",
                None => name,
            };
            append!(
                out,
                r#"<button type="button" data-choose="{}">{name}</button>"#,
                places.join(" ")
            );
        }
    }
    *out += r#"<button type="button" data-choose="">none</button></span></div>"#;
    out.push('\n');
}
