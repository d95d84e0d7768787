//! What is sent of a handover: which entities go, what they are, and the data of those that are
//! new to the recipient.

use std::collections::BTreeMap;

use bytes::Bytes;
use lagometer_protocol::messages::channeldpb::ChannelDataHandoverMessage;
use lagometer_protocol::messages::unrealpb::{SpatialChannelData, SpatialEntityState};
use lagometer_protocol::{FromGateway, MAX_MESSAGE_LEN};
use prost::Message;
use prost_types::Any;

use crate::core::ids::ChannelId;

use super::entity::Object;
use super::handover::CellChange;
use super::outgoing::{Envelope, encode};

const SPATIAL_DATA_URL: &str = "type.googleapis.com/unrealpb.SpatialChannelData";

/// What a handover's message has beside its entities, and an entity beside its
/// state: their keys, lengths and numbers, and the URL above.
const ENVELOPE_BYTES: usize = 128;
const ENTRY_BYTES: usize = 16;

/// The longest data of an entity that goes into a handover: with it go the
/// reference to its object and the URL of its type.
pub(super) const MAX_DATA_BYTES: usize = MAX_MESSAGE_LEN - 4096;

/// A handover that is to be announced.
#[derive(Debug)]
pub(super) struct Handover<'a> {
    pub(super) change: CellChange,
    pub(super) objects: &'a BTreeMap<ChannelId, Object>,
}

impl Handover<'_> {
    /// The messages, with the data of some of the entities: one if it can hold
    /// them all.
    pub(super) fn messages(&self, data: &BTreeMap<ChannelId, Any>) -> Vec<Bytes> {
        let mut messages = Vec::new();
        let mut together = SpatialChannelData::default();
        let mut bytes = 0;
        for (id, Object(object)) in self.objects {
            let state = SpatialEntityState {
                obj_ref: Some(object.clone()),
                removed: false,
                entity_data: data.get(id).cloned(),
            };
            let more = state.encoded_len() + ENTRY_BYTES;
            if bytes + more > MAX_MESSAGE_LEN - ENVELOPE_BYTES && bytes > 0 {
                messages.push(self.message(&std::mem::take(&mut together)));
                bytes = 0;
            }
            bytes += more;
            together.entities.insert(id.0, state);
        }
        messages.push(self.message(&together));
        messages
    }

    fn message(&self, together: &SpatialChannelData) -> Bytes {
        let message = FromGateway::ChannelDataHandover(ChannelDataHandoverMessage {
            src_channel_id: self.change.from.0,
            dst_channel_id: self.change.to.0,
            context_conn_id: self.change.context,
            data: Some(Any {
                type_url: SPATIAL_DATA_URL.to_owned(),
                value: together.encode_to_vec(),
            }),
        });
        encode(Envelope::from(self.change.to), &message).into()
    }
}
