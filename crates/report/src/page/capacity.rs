//! Worlds with few players and with many on the page: where they saturate, drawn
//! and in figures.

use lagometer_results::{Capacity, World};

use super::by_players::{self, Drawn};
use super::markup::esc;
use super::palette::Look;
use super::view::View;
use crate::capacity::{FIGURES, Figure, nearest_tier};
use crate::terminal::reach;

/// Appends the section of one document's `worlds`.
pub(crate) fn render(view: &View<'_>, worlds: &[World], out: &mut String) {
    let curves = Capacity::curves(worlds);
    let several = curves.len() > 1;
    let drawn: Vec<Drawn<'_>> = curves
        .into_iter()
        .enumerate()
        .map(|(nth, curve)| Drawn {
            name: if several { curve.path() } else { String::new() },
            look: look(nth),
            curve,
        })
        .collect();
    append!(
        out,
        r#"<section class="capacity" aria-labelledby="{id}"><h2 id="{id}">Where it saturates</h2>"#,
        id = view.id("capacity")
    );
    charts(&drawn, out);
    figures(
        &drawn,
        nearest_tier(&worlds.iter().collect::<Vec<_>>()),
        out,
    );
    *out += "</section>\n";
}

/// Appends what there is to know of the curves, and a chart of each figure with
/// all of them.
pub(crate) fn charts(drawn: &[Drawn<'_>], out: &mut String) {
    let worlds: Vec<&World> = drawn
        .iter()
        .flat_map(|each| each.curve.steps.iter().copied())
        .collect();
    let Some(first) = worlds.first() else {
        return;
    };
    let tier = nearest_tier(&worlds);
    // One alone is the page's verdict already.
    for each in drawn.iter().filter(|each| !each.name.is_empty()) {
        append!(
            out,
            r#"<p class="saturates {}">{}<b>{}</b>: {}.</p>"#,
            each.look.classes(),
            each.look.swatch(),
            esc(&each.name),
            esc(&each.curve.clause())
        );
    }
    append!(
        out,
        r#"<p class="note">Each mark is a world of its own with so many players: filled where all received each other's state as often as they asked, hollow where something was saturated. {} The bottleneck is looked for in the order in which one thing causes another: the generator, which would measure itself; the gateway's processor; its tick; the path to players; its queues; the game server's frames; players and connections; windows.{}</p><div class="trends">"#,
        if drawn.iter().any(|each| each.curve.saturated().is_some()) {
            "The band lies between the most that were carried and the fewest beyond that were not."
        } else {
            "Nothing was, so there is no band."
        },
        match first.tiers.len() {
            0 | 1 => String::new(),
            _ => format!(
                " Ages are those of others {}.",
                esc(&reach(first, &first.tiers[tier]))
            ),
        }
    );
    for figure in &FIGURES {
        by_players::render(figure, tier, drawn, out);
    }
    *out += "</div>";
}

/// How the curve of that place looks.
pub(crate) const fn look(place: usize) -> Look {
    Look {
        hue: place % 8,
        pattern: place % 5,
        hollow: false,
    }
}

/// The same in figures, a row for each world, and its bottleneck.
fn figures(drawn: &[Drawn<'_>], tier: usize, out: &mut String) {
    let worlds = || drawn.iter().flat_map(|each| each.curve.steps.iter());
    let shown: Vec<&Figure> = FIGURES
        .iter()
        .filter(|figure| worlds().any(|world| (figure.of)(world, tier).is_some()))
        .collect();
    *out += r#"<div class="scroll"><table><thead><tr><th scope="col" class="number">players</th><th scope="col">sustained</th>"#;
    for figure in &shown {
        append!(
            out,
            r#"<th scope="col" class="number">{}<br>{}</th>"#,
            esc(figure.heading),
            esc(figure.unit)
        );
    }
    let any_saturated = worlds().any(|world| !world.is_carried());
    if any_saturated {
        *out += r#"<th scope="col">bottleneck</th>"#;
    }
    *out += "</tr></thead>";
    for each in drawn {
        *out += "<tbody>";
        if !each.name.is_empty() {
            append!(
                out,
                r#"<tr><th scope="rowgroup" colspan="{}" class="{}">{}{}</th></tr>"#,
                shown.len() + 3,
                each.look.classes(),
                each.look.swatch(),
                esc(&each.name)
            );
        }
        for world in &each.curve.steps {
            append!(
                out,
                r#"<tr><th scope="row" class="number">{}</th><td class="{}</td>"#,
                world.players.asked,
                if world.is_carried() {
                    r#"good">yes"#
                } else {
                    r#"bad">no"#
                }
            );
            for figure in &shown {
                append!(
                    out,
                    r#"<td class="number">{}</td>"#,
                    esc(&figure.cell(world, tier))
                );
            }
            if any_saturated {
                let bottleneck = world.bottleneck.as_deref().unwrap_or_default();
                append!(out, "<td>{}</td>", esc(bottleneck));
            }
            *out += "</tr>";
        }
        *out += "</tbody>";
    }
    *out += "</table></div>";
}
