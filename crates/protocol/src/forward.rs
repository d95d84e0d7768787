//! Forwarded user-space messages, read and written in place.

use crate::messages::channeldpb;
use crate::wire::{Reader, Value, WireError, put_bytes_field, put_uint32_field};

const CLIENT_CONN_ID: u32 = 1;
const PAYLOAD: u32 = 2;

/// What wraps a user-space message between the gateway and its peers,
/// borrowing the payload. The owned form is
/// [`channeldpb::ServerForwardMessage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerForward<'a> {
    /// Towards a server the sender; from a server the addressee, or 0 for
    /// the channel's owner.
    pub client_conn_id: u32,
    /// The game's bytes.
    pub payload: &'a [u8],
}

impl<'a> ServerForward<'a> {
    /// Reads the body of a forwarded message.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes are none.
    pub fn parse(body: &'a [u8]) -> Result<Self, WireError> {
        let mut forward = Self::default();
        let mut reader = Reader::new(body);
        while let Some(field) = reader.next_field()? {
            match (field.number, field.value) {
                (CLIENT_CONN_ID, Value::Varint(id)) => forward.client_conn_id = id as u32,
                (PAYLOAD, Value::Bytes(payload)) => forward.payload = payload,
                _ => {}
            }
        }
        Ok(forward)
    }

    /// Appends the encoded body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uint32_field(out, CLIENT_CONN_ID, self.client_conn_id);
        if !self.payload.is_empty() {
            put_bytes_field(out, PAYLOAD, self.payload);
        }
    }
}

impl<'a> From<&'a channeldpb::ServerForwardMessage> for ServerForward<'a> {
    fn from(owned: &'a channeldpb::ServerForwardMessage) -> Self {
        Self {
            client_conn_id: owned.client_conn_id,
            payload: &owned.payload,
        }
    }
}

impl From<ServerForward<'_>> for channeldpb::ServerForwardMessage {
    fn from(view: ServerForward<'_>) -> Self {
        Self {
            client_conn_id: view.client_conn_id,
            payload: view.payload.to_vec().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::samples::{mutated, read_by_library, varied_u32};

    fn owned_forward() -> impl Strategy<Value = channeldpb::ServerForwardMessage> {
        let payload = proptest::collection::vec(any::<u8>(), 0..200);
        (varied_u32(), payload).prop_map(|(client_conn_id, payload)| {
            channeldpb::ServerForwardMessage {
                client_conn_id,
                payload: payload.into(),
            }
        })
    }

    proptest! {
        #[test]
        fn written_as_the_library_writes(owned in owned_forward()) {
            let mut ours = Vec::new();
            ServerForward::from(&owned).encode(&mut ours);
            prop_assert_eq!(ours, owned.encode_to_vec());
        }

        #[test]
        fn read_as_the_library_reads(bytes in mutated(owned_forward().prop_map(|owned| owned.encode_to_vec()))) {
            let theirs = read_by_library::<channeldpb::ServerForwardMessage>(
                "channeldpb.ServerForwardMessage",
                &bytes,
            );
            let ours = ServerForward::parse(&bytes).ok().map(Into::into);
            prop_assert_eq!(ours, theirs);
        }
    }
}
