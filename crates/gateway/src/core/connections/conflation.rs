//! What a slow reader has not been sent yet: the updates of each channel,
//! merged, so that it costs no more to be far behind than a little.
//!
//! All channels together are limited, too, for a reader may be subscribed to
//! thousands: those with most are dropped, and the whole state comes instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use lagometer_protocol::MAX_MESSAGE_LEN;
use lagometer_protocol::any::type_name;
use lagometer_protocol::merge::{Delta, MergeContext, MergeLimits, MergeOptions, Taken};
use lagometer_protocol::schema::Schema;

use crate::core::ids::ChannelId;

/// Room for a message's envelope and the URL of its type.
const ENVELOPE_BYTES: usize = 512;

/// What was merged is counted anew once updates have brought so large a part of
/// what it may come to, one in so many.
const COUNT_AFTER: usize = 8;

/// All channels that one reader is behind in.
#[derive(Debug, Default)]
pub(super) struct ConflationBuffer {
    /// What was merged of each; nothing where it grew too large, so that the
    /// whole state has to come instead.
    channels: BTreeMap<ChannelId, Option<Merged>>,
    /// Where to go on: no channel is to wait for ever for those before it.
    next: Option<ChannelId>,
    /// Encoded bytes of all of it when it was counted last.
    counted: usize,
    /// Bytes that updates have brought since.
    brought: usize,
}

/// One channel's updates.
#[derive(Debug)]
pub(super) struct Merged {
    type_url: Arc<str>,
    /// Deltas that took all they could, encoded, in order.
    closed: Vec<Vec<u8>>,
    delta: Delta,
}

/// An update that could not be merged: the reader needs the whole state.
#[derive(Debug, PartialEq, Eq)]
struct Overflow;

impl ConflationBuffer {
    pub(super) fn has(&self, channel: ChannelId) -> bool {
        self.channels.contains_key(&channel)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    pub(super) fn forget(&mut self, channel: ChannelId) {
        self.channels.remove(&channel);
    }

    /// Merges an update; all channels together keep to about `most_bytes`.
    #[expect(
        clippy::too_many_arguments,
        reason = "an update and what is said of it"
    )]
    pub(super) fn merge(
        &mut self,
        channel: ChannelId,
        type_url: &Arc<str>,
        update: &[u8],
        options: Option<MergeOptions>,
        schema: &Schema,
        limits: MergeLimits,
        most_bytes: usize,
    ) {
        let place = self.channels.entry(channel).or_insert_with(|| {
            Some(Merged {
                type_url: Arc::clone(type_url),
                closed: Vec::new(),
                delta: Delta::new(schema.find(type_name(type_url)), limits),
            })
        });
        if let Some(merged) = place
            && merged.add(update, options, limits).is_err()
        {
            *place = None;
        }
        self.brought += update.len();
        let room = most_bytes.saturating_sub(self.counted);
        if self.brought > room.max(most_bytes / COUNT_AFTER) {
            self.count(most_bytes);
        }
    }

    /// Counts all channels, and drops those with most while they are too much.
    fn count(&mut self, most_bytes: usize) {
        let channels = self.channels.iter();
        let sizes = channels.filter_map(|(&id, merged)| Some((merged.as_ref()?.encoded_len(), id)));
        let mut sizes: Vec<(usize, ChannelId)> = sizes.collect();
        sizes.sort_unstable();
        self.counted = sizes.iter().map(|(bytes, _)| bytes).sum();
        self.brought = 0;
        while self.counted > most_bytes
            && let Some((bytes, id)) = sizes.pop()
        {
            self.channels.insert(id, None);
            self.counted -= bytes;
        }
    }

    /// Takes the next channel's updates, in turn; without any where the whole
    /// state has to come.
    pub(super) fn pop(&mut self) -> Option<(ChannelId, Option<Merged>)> {
        let from = self.next.unwrap_or(ChannelId::GLOBAL);
        let channel = match self.channels.range(from..).next() {
            Some((&channel, _)) => channel,
            None => *self.channels.first_key_value()?.0,
        };
        self.next = Some(ChannelId(channel.0.wrapping_add(1)));
        let merged = self.channels.remove(&channel)?;
        Some((channel, merged))
    }
}

impl Merged {
    fn add(
        &mut self,
        update: &[u8],
        options: Option<MergeOptions>,
        limits: MergeLimits,
    ) -> Result<(), Overflow> {
        let context = MergeContext {
            options,
            now_unix_ms: 0,
        };
        if let Taken::MustFollow = self.delta.merge(update, &context).map_err(|_| Overflow)? {
            self.close();
            self.delta.merge(update, &context).map_err(|_| Overflow)?;
        }
        // What is closed stays; what is open may have merged to much less.
        let closed: usize = self.closed.iter().map(Vec::len).sum();
        if closed > limits.max_encoded_bytes {
            return Err(Overflow);
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        let closed: usize = self.closed.iter().map(Vec::len).sum();
        closed + self.delta.encoded_len()
    }

    /// The URL of the data's type, and the updates to send in order, each the
    /// data of one message. `None` where one is too long for that.
    pub(super) fn into_values(mut self) -> Option<(Arc<str>, Vec<Vec<u8>>)> {
        self.close();
        let fits = |value: &Vec<u8>| value.len() <= MAX_MESSAGE_LEN - ENVELOPE_BYTES;
        let all_fit = self.closed.iter().all(fits);
        all_fit.then_some((self.type_url, self.closed))
    }

    fn close(&mut self) {
        if !self.delta.is_empty() {
            self.closed.push(self.delta.to_bytes());
            self.delta.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
    use prost::Message;

    use super::*;

    const MOST: usize = 100_000;

    fn buffer_of(updates: impl IntoIterator<Item = (u32, usize)>) -> ConflationBuffer {
        let url: Arc<str> = "type.googleapis.com/chatpb.ChatChannelData".into();
        let limits = MergeLimits::default();
        let mut buffer = ConflationBuffer::default();
        for (channel, bytes) in updates {
            let data = ChatChannelData {
                chat_messages: vec![ChatMessage {
                    content: "x".repeat(bytes),
                    ..ChatMessage::default()
                }],
            };
            let (channel, data) = (ChannelId(channel), data.encode_to_vec());
            let schema = Schema::bundled();
            buffer.merge(channel, &url, &data, None, &schema, limits, MOST);
        }
        buffer
    }

    fn kept(buffer: &ConflationBuffer) -> usize {
        let merged = buffer.channels.values().flatten();
        merged.map(Merged::encoded_len).sum()
    }

    #[test]
    fn channels_by_the_thousand_are_kept_up_to_a_limit_and_those_with_most_give_way() {
        let buffer = buffer_of((0..2000).map(|channel| (channel, 1000 + channel as usize)));
        assert!(kept(&buffer) <= MOST + MOST / COUNT_AFTER + 3000);
        assert!(kept(&buffer) > MOST / 2);
        assert_eq!(buffer.channels.len(), 2000, "the rest gets the whole state");
        assert!(buffer.channels[&ChannelId(0)].is_some(), "it has least");
    }

    #[test]
    fn one_channel_with_much_is_dropped_alone() {
        let others = (0..10).map(|channel| (channel, 50));
        let much = (0..200).map(|_| (99, 1000));
        let buffer = buffer_of(others.chain(much));
        let dropped = buffer
            .channels
            .iter()
            .filter(|(_, merged)| merged.is_none());
        let dropped: Vec<u32> = dropped.map(|(id, _)| id.0).collect();
        assert_eq!(dropped, [99]);
    }
}
