//! Frames, logins, compression, sizes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use lagometer_client::OwnedEvent;
use lagometer_protocol::messages::channeldpb::{AuthMessage, AuthResultMessage, ChannelType};
use lagometer_protocol::{
    Compression, FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet,
};
use prost::Message;

use crate::harness::peer::connect;
use crate::harness::{Gateway, Peer, SOON, Settings, Whose};

/// A login with token and password `test`, as published.
const LOGIN: &[u8] = b"CH\0\x14\0\x0a\x12\x18\x01\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";

fn raw(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

/// Reads frames until `wanted` messages have come; their types.
fn read_types(stream: &mut TcpStream, wanted: usize) -> Vec<u32> {
    let mut decoder = FrameDecoder::new(FrameLimits::default());
    let mut types = Vec::new();
    let mut buffer = [0; 4096];
    while types.len() < wanted {
        let bytes = stream.read(&mut buffer).unwrap();
        assert!(bytes > 0, "closed after {types:?}");
        let mut chunk = &buffer[..bytes];
        while let Some(frame) = decoder.next(&mut chunk).unwrap() {
            let packet = Packet::new_checked(frame.payload).unwrap();
            types.extend(packet.messages().map(|message| message.msg_type));
        }
    }
    types
}

fn assert_closes(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    let is_reset = |kind| kind == std::io::ErrorKind::ConnectionReset;
    assert!(
        read.is_ok() || read.as_ref().is_err_and(|error| is_reset(error.kind())),
        "not closed: {read:?}"
    );
}

fn login_in(channel_id: u32) -> Vec<u8> {
    let body = AuthMessage {
        player_identifier_token: "test".into(),
        login_token: "test".into(),
    }
    .encode_to_vec();
    frame(&[MessagePack {
        channel_id,
        stub_id: 1,
        msg_type: 1,
        body: &body,
        ..MessagePack::default()
    }])
}

fn frame(messages: &[MessagePack<'_>]) -> Vec<u8> {
    let mut builder = FrameBuilder::new();
    for message in messages {
        builder.push(message).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

pub(crate) fn c01_frames_are_read_however_they_are_cut(whose: Whose) {
    let gateway = Gateway::start(whose);
    for cut in 1..LOGIN.len() {
        let mut stream = raw(gateway.clients);
        stream.write_all(&LOGIN[..cut]).unwrap();
        // Another packet of TCP for the rest, without waiting for luck: the
        // first part is on its way once the socket's queue is empty.
        std::thread::sleep(std::time::Duration::from_millis(2));
        stream.write_all(&LOGIN[cut..]).unwrap();
        assert_eq!(read_types(&mut stream, 1), [1], "cut at {cut}");
    }
    // Three frames in one write, the last cut off and completed later.
    let list = frame(&[MessagePack {
        stub_id: 2,
        msg_type: 5,
        ..MessagePack::default()
    }]);
    let mut stream = raw(gateway.clients);
    stream.write_all(LOGIN).unwrap();
    assert_eq!(read_types(&mut stream, 1), [1]);
    let three = [&list[..], &list[..], &list[..]].concat();
    stream.write_all(&three[..three.len() - 3]).unwrap();
    stream.write_all(&three[three.len() - 3..]).unwrap();
    assert_eq!(read_types(&mut stream, 3), [5, 5, 5]);
}

pub(crate) fn c02_a_bad_tag_or_an_empty_frame_closes(whose: Whose) {
    let gateway = Gateway::start(whose);
    for bad in [&b"XH\0\x01\0\0"[..], b"CX\0\x01\0\0", b"CH\0\0\0"] {
        let mut stream = raw(gateway.clients);
        stream.write_all(bad).unwrap();
        assert_closes(&mut stream);
    }
}

pub(crate) fn c03_a_frame_that_holds_no_packet_closes(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut stream = raw(gateway.clients);
    stream.write_all(b"CH\0\x03\0\xff\xff\xff").unwrap();
    assert_closes(&mut stream);
}

pub(crate) fn c04_before_the_login_all_else_is_refused(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut stream = raw(gateway.clients);
    let list = frame(&[MessagePack {
        stub_id: 9,
        msg_type: 5,
        ..MessagePack::default()
    }]);
    stream.write_all(&list).unwrap();
    stream.write_all(LOGIN).unwrap();
    assert_eq!(
        read_types(&mut stream, 1),
        [1],
        "only the login is answered"
    );
}

pub(crate) fn c05_a_login_outside_global_closes(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create(
        lagometer_protocol::messages::channeldpb::CreateChannelMessage {
            channel_type: ChannelType::Test.into(),
            ..Default::default()
        },
    );
    let mut stream = raw(gateway.clients);
    stream.write_all(&login_in(channel.channel_id)).unwrap();
    assert_closes(&mut stream);
}

pub(crate) fn c05_a_login_to_a_channel_that_there_is_not_closes(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut stream = raw(gateway.clients);
    stream.write_all(&login_in(4242)).unwrap();
    assert_closes(&mut stream);
}

pub(crate) fn c01_the_older_header_is_read_too(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut older = LOGIN.to_vec();
    older[2] = b'N';
    let mut stream = raw(gateway.clients);
    stream.write_all(&older).unwrap();
    assert_eq!(read_types(&mut stream, 1), [1]);
}

pub(crate) fn c23_snappy_begins_when_a_peer_compresses(whose: Whose) {
    let gateway = Gateway::start_with(
        whose,
        &Settings {
            snappy: true,
            ..Settings::default()
        },
    );
    // A peer that does not compress gets nothing compressed.
    let mut stream = raw(gateway.clients);
    stream.write_all(LOGIN).unwrap();
    let mut header = [0; 5];
    stream.read_exact(&mut header).unwrap();
    assert_eq!(Compression::from_byte(header[4]), Compression::None);
    let mut body = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]]))];
    stream.read_exact(&mut body).unwrap();
    let message = Packet::new_checked(&body)
        .unwrap()
        .messages()
        .next()
        .unwrap();
    let answer = AuthResultMessage::decode(message.body).unwrap();
    assert_eq!(answer.compression_type, 1, "snappy is announced");
    // One compressed frame, and all that comes from then on is.
    let long = vec![b'a'; 300];
    let mut packed = FrameBuilder::new();
    packed
        .push(&MessagePack {
            stub_id: 5,
            msg_type: 5,
            body: &[&[0x12, 0xac, 0x02][..], &long].concat(),
            ..MessagePack::default()
        })
        .unwrap();
    let mut compressor = lagometer_protocol::Compressor::new();
    let packed = packed.finish_compressed(&mut compressor).unwrap().to_vec();
    assert_eq!(Compression::from_byte(packed[4]), Compression::Snappy);
    stream.write_all(&packed).unwrap();
    // Small frames may be left as they are; but a session, which compresses by
    // itself, understands all of a longer talk.
    let mut peer = gateway.client();
    let text = "abcdefgh".repeat(500);
    let asked = peer.send(|outbox| outbox.list_channels(ChannelType::Unknown, &[&text]));
    peer.answer(asked);
}

pub(crate) fn c28_a_message_larger_than_a_frame_is_dropped_and_nothing_else(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut server = gateway.server();
    let mut client = gateway.client();
    let client_id = client.id;
    // As large as goes in: with the wrapping for the way out it is too large.
    server.own_global();
    let huge = vec![7; 65_520];
    client.send(|outbox| outbox.message_owner(0, 110, &huge));
    client.send(|outbox| outbox.message_owner(0, 111, b"after"));
    let (_, msg_type, from, payload) = server.user();
    assert_eq!(
        (msg_type, from, payload),
        (111, client_id, b"after".to_vec())
    );
    gateway.assert_serves();
}

pub(crate) fn c04_a_refused_message_type_is_ignored(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut client = gateway.client();
    // DISCONNECT is for servers.
    client.send(|outbox| outbox.disconnect(1));
    // No message has this type.
    client.send(|outbox| {
        outbox.send(&MessagePack {
            msg_type: 19,
            stub_id: 77,
            ..MessagePack::default()
        })
    });
    client.list();
    let mut silent = connect(gateway.clients);
    let early = silent.take_event(crate::harness::peer::QUIET, |_| true);
    assert!(early.is_err(), "{early:?}");
    let mut late = Peer::let_in_as(gateway.clients, "late");
    assert!(late.client.conn_id().is_some());
    late.expect_none("a second answer", |event| {
        matches!(event, OwnedEvent::LoggedIn { .. }).then_some(())
    });
}
