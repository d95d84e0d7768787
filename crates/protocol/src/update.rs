//! Channel data updates, read and written in place.

use crate::any::{self, AnyView};
use crate::messages::channeldpb::{self, MessageType};
use crate::packet::MessagePack;
use crate::wire::{
    Reader, Value, WireError, WireType, encoded_len_varint, put_bytes_field, put_key,
    put_uint32_field, put_varint,
};

const DATA: u32 = 1;
const CONTEXT_CONN_ID: u32 = 2;

/// The body of a channel data update, borrowing the data. The owned form is
/// [`channeldpb::ChannelDataUpdateMessage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelDataUpdate<'a> {
    /// What changed, as a message of the channel's type.
    pub data: Option<AnyView<'a>>,
    /// The client on whose behalf a server updates, or 0.
    pub context_conn_id: u32,
}

impl<'a> ChannelDataUpdate<'a> {
    /// Reads the body of an update.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes are none. The data itself is not looked
    /// into.
    pub fn parse(body: &'a [u8]) -> Result<Self, WireError> {
        let mut update = Self::default();
        let mut reader = Reader::new(body);
        while let Some(field) = reader.next_field()? {
            match (field.number, field.value) {
                (DATA, Value::Bytes(data)) => update.data.get_or_insert_default().merge(data)?,
                (CONTEXT_CONN_ID, Value::Varint(id)) => update.context_conn_id = id as u32,
                _ => {}
            }
        }
        Ok(update)
    }

    /// Appends the encoded body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(data) = &self.data {
            put_key(out, DATA, WireType::Bytes);
            put_varint(out, data.encoded_len() as u64);
            data.encode(out);
        }
        put_uint32_field(out, CONTEXT_CONN_ID, self.context_conn_id);
    }
}

/// Appends all that comes before the data when an update goes out as one of a
/// packet's messages: the envelope from `channel_id`, the body's key, the URL
/// of the data's type. `value_len` bytes of data are to follow.
///
/// The data lies last, so that one encoded value can be sent under many heads:
/// whole to one subscriber and with a stretch left out to another.
pub fn encode_update_head_in_packet(
    channel_id: u32,
    type_url: &str,
    value_len: usize,
    out: &mut Vec<u8>,
) {
    let any_len = any::head_len(type_url, value_len) + value_len;
    let body_len = 1 + encoded_len_varint(any_len as u64) + any_len;
    MessagePack {
        channel_id,
        msg_type: MessageType::ChannelDataUpdate as u32,
        ..MessagePack::default()
    }
    .encode_head_in_packet(body_len, out);
    put_key(out, DATA, WireType::Bytes);
    put_varint(out, any_len as u64);
    any::encode_head(type_url, value_len, out);
}

impl<'a> From<&'a channeldpb::ChannelDataUpdateMessage> for ChannelDataUpdate<'a> {
    fn from(owned: &'a channeldpb::ChannelDataUpdateMessage) -> Self {
        Self {
            data: owned.data.as_ref().map(|data| AnyView {
                type_url: &data.type_url,
                value: &data.value,
            }),
            context_conn_id: owned.context_conn_id,
        }
    }
}

impl From<ChannelDataUpdate<'_>> for channeldpb::ChannelDataUpdateMessage {
    fn from(view: ChannelDataUpdate<'_>) -> Self {
        Self {
            data: view.data.map(|data| prost_types::Any {
                type_url: data.type_url.to_owned(),
                value: data.value.to_vec(),
            }),
            context_conn_id: view.context_conn_id,
        }
    }
}

/// The whole body with the data given as URL and bytes: what a game sends.
#[must_use]
pub fn update_body(type_url: &str, value: &[u8]) -> Vec<u8> {
    let mut any = Vec::new();
    AnyView { type_url, value }.encode(&mut any);
    let mut out = Vec::new();
    put_bytes_field(&mut out, DATA, &any);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::samples::{mutated, read_by_library, varied_u32};

    fn owned_update() -> impl Strategy<Value = channeldpb::ChannelDataUpdateMessage> {
        let value = proptest::collection::vec(any::<u8>(), 0..200);
        let data = ("[a-z./é]{0,40}", value)
            .prop_map(|(type_url, value)| prost_types::Any { type_url, value });
        (proptest::option::of(data), varied_u32()).prop_map(|(data, context_conn_id)| {
            channeldpb::ChannelDataUpdateMessage {
                data,
                context_conn_id,
            }
        })
    }

    proptest! {
        #[test]
        fn written_as_the_library_writes(owned in owned_update()) {
            let mut ours = Vec::new();
            ChannelDataUpdate::from(&owned).encode(&mut ours);
            prop_assert_eq!(ours, owned.encode_to_vec());
        }

        #[test]
        fn read_as_the_library_reads(bytes in mutated(owned_update().prop_map(|owned| owned.encode_to_vec()))) {
            let theirs = read_by_library::<channeldpb::ChannelDataUpdateMessage>(
                "channeldpb.ChannelDataUpdateMessage",
                &bytes,
            );
            let ours = ChannelDataUpdate::parse(&bytes).ok().map(Into::into);
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn a_head_and_its_value_are_the_message(
            channel_id in varied_u32(),
            type_url in "[a-z./]{0,60}",
            value in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut ours = Vec::new();
            encode_update_head_in_packet(channel_id, &type_url, value.len(), &mut ours);
            ours.extend_from_slice(&value);
            let body = channeldpb::ChannelDataUpdateMessage {
                data: Some(prost_types::Any { type_url, value }),
                context_conn_id: 0,
            };
            let packet = channeldpb::Packet {
                messages: vec![channeldpb::MessagePack {
                    channel_id,
                    msg_type: 8,
                    msg_body: body.encode_to_vec().into(),
                    ..Default::default()
                }],
            };
            prop_assert_eq!(ours, packet.encode_to_vec());
        }
    }
}
