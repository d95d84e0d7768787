//! The channel manager: owns channels, and decides who is let in.
//!
//! Messages are handled as they come. What subscribers are to hear of a
//! channel's data is sent on fan-out ticks: multiples of the subscription's interval,
//! brought up to the tick of the channel's type, so that all subscribers of one
//! interval get the same windows and all channels due at one tick reach a
//! connection in one packet. A fan-out tick is waited for only while something has
//! changed: channels at rest cost nothing, however many subscribe to them.

mod accounts;
mod admission;
mod auth;
mod causes;
mod channel;
mod check;
mod connection_table;
mod cut;
mod dispatch;
mod entity;
mod entity_groups;
mod fan_out;
mod fan_out_tick;
mod first_states;
mod forward;
mod handover;
mod interest;
mod listing;
mod manage;
mod membership;
mod numbers;
mod orphans;
mod outgoing;
mod phase;
mod recovery;
mod sending;
mod spatial;
mod subscribe;
mod subscription;
mod timers;
mod unreal;
mod update;
mod windows;

use std::collections::BTreeSet;

use lagometer_units::Time;

use super::arena::Arena;
use super::budget::BudgetMonitor;
use super::burst_queue::BurstQueue;
use super::bus::{ToChannels, ToConnections};
use super::by_number::ByNumber;
use super::counters::ChannelCounters;
use super::events::{Event, Events};
use super::ids::{ChannelId, ConnId, SideId};
use super::settings::ChannelSettings;

use accounts::WorkDebts;
use admission::Admission;
use auth::Logins;
pub use auth::{AuthRequest, AuthVerdict, Ticket};
use causes::Cause;
use channel::Channel;
use connection_table::ConnectionTable;
use entity_groups::EntityGroups;
use fan_out::GroupNumbers;
use first_states::FirstStates;
use numbers::TakenNumbers;
use orphans::Orphans;
use recovery::Recoveries;
use spatial::Servers;
use timers::{Due, Timers};

/// The channel manager. See the [module](super) for how it is driven.
#[derive(Debug)]
pub struct ChannelManager {
    settings: ChannelSettings,
    connections: ConnectionTable,
    admission: Admission,
    logins: Logins,
    channels: ByNumber<ChannelId, Box<Channel>>,
    /// Those of the numbers below the spatial channels' that are taken.
    taken_numbers: TakenNumbers,
    /// Where the search for a free channel number begins.
    next_channel: u32,
    orphans: Orphans,
    work_debts: WorkDebts,
    groups: GroupNumbers,
    servers: Servers,
    /// Entities that every client is shown.
    well_known: BTreeSet<ChannelId>,
    entity_groups: EntityGroups,
    recoveries: Recoveries,
    timers: Timers,
    first_states: FirstStates,
    /// The last tick at which some window was due.
    last_tick: Option<Time>,
    sides: BTreeSet<SideId>,
    /// Whose requests are being handled.
    cause: Option<Cause>,
    to_connections: BurstQueue<(SideId, ToConnections)>,
    scratch: Vec<u8>,
    head: Vec<u8>,
    /// Messages of the game's own are copied into this.
    arena: Arena,
    counters: ChannelCounters,
    budgets: BudgetMonitor,
    events: Events,
}

impl ChannelManager {
    /// A side with nobody connected and one channel, GLOBAL, that nobody owns.
    #[must_use]
    pub fn new(settings: ChannelSettings) -> Self {
        let mut side = Self {
            connections: ConnectionTable::new(&settings.conn_numbers),
            settings,
            admission: Admission::default(),
            logins: Logins::default(),
            channels: ByNumber::default(),
            taken_numbers: TakenNumbers::default(),
            next_channel: 1,
            orphans: Orphans::default(),
            work_debts: WorkDebts::default(),
            groups: GroupNumbers::default(),
            servers: Servers::default(),
            well_known: BTreeSet::new(),
            entity_groups: EntityGroups::default(),
            recoveries: Recoveries::default(),
            timers: Timers::default(),
            first_states: FirstStates::default(),
            last_tick: None,
            sides: BTreeSet::new(),
            cause: None,
            to_connections: BurstQueue::default(),
            scratch: Vec::new(),
            head: Vec::new(),
            arena: Arena::default(),
            counters: ChannelCounters::default(),
            budgets: BudgetMonitor::default(),
            events: Events::default(),
        };
        side.make_channel(ChannelId::GLOBAL, channel::GLOBAL_TYPE, None);
        side
    }

    /// Takes other settings of channel types, logins and limits. The grid, the
    /// schema and the ranges of numbers stay as they were.
    pub fn set_settings(&mut self, settings: ChannelSettings) {
        let old = &self.settings;
        self.settings = ChannelSettings {
            grid: old.grid.clone(),
            schema: old.schema.clone(),
            spatial_channels_from: old.spatial_channels_from,
            entity_channels_from: old.entity_channels_from,
            unix_ns_at_zero: old.unix_ns_at_zero,
            ..settings
        };
    }

    /// Takes a message of a connection manager.
    pub fn handle(&mut self, now: Time, from: SideId, message: ToChannels) {
        self.sides.insert(from);
        match message {
            ToChannels::Auth(attempt) => self.auth(now, from, attempt),
            ToChannels::Messages { from, packet } => self.messages(now, from, &packet),
            ToChannels::AddressProven { key } => self.address_proven(now, from, key),
            ToChannels::Congested {
                sender,
                receiver,
                pause,
            } => self.congested(sender, receiver, pause),
            ToChannels::AskCongestion { sender, receiver } => {
                self.ask_congestion(sender, receiver);
            }
            ToChannels::Relieved { sender, receiver } => self.relieved(sender, receiver),
            ToChannels::Undelivered {
                sender,
                bytes,
                is_notice,
            } => self.undelivered(sender, bytes, is_notice),
            ToChannels::Closed { key, broke_off } => self.closed(now, from, key, broke_off),
            ToChannels::Misbehaved(what) => self.misbehaved(now, what),
            ToChannels::Resync { id, channel } => self.resync(now, id, channel),
        }
        self.sweep_timers();
    }

    /// The next message for a connection manager.
    pub fn poll_bus(&mut self) -> Option<(SideId, ToConnections)> {
        self.to_connections.pop_front()
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Does what is due.
    pub fn handle_deadline(&mut self, now: Time) {
        while let Some((due, what)) = self.timers.pop(now) {
            match what {
                Due::FanOutTick { channel, group } => self.fan_out_tick(now, due, channel, group),
                Due::FirstState { channel, id } => self.first_state_due(now, due, channel, id),
                Due::FirstStates => self.first_states(now),
                Due::RecoveryEnd { id } => self.recovery_end(id, due),
                Due::RecoveryTimeout { id } => self.recovery_timeout(id, due),
            }
        }
    }

    /// Forgets timers that lead to nothing, once there are many.
    fn sweep_timers(&mut self) {
        if !self.timers.wants_sweep() {
            return;
        }
        let (channels, recoveries) = (&self.channels, &self.recoveries);
        let are_states_waiting = self.are_first_states_waiting();
        self.timers.sweep(|at, due| match *due {
            Due::FanOutTick { channel, group } => channels
                .get(&channel)
                .is_some_and(|channel| channel.fan_out.is_armed(group, at)),
            Due::FirstState { channel, id } => channels
                .get(&channel)
                .and_then(|channel| channel.subscriptions.get(&id))
                .is_some_and(|subscription| subscription.place.waits_for(at)),
            Due::FirstStates => are_states_waiting,
            Due::RecoveryEnd { id } | Due::RecoveryTimeout { id } => recoveries.is_due(id, at),
        });
    }

    /// Whether GLOBAL has an owner: until then clients may be kept out.
    #[must_use]
    pub fn has_global_owner(&self) -> bool {
        self.owner(ChannelId::GLOBAL).is_some()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> ChannelCounters {
        ChannelCounters {
            events_lost: self.events.lost(),
            over_budget: self.budgets.counters(),
            ..self.counters
        }
    }

    /// The next event for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// A channel's owner, if it is connected.
    fn owner(&self, channel: ChannelId) -> Option<ConnId> {
        self.channels.get(&channel)?.owner
    }

    fn unix_ms(&self, now: Time) -> i64 {
        self.unix_ns(now) / 1_000_000
    }

    fn unix_ns(&self, now: Time) -> i64 {
        let passed = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        self.settings.unix_ns_at_zero.saturating_add(passed)
    }
}
