//! What a player's hour takes and costs over each lane, as a section of the page.

use super::markup::esc;
use super::view::View;
use crate::cost::{cells, headings, note};

/// Appends the section, where there is anything for it.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let Some(first) = view.lanes().find_map(|(_, lane)| lane.cost.as_ref()) else {
        return;
    };
    let id = view.id("cost");
    append!(
        out,
        r#"<section class="lanes" aria-labelledby="{id}"><h2 id="{id}">What a player costs</h2><p class="note">{}.</p><div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table><thead><tr><th scope="col">lane</th>"#,
        esc(&note(first))
    );
    for (heading, unit) in headings(first) {
        append!(
            out,
            r#"<th scope="col" class="n">{} <small>{}</small></th>"#,
            esc(&heading),
            esc(&unit)
        );
    }
    *out += "</tr></thead><tbody>";
    for (place, lane) in view.lanes() {
        let Some(cost) = &lane.cost else { continue };
        let look = view.look(place);
        append!(
            out,
            r#"<tr class="{}"><th scope="row"><span class="name">{}{}</span></th>"#,
            look.classes(),
            look.swatch(),
            esc(&lane.lane)
        );
        for cell in cells(cost) {
            append!(out, r#"<td class="n">{}</td>"#, esc(&cell));
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div></section>\n";
}
