//! How much an instrument's figures differ from seed to seed, in words.

use crate::document::{Document, SeedValue};
use crate::written;
use crate::written::units::{delay, rate, size};

/// From where to where the seeds' own figures lie, where there are several: of an echo
/// run, of each lane, or of the cell of a sweep in which they differ most. Empty where
/// there are not.
#[must_use]
pub fn seeds_verdict(document: &Document) -> String {
    let spread = if let Some(echo) = &document.echo {
        let count = |rate: f64| written::count(rate.round() as u64);
        range(&echo.per_seed, count).map(|range| format!("{range} echoes each second"))
    } else if let Some(sweep) = &document.sweep {
        let widest = sweep
            .cells
            .iter()
            .max_by(|one, other| ratio(&one.per_seed).total_cmp(&ratio(&other.per_seed)));
        widest.and_then(|cell| {
            let write = |value: f64| match cell.latency_us {
                Some(_) => delay(value / 1e3),
                None => rate(value),
            };
            let range = range(&cell.per_seed, write)?;
            let size = size(cell.size_bytes);
            Some(format!(
                "{} at {size}, where they differ most, {range}",
                cell.test
            ))
        })
    } else {
        let lanes: Vec<String> = document
            .lanes
            .iter()
            .filter_map(|lane| {
                let range = range(&lane.bulk.as_ref()?.rate_per_seed, rate)?;
                Some(format!("{} {range}", lane.lane))
            })
            .collect();
        (!lanes.is_empty()).then(|| lanes.join(", "))
    };
    spread.map_or_else(String::new, |spread| {
        format!("Over {} seeds: {spread}.", document.seeds.len())
    })
}

/// The least and the most of the seeds' figures; nothing of fewer than two.
fn range(values: &[SeedValue], write: impl Fn(f64) -> String) -> Option<String> {
    if values.len() < 2 {
        return None;
    }
    let [least, most] = ends(values);
    Some(format!("{} to {}", write(least), write(most)))
}

/// How many times the least the most is; 0 where there is none.
fn ratio(values: &[SeedValue]) -> f64 {
    let [least, most] = ends(values);
    if values.is_empty() || least <= 0.0 {
        return 0.0;
    }
    most / least
}

fn ends(values: &[SeedValue]) -> [f64; 2] {
    let all = || values.iter().map(|it| it.value);
    [
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    ]
}

#[cfg(test)]
mod tests {
    use crate::document::{Bulk, Cell, Echo, Lane, Sweep};
    use crate::figures::figures;

    use super::*;

    fn seeds(values: [f64; 2]) -> Vec<SeedValue> {
        let value = |(seed, value)| SeedValue { seed, value };
        (1..).zip(values).map(value).collect()
    }

    fn document() -> Document {
        Document {
            seeds: vec![1, 2],
            ..Document::empty("echo")
        }
    }

    #[test]
    fn every_instrument_says_how_far_its_seeds_are_apart() {
        let echo = Document {
            echo: Some(Echo {
                per_seed: seeds([20.0, 23.0]),
                ..Echo::default()
            }),
            ..document()
        };
        assert_eq!(
            seeds_verdict(&echo),
            "Over 2 seeds: 20 to 23 echoes each second."
        );
        let cell = |latency_us, values| Cell {
            test: "tcp_lat".to_owned(),
            size_bytes: 8,
            latency_us: Some(latency_us),
            per_seed: seeds(values),
            ..Cell::default()
        };
        let sweep = Document {
            sweep: Some(Sweep {
                cells: vec![cell(1.0, [5e3, 6e3]), cell(1.0, [5e3, 9e3])],
                ..Sweep::default()
            }),
            ..document()
        };
        let most = "Over 2 seeds: tcp_lat at 8 B, where they differ most, 5.00 ms to 9.00 ms.";
        assert_eq!(seeds_verdict(&sweep), most);
        let speed = Document {
            lanes: vec![Lane {
                bulk: Some(Bulk {
                    rate_per_seed: seeds([2.0, 3.0]),
                    ..Bulk::default()
                }),
                ..figures(&[], &[], None).into_lane("kcp", "kcp")
            }],
            ..document()
        };
        assert_eq!(
            seeds_verdict(&speed),
            "Over 2 seeds: kcp 2.00 Mbit/s to 3.00 Mbit/s."
        );
    }

    #[test]
    fn a_single_seed_has_no_spread() {
        assert_eq!(seeds_verdict(&document()), "");
    }
}
