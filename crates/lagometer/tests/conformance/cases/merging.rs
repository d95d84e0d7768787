//! Channel data: how updates are merged into it, and into one window.

use std::time::Duration;

use lagometer_protocol::messages::channeldpb::{
    ChannelDataMergeOptions, ChannelType, CreateChannelMessage, ListChannelMessage,
};
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{ActorState, FVector, PlayerState};
use prost::Message;

use super::data::{GAME, LIST, npc, texts};
use crate::harness::peer::any_of;
use crate::harness::{Gateway, READ, Whose, options};

fn actor(id: u32, actor: ActorState) -> TestRepChannelData {
    TestRepChannelData {
        actor_states: [(id, actor)].into(),
        ..Default::default()
    }
}

pub(crate) fn c13_entries_merge_deeply_and_removals_cascade(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &TestRepChannelData::default(), None);
    let goal = FVector {
        x: Some(4.0),
        ..Default::default()
    };
    let mut goal_only = npc(1, true);
    if let Some(state) = goal_only.test_npc_states.get_mut(&1) {
        *state = TestNpcState {
            b_moving: None,
            goal_location: Some(goal),
        };
    }
    owner.update(channel, GAME, &npc(1, true));
    owner.update(channel, GAME, &goal_only);
    owner.update(channel, GAME, &npc(2, true));
    owner.update(
        channel,
        GAME,
        &actor(
            2,
            ActorState {
                b_hidden: Some(true),
                ..Default::default()
            },
        ),
    );
    owner.update(
        channel,
        GAME,
        &TestRepChannelData {
            player_states: [(2, PlayerState::default())].into(),
            ..Default::default()
        },
    );
    owner.update(
        channel,
        GAME,
        &actor(
            2,
            ActorState {
                removed: true,
                ..Default::default()
            },
        ),
    );
    owner.list();
    let mut client = gateway.client();
    client.sub(channel, options(READ, 100));
    let state: TestRepChannelData = client.data(channel);
    let merged = &state.test_npc_states[&1];
    assert_eq!(merged.b_moving, Some(true));
    assert_eq!(merged.goal_location, Some(goal));
    assert!(
        !state.test_npc_states.contains_key(&2),
        "gone with its actor"
    );
    assert!(state.player_states.is_empty() && state.actor_states.is_empty());
}

pub(crate) fn c13_a_removal_is_forwarded_in_a_window_with_others(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &actor(7, ActorState::default()), None);
    let mut client = gateway.client();
    client.sub(channel, options(READ, 400));
    client.data::<TestRepChannelData>(channel);
    // Both in one write, so in one window.
    let removed = ActorState {
        removed: true,
        ..Default::default()
    };
    let url = lagometer_protocol::any::type_url(GAME);
    owner.send(|outbox| {
        outbox.update(channel, &url, &npc(1, true).encode_to_vec())?;
        outbox.update(channel, &url, &actor(7, removed).encode_to_vec())
    });
    let mut window: TestRepChannelData = client.data(channel);
    if window.actor_states.is_empty() {
        window = client.data(channel);
    }
    assert!(window.actor_states[&7].removed);
}

pub(crate) fn c13_a_lists_limit_holds_with_every_update(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let made = owner.create(CreateChannelMessage {
        channel_type: ChannelType::Test.into(),
        data: Some(any_of(LIST, &texts(&["a", "b", "c"]))),
        merge_options: Some(ChannelDataMergeOptions {
            list_size_limit: 2,
            truncate_top: true,
            ..Default::default()
        }),
        ..Default::default()
    });
    let channel = made.channel_id;
    let other_field = ListChannelMessage {
        type_filter: 3,
        ..Default::default()
    };
    owner.update(channel, LIST, &other_field);
    owner.list();
    std::thread::sleep(Duration::from_millis(100));
    let mut client = gateway.client();
    client.sub(channel, options(READ, 20));
    let state: ListChannelMessage = client.data(channel);
    assert_eq!(state.metadata_filters, ["b", "c"]);
}

pub(crate) fn c13_a_replaced_list_in_a_window_is_the_last(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let made = owner.create(CreateChannelMessage {
        channel_type: ChannelType::Test.into(),
        data: Some(any_of(LIST, &texts(&["a"]))),
        merge_options: Some(ChannelDataMergeOptions {
            should_replace_list: true,
            list_size_limit: 3,
            ..Default::default()
        }),
        ..Default::default()
    });
    let channel = made.channel_id;
    let mut client = gateway.client();
    client.sub(channel, options(READ, 300));
    client.data::<ListChannelMessage>(channel);
    owner.update(channel, LIST, &texts(&["b"]));
    owner.update(channel, LIST, &texts(&["c"]));
    let window: ListChannelMessage = client.data(channel);
    assert_eq!(window, texts(&["c"]));
}
