//! The gateway's numbers at a glance, for whoever watches it in a terminal.

use std::sync::Arc;
use std::time::Duration;

use crate::core::{BUCKET_ENDS_US, Buckets, Peer};

use super::Server;
pub use super::metrics::Hangs;
use super::metrics::Metrics;
use super::report::Numbers;

/// What a gateway has counted since its start, and what it holds now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Players that are connected.
    pub players: u64,
    /// Game servers that are connected.
    pub servers: u64,
    /// Channels that there are.
    pub channels: u64,
    /// Messages taken in, of players and servers.
    pub messages_in: u64,
    /// Messages sent.
    pub messages_out: u64,
    /// Bytes of frames sent.
    pub bytes_out: u64,
    /// Times a connection began to read too slowly.
    pub slow_readers: u64,
    /// Updates merged for those.
    pub updates_merged: u64,
    /// Ticks at which windows were due.
    pub ticks: u64,
    /// Those that the channels came to more than 10 ms late.
    pub late_ticks: u64,
    /// Each thread that serves.
    pub loops: Vec<LoopGlance>,
}

/// A thread of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopGlance {
    /// The loop's name, as metrics have it.
    pub name: String,
    /// Connections that it has; none of a thread that has channels alone.
    pub connections: Option<u64>,
    /// Time in which it did not wait, since the start.
    pub busy: Duration,
    /// Messages that wait in the queue before it.
    pub queued: u64,
    /// Bytes that wait to be written to its connections.
    pub waiting_bytes: u64,
}

/// Looks at a gateway while it runs.
#[derive(Clone)]
pub struct Watcher {
    metrics: Arc<Metrics>,
}

/// A tick that is later than this is late, in microseconds: an end of a bucket.
const LATE_US: u64 = 10_000;

impl Server {
    /// To look at the gateway while it runs.
    #[must_use]
    pub fn watcher(&self) -> Watcher {
        Watcher {
            metrics: Arc::clone(&self.metrics),
        }
    }
}

impl Watcher {
    /// What the gateway has counted by now.
    ///
    /// # Errors
    ///
    /// [`Hangs`] if a thread of it does not answer.
    pub fn look(&self) -> Result<Glance, Hangs> {
        let mut glance = Glance::default();
        for (name, numbers) in self.metrics.numbers()? {
            glance.add(name, &numbers);
        }
        Ok(glance)
    }
}

impl Glance {
    fn add(&mut self, name: &str, numbers: &Numbers) {
        let peers = numbers.connections.as_ref();
        for peer in Peer::ALL {
            let Some(of) = peers.map(|it| it.of(peer)) else {
                continue;
            };
            match peer {
                Peer::Client => self.players += of.open,
                Peer::Server => self.servers += of.open,
            }
            self.messages_in += of.messages_in;
            self.messages_out += of.messages_out;
            self.bytes_out += of.bytes_out;
            self.slow_readers += of.slow_readers;
            self.updates_merged += of.updates_merged;
        }
        if let Some((channels, _)) = &numbers.channels {
            self.channels += channels.types.iter().map(|it| it.channels).sum::<u64>();
            self.ticks += channels.ticks.count();
            self.late_ticks += later_than(&channels.ticks, LATE_US);
        }
        self.loops.push(LoopGlance {
            name: name.to_owned(),
            connections: peers.map(|it| it.peers.iter().map(|peer| peer.open).sum()),
            busy: Duration::from_nanos(numbers.busy_ns),
            queued: numbers.queued,
            waiting_bytes: numbers.waiting_bytes,
        });
    }
}

/// How many fell into buckets above `end_us`, which is the end of one.
fn later_than(buckets: &Buckets, end_us: u64) -> u64 {
    let first = BUCKET_ENDS_US.partition_point(|&end| end <= end_us);
    buckets.counts[first..].iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_late_from_the_bucket_above_ten_milliseconds_on() {
        let mut buckets = Buckets::default();
        // The bucket that ends at 10 ms, and the next two.
        buckets.counts[6..9].copy_from_slice(&[5, 2, 1]);
        assert_eq!(later_than(&buckets, LATE_US), 3);
    }
}
