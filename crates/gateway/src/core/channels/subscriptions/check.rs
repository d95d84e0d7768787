//! What must hold of subscriptions between any two steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::check::{BrokenInvariant, hold};
use crate::core::ids::{ChannelId, ConnId, GroupId, SideId};

use super::super::channel_table::ChannelTable;
use super::super::connection_table::ConnectionTable;
use super::Subscriptions;
use super::subscribers::Subscribers;
use super::subscription::SubscriptionState;

impl Subscriptions {
    /// Whether all whose turn for a whole state is still to come wait for it.
    pub(in crate::core::channels) fn check(
        &self,
        channels: &ChannelTable,
    ) -> Result<(), BrokenInvariant> {
        for (id, member, due) in self.first_states.iter() {
            hold!(
                channels
                    .get(id)
                    .is_some_and(|channel| channel.subscribers.waits_for_state(member, due)),
                "{member} has a turn for the state of {id}, for which it does not wait"
            );
        }
        Ok(())
    }
}

impl Subscribers {
    /// Whether the subscriptions to channel `id` and its fan-out say the same; `numbers` are
    /// those of all groups that were checked before, for a number names one group.
    pub(in crate::core::channels) fn check(
        &self,
        id: ChannelId,
        connections: &ConnectionTable,
        numbers: &mut BTreeSet<GroupId>,
    ) -> Result<(), BrokenInvariant> {
        let mut members: BTreeMap<(GroupId, SideId), usize> = BTreeMap::new();
        let mut joining: BTreeSet<(GroupId, ConnId)> = BTreeSet::new();
        for (member, subscription) in self.subscriptions.iter() {
            let Some(connection) = connections.get(member) else {
                hold!(
                    false,
                    "{id} has {member} for a subscriber, who is not there"
                );
                continue;
            };
            hold!(
                connection.subscribed.contains_key(&id),
                "{member} does not know of its subscription to {id}"
            );
            hold!(
                subscription.options.are_sound(),
                "{member} is subscribed to {id} as nobody can be"
            );
            match subscription.state {
                SubscriptionState::Member { group } => {
                    *members.entry((group, connection.side)).or_default() += 1;
                }
                SubscriptionState::Joining { group } => _ = joining.insert((group, member)),
                SubscriptionState::AwaitingData => hold!(
                    self.awaiting_data.contains(&member),
                    "{member} waits for data of {id}, which does not know"
                ),
                SubscriptionState::Outside => hold!(
                    !subscription.options.has_access(),
                    "{member} may read {id} but is sent nothing"
                ),
                SubscriptionState::Waiting { .. } => {}
            }
        }
        hold!(
            self.awaiting_data.len() <= self.subscriptions.len(),
            "{} wait for data of {id}, which has {} subscribers",
            self.awaiting_data.len(),
            self.subscriptions.len()
        );
        let (of_groups, joining_groups) = self.fan_out.census();
        hold!(
            of_groups == members,
            "groups of {id}: {of_groups:?} by themselves, {members:?} by subscriptions"
        );
        hold!(
            joining_groups == joining,
            "who joins in {id}: {joining_groups:?} by groups, {joining:?} by subscriptions"
        );
        self.fan_out.check(id, numbers)
    }
}
