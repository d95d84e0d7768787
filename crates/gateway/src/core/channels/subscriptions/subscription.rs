//! One connection's subscription to one channel.

use lagometer_protocol::messages::channeldpb::{ChannelDataAccess, ChannelSubscriptionOptions};
use lagometer_protocol::{MAX_MASK_DEPTH, mask_depth};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::budget::Budget;
use crate::core::bus::Member;
use crate::core::ids::{ConnId, GroupId};
use crate::core::settings::{ChannelTypeSettings, PeerBudgets};

/// A subscription.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::core::channels) struct Subscription {
    pub(super) options: SubOptions,
    pub(super) since: Time,
    pub(super) state: SubscriptionState,
}

/// How far a subscription has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SubscriptionState {
    /// It has no access: it gets nothing.
    Outside,
    /// It gets the `whole` state then, or else just joins a group.
    Waiting { due: Time, whole: bool },
    /// It is due for the whole state, but there is none.
    AwaitingData,
    /// It joins a group at the group's next fan-out tick.
    Joining { group: GroupId },
    /// It gets the group's windows.
    Member { group: GroupId },
}

/// Options with nothing left open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::core::channels) struct SubOptions {
    pub(in crate::core::channels) access: i32,
    /// Mostly none.
    pub(super) masks: Box<[String]>,
    /// At least 1.
    pub(super) interval_ms: u32,
    pub(super) delay_ms: i32,
    pub(super) skip_self: bool,
    pub(super) skip_first: bool,
}

impl Subscription {
    pub(super) fn member(&self, id: ConnId) -> Member {
        Member {
            id,
            skip_self: self.options.skip_self,
        }
    }

    /// When it began.
    pub(in crate::core::channels) fn since(&self) -> Time {
        self.since
    }

    pub(in crate::core::channels) fn options(&self) -> &SubOptions {
        &self.options
    }

    pub(super) fn may_write(&self) -> bool {
        self.options.access == ChannelDataAccess::WriteAccess as i32
    }
}

impl SubscriptionState {
    /// Whether the first state, or joining a group, is due then.
    pub(super) fn waits_for(self, at: Time) -> bool {
        matches!(self, Self::Waiting { due, .. } if due == at)
    }
}

impl SubOptions {
    /// What a subscription to a channel of a type is unless asked otherwise.
    pub(super) fn defaults(settings: &ChannelTypeSettings) -> Self {
        Self {
            access: ChannelDataAccess::ReadAccess as i32,
            masks: Box::default(),
            interval_ms: settings.fan_out_interval_ms.max(1),
            delay_ms: settings.fan_out_delay_ms,
            skip_self: true,
            skip_first: false,
        }
    }

    /// Takes over what is asked for, as far as the budgets of whoever asks go;
    /// returns the first that did not suffice. Masks add up, and those that are
    /// too many, too long or too deep are left out: the answer to the request
    /// says which ones hold, and what intervals.
    pub(super) fn merge(
        &mut self,
        asked: &ChannelSubscriptionOptions,
        budgets: &PeerBudgets,
    ) -> Option<Budget> {
        let mut over = None;
        if let Some(access) = asked.data_access {
            self.access = access;
        }
        if !asked.data_field_masks.is_empty() {
            let mut masks = std::mem::take(&mut self.masks).into_vec();
            let mut bytes: usize = masks.iter().map(String::len).sum();
            // Looking at no more than there may be bounds the comparisons too.
            if asked.data_field_masks.len() > budgets.masks {
                over = Some(Budget::Masks);
            }
            for mask in asked.data_field_masks.iter().take(budgets.masks) {
                if masks.contains(mask) {
                    continue;
                }
                if mask_depth(mask) > MAX_MASK_DEPTH {
                    over = Some(Budget::MaskDepth);
                } else if masks.len() >= budgets.masks || bytes + mask.len() > budgets.mask_bytes {
                    over = Some(Budget::Masks);
                } else {
                    bytes += mask.len();
                    masks.push(mask.clone());
                }
            }
            self.masks = masks.into();
        }
        let within_ms = budgets.fan_out_within_ms;
        if let Some(interval_ms) = asked.fan_out_interval_ms {
            self.interval_ms = interval_ms.clamp(1, within_ms);
            if interval_ms > within_ms {
                over = Some(Budget::FanOutTimes);
            }
        }
        if let Some(delay_ms) = asked.fan_out_delay_ms {
            let within_ms = i32::try_from(within_ms).unwrap_or(i32::MAX);
            self.delay_ms = delay_ms.clamp(-within_ms, within_ms);
            if self.delay_ms != delay_ms {
                over = Some(Budget::FanOutTimes);
            }
        }
        if let Some(skip_self) = asked.skip_self_update_fan_out {
            self.skip_self = skip_self;
        }
        if let Some(skip_first) = asked.skip_first_fan_out {
            self.skip_first = skip_first;
        }
        over
    }

    /// Whether they are such as [`merge`](Self::merge) leaves.
    pub(super) fn are_sound(&self) -> bool {
        let is_mask_sound = |mask: &String| mask_depth(mask) <= MAX_MASK_DEPTH;
        self.interval_ms > 0 && self.masks.iter().all(is_mask_sound)
    }

    pub(super) fn has_access(&self) -> bool {
        self.access != ChannelDataAccess::NoAccess as i32
    }

    /// As results bear them: every option stated.
    pub(in crate::core::channels) fn to_wire(&self) -> ChannelSubscriptionOptions {
        ChannelSubscriptionOptions {
            data_access: Some(self.access),
            data_field_masks: self.masks.to_vec(),
            fan_out_interval_ms: Some(self.interval_ms),
            fan_out_delay_ms: Some(self.delay_ms),
            skip_self_update_fan_out: Some(self.skip_self),
            skip_first_fan_out: Some(self.skip_first),
        }
    }
}
