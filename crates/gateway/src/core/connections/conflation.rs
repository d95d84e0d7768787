//! What a slow reader has not been sent yet: the updates of each channel,
//! merged, so that it costs no more to be far behind than a little.

use std::collections::BTreeMap;
use std::sync::Arc;

use lagometer_protocol::MAX_MESSAGE_LEN;
use lagometer_protocol::any::type_name;
use lagometer_protocol::merge::{Delta, MergeContext, MergeLimits, MergeOptions, Taken};
use lagometer_protocol::schema::Schema;

use crate::core::ids::ChannelId;

/// Room for a message's envelope and the URL of its type.
const ENVELOPE_BYTES: usize = 512;

/// All channels that one reader is behind in.
#[derive(Debug, Default)]
pub(super) struct ConflationBuffer {
    /// What was merged of each; nothing where it grew too large, so that the
    /// whole state has to come instead.
    channels: BTreeMap<ChannelId, Option<Merged>>,
    /// Where to go on: no channel is to wait for ever for those before it.
    next: Option<ChannelId>,
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

    pub(super) fn merge(
        &mut self,
        channel: ChannelId,
        type_url: &Arc<str>,
        update: &[u8],
        options: Option<MergeOptions>,
        schema: &Schema,
        limits: MergeLimits,
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
