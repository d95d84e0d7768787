//! Whole frames, byte for byte: what peers in the field write and expect.

use lagometer_protocol::messages::channeldpb::{
    AuthMessage, AuthResultMessage, ChannelDataAccess, ChannelSubscriptionOptions, ChannelType,
    ConnectionType, CreateChannelMessage, SpatialInfo, SpatialInterestQuery,
    SubscribedToChannelMessage, SubscribedToChannelResultMessage, UpdateSpatialInterestMessage,
    spatial_interest_query::SphereAoi,
};
use lagometer_protocol::{
    FrameBuilder, FrameDecoder, FrameForm, FrameLimits, FromGateway, MessagePack, Packet, ToGateway,
};

/// A frame and the one message in it.
struct Vector<M> {
    hex: &'static str,
    channel_id: u32,
    stub_id: u32,
    message: M,
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

fn frame(channel_id: u32, stub_id: u32, msg_type: u32, body: &[u8]) -> Vec<u8> {
    let mut builder = FrameBuilder::new();
    builder
        .push(&MessagePack {
            channel_id,
            stub_id,
            msg_type,
            body,
            ..MessagePack::default()
        })
        .unwrap();
    builder.finish().unwrap().to_vec()
}

/// Decodes `wire` cut in two at every place, and gives what `read` makes of
/// the one message.
fn decoded<T: PartialEq + std::fmt::Debug>(
    wire: &[u8],
    read: impl Fn(&MessagePack<'_>) -> T,
) -> (u32, u32, T) {
    let mut results = Vec::new();
    for cut in 0..wire.len() {
        let mut decoder = FrameDecoder::new(FrameLimits::default());
        let (first, second) = wire.split_at(cut);
        for mut piece in [first, second] {
            while let Some(frame) = decoder.next(&mut piece).unwrap() {
                let packet = Packet::new_checked(frame.payload).unwrap();
                for message in packet.messages() {
                    results.push((message.channel_id, message.stub_id, read(&message)));
                }
            }
        }
    }
    assert_eq!(results.len(), wire.len(), "one message however it is cut");
    results.dedup();
    assert_eq!(results.len(), 1, "and always the same");
    results.remove(0)
}

impl Vector<ToGateway> {
    fn check(self) {
        let wire = bytes(self.hex);
        let mut body = Vec::new();
        self.message.encode_body(&mut body);
        let msg_type = self.message.msg_type() as u32;
        assert_eq!(frame(self.channel_id, self.stub_id, msg_type, &body), wire);
        assert_eq!(
            decoded(&wire, |message| ToGateway::decode(message).unwrap()),
            (self.channel_id, self.stub_id, self.message)
        );
    }
}

impl Vector<FromGateway> {
    fn check(self) {
        let wire = bytes(self.hex);
        let mut body = Vec::new();
        self.message.encode_body(&mut body);
        let msg_type = self.message.msg_type() as u32;
        assert_eq!(frame(self.channel_id, self.stub_id, msg_type, &body), wire);
        assert_eq!(
            decoded(&wire, |message| FromGateway::decode(message).unwrap()),
            (self.channel_id, self.stub_id, self.message)
        );
    }
}

fn login() -> ToGateway {
    ToGateway::Auth(AuthMessage {
        player_identifier_token: "test".into(),
        login_token: "test".into(),
    })
}

#[test]
fn auth_without_a_stub() {
    Vector {
        hex: "43 48 00 12 00 0a 10 20 01 2a 0c 0a 04 74 65 73 74 12 04 74 65 73 74",
        channel_id: 0,
        stub_id: 0,
        message: login(),
    }
    .check();
}

#[test]
fn auth_with_a_stub() {
    Vector {
        hex: "43 48 00 14 00 0a 12 18 01 20 01 2a 0c 0a 04 74 65 73 74 12 04 74 65 73 74",
        channel_id: 0,
        stub_id: 1,
        message: login(),
    }
    .check();
}

#[test]
fn auth_result() {
    Vector {
        hex: "43 48 00 0a 00 0a 08 18 01 20 01 2a 02 10 02",
        channel_id: 0,
        stub_id: 1,
        message: FromGateway::Auth(AuthResultMessage {
            conn_id: 2,
            ..AuthResultMessage::default()
        }),
    }
    .check();
}

#[test]
fn create_global() {
    Vector {
        hex: "43 48 00 0a 00 0a 08 18 01 20 03 2a 02 08 01",
        channel_id: 0,
        stub_id: 1,
        message: ToGateway::CreateChannel(CreateChannelMessage {
            channel_type: ChannelType::Global.into(),
            ..CreateChannelMessage::default()
        }),
    }
    .check();
}

#[test]
fn subscribe_to_global() {
    Vector {
        hex: "43 48 00 13 00 0a 11 18 02 20 06 2a 0b 08 02 12 07 08 01 18 14 20 d0 0f",
        channel_id: 0,
        stub_id: 2,
        message: ToGateway::SubToChannel(SubscribedToChannelMessage {
            conn_id: 2,
            sub_options: Some(ChannelSubscriptionOptions {
                data_access: Some(ChannelDataAccess::ReadAccess.into()),
                fan_out_interval_ms: Some(20),
                fan_out_delay_ms: Some(2000),
                ..ChannelSubscriptionOptions::default()
            }),
        }),
    }
    .check();
}

#[test]
fn subscription_result_with_every_option() {
    Vector {
        hex: "43 48 00 1b 00 0a 19 18 02 20 06 2a 13 08 02 12 0b 08 01 18 14 20 d0 0f 28 01 \
              30 00 18 02 20 01",
        channel_id: 0,
        stub_id: 2,
        message: FromGateway::SubToChannel(SubscribedToChannelResultMessage {
            conn_id: 2,
            sub_options: Some(ChannelSubscriptionOptions {
                data_access: Some(ChannelDataAccess::ReadAccess.into()),
                data_field_masks: Vec::new(),
                fan_out_interval_ms: Some(20),
                fan_out_delay_ms: Some(2000),
                skip_self_update_fan_out: Some(true),
                skip_first_fan_out: Some(false),
            }),
            conn_type: ConnectionType::Client.into(),
            channel_type: ChannelType::Global.into(),
        }),
    }
    .check();
}

#[test]
fn change_of_the_interval_alone() {
    Vector {
        hex: "43 48 00 11 00 0a 0f 08 d8 84 20 20 06 2a 07 08 0c 12 03 18 e8 07",
        channel_id: 0x80258,
        stub_id: 0,
        message: ToGateway::SubToChannel(SubscribedToChannelMessage {
            conn_id: 12,
            sub_options: Some(ChannelSubscriptionOptions {
                fan_out_interval_ms: Some(1000),
                ..ChannelSubscriptionOptions::default()
            }),
        }),
    }
    .check();
}

#[test]
fn interest_in_a_sphere() {
    Vector {
        hex: "43 48 00 36 00 0a 34 08 80 80 04 20 0e 2a 2c 08 0c 12 28 1a 26 0a 1b \
              09 00 00 00 00 00 00 59 40 11 00 00 00 00 00 00 f0 3f 19 00 00 00 00 00 00 14 40 \
              11 00 00 00 00 00 70 a7 40",
        channel_id: 65536,
        stub_id: 0,
        message: ToGateway::UpdateSpatialInterest(UpdateSpatialInterestMessage {
            conn_id: 12,
            query: Some(SpatialInterestQuery {
                sphere_aoi: Some(SphereAoi {
                    center: Some(SpatialInfo {
                        x: 100.0,
                        y: 1.0,
                        z: 5.0,
                    }),
                    radius: 3000.0,
                }),
                ..SpatialInterestQuery::default()
            }),
        }),
    }
    .check();
}

#[test]
fn auth_under_the_older_tag() {
    let wire = bytes("43 48 4e 12 00 0a 10 20 01 2a 0c 0a 04 74 65 73 74 12 04 74 65 73 74");
    assert_eq!(
        decoded(&wire, |message| ToGateway::decode(message).unwrap()),
        (0, 0, login())
    );
    let mut decoder = FrameDecoder::new(FrameLimits::default());
    let mut piece = &wire[..];
    decoder.next(&mut piece).unwrap();
    assert_eq!(decoder.form(), FrameForm::Legacy);
}
