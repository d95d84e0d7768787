//! What a channel's subscribers have not been sent yet, and who is sent what
//! when.
//!
//! Updates are kept in the order they came, each with a number. Subscribers
//! that want the same windows at the same times form a *group*; a group has a
//! *cursor*, the number of the first update it has not been sent. At the
//! group's beat it is sent all updates from its cursor on, and the cursor moves
//! up: nothing is sent twice, nothing is passed over.
//!
//! Whoever joins a group in the middle of a window has a cursor of its own
//! until the next beat.
//!
//! Updates between which no cursor lies will only ever be sent together. They
//! are kept merged, so that what waits for a group of a long interval is not
//! merged again for everyone who joins or leaves it.

mod check;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lagometer_protocol::Mask;
use lagometer_protocol::schema::DataType;
use lagometer_units::Time;

use crate::core::ids::{ChannelId, ConnId, GroupId, SideId};

use super::subscription::SubOptions;
use super::windows::Update;

/// So many updates, or bytes of them, end a window early.
const MAX_WAITING_UPDATES: usize = 4096;
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Data whose updates are not simply merged is mostly of that kind throughout:
/// after so many more it is tried again.
const CONDENSE_AGAIN_AFTER: u64 = 256;

/// One channel's updates and groups.
#[derive(Debug, Default)]
pub(super) struct FanOut {
    /// Each with its number; where several were merged, that of the first.
    updates: VecDeque<(u64, Update)>,
    /// The number the next update will have.
    head: u64,
    bytes: usize,
    /// Updates are not worth trying to merge before this one.
    condense_from: u64,
    pub(super) groups: Vec<Group>,
}

/// Subscribers that get the same windows.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) number: GroupId,
    interval_ms: u32,
    masks: Vec<String>,
    /// Made ready for the data's type when first needed.
    mask: Option<Mask>,
    pub(super) cursor: u64,
    /// When its beat is due, if something waits for it.
    pub(super) armed: Option<Time>,
    /// How many members are on which connection side.
    pub(super) sides: Vec<(SideId, usize)>,
    /// Who joins at the next beat, with a cursor of its own.
    joining: BTreeMap<ConnId, u64>,
    /// None of their cursors is before this one.
    joining_from: u64,
}

/// Numbers for groups, used again so that they stay small.
#[derive(Debug, Default)]
pub(super) struct GroupNumbers {
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

    pub(super) fn give_back(&mut self, number: GroupId) {
        self.free.push(number);
    }
}

impl FanOut {
    /// The number the next update will have.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Keeps an update for the groups. Nothing is kept where there are none.
    pub(super) fn push(&mut self, update: Update) {
        if !self.groups.is_empty() {
            self.bytes += update.value.len();
            self.updates.push_back((self.head, update));
            self.head += 1;
        }
    }

    /// So much waits that windows are to end now.
    pub(super) fn is_full(&self) -> bool {
        self.updates.len() > MAX_WAITING_UPDATES || self.bytes > MAX_WAITING_BYTES
    }

    /// The updates from number `cursor` on, without those of `sender`.
    pub(super) fn since(&self, cursor: u64, without: Option<ConnId>) -> Vec<&Update> {
        self.updates
            .range(self.place_of(cursor)..)
            .map(|(_, update)| update)
            .filter(|update| without != Some(update.sender))
            .collect()
    }

    /// Forgets what every group has been sent.
    pub(super) fn trim(&mut self) {
        let head = self.head();
        let needed = self.groups.iter().map(|group| group.needed(head)).min();
        let needed = needed.unwrap_or(head);
        while let Some((number, update)) = self.updates.front()
            && *number < needed
        {
            self.bytes -= update.value.len();
            self.updates.pop_front();
        }
    }

    /// Merges updates that will only be sent together: those between two
    /// cursors, the newest left out, which mostly go out before there is more
    /// to merge them with.
    pub(super) fn condense(&mut self, mut as_one: impl FnMut(&[&Update]) -> Option<Update>) {
        if self.head < self.condense_from {
            return;
        }
        let Some(latest) = self.groups.iter().map(Group::latest).max() else {
            return;
        };
        let mut end = self.place_of(latest);
        while end > 1 {
            let number = self.updates[end - 1].0;
            let from = self.groups.iter().filter_map(|group| group.last_by(number));
            let Some(from) = from.max() else {
                return;
            };
            let start = self.place_of(from);
            if end - start > 1 {
                let run = self.updates.range(start..end);
                let run: Vec<&Update> = run.map(|(_, update)| update).collect();
                let Some(update) = as_one(&run) else {
                    self.condense_from = self.head + CONDENSE_AGAIN_AFTER;
                    return;
                };
                let len: usize = run.iter().map(|update| update.value.len()).sum();
                self.bytes = self.bytes + update.value.len() - len;
                let number = self.updates[start].0;
                self.updates.drain(start + 1..end);
                self.updates[start] = (number, update);
            }
            end = start;
        }
    }

    /// Where the first update that has number `cursor` or a later one is.
    fn place_of(&self, cursor: u64) -> usize {
        self.updates.partition_point(|(number, _)| *number < cursor)
    }

    /// Whether a group's beat is due then.
    pub(super) fn is_armed(&self, number: GroupId, at: Time) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.number == number && group.armed == Some(at))
    }

    pub(super) fn group(&mut self, number: GroupId) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| group.number == number)
    }

    /// The group for a subscription's options, made if there is none.
    pub(super) fn group_for(
        &mut self,
        options: &SubOptions,
        numbers: &mut GroupNumbers,
    ) -> &mut Group {
        let mut masks = options.masks.to_vec();
        masks.sort_unstable();
        let head = self.head();
        let place = self
            .groups
            .iter()
            .position(|group| group.interval_ms == options.interval_ms && group.masks == masks)
            .unwrap_or_else(|| {
                self.groups.push(Group {
                    number: numbers.take(),
                    interval_ms: options.interval_ms,
                    masks,
                    mask: None,
                    cursor: head,
                    armed: None,
                    sides: Vec::new(),
                    joining: BTreeMap::new(),
                    joining_from: u64::MAX,
                });
                self.groups.len() - 1
            });
        &mut self.groups[place]
    }

    /// Dissolves groups that nobody is in.
    /// Returns how many of them had a beat coming.
    pub(super) fn drop_empty(&mut self, numbers: &mut GroupNumbers) -> usize {
        let before = self.groups.len();
        let mut armed = 0;
        self.groups.retain(|group| {
            let keep = !group.is_empty();
            if !keep {
                armed += usize::from(group.armed.is_some());
                numbers.give_back(group.number);
            }
            keep
        });
        if self.groups.len() < before {
            self.trim();
        }
        armed
    }

    /// The data is another now: updates of the old are not passed on, and
    /// masks are to be made ready anew.
    pub(super) fn begin_anew(&mut self) {
        let head = self.head();
        for group in &mut self.groups {
            group.mask = None;
            group.cursor = head;
            group.joining.values_mut().for_each(|cursor| *cursor = head);
            if !group.joining.is_empty() {
                group.joining_from = head;
            }
        }
        self.trim();
    }
}

impl Group {
    pub(super) fn is_empty(&self) -> bool {
        self.sides.is_empty() && self.joining.is_empty()
    }

    pub(super) fn enter(&mut self, side: SideId) {
        match self.sides.iter_mut().find(|(of, _)| *of == side) {
            Some((_, members)) => *members += 1,
            None => self.sides.push((side, 1)),
        }
    }

    pub(super) fn exit(&mut self, side: SideId) {
        if let Some(place) = self.sides.iter().position(|(of, _)| *of == side) {
            self.sides[place].1 -= 1;
            if self.sides[place].1 == 0 {
                self.sides.remove(place);
            }
        }
    }

    /// A subscriber joins at the next beat; it has been sent all updates
    /// before number `cursor`.
    pub(super) fn join_at_beat(&mut self, member: ConnId, cursor: u64) {
        self.joining.insert(member, cursor);
        self.joining_from = self.joining_from.min(cursor);
    }

    /// A subscriber does not join after all. Returns its cursor, if it was to.
    pub(super) fn stay_away(&mut self, member: ConnId) -> Option<u64> {
        let cursor = self.joining.remove(&member);
        if self.joining.is_empty() {
            self.joining_from = u64::MAX;
        }
        cursor
    }

    /// Those who join at this beat, with their cursors.
    pub(super) fn take_joining(&mut self) -> BTreeMap<ConnId, u64> {
        self.joining_from = u64::MAX;
        std::mem::take(&mut self.joining)
    }

    /// No update that someone in it has not been sent comes before this one.
    fn needed(&self, head: u64) -> u64 {
        let of_members = if self.sides.is_empty() {
            head
        } else {
            self.cursor
        };
        of_members.min(self.joining_from)
    }

    /// The last of its cursors.
    fn latest(&self) -> u64 {
        self.cursors().max().unwrap_or(0)
    }

    /// The last of its cursors that is not behind an update.
    fn last_by(&self, number: u64) -> Option<u64> {
        self.cursors().filter(|&cursor| cursor <= number).max()
    }

    fn cursors(&self) -> impl Iterator<Item = u64> {
        let of_members = (!self.sides.is_empty()).then_some(self.cursor);
        of_members.into_iter().chain(self.joining.values().copied())
    }

    /// Something waits for it that is not on its way yet.
    pub(super) fn wants_beat(&self, head: u64) -> bool {
        self.armed.is_none() && self.needed(head) < head
    }

    /// The beat after `now`.
    pub(super) fn next_beat(&self, now: Time, tick: Duration, channel: ChannelId) -> Time {
        next_beat(now, self.interval_ms, tick, channel)
    }

    pub(super) fn mask(&mut self, data_type: Option<&DataType>) -> Option<&Mask> {
        if self.mask.is_none() && !self.masks.is_empty() {
            let paths = self.masks.iter().map(String::as_str);
            self.mask = Mask::new(data_type?.clone(), paths);
        }
        self.mask.as_ref()
    }
}

/// The first beat after `now`: a multiple of the interval, brought up to the
/// next multiple of the tick. Where the interval is longer than the tick, each
/// channel counts from a place of its own, so that not all channels of a long
/// interval are due at once.
fn next_beat(now: Time, interval_ms: u32, tick: Duration, channel: ChannelId) -> Time {
    let interval = u64::from(interval_ms) * 1_000_000;
    let tick_ns = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX).max(1);
    let offset = if interval > tick_ns {
        // A multiplicative hash spreads neighbouring numbers far apart.
        let spread = u64::from(channel.0.wrapping_mul(0x9e37_79b1));
        ((spread * (interval / tick_ns)) >> 32) * tick_ns
    } else {
        0
    };
    // The last multiple at or before now; its tick may be still to come.
    let passed = (now.as_nanos() + interval - offset) / interval;
    // Before the first there is none: the grid begins at the offset.
    let next = passed * interval + offset;
    let mut beat = next.checked_sub(interval).unwrap_or(offset);
    loop {
        let at = Time::from_nanos(beat).round_up_to(tick);
        if at > now {
            return at;
        }
        beat += interval;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::core::settings::ChannelTypeSettings;

    proptest! {
        #[test]
        fn beats_keep_their_interval_on_the_grid_of_ticks(
            now_us in 0u64..10_000_000_000,
            interval_ms in 1u32..5000,
            tick_ms in 1u64..200,
            channel: u32,
        ) {
            let tick = Duration::from_millis(tick_ms);
            let channel = ChannelId(channel);
            let now = Time::from_micros(now_us);
            let first = next_beat(now, interval_ms, tick, channel);
            prop_assert!(first > now);
            prop_assert_eq!(first.round_up_to(tick), first);
            let longest = u64::from(interval_ms) + tick_ms;
            prop_assert!(first.since(now) <= Duration::from_millis(longest));
            // Many beats take as long as so many intervals.
            let mut beat = first;
            for _ in 0..20 {
                beat = next_beat(beat, interval_ms, tick, channel);
            }
            let taken = beat.since(first).as_nanos() as f64;
            let asked = 20.0 * f64::from(interval_ms).max(tick_ms as f64) * 1e6;
            let slack = tick_ms as f64 * 1e6;
            if u64::from(interval_ms) >= tick_ms {
                prop_assert!((taken - asked).abs() <= slack, "{taken} {asked}");
            }
        }
    }

    /// Two updates as one: the bytes of both.
    fn both(run: &[&Update]) -> Option<Update> {
        let value: Vec<u8> = run
            .iter()
            .flat_map(|update| update.value.to_vec())
            .collect();
        let merged = Update {
            value: value.into(),
            ..run.first().copied()?.clone()
        };
        run.iter()
            .all(|update| update.sender == merged.sender)
            .then_some(merged)
    }

    proptest! {
        #[test]
        fn what_is_condensed_is_what_every_cursor_is_sent(
            events in proptest::collection::vec((0u8..6, 0u32..3), 1..60),
        ) {
            let mut numbers = GroupNumbers::default();
            let mut fan_out = FanOut::default();
            for interval_ms in [50, 100, 1000] {
                let options = SubOptions {
                    interval_ms,
                    ..SubOptions::defaults(&ChannelTypeSettings::default())
                };
                fan_out.group_for(&options, &mut numbers).enter(SideId(0));
            }
            let mut all: Vec<u8> = Vec::new();
            for (event, which) in events {
                match event {
                    0..3 => {
                        let byte = all.len() as u8;
                        all.push(byte);
                        fan_out.push(Update {
                            sender: ConnId(which / 2),
                            at: Time::ZERO,
                            value: Bytes::from(vec![byte]),
                        });
                    }
                    3 => {
                        let head = fan_out.head();
                        let group = &mut fan_out.groups[which as usize];
                        let cursor = std::mem::replace(&mut group.cursor, head);
                        if which > 0 {
                            let other = &mut fan_out.groups[which as usize - 1];
                            other.join_at_beat(ConnId(9), cursor);
                        }
                    }
                    4 => drop(fan_out.groups[which as usize].take_joining()),
                    _ => {}
                }
                fan_out.trim();
                fan_out.condense(both);
                let cursors: Vec<u64> = fan_out.groups.iter().flat_map(Group::cursors).collect();
                for cursor in cursors {
                    let sent = fan_out.since(cursor, None);
                    let sent: Vec<u8> = sent.iter().flat_map(|update| update.value.to_vec()).collect();
                    prop_assert_eq!(sent, &all[cursor as usize..]);
                }
                let kept: usize = fan_out.updates.iter().map(|(_, update)| update.value.len()).sum();
                prop_assert_eq!(fan_out.bytes, kept);
                // What could not be merged now may be the next time.
                fan_out.condense_from = 0;
            }
        }
    }

    #[test]
    fn what_waits_for_the_slowest_is_kept_as_one() {
        let mut numbers = GroupNumbers::default();
        let mut fan_out = FanOut::default();
        for interval_ms in [50, 1000] {
            let options = SubOptions {
                interval_ms,
                ..SubOptions::defaults(&ChannelTypeSettings::default())
            };
            fan_out.group_for(&options, &mut numbers).enter(SideId(0));
        }
        for byte in 0..20 {
            fan_out.push(Update {
                sender: ConnId(1),
                at: Time::ZERO,
                value: Bytes::from(vec![byte]),
            });
            fan_out.groups[0].cursor = fan_out.head();
            fan_out.condense(both);
            assert_eq!(fan_out.updates.len(), 1);
        }
    }

    #[test]
    fn the_first_beats_keep_their_interval_too() {
        let tick = Duration::from_millis(1);
        let first = next_beat(Time::ZERO, 387, tick, ChannelId(1));
        let second = next_beat(first, 387, tick, ChannelId(1));
        assert_eq!(second.since(first), Duration::from_millis(387));
    }

    #[test]
    fn channels_of_a_long_interval_are_spread_out() {
        let tick = Duration::from_millis(20);
        let beats: std::collections::BTreeSet<Time> = (0x80000..0x80064)
            .map(|id| next_beat(Time::from_secs(5), 1000, tick, ChannelId(id)))
            .collect();
        assert!(beats.len() > 30, "{} different ticks", beats.len());
        let global = next_beat(Time::from_secs(5), 1000, tick, ChannelId::GLOBAL);
        assert_eq!(global, Time::from_secs(6));
    }
}
