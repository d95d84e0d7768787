//! Two played worlds side by side on a terminal: whatever is said of either,
//! one row each.

use lagometer_results::{Document, World};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use super::world::{facts, reach};
use crate::written::{self, milliseconds};

/// The widest that a figure's words may be before they are wrapped.
const WIDEST: usize = 34;

/// The two as text, every line ending in a newline.
pub(crate) fn render(
    names: [&str; 2],
    documents: [&Document; 2],
    worlds: [&World; 2],
    paint: Paint,
    room: usize,
) -> String {
    let mut out = heading(names, documents, Some(worlds), paint, room);
    out.push('\n');
    let word = |name: &str| Column {
        widest: WIDEST,
        ..Column::words(&printable(name))
    };
    let rows = rows(worlds);
    Grid {
        columns: vec![Column::words(""), word(names[0]), word(names[1])],
        rows,
    }
    .render(paint, &mut out);
    out
}

/// What is not alike, and both verdicts. `worlds` where there is one of either.
pub(crate) fn heading(
    names: [&str; 2],
    documents: [&Document; 2],
    worlds: Option<[&World; 2]>,
    paint: Paint,
    room: usize,
) -> String {
    let mut out = String::new();
    for difference in differences(documents, worlds) {
        for line in wrap(&printable(&format!("Not alike: {difference}.")), room) {
            line_of(&mut out, &paint.apply(Style::Notice, &line));
        }
    }
    for (name, document) in names.into_iter().zip(documents) {
        let verdict = document.verdict.as_deref().unwrap_or("no verdict");
        for line in wrap(&printable(&format!("{name}: {verdict}")), room) {
            line_of(&mut out, &paint.apply(Style::Bold, &line));
        }
    }
    out
}

/// What makes the two unlike before any figure is looked at.
fn differences(documents: [&Document; 2], worlds: Option<[&World; 2]>) -> Vec<String> {
    let [first, second] = documents;
    let name = |document: &Document| {
        let name = document.experiment.get("name");
        name.and_then(|name| name.as_str())
            .unwrap_or("?")
            .to_owned()
    };
    let mut facts = vec![
        ("scenario", name(first), name(second)),
        (
            "testbed",
            first.testbed.clone().unwrap_or_default(),
            second.testbed.clone().unwrap_or_default(),
        ),
        ("seed", first.seed.to_string(), second.seed.to_string()),
    ];
    if let Some([one, other]) = worlds {
        let players = |world: &World| world.players.asked.to_string();
        let seconds = |world: &World| format!("{:.0}", world.measured_s);
        facts.push(("players", players(one), players(other)));
        facts.push(("seconds measured", seconds(one), seconds(other)));
    }
    facts
        .into_iter()
        .filter(|(_, one, other)| one != other)
        .map(|(what, one, other)| format!("{what} `{one}` and `{other}`"))
        .collect()
}

fn rows(worlds: [&World; 2]) -> Vec<Row> {
    let mut rows = vec![Row::Label(
        "Age of what is seen, ms".to_owned(),
        Style::Bold,
    )];
    let [ages, other_ages] = worlds.map(ages);
    rows.extend(pairs(&ages, &other_ages));
    let [facts, other_facts] = worlds.map(facts);
    let headings = facts
        .iter()
        .chain(&other_facts)
        .map(|(heading, _)| *heading);
    let mut printed: Vec<&str> = Vec::new();
    for heading in headings {
        if printed.contains(&heading) {
            continue;
        }
        printed.push(heading);
        let of = |facts: &[super::world::Facts]| {
            let found = facts.iter().find(|(known, _)| *known == heading);
            let facts = found.map_or(&[][..], |(_, facts)| facts);
            let owned = facts
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()));
            owned.collect::<Vec<_>>()
        };
        rows.push(Row::Label(heading.to_owned(), Style::Bold));
        rows.extend(pairs(&of(&facts), &of(&other_facts)));
    }
    rows
}

fn ages(world: &World) -> Vec<(String, String)> {
    let tier = |tier: &lagometer_results::WorldTier| {
        let age = &tier.age_ms;
        let value = if tier.samples == 0 {
            written::NOTHING.to_owned()
        } else {
            format!(
                "{}, p99 {}, worst {}",
                milliseconds(age.p50),
                milliseconds(age.p99),
                milliseconds(age.max)
            )
        };
        (reach(world, tier), value)
    };
    world.tiers.iter().map(tier).collect()
}

/// A row for each name that either has, in the first's order.
fn pairs(first: &[(String, String)], second: &[(String, String)]) -> Vec<Row> {
    let value = |facts: &[(String, String)], name: &str| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.map_or(written::NOTHING.to_owned(), |(_, value)| value.clone())
    };
    let only_second = second
        .iter()
        .filter(|(name, _)| first.iter().all(|(known, _)| known != name));
    first
        .iter()
        .chain(only_second)
        .map(|(name, _)| {
            Row::Cells(vec![
                Cell::new(format!("  {name}"), Style::Plain),
                Cell::new(value(first, name), Style::Plain),
                Cell::new(value(second, name), Style::Plain),
            ])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use lagometer_results::{GatewayMetrics, Players, WorldTier};

    use super::*;

    fn world(players: u32, cpu_pct: Option<f64>) -> World {
        World {
            players: Players {
                asked: players,
                in_game: players,
                ..Players::default()
            },
            tiers: vec![WorldTier {
                samples: 1,
                ..WorldTier::default()
            }],
            gateway_metrics: cpu_pct.map(|cpu_pct| GatewayMetrics {
                cpu_pct: Some(cpu_pct),
                ..GatewayMetrics::default()
            }),
            ..World::default()
        }
    }

    fn columns(rows: &[Row], name: &str) -> Vec<String> {
        let found = rows.iter().find_map(|row| match row {
            Row::Cells(cells) if cells[0].text.trim() == name => Some(cells),
            _ => None,
        });
        let cells = found.unwrap_or_else(|| panic!("no row `{name}`"));
        cells[1..].iter().map(|cell| cell.text.clone()).collect()
    }

    #[test]
    fn whatever_either_says_has_its_row() {
        let (ours, other) = (world(5, None), world(7, Some(55.0)));
        let rows = rows([&ours, &other]);
        assert_eq!(columns(&rows, "in the game"), ["5 of 5", "7 of 7"]);
        assert_eq!(
            columns(&rows, "memory"),
            [written::NOTHING, written::NOTHING]
        );
        // What only the second says comes after, and the first says nothing.
        let labels: Vec<&str> = rows
            .iter()
            .filter_map(|row| match row {
                Row::Label(text, _) => Some(text.as_str()),
                Row::Cells(_) => None,
            })
            .collect();
        assert_eq!(labels.last(), Some(&"Gateway"));
        assert!(labels.contains(&"Players"));
    }
}
