//! From who used the links to what the document says of it.

use std::sync::Arc;

use lagometer_stats::{Bottleneck, BottleneckSender, BottleneckWay, jain_index};

use crate::outcome::{BottleneckUse, PartyUse};
use crate::resolve::Resolved;
use crate::runner::SeedRun;

/// The links of a run that had several senders or a queue with a discipline: one
/// for all lanes where they share it, else one for each lane.
pub(crate) fn of(resolved: &Resolved, runs: &[SeedRun]) -> Vec<Bottleneck> {
    if !resolved.needs_stage() {
        return Vec::new();
    }
    let names: Vec<&str> = resolved.lanes.iter().map(|lane| &*lane.name).collect();
    let on_a_link = if resolved.experiment.shared {
        names.len()
    } else {
        1
    };
    names
        .chunks(on_a_link.max(1))
        .enumerate()
        .filter_map(|(link, lanes)| {
            let first = link * on_a_link;
            let used: Vec<Arc<BottleneckUse>> = runs
                .iter()
                .filter_map(|run| run.lanes[first].outcome()?.bottleneck.clone())
                .collect();
            Some(Bottleneck {
                lanes: lanes.iter().map(|&name| name.to_owned()).collect(),
                up: way(&used, 0)?,
                down: way(&used, 1)?,
            })
        })
        .collect()
}

/// One direction, all seeds together; none where no seed was played.
fn way(used: &[Arc<BottleneckUse>], way: usize) -> Option<BottleneckWay> {
    let first = used.first()?;
    let seconds: f64 = used.iter().map(|one| one.measured.as_secs_f64()).sum();
    let count = first.ways[way].parties.len();
    let senders: Vec<BottleneckSender> = (0..count)
        .map(|nth| {
            let parties: Vec<&PartyUse> = used
                .iter()
                .filter_map(|one| one.ways[way].parties.get(nth))
                .collect();
            sender(&parties, seconds)
        })
        .collect();
    let contending = senders.iter().filter(|sender| sender.contends);
    let rates: Vec<f64> = contending.map(|sender| sender.kbit_per_s).collect();
    Some(BottleneckWay {
        jain: jain_index(&rates).map(|index| (index * 1e4).round() / 1e4),
        senders,
        step_s: first.step.as_secs_f64(),
    })
}

/// One party, all seeds together.
fn sender(parties: &[&PartyUse], seconds: f64) -> BottleneckSender {
    let sum = |of: fn(&PartyUse) -> u64| parties.iter().map(|party| of(party)).sum::<u64>();
    let rate = |bytes: u64| {
        let kbit_per_s = bytes as f64 * 8.0 / 1e3 / seconds.max(f64::MIN_POSITIVE);
        (kbit_per_s * 10.0).round() / 10.0
    };
    let goodputs: Option<Vec<u64>> = parties.iter().map(|party| party.goodput_bytes).collect();
    let first = parties.first();
    BottleneckSender {
        name: first.map(|party| party.name.clone()).unwrap_or_default(),
        contends: first.is_some_and(|party| party.contends),
        packets: sum(|party| party.packets),
        dropped: sum(|party| party.dropped),
        marked: sum(|party| party.marked),
        kbit_per_s: rate(sum(|party| party.bytes)),
        goodput_kbit_per_s: goodputs.map(|bytes| rate(bytes.iter().sum())),
        waiting_bytes: first
            .map(|party| party.waiting_bytes.clone())
            .unwrap_or_default(),
    }
}
