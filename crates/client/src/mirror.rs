//! The channels' data as a subscriber knows it.

use std::collections::BTreeMap;

use lagometer_protocol::any;
use lagometer_protocol::merge::{MergeContext, MergeError, MergeLimits, MergeOptions, State};
use lagometer_protocol::schema::Schema;
use prost::Message;
use thiserror::Error;

use crate::event::Event;

/// Merges the channel data that arrives, by the same rules as the gateway, so
/// that the state of a channel can be looked at instead of its updates.
///
/// Feed it every [`Event`]; what it has no use for it passes over.
#[derive(Debug)]
pub struct Mirror {
    schema: Schema,
    limits: MergeLimits,
    channels: BTreeMap<u32, MirroredChannel>,
    options: BTreeMap<u32, MergeOptions>,
}

#[derive(Debug)]
struct MirroredChannel {
    type_url: String,
    state: State,
    updates: u64,
}

/// Why data of a channel could not be merged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MirrorError {
    /// The channel's data is of another type.
    #[error("channel {channel_id} holds {held}, not {arrived}")]
    OtherType {
        /// The channel.
        channel_id: u32,
        /// The type of the data so far.
        held: String,
        /// The type that arrived.
        arrived: String,
    },
    /// The data could not be merged.
    #[error("channel {channel_id}: {source}")]
    Merge {
        /// The channel.
        channel_id: u32,
        /// Why the update cannot be merged.
        source: MergeError,
    },
}

impl Mirror {
    /// A mirror that knows no channel yet, merging as `schema`'s types say.
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        Self {
            schema,
            limits: MergeLimits::default(),
            channels: BTreeMap::new(),
            options: BTreeMap::new(),
        }
    }

    /// Takes in an event. Data is merged; a channel that is removed, or from
    /// which `own_conn_id` was unsubscribed, is forgotten.
    ///
    /// # Errors
    ///
    /// [`MirrorError`]; the channel is then as it was.
    pub fn take(&mut self, own_conn_id: Option<u32>, event: &Event<'_>) -> Result<(), MirrorError> {
        use lagometer_protocol::FromGateway::{RemoveChannel, UnsubFromChannel};
        match event {
            Event::Data {
                channel_id,
                type_url,
                value,
            } => self.merge(*channel_id, type_url, value),
            Event::Message {
                message: RemoveChannel(removed),
                ..
            } => {
                self.forget(removed.channel_id);
                Ok(())
            }
            Event::Message {
                channel_id,
                message: UnsubFromChannel(ended),
                ..
            } => {
                if Some(ended.conn_id) == own_conn_id {
                    self.forget(*channel_id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Merges data of a channel: what arrived, or what this peer has sent and
    /// will not be notified of.
    ///
    /// # Errors
    ///
    /// [`MirrorError`]; the channel is then as it was.
    pub fn merge(
        &mut self,
        channel_id: u32,
        type_url: &str,
        value: &[u8],
    ) -> Result<(), MirrorError> {
        let Self {
            schema,
            limits,
            channels,
            options,
        } = self;
        let channel = channels
            .entry(channel_id)
            .or_insert_with(|| MirroredChannel {
                type_url: type_url.to_owned(),
                state: State::new(schema.find(any::type_name(type_url)), *limits),
                updates: 0,
            });
        if channel.type_url != type_url {
            return Err(MirrorError::OtherType {
                channel_id,
                held: any::type_name(&channel.type_url).to_owned(),
                arrived: any::type_name(type_url).to_owned(),
            });
        }
        let context = MergeContext {
            options: options.get(&channel_id).copied(),
            ..MergeContext::default()
        };
        channel
            .state
            .merge(value, &context)
            .map_err(|source| MirrorError::Merge { channel_id, source })?;
        channel.updates += 1;
        Ok(())
    }

    /// Says with which merge options a channel was made; nobody is notified over
    /// the wire.
    pub fn set_merge_options(&mut self, channel_id: u32, options: MergeOptions) {
        self.options.insert(channel_id, options);
    }

    /// The data of a channel, as a message of its type. `None` when nothing
    /// has arrived, or it is no `T`.
    #[must_use]
    pub fn data<T: Message + Default>(&self, channel_id: u32) -> Option<T> {
        T::decode(&*self.encoded(channel_id)?).ok()
    }

    /// The data of a channel, encoded.
    #[must_use]
    pub fn encoded(&self, channel_id: u32) -> Option<Vec<u8>> {
        Some(self.channels.get(&channel_id)?.state.to_bytes())
    }

    /// How often data of a channel was merged.
    #[must_use]
    pub fn updates(&self, channel_id: u32) -> u64 {
        self.channels
            .get(&channel_id)
            .map_or(0, |channel| channel.updates)
    }

    /// Forgets a channel's data.
    pub fn forget(&mut self, channel_id: u32) {
        self.channels.remove(&channel_id);
    }
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::FromGateway;
    use lagometer_protocol::messages::channeldpb::UnsubscribedFromChannelResultMessage;
    use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};

    use super::*;
    use crate::outbox::Stub;

    const TYPE: &str = "type.googleapis.com/tpspb.TestRepChannelData";

    fn npc(id: u32, moving: bool) -> Vec<u8> {
        let state = TestNpcState {
            b_moving: Some(moving),
            goal_location: None,
        };
        TestRepChannelData {
            test_npc_states: [(id, state)].into(),
            ..TestRepChannelData::default()
        }
        .encode_to_vec()
    }

    fn data(value: &[u8]) -> Event<'_> {
        Event::Data {
            channel_id: 3,
            type_url: TYPE,
            value,
        }
    }

    #[test]
    fn updates_become_a_state() {
        let mut mirror = Mirror::new(Schema::bundled());
        for update in [npc(1, true), npc(2, true), npc(1, false)] {
            mirror.take(Some(9), &data(&update)).unwrap();
        }
        let state: TestRepChannelData = mirror.data(3).unwrap();
        assert_eq!(state.test_npc_states[&1].b_moving, Some(false));
        assert_eq!(state.test_npc_states[&2].b_moving, Some(true));
        assert_eq!(mirror.updates(3), 3);
        assert_eq!(mirror.data::<TestRepChannelData>(4), None);
    }

    #[test]
    fn a_type_never_changes_under_way() {
        let mut mirror = Mirror::new(Schema::bundled());
        mirror.take(None, &data(&npc(1, true))).unwrap();
        let before = mirror.encoded(3);
        let other = mirror.merge(3, "type.googleapis.com/chatpb.ChatChannelData", b"");
        assert!(matches!(other, Err(MirrorError::OtherType { .. })));
        assert!(matches!(
            mirror.take(None, &data(b"\xff")),
            Err(MirrorError::Merge { .. })
        ));
        assert_eq!(mirror.encoded(3), before);
    }

    #[test]
    fn only_ones_own_leaving_forgets_a_channel() {
        let mut mirror = Mirror::new(Schema::bundled());
        mirror.take(Some(9), &data(&npc(1, true))).unwrap();
        for (conn_id, remains) in [(8, true), (9, false)] {
            let event = Event::Message {
                channel_id: 3,
                stub: Stub(0),
                message: FromGateway::UnsubFromChannel(UnsubscribedFromChannelResultMessage {
                    conn_id,
                    ..Default::default()
                }),
            };
            mirror.take(Some(9), &event).unwrap();
            assert_eq!(mirror.encoded(3).is_some(), remains);
        }
    }
}
