//! Fan-out ticks: groups are sent their windows.

use std::collections::BTreeMap;
use std::sync::Arc;

use lagometer_units::Time;

use crate::core::ids::{ChannelId, ConnId, GroupId};

use super::super::timers::Due;
use super::fan_out::Turn;
use super::sending::{Sending, Sent};
use super::windows::{Recipe, as_one};
use super::{Subscriptions, Tables};

impl Subscriptions {
    /// A group's fan-out tick has come.
    pub(in crate::core::channels) fn fan_out_tick(
        &mut self,
        tables: &mut Tables,
        now: Time,
        due: Time,
        id: ChannelId,
        number: GroupId,
    ) {
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        let is_due = channel
            .subscribers
            .fan_out
            .group(number)
            .is_some_and(|group| group.is_armed_at(due));
        if is_due {
            tables
                .telemetry
                .of_type(channel.kind)
                .lateness
                .add(now.since(due));
            // All that is due at one tick is done in a row.
            if self.last_tick != Some(due) {
                self.last_tick = Some(due);
                tables.telemetry.counters.ticks.add(now.since(due));
            }
            Self::send_group(tables, now, id, number, Some(due));
        }
    }

    /// So much waits in a channel that nobody's window may stay open.
    pub(super) fn send_all_groups(tables: &mut Tables, now: Time, id: ChannelId) {
        if let Some(channel) = tables.channels.get_mut(id) {
            channel.subscribers.fan_out.forget_paused();
        }
        let Some(channel) = tables.channels.get(id) else {
            return;
        };
        let numbers: Vec<GroupId> = channel.subscribers.fan_out.group_numbers().collect();
        // Their fan-out ticks come to nothing.
        let armed = channel.subscribers.fan_out.armed_count();
        (0..armed).for_each(|_| tables.timers.note_stale());
        for number in numbers {
            Self::send_group(tables, now, id, number, None);
        }
    }

    /// Sends a group all that it has not been sent, and takes in who joins at
    /// that `tick_at`; where it is sent out of turn, everybody.
    fn send_group(
        tables: &mut Tables,
        now: Time,
        id: ChannelId,
        number: GroupId,
        tick_at: Option<Time>,
    ) {
        let now_unix_ms = tables.unix_ms(now);
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        let Some(content) = channel.content() else {
            return;
        };
        let recipe = Recipe {
            data_type: content.state.data_type().cloned(),
            options: channel.data.as_ref().and_then(|data| data.options),
            now_unix_ms,
            max_value_bytes: content.max_value_bytes(),
        };
        let type_url = Arc::clone(&content.type_url);
        let head = channel.subscribers.fan_out.head();
        let Some(group) = channel.subscribers.fan_out.group(number) else {
            return;
        };
        let Turn {
            from,
            sides,
            joining,
            mask,
        } = group.take_turn(head, tick_at, recipe.data_type.as_ref());

        let mut sending = Sending {
            channel,
            number,
            recipe: &recipe,
            mask,
            type_url,
            connections: &tables.connections,
            out: &mut tables.out,
            now,
            work_per_second: tables.settings.budgets.clients.work_per_second,
            sent: Sent::default(),
        };
        if !sides.is_empty() {
            sending.group(from, &sides);
        }
        let mut by_cursor: BTreeMap<u64, Vec<ConnId>> = BTreeMap::new();
        for (&id, &cursor) in &joining {
            by_cursor.entry(cursor).or_default().push(id);
        }
        for (cursor, ids) in by_cursor {
            sending.these(cursor, &ids);
        }
        let sent = sending.sent;
        let oldest = channel.subscribers.fan_out.since(from, None);
        let oldest = oldest.first().map(|update| update.at);
        let counters = tables.telemetry.of_type(channel.kind);
        counters.windows += sent.windows;
        counters.bytes += sent.bytes as u64;
        if let Some(oldest) = oldest {
            counters.age.add(now.since(oldest));
        }
        Self::charge(tables, now, id, sent);
        for &member in joining.keys() {
            Self::enter_group(tables, id, member, number);
        }
        if let Some(channel) = tables.channels.get_mut(id) {
            channel.subscribers.fan_out.trim();
            channel
                .subscribers
                .fan_out
                .condense(|run| as_one(run, &recipe));
        }
        // Some may have to wait for a later fan-out tick.
        Self::arm(tables, now, id);
    }

    /// Reports windows that were too long, and charges members for those that were made for
    /// them alone.
    fn charge(tables: &mut Tables, now: Time, id: ChannelId, sent: Sent) {
        for size_bytes in sent.too_long {
            tables.report_too_long(id, size_bytes);
        }
        // A byte of small entries takes some ten nanoseconds to merge, as a unit does.
        for (member, bytes) in sent.apart {
            tables.charge_own_window(now, member, bytes as u64);
        }
    }

    /// Sees to it that every group of a channel that has something coming has
    /// its fan-out tick.
    pub(super) fn arm(tables: &mut Tables, now: Time, id: ChannelId) {
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        for (group, at) in channel.subscribers.fan_out.arm(now) {
            let tick_at = Due::FanOutTick { channel: id, group };
            tables.timers.add(at, tick_at);
        }
    }
}
