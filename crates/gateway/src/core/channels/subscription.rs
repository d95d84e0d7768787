//! One connection's subscription to one channel.

use lagometer_protocol::messages::channeldpb::{ChannelDataAccess, ChannelSubscriptionOptions};
use lagometer_units::Time;

use crate::core::bus::Member;
use crate::core::ids::{ConnId, GroupId};
use crate::core::settings::ChannelTypeSettings;

/// The most bytes of field masks one subscription may have: every further
/// subscription to the same channel adds to them.
const MASK_BYTES: usize = 16 << 10;

/// A subscription.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) options: SubOptions,
    pub(super) since: Time,
    pub(super) place: Place,
}

/// How far a subscription has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has no access: it gets nothing.
    Outside,
    /// It gets the `whole` state then, or else just joins a group.
    Waiting { due: Time, whole: bool },
    /// It is due for the whole state, but there is none.
    AwaitingData,
    /// It joins a group at the group's next beat.
    Joining { group: GroupId },
    /// It gets the group's windows.
    Member { group: GroupId },
}

/// Options with nothing left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SubOptions {
    pub(super) access: i32,
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

    pub(super) fn may_write(&self) -> bool {
        self.options.access == ChannelDataAccess::WriteAccess as i32
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

    /// Takes over what is asked for. Masks add up.
    pub(super) fn merge(&mut self, asked: &ChannelSubscriptionOptions) {
        if let Some(access) = asked.data_access {
            self.access = access;
        }
        if !asked.data_field_masks.is_empty() {
            let mut masks = std::mem::take(&mut self.masks).into_vec();
            let mut bytes: usize = masks.iter().map(String::len).sum();
            for mask in &asked.data_field_masks {
                bytes += mask.len();
                if bytes <= MASK_BYTES && !masks.contains(mask) {
                    masks.push(mask.clone());
                }
            }
            self.masks = masks.into();
        }
        if let Some(interval_ms) = asked.fan_out_interval_ms {
            self.interval_ms = interval_ms.max(1);
        }
        if let Some(delay_ms) = asked.fan_out_delay_ms {
            self.delay_ms = delay_ms;
        }
        if let Some(skip_self) = asked.skip_self_update_fan_out {
            self.skip_self = skip_self;
        }
        if let Some(skip_first) = asked.skip_first_fan_out {
            self.skip_first = skip_first;
        }
    }

    pub(super) fn has_access(&self) -> bool {
        self.access != ChannelDataAccess::NoAccess as i32
    }

    /// As results bear them: every option stated.
    pub(super) fn to_wire(&self) -> ChannelSubscriptionOptions {
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
