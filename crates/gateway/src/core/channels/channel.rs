//! A channel: its owner, its data, who is subscribed, and its limits.

mod saved;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lagometer_protocol::any::{type_name, type_url};
use lagometer_protocol::merge::{MergeLimits, MergeOptions, State};
use lagometer_protocol::messages::channeldpb::ChannelType;
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{AnyView, MAX_MESSAGE_LEN, Mask, encode_update_head_in_packet};
use serde::{Deserialize, Serialize};

use crate::core::ids::{ChannelId, ConnId};

use super::cut::cut;
use super::entity::Entity;
use super::subscriptions::Subscribers;

pub(super) use saved::SavedData;

pub(super) const GLOBAL_TYPE: i32 = ChannelType::Global as i32;

/// Room that a message with data needs beside the data and the URL of its type.
const HEAD_BYTES: usize = 32;

/// The longest URL of a type that is taken: every message with the data bears
/// it, and is to have room for the data.
const MAX_URL_BYTES: usize = 400;

/// A channel.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Channel {
    pub(super) id: ChannelId,
    /// The number of its type.
    pub(super) kind: i32,
    pub(super) owner: Option<ConnId>,
    pub(super) metadata: String,
    /// Whose budget it counts in.
    pub(super) maker: Option<ConnId>,
    /// Its age among those that outlived their makers, if it did.
    pub(super) orphan: Option<u64>,
    /// How many bytes its data may encode to.
    pub(super) max_data_bytes: usize,
    pub(super) subscribers: Subscribers,
    /// Absent until the channel is created by a message. Saved apart, for reading it
    /// back takes the schema.
    #[serde(skip)]
    pub(super) data: Option<Data>,
    /// Its owner broke off and may come back.
    pub(super) owner_may_return: bool,
    /// Its owner came back; its subscribers are to be notified.
    pub(super) owner_returned: bool,
    /// The objects that a recovering server is sent, by net id, encoded.
    pub(super) objects: BTreeMap<u32, Bytes>,
    /// What entities have beside.
    pub(super) entity: Option<Entity>,
}

/// A channel's data.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) options: Option<MergeOptions>,
    /// Absent until there is a first message of it.
    pub(super) content: Option<Content>,
}

/// Data that there is.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) type_url: Arc<str>,
    pub(super) state: State,
    /// A client that has the channel from nobody began it, and neither its owner nor a
    /// server has written since: these may begin it anew with data of another type.
    pub(super) is_provisional: bool,
    /// The whole state, while it does not change.
    encoded: Option<WholeState>,
}

/// All of a channel's data, as it is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct WholeState {
    /// The messages, each encoded as one of a packet's.
    pub(super) messages: Vec<Bytes>,
    /// The sizes of fields that no message can hold: they are not sent.
    pub(super) too_long: Vec<usize>,
}

impl Channel {
    pub(super) fn new(id: ChannelId, kind: i32, owner: Option<ConnId>) -> Self {
        Self {
            id,
            kind,
            owner,
            metadata: String::new(),
            maker: None,
            orphan: None,
            max_data_bytes: usize::MAX,
            subscribers: Subscribers::default(),
            data: None,
            owner_may_return: false,
            owner_returned: false,
            objects: BTreeMap::new(),
            entity: None,
        }
    }

    pub(super) fn content(&self) -> Option<&Content> {
        self.data.as_ref()?.content.as_ref()
    }

    pub(super) fn content_mut(&mut self) -> Option<&mut Content> {
        self.data.as_mut()?.content.as_mut()
    }

    pub(super) fn is(&self, kind: ChannelType) -> bool {
        self.kind == kind as i32
    }
}

impl Content {
    /// Empty data of a type that is known.
    pub(super) fn empty(full_name: &str, schema: &Schema, limits: MergeLimits) -> Option<Self> {
        let data_type = schema.find(full_name)?;
        Some(Self {
            type_url: type_url(full_name).into(),
            state: State::new(Some(data_type), limits),
            is_provisional: false,
            encoded: None,
        })
    }

    /// Data as a message brings it. `None` when it is malformed or too large,
    /// or the URL of its type too long.
    pub(super) fn load(data: &AnyView<'_>, schema: &Schema, limits: MergeLimits) -> Option<Self> {
        if data.type_url.len() > MAX_URL_BYTES {
            return None;
        }
        let mut state = State::new(schema.find(type_name(data.type_url)), limits);
        state.load(data.value).ok()?;
        Some(Self {
            type_url: data.type_url.into(),
            state,
            is_provisional: false,
            encoded: None,
        })
    }

    /// Whether data of a type belongs here.
    pub(super) fn is_of_type(&self, url: &str) -> bool {
        *self.type_url == *url || type_name(&self.type_url) == type_name(url)
    }

    /// The state has changed.
    pub(super) fn changed(&mut self) {
        self.encoded = None;
    }

    /// Whether the whole state is at hand as it is sent.
    pub(super) fn is_encoded(&self) -> bool {
        self.encoded.is_some()
    }

    /// The longest value that goes into one message.
    pub(super) fn max_value_bytes(&self) -> usize {
        MAX_MESSAGE_LEN - HEAD_BYTES - self.type_url.len()
    }

    /// The whole state, or what a mask keeps of it, as messages.
    pub(super) fn whole_state(&mut self, channel: ChannelId, mask: Option<&Mask>) -> WholeState {
        let max_value_bytes = self.max_value_bytes();
        if mask.is_none()
            && let Some(encoded) = &self.encoded
        {
            return encoded.clone();
        }
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut too_long = Vec::new();
        for part in self.state.to_parts(max_value_bytes) {
            if part.len() > max_value_bytes {
                let cut = cut(&part, max_value_bytes);
                parts.extend(cut.parts.into_iter().map(|range| part[range].to_vec()));
                too_long.extend(cut.too_long);
            } else {
                parts.push(part);
            }
        }
        if let Some(mask) = mask {
            for part in &mut parts {
                let mut kept = Vec::new();
                if mask.apply(part, &mut kept).is_ok() {
                    *part = kept;
                }
            }
        }
        let messages: Vec<Bytes> = parts
            .iter()
            .map(|part| {
                let mut message = Vec::with_capacity(part.len() + self.type_url.len() + HEAD_BYTES);
                encode_update_head_in_packet(channel.0, &self.type_url, part.len(), &mut message);
                message.extend_from_slice(part);
                Bytes::from(message)
            })
            .collect();
        let whole = WholeState { messages, too_long };
        if mask.is_none() {
            self.encoded = Some(whole.clone());
        }
        whole
    }
}
