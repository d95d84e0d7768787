//! Beats: groups are sent their windows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lagometer_protocol::Mask;
use lagometer_units::Time;

use crate::core::bus::{Member, Recipients, ToConnections, Window};
use crate::core::ids::{ChannelId, ConnId, GroupId, SideId};

use super::ChannelSide;
use super::channel::Channel;
use super::fan_out::{Grid, Start};
use super::people::People;
use super::subscription::Place;
use super::timers::Due;
use super::windows::{Built, Recipe, as_one, build, masked};

impl ChannelSide {
    /// A group's beat has come.
    pub(super) fn beat(&mut self, now: Time, due: Time, id: ChannelId, number: GroupId) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        let is_due = channel
            .fan_out
            .group(number)
            .is_some_and(|group| group.armed == Some(due));
        if is_due {
            self.counters
                .of_mut(channel.kind)
                .lateness
                .add(now.since(due));
            // All that is due at one tick is done in a row.
            if self.last_tick != Some(due) {
                self.last_tick = Some(due);
                self.counters.ticks.add(now.since(due));
            }
            self.send_group(now, id, number, Some(due));
        }
    }

    /// So much waits in a channel that nobody's window may stay open.
    pub(super) fn send_all_groups(&mut self, now: Time, id: ChannelId) {
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.fan_out.forget_paused();
        }
        let numbers: Vec<GroupId> = self.channels.get(&id).map_or(Vec::new(), |channel| {
            channel
                .fan_out
                .groups
                .iter()
                .map(|group| group.number)
                .collect()
        });
        // Their beats come to nothing.
        let armed = self.channels.get(&id).map_or(0, |channel| {
            let groups = channel.fan_out.groups.iter();
            groups.filter(|group| group.armed.is_some()).count()
        });
        (0..armed).for_each(|_| self.timers.note_stale());
        for number in numbers {
            self.send_group(now, id, number, None);
        }
    }

    /// Sends a group all that it has not been sent, and takes in who joins at
    /// that `beat`; where it is sent out of turn, everybody.
    fn send_group(&mut self, now: Time, id: ChannelId, number: GroupId, beat: Option<Time>) {
        let now_unix_ms = self.unix_ms(now);
        let Some(channel) = self.channels.get_mut(&id) else {
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
        let head = channel.fan_out.head();
        let Some(group) = channel.fan_out.group(number) else {
            return;
        };
        group.armed = None;
        let mask = group.mask(recipe.data_type.as_ref()).cloned();
        let from = std::mem::replace(&mut group.cursor, head);
        let sides: Vec<SideId> = group.sides.iter().map(|(side, _)| *side).collect();
        let joining = group.take_joining(beat);

        let mut sending = Sending {
            channel,
            number,
            recipe: &recipe,
            mask,
            type_url,
            people: &self.people,
            out: &mut self.to_connections,
            windows: 0,
            bytes: 0,
            too_long: Vec::new(),
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
        let (windows, bytes, too_long) = (sending.windows, sending.bytes, sending.too_long);
        let oldest = channel
            .fan_out
            .since(from, None)
            .first()
            .map(|update| update.at);
        let counters = self.counters.of_mut(channel.kind);
        counters.windows += windows;
        counters.bytes += bytes as u64;
        if let Some(oldest) = oldest {
            counters.age.add(now.since(oldest));
        }
        for size_bytes in too_long {
            self.tell_too_long(id, size_bytes);
        }
        for &member in joining.keys() {
            self.enter_group(id, member, number);
        }
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.fan_out.trim();
            channel.fan_out.condense(|run| as_one(run, &recipe));
        }
        // Some may have to wait for a later beat.
        self.arm(now, id);
    }

    /// A subscriber that has been sent all updates before number `cursor`
    /// takes part in its group.
    pub(super) fn join(
        &mut self,
        now: Time,
        id: ChannelId,
        member: ConnId,
        cursor: u64,
        start: Start,
    ) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        let Some(subscription) = channel.subscriptions.get_mut(&member) else {
            return;
        };
        let options = &subscription.options;
        let grid = Grid {
            now,
            tick: self.settings.types.of(channel.kind).tick,
            channel: id,
        };
        let not_before = start.first_end(options.interval_ms);
        let group = channel
            .fan_out
            .group_for(options, start, grid, &mut self.groups);
        let number = group.number;
        if group.sides.is_empty() {
            group.cursor = cursor;
        }
        if group.cursor == cursor && group.next_beat(now) >= not_before {
            self.enter_group(id, member, number);
        } else {
            group.join_at_beat(member, cursor, not_before);
            subscription.place = Place::Joining { group: number };
        }
        self.arm(now, id);
    }

    /// Takes a subscriber out of its group. Returns the number of the first
    /// update it has not been sent, if it was in one.
    pub(super) fn part(&mut self, id: ChannelId, member: ConnId) -> Option<u64> {
        let channel = self.channels.get_mut(&id)?;
        let subscription = channel.subscriptions.get_mut(&member)?;
        let place = subscription.place;
        let (Place::Member { group: number } | Place::Joining { group: number }) = place else {
            return None;
        };
        subscription.place = Place::Outside;
        let group = channel.fan_out.group(number)?;
        let cursor = group.stay_away(member).unwrap_or(group.cursor);
        if let Place::Member { .. } = place
            && let Some(person) = self.people.any_mut(member)
        {
            group.exit(person.side);
            let leave = ToConnections::Leave {
                group: number,
                id: member,
            };
            self.to_connections.push_back((person.side, leave));
        }
        Some(cursor)
    }

    /// Dissolves groups that nobody is in any more.
    pub(super) fn dissolve_groups(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.get_mut(&id) {
            let armed = channel.fan_out.drop_empty(&mut self.groups);
            (0..armed).for_each(|_| self.timers.note_stale());
        }
    }

    /// Sees to it that every group of a channel that has something coming has
    /// its beat.
    pub(super) fn arm(&mut self, now: Time, id: ChannelId) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        let head = channel.fan_out.head();
        for group in &mut channel.fan_out.groups {
            if group.wants_beat(head) {
                let at = group.next_beat(now);
                group.armed = Some(at);
                let beat = Due::Beat {
                    channel: id,
                    group: group.number,
                };
                self.timers.add(at, beat);
            }
        }
    }

    fn enter_group(&mut self, id: ChannelId, member: ConnId, number: GroupId) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        if let Some(subscription) = channel.subscriptions.get_mut(&member)
            && let Some(group) = channel.fan_out.group(number)
            && let Some(person) = self.people.get(member)
        {
            subscription.place = Place::Member { group: number };
            group.enter(person.side);
            let join = ToConnections::Join {
                group: number,
                channel: id,
                member: subscription.member(member),
            };
            self.to_connections.push_back((person.side, join));
        }
    }
}

/// One group's windows on their way.
struct Sending<'a> {
    channel: &'a Channel,
    number: GroupId,
    recipe: &'a Recipe,
    mask: Option<Mask>,
    type_url: Arc<str>,
    people: &'a People,
    out: &'a mut VecDeque<(SideId, ToConnections)>,
    windows: u64,
    bytes: usize,
    /// The sizes of fields that no message can hold.
    too_long: Vec<usize>,
}

impl Sending<'_> {
    /// To the group's members.
    fn group(&mut self, cursor: u64, sides: &[SideId]) {
        let windows = self.windows(cursor, None);
        let contested = contested(&windows);
        for &side in sides {
            self.send(side, &Recipients::Group(self.number), &windows, &contested);
        }
        for &id in contested.iter() {
            let place = self.channel.subscriptions.get(&id).map(|one| one.place);
            if place == Some(Place::Member { group: self.number }) {
                self.apart(cursor, id);
            }
        }
    }

    /// To some who join it.
    fn these(&mut self, cursor: u64, ids: &[ConnId]) {
        let windows = self.windows(cursor, None);
        let contested = contested(&windows);
        let mut sides: Vec<(SideId, Vec<Member>)> = Vec::new();
        for &id in ids {
            let Some((side, member)) = self.member(id) else {
                continue;
            };
            match sides.iter_mut().find(|(of, _)| *of == side) {
                Some((_, members)) => members.push(member),
                None => sides.push((side, vec![member])),
            }
        }
        for (side, members) in sides {
            let to = Recipients::These(members.into());
            self.send(side, &to, &windows, &contested);
        }
        for &id in contested.iter().filter(|id| ids.contains(id)) {
            self.apart(cursor, id);
        }
    }

    /// To one whose own updates cannot be cut out: merged anew without them.
    fn apart(&mut self, cursor: u64, id: ConnId) {
        if let Some((side, member)) = self.member(id)
            && member.skip_self
        {
            let windows = self.windows(cursor, Some(id));
            let to = Recipients::These(Arc::new([member]));
            self.send(side, &to, &windows, &Arc::default());
        }
    }

    fn send(&mut self, side: SideId, to: &Recipients, windows: &[Built], except: &Arc<[ConnId]>) {
        for built in windows {
            self.windows += 1;
            self.bytes += built.value.len();
            let window = Window {
                to: to.clone(),
                channel: self.channel.id,
                type_url: Arc::clone(&self.type_url),
                merge_options: self.recipe.options,
                value: built.value.clone(),
                own: Arc::clone(&built.own),
                except: Arc::clone(except),
            };
            self.out.push_back((side, ToConnections::Window(window)));
        }
    }

    fn windows(&mut self, cursor: u64, without: Option<ConnId>) -> Vec<Built> {
        let updates = self.channel.fan_out.since(cursor, without);
        let mut windows = build(&updates, self.recipe, &mut self.too_long);
        if let Some(mask) = &self.mask {
            for built in &mut windows {
                *built = masked(built, mask);
            }
        }
        windows.retain(|built| !built.value.is_empty());
        windows
    }

    fn member(&self, id: ConnId) -> Option<(SideId, Member)> {
        let subscription = self.channel.subscriptions.get(&id)?;
        let person = self.people.get(id)?;
        Some((person.side, subscription.member(id)))
    }
}

/// All senders whose part of any of the windows cannot be cut out, in order.
fn contested(windows: &[Built]) -> Arc<[ConnId]> {
    let mut ids: Vec<ConnId> = windows
        .iter()
        .flat_map(|built| built.contested.iter().copied())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into()
}
