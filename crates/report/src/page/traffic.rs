//! What each direction of each lane carried, where messages were not echoed, as a section
//! of the page.

use super::markup::esc;
use super::view::View;
use crate::traffic::{HEADINGS, cells, note, ways};

/// Appends the section, where there is anything for it.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let Some(first) = view.lanes().find_map(|(_, lane)| lane.traffic.as_ref()) else {
        return;
    };
    let id = view.id("traffic");
    append!(
        out,
        r#"<section class="lanes" aria-labelledby="{id}"><h2 id="{id}">Each direction</h2><p class="note">{}.</p><div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table><thead><tr><th scope="col">lane</th><th scope="col">way</th>"#,
        esc(&note(first))
    );
    for (heading, unit) in HEADINGS {
        append!(
            out,
            r#"<th scope="col" class="n">{heading} <small>{unit}</small></th>"#
        );
    }
    *out += "</tr></thead><tbody>";
    for (place, lane) in view.lanes() {
        for (way, flow) in ways(lane) {
            let look = view.look(place);
            append!(
                out,
                r#"<tr class="{}"><th scope="row"><span class="name">{}{}</span></th><td>{way}</td>"#,
                look.classes(),
                look.swatch(),
                esc(&lane.lane)
            );
            for cell in cells(flow) {
                append!(out, r#"<td class="n">{}</td>"#, esc(&cell));
            }
            *out += "</tr>";
        }
    }
    *out += "</tbody></table></div></section>\n";
}
