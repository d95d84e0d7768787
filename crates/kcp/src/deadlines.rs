//! When which segment is to be resent: the earliest deadline without a look
//! at the others.
//!
//! First transmissions of one flush share their deadline, and deadlines of
//! successive flushes mostly rise: those are runs in a queue. Everything else
//! (resends, and first transmissions after the timeout has shrunk) goes to a
//! heap. Entries are never looked up to be removed: one whose segment is gone
//! or was sent again is recognised by its deadline and dropped when it comes
//! to the front.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::clock::ahead;

/// Segments `first..end` that share a deadline.
#[derive(Clone, Copy, Debug)]
struct Run {
    due: i64,
    first: u32,
    end: u32,
}

/// Deadlines of the segments in flight, in extended milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    runs: VecDeque<Run>,
    strays: BinaryHeap<Reverse<(i64, u32)>>,
}

/// Entries that may be kept beyond those in use before the rest is swept out.
const SLACK: usize = 64;

impl Deadlines {
    /// Segments `first..end` are due at `due`.
    pub(crate) fn add_run(&mut self, due: i64, first: u32, end: u32) {
        if self.runs.back().is_none_or(|last| last.due <= due) {
            self.runs.push_back(Run { due, first, end });
        } else {
            let mut sequence = first;
            while sequence != end {
                self.add(due, sequence);
                sequence = sequence.wrapping_add(1);
            }
        }
    }

    /// One segment is due at `due`.
    pub(crate) fn add(&mut self, due: i64, sequence: u32) {
        self.strays.push(Reverse((due, sequence)));
    }

    /// Moves every segment due at `now` or before to `out`, in no order.
    /// `holds` says whether a segment is still due when an entry says so.
    pub(crate) fn take_due(
        &mut self,
        now: i64,
        mut holds: impl FnMut(u32, i64) -> bool,
        out: &mut Vec<u32>,
    ) {
        while let Some(&run) = self.runs.front().filter(|run| run.due <= now) {
            self.runs.pop_front();
            let mut sequence = run.first;
            while sequence != run.end {
                if holds(sequence, run.due) {
                    out.push(sequence);
                }
                sequence = sequence.wrapping_add(1);
            }
        }
        while let Some(&Reverse((due, sequence))) = self.strays.peek() {
            if due > now {
                break;
            }
            self.strays.pop();
            if holds(sequence, due) {
                out.push(sequence);
            }
        }
    }

    /// The earliest deadline there is. `unacknowledged` is the first segment
    /// in flight; `holds` as above.
    pub(crate) fn earliest(
        &mut self,
        unacknowledged: u32,
        mut holds: impl FnMut(u32, i64) -> bool,
    ) -> Option<i64> {
        while let Some(run) = self.runs.front_mut() {
            if run.trim(unacknowledged, &mut holds) {
                break;
            }
            self.runs.pop_front();
        }
        while let Some(&Reverse((due, sequence))) = self.strays.peek() {
            if holds(sequence, due) {
                break;
            }
            self.strays.pop();
        }
        let run = self.runs.front().map(|run| run.due);
        let stray = self.strays.peek().map(|entry| entry.0.0);
        run.into_iter().chain(stray).min()
    }

    /// Sweeps out entries that no longer hold once they outnumber the
    /// `in_flight` segments, so that memory stays in proportion to these.
    pub(crate) fn sweep(
        &mut self,
        in_flight: usize,
        unacknowledged: u32,
        mut holds: impl FnMut(u32, i64) -> bool,
    ) {
        let most = 2 * in_flight + SLACK;
        if self.runs.len() > most {
            self.runs
                .retain_mut(|run| run.trim(unacknowledged, &mut holds));
        }
        if self.strays.len() > most {
            self.strays
                .retain(|&Reverse((due, sequence))| holds(sequence, due));
        }
    }
}

impl Run {
    /// Moves the start to the first segment that is still due; returns
    /// whether there is one.
    fn trim(&mut self, unacknowledged: u32, holds: &mut impl FnMut(u32, i64) -> bool) -> bool {
        if ahead(unacknowledged, self.end) >= 0 {
            return false;
        }
        if ahead(unacknowledged, self.first) > 0 {
            self.first = unacknowledged;
        }
        while self.first != self.end {
            if holds(self.first, self.due) {
                return true;
            }
            self.first = self.first.wrapping_add(1);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_no_longer_holds_is_swept_out_once_it_is_more_than_the_rest() {
        let mut deadlines = Deadlines::default();
        let many = 10 * SLACK as u32;
        for sequence in 0..many {
            // Each later than the one before: a run of its own.
            deadlines.add_run(i64::from(sequence), sequence, sequence + 1);
        }
        deadlines.sweep(0, many, |_, _| false);
        assert!(deadlines.runs.is_empty(), "{} runs", deadlines.runs.len());
    }

    proptest! {
        /// Against a plain list of (segment, deadline), over the wrap of the
        /// sequence numbers.
        #[test]
        fn it_knows_what_a_list_knows(steps in prop::collection::vec((0_u8..4, 0_i64..40, 1_u32..5), 1..200)) {
            let origin = u32::MAX - 20;
            let mut deadlines = Deadlines::default();
            let mut list: Vec<(u32, i64)> = Vec::new();
            let mut next = origin;
            let mut now = 0;
            for (what, span, count) in steps {
                let holds = |list: &[(u32, i64)]| {
                    let list = list.to_vec();
                    move |sequence, due| list.contains(&(sequence, due))
                };
                match what {
                    0 => {
                        let end = next.wrapping_add(count);
                        deadlines.add_run(now + span, next, end);
                        while next != end {
                            list.push((next, now + span));
                            next = next.wrapping_add(1);
                        }
                    }
                    1 if !list.is_empty() => {
                        list.remove(count as usize % list.len());
                    }
                    2 => {
                        now += span;
                        let mut due = Vec::new();
                        deadlines.take_due(now, holds(&list), &mut due);
                        let mut expected: Vec<u32> = list.extract_if(.., |entry| entry.1 <= now).map(|entry| entry.0).collect();
                        due.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(&due, &expected);
                        for sequence in due {
                            let again = now + 1 + i64::from(sequence % 7);
                            deadlines.add(again, sequence);
                            list.push((sequence, again));
                        }
                    }
                    _ => {
                        let first = list.iter().map(|entry| entry.0).min_by_key(|sequence| sequence.wrapping_sub(origin)).unwrap_or(next);
                        deadlines.sweep(list.len(), first, holds(&list));
                        let earliest = deadlines.earliest(first, holds(&list));
                        prop_assert_eq!(earliest, list.iter().map(|entry| entry.1).min());
                    }
                }
            }
        }
    }
}
