//! Merging by example: what the rules mean for the data games keep.

use std::collections::BTreeMap;

use lagometer_protocol::merge::{
    Delta, Key, MergeContext, MergeError, MergeLimits, MergeOptions, Removal, State, Taken, Window,
};
use lagometer_protocol::messages::channeldpb;
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::tankspb::{TankGameChannelData, TankState};
use lagometer_protocol::messages::tpspb::{EntityChannelData, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{
    ActorState, FRepMovement, FVector, PawnState, SpatialChannelData, SpatialEntityState,
    UnrealObjectRef,
};
use lagometer_protocol::schema::Schema;
use lagometer_protocol::wire::{Value, WireError};
use prost::Message;

const PLAIN: MergeContext = MergeContext {
    options: None,
    now_unix_ms: 0,
};

fn state(type_name: &str) -> State {
    let data_type = Schema::bundled().find(type_name);
    assert!(data_type.is_some());
    State::new(data_type, MergeLimits::default())
}

fn delta(type_name: &str) -> Delta {
    Delta::new(Schema::bundled().find(type_name), MergeLimits::default())
}

fn actor(id: u32, actor: ActorState) -> TestRepChannelData {
    TestRepChannelData {
        actor_states: [(id, actor)].into(),
        ..TestRepChannelData::default()
    }
}

fn pawn(id: u32, pitch: u32) -> TestRepChannelData {
    let pawn = PawnState {
        remote_view_pitch: Some(pitch),
        ..PawnState::default()
    };
    TestRepChannelData {
        pawn_states: [(id, pawn)].into(),
        ..TestRepChannelData::default()
    }
}

fn gone() -> ActorState {
    ActorState {
        removed: true,
        ..ActorState::default()
    }
}

#[test]
fn a_removed_actor_takes_its_states_along_and_the_removal_is_passed_on() {
    let name = "tpspb.TestRepChannelData";
    let mut state = state(name);
    let mut delta = delta(name);
    let updates = [
        actor(7, ActorState::default()),
        pawn(7, 90),
        pawn(8, 45),
        actor(7, gone()),
    ];
    for update in updates {
        let update = update.encode_to_vec();
        state.merge(&update, &PLAIN).unwrap();
        assert_eq!(delta.merge(&update, &PLAIN), Ok(Taken::Merged));
    }
    assert_eq!(
        TestRepChannelData::decode(&*state.to_bytes()).unwrap(),
        pawn(8, 45)
    );
    let passed_on = TestRepChannelData::decode(&*delta.to_bytes()).unwrap();
    assert!(passed_on.actor_states[&7].removed);
    assert_eq!(passed_on.pawn_states, pawn(8, 45).pawn_states);
}

#[test]
fn what_was_removed_comes_back_in_a_delta_of_its_own() {
    let mut delta = delta("tpspb.TestRepChannelData");
    let back = pawn(7, 1).encode_to_vec();
    delta.merge(&back, &PLAIN).unwrap();
    delta
        .merge(&actor(7, gone()).encode_to_vec(), &PLAIN)
        .unwrap();
    let before = delta.to_bytes();
    assert_eq!(delta.merge(&back, &PLAIN), Ok(Taken::MustFollow));
    assert_eq!(delta.to_bytes(), before);
    let other = pawn(8, 1).encode_to_vec();
    assert_eq!(delta.merge(&other, &PLAIN), Ok(Taken::Merged));
    let again = actor(7, gone()).encode_to_vec();
    assert_eq!(delta.merge(&again, &PLAIN), Ok(Taken::Merged));
    delta.clear();
    assert!(delta.is_empty());
    assert_eq!(delta.merge(&back, &PLAIN), Ok(Taken::Merged));
}

#[test]
fn an_entity_keeps_its_reference_and_reports_where_it_is() {
    let at = |x, y, z| EntityChannelData {
        actor_state: Some(ActorState {
            replicated_movement: Some(FRepMovement {
                location: Some(FVector { x, y, z }),
                ..FRepMovement::default()
            }),
            ..ActorState::default()
        }),
        ..EntityChannelData::default()
    };
    let reference = |id| UnrealObjectRef {
        net_guid: Some(id),
        ..UnrealObjectRef::default()
    };
    let mut state = state("tpspb.EntityChannelData");
    state
        .load(&at(Some(1.0), Some(2.0), None).encode_to_vec())
        .unwrap();
    assert_eq!(
        state.set_message(1, &reference(0x80000).encode_to_vec()),
        Ok(true)
    );

    let mut update = at(None, Some(5.0), Some(3.0));
    update.obj_ref = Some(reference(1));
    state.merge(&update.encode_to_vec(), &PLAIN).unwrap();

    assert_eq!(state.value(&[1, 1]), Some(Value::Varint(0x80000)));
    let location = state.message(&[2, 11, 3]).unwrap();
    assert_eq!(
        FVector::decode(&*location).unwrap(),
        FVector {
            x: Some(1.0),
            y: Some(5.0),
            z: Some(3.0)
        }
    );
    assert_eq!(
        state.value(&[2, 11, 3, 2]),
        Some(Value::Fixed32(5f32.to_bits()))
    );
    assert_eq!(state.value(&[2, 11, 4]), None);
    assert_eq!(state.message(&[3]), None);
    assert_eq!(state.set_message(99, &[]), Ok(false));
    assert!(state.set_message(1, &[0x0a]).is_err());
}

#[test]
fn a_spatial_channel_says_which_entities_went() {
    let entity = |id, state| SpatialChannelData {
        entities: [(id, state)].into(),
    };
    let there = |path: &str| SpatialEntityState {
        obj_ref: Some(UnrealObjectRef {
            class_path: Some(path.into()),
            ..UnrealObjectRef::default()
        }),
        ..SpatialEntityState::default()
    };
    let mut state = state("unrealpb.SpatialChannelData");
    let key = Key::from(9);
    assert_eq!(
        state.insert_entry(1, key.clone(), &there("first").encode_to_vec()),
        Ok(true)
    );
    state
        .merge(&entity(9, there("second")).encode_to_vec(), &PLAIN)
        .unwrap();
    assert_eq!(state.to_bytes(), entity(9, there("first")).encode_to_vec());
    assert_eq!(state.keys(1).collect::<Vec<_>>(), [&key]);

    let removed = SpatialEntityState {
        removed: true,
        ..SpatialEntityState::default()
    };
    let removals = state
        .merge(&entity(9, removed).encode_to_vec(), &PLAIN)
        .unwrap();
    assert_eq!(
        removals,
        [Removal {
            field: 1,
            key: key.clone()
        }]
    );
    assert!(state.is_empty());
    assert!(!state.remove_entry(1, &key));
    assert_eq!(state.insert_entry(2, key, &[]), Ok(false));
}

#[test]
fn a_tanks_health_goes_down_to_zero() {
    let tank = |health, is_ai| TankGameChannelData {
        tank_states: [(
            1,
            TankState {
                removed: false,
                health,
                is_ai,
            },
        )]
        .into(),
        transform_states: BTreeMap::new(),
    };
    let mut state = state("tankspb.TankGameChannelData");
    state
        .merge(&tank(100, true).encode_to_vec(), &PLAIN)
        .unwrap();
    state
        .merge(&tank(0, false).encode_to_vec(), &PLAIN)
        .unwrap();
    assert_eq!(state.to_bytes(), tank(0, true).encode_to_vec());
}

#[test]
fn a_chat_keeps_what_is_recent() {
    let said = |times: &[i64]| {
        ChatChannelData {
            chat_messages: times
                .iter()
                .map(|&send_time| ChatMessage {
                    send_time,
                    ..ChatMessage::default()
                })
                .collect(),
        }
        .encode_to_vec()
    };
    let context = MergeContext {
        options: Some(MergeOptions {
            list_size_limit: 2,
            truncate_top: true,
            ..MergeOptions::default()
        }),
        now_unix_ms: 100_000,
    };
    let mut state = state("chatpb.ChatChannelData");
    state
        .merge(&said(&[80_000, 95_000, 96_000]), &context)
        .unwrap();
    state.merge(&said(&[97_000, 98_000]), &context).unwrap();
    assert_eq!(
        state.to_bytes(),
        said(&[95_000, 96_000, 97_000, 98_000]),
        "all of the last ten seconds, though the limit is two"
    );
    let later = MergeContext {
        now_unix_ms: 200_000,
        ..context
    };
    state.merge(&said(&[190_500]), &later).unwrap();
    assert_eq!(state.to_bytes(), said(&[98_000, 190_500]));
}

#[test]
fn any_update_cuts_a_list_that_the_channel_began_too_long_with() {
    let context = MergeContext {
        options: Some(MergeOptions {
            list_size_limit: 2,
            ..MergeOptions::default()
        }),
        ..MergeContext::default()
    };
    let filters = |texts: &[&str]| channeldpb::ListChannelMessage {
        metadata_filters: texts.iter().map(|&text| text.to_owned()).collect(),
        ..Default::default()
    };
    let mut state = state("channeldpb.ListChannelMessage");
    state
        .load(&filters(&["a", "b", "c"]).encode_to_vec())
        .unwrap();
    state.merge(&[], &context).unwrap();
    assert_eq!(state.to_bytes(), filters(&["a", "b"]).encode_to_vec());
}

#[test]
fn data_of_an_unknown_type_is_concatenated() {
    let mut state = State::new(
        None,
        MergeLimits {
            max_encoded_bytes: 8,
        },
    );
    let mut delta = Delta::new(None, MergeLimits::default());
    for update in [&[0x08, 1][..], &[0x12, 1, 7]] {
        state.merge(update, &PLAIN).unwrap();
        delta.merge(update, &PLAIN).unwrap();
    }
    assert_eq!(state.to_bytes(), [0x08, 1, 0x12, 1, 7]);
    assert_eq!(delta.to_bytes(), state.to_bytes());
    assert_eq!(state.to_parts(2), [&[0x08, 1][..], &[0x12, 1, 7]]);
    assert_eq!(
        state.merge(&[0x12, 9], &PLAIN),
        Err(MergeError::Malformed(WireError::Truncated)),
        "half a message would swallow what follows"
    );
    assert_eq!(
        state.merge(&[0x08, 1, 0x08, 2], &PLAIN),
        Err(MergeError::TooLarge { limit_bytes: 8 })
    );
    state.load(&[0x08, 9]).unwrap();
    assert_eq!(state.to_bytes(), [0x08, 9]);
    assert_eq!(state.data_type(), None);
}

#[test]
fn fields_that_are_not_known_are_carried_along() {
    let mut state = state("tpspb.EntityChannelData");
    // Field 99 at the top, field 77 within actorState.
    state
        .merge(&[0x9a, 0x06, 1, b'a', 0x12, 3, 0xe8, 0x04, 1], &PLAIN)
        .unwrap();
    state.merge(&[0x9a, 0x06, 1, b'b'], &PLAIN).unwrap();
    assert_eq!(
        state.to_bytes(),
        [
            0x12, 3, 0xe8, 0x04, 1, 0x9a, 0x06, 1, b'a', 0x9a, 0x06, 1, b'b'
        ]
    );
}

#[test]
fn data_does_not_outgrow_its_limit_but_may_be_overwritten_for_ever() {
    let limits = MergeLimits {
        max_encoded_bytes: 2000,
    };
    let mut state = State::new(Schema::bundled().find("tpspb.TestRepChannelData"), limits);
    for pitch in 0..10_000 {
        state
            .merge(&pawn(pitch % 100, pitch).encode_to_vec(), &PLAIN)
            .unwrap();
    }
    let before = state.to_bytes();
    let refused = (100..1000)
        .map(|id| state.merge(&pawn(id, 1).encode_to_vec(), &PLAIN))
        .filter(Result::is_err)
        .count();
    assert!(refused > 700);
    assert!(state.encoded_len() <= 2000);
    assert!(state.to_bytes().len() > before.len());
    let large = vec![0; 2001];
    assert_eq!(
        state.load(&large),
        Err(MergeError::Malformed(WireError::BadKey))
    );
    let mut name = TestRepChannelData::default();
    name.player_states.entry(1).or_default().player_name = Some("x".repeat(3000));
    let kept = state.to_bytes();
    let too_large = Err(MergeError::TooLarge { limit_bytes: 2000 });
    assert_eq!(state.load(&name.encode_to_vec()), too_large);
    assert_eq!(state.to_bytes(), kept);
}

#[test]
fn a_message_of_a_oneof_comes_back_in_a_delta_of_its_own() {
    let mut schema = Schema::empty();
    schema
        .add_proto_source(
            "hand.proto",
            "syntax = \"proto3\"; message Sword { uint32 a = 1; uint32 b = 2; } \
             message Hand { oneof holds { Sword sword = 1; uint32 coins = 2; } }",
        )
        .unwrap();
    let sword_a = [0x0a, 2, 0x08, 1];
    let sword_b = [0x0a, 2, 0x10, 1];
    let coins = [0x10, 5];
    let mut delta = Delta::new(schema.find("Hand"), MergeLimits::default());
    assert_eq!(delta.merge(&sword_a, &PLAIN), Ok(Taken::Merged));
    assert_eq!(delta.merge(&sword_b, &PLAIN), Ok(Taken::Merged));
    assert_eq!(delta.merge(&coins, &PLAIN), Ok(Taken::Merged));
    assert_eq!(delta.to_bytes(), coins);
    assert_eq!(delta.merge(&sword_b, &PLAIN), Ok(Taken::MustFollow));
}

#[test]
fn lists_follow_the_options() {
    let list = |texts: &[&str]| {
        lagometer_protocol::messages::channeldpb::ListChannelMessage {
            type_filter: 0,
            metadata_filters: texts.iter().map(ToString::to_string).collect(),
        }
        .encode_to_vec()
    };
    let merged = |options: MergeOptions| {
        let context = MergeContext {
            options: Some(options),
            now_unix_ms: 0,
        };
        let mut state = state("channeldpb.ListChannelMessage");
        for texts in [&["a", "b"][..], &["c", "d"], &[]] {
            state.merge(&list(texts), &context).unwrap();
        }
        state.to_bytes()
    };
    let none = MergeOptions::default();
    assert_eq!(merged(none), list(&["a", "b", "c", "d"]));
    let limit = MergeOptions {
        list_size_limit: 3,
        ..none
    };
    assert_eq!(merged(limit), list(&["a", "b", "c"]));
    let top = MergeOptions {
        truncate_top: true,
        ..limit
    };
    assert_eq!(merged(top), list(&["b", "c", "d"]));
    let replace = MergeOptions {
        replace_list: true,
        list_size_limit: 1,
        ..none
    };
    assert_eq!(merged(replace), list(&["c"]));
}

#[test]
fn each_player_gets_the_others_updates_from_one_encoding() {
    let data_type = Schema::bundled().find("tpspb.TestRepChannelData");
    let mut window = Window::new(data_type, MergeLimits::default());
    for (player, pitch) in [(1, 10), (2, 20), (1, 11), (3, 30), (2, 21)] {
        let update = pawn(player, pitch).encode_to_vec();
        assert_eq!(window.merge(player, &update, &PLAIN), Ok(Taken::Merged));
    }
    let encoded = window.encode();
    let pitches = |bytes: &[u8]| -> Vec<(u32, u32)> {
        TestRepChannelData::decode(bytes)
            .unwrap()
            .pawn_states
            .iter()
            .map(|(&player, pawn)| (player, pawn.remote_view_pitch()))
            .collect()
    };
    assert_eq!(pitches(encoded.all()), [(1, 11), (2, 21), (3, 30)]);
    assert_eq!(
        pitches(&encoded.without(2).unwrap().concat()),
        [(1, 11), (3, 30)]
    );
    assert_eq!(encoded.without(4), Some([encoded.all(), &[]]));
    assert_eq!(encoded.senders().collect::<Vec<_>>(), [1, 2, 3]);

    // Player 3 meddles with player 1's pawn: neither can be cut out now.
    window
        .merge(3, &pawn(1, 99).encode_to_vec(), &PLAIN)
        .unwrap();
    let encoded = window.encode();
    assert_eq!(pitches(encoded.all()), [(1, 99), (2, 21), (3, 30)]);
    assert_eq!(encoded.without(1), None);
    assert_eq!(encoded.without(3), None);
    assert_eq!(
        pitches(&encoded.without(2).unwrap().concat()),
        [(1, 99), (3, 30)]
    );
}

#[test]
fn a_removal_by_another_is_not_cut_out_with_what_it_took_along() {
    let data_type = Schema::bundled().find("tpspb.TestRepChannelData");
    let mut window = Window::new(data_type, MergeLimits::default());
    window
        .merge(1, &pawn(7, 10).encode_to_vec(), &PLAIN)
        .unwrap();
    window
        .merge(2, &actor(7, gone()).encode_to_vec(), &PLAIN)
        .unwrap();
    let encoded = window.encode();
    assert_eq!(
        encoded.without(2),
        None,
        "2 is to receive that the pawn is gone"
    );
    window.clear();
    assert!(window.is_empty());
    assert!(window.encode().all().is_empty());
}
