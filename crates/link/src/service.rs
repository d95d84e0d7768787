//! The bottleneck: a server that works off packets in the order they came, at
//! a rate that may change or stop, behind a queue that drops at its tail.
//!
//! A packet *waits* until its first bit is sent and then occupies the wire. A
//! queue's bound counts what waits, not what is on the wire; a packet that
//! need not wait is never refused.

use std::collections::VecDeque;

use crate::Direction;
use crate::impairments;
use crate::interval::Cursor;
use crate::playback::{Loops, OpportunityCursor, StepCursor};
use crate::profile::plan::Plan;

/// How fast a direction serves once the impairments have begun.
#[derive(Clone, Debug)]
pub(crate) enum Capacity {
    /// Always the same; `None` is no limit.
    Steady(Option<u64>),
    /// As recorded.
    Recorded(StepCursor),
    /// As a Mahimahi file has it.
    Opportunities(OpportunityCursor),
}

/// One direction's bottleneck. Instants are nanoseconds of the run.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    capacity: Capacity,
    /// When nothing is served, in impairment time.
    stalls: Cursor,
    impairments_starts: u64,
    /// Bits per second before the impairments start; `None` is no limit.
    calm_rate: Option<u64>,
    /// The bytes that may wait; `None` is no bound.
    limit_bytes: Option<u64>,
    queue: Queue,
}

/// What the service remembers of the traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// When the last accepted packet's last bit has left.
    free: u64,
    /// The latest instant found at which service can begin. Everything between
    /// the offer that asked for it and this instant is stalled.
    ready: u64,
    /// Start of service and size of what waits, and their sum.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
}

/// A rate and the instant until which it holds.
struct Stretch {
    bits_per_second: Option<u64>,
    until: u64,
}

impl Service {
    /// A bottleneck as `plan` has it, with its bound, and nothing waiting.
    pub(crate) fn new(
        plan: &Plan,
        seed: u64,
        direction: Direction,
        impairments_starts: u64,
    ) -> Self {
        Self {
            capacity: impairments::capacity(plan),
            stalls: Cursor::new(&impairments::stalls(plan, seed, direction)),
            impairments_starts,
            calm_rate: plan.calm_rate(),
            limit_bytes: plan.queue.limit.bytes,
            queue: Queue::default(),
        }
    }

    /// Takes in a packet of `bytes` at `now` and returns when its last bit
    /// leaves, or nothing if the queue is full. `now` must not decrease from
    /// call to call.
    pub(crate) fn offer(&mut self, now: u64, bytes: u64) -> Option<u64> {
        self.queue.forget_until(now);
        let begin = self.begin(now.max(self.queue.free));
        if begin > now {
            let full = |limit| self.queue.waiting_bytes.saturating_add(bytes) > limit;
            if self.limit_bytes.is_some_and(full) {
                return None;
            }
            self.queue.waiting.push_back((begin, bytes));
            self.queue.waiting_bytes += bytes;
        }
        let departure = self.carry(begin, bytes);
        self.queue.free = departure;
        Some(departure)
    }

    /// The bytes that wait at `now`, which must not be before the last offer.
    pub(crate) fn waiting_bytes(&self, now: u64) -> u64 {
        let waiting = self.queue.waiting.iter().rev();
        waiting
            .take_while(|(start, _)| *start > now)
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// How long the packet that was taken in last waits from `now` on, the
    /// instant of its offer, until its first bit is sent.
    pub(crate) fn waits(&self, now: u64) -> u64 {
        let last = self.queue.waiting.back();
        last.map_or(0, |(start, _)| start.saturating_sub(now))
    }

    /// The first instant at or after `instant` at which service can begin. What was
    /// found before holds: a stall that was passed over once is not seen again.
    pub(crate) fn begin(&mut self, instant: u64) -> u64 {
        self.queue.ready = self.ready(instant.max(self.queue.ready));
        self.queue.ready
    }

    /// The first instant at or after `instant` at which a bit can leave.
    fn ready(&mut self, mut instant: u64) -> u64 {
        if instant >= self.impairments_starts
            && let Capacity::Opportunities(cursor) = &mut self.capacity
        {
            let begin = cursor.begin(instant - self.impairments_starts);
            return begin.saturating_add(self.impairments_starts);
        }
        loop {
            let stretch = self.stretch(instant);
            if stretch.bits_per_second != Some(0) || stretch.until == u64::MAX {
                return instant;
            }
            instant = stretch.until;
        }
    }

    /// Sends `bytes` from `instant` on and returns when the last bit has left.
    pub(crate) fn carry(&mut self, mut instant: u64, bytes: u64) -> u64 {
        /// So that a rate in bits per second times nanoseconds is work done.
        const WORK_PER_BYTE: u64 = 8 * 1_000_000_000;
        let mut work = bytes.saturating_mul(WORK_PER_BYTE);
        while instant < u64::MAX {
            if let Some(loops) = self.whole_loops(instant, work) {
                instant += loops.span;
                work -= loops.work;
            }
            if instant >= self.impairments_starts
                && let Capacity::Opportunities(cursor) = &mut self.capacity
            {
                let left = work.div_ceil(WORK_PER_BYTE);
                let departure = cursor.carry(instant - self.impairments_starts, left);
                return departure.saturating_add(self.impairments_starts);
            }
            let stretch = self.stretch(instant);
            match stretch.bits_per_second {
                None => return instant,
                Some(0) => {}
                Some(rate) => {
                    let needed = work.div_ceil(rate);
                    let room = stretch.until - instant;
                    if needed <= room {
                        return instant + needed;
                    }
                    work -= rate * room;
                }
            }
            instant = stretch.until;
        }
        instant
    }

    /// Loops of a recording that pass, without a stall, before `work` is done.
    fn whole_loops(&mut self, instant: u64, work: u64) -> Option<Loops> {
        let Capacity::Recorded(cursor) = &self.capacity else {
            return None;
        };
        let impairments = instant.checked_sub(self.impairments_starts)?;
        let until = match self.stalls.ahead(impairments) {
            Some(stall) => stall.start,
            None => u64::MAX - self.impairments_starts,
        };
        cursor.loops_within(impairments, work, until.checked_sub(impairments)?)
    }

    /// The rate at `instant`, where the capacity is not opportunities.
    fn stretch(&mut self, instant: u64) -> Stretch {
        let Some(impairments) = instant.checked_sub(self.impairments_starts) else {
            return Stretch {
                bits_per_second: self.calm_rate,
                until: self.impairments_starts,
            };
        };
        let mut until = u64::MAX;
        if let Some(stall) = self.stalls.ahead(impairments) {
            if stall.start <= impairments {
                return Stretch {
                    bits_per_second: Some(0),
                    until: stall.end.saturating_add(self.impairments_starts),
                };
            }
            until = stall.start.saturating_add(self.impairments_starts);
        }
        let bits_per_second = match &mut self.capacity {
            Capacity::Steady(rate) => *rate,
            Capacity::Recorded(cursor) => {
                let (step, ends) = cursor.at(impairments);
                until = until.min(ends.saturating_add(self.impairments_starts));
                step.rate_bits_per_second
            }
            Capacity::Opportunities(_) => None,
        };
        Stretch {
            bits_per_second,
            until,
        }
    }
}

impl Queue {
    fn forget_until(&mut self, now: u64) {
        while let Some(&(start, bytes)) = self.waiting.front() {
            if start > now {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interval::{Length, Onset, Source};
    use crate::keyed::{Purpose, Scope, Stream};
    use crate::trace::Recording;

    const MS: u64 = 1_000_000;

    fn service(rate: Option<u64>, limit_bytes: Option<u64>, stalls: &[(u64, u64)]) -> Service {
        let sources: Vec<_> = stalls
            .iter()
            .map(|&(first, length)| Source {
                onset: Onset::At { first, every: None },
                length: Length::Fixed(length),
                stream: Stream::new(0, Scope::Up, Purpose::Stalls),
            })
            .collect();
        Service {
            capacity: Capacity::Steady(rate),
            stalls: Cursor::new(&sources),
            impairments_starts: 0,
            calm_rate: rate,
            limit_bytes,
            queue: Queue::default(),
        }
    }

    fn recorded(text: &str) -> Service {
        let recording = Recording::parse("t", text).unwrap();
        let cursor = StepCursor::new(Arc::new(recording), Direction::Up);
        Service {
            capacity: Capacity::Recorded(cursor),
            ..service(None, None, &[])
        }
    }

    #[test]
    fn a_trace_of_a_microsecond_at_a_bit_a_second_costs_no_more_than_one_of_a_second() {
        // Twelve thousand million loops for one packet.
        let mut short = recorded("lagometer-trace/1\nlasts 1\nup 0 1 0 0\ndown 0 - 0 0\n");
        let mut long = recorded("lagometer-trace/1\nlasts 1000000\nup 0 1 0 0\ndown 0 - 0 0\n");
        for now in [0, MS, 7_777_777] {
            let departure = short.offer(now, 1500);
            assert_eq!(departure, long.offer(now, 1500));
            assert!(departure.is_some());
        }
        // A packet that does not end in this universe does not hang either.
        assert!(short.offer(8 * MS, u64::MAX / 4).is_some());
    }

    #[test]
    fn loops_that_are_passed_at_once_carry_what_they_carry_one_by_one() {
        let text = "lagometer-trace/1\nlasts 10\nup 0 8000 0 0\nup 3 0 0 0\nup 7 123456 0 0\n\
                    down 0 - 0 0\n";
        let mut at_once = recorded(text);
        let mut one_by_one = recorded(text);
        // A stall that never matters makes every loop be gone through.
        one_by_one.stalls = Cursor::new(&[Source {
            onset: Onset::At {
                first: 4000,
                every: Some(10_000),
            },
            length: Length::Fixed(1),
            stream: Stream::new(0, Scope::Up, Purpose::Stalls),
        }]);
        for (now, bytes) in [(0, 1), (3, 40), (12_345, 9), (9 * MS, 100)] {
            let departure = at_once.offer(now, bytes);
            assert_eq!(departure, one_by_one.offer(now, bytes), "{bytes} at {now}");
        }
    }

    #[test]
    fn packets_leave_one_after_the_other() {
        let mut service = service(Some(8_000_000), None, &[]);
        assert_eq!(service.offer(0, 1000), Some(MS));
        assert_eq!(service.offer(0, 500), Some(3 * MS / 2));
        assert_eq!(service.offer(5 * MS, 1000), Some(6 * MS));
    }

    #[test]
    fn a_stall_interrupts_a_packet_on_the_wire() {
        let mut service = service(Some(8_000_000), None, &[(MS / 2, 10 * MS)]);
        assert_eq!(service.offer(0, 1000), Some(11 * MS));
    }

    #[test]
    fn without_a_rate_everything_leaves_when_the_stall_ends() {
        let mut service = service(None, None, &[(MS, 10 * MS)]);
        assert_eq!(service.offer(0, 1000), Some(0));
        assert_eq!(service.offer(2 * MS, 1000), Some(11 * MS));
        assert_eq!(service.offer(3 * MS, 1000), Some(11 * MS));
        assert_eq!(service.offer(11 * MS, 1000), Some(11 * MS));
    }

    #[test]
    fn the_tail_is_dropped_and_a_drop_changes_nothing() {
        let mut service = service(Some(8_000_000), Some(1500), &[(0, 10 * MS)]);
        assert_eq!(service.offer(MS, 1000), Some(11 * MS));
        assert_eq!(service.offer(2 * MS, 1000), None);
        assert_eq!(service.offer(3 * MS, 500), Some(23 * MS / 2));
        assert_eq!(service.waiting_bytes(3 * MS), 1500);
        assert_eq!(service.offer(4 * MS, 1), None);
        assert_eq!(service.waiting_bytes(10 * MS), 500);
    }

    #[test]
    fn an_idle_wire_takes_a_packet_larger_than_the_queue() {
        let mut service = service(Some(8_000_000), Some(100), &[]);
        assert_eq!(service.offer(0, 1000), Some(MS));
        assert_eq!(service.offer(0, 1000), None);
        assert_eq!(service.offer(MS, 1000), Some(2 * MS));
    }
}
