//! The channel manager: owns channels, and decides who is let in.
//!
//! Messages are handled as they come. What subscribers are to receive of a
//! channel's data is sent on fan-out ticks: multiples of the subscription's interval,
//! brought up to the tick of the channel's type, so that all subscribers of one
//! interval get the same windows and all channels due at one tick reach a
//! connection in one packet. A fan-out tick is waited for only while something has
//! changed: channels at rest cost nothing, however many subscribe to them.

mod accounts;
mod adjacent;
mod admitted_elsewhere;
mod auth;
mod blocks;
mod causes;
mod channel;
mod channel_table;
mod check;
mod connection_table;
mod crossing;
mod cut;
mod dispatch;
mod entity;
mod entity_groups;
mod forward;
mod grouping;
mod handover;
mod handover_message;
mod handovers;
mod interest;
mod listing;
mod logins;
mod manage;
mod orphans;
mod outbound;
mod outgoing;
mod protobuf;
mod recoveries;
mod recovery;
mod shard_links;
mod shard_messages;
mod snapshot;
mod spatial;
mod subscribe;
mod subscriptions;
mod tables;
mod telemetry;
mod timers;
mod unreal;
mod update;

use lagometer_units::Time;

use super::bus::{HomeVersion, ToChannels, ToConnections};
use super::counters::ChannelCounters;
use super::events::Event;
use super::ids::{ChannelId, SideId};
use super::settings::ChannelSettings;

use accounts::WorkDebts;
use blocks::Blocks;
use channel_table::ChannelTable;
use connection_table::ConnectionTable;
use entity::Entities;
use entity_groups::EntityGroups;
use handovers::Handovers;
use logins::Logins;
pub use logins::{AuthRequest, AuthVerdict, Ticket};
use orphans::Orphans;
use outbound::Outbound;
pub(crate) use outgoing::{Envelope, encode};
use recoveries::Recoveries;
use shard_links::ShardLinks;
pub use snapshot::SnapshotError;
use subscriptions::Subscriptions;
use tables::Tables;
use telemetry::Telemetry;
use timers::{Due, Timers};

/// The channel manager. See the [module](super) for how it is driven.
///
/// It routes: each part has its own state, and what one part's decision leads to in
/// the others is done here and in the handlers of requests.
#[derive(Debug)]
pub struct ChannelManager {
    tables: Tables,
    subscriptions: Subscriptions,
    entities: Entities,
    groups: EntityGroups,
    handovers: Handovers,
    /// Set while `begin_crossings` loops, which must not begin again from within.
    begins_crossings: bool,
    blocks: Blocks,
    recoveries: Recoveries,
    logins: Logins,
    orphans: Orphans,
    work_debts: WorkDebts,
}

impl ChannelManager {
    /// A manager without connections and with one channel, GLOBAL, that nobody owns. In a
    /// shard that is not [home](super::ShardId::HOME) it stands for the one there: nobody can
    /// subscribe to it.
    #[must_use]
    pub fn new(settings: ChannelSettings) -> Self {
        let mut manager = Self {
            tables: Tables {
                connections: ConnectionTable::new(&settings.conn_numbers),
                channels: ChannelTable::new(settings.spatial_channels_from, settings.shard),
                settings,
                timers: Timers::default(),
                now: Time::ZERO,
                cause: None,
                home_version: HomeVersion::default(),
                out: Outbound::default(),
                links: ShardLinks::default(),
                telemetry: Telemetry::default(),
            },
            subscriptions: Subscriptions::default(),
            entities: Entities::default(),
            groups: EntityGroups::default(),
            handovers: Handovers::default(),
            begins_crossings: false,
            blocks: Blocks::default(),
            recoveries: Recoveries::default(),
            logins: Logins::default(),
            orphans: Orphans::default(),
            work_debts: WorkDebts::default(),
        };
        manager.make_channel(ChannelId::GLOBAL, channel::GLOBAL_TYPE, None);
        manager
    }

    /// One of several shards: in which epoch its channels begin. Others that knew those of an
    /// earlier one learn thereby that they are lost.
    pub fn begin_in_epoch(&mut self, epoch: u64) {
        self.tables.links.began_in(epoch);
        self.handovers.began_in(epoch);
        self.entities.began_in(epoch);
    }

    /// Takes other settings of channel types, logins and limits. The grid, the
    /// schema, the shard and the ranges of numbers stay as they were.
    pub fn set_settings(&mut self, settings: ChannelSettings) {
        let old = &self.tables.settings;
        self.tables.settings = ChannelSettings {
            grid: old.grid,
            schema: old.schema.clone(),
            spatial_channels_from: old.spatial_channels_from,
            entity_channels_from: old.entity_channels_from,
            unix_ns_at_zero: old.unix_ns_at_zero,
            shard: old.shard,
            ..settings
        };
    }

    /// What the calendar shows at the zero of the clock that times are of, nanoseconds since
    /// 1970: for whoever goes on with channels of another node, which has another calendar.
    pub fn set_unix_ns_at_zero(&mut self, unix_ns: i64) {
        self.tables.settings.unix_ns_at_zero = unix_ns;
    }

    /// Takes a message of a connection manager.
    pub fn handle(&mut self, now: Time, from: SideId, message: ToChannels) {
        self.tables.now = now;
        if matches!(message, ToChannels::RouteLost) {
            self.tables.out.remove_side(from);
            self.tables.links.edge_is_gone(now, from);
            return;
        }
        if self.tables.out.add_side(from) {
            self.report_bans_to(now, from);
            self.tables.report_global_owner_to(from);
            self.tables.greet_shards_through(from);
        }
        match message {
            ToChannels::Auth(attempt) => self.auth(now, from, attempt),
            ToChannels::Messages {
                from: sender,
                messages,
            } => {
                if self.tables.connections.is_on(sender, from) {
                    self.messages(now, sender, &messages);
                }
            }
            ToChannels::Admitted(connection) => self.admitted(now, from, connection),
            ToChannels::Introduced { key } => self.introduced(now, from, key),
            ToChannels::GlobalOwner { owner, version } => self.global_owner_is(owner, version),
            ToChannels::AddressProven { key } => self.address_proven(now, from, key),
            ToChannels::Congested {
                sender,
                receiver,
                pause,
            } => self.tables.congested(sender, receiver, pause),
            ToChannels::AskCongestion { sender, receiver } => {
                self.tables.ask_congestion(sender, receiver);
            }
            ToChannels::Relieved { sender, receiver } => self.tables.relieved(sender, receiver),
            ToChannels::Undelivered {
                sender,
                bytes,
                is_notice,
            } => self.tables.undelivered(sender, bytes, is_notice),
            ToChannels::Closed { key, broke_off } => self.closed(now, from, key, broke_off),
            ToChannels::Misbehaved(what) => self.misbehaved(now, what),
            ToChannels::Resync { id, channel } if self.tables.connections.is_on(id, from) => {
                self.subscriptions
                    .resync(&mut self.tables, now, id, channel);
            }
            ToChannels::Resync { .. } | ToChannels::RouteLost => {}
            ToChannels::Relayed { from: shard, frame } => self.relayed(from, shard, &frame),
        }
        self.sweep_timers();
    }

    /// The next message for a connection manager.
    pub fn poll_bus(&mut self) -> Option<(SideId, ToConnections)> {
        self.tables.out.pop()
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let due = [self.tables.timers.next(), self.tables.links.next_deadline()];
        due.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn handle_deadline(&mut self, now: Time) {
        self.tables.now = now;
        let edges = self.tables.out.sides();
        let frames = self.tables.links.handle_deadline(now, edges);
        self.tables.relay(frames);
        while let Some((due, what)) = self.tables.timers.pop(now) {
            match what {
                Due::FanOutTick { channel, group } => {
                    self.subscriptions
                        .fan_out_tick(&mut self.tables, now, due, channel, group);
                }
                Due::FirstState { channel, id } => {
                    self.subscriptions
                        .first_state_due(&mut self.tables, now, due, channel, id);
                }
                Due::FirstStates => self.subscriptions.first_states(&mut self.tables, now),
                Due::RecoveryEnd { id } => self.recovery_end(id, due),
                Due::RecoveryTimeout { id } => self.recovery_timeout(id, due),
            }
        }
    }

    /// Forgets timers that lead to nothing, once there are many.
    fn sweep_timers(&mut self) {
        if !self.tables.timers.wants_sweep() {
            return;
        }
        let (channels, recoveries) = (&self.tables.channels, &self.recoveries);
        let are_states_waiting = self.subscriptions.are_first_states_waiting();
        self.tables.timers.sweep(|at, due| match *due {
            Due::FanOutTick { channel, group } => channels
                .get(channel)
                .is_some_and(|channel| channel.subscribers.has_fan_out_tick(group, at)),
            Due::FirstState { channel, id } => channels
                .get(channel)
                .is_some_and(|channel| channel.subscribers.waits_for_state(id, at)),
            Due::FirstStates => are_states_waiting,
            Due::RecoveryEnd { id } | Due::RecoveryTimeout { id } => recoveries.is_due(id, at),
        });
    }

    /// Whether GLOBAL has an owner: until then clients may be kept out.
    #[must_use]
    pub fn has_global_owner(&self) -> bool {
        self.tables.owner(ChannelId::GLOBAL).is_some()
    }

    /// How many handovers between cells are under way: at home, which has them all.
    #[must_use]
    pub fn handovers_under_way(&self) -> usize {
        self.handovers.under_way()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> ChannelCounters {
        self.tables.telemetry.counters()
    }

    /// The next event for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.tables.telemetry.poll_event()
    }
}
