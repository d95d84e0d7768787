//! Worlds with few players and with many on a terminal: a row for each number
//! of players, and beneath those that were too many their bottleneck.

use lagometer_results::{Capacity, World};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use super::world::reach;
use crate::capacity::{FIGURES, Figure, nearest_tier};

/// Appends the table.
pub(crate) fn render(worlds: &[World], paint: Paint, room: usize, out: &mut String) {
    let tier = nearest_tier(&worlds.iter().collect::<Vec<_>>());
    let mut figures: Vec<&Figure> = FIGURES
        .iter()
        .filter(|figure| {
            worlds
                .iter()
                .any(|world| (figure.of)(world, tier).is_some())
        })
        .collect();
    let mut grid = grid(worlds, &figures, tier);
    while grid.width() > room {
        let Some(spare) = figures.iter().position(|figure| figure.spare) else {
            break;
        };
        figures.remove(spare);
        grid = self::grid(worlds, &figures, tier);
    }
    grid.render(paint, out);
    if let Some(first) = worlds.iter().find(|world| world.tiers.len() > 1) {
        let of_whom = format!(
            "Ages are those of others {}.",
            reach(first, &first.tiers[tier])
        );
        for line in wrap(&of_whom, room) {
            line_of(out, &paint.apply(Style::Dim, &line));
        }
    }
}

fn grid(worlds: &[World], figures: &[&Figure], tier: usize) -> Grid {
    let mut columns = vec![Column::numbers("players", ""), Column::words("sustained")];
    columns.extend(
        figures
            .iter()
            .map(|figure| Column::numbers(figure.heading, figure.unit)),
    );
    let curves = Capacity::curves(worlds);
    let mut rows = Vec::new();
    for curve in &curves {
        if curves.len() > 1 {
            rows.push(Row::Label(printable(&curve.path()), Style::Bold));
        }
        for world in &curve.steps {
            let sustained = if world.is_carried() {
                Cell::new("yes", Style::Good)
            } else {
                Cell::new("no", Style::Bad)
            };
            let players = Cell::new(world.players.asked.to_string(), Style::Plain);
            let mut cells = vec![players, sustained];
            cells.extend(
                figures
                    .iter()
                    .map(|figure| Cell::new(figure.cell(world, tier), Style::Plain)),
            );
            rows.push(Row::Cells(cells));
            if let Some(bottleneck) = &world.bottleneck {
                rows.push(Row::Label(
                    format!("         {}", printable(bottleneck)),
                    Style::Bad,
                ));
            }
        }
    }
    Grid { columns, rows }
}

#[cfg(test)]
mod tests {
    use lagometer_results::{GatewayMetrics, Players, WorldTier};

    use super::*;

    fn worlds() -> Vec<World> {
        let world = |players: u32, bottleneck: Option<&str>| World {
            players: Players {
                asked: players,
                ..Players::default()
            },
            tiers: vec![WorldTier {
                samples: 9,
                ..WorldTier::default()
            }],
            gateway_metrics: Some(GatewayMetrics {
                cpu_pct: Some(55.0),
                resident_bytes: Some(32e6),
                tick_max_ms: Some(1.5),
                ..GatewayMetrics::default()
            }),
            bottleneck: bottleneck.map(str::to_owned),
            ..World::default()
        };
        vec![
            world(400, Some("the gateway is full, 97 % of a core")),
            world(200, None),
        ]
    }

    fn table(room: usize) -> String {
        let mut out = String::new();
        render(&worlds(), Paint { colour: false }, room, &mut out);
        out
    }

    #[test]
    fn the_bottleneck_stands_beneath_its_row() {
        let table = table(200);
        let lines: Vec<&str> = table.lines().map(str::trim_start).collect();
        assert!(lines[2].starts_with("200  yes"), "{table}");
        assert!(lines[3].starts_with("400  no"), "{table}");
        assert_eq!(lines[4], "the gateway is full, 97 % of a core");
    }

    #[test]
    fn a_narrow_terminal_does_without_what_is_spare() {
        assert!(table(200).contains("memory"));
        let narrow = table(70);
        assert!(!narrow.contains("memory"), "{narrow}");
        assert!(narrow.contains("gateway"), "{narrow}");
        assert!(narrow.lines().all(|line| line.len() <= 70), "{narrow}");
    }
}
