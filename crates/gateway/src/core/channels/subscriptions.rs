//! Who is subscribed to what, and what each is sent of it.
//!
//! A subscription begins with the whole state ([`first_states`]), joins a group of
//! those who want the same ([`membership`]) and is sent the group's windows at fan-out
//! ticks ([`fan_out_tick`]). What waits in a channel for its groups is the channel's
//! [`FanOut`](fan_out::FanOut), which nothing but these modules sees ([`subscribers`]). What is asked of subscriptions, and who may ask, is in
//! [`subscribe`](super::subscribe).

mod check;
mod fan_out;
mod fan_out_tick;
mod first_states;
mod membership;
mod phase;
mod sending;
mod subscribers;
mod subscription;
mod windows;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use lagometer_protocol::messages::channeldpb::ChannelSubscriptionOptions;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::arena::part_of;
use crate::core::budget::Budget;
use crate::core::bus::ToConnections;
use crate::core::ids::{ChannelId, ConnId};
use crate::core::settings::PeerBudgets;

use super::dispatch::Request;
use super::tables::Tables;
use super::timers::Due;

use fan_out::{GroupNumbers, Start};
use first_states::FirstStates;
pub(super) use subscribers::Subscribers;
pub(super) use subscription::SubOptions;
use subscription::{Subscription, SubscriptionState};
use windows::Update;

/// So many bytes of updates may wait in a channel however small its data must be.
const LOG_AT_LEAST: usize = 64 << 10;

/// What there is of all subscriptions beside what each channel knows of its own.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Subscriptions {
    groups: GroupNumbers,
    first_states: FirstStates,
    /// The last tick at which some window was due.
    last_tick: Option<Time>,
}

impl Subscriptions {
    /// Begins a subscription or changes it, as far as the budgets of whoever
    /// asks for it go. Returns whether it is new or its access has changed.
    pub(super) fn subscribe_by_request(
        &mut self,
        tables: &mut Tables,
        request: &Request,
        id: ChannelId,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
    ) -> bool {
        let budgets = tables.budgets_of(request);
        let (is_notified, over) =
            self.subscribe_within(tables, request.now, id, subject, asked, &budgets);
        if let Some(budget) = over {
            tables.over_budget(request, budget);
        }
        is_notified
    }

    /// The same where the gateway itself, or a server, is behind it.
    pub(super) fn subscribe(
        &mut self,
        tables: &mut Tables,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
    ) -> bool {
        let budgets = tables.settings.budgets.servers;
        self.subscribe_within(tables, now, id, subject, asked, &budgets)
            .0
    }

    fn subscribe_within(
        &mut self,
        tables: &mut Tables,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
        budgets: &PeerBudgets,
    ) -> (bool, Option<Budget>) {
        if tables.connections.get(subject).is_none() {
            return (false, None);
        }
        let Some(channel) = tables.channels.get_mut(id) else {
            return (false, None);
        };
        if let Some(subscription) = channel.subscribers.subscriptions.get_mut(&subject) {
            let before = subscription.options.clone();
            let over = subscription.options.merge(asked, budgets);
            let after = subscription.options.clone();
            if before != after {
                self.resubscribe(tables, now, id, subject, &before, &after);
            }
            return (before.access != after.access, over);
        }
        let settings = tables.settings.types.of(channel.kind);
        let mut options = SubOptions::defaults(settings);
        let over = options.merge(asked, budgets);
        let state = if options.has_access() {
            beginning(now, &options, settings.tick)
        } else {
            SubscriptionState::Outside
        };
        if !options.has_access() && options.skip_first {
            // It wants no state, but all that happens from here on.
            let head = channel.subscribers.fan_out.head();
            channel.subscribers.fan_out.pause(subject, head);
        }
        channel.subscribers.subscriptions.insert(
            subject,
            Subscription {
                options,
                since: now,
                state,
            },
        );
        tables.telemetry.of_type(channel.kind).subscriptions += 1;
        if let Some(connection) = tables.connections.any_mut(subject) {
            connection.subscribed.insert(id, ());
        }
        self.await_first(tables, now, id, subject, state);
        (true, over)
    }

    /// Ends a subscription without a word. Returns whether there was one.
    pub(super) fn unsubscribe(
        &mut self,
        tables: &mut Tables,
        id: ChannelId,
        subject: ConnId,
    ) -> bool {
        Self::leave_group(tables, id, subject);
        Self::resume(tables, id, subject);
        let Some(channel) = tables.channels.get_mut(id) else {
            return false;
        };
        let Some(ended) = channel.subscribers.subscriptions.remove(&subject) else {
            return false;
        };
        channel.subscribers.awaiting_data.remove(&subject);
        tables.telemetry.of_type(channel.kind).subscriptions -= 1;
        self.stop_waiting(tables, id, subject, ended.state);
        if let Some(connection) = tables.connections.any_mut(subject) {
            connection.subscribed.remove(&id);
            let forget = ToConnections::Forget {
                id: subject,
                channel: id,
            };
            tables.out.push(connection.side, forget);
        }
        self.dissolve_groups(tables, id);
        true
    }

    /// A reader lost what was merged for it: it gets the whole state.
    pub(super) fn resync(
        &mut self,
        tables: &mut Tables,
        now: Time,
        subject: ConnId,
        id: ChannelId,
    ) {
        // Whoever has no access now gets the whole state once it has again.
        Self::resume(tables, id, subject);
        if Self::leave_group(tables, id, subject).is_none() {
            return;
        }
        self.dissolve_groups(tables, id);
        self.wait_for_state(tables, now, id, subject, true);
    }

    fn resubscribe(
        &mut self,
        tables: &mut Tables,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        before: &SubOptions,
        after: &SubOptions,
    ) {
        if !after.has_access() {
            let cursor = Self::leave_group(tables, id, subject);
            let mut ended = SubscriptionState::Outside;
            if let Some(channel) = tables.channels.get_mut(id)
                && let Some(subscription) = channel.subscribers.subscriptions.get_mut(&subject)
            {
                std::mem::swap(&mut subscription.state, &mut ended);
                // What comes from here on waits for it.
                if let Some(cursor) = cursor {
                    channel.subscribers.fan_out.pause(subject, cursor);
                }
            }
            self.stop_waiting(tables, id, subject, ended);
        } else if !before.has_access() {
            match Self::resume(tables, id, subject) {
                Some(cursor) => self.join(tables, now, id, subject, cursor, Start::Onward),
                None => self.wait_for_state(tables, now, id, subject, !after.skip_first),
            }
        } else if let Some(cursor) = Self::leave_group(tables, id, subject) {
            // Nothing is lost between the old group and the new one.
            self.join(tables, now, id, subject, cursor, Start::Onward);
        }
        self.dissolve_groups(tables, id);
    }

    /// A subscription that was in that state has ended, or has no access now: if
    /// it waited for its first state, it does no longer.
    fn stop_waiting(
        &mut self,
        tables: &mut Tables,
        id: ChannelId,
        subject: ConnId,
        state: SubscriptionState,
    ) {
        if let SubscriptionState::Waiting { due, .. } = state {
            tables.timers.note_stale();
            self.first_states.remove(id, subject, due);
        }
    }

    /// A subscriber without access is that no more. Returns the number of the
    /// first update it has not been sent, if that and all after it are kept.
    fn resume(tables: &mut Tables, id: ChannelId, subject: ConnId) -> Option<u64> {
        tables
            .channels
            .get_mut(id)?
            .subscribers
            .fan_out
            .resume(subject)
    }

    fn wait_for_state(
        &mut self,
        tables: &mut Tables,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        whole: bool,
    ) {
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        let tick = tables.settings.types.of(channel.kind).tick;
        let due = if whole { now.round_up_to(tick) } else { now };
        let state = SubscriptionState::Waiting { due, whole };
        if let Some(subscription) = channel.subscribers.subscriptions.get_mut(&subject) {
            subscription.state = state;
            self.await_first(tables, now, id, subject, state);
        }
    }

    fn await_first(
        &mut self,
        tables: &mut Tables,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        state: SubscriptionState,
    ) {
        let SubscriptionState::Waiting { due, whole } = state else {
            return;
        };
        if due <= now && !whole {
            // Nothing that comes from here on is to be missed.
            self.first_state(tables, now, due, id, subject);
        } else {
            let first = Due::FirstState {
                channel: id,
                id: subject,
            };
            tables.timers.add(due, first);
        }
    }

    /// Keeps an update that was merged for those who are to get it at their next
    /// fan-out tick.
    pub(super) fn spread(
        tables: &mut Tables,
        request: &Request,
        sender: ConnId,
        bodies: &Bytes,
        value: &[u8],
    ) {
        let Some(channel) = tables.channels.get_mut(request.channel) else {
            return;
        };
        let data_type = channel
            .content()
            .and_then(|content| content.state.data_type());
        let value = match data_type.map(|data_type| data_type.without_skipped(value)) {
            None => part_of(bodies, value),
            Some(Ok(Cow::Borrowed(value))) => part_of(bodies, value),
            Some(Ok(Cow::Owned(value))) => Bytes::from(value),
            Some(Err(_)) => return,
        };
        tables.telemetry.of_type(channel.kind).updates += 1;
        channel.subscribers.fan_out.push(Update {
            sender,
            at: request.now,
            value,
        });
        // What waits for slow windows is in no client's budget but its channel's size.
        let is_a_clients = channel.maker.is_some() || channel.orphan.is_some();
        let most_bytes = if is_a_clients {
            channel.max_data_bytes.max(LOG_AT_LEAST)
        } else {
            usize::MAX
        };
        let is_full = channel.subscribers.fan_out.is_full(most_bytes);
        Self::arm(tables, request.now, request.channel);
        if is_full {
            Self::send_all_groups(tables, request.now, request.channel);
        }
    }
}

/// Where a new subscription begins: the whole state is due after the delay and
/// one interval, at a tick; without it windows begin after the delay.
fn beginning(now: Time, options: &SubOptions, tick: Duration) -> SubscriptionState {
    let interval_ms = if options.skip_first {
        0
    } else {
        i64::from(options.interval_ms)
    };
    let wait_ms = (i64::from(options.delay_ms) + interval_ms).max(0);
    let due = now + Duration::from_millis(wait_ms.unsigned_abs());
    let whole = !options.skip_first;
    SubscriptionState::Waiting {
        due: if whole { due.round_up_to(tick) } else { due },
        whole,
    }
}
