//! One peer's talk with a gateway, without a socket.

use lagometer_protocol::messages::channeldpb::auth_result_message::AuthResult;
use lagometer_protocol::messages::channeldpb::{AuthResultMessage, CompressionType, MessageType};
use lagometer_protocol::wire::WireError;
use lagometer_protocol::{
    BodyError, Broadcast, ChannelDataUpdate, DecompressError, FrameDecoder, FrameError,
    FrameLimits, FromGateway, MessagePack, Packet, ServerForward,
};
use thiserror::Error;

use crate::event::{Event, Handler};
use crate::outbox::{Outbox, Stub};

/// What a session puts up with and makes use of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest frames taken from the gateway.
    pub frames: FrameLimits,
    /// The most bytes that may wait to be sent.
    pub max_waiting_bytes: usize,
    /// Compress what is sent when the gateway says it would like that; it
    /// then compresses too.
    pub compress: bool,
}

impl Default for Settings {
    /// Frames of any size, 1 MiB waiting, compression as the gateway likes.
    fn default() -> Self {
        Self {
            frames: FrameLimits::default(),
            max_waiting_bytes: 1 << 20,
            compress: true,
        }
    }
}

/// Why what arrived is not a gateway's: the connection is to be closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReceiveError {
    /// The stream is not frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame that does not unpack.
    #[error(transparent)]
    Decompress(#[from] DecompressError),
    /// A frame that holds no packet.
    #[error("a frame holds no packet: {0}")]
    Packet(WireError),
}

/// One peer's talk with a gateway.
#[derive(Debug)]
pub struct Session {
    outbox: Outbox,
    decoder: FrameDecoder,
    unpacked: Vec<u8>,
    conn_id: Option<u32>,
    settings: Settings,
}

impl Session {
    /// A session that has said nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            outbox: Outbox::new(settings.max_waiting_bytes),
            decoder: FrameDecoder::new(settings.frames),
            unpacked: Vec::new(),
            conn_id: None,
            settings,
        }
    }

    /// What the session is to send.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// The session's connection id, once the gateway has let it in.
    #[must_use]
    pub fn conn_id(&self) -> Option<u32> {
        self.conn_id
    }

    /// Takes bytes that arrived, in pieces of any size, and hands `handler`
    /// first that they did and then what they mean, in order.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`] when the stream is broken; further bytes then have no
    /// meaning. What came before the fault has been handed on.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        handler: &mut impl Handler,
    ) -> Result<(), ReceiveError> {
        let Self {
            outbox,
            decoder,
            unpacked,
            conn_id,
            settings,
        } = self;
        handler.on_arrival();
        while let Some(frame) = decoder.next(&mut bytes)? {
            let packet = frame.packet_bytes(settings.frames.max_packet_bytes, unpacked)?;
            for message in Packet::read(packet) {
                let event = read(&message.map_err(ReceiveError::Packet)?);
                if let Event::Message {
                    stub,
                    message: FromGateway::Auth(result),
                    ..
                } = &event
                    && *stub != Stub(0)
                {
                    let event = login(*stub, result, conn_id, outbox, *settings);
                    handler.on_event(outbox, event);
                } else {
                    handler.on_event(outbox, event);
                }
            }
        }
        Ok(())
    }
}

/// What a message means, own logins left aside.
fn read<'a>(message: &MessagePack<'a>) -> Event<'a> {
    let channel_id = message.channel_id;
    let unknown = Event::Unknown {
        channel_id,
        msg_type: message.msg_type,
        body: message.body,
    };
    if message.msg_type == MessageType::ChannelDataUpdate as u32 {
        return match ChannelDataUpdate::parse(message.body) {
            Ok(update) => {
                let data = update.data.unwrap_or_default();
                Event::Data {
                    channel_id,
                    type_url: data.type_url,
                    value: data.value,
                }
            }
            Err(_) => unknown,
        };
    }
    if message.is_user_space() {
        return match ServerForward::parse(message.body) {
            Ok(forward) => Event::User {
                channel_id,
                msg_type: message.msg_type,
                broadcast: Broadcast(message.broadcast),
                stub: Stub(message.stub_id),
                client_conn_id: forward.client_conn_id,
                payload: forward.payload,
            },
            Err(_) => unknown,
        };
    }
    match FromGateway::decode(message) {
        Ok(decoded) => Event::Message {
            channel_id,
            stub: Stub(message.stub_id),
            message: decoded,
        },
        Err(BodyError::UnknownType(_) | BodyError::Malformed { .. }) => unknown,
    }
}

/// The gateway's answer to this session's own login.
fn login<'a>(
    stub: Stub,
    answer: &AuthResultMessage,
    conn_id: &mut Option<u32>,
    outbox: &mut Outbox,
    settings: Settings,
) -> Event<'a> {
    let result = answer.result();
    if result != AuthResult::Successful {
        return Event::LoginRefused { stub, result };
    }
    *conn_id = Some(answer.conn_id);
    let likes_snappy = answer.compression_type() == CompressionType::Snappy;
    outbox.let_in(settings.compress && likes_snappy);
    Event::LoggedIn {
        stub,
        conn_id: answer.conn_id,
        should_recover: answer.should_recover,
    }
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::channeldpb::{ChannelOwnerLostMessage, ChannelType};
    use lagometer_protocol::{Compression, FrameBuilder};
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::event::OwnedEvent;

    fn frame(messages: &[MessagePack<'_>]) -> Vec<u8> {
        let mut builder = FrameBuilder::new();
        for message in messages {
            builder.push(message).unwrap();
        }
        builder.finish().unwrap().to_vec()
    }

    fn answer(stub_id: u32, answer: &AuthResultMessage) -> Vec<u8> {
        frame(&[MessagePack {
            stub_id,
            msg_type: 1,
            body: &answer.encode_to_vec(),
            ..MessagePack::default()
        }])
    }

    fn receive(session: &mut Session, bytes: &[u8]) -> Vec<OwnedEvent> {
        let mut events = Vec::new();
        session
            .receive(bytes, &mut |_: &mut Outbox, event: Event<'_>| {
                events.push(event.into_owned());
            })
            .unwrap();
        events
    }

    fn sent(session: &mut Session) -> Vec<u8> {
        let bytes = session.outbox().pending().to_vec();
        session.outbox().sent(bytes.len());
        bytes
    }

    #[test]
    fn only_the_login_goes_out_before_the_answer_to_it() {
        let mut session = Session::new(Settings::default());
        session
            .outbox()
            .list_channels(ChannelType::Unknown, &[])
            .unwrap();
        let login = session.outbox().authenticate("test", "test").unwrap();
        session.outbox().unsubscribe(0, 7).unwrap();
        assert_eq!(login, Stub(2));
        // The login's published bytes, with this stub.
        let expected = [
            &b"CH\0\x14\0\x0a\x12\x18\x02\x20\x01\x2a\x0c"[..],
            b"\x0a\x04test\x12\x04test",
        ]
        .concat();
        assert_eq!(sent(&mut session), expected);
        let events = receive(
            &mut session,
            &answer(
                2,
                &AuthResultMessage {
                    conn_id: 7,
                    ..Default::default()
                },
            ),
        );
        assert!(matches!(
            events[..],
            [OwnedEvent::LoggedIn { conn_id: 7, .. }]
        ));
        let held = sent(&mut session);
        let packet = Packet::new_checked(&held[5..]).unwrap();
        let types: Vec<u32> = packet.messages().map(|message| message.msg_type).collect();
        assert_eq!(types, [5, 7]);
        assert_eq!(session.outbox().waiting_bytes(), 0);
    }

    #[test]
    fn what_was_held_goes_before_what_came_after_the_login() {
        let mut session = Session::new(Settings::default());
        let login = session.outbox().authenticate("test", "test").unwrap();
        sent(&mut session);
        let say = |session: &mut Session, numbers: std::ops::Range<u32>| {
            for number in numbers {
                let payload = vec![0; 30_000];
                let outbox = session.outbox();
                outbox.message_owner(number, 100, &payload).unwrap();
            }
        };
        say(&mut session, 0..5);
        receive(
            &mut session,
            &answer(login.0, &AuthResultMessage::default()),
        );
        say(&mut session, 5..10);
        let mut order = Vec::new();
        let mut note = |bytes: &[u8]| {
            let mut chunk = bytes;
            let mut decoder = FrameDecoder::new(FrameLimits::default());
            while let Some(frame) = decoder.next(&mut chunk).unwrap() {
                let packet = Packet::new_checked(frame.payload).unwrap();
                order.extend(packet.messages().map(|message| message.channel_id));
            }
        };
        note(&sent(&mut session));
        say(&mut session, 10..15);
        note(&sent(&mut session));
        assert_eq!(order, (0..15).collect::<Vec<_>>());
    }

    #[test]
    fn a_refused_login_may_be_tried_again() {
        let mut session = Session::new(Settings::default());
        let first = session.outbox().authenticate("player", "wrong").unwrap();
        sent(&mut session);
        let refusal = AuthResultMessage {
            result: AuthResult::InvalidLt.into(),
            ..Default::default()
        };
        let events = receive(&mut session, &answer(first.0, &refusal));
        assert_eq!(
            events,
            [OwnedEvent::LoginRefused {
                stub: first,
                result: AuthResult::InvalidLt
            }]
        );
        assert_eq!(session.conn_id(), None);
        session.outbox().authenticate("player", "right").unwrap();
        assert!(!sent(&mut session).is_empty());
    }

    #[test]
    fn anothers_login_is_not_ones_own() {
        let mut session = Session::new(Settings::default());
        let copy = answer(
            0,
            &AuthResultMessage {
                conn_id: 9,
                ..Default::default()
            },
        );
        let events = receive(&mut session, &copy);
        assert!(matches!(
            events[..],
            [OwnedEvent::Message {
                message: FromGateway::Auth(_),
                ..
            }]
        ));
        assert_eq!(session.conn_id(), None);
    }

    #[test]
    fn compression_begins_when_the_gateway_likes_it() {
        for (compress, expected) in [(true, Compression::Snappy), (false, Compression::None)] {
            let mut session = Session::new(Settings {
                compress,
                ..Settings::default()
            });
            session.outbox().authenticate("a", "b").unwrap();
            sent(&mut session);
            let liked = AuthResultMessage {
                compression_type: CompressionType::Snappy.into(),
                ..Default::default()
            };
            receive(&mut session, &answer(1, &liked));
            session.outbox().message_owner(0, 100, &[5; 500]).unwrap();
            assert_eq!(Compression::from_byte(sent(&mut session)[4]), expected);
        }
    }

    #[test]
    fn what_no_one_takes_is_refused_and_not_hoarded() {
        let limits = Settings {
            max_waiting_bytes: 1000,
            ..Settings::default()
        };
        let mut session = Session::new(limits);
        assert_eq!(
            Session::new(Settings::default())
                .outbox()
                .message_owner(0, 100, &vec![0; 70_000]),
            Err(crate::SendError::TooLarge { size_bytes: 70_006 })
        );
        let refused =
            (0..100).find_map(|_| session.outbox().message_owner(0, 100, &[0; 100]).err());
        assert_eq!(refused, Some(crate::SendError::Full { limit_bytes: 1000 }));
        assert!(session.outbox().waiting_bytes() <= 1000);
    }

    #[test]
    fn messages_of_every_kind_become_events() {
        let mut session = Session::new(Settings::default());
        let forward = [0x08, 3, 0x12, 2, b'h', b'i'];
        let update = lagometer_protocol::update_body("t/x.Y", b"\x08\x01");
        let bytes = frame(&[
            MessagePack {
                channel_id: 4,
                msg_type: 102,
                broadcast: 1,
                stub_id: 6,
                body: &forward,
            },
            MessagePack {
                channel_id: 5,
                msg_type: 8,
                body: &update,
                ..Default::default()
            },
            MessagePack {
                channel_id: 6,
                msg_type: 22,
                ..Default::default()
            },
            MessagePack {
                channel_id: 7,
                msg_type: 6,
                body: b"\xff",
                ..Default::default()
            },
            MessagePack {
                channel_id: 8,
                msg_type: 77,
                body: b"?",
                ..Default::default()
            },
        ]);
        assert_eq!(
            receive(&mut session, &bytes),
            [
                OwnedEvent::User {
                    channel_id: 4,
                    msg_type: 102,
                    broadcast: Broadcast(1),
                    stub: Stub(6),
                    client_conn_id: 3,
                    payload: b"hi".to_vec(),
                },
                OwnedEvent::Data {
                    channel_id: 5,
                    type_url: "t/x.Y".into(),
                    value: b"\x08\x01".to_vec(),
                },
                OwnedEvent::Message {
                    channel_id: 6,
                    stub: Stub(0),
                    message: FromGateway::ChannelOwnerLost(ChannelOwnerLostMessage::default()),
                },
                OwnedEvent::Unknown {
                    channel_id: 7,
                    msg_type: 6,
                    body: vec![0xff]
                },
                OwnedEvent::Unknown {
                    channel_id: 8,
                    msg_type: 77,
                    body: b"?".to_vec()
                },
            ]
        );
    }

    proptest! {
        #[test]
        fn noise_never_panics(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
            framed in any::<bool>(),
            cut in 1usize..50,
        ) {
            if framed && !bytes.is_empty() {
                let header = lagometer_protocol::frame_header(bytes.len() as u16, Compression::None);
                bytes.splice(0..0, header);
            }
            let mut session = Session::new(Settings::default());
            for piece in bytes.chunks(cut) {
                if session.receive(piece, &mut |_: &mut Outbox, _: Event<'_>| {}).is_err() {
                    break;
                }
            }
        }
    }
}
