//! Queueing disciplines: which of the packets that wait for a bottleneck is
//! sent next, and which is dropped or marked.
//!
//! A [`Queue`] holds packets by name alone (a tag, whose they are and their
//! size); what is in them stays with the caller. It knows nothing of rates: it
//! is called when a packet comes and when the bottleneck has room for one.
//!
//! - `fifo`: packets in order, the store of all disciplines
//! - `codel`: controlled delay (RFC 8289)
//! - `fair`: a queue for each flow, served in turn (RFC 8290), and the same by
//!   hosts first
//! - `red`: random early detection with marks (RFC 3168)

mod codel;
mod fair;
mod fifo;
mod red;

use std::collections::VecDeque;

use lagometer_units::Time;

pub use codel::CoDel;
pub use fair::Isolation;
pub use red::Thresholds;

use crate::fate::Reason;
use codel::CoDelQueue;
use fair::FairQueue;
use fifo::Fifo;
use red::RedQueue;

/// Whose a packet is, as a router sees it from addresses and ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The machine at the player's side of the link.
    pub host: u32,
    /// The flow; no two hosts have flows of the same number.
    pub flow: u32,
}

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The caller's name for it.
    pub tag: u64,
    /// Whose it is.
    pub flow: Flow,
    /// Its size as an IP packet.
    pub bytes: u64,
    /// Whether its transport understands marks (RFC 3168, section 5).
    pub is_ecn_capable: bool,
}

/// What a queue holds at most; the packets on the wire are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Bytes; `None` is no bound.
    pub bytes: Option<u64>,
    /// Packets; `None` is no bound.
    pub packets: Option<usize>,
}

/// A discipline and its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// First in, first out; what finds it full is dropped.
    DropTail,
    /// First in, first out, and packets are dropped from the head while all wait
    /// too long.
    CoDel(CoDel),
    /// A queue with `CoDel` for each flow, served in turn.
    Fair {
        /// Each queue's control.
        codel: CoDel,
        /// What flows are told apart by.
        isolation: Isolation,
        /// Bytes a flow may send in its turn.
        quantum: u64,
    },
    /// First in, first out, and packets are dropped or marked at random the more
    /// often the longer the queue was of late.
    Red(Thresholds),
}

/// Packets that wait for a bottleneck.
#[derive(Clone, Debug)]
pub struct Queue {
    limit: Limit,
    store: Store,
    /// What was dropped and not yet reported.
    dropped: VecDeque<(Packet, Reason)>,
}

#[derive(Clone, Debug)]
enum Store {
    DropTail(Fifo),
    CoDel(CoDelQueue),
    Fair(FairQueue),
    Red(RedQueue),
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    packet: Packet,
    /// When it came, in nanoseconds.
    since: u64,
    is_marked: bool,
}

impl Queue {
    /// An empty queue. What is left to chance follows from `seed`.
    #[must_use]
    pub fn new(discipline: &Discipline, limit: Limit, seed: u64) -> Self {
        let store = match *discipline {
            Discipline::DropTail => Store::DropTail(Fifo::default()),
            Discipline::CoDel(codel) => Store::CoDel(CoDelQueue::new(codel)),
            Discipline::Fair {
                codel,
                isolation,
                quantum,
            } => Store::Fair(FairQueue::new(codel, isolation, quantum, seed)),
            Discipline::Red(thresholds) => Store::Red(RedQueue::new(thresholds, seed)),
        };
        Self {
            limit,
            store,
            dropped: VecDeque::new(),
        }
    }

    /// Takes in a packet at `now`. Where it will be taken out again at once
    /// because nothing is before it and the bottleneck is free (not `must_wait`),
    /// it never finds the queue full.
    pub fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) {
        let now = now.as_nanos();
        let waiting = Waiting {
            packet,
            since: now,
            is_marked: false,
        };
        let is_full = must_wait && self.is_over(packet.bytes, 1);
        let refused = match &mut self.store {
            Store::Fair(fair) => {
                fair.push(waiting);
                None
            }
            Store::DropTail(_) | Store::CoDel(_) if is_full => Some((packet, Reason::QueueFull)),
            Store::DropTail(fifo) => {
                fifo.push(waiting);
                None
            }
            Store::CoDel(codel) => {
                codel.push(waiting);
                None
            }
            Store::Red(red) => red.offer(now, waiting, is_full),
        };
        self.dropped.extend(refused);
        // A full fair queue makes room at the expense of whoever has most in it.
        while must_wait && self.is_over(0, 0) {
            let Store::Fair(fair) = &mut self.store else {
                break;
            };
            let dropped = &mut self.dropped;
            let mut drop_late = |packet| dropped.push_back((packet, Reason::QueueFull));
            if !fair.drop_from_longest(&mut drop_late) {
                break;
            }
        }
    }

    /// The packet to be sent at `now`, and whether it is marked; none where
    /// nothing waits.
    pub fn dequeue(&mut self, now: Time) -> Option<(Packet, bool)> {
        let now = now.as_nanos();
        let dropped = &mut self.dropped;
        let mut drop_early = |packet| dropped.push_back((packet, Reason::QueueManaged));
        let next = match &mut self.store {
            Store::DropTail(fifo) => fifo.pop(),
            Store::CoDel(codel) => codel.pop(now, &mut drop_early),
            Store::Fair(fair) => fair.pop(now, &mut drop_early),
            Store::Red(red) => red.pop(now),
        }?;
        Some((next.packet, next.is_marked))
    }

    /// Takes out a packet that was dropped since it was last asked, and why.
    pub fn take_dropped(&mut self) -> Option<(Packet, Reason)> {
        self.dropped.pop_front()
    }

    /// Bytes that wait.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match &self.store {
            Store::DropTail(fifo) => fifo.bytes(),
            Store::CoDel(codel) => codel.fifo().bytes(),
            Store::Fair(fair) => fair.bytes(),
            Store::Red(red) => red.fifo().bytes(),
        }
    }

    /// Packets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.store {
            Store::DropTail(fifo) => fifo.len(),
            Store::CoDel(codel) => codel.fifo().len(),
            Store::Fair(fair) => fair.len(),
            Store::Red(red) => red.fifo().len(),
        }
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there would be too much with so much more.
    fn is_over(&self, bytes: u64, packets: usize) -> bool {
        let over_bytes = |limit| self.bytes().saturating_add(bytes) > limit;
        let over_packets = |limit| self.len() + packets > limit;
        self.limit.bytes.is_some_and(over_bytes) || self.limit.packets.is_some_and(over_packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(host: u32, bytes: u64) -> Packet {
        Packet {
            tag: 0,
            flow: Flow { host, flow: 0 },
            bytes,
            is_ecn_capable: false,
        }
    }

    fn fair(isolation: Isolation, limit: Limit) -> Queue {
        let patient = CoDel {
            target: u64::MAX / 4,
            interval: u64::MAX / 4,
            ecn: false,
        };
        let discipline = Discipline::Fair {
            codel: patient,
            isolation,
            quantum: 1514,
        };
        Queue::new(&discipline, limit, 1)
    }

    #[test]
    fn a_large_packet_puts_out_as_many_small_ones_as_it_needs_room_for() {
        let limit = Limit {
            bytes: Some(3000),
            packets: None,
        };
        let mut queue = fair(Isolation::Hosts, limit);
        for _ in 0..6 {
            queue.enqueue(Time::ZERO, packet(1, 500), true);
        }
        assert_eq!((queue.bytes(), queue.take_dropped()), (3000, None));
        queue.enqueue(Time::ZERO, packet(2, 1400), true);
        let dropped = std::iter::from_fn(|| queue.take_dropped()).count();
        assert_eq!((dropped, queue.bytes()), (3, 2900));
    }

    #[test]
    fn an_overflow_takes_half_of_the_longest_flow_and_at_most_a_batch() {
        // As `fq_codel` does: half of its bytes, but no more than 64 packets.
        for (most, wanted) in [(9, 5), (1000, 64)] {
            let limit = Limit {
                bytes: None,
                packets: Some(most),
            };
            let mut queue = fair(Isolation::Flows(1024), limit);
            for _ in 0..=most {
                queue.enqueue(Time::ZERO, packet(1, 500), true);
            }
            let dropped = std::iter::from_fn(|| queue.take_dropped()).count();
            assert_eq!(dropped, wanted, "of {most} and one");
        }
    }
}
