//! What the gateway is given at its start: the settings files of games, read as
//! they are, and the limits of the gateway itself.

mod budgets;
mod channel_types;
mod fsm;
mod grid;
mod json;
mod openings;

pub use budgets::{Budgets, PeerBudgets};
pub use channel_types::{Acl, AclLevel, ChannelTypeSettings, ChannelTypes, channel_type_name};
pub use fsm::{Fsm, FsmState};
pub use grid::{Grid, Position};
pub use json::SettingsError;
pub use openings::openings;

use std::time::Duration;

use lagometer_protocol::merge::MergeLimits;
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{Compression, FrameLimits};
use serde::{Deserialize, Serialize};

use super::shards::{Shard, ShardMap};

/// Settings of a connection manager.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// The types of messages that servers may send, by the state of their connection.
    pub server_fsm: Fsm,
    /// The types of messages that clients may send, by the state of their connection.
    pub client_fsm: Fsm,
    /// The largest frames and packets that are accepted, in bytes.
    pub frames: FrameLimits,
    /// The types of channel data, for merging what slow readers have not read.
    pub schema: Schema,
    /// What is expected of clients; absent, nothing is.
    pub anti_ddos: Option<AntiDdos>,
    /// How long a client that was let in may say nothing.
    pub silent_at_most: Option<Duration>,
    /// How much may wait for peers that read slowly before their updates are merged, or
    /// they are closed.
    pub slow_readers: SlowReaders,
    /// What a connection may ask for before its login.
    pub before_login: LoginBudget,
    /// The longest identifiers and tokens of logins, in bytes.
    pub logins: LoginLimits,
    /// Memory that recordings of clients may take, in bytes.
    pub recordings: RecordingLimits,
}

/// What a connection may ask for before its login; it is closed when it asks
/// for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginBudget {
    /// Bytes, on the wire or unpacked, whichever are more.
    pub bytes: usize,
    /// The most messages of any type.
    pub messages: u32,
    /// The most AUTH messages.
    pub attempts: u32,
}

impl Default for LoginBudget {
    /// 128 KiB, 512 messages, eight attempts.
    fn default() -> Self {
        Self {
            bytes: 128 << 10,
            messages: 512,
            attempts: 8,
        }
    }
}

/// How long what a login says may be. What is longer is refused with the answer
/// that the name, or the token, is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLimits {
    /// Bytes of the player's name ("PIT").
    pub player_bytes: usize,
    /// Bytes of the login token ("LT").
    pub token_bytes: usize,
}

impl Default for LoginLimits {
    /// 256 bytes and 8 KiB, which is a JWT with many claims.
    fn default() -> Self {
        Self {
            player_bytes: 256,
            token_bytes: 8 << 10,
        }
    }
}

impl LoginLimits {
    /// An unfinished frame of a connection that has not logged in may always be as
    /// long as this.
    const UNFINISHED_BYTES: usize = 16 << 10;

    /// What a login is packed in beside the player's name and the token: headers,
    /// keys and lengths, and what else comes in its frame.
    const SLACK_BYTES: usize = 1 << 10;

    /// The most bytes that a connection that has not logged in may leave
    /// unfinished: of a frame, of a WebSocket message, or of what KCP cannot put
    /// in order yet. A login fits, and 16 KiB do.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        self.bytes().max(Self::UNFINISHED_BYTES)
    }

    /// Bytes of the longest login, with all that it is packed in.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let login = self.player_bytes.saturating_add(self.token_bytes);
        login.saturating_add(Self::SLACK_BYTES)
    }
}

/// How much memory recordings may take before they are written. Beyond it a
/// recording ends; what was kept until then is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLimits {
    /// Bytes of one client's.
    pub client_bytes: usize,
    /// Bytes of all clients' of one connection manager together.
    pub side_bytes: usize,
}

impl Default for RecordingLimits {
    /// 16 MiB and 256 MiB.
    fn default() -> Self {
        Self {
            client_bytes: 16 << 20,
            side_bytes: 256 << 20,
        }
    }
}

/// What is expected of clients that have not been let in, or send what they
/// must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AntiDdos {
    /// How long a connection may take to be let in; after that it is closed,
    /// which counts as a failed login of its address.
    pub auth_timeout: Duration,
    /// How many failed logins bar a player at an address (wrong login token) or
    /// an address (wrong player token); for an address so many more for each
    /// client that plays from there. 0 is no limit.
    pub max_failed_auth: u32,
    /// How many messages that its state does not allow end a client and bar the
    /// player at its address. 0 is no limit.
    pub max_refused: u32,
}

impl Default for AntiDdos {
    /// Five seconds, five failures, ten refused messages.
    fn default() -> Self {
        Self {
            auth_timeout: Duration::from_secs(5),
            max_failed_auth: 5,
            max_refused: 10,
        }
    }
}

/// What is put up with of connections that read more slowly than they are
/// written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowReaders {
    /// Once this many bytes wait, further updates of channel data are merged
    /// rather than queued.
    pub merge_from_bytes: usize,
    /// Merged updates are queued again once no more than this many bytes wait.
    pub resume_at_bytes: usize,
    /// At this many bytes waiting the connection is closed: these are messages
    /// that cannot be merged.
    pub close_at_bytes: usize,
    /// The same of a game server. From a quarter of `close_at_bytes` on the
    /// clients whose messages wait for it are read more slowly; from half of
    /// this on those with more than a little waiting get nothing more to it, and
    /// beyond three quarters no client does.
    pub server_close_at_bytes: usize,
    /// How long nothing may be read while something waits.
    pub close_after: Duration,
    /// How large the merged updates of one channel may grow before they are
    /// dropped and the reader gets the whole state instead.
    pub merged: MergeLimits,
}

impl SlowReaders {
    /// How large the merged updates of all channels of one reader may grow
    /// together, encoded: a quarter of what may wait.
    #[must_use]
    pub fn merged_bytes(&self) -> usize {
        self.close_at_bytes / 4
    }
}

impl Default for SlowReaders {
    /// Merging from 256 KiB, queueing again at 64 KiB, closing at 4 MiB (servers:
    /// 64 MiB) or after ten seconds.
    fn default() -> Self {
        Self {
            merge_from_bytes: 256 << 10,
            resume_at_bytes: 64 << 10,
            close_at_bytes: 4 << 20,
            server_close_at_bytes: 64 << 20,
            close_after: Duration::from_secs(10),
            merged: MergeLimits {
                max_encoded_bytes: 48 << 10,
            },
        }
    }
}

impl Default for ConnectionSettings {
    /// The state machines that games expect where nothing else is said, the
    /// bundled types, and no limits on how clients behave.
    fn default() -> Self {
        Self {
            server_fsm: Fsm::server(),
            client_fsm: Fsm::client(),
            frames: FrameLimits::default(),
            schema: Schema::bundled(),
            anti_ddos: None,
            silent_at_most: None,
            slow_readers: SlowReaders::default(),
            logins: LoginLimits::default(),
            recordings: RecordingLimits::default(),
            before_login: LoginBudget::default(),
        }
    }
}

/// Settings of the channel manager.
#[derive(Clone, Debug)]
pub struct ChannelSettings {
    /// Tick, fan-out and rights by type of channel.
    pub types: ChannelTypes,
    /// The world's grid; without it there are no spatial channels.
    pub grid: Option<Grid>,
    /// The types of channel data.
    pub schema: Schema,
    /// How large a channel's data may grow.
    pub data: MergeLimits,
    /// The compression announced to peers; they choose.
    pub announced_compression: Compression,
    /// The largest connection number.
    pub max_conn_id: u32,
    /// Whether connections are numbered at random or in order.
    pub conn_numbers: ConnNumbers,
    /// The first channel number that is a place in the grid.
    pub spatial_channels_from: u32,
    /// The first channel number that is an entity.
    pub entity_channels_from: u32,
    /// Servers are let in without asking the provider.
    pub servers_bypass_auth: bool,
    /// Whether everyone is let in, or a provider decides about logins.
    pub auth: AuthPolicy,
    /// The most failed logins of clients, as [`AntiDdos::max_failed_auth`].
    pub max_failed_auth: u32,
    /// How long a player or an address stays barred for failed logins, and how
    /// long failures are remembered.
    pub barred_for: Duration,
    /// What each peer may ask of the channels.
    pub budgets: Budgets,
    /// What clients may do that concerns others.
    pub client_rights: ClientRights,
    /// Whether a server that broke off may come back and take up its channels,
    /// and how long that is possible.
    pub recovery: Option<Recovery>,
    /// Spawn and destroy messages of Unreal games are looked into.
    pub unreal: bool,
    /// The debugging query for the grid is answered.
    pub development: bool,
    /// Unix time, nanoseconds, at [`Time::ZERO`](lagometer_units::Time::ZERO).
    pub unix_ns_at_zero: i64,
    /// Which channels are this manager's.
    pub shard: Shard,
}

impl ChannelSettings {
    /// Which shard has which channel.
    #[must_use]
    pub fn shard_map(&self) -> ShardMap {
        ShardMap {
            count: self.shard.count,
            spatial_channels_from: self.spatial_channels_from,
            entity_channels_from: self.entity_channels_from,
            grid: self.grid,
        }
    }
}

/// How connections get their numbers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConnNumbers {
    /// 1, 2, 3: what games in development are told apart by.
    Counted,
    /// Drawn with a secret, so that no peer can guess another's.
    Drawn([u8; 32]),
}

/// The secret does not show.
impl std::fmt::Debug for ConnNumbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Counted => "Counted",
            Self::Drawn(_) => "Drawn",
        })
    }
}

/// Who decides whether a login is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthPolicy {
    /// Everyone is let in: development only.
    AdmitAll,
    /// A provider is asked; see
    /// [`ChannelManager::poll_auth_request`](super::ChannelManager::poll_auth_request).
    AskProvider,
}

/// What clients may do that concerns others, beside what the rights of channel
/// types say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientRights {
    /// Only what concerns what is theirs.
    #[default]
    Own,
    /// Own GLOBAL, group entities that are not theirs, show theirs to everyone:
    /// development only.
    All,
}

/// How long a server that broke off may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// `None` is for ever.
    pub within: Option<Duration>,
}

impl Default for ChannelSettings {
    /// The settings that games expect where nothing else is said; logins are
    /// for a provider to decide.
    fn default() -> Self {
        Self {
            types: ChannelTypes::default(),
            grid: None,
            schema: Schema::bundled(),
            data: MergeLimits::default(),
            announced_compression: Compression::None,
            max_conn_id: u32::MAX >> 1,
            conn_numbers: ConnNumbers::Counted,
            spatial_channels_from: 0x0001_0000,
            entity_channels_from: 0x0008_0000,
            servers_bypass_auth: true,
            auth: AuthPolicy::AskProvider,
            max_failed_auth: 0,
            barred_for: Duration::from_mins(15),
            budgets: Budgets::default(),
            client_rights: ClientRights::Own,
            recovery: None,
            unreal: true,
            development: false,
            unix_ns_at_zero: 0,
            shard: Shard::WHOLE,
        }
    }
}
