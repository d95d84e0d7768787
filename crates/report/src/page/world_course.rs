//! How a world went, from the first player's coming on: its players, servers
//! and gateway, half second by half second.

use lagometer_results::{GatewayMoment, World, WorldMoment};

use super::markup::esc;
use super::trend::{self, Line};
use super::view::View;

/// A chart: its title and its lines.
type Chart<'a> = (&'static str, Vec<Line<'a>>);

/// Appends the charts for which there is anything to show.
pub(super) fn render(view: &View<'_>, world: &World, out: &mut String) {
    if world.timeline.is_empty() {
        return;
    }
    append!(
        out,
        r#"<section class="course" aria-labelledby="{id}"><h2 id="{id}">How it went</h2>
<p class="note">From the first player's coming on: first the players come in, then everything is measured, and at the end all stand still, of which no age is taken. Where a curve leaves the one of the players is where the world saturates.{}</p><div class="trends">"#,
        match &world.bottleneck {
            Some(bottleneck) => format!(" Here <em>{}</em>.", esc(bottleneck)),
            None => " Here none does.".to_owned(),
        },
        id = view.id("course")
    );
    let charts: Vec<Chart<'_>> = of_players_and_servers(&world.timeline)
        .into_iter()
        .chain(
            world
                .gateway_metrics
                .iter()
                .flat_map(|metrics| of_the_gateway(&metrics.timeline)),
        )
        .filter(|(_, lines)| {
            let mut points = lines.iter().flat_map(|line| &line.points);
            points.any(|(_, value)| value.is_some())
        })
        .collect();
    let end_s = charts
        .iter()
        .flat_map(|(_, lines)| lines)
        .flat_map(|line| &line.points)
        .fold(0.0, |end: f64, (at_s, _)| end.max(*at_s));
    for (title, lines) in &charts {
        trend::render(title, lines, end_s, out);
    }
    *out += "</div></section>\n";
}

fn of_players_and_servers(timeline: &[WorldMoment]) -> Vec<Chart<'static>> {
    let line = |name, value| line_of(timeline, |moment: &WorldMoment| moment.at_s, name, value);
    vec![
        (
            "Players in the game",
            vec![line("", |moment| Some(f64::from(moment.players)))],
        ),
        (
            "Age of what they see, ms",
            vec![
                line("p50", |moment| moment.age_p50_ms),
                line("p99", |moment| moment.age_p99_ms),
            ],
        ),
        (
            "Updates to players, a second",
            vec![line("", |moment| Some(moment.updates_per_s))],
        ),
        (
            "Bytes to players and server, a second",
            vec![line("", |moment| Some(moment.bytes_per_s))],
        ),
        (
            "Frames of the game server, a second",
            vec![line("", |moment| Some(moment.frames_per_s))],
        ),
        (
            "Latest start of a frame, ms",
            vec![line("", |moment| Some(moment.frame_late_ms))],
        ),
        (
            "Handovers between servers, a second",
            vec![line("", |moment| moment.handovers_per_s)],
        ),
        (
            "Generator, % of a core",
            vec![line("", |moment| moment.generator_cpu_pct)],
        ),
    ]
}

fn of_the_gateway(timeline: &[GatewayMoment]) -> Vec<Chart<'static>> {
    let line = |name, value| line_of(timeline, |moment: &GatewayMoment| moment.at_s, name, value);
    vec![
        (
            "Gateway, % of a core",
            vec![line("", |moment| moment.cpu_pct)],
        ),
        (
            "Longest tick of a channel, ms",
            vec![line("", |moment| moment.tick_ms)],
        ),
        (
            "Messages of the gateway, a second",
            vec![
                line("in", |moment| moment.messages_in_per_s),
                line("out", |moment| moment.messages_out_per_s),
            ],
        ),
        (
            "Bytes of the gateway, a second",
            vec![
                line("in", |moment| moment.bytes_in_per_s),
                line("out", |moment| moment.bytes_out_per_s),
            ],
        ),
        (
            "Memory of the gateway, MB",
            vec![line("", |moment| Some(moment.resident_bytes? / 1e6))],
        ),
        (
            "Connections of the gateway",
            vec![line("", |moment| moment.connections)],
        ),
        (
            "Channels of the gateway",
            vec![line("", |moment| moment.channels)],
        ),
    ]
}

fn line_of<M>(
    timeline: &[M],
    at_s: fn(&M) -> f64,
    name: &'static str,
    value: fn(&M) -> Option<f64>,
) -> Line<'static> {
    Line {
        name,
        points: timeline
            .iter()
            .map(|moment| (at_s(moment), value(moment)))
            .collect(),
    }
}
