//! Subscription options in a few words.

use lagometer_protocol::messages::channeldpb::{ChannelDataAccess, ChannelSubscriptionOptions};

pub(crate) const READ: ChannelDataAccess = ChannelDataAccess::ReadAccess;
pub(crate) const WRITE: ChannelDataAccess = ChannelDataAccess::WriteAccess;

/// Access and interval in milliseconds, the rest as the channel has it.
pub(crate) fn options(access: ChannelDataAccess, interval_ms: u32) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        data_access: Some(access.into()),
        fan_out_interval_ms: Some(interval_ms),
        ..Default::default()
    }
}
