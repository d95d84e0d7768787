//! What subscribers get of a channel's data, and when.

use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, CreateChannelMessage, CreateEntityChannelMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::tpspb::{EntityChannelData, TestNpcState, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{ActorState, PawnState, UnrealObjectRef};
use prost::Message;

use crate::world::{GLOBAL, Who, World, any, data, every, types, writing};

const WORLD: &str = "tpspb.TestRepChannelData";
pub(crate) const CHAT: &str = "chatpb.ChatChannelData";

fn npc(id: u32, moving: bool) -> TestRepChannelData {
    let state = TestNpcState {
        b_moving: Some(moving),
        goal_location: None,
    };
    TestRepChannelData {
        test_npc_states: [(id, state)].into(),
        ..TestRepChannelData::default()
    }
}

pub(crate) fn say(text: &str) -> ChatChannelData {
    ChatChannelData {
        chat_messages: vec![ChatMessage {
            content: text.into(),
            ..ChatMessage::default()
        }],
    }
}

pub(crate) fn said(updates: &[ChatChannelData]) -> Vec<&str> {
    let messages = updates.iter().flat_map(|update| &update.chat_messages);
    messages.map(|message| &*message.content).collect()
}

/// A world whose GLOBAL has data, and its owner.
pub(crate) fn with_data(type_name: &str, first: &impl Message) -> (World, Who) {
    let mut world = World::new();
    let master = world.server();
    let message = CreateChannelMessage {
        channel_type: 1,
        data: Some(any(type_name, first)),
        ..CreateChannelMessage::default()
    };
    world.create_with(master, &message);
    (world, master)
}

#[test]
fn the_whole_state_comes_after_delay_and_interval_and_then_windows() {
    let (mut world, master) = with_data(CHAT, &say("welcome"));
    let client = world.client();
    let options = ChannelSubscriptionOptions {
        fan_out_delay_ms: Some(200),
        ..every(50)
    };
    world.subscribe(client, GLOBAL, options);
    world.update(master, GLOBAL, CHAT, &say("early"));
    world.pass(240);
    assert!(world.take(client, types::UPDATE).is_empty());
    world.pass(20);
    let states = world.updates::<ChatChannelData>(client, GLOBAL);
    assert_eq!(states.len(), 1);
    assert_eq!(said(&states), ["welcome", "early"]);

    world.pass(500);
    assert!(
        world.take(client, types::UPDATE).is_empty(),
        "empty windows are silent"
    );
    world.update(master, GLOBAL, CHAT, &say("a"));
    world.update(master, GLOBAL, CHAT, &say("b"));
    world.pass(60);
    let windows = world.updates::<ChatChannelData>(client, GLOBAL);
    assert_eq!(windows.len(), 1);
    assert_eq!(said(&windows), ["a", "b"]);
}

#[test]
fn windows_keep_their_interval() {
    let (mut world, master) = with_data(WORLD, &npc(1, true));
    let clients: Vec<(Who, u32)> = [20, 50, 100, 500]
        .into_iter()
        .map(|interval| {
            let client = world.client();
            world.subscribe(client, GLOBAL, every(interval));
            (client, interval)
        })
        .collect();
    world.pass(1000);
    world.forget_all();
    for step in 0..1000 {
        world.update(master, GLOBAL, WORLD, &npc(step % 7, step % 2 == 0));
        world.pass(5);
    }
    for (client, interval) in clients {
        let windows = world.take(client, types::UPDATE).len();
        let expected = 5000 / interval as usize;
        assert!(
            windows.abs_diff(expected) <= 1,
            "{windows} at {interval} ms"
        );
    }
}

#[test]
fn the_first_data_comes_to_those_who_wait_for_it() {
    let mut world = World::new();
    let master = world.master();
    let client = world.client();
    world.subscribe(client, GLOBAL, every(20));
    world.pass(500);
    assert!(world.take(client, types::UPDATE).is_empty());
    world.update(master, GLOBAL, CHAT, &say("first"));
    world.pass(20);
    let states = world.updates::<ChatChannelData>(client, GLOBAL);
    assert_eq!(said(&states), ["first"]);
    world.pass(100);
    assert!(
        world.take(client, types::UPDATE).is_empty(),
        "not a second time"
    );
}

#[test]
fn before_anyone_creates_a_channel_it_has_no_data() {
    let mut world = World::new();
    let client = world.client();
    world.subscribe(client, GLOBAL, writing(20));
    world.update(client, GLOBAL, CHAT, &say("void"));
    assert_eq!(world.channels.counters().dropped, 1);
}

#[test]
fn own_updates_come_back_only_to_who_wants_them() {
    let (mut world, master) = with_data(WORLD, &npc(1, true));
    let [shy, vain] = [true, false].map(|skip_self| {
        let client = world.client();
        let options = ChannelSubscriptionOptions {
            skip_self_update_fan_out: Some(skip_self),
            ..writing(20)
        };
        world.subscribe(client, GLOBAL, options);
        client
    });
    world.pass(100);
    world.forget_all();
    world.update(shy, GLOBAL, WORLD, &npc(10, true));
    world.update(vain, GLOBAL, WORLD, &npc(20, true));
    world.pass(20);
    let keys = |world: &mut World, who| -> Vec<u32> {
        let windows = world.updates::<TestRepChannelData>(who, GLOBAL);
        assert_eq!(windows.len(), 1);
        windows[0].test_npc_states.keys().copied().collect()
    };
    assert_eq!(keys(&mut world, shy), [20]);
    assert_eq!(keys(&mut world, vain), [10, 20]);
    assert_eq!(keys(&mut world, master), [10, 20]);
    world.update(shy, GLOBAL, WORLD, &npc(10, false));
    world.pass(20);
    assert!(world.take(shy, types::UPDATE).is_empty());
    assert_eq!(keys(&mut world, vain), [10]);
}

#[test]
fn two_who_change_the_same_thing_each_get_the_others_part() {
    let (mut world, master) = with_data(WORLD, &npc(1, true));
    let clients = [world.client(), world.client(), world.client()];
    for client in clients {
        world.subscribe(client, GLOBAL, writing(20));
    }
    world.pass(100);
    world.forget_all();
    world.update(clients[0], GLOBAL, WORLD, &npc(7, true));
    world.update(clients[1], GLOBAL, WORLD, &npc(7, false));
    world.pass(20);
    let mut moving = |who| {
        let windows = world.updates::<TestRepChannelData>(who, GLOBAL);
        assert_eq!(windows.len(), 1);
        windows[0].test_npc_states[&7].b_moving
    };
    assert_eq!(moving(clients[0]), Some(false), "the other's");
    assert_eq!(moving(clients[1]), Some(true), "the other's");
    assert_eq!(moving(clients[2]), Some(false), "the last");
    assert_eq!(moving(master), Some(false), "the last");
}

#[test]
fn skipping_the_first_state_leaves_it_out() {
    let (mut world, master) = with_data(CHAT, &say("old"));
    let client = world.client();
    let options = ChannelSubscriptionOptions {
        skip_first_fan_out: Some(true),
        ..every(20)
    };
    world.subscribe(client, GLOBAL, options);
    world.pass(100);
    world.update(master, GLOBAL, CHAT, &say("new"));
    world.pass(100);
    let windows = world.updates::<ChatChannelData>(client, GLOBAL);
    assert_eq!(said(&windows), ["new"]);
}

#[test]
fn a_mask_narrows_state_and_windows_for_one_and_nobody_else() {
    let actor = ActorState {
        b_hidden: Some(true),
        local_role: Some(3),
        ..ActorState::default()
    };
    let both = TestRepChannelData {
        actor_states: [(7, actor)].into(),
        ..npc(7, true)
    };
    let (mut world, master) = with_data(WORLD, &both);
    let [masked, plain] = [vec!["actorStates.bHidden".to_owned()], vec![]].map(|masks| {
        let client = world.client();
        let options = ChannelSubscriptionOptions {
            data_field_masks: masks,
            ..every(20)
        };
        world.subscribe(client, GLOBAL, options);
        client
    });
    for _ in 0..2 {
        world.pass(60);
        let seen = world.updates::<TestRepChannelData>(masked, GLOBAL);
        assert_eq!(seen.len(), 1);
        assert!(seen[0].test_npc_states.is_empty());
        assert_eq!(seen[0].actor_states[&7].b_hidden, Some(true));
        assert_eq!(seen[0].actor_states[&7].local_role, None);
        assert_eq!(
            world.updates::<TestRepChannelData>(plain, GLOBAL),
            std::slice::from_ref(&both)
        );
        world.update(master, GLOBAL, WORLD, &both);
    }
    world.pass(60);
    world.forget_all();
    world.update(master, GLOBAL, WORLD, &npc(9, true));
    world.pass(60);
    assert!(
        world.take(masked, types::UPDATE).is_empty(),
        "nothing of it is left"
    );
    assert_eq!(world.take(plain, types::UPDATE).len(), 1);
}

#[test]
fn removals_are_passed_on_whatever_else_the_window_holds() {
    let pawn = TestRepChannelData {
        pawn_states: [(5, PawnState::default())].into(),
        ..npc(5, true)
    };
    let (mut world, master) = with_data(WORLD, &pawn);
    let client = world.client();
    world.subscribe(client, GLOBAL, every(100));
    world.pass(300);
    world.forget_all();
    let gone = ActorState {
        removed: true,
        ..ActorState::default()
    };
    let removal = TestRepChannelData {
        actor_states: [(5, gone)].into(),
        ..TestRepChannelData::default()
    };
    world.update(master, GLOBAL, WORLD, &npc(6, true));
    world.update(master, GLOBAL, WORLD, &removal);
    world.update(master, GLOBAL, WORLD, &npc(5, false));
    world.pass(100);
    let windows = world.updates::<TestRepChannelData>(client, GLOBAL);
    let first_removal = windows.iter().position(|window| {
        window
            .actor_states
            .get(&5)
            .is_some_and(|actor| actor.removed)
    });
    let last_return = windows
        .iter()
        .rposition(|window| window.test_npc_states.contains_key(&5));
    assert!(
        first_removal.is_some() && last_return > first_removal,
        "{windows:?}"
    );
}

#[test]
fn an_interval_of_nothing_and_unknown_types_do_no_harm() {
    let mut world = World::new();
    let master = world.master();
    let client = world.client();
    world.subscribe(client, GLOBAL, every(0));
    world.update(master, GLOBAL, "some.Unknown", &npc(1, true));
    world.update(master, GLOBAL, "some.Other", &npc(2, true));
    world.pass(100);
    world.update(master, GLOBAL, "some.Unknown", &npc(3, true));
    world.pass(100);
    let seen = world.updates::<TestRepChannelData>(client, GLOBAL);
    let keys: Vec<u32> = seen
        .iter()
        .flat_map(|data| data.test_npc_states.keys().copied())
        .collect();
    assert_eq!(keys, [1, 3]);
    assert_eq!(
        world.channels.counters().dropped,
        1,
        "another type than the channel's"
    );
}

#[test]
fn data_too_long_for_a_message_comes_in_several() {
    let names = |from: u32| ChatChannelData {
        chat_messages: (from..from + 100)
            .map(|index| ChatMessage {
                content: format!("{index:0400}"),
                ..ChatMessage::default()
            })
            .collect(),
    };
    let (mut world, master) = with_data(CHAT, &names(0));
    let early = world.client();
    world.subscribe(early, GLOBAL, every(100));
    world.pass(300);
    for from in [100, 200, 300, 400] {
        world.update(master, GLOBAL, CHAT, &names(from));
    }
    let late = world.client();
    world.subscribe(late, GLOBAL, every(20));
    world.pass(300);
    for who in [early, late] {
        let updates = world.updates::<ChatChannelData>(who, GLOBAL);
        assert!(updates.len() > 2);
        let numbers: Vec<u32> = said(&updates)
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    }
}

#[test]
fn data_given_anew_takes_the_place_of_the_old_and_its_updates() {
    let (mut world, master) = with_data(WORLD, &npc(1, true));
    let client = world.client();
    world.subscribe(client, GLOBAL, every(100));
    world.pass(300);
    world.forget_all();
    world.update(master, GLOBAL, WORLD, &npc(2, true));
    world.unsubscribe(master, GLOBAL);
    let other = world.server();
    let message = CreateChannelMessage {
        channel_type: 1,
        data: Some(any(CHAT, &say("new"))),
        ..CreateChannelMessage::default()
    };
    world.create_with(other, &message);
    world.update(other, GLOBAL, CHAT, &say("newer"));
    world.pass(300);
    let windows = world.updates::<ChatChannelData>(client, GLOBAL);
    assert_eq!(said(&windows), ["newer"]);
}

#[test]
fn entities_of_one_interval_come_in_one_packet() {
    let mut world = World::new();
    let server = world.server();
    let client = world.client();
    let entities: Vec<u32> = (0..50).map(|index| 0x80_000 + 2 * index).collect();
    for &entity_id in &entities {
        let message = CreateEntityChannelMessage {
            entity_id,
            sub_options: Some(writing(20)),
            data: Some(any("tpspb.EntityChannelData", &entity(entity_id))),
            ..CreateEntityChannelMessage::default()
        };
        world.send(server, GLOBAL, 1, types::CREATE_ENTITY, &message);
        world.subscribe(client, entity_id, every(20));
    }
    world.pass(200);
    assert_eq!(world.take(client, types::UPDATE).len(), 50);
    for &id in &entities {
        world.update(server, id, "tpspb.EntityChannelData", &entity(id));
    }
    let frames = world.peers[client].frames;
    world.pass(20);
    let updates = world.take(client, types::UPDATE);
    assert_eq!(updates.len(), 50);
    assert_eq!(world.peers[client].frames - frames, 1);
    let first: EntityChannelData = data(&updates[0]);
    assert_eq!(
        first.obj_ref, None,
        "an object's reference is not sent again"
    );
}

fn entity(id: u32) -> EntityChannelData {
    EntityChannelData {
        obj_ref: Some(UnrealObjectRef {
            net_guid: Some(id),
            ..UnrealObjectRef::default()
        }),
        pawn_state: Some(PawnState {
            remote_view_pitch: Some(id),
            ..PawnState::default()
        }),
        ..EntityChannelData::default()
    }
}

#[test]
fn windows_are_counted_from_the_whole_state() {
    let (mut world, master) = with_data(CHAT, &say("welcome"));
    world.pass(7);
    let client = world.client();
    let options = ChannelSubscriptionOptions {
        fan_out_delay_ms: Some(-250),
        ..every(500)
    };
    let begin = world.now;
    world.subscribe(client, GLOBAL, options);
    let mut came = Vec::new();
    for text in 0..28 {
        // One every 50 ms: ten in each window, but the last ones.
        world.update(master, GLOBAL, CHAT, &say(&text.to_string()));
        for _ in 0..50 {
            world.pass(1);
            if !world.updates::<ChatChannelData>(client, GLOBAL).is_empty() {
                came.push(world.now.since(begin).as_millis());
            }
        }
    }
    // The state at the tick after 250 ms, and from there on every 500.
    assert_eq!(came, [253, 753, 1253]);
}

#[test]
fn two_updates_after_the_whole_state_come_as_one_though_others_are_there_before() {
    let (mut world, master) = with_data(CHAT, &say("welcome"));
    let mut clients = Vec::new();
    // More than have windows of their own.
    for _ in 0..7 {
        let client = world.client();
        world.subscribe(client, GLOBAL, every(500));
        world.pass(60);
        clients.push(client);
    }
    // Each has had its whole state; a second passes without any news.
    world.pass(1000);
    world.forget_all();
    let late = world.client();
    world.subscribe(late, GLOBAL, every(500));
    while world.updates::<ChatChannelData>(late, GLOBAL).is_empty() {
        world.pass(1);
    }
    world.update(master, GLOBAL, CHAT, &say("one"));
    world.pass(480);
    world.update(master, GLOBAL, CHAT, &say("two"));
    world.pass(1000);
    let updates: Vec<ChatChannelData> = world.updates(late, GLOBAL);
    assert_eq!((updates.len(), said(&updates)), (1, vec!["one", "two"]));
    for client in clients {
        let updates: Vec<ChatChannelData> = world.updates(client, GLOBAL);
        assert_eq!(said(&updates), ["one", "two"]);
    }
}
