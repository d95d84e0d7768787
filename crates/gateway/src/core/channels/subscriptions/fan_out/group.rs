//! Subscribers that get the same windows at the same times, and when that is.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_protocol::Mask;
use lagometer_protocol::schema::DataType;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::check::{BrokenInvariant, hold};
use crate::core::ids::{ChannelId, ConnId, GroupId, SideId};

use super::super::phase::Phase;
use super::super::subscription::SubOptions;

/// What a subscriber's windows are counted from.
#[derive(Clone, Copy, Debug)]
pub(in crate::core::channels::subscriptions) enum Start {
    /// The whole state that it was sent at this time.
    State(Time),
    /// It had windows before, and waits for no state.
    Onward,
}

/// Subscribers that get the same windows.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::core::channels::subscriptions) struct Group {
    number: GroupId,
    interval_ms: u32,
    phase: Phase,
    tick: Duration,
    masks: Vec<String>,
    /// Made ready for the data's type when first needed.
    #[serde(skip)]
    mask: Option<Mask>,
    cursor: u64,
    /// When its fan-out tick is due, if something waits for it.
    armed: Option<Time>,
    /// How many members are on which connection manager.
    sides: Vec<(SideId, usize)>,
    /// Who joins at a fan-out tick to come, with a cursor of its own.
    joining: BTreeMap<ConnId, Joining>,
    /// None of their cursors is before this one.
    joining_from: u64,
}

/// Someone who is to join a group.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Joining {
    cursor: u64,
    /// Its first window may not end before.
    not_before: Time,
}

/// What a group is sent at a fan-out tick, and who.
#[derive(Debug)]
pub(in crate::core::channels::subscriptions) struct Turn {
    /// The first update its members have not been sent.
    pub(in crate::core::channels::subscriptions) from: u64,
    /// The sides that have members.
    pub(in crate::core::channels::subscriptions) sides: Vec<SideId>,
    /// Those who join now, each with its own first update.
    pub(in crate::core::channels::subscriptions) joining: BTreeMap<ConnId, u64>,
    pub(in crate::core::channels::subscriptions) mask: Option<Mask>,
}

/// Numbers for groups, used again so that they stay small.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::core::channels::subscriptions) struct GroupNumbers {
    free: Vec<GroupId>,
    next: u32,
}

impl GroupNumbers {
    fn take(&mut self) -> GroupId {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            GroupId(self.next - 1)
        })
    }

    pub(in crate::core::channels::subscriptions) fn give_back(&mut self, number: GroupId) {
        self.free.push(number);
    }
}

/// Where and when a group is looked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::core::channels::subscriptions) struct Grid {
    pub(in crate::core::channels::subscriptions) now: Time,
    /// That of the channel's type.
    pub(in crate::core::channels::subscriptions) tick: Duration,
    pub(in crate::core::channels::subscriptions) channel: ChannelId,
}

impl Start {
    /// When windows end that are counted from it.
    pub(super) fn phase(self, interval_ms: u32, grid: Grid) -> Phase {
        match self {
            Self::State(at) => Phase::counted_from(at, interval_ms, grid.tick),
            Self::Onward => Phase::of_channel(grid.channel, interval_ms, grid.tick),
        }
    }

    /// Before this time no first window ends.
    pub(in crate::core::channels::subscriptions) fn first_end(self, interval_ms: u32) -> Time {
        match self {
            Self::State(at) => at + Duration::from_millis(u64::from(interval_ms)),
            Self::Onward => Time::ZERO,
        }
    }
}

impl Group {
    /// A group for a subscription's options that nobody is in. Its windows are
    /// counted as `start` says, and nothing before number `head` is for it.
    pub(super) fn new(
        options: &SubOptions,
        start: Start,
        grid: Grid,
        head: u64,
        numbers: &mut GroupNumbers,
    ) -> Self {
        Self {
            number: numbers.take(),
            interval_ms: options.interval_ms,
            phase: start.phase(options.interval_ms, grid),
            tick: grid.tick,
            masks: sorted(&options.masks),
            mask: None,
            cursor: head,
            armed: None,
            sides: Vec::new(),
            joining: BTreeMap::new(),
            joining_from: u64::MAX,
        }
    }

    pub(in crate::core::channels::subscriptions) fn number(&self) -> GroupId {
        self.number
    }

    /// Whether it has the interval and the `masks`, in order.
    pub(super) fn is_alike(&self, interval_ms: u32, masks: &[String]) -> bool {
        self.interval_ms == interval_ms && self.masks == masks
    }

    pub(super) fn has_phase(&self, phase: Phase) -> bool {
        self.phase == phase
    }

    /// Whether its fan-out tick is due then.
    pub(in crate::core::channels::subscriptions) fn is_armed_at(&self, at: Time) -> bool {
        self.armed == Some(at)
    }

    /// Whether a fan-out tick of it is coming.
    pub(super) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// Sets the fan-out tick after `now` if something waits for it that is not on its
    /// way yet. Returns when that is.
    pub(super) fn arm(&mut self, now: Time, head: u64) -> Option<Time> {
        if !self.wants_tick(head) {
            return None;
        }
        self.armed = Some(self.next_tick(now));
        self.armed
    }

    /// It is sent all updates before number `head` now: at that `tick_at`, or out of
    /// turn.
    pub(in crate::core::channels::subscriptions) fn take_turn(
        &mut self,
        head: u64,
        tick_at: Option<Time>,
        data_type: Option<&DataType>,
    ) -> Turn {
        self.armed = None;
        Turn {
            from: std::mem::replace(&mut self.cursor, head),
            sides: self.sides.iter().map(|(side, _)| *side).collect(),
            joining: self.take_joining(tick_at),
            mask: self.mask(data_type).cloned(),
        }
    }

    /// The first update its members have not been sent.
    pub(in crate::core::channels::subscriptions) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Whether a subscriber that has been sent all before number `cursor` may be
    /// its member at once: its first window then ends no sooner than `not_before`.
    /// One that nobody is in takes over the cursor.
    pub(in crate::core::channels::subscriptions) fn may_enter(
        &mut self,
        cursor: u64,
        now: Time,
        not_before: Time,
    ) -> bool {
        if self.sides.is_empty() {
            self.cursor = cursor;
        }
        self.cursor == cursor && self.next_tick(now) >= not_before
    }

    /// The data is another now: nothing before number `head` is passed on, and
    /// the mask is to be made ready anew.
    pub(super) fn begin_anew(&mut self, head: u64) {
        self.mask = None;
        self.cursor = head;
        let joining = self.joining.values_mut();
        joining.for_each(|joining| joining.cursor = head);
        if !self.joining.is_empty() {
            self.joining_from = head;
        }
    }

    /// How many members it has on each side, and who joins it.
    pub(super) fn census(
        &self,
    ) -> (
        impl Iterator<Item = (SideId, usize)>,
        impl Iterator<Item = ConnId>,
    ) {
        (self.sides.iter().copied(), self.joining.keys().copied())
    }

    /// Its members have been sent more, or less. Returns what they had.
    #[cfg(test)]
    pub(super) fn replace_cursor(&mut self, cursor: u64) -> u64 {
        std::mem::replace(&mut self.cursor, cursor)
    }

    /// Whether it is sound: `id` is the channel's.
    pub(super) fn check(&self, id: ChannelId, head: u64) -> Result<(), BrokenInvariant> {
        let number = self.number.0;
        hold!(!self.is_empty(), "group {number} of {id} has nobody");
        hold!(
            self.phase.is_within(self.interval_ms),
            "windows of group {number} of {id} are counted from beyond their interval"
        );
        hold!(
            self.cursors().all(|cursor| cursor <= head),
            "group {number} of {id} has been sent what there is not yet"
        );
        let first = self.joining.values().map(|joining| joining.cursor).min();
        hold!(
            first.unwrap_or(u64::MAX) >= self.joining_from,
            "group {number} of {id} may forget what joins wait for"
        );
        hold!(
            !self.wants_tick(head),
            "group {number} of {id} has something to send and no fan-out tick"
        );
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sides.is_empty() && self.joining.is_empty()
    }

    pub(in crate::core::channels::subscriptions) fn enter(&mut self, side: SideId) {
        match self.sides.iter_mut().find(|(of, _)| *of == side) {
            Some((_, members)) => *members += 1,
            None => self.sides.push((side, 1)),
        }
    }

    pub(in crate::core::channels::subscriptions) fn exit(&mut self, side: SideId) {
        if let Some(place) = self.sides.iter().position(|(of, _)| *of == side) {
            self.sides[place].1 -= 1;
            if self.sides[place].1 == 0 {
                self.sides.remove(place);
            }
        }
    }

    /// A subscriber joins at the first fan-out tick that is not before a time; it has
    /// been sent all updates before number `cursor`.
    pub(in crate::core::channels::subscriptions) fn join_at_tick(
        &mut self,
        member: ConnId,
        cursor: u64,
        not_before: Time,
    ) {
        self.joining.insert(member, Joining { cursor, not_before });
        self.joining_from = self.joining_from.min(cursor);
    }

    /// A subscriber does not join after all. Returns its cursor, if it was to.
    pub(in crate::core::channels::subscriptions) fn stay_away(
        &mut self,
        member: ConnId,
    ) -> Option<u64> {
        let joining = self.joining.remove(&member);
        if self.joining.is_empty() {
            self.joining_from = u64::MAX;
        }
        joining.map(|joining| joining.cursor)
    }

    /// Those who join at the fan-out tick of that time, or all where there is none, with
    /// their cursors.
    pub(super) fn take_joining(&mut self, tick_at: Option<Time>) -> BTreeMap<ConnId, u64> {
        let all = std::mem::take(&mut self.joining);
        let (now, later): (BTreeMap<_, _>, BTreeMap<_, _>) = all
            .into_iter()
            .partition(|(_, joining)| tick_at.is_none_or(|tick_at| joining.not_before <= tick_at));
        let cursors = later.values().map(|joining| joining.cursor);
        self.joining_from = cursors.min().unwrap_or(u64::MAX);
        self.joining = later;
        now.into_iter()
            .map(|(id, joining)| (id, joining.cursor))
            .collect()
    }

    /// No update that someone in it has not been sent comes before this one.
    pub(super) fn needed(&self, head: u64) -> u64 {
        let of_members = if self.sides.is_empty() {
            head
        } else {
            self.cursor
        };
        of_members.min(self.joining_from)
    }

    pub(super) fn cursors(&self) -> impl Iterator<Item = u64> {
        let of_members = (!self.sides.is_empty()).then_some(self.cursor);
        of_members
            .into_iter()
            .chain(self.joining.values().map(|joining| joining.cursor))
    }

    /// Something waits for it that is not on its way yet.
    fn wants_tick(&self, head: u64) -> bool {
        self.armed.is_none() && self.needed(head) < head
    }

    /// The fan-out tick after `now`.
    pub(super) fn next_tick(&self, now: Time) -> Time {
        self.phase.next_tick(now, self.interval_ms, self.tick)
    }

    fn mask(&mut self, data_type: Option<&DataType>) -> Option<&Mask> {
        if self.mask.is_none() && !self.masks.is_empty() {
            let paths = self.masks.iter().map(String::as_str);
            self.mask = Mask::new(data_type?.clone(), paths);
        }
        self.mask.as_ref()
    }
}

/// Masks in their order, by which they are compared.
pub(super) fn sorted(masks: &[String]) -> Vec<String> {
    let mut masks = masks.to_vec();
    masks.sort_unstable();
    masks
}
