//! The whole states that new subscribers are due for.
//!
//! Many subscriptions may have asked for their states at one time, late, when
//! asking has long been paid for. What one tick sends is therefore limited: what
//! goes beyond waits for the next, and then the subscribers that wait take
//! turns, so that who is due for one state does not wait for another's hundreds.
//! Whoever unsubscribes does not wait any longer: there is one place for a
//! subscription, however often it was begun and ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lagometer_protocol::Mask;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::bus::ToConnections;
use crate::core::ids::{ChannelId, ConnId};

use super::super::accounts::BYTES_PER_UNIT;
use super::super::channel::WholeState;
use super::super::timers::Due;
use super::fan_out::Start;
use super::subscription::SubscriptionState;
use super::{Subscriptions, Tables};

/// Units of work that the states of one tick may cost: 512 KiB of data, encoded
/// for each; some milliseconds.
const UNITS_PER_TICK: u64 = 32_768;

/// How long such a tick is.
const TICK: Duration = Duration::from_millis(10);

/// Bytes that are encoded for a unit of work: entries of a few bytes take some ten
/// nanoseconds each byte.
const ENCODED_PER_UNIT: usize = 16;

/// What a state costs that is there, encoded, already.
const UNITS_AT_LEAST: u64 = 8;

/// States that are due and were not sent yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FirstStates {
    /// By who is to get them, in the order they were due.
    waiting: BTreeMap<ConnId, BTreeSet<(Time, ChannelId)>>,
    /// The least number of whoever has the next turn.
    next: u32,
    /// When the tick ends, and what it has cost so far.
    tick_ends: Time,
    spent: u64,
}

impl FirstStates {
    /// Whether more may be sent now.
    fn has_room(&mut self, now: Time) -> bool {
        if now >= self.tick_ends {
            self.tick_ends = now + TICK;
            self.spent = 0;
        }
        self.spent < UNITS_PER_TICK
    }

    fn push(&mut self, id: ChannelId, member: ConnId, due: Time) {
        let of_member = self.waiting.entry(member).or_default();
        of_member.insert((due, id));
    }

    /// A state is not wanted any more.
    pub(super) fn remove(&mut self, id: ChannelId, member: ConnId, due: Time) {
        if let Some(of_member) = self.waiting.get_mut(&member) {
            of_member.remove(&(due, id));
            if of_member.is_empty() {
                self.waiting.remove(&member);
            }
        }
    }

    /// All that wait, each with when it was due.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ChannelId, ConnId, Time)> {
        self.waiting
            .iter()
            .flat_map(|(&member, states)| states.iter().map(move |&(due, id)| (id, member, due)))
    }

    /// The next state of whoever has the turn.
    fn pop(&mut self) -> Option<(ChannelId, ConnId, Time)> {
        let after = self.waiting.range(ConnId(self.next)..).next();
        let (&member, _) = after.or_else(|| self.waiting.first_key_value())?;
        self.next = member.0.wrapping_add(1);
        let of_member = self.waiting.get_mut(&member)?;
        let popped = of_member.pop_first();
        if of_member.is_empty() {
            self.waiting.remove(&member);
        }
        let (due, id) = popped?;
        Some((id, member, due))
    }
}

impl Subscriptions {
    /// A new subscriber's time has come.
    pub(in crate::core::channels) fn first_state_due(
        &mut self,
        tables: &mut Tables,
        now: Time,
        due: Time,
        id: ChannelId,
        member: ConnId,
    ) {
        if self.first_states.waiting.is_empty() && self.first_states.has_room(now) {
            self.first_state(tables, now, due, id, member);
            return;
        }
        let channel = tables.channels.get(id);
        let subscription =
            channel.and_then(|channel| channel.subscribers.subscriptions.get(&member));
        if !subscription.is_some_and(|subscription| subscription.state.waits_for(due)) {
            return;
        }
        if self.first_states.waiting.is_empty() {
            let next = self.first_states.tick_ends;
            tables.timers.add(next, Due::FirstStates);
        }
        self.first_states.push(id, member, due);
    }

    /// Sends states that had to wait, as many as a tick may.
    pub(in crate::core::channels) fn first_states(&mut self, tables: &mut Tables, now: Time) {
        while self.first_states.has_room(now)
            && let Some((id, member, due)) = self.first_states.pop()
        {
            self.first_states.spent += 1;
            self.first_state(tables, now, due, id, member);
        }
        if !self.first_states.waiting.is_empty() {
            let next = self.first_states.tick_ends;
            tables.timers.add(next, Due::FirstStates);
        }
    }

    /// Whether states wait for their turn.
    pub(in crate::core::channels) fn are_first_states_waiting(&self) -> bool {
        !self.first_states.waiting.is_empty()
    }

    /// Sends the whole state to a subscriber that was to get it at `due`, if it
    /// still is, and lets it take part in its group.
    pub(super) fn first_state(
        &mut self,
        tables: &mut Tables,
        now: Time,
        due: Time,
        id: ChannelId,
        member: ConnId,
    ) {
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        let groups = channel.subscribers.fan_out.group_count() as u64;
        let Some(subscription) = channel.subscribers.subscriptions.get_mut(&member) else {
            return;
        };
        let SubscriptionState::Waiting { due: wanted, whole } = subscription.state else {
            return;
        };
        if wanted != due {
            return;
        }
        self.first_states.spent += UNITS_AT_LEAST + groups;
        let head = channel.subscribers.fan_out.head();
        if !whole {
            self.join(tables, now, id, member, head, Start::State(due));
            return;
        }
        let masks = subscription.options.masks.clone();
        let Some(content) = channel.data.as_mut().and_then(|data| data.content.as_mut()) else {
            subscription.state = SubscriptionState::AwaitingData;
            channel.subscribers.awaiting_data.insert(member);
            return;
        };
        let mask = content
            .state
            .data_type()
            .and_then(|data_type| Mask::new(data_type.clone(), masks.iter().map(String::as_str)));
        let is_at_hand = mask.is_none() && content.is_encoded();
        let WholeState { messages, too_long } = content.whole_state(id, mask.as_ref());
        let bytes: usize = messages.iter().map(bytes::Bytes::len).sum();
        let counters = tables.telemetry.of_type(channel.kind);
        counters.states += 1;
        counters.bytes += bytes as u64;
        let mut units = (bytes / BYTES_PER_UNIT) as u64;
        if !is_at_hand {
            // What a mask leaves out was encoded, too, entry by entry.
            let encoded = content.state.encoded_len().max(bytes);
            units = (encoded / ENCODED_PER_UNIT) as u64;
            self.first_states.spent += units;
        }
        tables.charge(now, member, units);
        if let Some(connection) = tables.connections.get(member) {
            let state = ToConnections::State {
                to: Arc::new([member]),
                channel: id,
                messages,
            };
            tables.out.push(connection.side, state);
        }
        for size_bytes in too_long {
            tables.report_too_long(id, size_bytes);
        }
        self.join(tables, now, id, member, head, Start::State(due));
    }

    /// There is data now: those who wait for it get it at the next tick.
    pub(in crate::core::channels) fn data_has_come(tables: &mut Tables, now: Time, id: ChannelId) {
        let Some(channel) = tables.channels.get_mut(id) else {
            return;
        };
        let tick = tables.settings.types.of(channel.kind).tick;
        let due = now.round_up_to(tick);
        for member in std::mem::take(&mut channel.subscribers.awaiting_data) {
            if let Some(subscription) = channel.subscribers.subscriptions.get_mut(&member)
                && subscription.state == SubscriptionState::AwaitingData
            {
                subscription.state = SubscriptionState::Waiting { due, whole: true };
                let due_state = Due::FirstState {
                    channel: id,
                    id: member,
                };
                tables.timers.add(due, due_state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_states_takes_turns_with_the_others() {
        let mut states = FirstStates::default();
        let due = Time::from_millis(20);
        for channel in 1..=3 {
            states.push(ChannelId(channel), ConnId(5), due);
        }
        states.push(ChannelId(1), ConnId(9), due);
        let turns: Vec<(u32, u32)> = std::iter::from_fn(|| states.pop())
            .map(|(id, member, _)| (id.0, member.0))
            .collect();
        assert_eq!(turns, [(1, 5), (1, 9), (2, 5), (3, 5)]);
        assert!(states.waiting.is_empty());
    }

    #[test]
    fn a_state_has_one_turn_however_often_it_is_due_and_none_once_it_is_not_wanted() {
        let mut states = FirstStates::default();
        let due = Time::from_millis(20);
        for _ in 0..1000 {
            states.push(ChannelId(1), ConnId(5), due);
        }
        states.push(ChannelId(2), ConnId(5), due);
        assert_eq!(states.iter().count(), 2);
        states.remove(ChannelId(1), ConnId(5), due);
        assert_eq!(states.pop(), Some((ChannelId(2), ConnId(5), due)));
        assert!(states.waiting.is_empty());
    }

    #[test]
    fn a_tick_has_room_for_so_much_and_the_next_anew() {
        let mut states = FirstStates::default();
        let now = Time::from_secs(1);
        assert!(states.has_room(now));
        states.spent += UNITS_PER_TICK;
        assert!(!states.has_room(now + TICK / 2));
        assert!(states.has_room(now + TICK));
    }
}
