//! A table of figures with rows for lanes, as a section of the page. On narrow screens it
//! breaks as the table of lanes does: each figure stands below its name.

use super::markup::esc;
use super::view::View;

/// What such a section shows.
pub(crate) struct FiguresByLane<'a> {
    /// What its anchor is made of.
    pub(crate) key: &'a str,
    pub(crate) title: &'a str,
    /// What the columns say, as a sentence without its capital and its full stop.
    pub(crate) note: String,
    /// Heading and unit of each column.
    pub(crate) headings: Vec<(String, String)>,
    /// The place of a row's lane in the document, and what stands in the columns.
    pub(crate) rows: Vec<(usize, Vec<String>)>,
}

/// With a capital.
fn as_sentence(note: &str) -> String {
    let mut letters = note.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

impl FiguresByLane<'_> {
    /// Appends the section.
    pub(crate) fn render(&self, view: &View<'_>, out: &mut String) {
        let (id, title) = (view.id(self.key), self.title);
        append!(
            out,
            r#"<section class="lanes" aria-labelledby="{id}"><h2 id="{id}">{title}</h2><p class="note">{}.</p><div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table style="--figures:{}"><thead><tr><th scope="col">lane</th>"#,
            esc(&as_sentence(&self.note)),
            self.headings.len()
        );
        for (heading, unit) in &self.headings {
            append!(
                out,
                r#"<th scope="col" class="n">{} <small>{}</small></th>"#,
                esc(heading),
                esc(unit)
            );
        }
        *out += "</tr></thead><tbody>";
        for (place, cells) in &self.rows {
            let look = view.look(*place);
            append!(
                out,
                r#"<tr class="{}"><th scope="row"><span class="name">{}{}</span></th>"#,
                look.classes(),
                look.swatch(),
                esc(&view.document.lanes[*place].lane)
            );
            for (cell, (heading, unit)) in cells.iter().zip(&self.headings) {
                append!(
                    out,
                    r#"<td class="n" data-of="{}">{}</td>"#,
                    esc(format!("{heading} {unit}").trim_end()),
                    esc(cell)
                );
            }
            *out += "</tr>";
        }
        *out += "</tbody></table></div></section>\n";
    }
}
