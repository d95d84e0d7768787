//! One self-contained HTML page for one run or several: opens from disk,
//! offline, and is whole without its script, which only adds hovering, hiding
//! lanes and zooming in time.
//!
//! Charts are SVG drawn here. Their geometry stretches with the page while
//! texts and lines keep their size: positions along an axis are percentages,
//! and curves stand in nested drawings that are stretched without scaling
//! their strokes.

mod band;
mod beside;
mod bottleneck;
mod bulk;
mod by_players;
mod by_preset;
mod capacity;
mod cost;
mod details;
mod echo;
mod embedded;
mod figures_by_lane;
mod lane_table;
mod markup;
mod palette;
mod percentile_curves;
mod properties;
mod ribbon;
mod run;
mod scale;
mod scatter;
mod sweep;
mod traffic;
mod trend;
mod trust;
mod truth;
mod tune;
mod view;
mod within_bars;
mod world;
mod world_course;
mod worlds;

use base64::Engine;
use lagometer_results::Document;
use sha2::{Digest, Sha256};

use self::by_preset::Switched;
pub(crate) use self::markup::{coordinate, esc};
pub(crate) use self::percentile_curves::{Curve, curve};
pub(crate) use self::scale::{LogScale, most_nines, nines_ticks, tick_label};
use self::view::View;

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("page/script/chart.js"),
    include_str!("page/script/tooltip.js"),
    include_str!("page/script/lanes.js"),
    include_str!("page/script/time.js"),
    include_str!("page/script/curves.js"),
    include_str!("page/script/page.js"),
    "})();\n"
);

/// The documents as one HTML page, in the order given.
///
/// The page loads nothing and runs no script but its own, which its content
/// security policy pins by hash; every text of a document is escaped.
#[must_use]
pub fn page(documents: &[Document]) -> String {
    page_of(documents.iter().map(|document| (None, document)))
}

/// As [`page`], each document with a name that distinguishes it from the others.
#[must_use]
pub fn named_page(documents: &[(&str, &Document)]) -> String {
    page_of(
        documents
            .iter()
            .map(|&(name, document)| (Some(name), document)),
    )
}

fn page_of<'a>(documents: impl Iterator<Item = (Option<&'a str>, &'a Document)>) -> String {
    let runs: Vec<Switched<'_>> = documents.map(Switched::of).collect();
    let mut index = 0..;
    let views: Vec<Vec<View<'_>>> = runs
        .iter()
        .map(|run| run.views(&mut index).collect())
        .collect();
    let firsts: Vec<&View<'_>> = views.iter().filter_map(|views| views.first()).collect();
    let title = match firsts.as_slice() {
        [only] => only.about.title(),
        many => format!("{} runs", many.len()),
    };
    let mut out = format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{} · Lagometer</title>
<style>
{STYLE}</style>
</head>
<body>
"#,
        policy(),
        esc(&title)
    );
    if firsts.len() > 1 {
        contents(&firsts, &mut out);
    }
    if let [first, second] = firsts.as_slice()
        && let (Some(name), Some(other_name)) = (first.name, second.name)
    {
        let documents = [first.document, second.document];
        beside::render([name, other_name], documents, &mut out);
    }
    for (run, views) in runs.iter().zip(&views) {
        run.render(views, &mut out);
    }
    append!(
        out,
        r#"<footer>Made by Lagometer {}.</footer>
<div class="tooltip" role="status" hidden></div>
<script>{SCRIPT}</script>
</body>
</html>
"#,
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// No network at all, styles as written, and the one script whose hash this is.
fn policy() -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

/// The runs of the page, each with its verdict.
fn contents(views: &[&View<'_>], out: &mut String) {
    *out += r#"<nav class="contents" aria-label="Runs"><h1>Runs</h1><ol>"#;
    for view in views {
        append!(
            out,
            r##"<li><a href="#{}">{}</a> <span>{}</span><p>{}</p></li>"##,
            view.id("top"),
            esc(&view.title()),
            esc(&view.about.conditions.join(" · ")),
            esc(view.document.verdict.as_deref().unwrap_or(""))
        );
    }
    *out += "</ol></nav>\n";
}
