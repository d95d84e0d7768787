//! What an instrument found under several seeds, as one document.
//!
//! Counts are added, round trips pooled in one distribution, and rates, of which each
//! seed measured as long as any other, are means. Each seed's own figure stays beside
//! them, from which it is seen how much the network conditions make of it.

use lagometer_stats::Distribution;

use crate::document::{
    Bulk, BulkSample, Cell, Document, Echo, EchoCounts, Lane, Quantiles, SeedValue, Sweep,
};

/// Makes one document of what the same instrument found under each seed, in that order;
/// nothing of none. What is not about a seed is as in the first.
#[must_use]
pub fn merge_instrument_seeds(found: &[(u64, Document)]) -> Option<Document> {
    let (_, first) = found.first()?;
    let mut merged = first.clone();
    merged.seeds = found.iter().map(|(seed, _)| *seed).collect();
    merged.partial = found.iter().any(|(_, document)| document.partial);
    merged.wall_s = found.iter().map(|(_, it)| it.wall_s).fold(0.0, f64::max);
    merged.warnings = found
        .iter()
        .flat_map(|(_, it)| it.warnings.clone())
        .collect();
    merged.warnings.dedup();
    merged.echo = all(found, |it| it.echo.as_ref()).map(|echoes| echo(&echoes));
    merged.sweep = all(found, |it| it.sweep.as_ref()).map(|sweeps| sweep(&sweeps));
    for (index, into) in merged.lanes.iter_mut().enumerate() {
        if let Some(lanes) = all(found, |it| it.lanes.get(index)) {
            lane(into, &lanes);
        }
    }
    Some(merged)
}

/// A part of all documents; nothing if one lacks it.
fn all<'a, T>(
    found: &'a [(u64, Document)],
    of: impl Fn(&'a Document) -> Option<&'a T>,
) -> Option<Vec<(u64, &'a T)>> {
    let part = |(seed, document): &'a (u64, Document)| Some((*seed, of(document)?));
    found.iter().map(part).collect()
}

fn echo(found: &[(u64, &Echo)]) -> Echo {
    let mut merged = found[0].1.clone();
    let sum = |of: fn(&EchoCounts) -> u64| found.iter().map(|(_, it)| of(&it.messages)).sum();
    merged.messages = EchoCounts {
        sent: sum(|it| it.sent),
        echoed: sum(|it| it.echoed),
        lost: sum(|it| it.lost),
        late: sum(|it| it.late),
        corrupt: sum(|it| it.corrupt),
        nudges: sum(|it| it.nudges),
    };
    merged.measured_s = found.iter().map(|(_, it)| it.measured_s).sum();
    merged.iops = if merged.measured_s > 0.0 {
        merged.messages.echoed as f64 / merged.measured_s
    } else {
        0.0
    };
    merged.delay_ms = (merged.iops > 0.0).then(|| 1000.0 / merged.iops / 2.0);
    if let Some(pooled) = pooled(found.iter().map(|(_, it)| Some(&*it.histogram))) {
        merged.rtt_ms = Quantiles::of(&pooled);
        merged.histogram = pooled.to_base64();
    }
    let series: Vec<&[f64]> = found.iter().map(|(_, it)| &*it.series).collect();
    merged.series = by_step(&series, |values| mean(values.iter().map(|it| **it)));
    merged.per_seed = values(found, |it| Some(it.iops));
    merged
}

fn sweep(found: &[(u64, &Sweep)]) -> Sweep {
    let mut merged = found[0].1.clone();
    // A run that was cut short measured fewer.
    let shortest = found.iter().map(|(_, it)| it.cells.len()).min();
    merged.cells.truncate(shortest.unwrap_or(0));
    for (index, into) in merged.cells.iter_mut().enumerate() {
        let cells: Vec<(u64, &Cell)> = found
            .iter()
            .map(|(seed, sweep)| (*seed, &sweep.cells[index]))
            .collect();
        cell(into, &cells);
    }
    merged
}

fn cell(into: &mut Cell, found: &[(u64, &Cell)]) {
    let sum = |of: fn(&Cell) -> u64| found.iter().map(|(_, it)| of(it)).sum();
    let rate = |of: fn(&Cell) -> Option<f64>| {
        let rates: Vec<f64> = found.iter().filter_map(|(_, it)| of(it)).collect();
        (!rates.is_empty()).then(|| mean(rates.into_iter()))
    };
    into.sent = sum(|it| it.sent);
    into.received = sum(|it| it.received);
    into.lost = sum(|it| it.lost);
    into.disordered = sum(|it| it.disordered);
    into.corrupt = sum(|it| it.corrupt);
    into.send_mbit_per_s = rate(|it| it.send_mbit_per_s);
    into.recv_mbit_per_s = rate(|it| it.recv_mbit_per_s);
    let measured = found.iter().filter(|(_, it)| it.latency_us.is_some());
    let pooled = pooled(measured.map(|(_, it)| it.histogram.as_deref()));
    if let Some(pooled) = pooled.filter(|pooled| !pooled.is_empty()) {
        let rtt_ms = Quantiles::of(&pooled);
        into.latency_us = Some(rtt_ms.mean * 1e3 / 2.0);
        into.rtt_ms = Some(rtt_ms);
        into.histogram = Some(pooled.to_base64());
    }
    into.failure = failure(found, |it| it.failure.as_deref());
    into.per_seed = values(found, |it| it.latency_us.or(it.recv_mbit_per_s));
}

fn lane(into: &mut Lane, found: &[(u64, &Lane)]) {
    into.failure = failure(found, |it| it.failure.as_deref());
    let carried: Vec<(u64, &Bulk)> = found
        .iter()
        .filter_map(|(seed, lane)| Some((*seed, lane.bulk.as_ref()?)))
        .collect();
    if !carried.is_empty() {
        into.bulk = Some(bulk(&carried));
    }
}

fn bulk(found: &[(u64, &Bulk)]) -> Bulk {
    let sum = |of: fn(&Bulk) -> u64| found.iter().map(|(_, it)| of(it)).sum();
    let rate = |of: fn(&Bulk) -> f64| mean(found.iter().map(|(_, it)| of(it)));
    let sent_bytes: u64 = sum(|it| it.sent_bytes);
    let received_bytes: u64 = sum(|it| it.received_bytes);
    let lost = sent_bytes.saturating_sub(received_bytes) as f64;
    let series: Vec<&[BulkSample]> = found.iter().map(|(_, it)| &*it.series).collect();
    let sample = |at: &[&BulkSample]| BulkSample {
        t_s: at[0].t_s,
        send_mbit_per_s: mean(at.iter().map(|it| it.send_mbit_per_s)),
        recv_mbit_per_s: mean(at.iter().map(|it| it.recv_mbit_per_s)),
    };
    Bulk {
        send_mbit_per_s: rate(|it| it.send_mbit_per_s),
        recv_mbit_per_s: rate(|it| it.recv_mbit_per_s),
        offered_s: found.iter().map(|(_, it)| it.offered_s).sum(),
        sent_bytes,
        received_bytes,
        loss_pct: if sent_bytes > 0 {
            100.0 * lost / sent_bytes as f64
        } else {
            0.0
        },
        duplicates: sum(|it| it.duplicates),
        reordered: sum(|it| it.reordered),
        damaged: sum(|it| it.damaged),
        send_cpu_s_per_gb: None,
        recv_cpu_s_per_gb: None,
        system_calls: sum(|it| it.system_calls),
        datagrams: sum(|it| it.datagrams),
        series: by_step(&series, sample),
        rate_per_seed: values(found, |it| Some(it.recv_mbit_per_s)),
        ..found[0].1.clone()
    }
}

/// The first failure, with its seed.
fn failure<T>(found: &[(u64, &T)], of: fn(&T) -> Option<&str>) -> Option<String> {
    let failed = |&(seed, part): &(u64, &T)| Some(format!("with seed {seed}: {}", of(part)?));
    found.iter().find_map(failed)
}

/// A figure of each seed that has it.
fn values<T>(found: &[(u64, &T)], of: fn(&T) -> Option<f64>) -> Vec<SeedValue> {
    let value = |&(seed, part): &(u64, &T)| {
        Some(SeedValue {
            seed,
            value: of(part)?,
        })
    };
    found.iter().filter_map(value).collect()
}

/// All distributions in one; nothing if one cannot be read.
fn pooled<'a>(written: impl Iterator<Item = Option<&'a str>>) -> Option<Distribution> {
    let mut pooled = Distribution::new();
    for written in written {
        let of_seed = Distribution::from_base64(written?).ok()?;
        pooled.merge(&of_seed).ok()?;
    }
    Some(pooled)
}

/// What is made of each step, of those series that reach it.
fn by_step<T, U>(series: &[&[T]], of: impl Fn(&[&T]) -> U) -> Vec<U> {
    let longest = series.iter().map(|it| it.len()).max().unwrap_or(0);
    (0..longest)
        .map(|step| {
            let at: Vec<&T> = series.iter().filter_map(|it| it.get(step)).collect();
            of(&at)
        })
        .collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::document::sample::sample_document;

    /// The distribution of round trips of so many milliseconds.
    fn histogram(round_trips_ms: &[u64]) -> String {
        let mut all = Distribution::new();
        for &ms in round_trips_ms {
            all.record(Duration::from_millis(ms));
        }
        all.to_base64()
    }

    fn empty() -> Document {
        Document {
            lanes: Vec::new(),
            ..sample_document()
        }
    }

    fn merged(found: [Document; 2]) -> Document {
        let [one, other] = found;
        merge_instrument_seeds(&[(3, one), (4, other)]).unwrap()
    }

    #[test]
    fn echoes_of_all_seeds_are_one_distribution_and_one_rate() {
        let of_seed = |echoed, round_trips_ms: &[u64], series: &[f64]| {
            let echo = Echo {
                measured_s: 10.0,
                iops: echoed as f64 / 10.0,
                messages: EchoCounts {
                    echoed,
                    lost: 1,
                    ..EchoCounts::default()
                },
                histogram: histogram(round_trips_ms),
                series: series.to_vec(),
                ..Echo::default()
            };
            Document {
                echo: Some(echo),
                ..empty()
            }
        };
        let found = merged([
            of_seed(100, &[10, 10, 10], &[10.0, 12.0]),
            of_seed(300, &[90], &[30.0]),
        ]);
        assert_eq!(found.seeds, [3, 4]);
        let echo = found.echo.unwrap();
        assert_eq!((echo.messages.echoed, echo.messages.lost), (400, 2));
        assert!((echo.iops - 20.0).abs() < 1e-9);
        assert_eq!(echo.delay_ms, Some(25.0));
        assert!((echo.rtt_ms.max - 90.0).abs() < 0.1 && (echo.rtt_ms.p50 - 10.0).abs() < 0.1);
        assert_eq!(echo.series, [20.0, 12.0]);
        let each: Vec<_> = echo.per_seed.iter().map(|it| (it.seed, it.value)).collect();
        assert_eq!(each, [(3, 10.0), (4, 30.0)]);
    }

    #[test]
    fn a_cells_latency_is_of_all_round_trips_and_a_failure_names_its_seed() {
        let of_seed = |cells: Vec<Cell>| {
            let sweep = Sweep {
                cells,
                ..Sweep::default()
            };
            Document {
                sweep: Some(sweep),
                ..empty()
            }
        };
        let latency = |round_trips_ms: &[u64]| Cell {
            latency_us: Some(1.0),
            histogram: Some(histogram(round_trips_ms)),
            received: round_trips_ms.len() as u64,
            ..Cell::default()
        };
        let rate = |recv_mbit_per_s, failure: Option<&str>| Cell {
            recv_mbit_per_s,
            failure: failure.map(str::to_owned),
            ..Cell::default()
        };
        let found = merged([
            of_seed(vec![latency(&[10, 10]), rate(Some(4.0), None)]),
            of_seed(vec![latency(&[40]), rate(None, Some("silent"))]),
        ]);
        let cells = found.sweep.unwrap().cells;
        assert!((cells[0].latency_us.unwrap() - 10_000.0).abs() < 20.0);
        assert_eq!(cells[0].received, 3);
        assert_eq!(cells[0].per_seed.len(), 2);
        assert_eq!(cells[1].recv_mbit_per_s, Some(4.0));
        assert_eq!(cells[1].failure.as_deref(), Some("with seed 4: silent"));
    }

    #[test]
    fn a_lanes_rate_is_the_mean_and_what_was_lost_is_of_all_bytes() {
        let of_seed = |rate: f64, received_bytes| {
            let mut document = sample_document();
            document.lanes.truncate(1);
            document.lanes[0].bulk = Some(Bulk {
                recv_mbit_per_s: rate,
                sent_bytes: 100,
                received_bytes,
                ..Bulk::default()
            });
            document
        };
        let found = merged([of_seed(2.0, 100), of_seed(4.0, 50)]);
        let bulk = found.lanes[0].bulk.as_ref().unwrap();
        assert!((bulk.recv_mbit_per_s - 3.0).abs() < 1e-9);
        assert!((bulk.loss_pct - 25.0).abs() < 1e-9);
        assert_eq!(bulk.rate_per_seed[1].seed, 4);
    }

    #[test]
    fn nothing_is_made_of_no_seed() {
        assert!(merge_instrument_seeds(&[]).is_none());
    }
}
