//! Who is subscribed to one channel, and what waits there for them.

use std::collections::BTreeSet;

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::by_number::ByNumber;
use crate::core::ids::{ConnId, GroupId};

use super::fan_out::FanOut;
use super::subscription::{Subscription, SubscriptionState};

/// A channel's subscriptions and its fan-out. Only the modules of subscriptions change
/// them, or see what they consist of: the two follow from each other.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::core::channels) struct Subscribers {
    pub(super) subscriptions: ByNumber<ConnId, Subscription>,
    pub(super) fan_out: FanOut,
    /// Subscribers that are due for the whole state once there is one.
    pub(super) awaiting_data: BTreeSet<ConnId>,
}

impl Subscribers {
    /// How many there are.
    pub(in crate::core::channels) fn count(&self) -> usize {
        self.subscriptions.len()
    }

    /// All of them, in order.
    pub(in crate::core::channels) fn ids(&self) -> impl Iterator<Item = ConnId> {
        self.subscriptions.keys()
    }

    /// Whether a connection is subscribed.
    pub(in crate::core::channels) fn contains(&self, id: ConnId) -> bool {
        self.subscriptions.contains_key(&id)
    }

    /// The subscription of a connection.
    pub(in crate::core::channels) fn subscription(&self, id: ConnId) -> Option<&Subscription> {
        self.subscriptions.get(&id)
    }

    /// Whether a connection is subscribed with the right to write.
    pub(in crate::core::channels) fn may_write(&self, id: ConnId) -> bool {
        self.subscription(id).is_some_and(Subscription::may_write)
    }

    /// How many groups they are in: each window is made once for every group.
    pub(in crate::core::channels) fn group_count(&self) -> usize {
        self.fan_out.group_count()
    }

    /// The members of groups, each with its group.
    pub(in crate::core::channels) fn members(&self) -> impl Iterator<Item = (GroupId, ConnId)> {
        self.subscriptions
            .iter()
            .filter_map(|(id, subscription)| match subscription.state {
                SubscriptionState::Member { group } => Some((group, id)),
                _ => None,
            })
    }

    /// Whether a group has a fan-out tick then.
    pub(in crate::core::channels) fn has_fan_out_tick(&self, group: GroupId, at: Time) -> bool {
        self.fan_out.is_armed(group, at)
    }

    /// Whether a subscriber's first state, or that it joins a group, is due then.
    pub(in crate::core::channels) fn waits_for_state(&self, id: ConnId, at: Time) -> bool {
        self.subscription(id)
            .is_some_and(|subscription| subscription.state.waits_for(at))
    }

    /// The channel's data is another now: what was kept of the old is not passed on.
    pub(in crate::core::channels) fn data_begins_anew(&mut self) {
        self.fan_out.begin_anew();
    }
}
