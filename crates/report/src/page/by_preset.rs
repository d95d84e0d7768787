//! A run that played several presets of each transport: the page has it once for each
//! preset, of which one is shown, and their figures side by side. What switches them
//! are radio buttons and the style sheet, so it needs no script.

use std::borrow::Cow;

use lagometer_results::Document;

use super::markup::esc;
use super::run;
use super::view::View;
use crate::by_preset::{self, figures, points};
use crate::written;

/// Presets that the style sheet can switch.
const MOST: usize = 3;

/// A document as the page has it: whole, or once for each preset.
pub(crate) struct Switched<'a> {
    name: Option<&'a str>,
    whole: &'a Document,
    presets: Vec<&'a str>,
    parts: Vec<Cow<'a, Document>>,
}

impl<'a> Switched<'a> {
    /// What there is to switch of a document with that name.
    pub(crate) fn of((name, whole): (Option<&'a str>, &'a Document)) -> Self {
        let mut presets = whole.presets();
        presets.truncate(MOST);
        let parts = match presets.len() {
            0 | 1 => vec![Cow::Borrowed(whole)],
            _ => presets
                .iter()
                .map(|preset| Cow::Owned(whole.with_preset(preset)))
                .collect(),
        };
        Self {
            name,
            whole,
            presets,
            parts,
        }
    }

    /// A view of each part, with places on the page from `index`.
    pub(crate) fn views(
        &self,
        index: &mut impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = View<'_>> {
        let parts = self.parts.iter().zip(index);
        parts.map(|(part, index)| View::of(part, index, self.name))
    }

    /// Appends the run, of which these are the views.
    pub(crate) fn render(&self, views: &[View<'_>], out: &mut String) {
        let [first, _, ..] = views else {
            for view in views {
                run::render(view, out);
            }
            return;
        };
        *out += r#"<div class="presets">"#;
        for place in 0..views.len() {
            append!(
                out,
                r#"<input type="radio" class="c{place}" name="{}" id="{}"{}>"#,
                first.id("preset"),
                first.id(&format!("preset-{place}")),
                if place == 0 { " checked" } else { "" }
            );
        }
        *out += r#"<div class="preset-bar" role="group" aria-label="Presets"><span>Presets</span>"#;
        for (place, preset) in self.presets.iter().enumerate() {
            append!(
                out,
                r#"<label class="l{place}" for="{}" title="{}">{}</label>"#,
                first.id(&format!("preset-{place}")),
                esc(meaning(preset)),
                esc(preset)
            );
        }
        *out += "</div>\n";
        *out += r#"<p class="note">Each preset has a verdict and bold figures of its own, each held to its error rate by itself.</p>"#;
        for (place, view) in views.iter().enumerate() {
            append!(out, r#"<div class="preset p{place}">"#);
            run::render(view, out);
            *out += "</div>\n";
        }
        *out += "</div>\n";
        self.side_by_side(first, out);
    }

    /// The table of all presets' figures.
    fn side_by_side(&self, view: &View<'_>, out: &mut String) {
        let limit_ms = view.about.limit_ms;
        let (figures, id) = (figures(limit_ms), view.id("by-preset"));
        let table = by_preset::of(self.whole, limit_ms);
        append!(
            out,
            r#"<section class="by-preset" aria-labelledby="{id}"><h2 id="{id}">Presets side by side</h2><p class="note">"#
        );
        for (place, preset) in self.presets.iter().enumerate() {
            let gap = if place > 0 { " " } else { "" };
            append!(
                out,
                "{gap}<em>{}</em>: {}.",
                esc(preset),
                esc(meaning(preset))
            );
        }
        *out += if table.is_judged {
            " ≈ is not told apart from the first preset, of all comparisons of this table together; \
             a share has its difference in points beneath, with ± half of that one's 95 % interval; \
             = are the same settings."
        } else {
            " Too little was played to tell presets apart; = are the same settings."
        };
        append!(
            out,
            r#"</p><div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table><thead><tr><th scope="col" rowspan="2">transport</th>"#
        );
        for figure in figures {
            append!(
                out,
                r#"<th scope="colgroup" colspan="{}" title="{}">{} <small>{}</small></th>"#,
                self.presets.len(),
                esc(&figure.meaning()),
                esc(&figure.heading()),
                figure.unit_label()
            );
        }
        *out += "</tr><tr>";
        for _ in figures {
            for preset in &self.presets {
                append!(out, r#"<th scope="col" class="n">{}</th>"#, esc(preset));
            }
        }
        *out += "</tr></thead><tbody>";
        for row in &table.rows {
            append!(out, r#"<tr><th scope="row">{}</th>"#, esc(row.family));
            for (place, figure) in figures.into_iter().enumerate() {
                for found in row.presets.iter().take(MOST) {
                    let found = found.as_ref();
                    let text = found.and_then(|found| found.written(place, figure));
                    let text = text.unwrap_or_else(|| written::NOTHING.to_owned());
                    let points = found.and_then(|found| points(figure, found, row.first));
                    let points = points.map(|points| format!("<small>{points}</small>"));
                    append!(
                        out,
                        r#"<td class="n">{text}{}</td>"#,
                        points.unwrap_or_default()
                    );
                }
            }
            *out += "</tr>";
        }
        *out += "</tbody></table></div></section>\n";
    }
}

/// What a preset is, in a few words.
fn meaning(preset: &str) -> &'static str {
    match preset {
        "default" => "the library as its documentation shows a beginner to use it",
        "game" => "what its maintainers advise for small messages at a steady rate",
        "tuned" => "what `lagometer tune` found with as many trials for each transport",
        _ => "",
    }
}
