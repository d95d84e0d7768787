//! A small chart of one figure by the number of players: a line with a mark at
//! each number that was played, filled where it was carried, and a band where
//! it saturates.

use super::markup::{coordinate, esc, per_cent};
use super::palette::Look;
use super::scale::{LogScale, round_above, tick_label};
use super::trend::label;
use crate::capacity::Figure;
use lagometer_results::Capacity;

/// Height of a chart, and where its plot begins and ends.
const HEIGHT: f64 = 168.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 146.0;

/// Where the most players stand, as a share of the width: room for their mark.
const RIGHT: f64 = 0.95;

/// Shares of the width nearer than which two numbers of players would touch.
const APART: f64 = 0.11;

/// A curve as it is drawn.
#[derive(Debug)]
pub(crate) struct Drawn<'a> {
    /// What it is called; empty where there is only one.
    pub(crate) name: String,
    /// The curve's hue, and the pattern and shape of its marks.
    pub(crate) look: Look,
    /// The worlds that the curve joins, by their number of players.
    pub(crate) curve: Capacity<'a>,
}

/// The vertical axis.
#[derive(Clone, Copy)]
enum Axis {
    /// From nought to this.
    Even(f64),
    Powers(LogScale),
}

impl Axis {
    fn of(figure: &Figure, values: &[f64]) -> Self {
        if figure.spans {
            Self::Powers(LogScale::covering(values.iter().copied(), 10.0))
        } else {
            Self::Even(round_above(values.iter().copied().fold(0.0, f64::max)))
        }
    }

    fn y(self, value: f64) -> f64 {
        let position = match self {
            Self::Even(top) => (value / top).clamp(0.0, 1.0),
            Self::Powers(scale) => scale.position(value),
        };
        BOTTOM - (BOTTOM - TOP) * position
    }

    fn ticks(self) -> Vec<(f64, String)> {
        match self {
            Self::Even(top) => [0.0, top / 2.0, top]
                .map(|tick| (tick, label(tick)))
                .to_vec(),
            Self::Powers(scale) => {
                let ticks = scale.ticks().into_iter();
                ticks.map(|tick| (tick, tick_label(tick))).collect()
            }
        }
    }
}

/// Appends the chart of `figure`, ages at the tier of that index; nothing where
/// no world has it.
pub(crate) fn render(figure: &Figure, tier: usize, drawn: &[Drawn<'_>], out: &mut String) {
    let steps = || drawn.iter().flat_map(|each| &each.curve.steps);
    let values: Vec<f64> = steps()
        .filter_map(|world| (figure.of)(world, tier))
        .collect();
    if values.is_empty() {
        return;
    }
    let axis = Axis::of(figure, &values);
    let mut players: Vec<u32> = steps().map(|world| world.players.asked).collect();
    players.sort_unstable();
    players.dedup();
    let most = players.last().copied().unwrap_or(1).max(1);
    let x = |players: u32| RIGHT * f64::from(players) / f64::from(most);
    append!(
        out,
        r#"<figure class="by-players"><figcaption>{}</figcaption><div class="age-plot"><svg class="gutter" height="{HEIGHT}" aria-hidden="true">"#,
        esc(figure.title)
    );
    for (tick, label) in axis.ticks() {
        append!(
            out,
            r#"<text class="tick" x="100%" dx="-6" y="{}" dy="4" text-anchor="end">{}</text>"#,
            coordinate(axis.y(tick)),
            esc(&label)
        );
    }
    append!(
        out,
        r#"</svg><svg class="plot" height="{HEIGHT}" role="img" aria-label="{}">"#,
        esc(&in_words(figure, tier, drawn))
    );
    for each in drawn {
        band(each, x, out);
    }
    for (tick, _) in axis.ticks() {
        let at = coordinate(axis.y(tick));
        append!(
            out,
            r#"<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>"#
        );
    }
    for players in labelled(&players, x) {
        append!(
            out,
            r#"<text class="tick" x="{}" y="{}" text-anchor="middle">{players}</text>"#,
            per_cent(x(players)),
            BOTTOM + 17.0
        );
    }
    for each in drawn {
        line(each, figure, tier, axis, x, out);
    }
    *out += "</svg></div></figure>";
}

/// Between what was carried and what was not.
fn band(each: &Drawn<'_>, x: impl Fn(u32) -> f64, out: &mut String) {
    let Some(saturated) = each.curve.saturated() else {
        return;
    };
    let from = each
        .curve
        .carried()
        .map_or(0.0, |world| x(world.players.asked));
    append!(
        out,
        r#"<rect class="saturated {}" x="{}" width="{}" y="{TOP}" height="{}"/>"#,
        each.look.classes(),
        per_cent(from),
        per_cent(x(saturated.players.asked) - from),
        BOTTOM - TOP
    );
}

/// The curve, and above it a mark for each world with what it says.
fn line(
    each: &Drawn<'_>,
    figure: &Figure,
    tier: usize,
    axis: Axis,
    x: impl Fn(u32) -> f64,
    out: &mut String,
) {
    append!(
        out,
        r#"<svg class="stretch" viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none" height="{HEIGHT}"><path class="curve {}" d=""#,
        each.look.classes()
    );
    let known = || {
        let steps = each.curve.steps.iter();
        steps.filter_map(|world| Some((*world, (figure.of)(world, tier)?)))
    };
    for (nth, (world, value)) in known().enumerate() {
        append!(
            out,
            "{}{} {}",
            if nth == 0 { 'M' } else { 'L' },
            coordinate(1000.0 * x(world.players.asked)),
            coordinate(axis.y(value))
        );
    }
    *out += r#""/></svg>"#;
    for (world, value) in known() {
        let sustained = if world.is_carried() {
            "sustained"
        } else {
            "too many"
        };
        append!(
            out,
            r#"<circle class="step {} {}" cx="{}" cy="{}" r="4"><title>{}{} players, {sustained}: {}</title></circle>"#,
            each.look.classes(),
            if world.is_carried() {
                "sustained"
            } else {
                "too-many"
            },
            per_cent(x(world.players.asked)),
            coordinate(axis.y(value)),
            match each.name.as_str() {
                "" => String::new(),
                name => format!("{}: ", esc(name)),
            },
            world.players.asked,
            esc(&(figure.written)(value))
        );
    }
}

/// Numbers of players that have room for their labels, the most first.
fn labelled(players: &[u32], x: impl Fn(u32) -> f64) -> Vec<u32> {
    let mut labelled: Vec<u32> = Vec::new();
    for &players in players.iter().rev() {
        let room = labelled
            .last()
            .is_none_or(|&next| x(next) - x(players) >= APART);
        if room {
            labelled.push(players);
        }
    }
    labelled
}

fn in_words(figure: &Figure, tier: usize, drawn: &[Drawn<'_>]) -> String {
    let curves: Vec<String> = drawn
        .iter()
        .map(|each| {
            let steps: Vec<String> = each
                .curve
                .steps
                .iter()
                .map(|world| {
                    let players = world.players.asked;
                    format!("{} with {players} players", figure.cell(world, tier))
                })
                .collect();
            match each.name.as_str() {
                "" => steps.join(", "),
                name => format!("{name} {}", steps.join(", ")),
            }
        })
        .collect();
    format!("{}: {}", figure.title, curves.join("; "))
}

#[cfg(test)]
mod tests {
    use lagometer_results::{GatewayMetrics, Players, World};

    use super::*;
    use crate::capacity::FIGURES;

    #[test]
    fn each_world_has_a_mark_and_saturation_a_band() {
        let world = |players: u32, cpu_pct: f64, bottleneck: Option<&str>| World {
            players: Players {
                asked: players,
                ..Players::default()
            },
            gateway_metrics: Some(GatewayMetrics {
                cpu_pct: Some(cpu_pct),
                ..GatewayMetrics::default()
            }),
            bottleneck: bottleneck.map(str::to_owned),
            ..World::default()
        };
        let worlds = [
            world(100, 20.0, None),
            world(200, 50.0, None),
            world(400, 99.0, Some("full")),
        ];
        let drawn = [Drawn {
            name: "<ours>".to_owned(),
            look: super::super::capacity::look(0),
            curve: Capacity::curves(&worlds).remove(0),
        }];
        let charts = FIGURES.each_ref().map(|figure| {
            let mut out = String::new();
            render(figure, 0, &drawn, &mut out);
            out
        });
        let gateway = charts
            .iter()
            .find(|chart| chart.contains("99 with 400"))
            .unwrap();
        assert_eq!(
            gateway.matches(r#"class="step h0 d0 sustained""#).count(),
            2
        );
        assert_eq!(gateway.matches(r#"class="step h0 d0 too-many""#).count(), 1);
        assert!(gateway.contains("&lt;ours&gt;: 400 players, too many: 99"));
        // From 200 to 400 of 400 players: half of what is drawn on.
        let band = format!(
            r#"x="{}" width="{}""#,
            per_cent(RIGHT / 2.0),
            per_cent(RIGHT / 2.0)
        );
        assert!(gateway.contains(&band), "{gateway}");
        // Nobody was seen, so there is no age to draw.
        assert!(charts[0].is_empty());
    }

    #[test]
    fn labels_that_would_touch_are_left_out() {
        let x = |players: u32| f64::from(players) / 1600.0;
        assert_eq!(
            labelled(&[100, 200, 400, 800, 1600], x),
            [1600, 800, 400, 200]
        );
        assert_eq!(labelled(&[1500, 1600], x), [1600]);
    }
}
