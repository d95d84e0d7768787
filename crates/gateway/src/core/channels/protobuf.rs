//! Messages of the protocol written into what nodes write for each other, as they are encoded
//! on the wire: for `#[serde(with = "…")]`.

use bytes::Bytes;
use prost::Message;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<M: Message, S: Serializer>(message: &M, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(&message.encode_to_vec())
}

pub(super) fn deserialize<'de, M: Message + Default, D: Deserializer<'de>>(
    from: D,
) -> Result<M, D::Error> {
    let bytes = Bytes::deserialize(from)?;
    M::decode(bytes).map_err(D::Error::custom)
}
