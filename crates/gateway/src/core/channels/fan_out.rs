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
//! until a beat that lets its first window be as long as any. So has whoever has
//! no access for a while: what it missed waits for it, as far as there is room.
//!
//! A group's windows are counted from its first subscriber's whole state. Others
//! of the same interval have groups of their own, counted from theirs, up to a few;
//! all further ones join one of these.
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

use super::phase::Phase;
use super::subscription::SubOptions;
use super::windows::Update;

/// So many updates, or bytes of them, end a window early.
const MAX_WAITING_UPDATES: usize = 4096;
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Data whose updates are not simply merged is mostly of that kind throughout:
/// after so many more it is tried again.
const CONDENSE_AGAIN_AFTER: u64 = 256;

/// The most groups of one interval and mask: each window is encoded once for every
/// group.
const MAX_PHASES: usize = 4;

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
    /// Subscribers that have no access for now, with their cursors.
    paused: BTreeMap<ConnId, u64>,
}

/// What a subscriber's windows are counted from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// The whole state that it was sent at this time.
    State(Time),
    /// It had windows before, and waits for no state.
    Onward,
}

/// Subscribers that get the same windows.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) number: GroupId,
    interval_ms: u32,
    phase: Phase,
    tick: Duration,
    masks: Vec<String>,
    /// Made ready for the data's type when first needed.
    mask: Option<Mask>,
    pub(super) cursor: u64,
    /// When its beat is due, if something waits for it.
    pub(super) armed: Option<Time>,
    /// How many members are on which connection side.
    pub(super) sides: Vec<(SideId, usize)>,
    /// Who joins at a beat to come, with a cursor of its own.
    joining: BTreeMap<ConnId, Joining>,
    /// None of their cursors is before this one.
    joining_from: u64,
}

/// Someone who is to join a group.
#[derive(Clone, Copy, Debug)]
struct Joining {
    cursor: u64,
    /// Its first window may not end before.
    not_before: Time,
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
        if !self.groups.is_empty() || !self.paused.is_empty() {
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
        let of_groups = self.groups.iter().map(|group| group.needed(head));
        let needed = of_groups.chain(self.paused.values().copied()).min();
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
        let Some(latest) = self.cursors().max() else {
            return;
        };
        let mut end = self.place_of(latest);
        while end > 1 {
            let number = self.updates[end - 1].0;
            let from = self.cursors().filter(|&cursor| cursor <= number).max();
            let Some(from) = from else {
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

    /// The cursors of all groups, of those who join them, and of the paused.
    fn cursors(&self) -> impl Iterator<Item = u64> {
        let of_groups = self.groups.iter().flat_map(Group::cursors);
        of_groups.chain(self.paused.values().copied())
    }

    /// A subscriber that has been sent all updates before number `cursor` gets
    /// none for now.
    pub(super) fn pause(&mut self, member: ConnId, cursor: u64) {
        self.paused.insert(member, cursor);
    }

    /// A subscriber is paused no more. Returns its cursor, unless what it missed
    /// was too much to be kept.
    pub(super) fn resume(&mut self, member: ConnId) -> Option<u64> {
        self.paused.remove(&member)
    }

    /// What the paused have missed takes too much room: they get the whole state
    /// when they come back.
    pub(super) fn forget_paused(&mut self) {
        self.paused.clear();
        self.trim();
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

    /// The group for a subscription's options that suits `start` best, made if
    /// there is none or there may be one more.
    pub(super) fn group_for(
        &mut self,
        options: &SubOptions,
        start: Start,
        grid: Grid,
        numbers: &mut GroupNumbers,
    ) -> &mut Group {
        let mut masks = options.masks.to_vec();
        masks.sort_unstable();
        let (head, interval_ms, tick) = (self.head(), options.interval_ms, grid.tick);
        let phase = match start {
            Start::State(at) => Phase::counted_from(at, interval_ms, tick),
            Start::Onward => Phase::of_channel(grid.channel, interval_ms, tick),
        };
        // A beat at the very end of the first window is no later.
        let earliest = start.first_end(interval_ms).as_nanos().saturating_sub(1);
        let earliest = Time::from_nanos(earliest).max(grid.now);
        let alike = |group: &Group| group.interval_ms == interval_ms && group.masks == masks;
        let groups = self.groups.iter().enumerate();
        let alike: Vec<(usize, &Group)> = groups.filter(|(_, group)| alike(group)).collect();
        let exact = alike.iter().find(|(_, group)| group.phase == phase);
        let may_be_more = match start {
            Start::State(_) => alike.len() < MAX_PHASES,
            Start::Onward => alike.is_empty(),
        };
        let soonest = alike
            .iter()
            .min_by_key(|(_, group)| group.next_beat(earliest));
        let found = match exact {
            Some(&(place, _)) => Some(place),
            None if may_be_more => None,
            None => soonest.map(|&(place, _)| place),
        };
        let place = found.unwrap_or_else(|| {
            self.groups.push(Group {
                number: numbers.take(),
                interval_ms,
                phase,
                tick,
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
        if self.groups.len() < before || self.groups.is_empty() {
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
            let joining = group.joining.values_mut();
            joining.for_each(|joining| joining.cursor = head);
            if !group.joining.is_empty() {
                group.joining_from = head;
            }
        }
        self.paused.clear();
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

    /// A subscriber joins at the first beat that is not before a time; it has
    /// been sent all updates before number `cursor`.
    pub(super) fn join_at_beat(&mut self, member: ConnId, cursor: u64, not_before: Time) {
        self.joining.insert(member, Joining { cursor, not_before });
        self.joining_from = self.joining_from.min(cursor);
    }

    /// A subscriber does not join after all. Returns its cursor, if it was to.
    pub(super) fn stay_away(&mut self, member: ConnId) -> Option<u64> {
        let joining = self.joining.remove(&member);
        if self.joining.is_empty() {
            self.joining_from = u64::MAX;
        }
        joining.map(|joining| joining.cursor)
    }

    /// Those who join at the beat of that time, or all where there is none, with
    /// their cursors.
    pub(super) fn take_joining(&mut self, beat: Option<Time>) -> BTreeMap<ConnId, u64> {
        let all = std::mem::take(&mut self.joining);
        let (now, later): (BTreeMap<_, _>, BTreeMap<_, _>) = all
            .into_iter()
            .partition(|(_, joining)| beat.is_none_or(|beat| joining.not_before <= beat));
        let cursors = later.values().map(|joining| joining.cursor);
        self.joining_from = cursors.min().unwrap_or(u64::MAX);
        self.joining = later;
        now.into_iter()
            .map(|(id, joining)| (id, joining.cursor))
            .collect()
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

    fn cursors(&self) -> impl Iterator<Item = u64> {
        let of_members = (!self.sides.is_empty()).then_some(self.cursor);
        of_members
            .into_iter()
            .chain(self.joining.values().map(|joining| joining.cursor))
    }

    /// Something waits for it that is not on its way yet.
    pub(super) fn wants_beat(&self, head: u64) -> bool {
        self.armed.is_none() && self.needed(head) < head
    }

    /// The beat after `now`.
    pub(super) fn next_beat(&self, now: Time) -> Time {
        self.phase.next_beat(now, self.interval_ms, self.tick)
    }

    pub(super) fn mask(&mut self, data_type: Option<&DataType>) -> Option<&Mask> {
        if self.mask.is_none() && !self.masks.is_empty() {
            let paths = self.masks.iter().map(String::as_str);
            self.mask = Mask::new(data_type?.clone(), paths);
        }
        self.mask.as_ref()
    }
}

/// Where and when a group is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) now: Time,
    /// That of the channel's type.
    pub(super) tick: Duration,
    pub(super) channel: ChannelId,
}

impl Start {
    /// Before this time no first window ends.
    pub(super) fn first_end(self, interval_ms: u32) -> Time {
        match self {
            Self::State(at) => at + Duration::from_millis(u64::from(interval_ms)),
            Self::Onward => Time::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::core::settings::ChannelTypeSettings;

    fn group<'a>(
        fan_out: &'a mut FanOut,
        options: &SubOptions,
        numbers: &mut GroupNumbers,
    ) -> &'a mut Group {
        started(fan_out, options, Start::Onward, numbers)
    }

    fn started<'a>(
        fan_out: &'a mut FanOut,
        options: &SubOptions,
        start: Start,
        numbers: &mut GroupNumbers,
    ) -> &'a mut Group {
        let grid = Grid {
            now: Time::ZERO,
            tick: Duration::from_millis(20),
            channel: ChannelId::GLOBAL,
        };
        fan_out.group_for(options, start, grid, numbers)
    }

    #[test]
    fn phases_of_one_interval_are_few_and_the_first_window_is_never_short() {
        let mut numbers = GroupNumbers::default();
        let mut fan_out = FanOut::default();
        let options = SubOptions {
            interval_ms: 500,
            ..SubOptions::defaults(&ChannelTypeSettings::default())
        };
        for millis in (0..5000).step_by(20) {
            let start = Start::State(Time::from_millis(millis));
            let end = start.first_end(500);
            let group = started(&mut fan_out, &options, start, &mut numbers);
            // A beat at the very end of the window is the first.
            let beat = group.next_beat(Time::from_nanos(end.as_nanos() - 1));
            group.enter(SideId(0));
            assert!(beat >= end && beat < end + Duration::from_millis(500));
            if millis < 80 {
                assert_eq!(beat, end, "one of the first has its own");
            }
        }
        assert_eq!(fan_out.groups.len(), MAX_PHASES);
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
                group(&mut fan_out, &options, &mut numbers).enter(SideId(0));
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
                            other.join_at_beat(ConnId(9), cursor, Time::ZERO);
                        }
                    }
                    4 => drop(fan_out.groups[which as usize].take_joining(None)),
                    5 if which == 0 => fan_out.pause(ConnId(8), fan_out.head()),
                    _ => drop(fan_out.resume(ConnId(8))),
                }
                fan_out.trim();
                fan_out.condense(both);
                let cursors: Vec<u64> = fan_out.cursors().collect();
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
            group(&mut fan_out, &options, &mut numbers).enter(SideId(0));
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
}
