//! Channel data: when it is sent, to whom, and which of its fields.

use std::time::{Duration, Instant};

use lagometer_client::OwnedEvent;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, ListChannelMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData, TestRepGameState};
use lagometer_protocol::messages::unrealpb::FVector;

use crate::harness::{Gateway, READ, Settings, WRITE, Whose, options};

pub(super) const GAME: &str = "tpspb.TestRepChannelData";

pub(super) fn npc(id: u32, moving: bool) -> TestRepChannelData {
    let state = TestNpcState {
        b_moving: Some(moving),
        goal_location: None,
    };
    TestRepChannelData {
        test_npc_states: [(id, state)].into(),
        ..Default::default()
    }
}

fn jumps(jumps: i32) -> TestRepChannelData {
    TestRepChannelData {
        test_game_state: Some(TestRepGameState { jumps: Some(jumps) }),
        ..Default::default()
    }
}

fn seen_jumps(data: &TestRepChannelData) -> Option<i32> {
    data.test_game_state.as_ref()?.jumps
}

pub(crate) fn c09_the_full_state_comes_after_delay_and_interval(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(3), None);
    let mut client = gateway.client();
    let asked = Instant::now();
    client.sub(
        channel,
        ChannelSubscriptionOptions {
            fan_out_delay_ms: Some(250),
            ..options(READ, 150)
        },
    );
    let full: TestRepChannelData = client.data(channel);
    assert_eq!(seen_jumps(&full), Some(3));
    let took = asked.elapsed();
    assert!(took >= Duration::from_millis(400), "after {took:?}");
    client.expect_no_data("an empty window", channel);
    owner.update(channel, GAME, &jumps(4));
    let update: TestRepChannelData = client.data(channel);
    assert_eq!(update, jumps(4), "only what has changed");
    client.expect_no_data("an empty window", channel);
}

pub(crate) fn c10_ones_own_updates_are_left_out_unless_asked_for(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(0), None);
    let mut modest = gateway.client();
    let mut curious = gateway.client();
    modest.sub(channel, options(WRITE, 20));
    curious.sub(
        channel,
        ChannelSubscriptionOptions {
            skip_self_update_fan_out: Some(false),
            ..options(WRITE, 20)
        },
    );
    modest.data::<TestRepChannelData>(channel);
    curious.data::<TestRepChannelData>(channel);
    modest.update(channel, GAME, &jumps(1));
    assert_eq!(curious.data::<TestRepChannelData>(channel), jumps(1));
    curious.update(channel, GAME, &jumps(2));
    assert_eq!(modest.data::<TestRepChannelData>(channel), jumps(2));
    assert_eq!(curious.data::<TestRepChannelData>(channel), jumps(2));
    modest.expect_no_data("its own update", channel);
}

pub(crate) fn c10_the_full_state_is_left_out_when_asked(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(1), None);
    let mut client = gateway.client();
    client.sub(
        channel,
        ChannelSubscriptionOptions {
            skip_first_fan_out: Some(true),
            ..options(READ, 20)
        },
    );
    client.expect_no_data("the full state", channel);
    owner.update(channel, GAME, &npc(1, true));
    assert_eq!(client.data::<TestRepChannelData>(channel), npc(1, true));
}

pub(crate) fn c10_without_access_nothing_is_sent(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(1), None);
    let mut client = gateway.client();
    client.sub(channel, options(ChannelDataAccess::NoAccess, 20));
    owner.update(channel, GAME, &jumps(2));
    client.expect_no_data("data", channel);
}

pub(crate) fn c10_readers_do_not_write(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(1), None);
    let mut reader = gateway.client();
    let mut watcher = gateway.client();
    reader.sub(channel, options(READ, 20));
    watcher.sub(channel, options(READ, 20));
    watcher.data::<TestRepChannelData>(channel);
    reader.update(channel, GAME, &jumps(9));
    watcher.expect_no_data("a reader's update", channel);
    // A server that is neither owner nor subscribed writes in the owner's name.
    let mut helper = gateway.server();
    helper.update(channel, GAME, &jumps(5));
    assert_eq!(watcher.data::<TestRepChannelData>(channel), jumps(5));
}

fn masked(gateway: &Gateway) -> (u32, crate::harness::Peer, crate::harness::Peer) {
    let mut owner = gateway.server();
    let both = TestRepChannelData {
        test_npc_states: npc(1, true).test_npc_states,
        ..jumps(1)
    };
    let channel = owner.create_test(GAME, &both, None);
    let mut client = gateway.client();
    client.sub(
        channel,
        ChannelSubscriptionOptions {
            data_field_masks: vec!["testNPCStates.bMoving".into()],
            ..options(READ, 20)
        },
    );
    assert_eq!(client.data::<TestRepChannelData>(channel), npc(1, true));
    (channel, owner, client)
}

pub(crate) fn c11_masks_leave_fields_out(whose: Whose) {
    let gateway = Gateway::start(whose);
    let (channel, mut owner, mut client) = masked(&gateway);
    let mut update = npc(2, false);
    update.test_game_state = jumps(7).test_game_state;
    if let Some(state) = update.test_npc_states.get_mut(&2) {
        state.goal_location = Some(FVector::default());
    }
    owner.update(channel, GAME, &update);
    assert_eq!(client.data::<TestRepChannelData>(channel), npc(2, false));
}

pub(crate) fn c11_a_masked_subscriber_takes_nothing_from_others(whose: Whose) {
    let gateway = Gateway::start(whose);
    let (channel, _owner, _client) = masked(&gateway);
    let mut late = gateway.client();
    late.sub(channel, options(READ, 20));
    assert_eq!(seen_jumps(&late.data(channel)), Some(1));
}

/// Several writers at once, subscribers at several intervals: every message
/// comes to everybody else once, in its sender's order.
pub(crate) fn c12_every_update_comes_once_and_in_order(whose: Whose) {
    const WRITERS: usize = 3;
    const MESSAGES: i64 = 150;
    const CHAT: &str = "chatpb.ChatChannelData";
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(CHAT, &ChatChannelData::default(), None);
    let mut peers: Vec<_> = (0..WRITERS + 2).map(|_| gateway.client()).collect();
    for (at, peer) in peers.iter_mut().enumerate() {
        peer.sub(channel, options(WRITE, [20, 33, 50, 20, 100][at]));
        peer.data::<ChatChannelData>(channel);
    }
    for number in 1..=MESSAGES {
        for (writer, peer) in peers.iter_mut().enumerate().take(WRITERS) {
            let said = ChatChannelData {
                chat_messages: vec![ChatMessage {
                    sender: writer.to_string(),
                    send_time: number,
                    ..Default::default()
                }],
            };
            peer.update(channel, CHAT, &said);
        }
        if number % 10 == 0 {
            std::thread::sleep(Duration::from_millis(7));
        }
    }
    for (at, peer) in peers.iter_mut().enumerate() {
        let mut received = [0; WRITERS];
        let complete = |received: &[i64; WRITERS]| {
            (0..WRITERS).all(|writer| writer == at || received[writer] == MESSAGES)
        };
        while !complete(&received) {
            for message in peer.data::<ChatChannelData>(channel).chat_messages {
                let writer: usize = message.sender.parse().unwrap();
                assert_ne!(writer, at, "one's own message");
                received[writer] += 1;
                assert_eq!(message.send_time, received[writer], "from {writer} at {at}");
            }
        }
        peer.expect_no_data("a message again", channel);
    }
}

pub(crate) fn c12_the_last_value_always_arrives(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(0), None);
    let mut client = gateway.client();
    client.sub(channel, options(READ, 50));
    for count in 1..=300 {
        owner.update(channel, GAME, &jumps(count));
    }
    let mut last = 0;
    while last != 300 {
        let next = seen_jumps(&client.data(channel)).unwrap();
        assert!(next >= last, "{next} after {last}");
        last = next;
    }
}

pub(crate) fn c29_an_interval_of_zero_harms_nobody(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(0), None);
    let mut greedy = gateway.client();
    let mut other = gateway.client();
    greedy.sub(channel, options(READ, 0));
    other.sub(channel, options(READ, 20));
    owner.update(channel, GAME, &jumps(1));
    for peer in [&mut greedy, &mut other] {
        while seen_jumps(&peer.data(channel)) != Some(1) {}
    }
}

pub(crate) fn c29_data_of_an_unknown_type_is_carried(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    // Nobody knows the type; the bytes are a message all the same.
    let channel = owner.create_test("nobody.KnowsThis", &jumps(1), None);
    let mut client = gateway.client();
    client.sub(channel, options(READ, 20));
    assert_eq!(seen_jumps(&client.data(channel)), Some(1));
    owner.update(channel, "nobody.KnowsThis", &jumps(2));
    assert_eq!(seen_jumps(&client.data(channel)), Some(2));
    client.expect_none("another type", |event| match event {
        OwnedEvent::Data { type_url, .. } if !type_url.ends_with("nobody.KnowsThis") => {
            Some(type_url.clone())
        }
        _ => None,
    });
}

pub(crate) fn c30_data_of_another_type_is_refused(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(1), None);
    let mut client = gateway.client();
    client.sub(channel, options(READ, 20));
    client.data::<TestRepChannelData>(channel);
    owner.update(
        channel,
        "tpspb.TestRepGameState",
        &TestRepGameState::default(),
    );
    owner.update(channel, "tpspb.TestNPCState", &TestNpcState::default());
    owner.update(channel, GAME, &jumps(2));
    assert_eq!(seen_jumps(&client.data(channel)), Some(2));
    gateway.assert_serves();
}

pub(crate) fn c30_a_mask_that_fits_nothing_harms_nobody(whose: Whose) {
    let mut gateway = Gateway::start_with(whose, &Settings::default());
    let mut owner = gateway.server();
    let channel = owner.create_test(GAME, &jumps(1), None);
    for mask in [
        "",
        ".",
        "..",
        "noSuchField",
        "testGameState.jumps.deeper",
        "a.b.c",
    ] {
        let mut client = gateway.client();
        client.sub(
            channel,
            ChannelSubscriptionOptions {
                data_field_masks: vec![mask.into()],
                ..options(READ, 20)
            },
        );
        owner.update(channel, GAME, &jumps(2));
    }
    let mut watcher = gateway.client();
    watcher.sub(channel, options(READ, 20));
    assert_eq!(seen_jumps(&watcher.data(channel)), Some(2));
    gateway.assert_serves();
}

/// A list of texts that no type's own rules merge.
pub(super) const LIST: &str = "channeldpb.ListChannelMessage";

pub(super) fn texts(texts: &[&str]) -> ListChannelMessage {
    ListChannelMessage {
        metadata_filters: texts.iter().map(|&text| text.to_owned()).collect(),
        ..Default::default()
    }
}

pub(crate) fn c09_windows_are_counted_from_the_full_state(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(LIST, &texts(&[]), None);
    let mut client = gateway.client();
    client.sub(
        channel,
        ChannelSubscriptionOptions {
            fan_out_delay_ms: Some(-600),
            ..options(READ, 1000)
        },
    );
    client.data::<ListChannelMessage>(channel);
    // Both within a window that begins now: they come as one.
    owner.update(channel, LIST, &texts(&["one"]));
    std::thread::sleep(Duration::from_millis(700));
    owner.update(channel, LIST, &texts(&["two"]));
    let window: ListChannelMessage = client.data(channel);
    assert_eq!(window, texts(&["one", "two"]));
}

pub(crate) fn c10_what_was_missed_without_access_comes_as_updates(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create_test(LIST, &texts(&["first"]), None);
    let mut client = gateway.client();
    client.sub(channel, options(READ, 20));
    assert_eq!(
        client.data::<ListChannelMessage>(channel),
        texts(&["first"])
    );
    client.sub(channel, options(ChannelDataAccess::NoAccess, 20));
    owner.update(channel, LIST, &texts(&["missed"]));
    client.expect_no_data("an update without access", channel);
    client.sub(channel, options(READ, 20));
    assert_eq!(
        client.data::<ListChannelMessage>(channel),
        texts(&["missed"])
    );
    client.expect_no_data("anything more", channel);
}
