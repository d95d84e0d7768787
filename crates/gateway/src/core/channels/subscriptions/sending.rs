//! A group's windows on their way: built once for all its members, again where
//! someone's own updates cannot be cut out, and sent to the sides.

use std::sync::Arc;

use lagometer_protocol::Mask;
use lagometer_units::Time;

use crate::core::bus::{Member, Recipients, ToConnections, Window};
use crate::core::ids::{ConnId, GroupId, Peer, SideId};

use super::super::channel::Channel;
use super::super::connection_table::ConnectionTable;
use super::super::outbound::Outbound;
use super::subscription::SubscriptionState;
use super::windows::{Built, Recipe, Update, build, masked};

/// One group's windows on their way.
pub(super) struct Sending<'a> {
    pub(super) channel: &'a Channel,
    /// The group.
    pub(super) number: GroupId,
    /// What the windows are made by.
    pub(super) recipe: &'a Recipe,
    pub(super) mask: Option<Mask>,
    pub(super) type_url: Arc<str>,
    /// Those who may be members, with the sides they are on.
    pub(super) connections: &'a ConnectionTable,
    pub(super) out: &'a mut Outbound,
    pub(super) now: Time,
    /// What work clients may cause.
    pub(super) work_per_second: u32,
    /// What has come of it so far.
    pub(super) sent: Sent,
}

/// So many of a group have a window of their own made, where others wrote to what they
/// wrote to: each is merged anew from all updates.
const APART_AT_MOST: usize = 8;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) windows: u64,
    pub(super) bytes: usize,
    /// The sizes of fields that no message can hold.
    pub(super) too_long: Vec<usize>,
    /// Whom a window of its own was made for, of how many bytes of updates.
    pub(super) apart: Vec<(ConnId, usize)>,
}

impl Sending<'_> {
    /// To the group's members.
    pub(super) fn group(&mut self, cursor: u64, sides: &[SideId]) {
        let windows = self.windows(&self.channel.subscribers.fan_out.since(cursor, None));
        let contested = self.contested(&windows);
        for &side in sides {
            self.send(side, &Recipients::Group(self.number), &windows, &contested);
        }
        for &id in contested.iter() {
            let state = self
                .channel
                .subscribers
                .subscriptions
                .get(&id)
                .map(|one| one.state);
            if state == Some(SubscriptionState::Member { group: self.number }) {
                self.apart(cursor, id);
            }
        }
    }

    /// To some who join it.
    pub(super) fn these(&mut self, cursor: u64, ids: &[ConnId]) {
        let windows = self.windows(&self.channel.subscribers.fan_out.since(cursor, None));
        let contested = self.contested(&windows);
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
            let updates = self.channel.subscribers.fan_out.since(cursor, Some(id));
            let windows = self.windows(&updates);
            let bytes = updates.iter().map(|update| update.value.len()).sum();
            self.sent.apart.push((id, bytes));
            let to = Recipients::These(Arc::new([member]));
            self.send(side, &to, &windows, &Arc::default());
        }
    }

    fn send(&mut self, side: SideId, to: &Recipients, windows: &[Built], except: &Arc<[ConnId]>) {
        for built in windows {
            self.sent.windows += 1;
            self.sent.bytes += built.value.len();
            let window = Window {
                to: to.clone(),
                channel: self.channel.id,
                type_url: Arc::clone(&self.type_url),
                merge_options: self.recipe.options,
                value: built.value.clone(),
                own: Arc::clone(&built.own),
                except: Arc::clone(except),
            };
            self.out.push(side, ToConnections::Window(window));
        }
    }

    fn windows(&mut self, updates: &[&Update]) -> Vec<Built> {
        let mut windows = build(updates, self.recipe, &mut self.sent.too_long);
        if let Some(mask) = &self.mask {
            for built in &mut windows {
                *built = masked(built, mask);
            }
        }
        windows.retain(|built| !built.value.is_empty());
        windows
    }

    /// Senders whose part of any of the windows cannot be cut out, in order: those who get
    /// windows of their own. These may cost each as much work a second as its
    /// requests; beyond that, and after the first few, one gets what it sent back with
    /// the rest.
    fn contested(&self, windows: &[Built]) -> Arc<[ConnId]> {
        let mut few = contested(windows);
        few.retain(|&id| {
            self.connections.get(id).is_some_and(|connection| {
                connection.peer == Peer::Server
                    || !connection
                        .account
                        .are_own_windows_spent(self.now, self.work_per_second)
            })
        });
        few.truncate(APART_AT_MOST);
        few.into()
    }

    fn member(&self, id: ConnId) -> Option<(SideId, Member)> {
        let subscription = self.channel.subscribers.subscriptions.get(&id)?;
        let connection = self.connections.get(id)?;
        Some((connection.side, subscription.member(id)))
    }
}

/// All senders whose part of any of the windows cannot be cut out, in order.
fn contested(windows: &[Built]) -> Vec<ConnId> {
    let mut ids: Vec<ConnId> = windows
        .iter()
        .flat_map(|built| built.contested.iter().copied())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
