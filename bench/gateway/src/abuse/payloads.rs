//! The pieces that abuses are made of: messages, packets, frames and WebSocket
//! frames with hostile values. Nothing here opens a socket.

use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, AuthMessage, ChannelDataAccess, ChannelDataUpdateMessage,
    ChannelSubscriptionOptions, ChannelType, CreateChannelMessage, CreateEntityChannelMessage,
    DisconnectMessage, ListChannelMessage, MessageType, RemoveChannelMessage,
    SubscribedToChannelMessage, UnsubscribedFromChannelMessage,
};
use lagometer_protocol::{Compression, Compressor, MessagePack, frame_header};
use prost::Message;

use super::deployment::TOKEN;
use crate::states::TYPE_URL;

/// The most that a frame unpacks to at the default `limits.max_packet`.
pub(super) const PACKET_BYTES: usize = 1 << 20;

/// The most that a frame carries as it is.
const PAYLOAD_BYTES: usize = 65_535;

/// A message of the game's own.
pub(super) const USER: u32 = 101;

/// Messages on their way into frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Packet {
    bytes: Vec<u8>,
}

impl Packet {
    /// Appends a message.
    pub(super) fn put(&mut self, channel_id: u32, msg_type: u32, body: &[u8]) {
        self.put_with(channel_id, msg_type, 0, body);
    }

    /// Appends a message with broadcast flags.
    pub(super) fn put_with(&mut self, channel_id: u32, msg_type: u32, broadcast: u32, body: &[u8]) {
        MessagePack {
            channel_id,
            broadcast,
            msg_type,
            body,
            ..MessagePack::default()
        }
        .encode_in_packet(&mut self.bytes);
    }

    /// Appends one of the gateway's own messages.
    pub(super) fn ask(&mut self, channel_id: u32, msg_type: MessageType, body: &impl Message) {
        self.put(channel_id, msg_type as u32, &body.encode_to_vec());
    }

    /// How long it is.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The frame that carries it as it is.
    ///
    /// # Panics
    ///
    /// When it is longer than a frame carries: abuses are made for their frames.
    pub(super) fn frame(&self) -> Vec<u8> {
        framed(&self.bytes, Compression::None)
    }

    /// The frame that carries it packed with snappy.
    ///
    /// # Panics
    ///
    /// When it does not pack into a frame.
    pub(super) fn snappy_frame(&self) -> Vec<u8> {
        let mut compressor = Compressor::new();
        let packed = compressor
            .compress(&self.bytes)
            .expect("what repeats packs well");
        framed(packed, Compression::Snappy)
    }
}

fn framed(payload: &[u8], compression: Compression) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("it fits a frame");
    let mut frame = frame_header(length, compression).to_vec();
    frame.extend_from_slice(payload);
    frame
}

/// The same message as often as a packet of so many bytes has room for it.
pub(super) fn repeated(most_bytes: usize, put: impl Fn(&mut Packet)) -> Packet {
    let mut one = Packet::default();
    put(&mut one);
    let times = (most_bytes / one.len()).max(1);
    Packet {
        bytes: one.bytes.repeat(times),
    }
}

/// As many of a row of messages, each made from its number, as a packet of so
/// many bytes has room for.
pub(super) fn numbered(most_bytes: usize, mut put: impl FnMut(&mut Packet, u32)) -> Packet {
    let mut packet = Packet::default();
    for number in 0.. {
        let before = packet.len();
        put(&mut packet, number);
        if packet.len() > most_bytes {
            packet.bytes.truncate(before);
            break;
        }
    }
    packet
}

/// A frame full of the same message.
pub(super) fn full_frame(put: impl Fn(&mut Packet)) -> Vec<u8> {
    repeated(PAYLOAD_BYTES, put).frame()
}

/// A snappy frame that unpacks to as much as is allowed, of the same message.
pub(super) fn full_snappy_frame(put: impl Fn(&mut Packet)) -> Vec<u8> {
    repeated(PACKET_BYTES, put).snappy_frame()
}

/// A snappy frame with as many messages as one of a client may have.
pub(super) fn longest_burst(put: impl Fn(&mut Packet)) -> Vec<u8> {
    let mut packet = Packet::default();
    for _ in 0..4096 {
        put(&mut packet);
    }
    packet.snappy_frame()
}

/// A login with the token that is right.
pub(super) fn login(player: &str) -> Vec<u8> {
    let mut packet = Packet::default();
    put_login(&mut packet, player, TOKEN);
    packet.frame()
}

/// A login.
pub(super) fn put_login(packet: &mut Packet, player: &str, token: &str) {
    let body = AuthMessage {
        player_identifier_token: player.to_owned(),
        login_token: token.to_owned(),
    };
    packet.ask(0, MessageType::Auth, &body);
}

/// A login that is refused, of about a name's length of bytes; each number has a
/// name of its own.
pub(super) fn failing_login(number: u64, name_bytes: usize) -> Vec<u8> {
    let mut name = format!("{number:020}-");
    let fill = name_bytes.saturating_sub(name.len());
    name.extend(std::iter::repeat_n('n', fill));
    let mut packet = Packet::default();
    put_login(&mut packet, &name, "wrong");
    packet.frame()
}

/// A subscription with so many field masks, each of them `mask`.
pub(super) fn put_subscription(
    packet: &mut Packet,
    channel_id: u32,
    options: ChannelSubscriptionOptions,
) {
    let body = SubscribedToChannelMessage {
        conn_id: 0,
        sub_options: Some(options),
    };
    packet.ask(channel_id, MessageType::SubToChannel, &body);
}

/// What a subscription says that wants everything as fast as it can be had.
pub(super) fn greedy(access: ChannelDataAccess) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        data_access: Some(access.into()),
        fan_out_interval_ms: Some(1),
        fan_out_delay_ms: Some(i32::MIN),
        skip_self_update_fan_out: Some(false),
        ..ChannelSubscriptionOptions::default()
    }
}

/// Ends somebody's subscription.
pub(super) fn put_unsubscription(packet: &mut Packet, channel_id: u32, conn_id: u32) {
    let body = UnsubscribedFromChannelMessage { conn_id };
    packet.ask(channel_id, MessageType::UnsubFromChannel, &body);
}

/// Has somebody's connection closed.
pub(super) fn put_disconnect(packet: &mut Packet, conn_id: u32) {
    packet.ask(0, MessageType::Disconnect, &DisconnectMessage { conn_id });
}

/// Removes a channel.
pub(super) fn put_removal(packet: &mut Packet, channel_id: u32) {
    let body = RemoveChannelMessage { channel_id };
    packet.ask(channel_id, MessageType::RemoveChannel, &body);
}

/// Makes a channel with so much metadata.
pub(super) fn put_creation(packet: &mut Packet, metadata_bytes: usize) {
    let body = CreateChannelMessage {
        channel_type: ChannelType::Test.into(),
        metadata: "m".repeat(metadata_bytes),
        ..CreateChannelMessage::default()
    };
    packet.ask(0, MessageType::CreateChannel, &body);
}

/// Tries to own GLOBAL.
pub(super) fn put_creation_of_global(packet: &mut Packet) {
    let body = CreateChannelMessage {
        channel_type: ChannelType::Global.into(),
        ..CreateChannelMessage::default()
    };
    packet.ask(0, MessageType::CreateChannel, &body);
}

/// Makes an entity that every client is to know.
pub(super) fn put_well_known_entity(packet: &mut Packet, entity_id: u32) {
    let body = CreateEntityChannelMessage {
        entity_id,
        is_well_known: true,
        ..CreateEntityChannelMessage::default()
    };
    packet.ask(0, MessageType::CreateEntityChannel, &body);
}

/// Asks for a list of channels with so many filters.
pub(super) fn put_list(packet: &mut Packet, filters: usize) {
    let body = ListChannelMessage {
        metadata_filters: vec!["x".to_owned(); filters],
        ..ListChannelMessage::default()
    };
    packet.ask(0, MessageType::ListChannel, &body);
}

/// Puts so many entities into one group.
pub(super) fn put_group(packet: &mut Packet, entities: u32, from: u32) {
    let body = AddEntityGroupMessage {
        entities_to_add: (from..from + entities).collect(),
        ..AddEntityGroupMessage::default()
    };
    packet.ask(from, MessageType::EntityGroupAdd, &body);
}

/// Updates a channel's data.
pub(super) fn put_update(packet: &mut Packet, channel_id: u32, value: Vec<u8>) {
    let body = ChannelDataUpdateMessage {
        data: Some(prost_types::Any {
            type_url: TYPE_URL.to_owned(),
            value,
        }),
        context_conn_id: 0,
    };
    packet.ask(channel_id, MessageType::ChannelDataUpdate, &body);
}

/// Messages in messages in an unknown field, so many levels deep, as data of
/// about five bytes a level.
pub(super) fn nested(levels: usize) -> Vec<u8> {
    let mut lengths = Vec::with_capacity(levels);
    let mut inner = 0usize;
    for _ in 0..levels {
        lengths.push(inner);
        inner += 1 + prost::encoding::encoded_len_varint(inner as u64);
    }
    let mut data = Vec::with_capacity(inner);
    for &length in lengths.iter().rev() {
        // Field 15 is none of the type's.
        data.push(0x7a);
        prost::encoding::encode_varint(length as u64, &mut data);
    }
    data
}

/// A WebSocket frame from a client (RFC 6455, section 5.2), masked with zeros,
/// which leaves the payload as it is. `opcode` has the bit FIN where it is the
/// last of its message.
pub(super) fn websocket_frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opcode];
    match payload.len() {
        length @ 0..=125 => frame.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            frame.push(0xfe);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(0xff);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// A whole binary message.
pub(super) const BINARY: u8 = 0x82;
/// The first fragment of one.
pub(super) const BINARY_FIRST: u8 = 0x02;
/// A fragment that is neither first nor last.
pub(super) const CONTINUATION: u8 = 0x00;
/// A ping.
pub(super) const PING: u8 = 0x89;

/// A KCP segment: 24 bytes of header, little-endian, and data (ikcp.c,
/// `ikcp_encode_seg`).
pub(super) fn kcp_segment(conversation: u32, command: u8, number: u32, data: &[u8]) -> Vec<u8> {
    let mut segment = Vec::with_capacity(24 + data.len());
    segment.extend_from_slice(&conversation.to_le_bytes());
    segment.extend_from_slice(&[command, 0]);
    segment.extend_from_slice(&128u16.to_le_bytes());
    segment.extend_from_slice(&0u32.to_le_bytes());
    segment.extend_from_slice(&number.to_le_bytes());
    segment.extend_from_slice(&0u32.to_le_bytes());
    segment.extend_from_slice(&(data.len() as u32).to_le_bytes());
    segment.extend_from_slice(data);
    segment
}

/// KCP's command for data.
pub(super) const KCP_PUSH: u8 = 81;
/// KCP's command that asks for the window.
pub(super) const KCP_ASK_WINDOW: u8 = 83;

#[cfg(test)]
mod tests {
    use lagometer_protocol::{FrameDecoder, FrameLimits, Packet as Read, ToGateway};

    use super::*;

    /// The messages of a stream of frames: channel, type and body of each.
    fn read(mut stream: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
        let limits = FrameLimits::default();
        let mut decoder = FrameDecoder::new(limits);
        let mut messages = Vec::new();
        let mut scratch = Vec::new();
        while let Some(frame) = decoder.next(&mut stream).unwrap() {
            let packet = frame
                .packet_bytes(limits.max_packet_bytes, &mut scratch)
                .unwrap();
            messages.extend(
                Read::new_checked(packet)
                    .unwrap()
                    .messages()
                    .map(|one| (one.channel_id, one.msg_type, one.body.to_vec())),
            );
        }
        messages
    }

    #[test]
    fn one_snappy_frame_holds_tens_of_thousands_of_logins() {
        let frame = full_snappy_frame(|packet| put_login(packet, "abc", ""));
        assert!(frame.len() < 64 << 10);
        let messages = read(&frame);
        assert!(messages.len() > 90_000, "{}", messages.len());
        assert!(messages.iter().all(|(_, msg_type, _)| *msg_type == 1));
    }

    #[test]
    fn a_full_frame_is_as_long_as_a_frame_can_be() {
        let frame = full_frame(|packet| put_removal(packet, 70_000));
        assert!((65_500..=65_540).contains(&frame.len()), "{}", frame.len());
        assert!(read(&frame).len() > 3000);
    }

    #[test]
    fn numbered_messages_are_all_different_and_none_is_cut() {
        let packet = numbered(5000, |packet, number| {
            put_unsubscription(packet, 0, number);
        });
        assert!(packet.len() <= 5000);
        let ids: Vec<u32> = read(&packet.frame())
            .iter()
            .map(|(_, _, body)| {
                UnsubscribedFromChannelMessage::decode(&**body)
                    .unwrap()
                    .conn_id
            })
            .collect();
        assert!(ids.len() > 200);
        assert_eq!(ids, (0..ids.len() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn every_message_is_what_the_gateway_reads() {
        let mut packet = Packet::default();
        put_login(&mut packet, "p", TOKEN);
        put_subscription(&mut packet, 3, greedy(ChannelDataAccess::ReadAccess));
        put_unsubscription(&mut packet, 3, 9);
        put_disconnect(&mut packet, 9);
        put_removal(&mut packet, 3);
        put_creation(&mut packet, 100);
        put_creation_of_global(&mut packet);
        put_well_known_entity(&mut packet, 0x0008_0001);
        put_list(&mut packet, 7);
        put_group(&mut packet, 5, 0x0008_0000);
        put_update(&mut packet, 0, nested(10));
        for (channel_id, msg_type, body) in read(&packet.frame()) {
            let read = ToGateway::decode(&MessagePack {
                channel_id,
                msg_type,
                body: &body,
                ..MessagePack::default()
            });
            assert!(read.is_ok(), "{msg_type}: {read:?}");
        }
    }

    #[test]
    fn failing_logins_have_names_of_their_own_and_of_the_length_asked_for() {
        let (one, other) = (failing_login(1, 60_000), failing_login(2, 60_000));
        assert_ne!(one, other);
        assert!((60_000..60_100).contains(&one.len()));
    }

    #[test]
    fn nesting_is_as_deep_as_asked_for() {
        let data = nested(3000);
        let (mut rest, mut levels) = (&*data, 0);
        while let Some((&key, tail)) = rest.split_first() {
            assert_eq!(key, 0x7a);
            rest = tail;
            let length = prost::encoding::decode_varint(&mut rest).unwrap();
            assert_eq!(length as usize, rest.len());
            levels += 1;
        }
        assert_eq!(levels, 3000);
    }

    #[test]
    fn websocket_frames_of_every_length_are_read_back() {
        use std::io::Cursor;
        use tungstenite::protocol::{Message, Role, WebSocket};

        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let bytes = websocket_frame(BINARY, &vec![7; length]);
            let stream = Cursor::new(bytes);
            let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
            let Ok(Message::Binary(read)) = socket.read() else {
                panic!("{length} bytes");
            };
            assert_eq!(read.len(), length);
        }
    }

    #[test]
    fn a_kcp_segment_is_laid_out_as_kcp_has_it() {
        let segment = kcp_segment(0x0102_0304, KCP_PUSH, 5, b"xy");
        assert_eq!(segment.len(), 26);
        assert_eq!(&segment[..6], &[4, 3, 2, 1, 81, 0]);
        assert_eq!(&segment[12..16], &[5, 0, 0, 0]);
        assert_eq!(&segment[20..], &[2, 0, 0, 0, b'x', b'y']);
    }
}
