//! How much of each [budget](crate::core::Budget) a peer has once it is let in.
//!
//! Clients are not trusted, though they have logged in; servers are run by whoever runs the
//! gateway and are trusted with the world. Both are held to what one message
//! may cost, clients also to what they may leave behind.

use crate::core::ids::Peer;

/// The budgets of both kinds of peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// The budgets of each game server.
    pub servers: PeerBudgets,
    /// The budgets of each client.
    pub clients: PeerBudgets,
    /// How many channels that clients made may outlive their makers, all
    /// together; the oldest of the address that left most are removed.
    pub orphaned_channels: usize,
    /// How many bytes of encoded data those may hold together; the largest of the
    /// address that left most are removed.
    pub orphaned_data_bytes: usize,
}

/// What one peer may ask of the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerBudgets {
    /// Channels, other than of entities, that it has made and that are there.
    pub channels: usize,
    /// Channels of entities that it may have made and that are still there.
    pub entity_channels: usize,
    /// Bytes of encoded data that all channels it has made may hold together.
    pub data_bytes: usize,
    /// Bytes of encoded data that one of them may grow to, and that are set
    /// aside for it; an entity's half as much. A channel made with more data
    /// than half of this gets twice that data.
    pub channel_data_bytes: usize,
    /// Bytes of encoded data that a channel which is not of its making may hold after
    /// an update of its: who else writes there may make it larger.
    pub shared_data_bytes: usize,
    /// Channels it may subscribe itself to.
    pub subscriptions: usize,
    /// Field masks of one subscription.
    pub masks: usize,
    /// Bytes of all field masks of one subscription together.
    pub mask_bytes: usize,
    /// The longest fan-out interval and delay, milliseconds.
    pub fan_out_within_ms: u32,
    /// Metadata filters of one LIST.
    pub filters: usize,
    /// Bytes of all metadata filters of one LIST together.
    pub filter_bytes: usize,
    /// Bytes of the answer to one LIST; what goes beyond is left out.
    pub list_answer_bytes: usize,
    /// Places in one spatial query, spots in one query of interest.
    pub places: usize,
    /// Entities in one group.
    pub group_size: usize,
    /// Bytes of a channel's metadata.
    pub metadata_bytes: usize,
    /// Units of work a second. A unit is about what it takes to look at one
    /// channel, one group of subscribers or 64 bytes.
    pub work_per_second: u32,
    /// Units of work that its LISTs may take each second.
    pub list_work_per_second: u32,
}

impl Budgets {
    /// Those of one kind of peer.
    #[must_use]
    pub fn of(&self, peer: Peer) -> &PeerBudgets {
        match peer {
            Peer::Server => &self.servers,
            Peer::Client => &self.clients,
        }
    }
}

impl PeerBudgets {
    /// What a game server has where nothing else is said: no limit on what it
    /// keeps, wide ones on what one message may cost.
    #[must_use]
    pub fn server() -> Self {
        Self {
            channels: usize::MAX,
            entity_channels: usize::MAX,
            data_bytes: usize::MAX,
            channel_data_bytes: usize::MAX,
            shared_data_bytes: usize::MAX,
            subscriptions: usize::MAX,
            masks: 1024,
            mask_bytes: 16 << 10,
            fan_out_within_ms: i32::MAX as u32,
            filters: 1024,
            filter_bytes: 64 << 10,
            list_answer_bytes: 2 << 20,
            places: 8192,
            group_size: 65_536,
            metadata_bytes: 16 << 10,
            work_per_second: u32::MAX,
            list_work_per_second: 5_000_000,
        }
    }

    /// What a client has where nothing else is said.
    #[must_use]
    pub fn client() -> Self {
        Self {
            channels: 32,
            entity_channels: 64,
            data_bytes: 2 << 20,
            channel_data_bytes: 32 << 10,
            shared_data_bytes: 512 << 10,
            subscriptions: 8192,
            masks: 64,
            mask_bytes: 4 << 10,
            fan_out_within_ms: 60_000,
            filters: 16,
            filter_bytes: 16 << 10,
            list_answer_bytes: 256 << 10,
            places: 1024,
            group_size: 64,
            metadata_bytes: 16 << 10,
            work_per_second: 200_000,
            list_work_per_second: u32::MAX,
        }
    }
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            servers: PeerBudgets::server(),
            clients: PeerBudgets::client(),
            orphaned_channels: 1024,
            orphaned_data_bytes: 2 << 20,
        }
    }
}
