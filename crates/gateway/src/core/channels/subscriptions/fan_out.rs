//! What a channel's subscribers have not been sent yet, and who is sent what
//! when.
//!
//! Updates are kept in the order they came, each with a number. Subscribers
//! that want the same windows at the same times form a *group*; a group has a
//! *cursor*, the number of the first update it has not been sent. At the
//! group's fan-out tick it is sent all updates from its cursor on, and the cursor moves
//! up: nothing is sent twice, nothing is passed over.
//!
//! Whoever joins a group in the middle of a window has a cursor of its own
//! until a fan-out tick that lets its first window be as long as any. So has whoever has
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
mod group;
mod update_log;

use std::collections::BTreeMap;

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::ids::{ConnId, GroupId};

use super::subscription::SubOptions;
use super::windows::Update;

use group::sorted;
pub(super) use group::{Grid, Group, GroupNumbers, Start, Turn};
use update_log::UpdateLog;

/// The most groups of one interval and mask: each window is encoded once for every
/// group.
const MAX_PHASES: usize = 4;

/// So many bytes of updates are kept for the paused alone.
const PAUSED_BYTES: usize = 64 << 10;

/// One channel's updates and groups.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FanOut {
    log: UpdateLog,
    groups: Vec<Group>,
    /// Subscribers that have no access for now, with their cursors.
    paused: BTreeMap<ConnId, u64>,
}

impl FanOut {
    /// The number the next update will have.
    pub(super) fn head(&self) -> u64 {
        self.log.head()
    }

    /// How many groups there are.
    pub(super) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Their numbers.
    pub(super) fn group_numbers(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().map(Group::number)
    }

    /// How many of them have a fan-out tick coming.
    pub(super) fn armed_count(&self) -> usize {
        self.groups.iter().filter(|group| group.is_armed()).count()
    }

    /// Sets a fan-out tick for every group that has something coming and none yet.
    /// Returns them, each with the time.
    pub(super) fn arm(&mut self, now: Time) -> impl Iterator<Item = (GroupId, Time)> {
        let head = self.log.head();
        let groups = self.groups.iter_mut();
        groups.filter_map(move |group| Some((group.number(), group.arm(now, head)?)))
    }

    /// Keeps an update for the groups. Nothing is kept where there are none.
    pub(super) fn push(&mut self, update: Update) {
        if self.groups.is_empty() && self.paused.is_empty() {
            return;
        }
        self.log.push(update);
        if !self.paused.is_empty() && self.log.bytes_before(self.needed()) > PAUSED_BYTES {
            self.forget_paused();
        }
    }

    /// So much waits, or more than `most_bytes`, that windows are to end now.
    pub(super) fn is_full(&self, most_bytes: usize) -> bool {
        self.log.is_full(most_bytes)
    }

    /// The number of the first update that some group has not been sent.
    fn needed(&self) -> u64 {
        let head = self.head();
        let of_groups = self.groups.iter().map(|group| group.needed(head));
        of_groups.min().unwrap_or(head)
    }

    /// The updates from number `cursor` on, without those of `sender`.
    pub(super) fn since(&self, cursor: u64, without: Option<ConnId>) -> Vec<&Update> {
        self.log.since(cursor, without)
    }

    /// Forgets what every group has been sent.
    pub(super) fn trim(&mut self) {
        let of_paused = self.paused.values().copied().min();
        let needed = self.needed();
        self.log
            .trim(of_paused.map_or(needed, |paused| paused.min(needed)));
    }

    /// Merges updates that will only be sent together.
    pub(super) fn condense(&mut self, as_one: impl FnMut(&[&Update]) -> Option<Update>) {
        let (groups, paused) = (&self.groups, &self.paused);
        self.log.condense(|| cursors(groups, paused), as_one);
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

    /// Whether a group's fan-out tick is due then.
    pub(super) fn is_armed(&self, number: GroupId, at: Time) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.number() == number && group.is_armed_at(at))
    }

    pub(super) fn group(&mut self, number: GroupId) -> Option<&mut Group> {
        let mut groups = self.groups.iter_mut();
        groups.find(|group| group.number() == number)
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
        let masks = sorted(&options.masks);
        let (head, interval_ms) = (self.head(), options.interval_ms);
        let phase = start.phase(interval_ms, grid);
        // A fan-out tick at the very end of the first window is no later.
        let earliest = start.first_end(interval_ms).as_nanos().saturating_sub(1);
        let earliest = Time::from_nanos(earliest).max(grid.now);
        let alike = |group: &Group| group.is_alike(interval_ms, &masks);
        let groups = self.groups.iter().enumerate();
        let alike: Vec<(usize, &Group)> = groups.filter(|(_, group)| alike(group)).collect();
        let exact = alike.iter().find(|(_, group)| group.has_phase(phase));
        let may_be_more = match start {
            Start::State(_) => alike.len() < MAX_PHASES,
            Start::Onward => alike.is_empty(),
        };
        let soonest = alike
            .iter()
            .min_by_key(|(_, group)| group.next_tick(earliest));
        let found = match exact {
            Some(&(place, _)) => Some(place),
            None if may_be_more => None,
            None => soonest.map(|&(place, _)| place),
        };
        let place = found.unwrap_or_else(|| {
            let group = Group::new(options, start, grid, head, numbers);
            self.groups.push(group);
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    /// Dissolves groups that nobody is in.
    /// Returns how many of them had a fan-out tick coming.
    pub(super) fn drop_empty(&mut self, numbers: &mut GroupNumbers) -> usize {
        let before = self.groups.len();
        let mut armed = 0;
        self.groups.retain(|group| {
            let keep = !group.is_empty();
            if !keep {
                armed += usize::from(group.is_armed());
                numbers.give_back(group.number());
            }
            keep
        });
        if self.groups.len() < before || self.groups.is_empty() {
            self.trim();
            // Many came and went.
            if self.groups.capacity() > 4 * (self.groups.len() + 1) {
                self.groups.shrink_to_fit();
            }
        }
        armed
    }

    /// The data is another now: updates of the old are not passed on, and
    /// masks are to be made ready anew.
    pub(super) fn begin_anew(&mut self) {
        let head = self.head();
        for group in &mut self.groups {
            group.begin_anew(head);
        }
        self.paused.clear();
        self.trim();
    }
}

/// The cursors of all groups, of those who join them, and of the paused.
fn cursors(groups: &[Group], paused: &BTreeMap<ConnId, u64>) -> impl Iterator<Item = u64> {
    let of_groups = groups.iter().flat_map(Group::cursors);
    of_groups.chain(paused.values().copied())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::core::ids::{ChannelId, SideId};
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
            // A fan-out tick at the very end of the window is the first.
            let tick_at = group.next_tick(Time::from_nanos(end.as_nanos() - 1));
            group.enter(SideId(0));
            assert!(tick_at >= end && tick_at < end + Duration::from_millis(500));
            if millis < 80 {
                assert_eq!(tick_at, end, "one of the first has its own");
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

    #[test]
    fn what_only_the_paused_have_missed_takes_little_room() {
        let mut fan_out = FanOut::default();
        let update = |bytes: usize| Update {
            sender: ConnId(1),
            at: Time::ZERO,
            value: Bytes::from(vec![7; bytes]),
        };
        fan_out.pause(ConnId(8), fan_out.head());
        for _ in 0..10 {
            fan_out.push(update(5000));
        }
        assert!(!fan_out.log.is_empty());
        assert_eq!(fan_out.resume(ConnId(8)), Some(0));
        fan_out.pause(ConnId(8), 0);
        for _ in 0..10 {
            fan_out.push(update(5000));
        }
        assert_eq!(fan_out.resume(ConnId(8)), None, "it gets the whole state");
        // However short they are: each takes room of its own.
        fan_out.pause(ConnId(8), fan_out.head());
        for _ in 0..1000 {
            fan_out.push(update(1));
        }
        assert_eq!(fan_out.resume(ConnId(8)), None);
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
                        let cursor = group.replace_cursor(head);
                        if which > 0 {
                            let other = &mut fan_out.groups[which as usize - 1];
                            other.join_at_tick(ConnId(9), cursor, Time::ZERO);
                        }
                    }
                    4 => drop(fan_out.groups[which as usize].take_joining(None)),
                    5 if which == 0 => fan_out.pause(ConnId(8), fan_out.head()),
                    _ => drop(fan_out.resume(ConnId(8))),
                }
                fan_out.trim();
                fan_out.condense(both);
                let cursors: Vec<u64> = cursors(&fan_out.groups, &fan_out.paused).collect();
                for cursor in cursors {
                    let sent = fan_out.since(cursor, None);
                    let sent: Vec<u8> = sent.iter().flat_map(|update| update.value.to_vec()).collect();
                    prop_assert_eq!(sent, &all[cursor as usize..]);
                }
                prop_assert!(fan_out.log.check(ChannelId(1)).is_ok());
                // What could not be merged now may be the next time.
                fan_out.log.try_to_condense_again();
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
            let head = fan_out.head();
            fan_out.groups[0].replace_cursor(head);
            fan_out.condense(both);
            assert_eq!(fan_out.log.len(), 1);
        }
    }
}
