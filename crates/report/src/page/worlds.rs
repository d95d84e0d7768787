//! Several worlds on the page: how old what players see of each other is, by
//! transport and network, as curves and in figures.

use lagometer_results::{World, WorldTier};
use lagometer_stats::{Distribution, Quantile, in_millis, nanos};

use super::markup::{coordinate, esc, per_cent};
use super::palette::Look;
use super::scale::{LogScale, nines_ticks, tick_label};
use super::view::View;
use crate::by_network::{OfNetwork, by_network, down_each, transport, transports};
use crate::terminal::reach;
use crate::written::{self, milliseconds};

/// Height of one panel, and where its plot ends at the bottom.
const HEIGHT: f64 = 236.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 212.0;

/// Points of a curve.
const POINTS: usize = 160;

/// How far into the tail a panel looks, in nines; less where there are fewer
/// samples.
const MOST_NINES: f64 = 4.0;

/// Ages below this share of all, a fifth, may leave the panel.
const YOUNGEST_NINES: f64 = 0.1;

/// Samples beyond a point of a curve that make it more than chance.
const SAMPLES_BEYOND: f64 = 10.0;

/// Appends the sections.
pub(crate) fn render(view: &View<'_>, worlds: &[World], out: &mut String) {
    let Some(first) = worlds.first() else {
        return;
    };
    let networks = by_network(worlds);
    let names = transports(worlds);
    append!(
        out,
        r#"<section class="world-ages" aria-labelledby="{id}"><h2 id="{id}">How old what players see is</h2>
<p class="note">The time since the simulation's time of the newest state a player has of another, over all players, all they see and all instants sampled. Read upwards from 99: one look in a hundred found something older than where the curve stands. Lower and flatter is better; all panels of a row share one axis.</p>
<p class="legend">"#,
        id = view.id("ages")
    );
    for (place, name) in names.iter().enumerate() {
        append!(
            out,
            r#"<span class="{}">{}{}</span>"#,
            look(place).classes(),
            look(place).swatch(),
            esc(name)
        );
    }
    *out += "</p>";
    for (index, tier) in first.tiers.iter().enumerate() {
        row(index, first, tier, &networks, &names, out);
    }
    *out += "</section>\n";
    figures(view, first, &networks, &names, out);
}

/// How the transport at that place looks.
const fn look(place: usize) -> Look {
    Look {
        hue: place % 8,
        pattern: place % 5,
        hollow: false,
    }
}

/// The panels of one tier, a network each.
fn row(
    index: usize,
    first: &World,
    tier: &WorldTier,
    networks: &[OfNetwork<'_>],
    names: &[&str],
    out: &mut String,
) {
    let of_tier = |world: &World| {
        let tier = world.tiers.get(index).filter(|tier| tier.samples > 0)?;
        Distribution::from_base64(&tier.histogram).ok()
    };
    let panels: Vec<(&str, Vec<Curve>)> = networks
        .iter()
        .map(|of| {
            let curves = of.worlds.iter().filter_map(|world| {
                let place = names.iter().position(|name| *name == transport(world))?;
                Curve::of(&of_tier(world)?, place)
            });
            (of.network, curves.collect())
        })
        .collect();
    append!(
        out,
        "<h3>Others {}, asked every {} ms</h3>",
        esc(&reach(first, tier)),
        tier.every_ms
    );
    // What has just arrived is as young as the path is short: a decade and more
    // that says nothing of the transport.
    let ages = panels
        .iter()
        .flat_map(|(_, curves)| curves)
        .flat_map(|curve| curve.points.iter())
        .filter(|(nines, _)| *nines >= YOUNGEST_NINES)
        .map(|&(_, age_ms)| age_ms);
    let scale = LogScale::covering(ages, 10.0);
    *out += r#"<div class="age-panels">"#;
    for (network, curves) in &panels {
        panel(network, curves, scale, names, out);
    }
    *out += "</div>";
}

/// One world's ages at one tier: positions on the axis of nines, and
/// milliseconds.
struct Curve {
    place: usize,
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn of(ages: &Distribution, place: usize) -> Option<Self> {
        let samples = ages.len();
        let known = libm::log10(samples as f64 / SAMPLES_BEYOND).min(MOST_NINES);
        if known <= 0.0 {
            return None;
        }
        let points = (0..=POINTS)
            .map(|nth| {
                let nines = known * nth as f64 / POINTS as f64;
                let rank = Quantile::nines(nines).rank(samples);
                (nines, in_millis(nanos(ages.at_rank(rank))))
            })
            .collect();
        Some(Self { place, points })
    }
}

fn panel(network: &str, curves: &[Curve], scale: LogScale, names: &[&str], out: &mut String) {
    let y = |age_ms: f64| BOTTOM - (BOTTOM - TOP) * scale.position(age_ms);
    let sentences: Vec<String> = curves
        .iter()
        .filter_map(|curve| {
            let (_, age_ms) = curve.points.iter().find(|(nines, _)| *nines >= 2.0)?;
            Some(format!(
                "{} {} ms",
                names[curve.place],
                milliseconds(*age_ms)
            ))
        })
        .collect();
    append!(
        out,
        r#"<figure class="age-panel"><figcaption>{}</figcaption><div class="age-plot"><svg class="gutter" height="{HEIGHT}" aria-hidden="true">"#,
        esc(network)
    );
    for tick in scale.ticks() {
        append!(
            out,
            r#"<text class="tick" x="100%" dx="-6" y="{}" dy="4" text-anchor="end">{}</text>"#,
            coordinate(y(tick)),
            tick_label(tick)
        );
    }
    append!(
        out,
        r#"</svg><svg class="plot" height="{HEIGHT}" role="img" aria-label="Ages on {}, at p99: {}">"#,
        esc(network),
        esc(&sentences.join(", "))
    );
    for tick in scale.ticks() {
        let at = coordinate(y(tick));
        append!(
            out,
            r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>"#
        );
    }
    // The mark of nothing has no room beside that of a half.
    for (nines, label) in nines_ticks(MOST_NINES + 0.5).into_iter().skip(1) {
        let at = per_cent(nines / MOST_NINES);
        append!(
            out,
            r#"<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{BOTTOM}"/><text class="tick" x="{at}" y="{}" text-anchor="{}">{label}</text>"#,
            BOTTOM + 17.0,
            if nines >= MOST_NINES { "end" } else { "middle" }
        );
    }
    append!(
        out,
        r#"<svg class="stretch" viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none" height="{HEIGHT}">"#
    );
    for curve in curves {
        let mut data = String::new();
        for (nth, &(nines, age_ms)) in curve.points.iter().enumerate() {
            append!(
                data,
                "{}{} {}",
                if nth == 0 { 'M' } else { 'L' },
                coordinate(nines / MOST_NINES * 1000.0),
                coordinate(y(age_ms))
            );
        }
        append!(
            out,
            r#"<path class="curve {}" d="{data}"><title>{}</title></path>"#,
            look(curve.place).classes(),
            esc(names[curve.place])
        );
    }
    *out += "</svg></svg></div></figure>";
}

/// The same in figures, and what it cost on the wire.
fn figures(
    view: &View<'_>,
    first: &World,
    networks: &[OfNetwork<'_>],
    names: &[&str],
    out: &mut String,
) {
    append!(
        out,
        r#"<section class="ages" aria-labelledby="{id}"><h2 id="{id}">The same in figures</h2>
<p class="note">Ages in milliseconds; the least p99 of a network stands out. What each player gets counts every packet of its link, headers included.</p><div class="scroll"><table><thead><tr><th rowspan="2" scope="col">Network</th><th rowspan="2" scope="col">Transport</th>"#,
        id = view.id("figures")
    );
    for tier in &first.tiers {
        append!(
            out,
            r#"<th colspan="3" scope="colgroup" class="number">{}</th>"#,
            esc(&reach(first, tier))
        );
    }
    *out += r#"<th rowspan="2" scope="col" class="number">each gets</th><th rowspan="2" scope="col" class="number">packets lost</th><th rowspan="2" scope="col" class="number">players lost</th><th rowspan="2" scope="col" class="number">views right</th></tr><tr>"#;
    for _ in &first.tiers {
        *out += r#"<th scope="col" class="number">p50</th><th scope="col" class="number">p99</th><th scope="col" class="number">p99.9</th>"#;
    }
    *out += "</tr></thead><tbody>";
    for of in networks {
        for (nth, world) in of.worlds.iter().enumerate() {
            let place = names
                .iter()
                .position(|name| *name == transport(world))
                .unwrap_or(0);
            *out += "<tr>";
            if nth == 0 {
                append!(
                    out,
                    r#"<th scope="rowgroup" rowspan="{}">{}</th>"#,
                    of.worlds.len(),
                    esc(of.network)
                );
            }
            append!(
                out,
                r#"<th scope="row" class="{}">{}{}</th>"#,
                look(place).classes(),
                look(place).swatch(),
                esc(transport(world))
            );
            for tier in &world.tiers {
                ages(tier, out);
            }
            cost(world, out);
            *out += "</tr>";
        }
    }
    *out += "</tbody></table></div></section>\n";
}

fn ages(tier: &WorldTier, out: &mut String) {
    if tier.samples == 0 {
        *out += r#"<td colspan="3" class="none">nobody was seen</td>"#;
        return;
    }
    append!(
        out,
        r#"<td class="number">{}</td><td class="number">{}</td><td class="number">{}</td>"#,
        milliseconds(tier.age_ms.p50),
        milliseconds(tier.age_ms.p99),
        milliseconds(tier.age_ms.p99_9)
    );
}

fn cost(world: &World, out: &mut String) {
    let sight = &world.sight;
    append!(
        out,
        r#"<td class="number">{}</td><td class="number">{}</td><td class="number">{}</td><td class="number">{} of {}</td>"#,
        down_each(world).map_or(written::NOTHING.to_owned(), |bytes| {
            format!("{}/s", written::bytes(bytes as u64))
        }),
        world
            .path
            .as_ref()
            .map_or(written::NOTHING.to_owned(), |path| {
                format!("{} %", written::lost_share(path.down.lost_share))
            }),
        world.players.lost,
        sight.views_right,
        sight.views_compared
    );
}
