//! Two documents of several worlds on one page: their curves in the same
//! charts, and every cell that both have in figures.

use lagometer_results::{Capacity, Document};

use super::by_players::Drawn;
use super::capacity::{charts, look};
use super::markup::esc;
use crate::beside::{Beside, carried, cell, compared, worlds_of};
use crate::capacity::by_players;

/// Appends the section of two documents; nothing unless both are of worlds,
/// and one of them of several.
pub(crate) fn render(names: [&str; 2], documents: [&Document; 2], out: &mut String) {
    let [first, second] = documents.map(worlds_of);
    if first.is_empty() || second.is_empty() || first.len() + second.len() < 3 {
        return;
    }
    let beside = Beside::of(first, second);
    *out += r#"<section class="capacity" id="beside" aria-labelledby="beside-heading"><h2 id="beside-heading">Beside each other</h2>"#;
    if let Some(words) = carried(names, documents) {
        append!(out, r#"<p class="verdict">{}</p>"#, esc(&words));
    }
    if documents
        .iter()
        .all(|document| by_players(&document.worlds))
    {
        charts(&drawn(names, documents), out);
    }
    figures(names, &beside, out);
    *out += "</section>\n";
}

/// The curves of both.
fn drawn<'a>(names: [&str; 2], documents: [&'a Document; 2]) -> Vec<Drawn<'a>> {
    let mut drawn = Vec::new();
    for (name, document) in names.into_iter().zip(documents) {
        for curve in Capacity::curves(&document.worlds) {
            let path = curve.path();
            drawn.push(Drawn {
                name: if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name}, {path}")
                },
                look: look(drawn.len()),
                curve,
            });
        }
    }
    drawn
}

/// Two rows for every cell that both have.
fn figures(names: [&str; 2], beside: &Beside<'_>, out: &mut String) {
    let figures = compared(&beside.pairs);
    if !beside.pairs.is_empty() {
        *out += r#"<div class="scroll"><table><thead><tr><th scope="col"></th><th scope="col"></th><th scope="col">sustained</th>"#;
        for figure in &figures {
            let [heading, unit] = &figure.heading;
            append!(
                out,
                r#"<th scope="col" class="number">{}<br>{}</th>"#,
                esc(heading),
                esc(unit)
            );
        }
        *out += "</tr></thead>";
    }
    for &pair in &beside.pairs {
        let cells: Vec<_> = figures.iter().map(|figure| figure.cells(pair)).collect();
        *out += "<tbody>";
        for (nth, world) in pair.into_iter().enumerate() {
            *out += "<tr>";
            if nth == 0 {
                append!(
                    out,
                    r#"<th scope="rowgroup" rowspan="2">{}</th>"#,
                    esc(&cell(world))
                );
            }
            append!(
                out,
                r#"<th scope="row">{}</th><td class="{}</td>"#,
                esc(names[nth]),
                if world.is_carried() {
                    r#"good">yes"#
                } else {
                    r#"bad">no"#
                }
            );
            for figure in &cells {
                let (text, is_better) = &figure[nth];
                let class = if *is_better { "number good" } else { "number" };
                append!(out, r#"<td class="{class}">{}</td>"#, esc(text));
            }
            *out += "</tr>";
        }
        *out += "</tbody>";
    }
    if !beside.pairs.is_empty() {
        *out += "</table></div>";
    }
    for (name, alone) in names.into_iter().zip(&beside.alone) {
        let cells: Vec<String> = alone.iter().map(|world| cell(world)).collect();
        if !cells.is_empty() {
            append!(
                out,
                r#"<p class="note">Only in {}: {}.</p>"#,
                esc(name),
                esc(&cells.join("; "))
            );
        }
    }
}
