//! The emulator by a clock that is not its own.
//!
//! The router's counters begin when it reads a packet: how long the packet waited to
//! be read, in a device while the router slept or was off the processor, they cannot
//! know. So each host's devices are tapped, and the kernel stamps every packet where
//! it is sent and where it arrives. What lies between, beyond what the link asked
//! for, is the emulator's error, whoever is to blame.
//!
//! Devices keep the order of packets, and the router says in which order it took and
//! released them; so what the taps saw is joined to what the router did by order and
//! by what the packets hold.

#[cfg_attr(not(target_os = "linux"), path = "../elsewhere/watch.rs")]
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::spread::Durations;
#[cfg(target_os = "linux")]
pub(crate) use watch::Tapping;
pub(crate) use watch::Watch;

/// So many bytes of a packet are seen: the headers of any, and what tells most apart.
pub(crate) const HEAD_BYTES: usize = 128;

/// What tells one packet of a direction from the next.
pub(crate) type Fingerprint = u64;

/// Of a packet of `length` bytes, by its first bytes `head`, as many as a tap sees.
pub(crate) fn fingerprint(head: &[u8], length: usize) -> Fingerprint {
    head.iter()
        .fold(0xCBF2_9CE4_8422_2325 ^ length as u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        })
}

/// What the router did, in order. A way is a lane's direction: twice the lane's
/// number, and one more from server to client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RouterEvent {
    /// Counters of this generation begin.
    Began { generation: u32 },
    /// It took a packet from a host; one that will be released has a number.
    Took {
        way: usize,
        fingerprint: Fingerprint,
        number: Option<u64>,
    },
    /// It released a packet, `asked` after it had taken it by the will of the link. A
    /// copy that the link made has no number.
    Released {
        way: usize,
        fingerprint: Fingerprint,
        number: Option<u64>,
        asked: Duration,
        generation: u32,
    },
}

/// What the clock outside says of one way.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    /// From where packets were sent to where they arrived, how far from what the
    /// link asked for.
    pub(crate) error: Durations,
    /// Packets that could not be followed.
    pub(crate) unseen: u64,
}

/// Joins what taps saw to what the router did.
#[derive(Debug)]
pub(crate) struct OutsideClock {
    generation: u32,
    ways: Vec<Way>,
}

/// One way's packets.
#[derive(Debug)]
struct Way {
    sent: VecDeque<(Fingerprint, u64)>,
    arrived: VecDeque<(Fingerprint, u64)>,
    events: VecDeque<RouterEvent>,
    /// When packets were sent that the router holds, by their numbers.
    held: BTreeMap<u64, u64>,
    found: Outside,
}

/// What is kept of a way that nobody asks for: packets that the router lost.
const MOST_KEPT: usize = 1 << 16;

impl OutsideClock {
    pub(crate) fn new(ways: usize) -> Self {
        Self {
            generation: 0,
            ways: (0..ways).map(|_| Way::new()).collect(),
        }
    }

    /// A host's device sent a packet at `at_ns` by the kernel's clock.
    pub(crate) fn sent(&mut self, way: usize, fingerprint: Fingerprint, at_ns: u64) {
        keep(&mut self.ways[way].sent, (fingerprint, at_ns));
    }

    /// A host's device took a packet at `at_ns` by the kernel's clock.
    pub(crate) fn arrived(&mut self, way: usize, fingerprint: Fingerprint, at_ns: u64) {
        keep(&mut self.ways[way].arrived, (fingerprint, at_ns));
    }

    /// The router did something. What the taps saw until then must be said before
    /// [`settle`](Self::settle).
    pub(crate) fn note(&mut self, event: RouterEvent) {
        match event {
            RouterEvent::Began { generation } => {
                self.generation = generation;
                for way in &mut self.ways {
                    way.found = Outside::new();
                }
            }
            RouterEvent::Took { way, .. } | RouterEvent::Released { way, .. } => {
                self.ways[way].events.push_back(event);
            }
        }
    }

    /// Joins all that was noted to what was seen.
    pub(crate) fn settle(&mut self) {
        for way in &mut self.ways {
            way.settle(self.generation);
        }
    }

    /// What was found of each way since counters last began.
    pub(crate) fn findings(self) -> Vec<Outside> {
        self.ways.into_iter().map(|way| way.found).collect()
    }
}

impl Way {
    fn new() -> Self {
        Self {
            sent: VecDeque::new(),
            arrived: VecDeque::new(),
            events: VecDeque::new(),
            held: BTreeMap::new(),
            found: Outside::new(),
        }
    }

    fn settle(&mut self, current: u32) {
        while let Some(event) = self.events.pop_front() {
            match event {
                RouterEvent::Began { .. } => {}
                RouterEvent::Took {
                    fingerprint,
                    number,
                    ..
                } => {
                    let sent = take_same(&mut self.sent, fingerprint);
                    if let (Some(number), Some(at_ns)) = (number, sent) {
                        self.held.insert(number, at_ns);
                    }
                }
                RouterEvent::Released {
                    fingerprint,
                    number,
                    asked,
                    generation,
                    ..
                } => {
                    let arrived = take_same(&mut self.arrived, fingerprint);
                    let Some(number) = number else {
                        continue;
                    };
                    let sent = self.held.remove(&number);
                    if generation != current {
                        continue;
                    }
                    match (sent, arrived) {
                        (Some(sent), Some(arrived)) => {
                            let lasted = Duration::from_nanos(arrived.saturating_sub(sent));
                            self.found.error.record(lasted.abs_diff(asked));
                        }
                        _ => self.found.unseen += 1,
                    }
                }
            }
        }
    }
}

impl Outside {
    pub(crate) fn new() -> Self {
        Self {
            error: Durations::new(Duration::from_micros(1)),
            unseen: 0,
        }
    }
}

fn keep(queue: &mut VecDeque<(Fingerprint, u64)>, seen: (Fingerprint, u64)) {
    if queue.len() == MOST_KEPT {
        queue.pop_front();
    }
    queue.push_back(seen);
}

/// When the next packet of that fingerprint passed. What passed before it went
/// another way: into a full queue, or to somebody else.
fn take_same(queue: &mut VecDeque<(Fingerprint, u64)>, fingerprint: Fingerprint) -> Option<u64> {
    let place = queue.iter().position(|seen| seen.0 == fingerprint)?;
    queue.drain(..=place).next_back().map(|seen| seen.1)
}

#[cfg(test)]
mod tests;
