//! Who takes part in which group: subscribers join at a fan-out tick or at once,
//! leave, and take what they have not been sent with them from one group to
//! another.

use lagometer_units::Time;

use crate::core::bus::ToConnections;
use crate::core::ids::{ChannelId, ConnId, GroupId};

use super::fan_out::{Grid, Start};
use super::subscription::SubscriptionState;
use super::{Subscriptions, Tables};

impl Subscriptions {
    /// A subscriber that has been sent all updates before number `cursor`
    /// takes part in its group.
    pub(super) fn join(
        &mut self,
        tables: &mut Tables,
        now: Time,
        id: ChannelId,
        member: ConnId,
        cursor: u64,
        start: Start,
    ) {
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        let Some(subscription) = channel.subscribers.subscriptions.get_mut(&member) else {
            return;
        };
        let options = &subscription.options;
        let grid = Grid {
            now,
            tick: tables.settings.types.of(channel.kind).tick,
            channel: id,
        };
        let not_before = start.first_end(options.interval_ms);
        let group = channel
            .subscribers
            .fan_out
            .group_for(options, start, grid, &mut self.groups);
        let number = group.number();
        if group.may_enter(cursor, now, not_before) {
            Self::enter_group(tables, id, member, number);
        } else {
            group.join_at_tick(member, cursor, not_before);
            subscription.state = SubscriptionState::Joining { group: number };
        }
        Self::arm(tables, now, id);
    }

    /// Takes a subscriber out of its group. Returns the number of the first
    /// update it has not been sent, if it was in one.
    pub(super) fn leave_group(tables: &mut Tables, id: ChannelId, member: ConnId) -> Option<u64> {
        let channel = tables.channels.get_mut(id)?;
        let subscription = channel.subscribers.subscriptions.get_mut(&member)?;
        let state = subscription.state;
        let (SubscriptionState::Member { group: number }
        | SubscriptionState::Joining { group: number }) = state
        else {
            return None;
        };
        subscription.state = SubscriptionState::Outside;
        let group = channel.subscribers.fan_out.group(number)?;
        let cursor = group.stay_away(member).unwrap_or(group.cursor());
        if let SubscriptionState::Member { .. } = state
            && let Some(connection) = tables.connections.any_mut(member)
        {
            group.exit(connection.side);
            let leave = ToConnections::Leave {
                group: number,
                id: member,
            };
            tables.out.push(connection.side, leave);
        }
        Some(cursor)
    }

    /// Dissolves groups that nobody is in any more.
    pub(super) fn dissolve_groups(&mut self, tables: &mut Tables, id: ChannelId) {
        if let Some(channel) = tables.channels.get_mut(id) {
            let armed = channel.subscribers.fan_out.drop_empty(&mut self.groups);
            (0..armed).for_each(|_| tables.timers.note_stale());
        }
    }

    /// A subscriber is a member of a group from now on.
    pub(super) fn enter_group(tables: &mut Tables, id: ChannelId, member: ConnId, number: GroupId) {
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        if let Some(subscription) = channel.subscribers.subscriptions.get_mut(&member)
            && let Some(group) = channel.subscribers.fan_out.group(number)
            && let Some(connection) = tables.connections.get(member)
        {
            subscription.state = SubscriptionState::Member { group: number };
            group.enter(connection.side);
            let join = ToConnections::Join {
                group: number,
                channel: id,
                member: subscription.member(member),
            };
            tables.out.push(connection.side, join);
        }
    }
}
