//! From who used the links to what the document says of it.

use std::ops::Range;
use std::sync::Arc;

use lagometer_link::cross::{Cross, CrossKind};
use lagometer_results::{Bottleneck, BottleneckSender, BottleneckWay};
use lagometer_stats::jain_index;
use lagometer_units::Time;

use crate::outcome::{BottleneckUse, PartyUse};
use crate::plan::Plan;
use crate::resolve::Resolved;
use crate::runner::SeedRun;
use crate::workload::Workload;

/// The links of a run that had several senders or a queue with a discipline: one
/// for all lanes where they share it, else one for each lane.
pub(crate) fn of(resolved: &Resolved, runs: &[SeedRun]) -> Vec<Bottleneck> {
    if !resolved.needs_shared_link() {
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
            let asks = Ask::of_all(resolved, first..first + lanes.len(), runs);
            Some(Bottleneck {
                lanes: lanes.iter().map(|&name| name.to_owned()).collect(),
                up: way(&used, 0, &asks)?,
                down: way(&used, 1, &asks)?,
            })
        })
        .collect()
}

/// One direction, all seeds together; none where no seed was played.
fn way(used: &[Arc<BottleneckUse>], way: usize, asks: &[Ask]) -> Option<BottleneckWay> {
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
    let rates = rates_of_limited(&together(used, way, &senders), asks);
    Some(BottleneckWay {
        jain: jain_index(&rates).map(|index| (index * 1e4).round() / 1e4),
        senders,
        step_s: first.step.as_secs_f64(),
    })
}

/// Who sent to the other end, and how many kbit/s of it passed while all other traffic
/// that is ever on was: a download that is on for half of the time competes for no more
/// than that. Nobody where there was no such time.
fn together(used: &[Arc<BottleneckUse>], way: usize, senders: &[BottleneckSender]) -> Vec<Rate> {
    let ways = used.iter().map(|one| &one.ways[way]);
    let seconds: f64 = ways.clone().map(|way| way.together.as_secs_f64()).sum();
    if seconds <= 0.0 {
        return Vec::new();
    }
    let of = |(nth, sender): (usize, &BottleneckSender)| {
        let parties = ways.clone().filter_map(|way| way.parties.get(nth));
        let bytes: u64 = parties.map(|party| party.bytes_together).sum();
        Rate {
            contends: sender.contends,
            kbit_per_s: bytes as f64 * 8.0 / 1e3 / seconds,
        }
    };
    senders.iter().enumerate().map(of).collect()
}

/// What a sender got while others were there.
#[derive(Clone, Copy, Debug)]
struct Rate {
    contends: bool,
    kbit_per_s: f64,
}

/// What those got whom the link limits: who got less than they asked for, and who
/// took at least an equal share beside them. Who got all they asked for, and less than
/// that, could not have been given more.
fn rates_of_limited(senders: &[Rate], asks: &[Ask]) -> Vec<f64> {
    let contending: Vec<(f64, bool)> = senders
        .iter()
        .zip(asks)
        .filter(|(sender, _)| sender.contends)
        .map(|(sender, ask)| (sender.kbit_per_s, ask.is_beyond(sender.kbit_per_s)))
        .collect();
    if contending.iter().all(|(_, is_short)| !is_short) {
        return Vec::new();
    }
    let sum: f64 = contending.iter().map(|(rate, _)| rate).sum();
    let equal = sum / contending.len() as f64;
    let limited = contending.into_iter();
    limited
        .filter(|&(rate, is_short)| is_short || rate >= equal)
        .map(|(rate, _)| rate)
        .collect()
}

/// What a sender asks of one direction of its link.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    /// Always more.
    Endless,
    /// So many kbit/s.
    Rate(f64),
}

impl Ask {
    /// Of the lanes of a link and of its other traffic.
    fn of_all(resolved: &Resolved, lanes: Range<usize>, runs: &[SeedRun]) -> Vec<Self> {
        let lanes = resolved.lanes[lanes].iter();
        let of_lanes = lanes.map(|lane| Self::of_messages(&lane.workload));
        let crosses = (0..).zip(&resolved.cross);
        let of_crosses = crosses.map(|(nth, cross)| {
            let is_on = |run: &SeedRun| is_on(cross, run.seed, nth, &resolved.plan);
            Self::of_cross(cross, runs.iter().any(is_on))
        });
        of_lanes.chain(of_crosses).collect()
    }

    /// Messages go both ways. Their headers come on top, so that a few may be lost
    /// before the lane counts as short of something.
    fn of_messages(workload: &Workload) -> Self {
        let [up, down] = workload.payload_bits_per_second();
        Self::Rate(up.max(down) / 1e3)
    }

    /// Other traffic while it is on; of what never is, nothing. Pages are not asked for
    /// before those before them are there. A hundredth is left for packets on their way.
    fn of_cross(cross: &Cross, is_on: bool) -> Self {
        let rate = |bits: u64| Self::Rate(bits as f64 / 1e3 * 0.99);
        match cross.kind {
            _ if !is_on => Self::Rate(0.0),
            CrossKind::Bulk => Self::Endless,
            CrossKind::Web => Self::Rate(0.0),
            CrossKind::Call | CrossKind::Constant => rate(cross.highest()),
        }
    }

    /// Whether it is more than `kbit_per_s`.
    fn is_beyond(self, kbit_per_s: f64) -> bool {
        match self {
            Self::Endless => true,
            Self::Rate(rate) => rate > kbit_per_s,
        }
    }
}

/// Whether other traffic is ever on of the time measured.
pub(crate) fn is_on(cross: &Cross, seed: u64, nth: u64, plan: &Plan) -> bool {
    let from = Time::ZERO + plan.offset;
    let until = from + plan.duration;
    let mut begun = cross
        .stretches(seed, nth)
        .take_while(|(start, _)| *start < until);
    begun.any(|(_, end)| end > from)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn senders(rates: &[f64]) -> Vec<Rate> {
        let one = |&kbit_per_s: &f64| Rate {
            contends: true,
            kbit_per_s,
        };
        rates.iter().map(one).collect()
    }

    #[test]
    fn who_got_all_it_asked_for_does_not_count_unless_it_took_an_equal_share() {
        let limited = |rates: &[f64], asks: &[Ask]| rates_of_limited(&senders(rates), asks);
        // A game beside two downloads, and one that a download starves.
        let beside = [Ask::Rate(80.0), Ask::Endless, Ask::Endless];
        assert_eq!(limited(&[88.0, 4000.0, 5000.0], &beside), [4000.0, 5000.0]);
        assert_eq!(limited(&[30.0, 4000.0, 5000.0], &beside).len(), 3);
        // One that sends everything four times takes from the download.
        let greedy = [Ask::Rate(2000.0), Ask::Endless];
        assert_eq!(limited(&[8000.0, 1000.0], &greedy), [8000.0, 1000.0]);
        // The link limits nobody.
        let both = [Ask::Rate(80.0), Ask::Rate(80.0)];
        assert!(limited(&[88.0, 88.0], &both).is_empty());
    }
}
