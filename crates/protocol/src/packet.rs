//! Packets and the envelopes in them, read in place.

use crate::messages::channeldpb;
use crate::wire::{
    Reader, Value, WireError, WireType, encoded_len_varint, put_bytes_field, put_key,
    put_uint32_field, put_varint,
};

/// The longest encoded message that a frame surely has room for: its payload
/// less the packet's own key and length, as gateways have always counted it.
pub const MAX_MESSAGE_LEN: usize = 65_529;

const PACKET_MESSAGES: u32 = 1;

const CHANNEL_ID: u32 = 1;
const BROADCAST: u32 = 2;
const STUB_ID: u32 = 3;
const MSG_TYPE: u32 = 4;
const MSG_BODY: u32 = 5;

/// An encoded packet whose every envelope has been checked. The bodies of the
/// messages are not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    message_count: usize,
    /// The first message: mostly the only one, which is then read once.
    first: Option<MessagePack<'a>>,
    /// What is behind it.
    rest: &'a [u8],
}

/// One message in its envelope, borrowing the body.
///
/// It is both what a packet is read as and what a packet is written from. The
/// owned form is [`channeldpb::MessagePack`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagePack<'a> {
    /// Towards the gateway the target, from it the origin; 0 is GLOBAL.
    pub channel_id: u32,
    /// [`Broadcast`](crate::Broadcast) flags, for messages in user space.
    pub broadcast: u32,
    /// Chosen by whoever asks and returned with the answer; 0 asks for none.
    pub stub_id: u32,
    /// A [`MessageType`](channeldpb::MessageType) or, from 100, a number of
    /// the game's own.
    pub msg_type: u32,
    /// The encoded message.
    pub body: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks the packet's envelopes.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes are no packet; none of its messages may
    /// then be used.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, WireError> {
        Self::read_up_to(bytes, usize::MAX)
    }

    /// Checks the envelopes of a packet that may have so many messages; `None` is one
    /// that has more, of which no more than the first that is too many is looked at.
    ///
    /// # Errors
    ///
    /// [`WireError`] when what was looked at is no packet.
    pub fn new_checked_up_to(
        bytes: &'a [u8],
        messages_at_most: usize,
    ) -> Result<Option<Self>, WireError> {
        let packet = Self::read_up_to(bytes, messages_at_most)?;
        Ok((packet.message_count <= messages_at_most).then_some(packet))
    }

    /// The messages of a packet that has not been checked, in order, each
    /// checked as it is read: for whoever need not know of a fault at the end
    /// before it takes the beginning. After an error nothing more follows that
    /// has a meaning.
    pub fn read(bytes: &'a [u8]) -> impl Iterator<Item = Result<MessagePack<'a>, WireError>> {
        let mut messages = Messages::new(bytes);
        std::iter::from_fn(move || messages.step().transpose())
    }

    /// The messages, in order.
    #[must_use]
    pub fn messages(&self) -> Messages<'a> {
        Messages {
            first: self.first,
            reader: Reader::new(self.rest),
        }
    }

    /// How many messages there are.
    #[must_use]
    pub fn message_count(&self) -> usize {
        self.message_count
    }

    /// The encoded packet.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Counts the messages, all checked, or one more than `at_most` of them.
    fn read_up_to(bytes: &'a [u8], at_most: usize) -> Result<Self, WireError> {
        let mut messages = Messages::new(bytes);
        let first = messages.step()?;
        let rest = messages.reader.rest();
        let mut message_count = usize::from(first.is_some());
        while message_count <= at_most && message_count > 0 && messages.step()?.is_some() {
            message_count += 1;
        }
        Ok(Self {
            bytes,
            message_count,
            first,
            rest,
        })
    }
}

/// The messages of a checked [`Packet`].
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    /// One that was read already.
    first: Option<MessagePack<'a>>,
    reader: Reader<'a>,
}

impl<'a> Messages<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            first: None,
            reader: Reader::new(bytes),
        }
    }

    fn step(&mut self) -> Result<Option<MessagePack<'a>>, WireError> {
        while let Some(field) = self.reader.next_field()? {
            if let (PACKET_MESSAGES, Value::Bytes(message)) = (field.number, field.value) {
                return MessagePack::parse(message).map(Some);
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = MessagePack<'a>;

    fn next(&mut self) -> Option<MessagePack<'a>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        // The packet was checked: there is no error to lose here.
        self.step().ok().flatten()
    }
}

impl<'a> MessagePack<'a> {
    /// Reads one envelope.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes are no envelope.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut pack = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some(field) = reader.next_field()? {
            // More than 32 bits are cut off, as everywhere in protobuf.
            match (field.number, field.value) {
                (CHANNEL_ID, Value::Varint(value)) => pack.channel_id = value as u32,
                (BROADCAST, Value::Varint(value)) => pack.broadcast = value as u32,
                (STUB_ID, Value::Varint(value)) => pack.stub_id = value as u32,
                (MSG_TYPE, Value::Varint(value)) => pack.msg_type = value as u32,
                (MSG_BODY, Value::Bytes(body)) => pack.body = body,
                // What is not known, or has another wire type than it should.
                _ => {}
            }
        }
        Ok(pack)
    }

    /// Appends the envelope with its body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_fields(out);
        if !self.body.is_empty() {
            put_bytes_field(out, MSG_BODY, self.body);
        }
    }

    /// Appends the envelope as one of a packet's messages. What several calls
    /// append one after the other is an encoded packet.
    pub fn encode_in_packet(&self, out: &mut Vec<u8>) {
        put_key(out, PACKET_MESSAGES, WireType::Bytes);
        put_varint(out, self.encoded_len() as u64);
        self.encode(out);
    }

    /// Appends all that [`encode_in_packet`](Self::encode_in_packet) would put
    /// before a body of `body_len` bytes, which is to follow. [`Self::body`]
    /// is not looked at.
    pub fn encode_head_in_packet(&self, body_len: usize, out: &mut Vec<u8>) {
        let body_field_len = bytes_field_len(body_len);
        put_key(out, PACKET_MESSAGES, WireType::Bytes);
        put_varint(out, (self.fields_len() + body_field_len) as u64);
        self.encode_fields(out);
        if body_len > 0 {
            put_key(out, MSG_BODY, WireType::Bytes);
            put_varint(out, body_len as u64);
        }
    }

    /// The encoded size of the envelope with its body.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.fields_len() + bytes_field_len(self.body.len())
    }

    /// The encoded size as one of a packet's messages.
    #[must_use]
    pub fn encoded_len_in_packet(&self) -> usize {
        let len = self.encoded_len();
        1 + encoded_len_varint(len as u64) + len
    }

    /// Whether the message is the game's own rather than the gateway's.
    #[must_use]
    pub fn is_user_space(&self) -> bool {
        self.msg_type >= channeldpb::MessageType::UserSpaceStart as u32
    }

    fn encode_fields(&self, out: &mut Vec<u8>) {
        put_uint32_field(out, CHANNEL_ID, self.channel_id);
        put_uint32_field(out, BROADCAST, self.broadcast);
        put_uint32_field(out, STUB_ID, self.stub_id);
        put_uint32_field(out, MSG_TYPE, self.msg_type);
    }

    fn fields_len(&self) -> usize {
        [self.channel_id, self.broadcast, self.stub_id, self.msg_type]
            .into_iter()
            .filter(|&value| value != 0)
            .map(|value| 1 + encoded_len_varint(u64::from(value)))
            .sum()
    }
}

/// The size of a bytes field with a key of one byte, absent when empty.
fn bytes_field_len(len: usize) -> usize {
    if len == 0 {
        0
    } else {
        1 + encoded_len_varint(len as u64) + len
    }
}

impl<'a> From<&'a channeldpb::MessagePack> for MessagePack<'a> {
    fn from(owned: &'a channeldpb::MessagePack) -> Self {
        Self {
            channel_id: owned.channel_id,
            broadcast: owned.broadcast,
            stub_id: owned.stub_id,
            msg_type: owned.msg_type,
            body: &owned.msg_body,
        }
    }
}

impl From<MessagePack<'_>> for channeldpb::MessagePack {
    fn from(view: MessagePack<'_>) -> Self {
        Self {
            channel_id: view.channel_id,
            broadcast: view.broadcast,
            stub_id: view.stub_id,
            msg_type: view.msg_type,
            msg_body: view.body.to_vec().into(),
        }
    }
}

impl From<Packet<'_>> for channeldpb::Packet {
    fn from(view: Packet<'_>) -> Self {
        Self {
            messages: view.messages().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::samples::{mutated, read_by_library, varied_u32};

    fn owned_pack() -> impl Strategy<Value = channeldpb::MessagePack> {
        let body = proptest::collection::vec(any::<u8>(), 0..300);
        (varied_u32(), varied_u32(), varied_u32(), varied_u32(), body).prop_map(
            |(channel_id, broadcast, stub_id, msg_type, body)| channeldpb::MessagePack {
                channel_id,
                broadcast,
                stub_id,
                msg_type,
                msg_body: body.into(),
            },
        )
    }

    fn owned_packet() -> impl Strategy<Value = channeldpb::Packet> {
        proptest::collection::vec(owned_pack(), 0..5)
            .prop_map(|messages| channeldpb::Packet { messages })
    }

    proptest! {
        #[test]
        fn written_as_the_library_writes(packet in owned_packet()) {
            let mut ours = Vec::new();
            let mut in_parts = Vec::new();
            for message in &packet.messages {
                let view = MessagePack::from(message);
                prop_assert_eq!(view.encoded_len(), message.encoded_len());
                let before = ours.len();
                view.encode_in_packet(&mut ours);
                prop_assert_eq!(view.encoded_len_in_packet(), ours.len() - before);
                view.encode_head_in_packet(view.body.len(), &mut in_parts);
                in_parts.extend_from_slice(view.body);
            }
            prop_assert_eq!(&ours, &packet.encode_to_vec());
            prop_assert_eq!(ours, in_parts);
        }

        #[test]
        fn read_as_the_library_reads(bytes in mutated(owned_packet().prop_map(|packet| packet.encode_to_vec()))) {
            let theirs = read_by_library::<channeldpb::Packet>("channeldpb.Packet", &bytes);
            let ours = Packet::new_checked(&bytes).ok().map(channeldpb::Packet::from);
            let at_once: Result<Vec<_>, _> =
                Packet::read(&bytes).map(|message| message.map(Into::into)).collect();
            let at_once = at_once.ok().map(|messages| channeldpb::Packet { messages });
            prop_assert_eq!(&ours, &theirs);
            prop_assert_eq!(at_once, theirs);
        }

        #[test]
        fn a_packet_has_as_many_messages_as_it_may_and_is_refused_with_one_more(
            packet in owned_packet(),
        ) {
            let bytes = packet.encode_to_vec();
            let count = packet.messages.len();
            let allowed = Packet::new_checked_up_to(&bytes, count).unwrap().unwrap();
            prop_assert_eq!(allowed, Packet::new_checked(&bytes).unwrap());
            prop_assert_eq!(allowed.message_count(), count);
            prop_assert_eq!(allowed.messages().count(), count);
            if let Some(fewer) = count.checked_sub(1) {
                prop_assert_eq!(Packet::new_checked_up_to(&bytes, fewer).unwrap(), None);
            }
        }
    }

    /// Else a frame of a megabyte costs a walk over half a million envelopes to refuse.
    #[test]
    fn what_follows_the_first_message_too_many_is_not_looked_at() {
        let mut bytes = Vec::new();
        for _ in 0..3 {
            MessagePack::default().encode_in_packet(&mut bytes);
        }
        bytes.push(0xff);
        assert!(Packet::new_checked_up_to(&bytes, 3).is_err());
        assert_eq!(Packet::new_checked_up_to(&bytes, 2), Ok(None));
    }

    #[test]
    fn user_space_begins_at_100() {
        let of = |msg_type| MessagePack {
            msg_type,
            ..MessagePack::default()
        };
        assert!(!of(99).is_user_space());
        assert!(of(100).is_user_space());
    }
}
