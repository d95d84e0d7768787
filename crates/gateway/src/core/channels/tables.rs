//! What every part of the channel manager reads and writes: the settings, who is
//! connected, the channels, what is due when, and what goes out.

use lagometer_units::Time;

use crate::core::bus::HomeVersion;
use crate::core::ids::{ChannelId, ConnId};
use crate::core::settings::ChannelSettings;

use super::causes::Cause;
use super::channel_table::ChannelTable;
use super::connection_table::ConnectionTable;
use super::outbound::Outbound;
use super::shard_links::ShardLinks;
use super::telemetry::Telemetry;
use super::timers::Timers;

/// The tables. Each keeps its own state private.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) settings: ChannelSettings,
    pub(super) connections: ConnectionTable,
    pub(super) channels: ChannelTable,
    pub(super) timers: Timers,
    /// The instant of what is being handled.
    pub(super) now: Time,
    /// Whose requests are being handled.
    pub(super) cause: Option<Cause>,
    /// Of home's last decision; elsewhere of what is known of GLOBAL's owner.
    pub(super) home_version: HomeVersion,
    pub(super) out: Outbound,
    pub(super) links: ShardLinks,
    pub(super) telemetry: Telemetry,
}

impl Tables {
    /// A channel's owner, if it is connected.
    pub(super) fn owner(&self, channel: ChannelId) -> Option<ConnId> {
        self.channels.get(channel)?.owner
    }

    pub(super) fn unix_ms(&self, now: Time) -> i64 {
        self.unix_ns(now) / 1_000_000
    }

    pub(super) fn unix_ns(&self, now: Time) -> i64 {
        let passed = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        self.settings.unix_ns_at_zero.saturating_add(passed)
    }
}
