//! The channel manager written down as bytes, and read back elsewhere: from then on it does
//! what the one that was written would have done.
//!
//! Each part has what is to be written of it in its own module, next to what it is; here
//! they are put together. Channel data is written as the messages it is, encoded. What
//! follows from the rest is not written, and made anew.

use std::collections::BTreeSet;

use lagometer_limits::Debts;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::bus::HomeVersion;
use crate::core::check::BrokenInvariant;
use crate::core::ids::SideId;
use crate::core::settings::{ChannelSettings, Grid};
use crate::core::shards::Shard;

use super::ChannelManager;
use super::accounts::{Work, WorkDebts};
use super::blocks::Blocks;
use super::channel::Channel;
use super::channel_table::{ChannelTable, SavedChannels};
use super::connection_table::{ConnectionInfo, ConnectionTable, SavedConnections};
use super::entity::Entities;
use super::entity_groups::EntityGroups;
use super::handovers::Handovers;
use super::logins::Logins;
use super::orphans::{Maker, Orphans, SavedOrphans};
use super::outbound::Outbound;
use super::recoveries::Recoveries;
use super::shard_links::ShardLinks;
use super::subscriptions::Subscriptions;
use super::tables::Tables;
use super::telemetry::Telemetry;
use super::timers::Timers;

/// The version of what is written. Whoever changes anything that is written raises it.
const VERSION: u16 = 5;

/// The most bytes that are read.
const MOST_BYTES: usize = 1 << 30;

/// Why a channel manager was not written, or not read back.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not what is written of channels.
    #[error("the saved channels cannot be read: {0}")]
    Malformed(#[from] postcard::Error),
    /// Something comes after what was to be read, or there is too much of it.
    #[error("the saved channels are of {0} bytes, which is not what they say")]
    Length(usize),
    /// Another version wrote them.
    #[error(
        "the saved channels are of version {theirs}, this one reads {ours}: start the same \
         lagometer on all nodes"
    )]
    OtherVersion {
        /// Who wrote them.
        theirs: u16,
        /// Who reads them.
        ours: u16,
    },
    /// They are of a gateway with other settings.
    #[error("the saved channels are of a gateway with {0}: give all nodes the same settings")]
    OtherSettings(&'static str),
    /// They contradict themselves.
    #[error("the saved channels are not sound: {0}")]
    Unsound(#[from] BrokenInvariant),
}

/// What may not change as long as channels are.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Lasting {
    spatial_channels_from: u32,
    entity_channels_from: u32,
    grid: Option<Grid>,
    shard: Shard,
}

impl Lasting {
    fn of(settings: &ChannelSettings) -> Self {
        Self {
            spatial_channels_from: settings.spatial_channels_from,
            entity_channels_from: settings.entity_channels_from,
            grid: settings.grid,
            shard: settings.shard,
        }
    }
}

/// All of it, with connections and channels that are elsewhere, or here.
#[derive(Debug, Serialize, Deserialize)]
struct Saved<C, D, P> {
    lasting: Lasting,
    /// Unix time at the zero of the channels' clock, nanoseconds.
    unix_ns_at_zero: i64,
    connections: SavedConnections<C>,
    channels: SavedChannels<D>,
    sides: BTreeSet<SideId>,
    home_version: HomeVersion,
    orphans: SavedOrphans,
    work_debts: Vec<(Maker, Time, Work)>,
    parts: P,
}

/// The parts that are written as they are.
#[derive(Debug, Deserialize)]
struct Parts {
    timers: Timers,
    telemetry: Telemetry,
    subscriptions: Subscriptions,
    entities: Entities,
    groups: EntityGroups,
    handovers: Handovers,
    links: ShardLinks,
    blocks: Blocks,
    recoveries: Recoveries,
    logins: Logins,
}

/// The same where they are.
#[derive(Debug, Serialize)]
struct PartsHere<'a> {
    timers: &'a Timers,
    telemetry: &'a Telemetry,
    subscriptions: &'a Subscriptions,
    entities: &'a Entities,
    groups: &'a EntityGroups,
    handovers: &'a Handovers,
    links: &'a ShardLinks,
    blocks: &'a Blocks,
    recoveries: &'a Recoveries,
    logins: &'a Logins,
}

impl ChannelManager {
    /// Writes down all there is but the settings. What waits on the bus and events for the
    /// log are not part of it: read them first.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Malformed`] if something cannot be written, which nothing there is
    /// leads to.
    pub fn snapshot(&self) -> Result<Vec<u8>, SnapshotError> {
        let tables = &self.tables;
        let debts = self.work_debts.iter();
        let saved = Saved {
            lasting: Lasting::of(&tables.settings),
            unix_ns_at_zero: tables.settings.unix_ns_at_zero,
            connections: tables.connections.save(),
            channels: tables.channels.save(),
            sides: tables.out.sides().clone(),
            home_version: tables.home_version,
            orphans: self.orphans.save(),
            work_debts: debts
                .map(|(maker, paid_at, work)| (maker.clone(), paid_at, *work))
                .collect(),
            parts: PartsHere {
                timers: &tables.timers,
                telemetry: &tables.telemetry,
                subscriptions: &self.subscriptions,
                entities: &self.entities,
                groups: &self.groups,
                handovers: &self.handovers,
                links: &tables.links,
                blocks: &self.blocks,
                recoveries: &self.recoveries,
                logins: &self.logins,
            },
        };
        Ok(postcard::to_allocvec(&(VERSION, saved))?)
    }

    /// Reads back what [`snapshot`](Self::snapshot) has written: with the same settings the
    /// manager goes on as the one that was written would have. Times are those of its
    /// clock, and so have to be those that are handed in from now on; how connections get
    /// their numbers, and what the calendar shows at its zero, is as it was there.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`]: the bytes are not sound, or of another version, or the settings
    /// cannot be those of the gateway that wrote them.
    pub fn restore(settings: ChannelSettings, bytes: &[u8]) -> Result<Self, SnapshotError> {
        if bytes.len() > MOST_BYTES {
            return Err(SnapshotError::Length(bytes.len()));
        }
        let (version, rest) = postcard::take_from_bytes::<u16>(bytes)?;
        if version != VERSION {
            return Err(SnapshotError::OtherVersion {
                theirs: version,
                ours: VERSION,
            });
        }
        let (saved, rest) =
            postcard::take_from_bytes::<Saved<ConnectionInfo, Channel, Parts>>(rest)?;
        if !rest.is_empty() {
            return Err(SnapshotError::Length(bytes.len()));
        }
        if saved.lasting != Lasting::of(&settings) {
            return Err(SnapshotError::OtherSettings(
                "another grid, another number of shards, or other ranges of channel numbers",
            ));
        }
        let given_below = settings.spatial_channels_from;
        let channels = ChannelTable::restore(
            given_below,
            settings.shard,
            &settings.schema,
            saved.channels,
        )
        .ok_or(SnapshotError::OtherSettings("other types of channel data"))?;
        let parts = saved.parts;
        let manager = Self {
            tables: Tables {
                connections: ConnectionTable::restore(saved.connections),
                channels,
                settings: ChannelSettings {
                    unix_ns_at_zero: saved.unix_ns_at_zero,
                    ..settings
                },
                timers: parts.timers,
                now: Time::ZERO,
                cause: None,
                home_version: saved.home_version,
                out: Outbound::restore(saved.sides),
                links: parts.links,
                telemetry: parts.telemetry,
            },
            subscriptions: parts.subscriptions,
            entities: parts.entities,
            groups: parts.groups,
            handovers: parts.handovers,
            begins_crossings: false,
            blocks: parts.blocks,
            recoveries: parts.recoveries,
            logins: parts.logins,
            orphans: Orphans::restore(saved.orphans),
            work_debts: restore_debts(saved.work_debts),
        };
        manager.check_invariants()?;
        Ok(manager)
    }
}

fn restore_debts(saved: Vec<(Maker, Time, Work)>) -> WorkDebts {
    let mut debts = Debts::default();
    for (maker, paid_at, work) in saved {
        debts.leave(Time::ZERO, maker, paid_at, work);
    }
    debts
}
