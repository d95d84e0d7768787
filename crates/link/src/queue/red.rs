//! Random early detection: packets are dropped, or marked, at random, the more
//! often the longer the queue was on average (Floyd and Jacobson, "Random Early
//! Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on
//! Networking 1, 1993, section IV; marks as in RFC 3168, section 7).

use super::fifo::Fifo;
use super::{Packet, Waiting};
use crate::fate::Reason;
use crate::keyed::{Purpose, Scope, Stream};

/// When packets are dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Below this average, in bytes, nothing is.
    pub least: u64,
    /// From this average on everything is dropped.
    pub most: u64,
    /// The share of packets just below `most`, 0 to 1.
    pub probability: f64,
    /// How much the newest length counts in the average, 0 to 1; 0.002 in the
    /// paper.
    pub weight: f64,
    /// How long a packet of usual size is on the wire, in nanoseconds: while the
    /// queue is idle its average falls as if as many had come.
    pub packet_time: u64,
    /// Marks packets whose transport understands it instead of dropping them.
    pub ecn: bool,
}

/// One queue whose average is watched.
#[derive(Clone, Debug)]
pub(super) struct RedQueue {
    thresholds: Thresholds,
    fifo: Fifo,
    average: f64,
    /// Packets since the last one was dropped or marked; `None` below `least`.
    since_last: Option<u32>,
    idle_since: Option<u64>,
    coin: Stream,
    offered: u64,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl RedQueue {
    pub(super) fn new(thresholds: Thresholds, seed: u64) -> Self {
        Self {
            thresholds,
            fifo: Fifo::default(),
            average: 0.0,
            since_last: None,
            idle_since: Some(0),
            coin: Stream::new(seed, Scope::Both, Purpose::EarlyDetection),
            offered: 0,
        }
    }

    pub(super) const fn fifo(&self) -> &Fifo {
        &self.fifo
    }

    /// Takes a packet in, or gives it back with the reason.
    pub(super) fn offer(
        &mut self,
        now: u64,
        mut waiting: Waiting,
        is_full: bool,
    ) -> Option<(Packet, Reason)> {
        self.average_at(now);
        let verdict = self.verdict(waiting.packet.is_ecn_capable);
        if self.fifo.len() == 0 && verdict == Verdict::Drop {
            self.idle_since = Some(now);
        }
        if verdict == Verdict::Drop {
            return Some((waiting.packet, Reason::QueueManaged));
        }
        if is_full {
            return Some((waiting.packet, Reason::QueueFull));
        }
        waiting.is_marked = verdict == Verdict::Mark;
        self.fifo.push(waiting);
        None
    }

    pub(super) fn pop(&mut self, now: u64) -> Option<Waiting> {
        let next = self.fifo.pop();
        if self.fifo.len() == 0 && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        next
    }

    fn average_at(&mut self, now: u64) {
        let weight = self.thresholds.weight;
        if let Some(idle_since) = self.idle_since.take() {
            let missed = now.saturating_sub(idle_since) / self.thresholds.packet_time.max(1);
            self.average *= libm::pow(1.0 - weight, missed as f64);
        }
        self.average += weight * (self.fifo.bytes() as f64 - self.average);
    }

    fn verdict(&mut self, is_ecn_capable: bool) -> Verdict {
        let Thresholds {
            least,
            most,
            probability,
            ecn,
            ..
        } = self.thresholds;
        self.offered += 1;
        if self.average < least as f64 {
            self.since_last = None;
            return Verdict::Pass;
        }
        if self.average >= most as f64 {
            self.since_last = Some(0);
            return Verdict::Drop;
        }
        let before = self.since_last.map_or(0, |since| since + 1);
        let base = probability * (self.average - least as f64) / (most - least) as f64;
        // So spread that the packets between two drops are an even draw.
        let spread = 1.0 - f64::from(before) * base;
        let share = if spread > 0.0 { base / spread } else { 1.0 };
        if !self.coin.heads(self.offered, 0, share) {
            self.since_last = Some(before);
            return Verdict::Pass;
        }
        self.since_last = Some(0);
        if ecn && is_ecn_capable {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Flow;

    /// Nothing is ever dropped.
    const PASSING: Thresholds = Thresholds {
        least: 1_000_000,
        most: 2_000_000,
        probability: 0.1,
        weight: 0.5,
        packet_time: 1_000,
        ecn: false,
    };

    fn waiting(is_ecn_capable: bool) -> Waiting {
        Waiting {
            packet: Packet {
                tag: 0,
                flow: Flow { host: 0, flow: 0 },
                bytes: 1500,
                is_ecn_capable,
            },
            since: 0,
            is_marked: false,
        }
    }

    /// Section IV of the paper: at `most` and above every packet is dropped; RFC 3168,
    /// section 7: marks are for where the average is below it.
    #[test]
    fn above_most_everything_is_dropped_also_what_could_be_marked() {
        let thresholds = Thresholds {
            least: 1,
            most: 3_000,
            probability: 1.0,
            // The average is the queue itself: 0, 1500, 3000 bytes.
            weight: 1.0,
            packet_time: 1_000,
            ecn: true,
        };
        for is_ecn_capable in [true, false] {
            let mut queue = RedQueue::new(thresholds, 1);
            assert!(queue.offer(0, waiting(false), false).is_none());
            // Half of the way to `most`, with the chance of one half: until one passes.
            while queue.fifo.len() < 2 {
                queue.offer(0, waiting(is_ecn_capable), false);
            }
            for _ in 0..20 {
                let refused = queue.offer(0, waiting(is_ecn_capable), false);
                assert_eq!(
                    refused.map(|(_, reason)| reason),
                    Some(Reason::QueueManaged)
                );
            }
            assert_eq!(queue.fifo.len(), 2);
        }
    }

    /// Section IV: after m packet times of idleness the average is (1 - w) to the m of what
    /// it was.
    #[test]
    fn the_average_falls_while_the_queue_is_idle() {
        let mut queue = RedQueue::new(PASSING, 1);
        for _ in 0..2 {
            queue.offer(0, waiting(false), false);
        }
        // Half of the 1500 B that the second met.
        assert!((queue.average - 750.0).abs() < 1e-9);
        queue.pop(10);
        queue.pop(20);
        queue.offer(20 + 3_500, waiting(false), false);
        // Three packet times, and the empty queue that this one met.
        assert!((queue.average - 750.0 / 8.0 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn it_is_idle_from_when_its_last_packet_left() {
        let mut queue = RedQueue::new(PASSING, 1);
        for _ in 0..2 {
            assert!(queue.offer(0, waiting(false), false).is_none());
        }
        let idle_since = |queue: &mut RedQueue, now| {
            queue.pop(now);
            queue.idle_since
        };
        assert_eq!(idle_since(&mut queue, 10), None, "one waits still");
        assert_eq!(idle_since(&mut queue, 20), Some(20));
        assert_eq!(idle_since(&mut queue, 30), Some(20), "asked for nothing");
    }
}
