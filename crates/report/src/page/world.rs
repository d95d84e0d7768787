//! A played world on the page: how old what players see is, how it went, and
//! what it cost.

use lagometer_results::World;

use super::markup::{esc, per_cent};
use super::scale::LogScale;
use super::view::View;
use super::world_course;
use crate::terminal::{facts, reach};
use crate::written::{count, milliseconds};

/// Appends the sections of a played world.
pub(crate) fn render(view: &View<'_>, world: &World, out: &mut String) {
    ages(view, world, out);
    world_course::render(view, world, out);
    append!(
        out,
        r#"<section class="world-facts" aria-labelledby="{id}"><h2 id="{id}">What it took</h2><div>"#,
        id = view.id("facts")
    );
    for (heading, facts) in facts(world) {
        append!(out, "<div><h3>{}</h3><dl>", esc(heading));
        for (name, value) in facts {
            append!(out, "<dt>{}</dt><dd>{}</dd>", esc(name), esc(&value));
        }
        *out += "</dl></div>";
    }
    *out += "</div></section>\n";
}

fn ages(view: &View<'_>, world: &World, out: &mut String) {
    append!(
        out,
        r#"<section class="ages" aria-labelledby="{id}"><h2 id="{id}">How old what players see is</h2>
<p class="note">The time since the simulation's time of the newest state a player has of another, over all players, all they see and all instants sampled. The bar reaches from the youngest to the oldest hundredth, the mark is the median.</p>
<table><thead><tr><th scope="col">Others</th><th scope="col" class="number">asked every</th><th scope="col" class="number">p50</th><th scope="col" class="number">p99</th><th scope="col" class="number">worst</th><th scope="col">ms</th><th scope="col" class="number">samples</th></tr></thead><tbody>"#,
        id = view.id("ages")
    );
    let seen = || world.tiers.iter().filter(|tier| tier.samples > 0);
    let scale = LogScale::covering(
        seen().flat_map(|tier| [tier.age_ms.min.max(1.0), tier.age_ms.p99]),
        10.0,
    );
    for (index, tier) in world.tiers.iter().enumerate() {
        let age = &tier.age_ms;
        append!(
            out,
            r#"<tr class="h{}"><th scope="row">{}</th><td class="number">{} ms</td>"#,
            index % 8,
            esc(&reach(world, tier)),
            milliseconds(tier.every_ms)
        );
        if tier.samples == 0 {
            *out += r#"<td colspan="5" class="none">nobody was seen at this distance</td></tr>"#;
            continue;
        }
        let (from, to) = (scale.position(age.min), scale.position(age.p99));
        append!(
            out,
            r#"<td class="number">{}</td><td class="number">{}</td><td class="number">{}</td><td><svg class="strip" height="14" role="img" aria-label="from {} to {} ms"><rect x="{}" width="{}" y="4" height="6"/><rect class="median" x="{}" width="3" y="0" height="14"/></svg></td><td class="number">{}</td></tr>"#,
            milliseconds(age.p50),
            milliseconds(age.p99),
            milliseconds(age.max),
            milliseconds(age.min),
            milliseconds(age.p99),
            per_cent(from),
            per_cent(to - from),
            per_cent(scale.position(age.p50)),
            count(tier.samples)
        );
    }
    *out += "</tbody></table></section>\n";
}
