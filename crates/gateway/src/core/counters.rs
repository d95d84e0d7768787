//! What the core counts, to be read at any time.

use serde::{Deserialize, Serialize};

use super::budget::OverBudgetCounters;
use super::ids::Peer;

/// What a connection manager counts for one kind of peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Connections open now.
    pub open: u64,
    /// Connections ever opened.
    pub opened: u64,
    /// Messages taken in.
    pub messages_in: u64,
    /// Messages put into frames.
    pub messages_out: u64,
    /// Frames taken in.
    pub packets_in: u64,
    /// Frames begun.
    pub packets_out: u64,
    /// Bytes of frames taken in.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Reads that ended within a frame.
    pub fragmented: u64,
    /// Whole frames found in reads.
    pub combined: u64,
    /// Messages refused by the state machine.
    pub refused: u64,
    /// Connections closed for bad bytes.
    pub closed_for_bad_bytes: u64,
    /// Connections closed for reading too slowly.
    pub closed_for_slow_reading: u64,
    /// Times a connection began to be a slow reader.
    pub slow_readers: u64,
    /// Updates merged for slow readers rather than queued.
    pub updates_merged: u64,
    /// Channels whose whole state a slow reader was given instead.
    pub resyncs: u64,
    /// Pauses of those with more than a little waiting at a congested server,
    /// renewals counted.
    pub paused: u64,
}

/// What a connection manager counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// By kind of peer.
    pub peers: [PeerCounters; 2],
    /// Log events that found no room.
    pub events_lost: u64,
    /// Connections refused because their address is banned.
    pub banned: u64,
    /// How often peers went over the budgets that connections have.
    pub over_budget: OverBudgetCounters,
}

impl ConnectionCounters {
    /// Those of one kind of peer.
    #[must_use]
    pub fn of(&self, peer: Peer) -> &PeerCounters {
        &self.peers[peer.index()]
    }

    pub(super) fn of_mut(&mut self, peer: Peer) -> &mut PeerCounters {
        &mut self.peers[peer.index()]
    }
}

/// The types of channel that are counted apart, by the names that channeld's
/// metrics give them: where its protocol has no name, the number. Up to 109 are
/// those that its plugin for Unreal leaves to games.
pub const COUNTED_TYPES: [(i32, &str); 16] = [
    (1, "GLOBAL"),
    (2, "PRIVATE"),
    (3, "SUBWORLD"),
    (4, "SPATIAL"),
    (5, "ENTITY"),
    (100, "TEST"),
    (101, "TEST1"),
    (102, "TEST2"),
    (103, "TEST3"),
    (104, "TEST4"),
    (105, "105"),
    (106, "106"),
    (107, "107"),
    (108, "108"),
    (109, "109"),
    (0, "OTHER"),
];

/// What the channel manager counts for one type of channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeCounters {
    /// Channels there are now.
    pub channels: u64,
    /// Subscriptions there are now.
    pub subscriptions: u64,
    /// Updates taken in.
    pub updates: u64,
    /// Windows sent.
    pub windows: u64,
    /// Whole states sent.
    pub states: u64,
    /// Bytes of channel data in the windows and states, once each.
    pub bytes: u64,
    /// How late windows were sent after they were due.
    pub lateness: Buckets,
    /// How old the oldest update of each window was when it was sent.
    pub age: Buckets,
}

/// What the channel manager counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelCounters {
    /// By type of channel, in the order of [`COUNTED_TYPES`].
    pub types: [TypeCounters; COUNTED_TYPES.len()],
    /// The ticks at which some window was due, by how late the channels came
    /// to them.
    pub ticks: Buckets,
    /// Messages dropped, whatever the reason.
    pub dropped: u64,
    /// Messages, and fields of channel data, too long to be sent.
    pub too_long: u64,
    /// User-space messages passed on, once for each recipient.
    pub forwarded: u64,
    /// Entities that went from one spatial channel to another.
    pub handovers: u64,
    /// Logins refused.
    pub logins_refused: u64,
    /// How often peers went over the budgets that channels enforce.
    pub over_budget: OverBudgetCounters,
    /// Log events that found no room.
    pub events_lost: u64,
}

impl TypeCounters {
    fn add_all(&mut self, other: &Self) {
        let Self {
            channels,
            subscriptions,
            updates,
            windows,
            states,
            bytes,
            lateness,
            age,
        } = other;
        self.channels += channels;
        self.subscriptions += subscriptions;
        self.updates += updates;
        self.windows += windows;
        self.states += states;
        self.bytes += bytes;
        self.lateness.add_all(lateness);
        self.age.add_all(age);
    }
}

impl ChannelCounters {
    /// Adds what another shard's manager has counted.
    pub fn add(&mut self, other: &Self) {
        let Self {
            types,
            ticks,
            dropped,
            too_long,
            forwarded,
            handovers,
            logins_refused,
            over_budget,
            events_lost,
        } = other;
        for (sum, other) in self.types.iter_mut().zip(types) {
            sum.add_all(other);
        }
        self.ticks.add_all(ticks);
        self.dropped += dropped;
        self.too_long += too_long;
        self.forwarded += forwarded;
        self.handovers += handovers;
        self.logins_refused += logins_refused;
        self.over_budget.add(over_budget);
        self.events_lost += events_lost;
    }

    pub(super) fn of_mut(&mut self, channel_type: i32) -> &mut TypeCounters {
        let place = COUNTED_TYPES
            .iter()
            .position(|(number, _)| *number == channel_type)
            .unwrap_or(COUNTED_TYPES.len() - 1);
        &mut self.types[place]
    }
}

/// The upper ends of the buckets of a [`Buckets`], microseconds; one more
/// bucket holds what is above.
pub const BUCKET_ENDS_US: [u64; 12] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 2_000_000,
];

/// Durations, counted in buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// How many fell into each bucket of [`BUCKET_ENDS_US`], and above.
    pub counts: [u64; 13],
    /// Their sum, nanoseconds.
    pub sum_ns: u64,
}

impl Buckets {
    pub(super) fn add(&mut self, duration: std::time::Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[BUCKET_ENDS_US.partition_point(|&end| end < micros)] += 1;
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns = self.sum_ns.saturating_add(nanos);
    }

    fn add_all(&mut self, other: &Self) {
        for (sum, other) in self.counts.iter_mut().zip(&other.counts) {
            *sum += other;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}
