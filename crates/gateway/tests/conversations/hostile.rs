//! Messages that are well formed and mean harm: counts, depths, lengths and
//! numbers at the edges, every type of message.

use lagometer_protocol::ServerForward;
use lagometer_protocol::messages::channeldpb::spatial_interest_query::{
    BoxAoi, ConeAoi, SphereAoi, SpotsAoi,
};
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, AuthMessage, ChannelDataMergeOptions, ChannelDataUpdateMessage,
    ChannelSubscriptionOptions, CreateChannelMessage, CreateEntityChannelMessage,
    DisconnectMessage, ListChannelMessage, MessagePack, QuerySpatialChannelMessage,
    RemoveChannelMessage, RemoveEntityGroupMessage, SpatialInfo, SpatialInterestQuery,
    SubscribedToChannelMessage, UnsubscribedFromChannelMessage, UpdateSpatialInterestMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::tankspb::{TankGameChannelData, TankState};
use lagometer_protocol::messages::tpspb;
use lagometer_protocol::messages::unrealpb::{
    ActorState, DestroyObjectMessage, FRepMovement, FVector, SpawnObjectMessage, UnrealObjectRef,
};
use prost::Message;
use prost_types::Any;

use super::choices::Choices;

/// Names that attackers log in by.
pub(crate) const NAMES: [&str; 6] = ["mallory", "oscar", "trudy", "master", "reader-1", ""];

/// A message of any type, sound by itself.
pub(crate) fn message(choices: &mut Choices<'_>) -> MessagePack {
    let (msg_type, body) = match choices.below(30) {
        0..4 => (8, update(choices)),
        4..8 => (6, subscribe(choices)),
        8..10 => (7, unsubscribe(choices)),
        10..13 => (3, create(choices)),
        13..15 => (15, create_entity(choices)),
        15 => (4, remove(choices)),
        16 => (5, list(choices)),
        17 => (1, login(choices).encode_to_vec()),
        18 => (9, disconnect(choices)),
        19 => (10, create(choices)),
        20 => (11, places(choices)),
        21 | 22 => (14, interest(choices)),
        23 | 24 => group(choices),
        25..28 => user_space(choices),
        28 => (99, Vec::new()),
        _ => (number(choices), any_body(choices)),
    };
    MessagePack {
        channel_id: channel(choices),
        broadcast: broadcast(choices),
        stub_id: choices.pick(&[0, 1, 7, u32::MAX]),
        msg_type,
        msg_body: body.into(),
    }
}

/// A login by one of a few names, some of them others'.
pub(crate) fn login(choices: &mut Choices<'_>) -> AuthMessage {
    let player = if choices.one_in(12) {
        text(choices)
    } else {
        choices.pick(&NAMES).to_owned()
    };
    AuthMessage {
        player_identifier_token: player,
        login_token: if choices.one_in(12) {
            text(choices)
        } else {
            "token".to_owned()
        },
    }
}

/// A connection's number: mostly one there is.
fn id(choices: &mut Choices<'_>) -> u32 {
    if choices.one_in(12) {
        number(choices)
    } else {
        choices.below(16) as u32
    }
}

fn number(choices: &mut Choices<'_>) -> u32 {
    choices.pick(&[
        0,
        1,
        2,
        98,
        0xffff,
        0x1_0000,
        0x8_0000,
        0x7fff_ffff,
        0x8000_0000,
        u32::MAX,
    ])
}

fn channel(choices: &mut Choices<'_>) -> u32 {
    match choices.below(12) {
        0..4 => 0,
        4..7 => choices.below(5) as u32 + 1,
        7..9 => 0x1_0000 + choices.below(17) as u32,
        9..11 => entity(choices),
        _ => number(choices),
    }
}

fn entity(choices: &mut Choices<'_>) -> u32 {
    0x8_0000 + 2 * choices.below(6) as u32
}

fn broadcast(choices: &mut Choices<'_>) -> u32 {
    match choices.below(4) {
        0 => 0,
        1 => 1,
        2 => choices.below(65) as u32,
        _ => number(choices),
    }
}

/// How many there are of something that a peer may repeat.
fn count(choices: &mut Choices<'_>) -> usize {
    match choices.below(24) {
        0 => 300,
        1 => 5000,
        2..6 => 0,
        _ => 1 + choices.below(4),
    }
}

fn text(choices: &mut Choices<'_>) -> String {
    match choices.below(10) {
        0 => "a.".repeat(choices.pick(&[16, 33, 400, 8000])),
        1 => "x".repeat(choices.pick(&[255, 16_385, 33_000, 60_000])),
        2 => "\u{0}\u{7f}\u{fffd}\n".to_owned(),
        3 => "actorState.replicatedMovement.location".to_owned(),
        4 => "chatMessages.content".to_owned(),
        5 => "chatMessages".to_owned(),
        6 => "..".to_owned(),
        7 => "tankStates.health".to_owned(),
        _ => String::new(),
    }
}

fn options(choices: &mut Choices<'_>) -> Option<ChannelSubscriptionOptions> {
    if choices.one_in(4) {
        return None;
    }
    let mut some = |chances| choices.one_in(chances);
    let has = [some(2), some(4), some(2), some(2), some(3), some(3)];
    let masks = if has[1] {
        let one = text(choices);
        let kept = count(choices).min(60_000 / (one.len() + 2));
        let mut masks = vec![one; kept];
        for mask in masks.iter_mut().skip(1).step_by(2) {
            *mask = text(choices);
            mask.truncate(40);
        }
        masks
    } else {
        Vec::new()
    };
    let intervals = [0, 1, 5, 20, 20, 33, 50, 100, 1000, 0x7fff_ffff, u32::MAX];
    Some(ChannelSubscriptionOptions {
        data_access: has[0].then(|| choices.pick(&[0, 1, 1, 2, 2, 2, 3, -1, i32::MAX])),
        data_field_masks: masks,
        fan_out_interval_ms: has[2].then(|| choices.pick(&intervals)),
        fan_out_delay_ms: has[3].then(|| choices.pick(&[0, -50, 10, 3000, i32::MIN, i32::MAX])),
        skip_self_update_fan_out: has[4].then(|| choices.one_in(2)),
        skip_first_fan_out: has[5].then(|| choices.one_in(2)),
    })
}

fn merge_options(choices: &mut Choices<'_>) -> Option<ChannelDataMergeOptions> {
    choices.one_in(3).then(|| ChannelDataMergeOptions {
        should_replace_list: choices.one_in(3),
        list_size_limit: choices.pick(&[0, 1, 3, 100, u32::MAX]),
        truncate_top: choices.one_in(2),
        should_check_removable_map_field: choices.one_in(2),
    })
}

/// Data with a URL: mostly what the URL says.
fn any(choices: &mut Choices<'_>) -> Any {
    let (name, mut value) = match choices.below(8) {
        0 | 1 => ("chatpb.ChatChannelData", chat(choices)),
        2 | 3 => ("tpspb.EntityChannelData", entity_data(choices)),
        4 => ("tankspb.TankGameChannelData", tanks(choices)),
        5 => ("tpspb.TestRepChannelData", nested(choices)),
        6 => ("unrealpb.SpatialChannelData", nested(choices)),
        _ => ("no.such.Type", any_body(choices)),
    };
    let mut type_url = format!("type.googleapis.com/{name}");
    match choices.below(16) {
        0 => value = any_body(choices),
        1 => name.clone_into(&mut type_url),
        2 => type_url = text(choices),
        3 => type_url.insert_str(0, &"u".repeat(choices.pick(&[200, 20_000, 40_000]))),
        4 => value.truncate(value.len() / 2),
        _ => {}
    }
    Any { type_url, value }
}

fn chat(choices: &mut Choices<'_>) -> Vec<u8> {
    let long = choices.pick(&[1, 20, 300]);
    let message = ChatMessage {
        sender: "attacker".to_owned(),
        send_time: choices.pick(&[0, i64::MAX, i64::MIN, 1]),
        content: "c".repeat(long),
        ..ChatMessage::default()
    };
    let kept = count(choices).min(50_000 / (long + 32));
    let chat_messages = vec![message; kept];
    ChatChannelData { chat_messages }.encode_to_vec()
}

fn tanks(choices: &mut Choices<'_>) -> Vec<u8> {
    let state = |removed| TankState {
        removed,
        health: 5,
        ..TankState::default()
    };
    let tank_states = (0..count(choices) as u32).map(|key| (key, state(key % 3 == 2)));
    TankGameChannelData {
        tank_states: tank_states.collect(),
        ..TankGameChannelData::default()
    }
    .encode_to_vec()
}

fn entity_data(choices: &mut Choices<'_>) -> Vec<u8> {
    tpspb::EntityChannelData {
        obj_ref: choices.one_in(2).then(|| object(choices)),
        actor_state: choices.one_in(2).then(|| ActorState {
            replicated_movement: Some(FRepMovement {
                location: Some(vector(choices)),
                ..FRepMovement::default()
            }),
            removed: choices.one_in(8),
            ..ActorState::default()
        }),
        ..tpspb::EntityChannelData::default()
    }
    .encode_to_vec()
}

fn object(choices: &mut Choices<'_>) -> UnrealObjectRef {
    UnrealObjectRef {
        net_guid: Some(match choices.below(6) {
            0 => number(choices),
            _ => entity(choices),
        }),
        class_path: choices.one_in(8).then(|| text(choices)),
        ..UnrealObjectRef::default()
    }
}

fn vector(choices: &mut Choices<'_>) -> FVector {
    let spots = [0.0, 5.0, 15.0, 25.0, 39.9, -1.0, 1e30, f32::NAN, f32::MAX];
    let mut axis = || (!choices.one_in(4)).then(|| choices.pick(&spots));
    FVector {
        x: axis(),
        y: axis(),
        z: axis(),
    }
}

/// Messages within messages, as deep as the bytes allow, or of random bytes.
fn nested(choices: &mut Choices<'_>) -> Vec<u8> {
    let depth = choices.pick(&[1, 3, 30, 101, 5000]);
    let mut value = Vec::new();
    let key = (choices.pick(&[1_u8, 2, 3, 9]) << 3) | 2;
    for _ in 0..depth {
        let mut outer = vec![key];
        prost::encoding::encode_varint(value.len() as u64, &mut outer);
        // What is inside comes last; the whole is written back to front.
        outer.reverse();
        value.extend(outer);
    }
    value.reverse();
    value
}

fn any_body(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.below(5) {
        0 => Vec::new(),
        1 => nested(choices),
        2 => vec![0xff; choices.pick(&[1, 9, 10, 1000])],
        3 => b"\x08\x01\x12\x00".repeat(choices.pick(&[1, 100, 5000])),
        _ => {
            let len = choices.below(40);
            (0..len).map(|_| choices.below(256) as u8).collect()
        }
    }
}

fn update(choices: &mut Choices<'_>) -> Vec<u8> {
    ChannelDataUpdateMessage {
        data: (!choices.one_in(20)).then(|| any(choices)),
        context_conn_id: id(choices),
    }
    .encode_to_vec()
}

fn subscribe(choices: &mut Choices<'_>) -> Vec<u8> {
    SubscribedToChannelMessage {
        conn_id: id(choices),
        sub_options: options(choices),
    }
    .encode_to_vec()
}

fn unsubscribe(choices: &mut Choices<'_>) -> Vec<u8> {
    let conn_id = id(choices);
    UnsubscribedFromChannelMessage { conn_id }.encode_to_vec()
}

fn create(choices: &mut Choices<'_>) -> Vec<u8> {
    CreateChannelMessage {
        channel_type: choices.pick(&[0, 1, 1, 2, 3, 3, 4, 4, 5, 100, -1, i32::MAX]),
        metadata: text(choices),
        sub_options: options(choices),
        data: choices.one_in(2).then(|| any(choices)),
        merge_options: merge_options(choices),
    }
    .encode_to_vec()
}

fn create_entity(choices: &mut Choices<'_>) -> Vec<u8> {
    CreateEntityChannelMessage {
        entity_id: if choices.one_in(8) {
            number(choices)
        } else {
            entity(choices)
        },
        metadata: text(choices),
        sub_options: options(choices),
        data: choices.one_in(2).then(|| Any {
            type_url: "type.googleapis.com/tpspb.EntityChannelData".to_owned(),
            value: entity_data(choices),
        }),
        merge_options: merge_options(choices),
        is_well_known: choices.one_in(3),
    }
    .encode_to_vec()
}

fn remove(choices: &mut Choices<'_>) -> Vec<u8> {
    let channel_id = channel(choices);
    RemoveChannelMessage { channel_id }.encode_to_vec()
}

fn list(choices: &mut Choices<'_>) -> Vec<u8> {
    let filter = choices.pick(&["", "a", "xxxxx"]).to_owned();
    let filters = choices.pick(&[0, 0, 1, 20, 10_000]);
    ListChannelMessage {
        type_filter: choices.pick(&[0, 0, 1, 5, -1]),
        metadata_filters: vec![filter; filters],
    }
    .encode_to_vec()
}

fn disconnect(choices: &mut Choices<'_>) -> Vec<u8> {
    let conn_id = id(choices);
    DisconnectMessage { conn_id }.encode_to_vec()
}

fn length(choices: &mut Choices<'_>) -> f64 {
    choices.pick(&[
        0.0,
        5.0,
        15.0,
        35.0,
        1e-9,
        1e-300,
        1e300,
        -1.0,
        f64::NAN,
        f64::INFINITY,
    ])
}

fn spot(choices: &mut Choices<'_>) -> SpatialInfo {
    SpatialInfo {
        x: length(choices),
        y: length(choices),
        z: length(choices),
    }
}

fn places(choices: &mut Choices<'_>) -> Vec<u8> {
    let one = spot(choices);
    QuerySpatialChannelMessage {
        spatial_info: vec![one; count(choices).min(2000)],
    }
    .encode_to_vec()
}

fn interest(choices: &mut Choices<'_>) -> Vec<u8> {
    // A centre in the world, mostly, for it to mean anything.
    let centre = |choices: &mut Choices<'_>| {
        let known = SpatialInfo {
            x: 5.0,
            y: 0.0,
            z: 15.0,
        };
        Some(if choices.one_in(3) {
            spot(choices)
        } else {
            known
        })
    };
    let query = SpatialInterestQuery {
        spots_aoi: choices.one_in(3).then(|| SpotsAoi {
            spots: vec![spot(choices); count(choices).min(1000)],
            dists: vec![number(choices); count(choices)],
        }),
        box_aoi: choices.one_in(3).then(|| BoxAoi {
            center: centre(choices),
            extent: Some(spot(choices)),
        }),
        sphere_aoi: choices.one_in(3).then(|| SphereAoi {
            center: centre(choices),
            radius: length(choices),
        }),
        cone_aoi: choices.one_in(3).then(|| ConeAoi {
            center: centre(choices),
            direction: Some(spot(choices)),
            angle: length(choices),
            radius: length(choices),
        }),
    };
    UpdateSpatialInterestMessage {
        conn_id: id(choices),
        query: (!choices.one_in(10)).then_some(query),
    }
    .encode_to_vec()
}

fn group(choices: &mut Choices<'_>) -> (u32, Vec<u8>) {
    let kind = choices.pick(&[0, 0, 1, 1, 2, -1]);
    let mut ids: Vec<u32> = (0..count(choices)).map(|_| entity(choices)).collect();
    ids.extend(choices.one_in(6).then(|| number(choices)));
    if choices.one_in(2) {
        let message = AddEntityGroupMessage {
            r#type: kind,
            entities_to_add: ids,
        };
        (16, message.encode_to_vec())
    } else {
        let message = RemoveEntityGroupMessage {
            r#type: kind,
            entities_to_remove: ids,
        };
        (17, message.encode_to_vec())
    }
}

/// The game's own messages, some in the wrapping that servers use, some that
/// hold objects.
fn user_space(choices: &mut Choices<'_>) -> (u32, Vec<u8>) {
    let msg_type = choices.pick(&[100, 103, 103, 104, 104, 150, 65_535, 65_536, u32::MAX]);
    let payload = match msg_type {
        103 => SpawnObjectMessage {
            obj: (!choices.one_in(8)).then(|| object(choices)),
            channel_id: choices.one_in(2).then(|| channel(choices)),
            location: choices.one_in(2).then(|| vector(choices)),
            ..SpawnObjectMessage::default()
        }
        .encode_to_vec(),
        104 => DestroyObjectMessage {
            net_id: entity(choices),
            ..DestroyObjectMessage::default()
        }
        .encode_to_vec(),
        _ => vec![b'p'; choices.pick(&[0, 1, 100, 5000, 65_000])],
    };
    if choices.one_in(4) {
        return (msg_type, any_body(choices));
    }
    let mut body = Vec::new();
    ServerForward {
        client_conn_id: id(choices),
        payload: &payload,
    }
    .encode(&mut body);
    (msg_type, body)
}
