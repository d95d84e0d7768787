//! `[limits]` and `[slow_readers]` of `gateway.toml`: what is put up with.

use lagometer_units::{Size, Span};
use serde::Deserialize;

use crate::server::config::address::NetworkRange;

/// `[limits]`. What is not said is not limited.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Connections of both kinds at once, at most as many as there can be files.
    pub connections: u32,
    /// So many of them, a quarter at most, no client can take.
    pub reserved_for_servers: u32,
    /// Clients at once that have not logged in. One more takes the place of the
    /// one that has been there longest.
    pub unauthenticated: u32,
    /// The same of one address.
    pub unauthenticated_per_address: u32,
    /// Memory that all of them may hold together; the largest of the address that
    /// holds most is closed. A quarter of it is for KCP conversations with peers
    /// that have not shown to be where they say, of which the oldest is.
    pub unauthenticated_memory: Size,
    /// Bytes that a connection may send before its login, on the wire or
    /// unpacked; then it is closed.
    pub login_bytes: Size,
    /// Messages that a connection may send before its login.
    pub login_messages: u32,
    /// Logins that a connection may attempt.
    pub login_attempts: u32,
    /// Processor time that a connection may cost before its login.
    pub login_work: Span,
    /// Clients at once from one address.
    pub connections_per_address: Option<u32>,
    /// Clients that may come from one address in a second.
    pub connects_per_second_per_address: Option<u32>,
    /// Messages that all clients of one address together are read in a second,
    /// on average.
    pub messages_per_second_per_address: Option<u32>,
    /// Messages of one client that are read in a second on average, and twice as
    /// many at once, or frames of a WebSocket or records of TLS where those are more.
    /// Further ones wait in its socket.
    pub messages_per_second: u32,
    /// The same of its bytes, unpacked or on the wire, whichever are more.
    pub bytes_per_second: Size,
    /// The largest payload of a frame as it lies on the wire.
    pub max_frame: Size,
    /// The most a compressed payload may unpack to.
    pub max_packet: Size,
    /// How long a connection may take until it is let in.
    pub login_within: Span,
    /// How long a client that was let in may say nothing.
    pub silent_at_most: Option<Span>,
    /// KCP conversations at once, in each thread, with peers that have not
    /// shown to be where they say; beyond, the oldest of them goes.
    pub kcp_unproven: u32,
    /// The same of one address, or an IPv6 /64.
    pub kcp_unproven_per_address: u32,
    /// How long nothing may come from a KCP peer. It is asked for a sign of
    /// life before, which any KCP gives by itself.
    pub kcp_silent_at_most: Span,
    /// Addresses that are turned away.
    pub banned: Vec<NetworkRange>,
    /// The longest name a player logs in with.
    pub player_name: Size,
    /// The longest login token.
    pub login_token: Size,
    /// What is kept of one client's recording; there it ends.
    pub recording: Size,
    /// The longest text that describes a channel.
    pub metadata: Size,
    /// Channels that one client may have made, entities' not counted.
    pub channels: u32,
    /// Channels of entities that one client may have made.
    pub entity_channels: u32,
    /// How much data all channels that one client made may hold.
    pub data: Size,
    /// How much one of them may, and is set aside for it; an entity's half.
    pub channel_data: Size,
    /// How large clients may make the data of a channel that none of them made.
    /// `[channels] max_data` is for servers.
    pub shared_data: Size,
    /// Channels that clients made and that may outlive them, all together.
    pub orphaned_channels: u32,
    /// How much data those may hold, all together.
    pub orphaned_data: Size,
    /// Channels that one client may subscribe itself to.
    pub subscriptions: u32,
    /// Field masks of one subscription that a client asks for.
    pub masks: u32,
    /// The longest fan-out interval and delay that a client may ask for.
    pub fan_out_within: Span,
    /// Metadata filters of one LIST of a client.
    pub filters: u32,
    /// The longest answer to one LIST of a client.
    pub list_answer: Size,
    /// Entities in a group that a client makes.
    pub group_size: u32,
    /// Units of work that one client's requests may cost the channels in a
    /// second.
    pub work_per_second: u32,
}

impl Default for LimitsSection {
    fn default() -> Self {
        Self {
            connections: 100_000,
            reserved_for_servers: 256,
            unauthenticated: 32_768,
            unauthenticated_per_address: 16_384,
            unauthenticated_memory: Size(256 << 20),
            login_bytes: Size(128 << 10),
            login_messages: 512,
            login_attempts: 8,
            login_work: Span::from_millis(100),
            connections_per_address: None,
            connects_per_second_per_address: None,
            messages_per_second_per_address: None,
            messages_per_second: 2_000,
            bytes_per_second: Size(1 << 20),
            max_frame: Size(65_535),
            max_packet: Size(1 << 20),
            login_within: Span::from_millis(30_000),
            silent_at_most: None,
            kcp_unproven: 4_096,
            kcp_unproven_per_address: 1_024,
            kcp_silent_at_most: Span::from_millis(30_000),
            banned: Vec::new(),
            player_name: Size(256),
            login_token: Size(8 << 10),
            recording: Size(16 << 20),
            metadata: Size(16 << 10),
            channels: 32,
            entity_channels: 64,
            data: Size(2 << 20),
            channel_data: Size(32 << 10),
            shared_data: Size(512 << 10),
            orphaned_channels: 1024,
            orphaned_data: Size(2 << 20),
            subscriptions: 8192,
            masks: 64,
            fan_out_within: Span::from_millis(60_000),
            filters: 16,
            list_answer: Size(256 << 10),
            group_size: 64,
            work_per_second: 200_000,
        }
    }
}

/// `[slow_readers]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlowReadersSection {
    /// From so many bytes waiting on, updates are merged rather than queued.
    pub merge_from: Size,
    /// Down to so many bytes waiting, they are queued again.
    pub resume_at: Size,
    /// At so many bytes waiting a client is closed. From a quarter of it waiting
    /// for a game server on, those who write to that server are read more
    /// slowly.
    pub close_at: Size,
    /// At so many bytes waiting a game server is closed.
    pub server_close_at: Size,
    /// How long nothing may be read while something waits.
    pub close_after: Span,
    /// How large the merged updates of one channel may grow before the whole
    /// state is sent in their place.
    pub max_merged: Size,
}

impl Default for SlowReadersSection {
    fn default() -> Self {
        Self {
            merge_from: Size(256 << 10),
            resume_at: Size(64 << 10),
            close_at: Size(4 << 20),
            server_close_at: Size(64 << 20),
            close_after: Span::from_millis(10_000),
            max_merged: Size(128 << 10),
        }
    }
}
