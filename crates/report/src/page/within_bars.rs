//! The share of messages delivered within each limit: a bar for each lane on a
//! scale of nines, where 99 % and 99.9 % are as far apart as 90 % and 99 %.

use lagometer_results::{Lane, Milliseconds};

use super::markup::{esc, per_cent};
use super::scale::{nines, nines_ticks, tick_label};
use super::view::View;
use crate::figure::Figure;
use crate::written;

/// Shades in the style sheet, classes `s0` to `s7`, the fastest first.
const SHADES: usize = 8;

/// Appends the section.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let id = view.id("within");
    let limits = limits(view);
    append!(
        out,
        r#"<section class="within" aria-labelledby="{id}"><h2 id="{id}">Delivered in time</h2>
<p class="note">How much of all intended messages was echoed within each limit, lost messages counting as late. Longer is better, and the stronger the colour the sooner; each mark on the scale leaves a tenth of the late ones.</p>
<p class="shades">"#
    );
    for (index, limit) in limits.iter().enumerate() {
        append!(
            out,
            r#"<span><i class="s{}"></i>≤ {}</span> "#,
            index.min(SHADES - 1),
            tick_label(f64::from(*limit))
        );
    }
    append!(
        out,
        r#"</p><div class="bars-axis" aria-hidden="true"><span></span><svg class="plot" height="16">"#
    );
    let most = view.most_nines();
    for (at, label) in nines_ticks(most) {
        if label != "50" {
            append!(
                out,
                r#"<text class="tick" x="{}" y="12" text-anchor="{}">{label}</text>"#,
                per_cent(at / most),
                if at == 0.0 { "start" } else { "middle" }
            );
        }
    }
    append!(
        out,
        r#"<text class="tick" x="100%" y="12" text-anchor="end">all</text></svg><span class="number">≤ {} ms</span></div>"#,
        view.about.limit_ms
    );
    for group in &view.groups {
        if let Some(label) = group.label {
            append!(out, r#"<p class="group-name">{label}</p>"#);
        }
        for lane in &group.lanes {
            bar(view, lane, &limits, out);
        }
    }
    *out += "</section>\n";
}

/// Every limit any lane knows, shortest first.
fn limits(view: &View<'_>) -> Vec<u32> {
    let mut limits: Vec<u32> = view
        .lanes()
        .flat_map(|(_, lane)| lane.within.keys().map(|&Milliseconds(limit)| limit))
        .collect();
    limits.sort_unstable();
    limits.dedup();
    limits
}

fn bar(view: &View<'_>, lane: &Lane, limits: &[u32], out: &mut String) {
    let place = view.place(lane);
    let most = view.most_nines();
    let limit = view.about.limit_ms;
    let shown = Figure::Within(limit).of(lane);
    append!(
        out,
        r#"<div class="bar-row {}" data-lane="{place}"><span class="name">{}{}</span><svg class="plot" height="20" role="img" aria-label="{}"><rect class="track" width="100%" y="3" height="14"/>"#,
        view.look(place).classes(),
        view.look(place).swatch(),
        esc(&lane.lane),
        esc(&in_words(lane, limits)),
    );
    for (index, limit) in limits.iter().enumerate().rev() {
        let Some(&share) = lane.within.get(&Milliseconds(*limit)) else {
            continue;
        };
        append!(
            out,
            r#"<rect class="s{}" width="{}" y="3" height="14"><title>{}</title></rect>"#,
            index.min(SHADES - 1),
            per_cent(nines(share, lane.messages.intended) / most),
            esc(&format!(
                "{}: {} % within {limit} ms",
                lane.lane,
                written::share(share)
            ))
        );
    }
    if let Some(share) = shown {
        let at = per_cent(nines(share, lane.messages.intended) / most);
        append!(
            out,
            r#"<line class="at-limit" x1="{at}" x2="{at}" y1="0" y2="20"/>"#
        );
    }
    append!(
        out,
        r#"</svg><span class="number">{}</span></div>"#,
        shown.map_or(written::NOTHING.to_owned(), |share| written::share(share)
            + " %")
    );
}

fn in_words(lane: &Lane, limits: &[u32]) -> String {
    let shares: Vec<String> = limits
        .iter()
        .filter_map(|limit| {
            let share = lane.within.get(&Milliseconds(*limit))?;
            Some(format!("{} % within {limit} ms", written::share(*share)))
        })
        .collect();
    format!("{}: {}", lane.lane, shares.join(", "))
}
