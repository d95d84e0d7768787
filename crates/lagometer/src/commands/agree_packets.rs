//! Where the packets of a lane part in two testbeds that are both exact: what
//! shows why their messages do not agree.

use std::fmt::Write as _;

use lagometer_emu::logged_packets;
use lagometer_lab::{Resolved, packets_of};
use lagometer_link::Direction;

use super::in_guests::Packets;

/// A packet that a lane offered to its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offered {
    /// When, in nanoseconds from the start of the lane's schedule.
    at_ns: i64,
    direction: Direction,
    /// Its bytes, headers included.
    bytes: usize,
    /// What became of it, in words.
    fate: String,
}

/// By how much the instants of one packet may differ.
const TOLERANCE_NS: u64 = 1_000;

/// Packets of each testbed that are shown before the one that differs, and from
/// it on.
const BEFORE: usize = 4;
const AFTER: usize = 6;

/// The packets of lane number `lane` in virtual time.
pub(super) fn of_sim(resolved: &Resolved, lane: usize, seed: u64) -> Vec<Offered> {
    let starts = resolved.plan.measuring_starts().as_nanos().cast_signed();
    let offered = packets_of(resolved, lane, seed).into_iter();
    let offered = offered.map(|packet| Offered {
        at_ns: packet.at.as_nanos().cast_signed() - starts,
        direction: packet.direction,
        bytes: packet.bytes,
        fate: packet.fate.in_words(packet.at).to_string(),
    });
    offered.collect()
}

/// The packets of lane number `lane` in a guest; nothing where its schedule never
/// started.
pub(super) fn of_kernel(packets: &Packets, lane: usize) -> Option<Vec<Offered>> {
    let starts = (*packets.schedules_ns.get(lane)?)?.cast_signed();
    let offered = logged_packets(&packets.log).filter_map(|packet| {
        // Two interfaces for each lane: up and down.
        let is_of_lane = packet.interface as usize / 2 == lane;
        is_of_lane.then(|| Offered {
            at_ns: packet.epoch_ns.cast_signed() - starts,
            direction: Direction::BOTH[packet.interface as usize % 2],
            bytes: packet.bytes.len(),
            fate: packet.fate.to_owned(),
        })
    });
    // Where others are on the link they are logged when they leave its queue.
    let mut offered: Vec<Offered> = offered.collect();
    offered.sort_by_key(|packet| packet.at_ns);
    Some(offered)
}

/// The first packets from the start of the schedule on that are not the same, with
/// those around them, in lines; nothing where all are.
pub(super) fn parting(sim: &[Offered], kernel: &[Offered]) -> Option<String> {
    let first = Direction::BOTH
        .into_iter()
        .filter_map(|direction| first_difference(sim, kernel, direction))
        .min()?;
    let mut text = format!(
        "  the packets part {:.6} s into the schedule:\n",
        first as f64 / 1e9
    );
    for (testbed, packets) in [("sim", sim), ("kernel", kernel)] {
        let place =
            packets.partition_point(|packet| packet.at_ns + TOLERANCE_NS.cast_signed() < first);
        let shown = place.saturating_sub(BEFORE)..packets.len().min(place + AFTER);
        for packet in &packets[shown] {
            let _ = writeln!(
                text,
                "    {testbed:6} {:14.6} s {:4} {:5} B  {}",
                packet.at_ns as f64 / 1e9,
                packet.direction.to_string(),
                packet.bytes,
                packet.fate,
            );
        }
    }
    Some(text)
}

/// When the first packet in `direction` differs, in nanoseconds from the start of
/// the schedule.
fn first_difference(sim: &[Offered], kernel: &[Offered], direction: Direction) -> Option<i64> {
    let those = |packets: &[Offered]| -> Vec<Offered> {
        let those = packets.iter();
        let those = those.filter(|packet| packet.at_ns >= 0 && packet.direction == direction);
        those.cloned().collect()
    };
    let (sim, kernel) = (those(sim), those(kernel));
    let same = sim
        .iter()
        .zip(&kernel)
        .take_while(|(one, other)| one.is_like(other));
    let same = same.count();
    let next = [sim.get(same), kernel.get(same)];
    next.into_iter().flatten().map(|packet| packet.at_ns).min()
}

impl Offered {
    fn is_like(&self, other: &Self) -> bool {
        self.at_ns.abs_diff(other.at_ns) <= TOLERANCE_NS
            && (self.bytes, &self.fate) == (other.bytes, &other.fate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(at_ms: i64, direction: Direction, bytes: usize) -> Offered {
        Offered {
            at_ns: at_ms * 1_000_000,
            direction,
            bytes,
            fate: "arrives after 25.000 ms".to_owned(),
        }
    }

    #[test]
    fn packets_that_are_the_same_do_not_part_in_whatever_order_directions_are_logged() {
        let up = offered(50, Direction::Up, 500);
        let down = offered(50, Direction::Down, 60);
        let before = offered(-5, Direction::Up, 99);
        let late = Offered {
            at_ns: up.at_ns + 900,
            ..up.clone()
        };
        let sim = [before, up, down.clone()];
        assert_eq!(parting(&sim, &[down, late]), None);
    }

    #[test]
    fn the_first_that_differs_in_time_size_or_fate_is_shown_with_those_around_it() {
        let sim: Vec<Offered> = (0..9)
            .map(|n| offered(50 * n, Direction::Up, 500))
            .collect();
        let mut kernel = sim.clone();
        kernel[6].bytes = 24;
        kernel[7].fate = "dropped: loss".to_owned();
        let text = parting(&sim, &kernel).unwrap();
        assert!(text.starts_with("  the packets part 0.300000 s"), "{text}");
        assert!(
            text.contains("    kernel       0.300000 s up      24 B  arrives"),
            "{text}"
        );
        assert!(
            text.contains("0.350000 s up     500 B  dropped: loss"),
            "{text}"
        );
        assert!(!text.contains("0.050000 s"), "{text}");
        kernel.truncate(6);
        let text = parting(&sim, &kernel).unwrap();
        assert!(text.starts_with("  the packets part 0.300000 s"), "{text}");
    }
}
