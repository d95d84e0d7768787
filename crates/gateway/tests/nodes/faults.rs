//! What goes wrong in a schedule, and when.

use crate::bus::{Impairments, MS};
use crate::random::Random;

/// Something that goes wrong, or right. Nodes are named by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A node dies, and another is started in its place so much later.
    Kill { node: usize, back_after: u64 },
    /// A node for channels ends in order.
    End { node: usize, back_after: u64 },
    /// The node that owns the channels ends in order.
    EndOwner { back_after: u64 },
    /// The node that owns the channels dies; only while another follows it, if so asked.
    KillOwner { back_after: u64, followed: bool },
    /// A node that stands by dies, if another does.
    KillStandby { back_after: u64 },
    /// A node is cut off from the bus for so long.
    Cut { node: usize, lasting: u64 },
    /// The bus is gone for all.
    CutAll { lasting: u64 },
    /// A node does nothing for so long, and then goes on as if nothing had been.
    Pause { node: usize, lasting: u64 },
    /// A node's clock leaps ahead.
    Leap { node: usize, by: u64 },
    /// Frames are lost, late or repeated from now on.
    Impairments(usize),
    /// The store loses the lease's entry.
    LoseEntry,
}

/// When faults begin and when the last of them is over.
pub(crate) const FROM: u64 = 3_000 * MS;
pub(crate) const UNTIL: u64 = 25_000 * MS;

/// Impairments by their number.
pub(crate) fn impairments(number: usize) -> Impairments {
    let none = Impairments::default();
    match number {
        0 => none,
        1 => Impairments { lost: 30, ..none },
        2 => Impairments {
            lost: 200,
            repeated: 100,
            slow: 50,
            slow_ms: 300,
        },
        4 => Impairments {
            lost: 0,
            repeated: 100,
            slow: 100,
            slow_ms: 50,
        },
        _ => Impairments {
            lost: 5,
            repeated: 20,
            slow: 200,
            slow_ms: 2_000,
        },
    }
}

/// A schedule in which nothing happens but that owners end in order, one after the other,
/// at times just when a node that stands by has died, on a bus that repeats frames and is
/// slow at times, or is not.
pub(crate) fn planned_ends(random: &mut Random) -> Vec<(u64, Fault)> {
    let impairments = if random.happens(500) { 0 } else { 4 };
    let mut schedule = vec![(0, Fault::Impairments(impairments))];
    let mut at = FROM + random.within(0, 2_000 * MS);
    while at < UNTIL {
        let back_after = random.within(10 * MS, 2_000 * MS);
        if random.happens(300) {
            let before = at - random.within(MS, 1_000 * MS);
            schedule.push((before, Fault::KillStandby { back_after }));
        }
        schedule.push((at, Fault::EndOwner { back_after }));
        at += random.within(5_000 * MS, 9_000 * MS);
    }
    schedule
}

/// A schedule in which owners die, once another node follows them, or whenever it is, on a bus
/// that repeats frames, is slow at times or loses some, or does none of that.
pub(crate) fn deaths(random: &mut Random, followed: bool) -> Vec<(u64, Fault)> {
    let impairments = [0, 4, 1][random.within(0, 3) as usize];
    // What is lost may take a follower out of step, which is not what is tried there.
    let impairments = if followed {
        impairments & 4
    } else {
        impairments
    };
    let mut schedule = vec![(0, Fault::Impairments(impairments))];
    let mut at = FROM + random.within(0, 2_000 * MS);
    while at < UNTIL {
        let back_after = random.within(10 * MS, 2_000 * MS);
        schedule.push((
            at,
            Fault::KillOwner {
                back_after,
                followed,
            },
        ));
        let least = if followed { 6_000 } else { 1_000 };
        at += random.within(least * MS, 9_000 * MS);
    }
    schedule.push((UNTIL, Fault::Impairments(0)));
    schedule
}

/// A schedule in which edges die, so long before one another that the game's server has come
/// back. Meanwhile owners end in order, or die while they are followed once it is back: not so soon
/// before another ends that this may be the one that follows.
pub(crate) fn edge_deaths(random: &mut Random, edges: usize) -> Vec<(u64, Fault)> {
    let impairments = if random.happens(500) { 0 } else { 4 };
    let mut schedule = vec![(0, Fault::Impairments(impairments))];
    let mut at = FROM + random.within(0, 2_500 * MS);
    while at < UNTIL {
        let node = random.within(0, edges as u64) as usize;
        let back_after = random.within(10 * MS, 2_000 * MS);
        schedule.push((at, Fault::Kill { node, back_after }));
        if random.happens(500) {
            // Whoever goes on waits for the edge anew, and so does who takes its share then.
            let ends_at = at + random.within(0, 2_000 * MS);
            schedule.push((ends_at, Fault::EndOwner { back_after }));
        } else {
            let dies_at = at + random.within(13_500 * MS, 14_000 * MS);
            let fault = Fault::KillOwner {
                back_after,
                followed: true,
            };
            schedule.push((dies_at, fault));
        }
        at += random.within(19_500 * MS, 21_000 * MS);
    }
    schedule.push((UNTIL, Fault::Impairments(0)));
    schedule.retain(|(at, _)| *at <= UNTIL);
    schedule.sort_by_key(|(at, _)| *at);
    schedule
}

/// A schedule for so many edges, which come first, and so many nodes for channels.
pub(crate) fn schedule(random: &mut Random, edges: usize, channels: usize) -> Vec<(u64, Fault)> {
    let all = edges + channels;
    let faults = random.within(1, 9);
    let mut schedule = Vec::new();
    for _ in 0..faults {
        let at = random.within(FROM, UNTIL);
        let left = (UNTIL - at).max(MS);
        let node = random.within(0, all as u64) as usize;
        let short = random.within(10 * MS, 3_500 * MS).min(left);
        let long = random.within(100 * MS, 15_000 * MS).min(left);
        let lasting = if random.happens(500) { short } else { long };
        let fault = match random.within(0, 17) {
            0..=3 => Fault::Kill {
                node,
                back_after: lasting,
            },
            4 if random.happens(500) => Fault::EndOwner {
                back_after: lasting,
            },
            4 => Fault::End {
                node: edges + random.within(0, channels as u64) as usize,
                back_after: lasting,
            },
            5..=7 => Fault::Cut { node, lasting },
            8 => Fault::CutAll { lasting },
            9..=11 => Fault::Pause { node, lasting },
            12 => Fault::Leap {
                node,
                by: random.within(10 * MS, 12_000 * MS),
            },
            13 => Fault::LoseEntry,
            14 => Fault::KillOwner {
                back_after: lasting,
                followed: false,
            },
            _ => Fault::Impairments(random.within(0, 4) as usize),
        };
        schedule.push((at, fault));
    }
    schedule.push((UNTIL, Fault::Impairments(0)));
    schedule.sort_by_key(|(at, _)| *at);
    schedule
}
