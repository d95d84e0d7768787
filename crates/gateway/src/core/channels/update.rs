//! Updates of channel data.

use std::borrow::Cow;

use bytes::Bytes;
use lagometer_protocol::ChannelDataUpdate;
use lagometer_protocol::merge::{MergeContext, MergeError, MergeLimits};

use crate::core::budget::Budget;
use crate::core::ids::{ConnId, Peer};

use super::ChannelManager;
use super::channel::Content;
use super::dispatch::Request;
use super::windows::Update;

impl ChannelManager {
    pub(super) fn data_update(&mut self, request: &Request, packet: &Bytes, body: &[u8]) {
        let Some(sender) = self.writer(request) else {
            self.drop_message(request, "it may not update the channel's data");
            return;
        };
        if !self.pays(request, self.cost_of(request.channel, body.len())) {
            return;
        }
        let update = ChannelDataUpdate::parse(body).ok();
        let Some((data, on_behalf_of)) = update.and_then(|update| {
            let data = update.data.filter(|data| !data.type_url.is_empty())?;
            Some((data, update.context_conn_id))
        }) else {
            self.drop_message(request, "it is no update");
            return;
        };
        let now_unix_ms = self.unix_ms(request.now);
        let Some(channel) = self.channels.get_mut(&request.channel) else {
            return;
        };
        let Some(channel_data) = &mut channel.data else {
            self.drop_message(request, "the channel has no data: nobody has created it");
            return;
        };
        let is_first = channel_data.content.is_none();
        if is_first {
            let limits = MergeLimits {
                max_encoded_bytes: channel.max_data_bytes,
            };
            channel_data.content = Content::load(&data, &self.settings.schema, limits);
        }
        let context_of_merge = MergeContext {
            options: channel_data.options,
            now_unix_ms,
        };
        let Some(stored) = &channel_data.content else {
            self.drop_message(request, "its data is malformed or too large");
            return;
        };
        if !stored.is_of_type(data.type_url) {
            self.drop_message(request, "its data is of another type than the channel's");
            return;
        }
        let mut removed = Vec::new();
        let before = self.before_update(request, data.value);
        let Some(channel) = self.channels.get_mut(&request.channel) else {
            return;
        };
        let Some(content) = channel.content_mut() else {
            return;
        };
        if !is_first {
            match content.state.merge(data.value, &context_of_merge) {
                Ok(removals) => removed = removals,
                // Data of an unknown type only ever grows by merging.
                Err(MergeError::TooLarge { .. })
                    if content.state.data_type().is_none()
                        && content.state.load(data.value).is_ok() => {}
                Err(why) => {
                    if let MergeError::TooLarge { .. } = why {
                        self.over_budget(request, Budget::Data);
                    }
                    self.drop_message(request, "its data is malformed or too large");
                    return;
                }
            }
        }
        content.changed();
        let passed_on = match content.state.data_type() {
            Some(data_type) => data_type.without_skipped(data.value),
            None => Ok(Cow::Borrowed(data.value)),
        };
        let value = match passed_on {
            Ok(Cow::Borrowed(value)) => packet.slice_ref(value),
            Ok(Cow::Owned(value)) => Bytes::from(value),
            Err(_) => return,
        };
        self.counters.of_mut(channel.kind).updates += 1;
        channel.fan_out.push(Update {
            sender,
            at: request.now,
            value,
        });
        let is_full = channel.fan_out.is_full();
        if is_first {
            self.data_has_come(request.now, request.channel);
        }
        self.arm(request.now, request.channel);
        if is_full {
            self.send_all_groups(request.now, request.channel);
        }
        self.after_update(request, on_behalf_of, before, &removed);
    }

    /// Who an update counts as coming from, if it is allowed.
    fn writer(&self, request: &Request) -> Option<ConnId> {
        let channel = self.channels.get(&request.channel)?;
        let may_write = channel
            .subscriptions
            .get(&request.from)
            .is_some_and(super::subscription::Subscription::may_write);
        if channel.owner == Some(request.from) || may_write {
            return Some(request.from);
        }
        let is_server = self.connections.get(request.from)?.peer == Peer::Server;
        channel.owner.filter(|_| is_server)
    }
}
