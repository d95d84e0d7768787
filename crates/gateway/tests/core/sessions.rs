//! The fuzz target of whole sessions, over inputs drawn from seeds.

#[path = "../../../../fuzz/bodies/sessions.rs"]
mod target;

use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, CreateChannelMessage, CreateEntityChannelMessage,
    SubscribedToChannelMessage, UpdateSpatialInterestMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::update_body;
use prost::Message;

use crate::schedules::Draw;
use crate::spatial::at;
use crate::world::{any, writing};

/// Bodies that mean something, for the messages that the body of the target
/// puts together.
fn bodies() -> Vec<Vec<u8>> {
    let chat = ChatChannelData {
        chat_messages: vec![ChatMessage {
            content: "hello".repeat(20),
            ..ChatMessage::default()
        }],
    };
    let mut bodies = vec![
        Vec::new(),
        update_body(
            "type.googleapis.com/chatpb.ChatChannelData",
            &chat.encode_to_vec(),
        ),
        UpdateSpatialInterestMessage {
            conn_id: 3,
            query: None,
        }
        .encode_to_vec(),
    ];
    for channel_type in [1, 2, 3, 4] {
        bodies.push(
            CreateChannelMessage {
                channel_type,
                sub_options: Some(writing(20)),
                data: (channel_type < 4).then(|| any("chatpb.ChatChannelData", &chat)),
                ..CreateChannelMessage::default()
            }
            .encode_to_vec(),
        );
    }
    for entity_id in [0x80_000, 0x80_002] {
        for x in [5.0, 15.0, 35.0] {
            let data = at(entity_id, x);
            bodies.push(update_body(
                "type.googleapis.com/tpspb.EntityChannelData",
                &data.encode_to_vec(),
            ));
            bodies.push(
                CreateEntityChannelMessage {
                    entity_id,
                    data: Some(any("tpspb.EntityChannelData", &data)),
                    is_well_known: x > 30.0,
                    ..CreateEntityChannelMessage::default()
                }
                .encode_to_vec(),
            );
        }
    }
    for conn_id in 1..5 {
        bodies.push(
            SubscribedToChannelMessage {
                conn_id,
                sub_options: Some(ChannelSubscriptionOptions {
                    data_access: Some(2),
                    data_field_masks: vec!["chatMessages.content".into()],
                    fan_out_interval_ms: Some(0),
                    ..ChannelSubscriptionOptions::default()
                }),
            }
            .encode_to_vec(),
        );
    }
    bodies.retain(|body| body.len() < 256);
    bodies
}

#[test]
fn sessions_of_anything_hold() {
    let bodies = bodies();
    for seed in 0..3000 {
        let mut draw = Draw::new(seed);
        let mut input = Vec::new();
        for _ in 0..120 {
            let command = draw.below(256) as u8;
            input.push(command);
            if command & 31 > 3 {
                let body = &bodies[draw.below(bodies.len() as u64) as usize];
                input.extend((0..4).map(|_| draw.below(256) as u8));
                input.push(body.len() as u8);
                input.extend_from_slice(body);
            } else {
                input.push(draw.below(256) as u8);
            }
            if draw.below(30) == 0 {
                let place = draw.below(input.len() as u64) as usize;
                input[place] ^= 1 << draw.below(8);
            }
        }
        let result = std::panic::catch_unwind(|| target::body(&input));
        assert!(result.is_ok(), "seed {seed}");
    }
}
