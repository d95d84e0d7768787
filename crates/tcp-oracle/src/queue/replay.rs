//! The packets of a trace through a queue of the link model.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lagometer_link::queue::{CoDel, Discipline, Flow, Isolation, Limit, Packet, Queue};
use lagometer_units::Time;

use super::plan::{QueueKind, QueueSettings};
use super::trace::{Happened, Line, QueueTrace};
use crate::replay::Difference;

/// So many hash buckets that no two flows of a play share one.
const BUCKETS: u32 = 1 << 30;

/// What became of the packets of a play in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Packets that entered.
    pub packets: u64,
    /// That did not come out.
    pub dropped: u64,
    /// That came out marked.
    pub marked: u64,
}

/// What became of a play's packets in the kernel.
#[must_use]
pub fn fates(trace: &QueueTrace) -> Fates {
    let mut fates = Fates::default();
    for line in &trace.lines {
        match line.what {
            Happened::In { .. } => {
                fates.packets += 1;
                fates.dropped += 1;
            }
            Happened::Out { is_marked, .. } => {
                fates.dropped = fates.dropped.saturating_sub(1);
                fates.marked += u64::from(is_marked);
            }
        }
    }
    fates
}

/// Gives a [`Queue`] what the kernel's was given. Nothing if it gave, marked and
/// dropped the same, or else where it first did not.
#[must_use]
pub fn compare_queues(trace: &QueueTrace) -> Option<Difference> {
    let (discipline, limit) = discipline(&trace.settings);
    let mut queue = Queue::new(&discipline, limit, 1);
    let mut inside = BTreeSet::new();
    let mut dropped = BTreeSet::new();
    for (place, line) in trace.lines.iter().enumerate() {
        let now = Time::from_nanos(line.at);
        let wrong = match line.what {
            Happened::In {
                tag,
                flow,
                bytes,
                is_ecn_capable,
            } => {
                inside.insert(tag);
                let flow = Flow { host: 0, flow };
                let packet = Packet {
                    tag,
                    flow,
                    bytes,
                    is_ecn_capable,
                };
                queue.enqueue(now, packet, true);
                None
            }
            Happened::Out { tag, is_marked } => {
                inside.remove(&tag);
                let next = queue.dequeue(now).map(|(packet, mark)| (packet.tag, mark));
                (next != Some((tag, is_marked))).then(|| kind(next, tag))
            }
        };
        while let Some((packet, _)) = queue.take_dropped() {
            dropped.insert(packet.tag);
        }
        if let Some(kind) = wrong {
            return Some(difference(trace, place, kind, &queue, &dropped));
        }
    }
    if inside == dropped && queue.is_empty() {
        return None;
    }
    let last = trace.lines.len().saturating_sub(1);
    Some(difference(trace, last, "other drops", &queue, &dropped))
}

fn kind(next: Option<(u64, bool)>, tag: u64) -> &'static str {
    match next {
        None => "nothing left",
        Some((other, _)) if other != tag => "another packet",
        Some(_) => "another mark",
    }
}

fn discipline(settings: &QueueSettings) -> (Discipline, Limit) {
    let codel = CoDel {
        target: settings.target_us * 1_000,
        interval: settings.interval_us * 1_000,
        ecn: settings.ecn,
    };
    let discipline = match settings.kind {
        QueueKind::CoDel => Discipline::CoDel(codel),
        QueueKind::FqCodel => Discipline::Fair {
            codel,
            isolation: Isolation::Flows(BUCKETS),
            quantum: settings.quantum,
        },
    };
    let limit = Limit {
        bytes: None,
        packets: usize::try_from(settings.limit).ok(),
    };
    (discipline, limit)
}

/// Lines that are shown before the one that differs.
const SHOWN: usize = 12;

fn difference(
    trace: &QueueTrace,
    place: usize,
    kind: &str,
    queue: &Queue,
    dropped: &BTreeSet<u64>,
) -> Difference {
    let mut text = format!("{}: {kind}; {:?}\n", trace.name, trace.settings);
    for Line { at, what } in &trace.lines[place.saturating_sub(SHOWN)..=place] {
        let _ = writeln!(text, "  {at} {what:?}");
    }
    let last: Vec<_> = dropped.iter().rev().take(SHOWN).collect();
    let _ = writeln!(
        text,
        "  ours holds {} packets, {} bytes; dropped {} so far, the latest {last:?}",
        queue.len(),
        queue.bytes(),
        dropped.len(),
    );
    Difference {
        end: 0,
        kind: kind.to_owned(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(outs: &[(u64, bool)]) -> QueueTrace {
        let settings = QueueSettings {
            kind: QueueKind::FqCodel,
            rate: 125_000,
            limit: 100,
            target_us: 5_000,
            interval_us: 100_000,
            quantum: 1514,
            ecn: false,
        };
        let entered = (1..=2).map(|tag| Line {
            at: 10,
            what: Happened::In {
                tag,
                flow: 1,
                bytes: 1000,
                is_ecn_capable: false,
            },
        });
        let left = outs.iter().map(|&(tag, is_marked)| Line {
            at: 20,
            what: Happened::Out { tag, is_marked },
        });
        QueueTrace {
            name: "t".to_owned(),
            settings,
            lines: entered.chain(left).collect(),
        }
    }

    #[test]
    fn a_queue_that_gives_the_same_is_distinguished_from_one_that_does_not() {
        assert!(compare_queues(&trace(&[(1, false), (2, false)])).is_none());
        let kind = |outs: &[(u64, bool)]| compare_queues(&trace(outs)).unwrap().kind;
        assert_eq!(kind(&[(2, false)]), "another packet");
        assert_eq!(kind(&[(1, true)]), "another mark");
        assert_eq!(kind(&[(1, false), (2, false), (3, false)]), "nothing left");
        // The kernel dropped the second.
        assert_eq!(kind(&[(1, false)]), "other drops");
    }

    #[test]
    fn fates_are_counted() {
        let fates = fates(&trace(&[(1, true)]));
        assert_eq!((fates.packets, fates.dropped, fates.marked), (2, 1, 1));
    }
}
