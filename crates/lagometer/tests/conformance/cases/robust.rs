//! Peers that fail, stall or mean harm.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
};
use lagometer_protocol::messages::tpspb::TestRepChannelData;
use lagometer_protocol::messages::unrealpb::PlayerState;

use crate::harness::{Gateway, READ, Settings, Whose, options};

const GAME: &str = "tpspb.TestRepChannelData";

fn named(number: i32) -> TestRepChannelData {
    let player = PlayerState {
        player_id: Some(number),
        player_name: Some("x".repeat(50_000)),
        ..Default::default()
    };
    TestRepChannelData {
        player_states: [(1, player)].into(),
        ..Default::default()
    }
}

/// A client that has stopped reading and updates that pile up for it.
fn stalled(gateway: &Gateway, channel: u32) -> TcpStream {
    use lagometer_protocol::messages::channeldpb::{AuthMessage, SubscribedToChannelMessage};
    use lagometer_protocol::{FrameBuilder, MessagePack, ToGateway};
    let mut stream = TcpStream::connect(gateway.clients).unwrap();
    let mut send = |channel_id, request: ToGateway| {
        let mut body = Vec::new();
        request.encode_body(&mut body);
        let mut frame = FrameBuilder::new();
        frame
            .push(&MessagePack {
                channel_id,
                stub_id: 1,
                msg_type: request.msg_type() as u32,
                body: &body,
                ..Default::default()
            })
            .unwrap();
        stream.write_all(frame.finish().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    };
    send(
        0,
        ToGateway::Auth(AuthMessage {
            player_identifier_token: "stalled".into(),
            login_token: "lt".into(),
        }),
    );
    send(
        channel,
        ToGateway::SubToChannel(SubscribedToChannelMessage {
            conn_id: 0,
            sub_options: Some(options(READ, 20)),
        }),
    );
    stream
}

pub(crate) fn c27_a_reader_that_stops_harms_only_itself(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &TestRepChannelData::default(), None);
    let mut reader = gateway.client();
    reader.sub(channel, options(READ, 20));
    let stalled = stalled(&gateway, channel);
    // Some 25 MB: more than sockets and queues hold.
    for number in 1..=500 {
        owner.update(channel, GAME, &named(number));
        std::thread::sleep(Duration::from_millis(4));
    }
    let mut last = 0;
    while last != 500 {
        let data: TestRepChannelData = reader.data(channel);
        if let Some(player) = data.player_states.get(&1) {
            last = player.player_id.unwrap();
        }
    }
    drop(stalled);
    owner.update(channel, GAME, &named(501));
    reader.data::<TestRepChannelData>(channel);
    gateway.assert_serves();
}

pub(crate) fn c30_connection_ids_that_run_out_are_no_end(whose: Whose) {
    let mut gateway = Gateway::start_with(
        whose,
        &Settings {
            conn_id_bits: 4,
            ..Settings::default()
        },
    );
    for _ in 0..40 {
        let client = gateway.client();
        assert!((1..16).contains(&client.id));
    }
    assert!(gateway.is_alive(), "{}", gateway.log());
}

pub(crate) fn c30_noise_ends_its_own_connection_only(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut seed = 7u64;
    for _ in 0..60 {
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        })
        .take(900)
        .collect();
        let mut stream = TcpStream::connect(gateway.clients).unwrap();
        let _ = stream.write_all(&noise);
        let mut framed = TcpStream::connect(gateway.servers).unwrap();
        let _ = framed.write_all(b"CH\x03\x84\0");
        let _ = framed.write_all(&noise);
    }
    gateway.assert_serves();
}

pub(crate) fn c30_a_bomb_is_not_unpacked(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    // Snappy that claims four gigabytes.
    let mut stream = TcpStream::connect(gateway.clients).unwrap();
    stream
        .write_all(b"CH\0\x08\x01\xff\xff\xff\xff\x0f\0\0\0")
        .unwrap();
    gateway.assert_serves();
}

pub(crate) fn c30_a_frame_a_byte_at_a_time_and_a_crowd_that_comes_and_goes(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut slow = TcpStream::connect(gateway.clients).unwrap();
    slow.write_all(b"C").unwrap();
    for _ in 0..300 {
        drop(TcpStream::connect(gateway.clients).unwrap());
    }
    slow.write_all(b"H").unwrap();
    gateway.assert_serves();
}

pub(crate) fn c30_what_is_sent_to_a_removed_channel_is_dropped(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut server = gateway.server();
    let mut other = gateway.server();
    for _ in 0..50 {
        let channel = server
            .create(CreateChannelMessage {
                channel_type: ChannelType::Test.into(),
                ..Default::default()
            })
            .channel_id;
        server.send(|outbox| outbox.remove_channel(channel));
        for _ in 0..5 {
            other.update(channel, GAME, &TestRepChannelData::default());
            other.broadcast(channel, 2, 0, b"?");
        }
    }
    gateway.assert_serves();
}

pub(crate) fn c26_metrics_have_their_names(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut server = gateway.server();
    let channel = server.create_test(GAME, &TestRepChannelData::default(), None);
    let mut client = gateway.client();
    client.sub(
        channel,
        ChannelSubscriptionOptions {
            ..options(READ, 20)
        },
    );
    client.data::<TestRepChannelData>(channel);
    let page = gateway.metrics_page();
    for series in [
        "messages_in{connType=\"SERVER\"}",
        "messages_in{connType=\"CLIENT\"}",
        "messages_out{connType=\"CLIENT\"}",
        "packets_in{connType=\"CLIENT\"}",
        "packets_out{connType=\"CLIENT\"}",
        "packets_comb{connType=\"CLIENT\"}",
        "bytes_in{connType=\"CLIENT\"}",
        "bytes_out{connType=\"CLIENT\"}",
        "connection_num{type=\"CLIENT\"} 1",
        "connection_num{type=\"SERVER\"} 1",
        "channel_num{type=\"GLOBAL\"} 1",
        "channel_tick_duration{type=\"GLOBAL\"}",
        "process_cpu_seconds_total",
    ] {
        assert!(page.contains(series), "no {series} in\n{page}");
    }
}
