//! A reader that is slow harms nobody but itself.

use lagometer_gateway::core::{CloseReason, Peer, SlowReaders};
use lagometer_protocol::merge::MergeLimits;
use lagometer_protocol::messages::channeldpb::CreateChannelMessage;
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::FVector;
use std::time::Duration;

use crate::world::{GLOBAL, Who, World, any, data, every, types};

const WORLD: &str = "tpspb.TestRepChannelData";

/// So many characters, all somewhere else at each step.
fn step(step: u32, characters: u32) -> TestRepChannelData {
    TestRepChannelData {
        test_npc_states: (0..characters)
            .map(|id| {
                let state = TestNpcState {
                    b_moving: None,
                    goal_location: Some(FVector {
                        x: Some(step as f32),
                        ..FVector::default()
                    }),
                };
                (id, state)
            })
            .collect(),
        ..TestRepChannelData::default()
    }
}

fn with_readers(merged_bytes: usize) -> (World, Who, Who, Who) {
    let mut world = World::with(|connections, _| {
        connections.slow_readers = SlowReaders {
            merge_from_bytes: 20_000,
            resume_at_bytes: 5_000,
            close_at_bytes: 200_000,
            server_close_at_bytes: 200_000,
            close_after: Duration::from_mins(1),
            merged: MergeLimits {
                max_encoded_bytes: merged_bytes,
            },
        };
    });
    let master = world.server();
    let message = CreateChannelMessage {
        channel_type: 1,
        data: Some(any(WORLD, &step(0, 100))),
        ..CreateChannelMessage::default()
    };
    world.create_with(master, &message);
    let (slow, quick) = (world.client(), world.client());
    for who in [slow, quick] {
        world.subscribe(who, GLOBAL, every(20));
    }
    world.pass(100);
    world.forget_all();
    (world, master, slow, quick)
}

fn last_seen(updates: &[TestRepChannelData]) -> Vec<f32> {
    let mut seen = vec![-1.0; 100];
    for update in updates {
        for (&id, state) in &update.test_npc_states {
            seen[id as usize] = state.goal_location.unwrap().x.unwrap();
        }
    }
    seen
}

#[test]
fn updates_of_a_slow_reader_are_merged_and_it_catches_up() {
    let (mut world, master, slow, quick) = with_readers(50_000);
    world.peers[slow].stalled = true;
    for index in 1..=500 {
        world.update(master, GLOBAL, WORLD, &step(index, 100));
        world.pass(20);
    }
    assert_eq!(
        world.take(quick, types::UPDATE).len(),
        500,
        "others notice nothing"
    );
    let (side, key) = (world.peers[slow].side, world.peers[slow].key);
    assert!(world.sides[side].waiting(key) < 30_000);
    world.resume(slow);
    let updates = world.updates::<TestRepChannelData>(slow, GLOBAL);
    assert!(updates.len() < 50, "{} updates", updates.len());
    assert_eq!(last_seen(&updates), vec![500.0; 100]);
    let counters = world.sides[side].counters();
    let counters = counters.of(Peer::Client);
    assert_eq!(counters.slow_readers, 1);
    assert!(counters.updates_merged > 400);

    world.update(master, GLOBAL, WORLD, &step(501, 3));
    world.pass(20);
    let updates = world.updates::<TestRepChannelData>(slow, GLOBAL);
    assert_eq!(updates, [step(501, 3)], "as if nothing had been");
}

#[test]
fn a_slow_reader_of_many_channels_costs_little_and_gets_the_states_in_the_end() {
    let (mut world, master, slow, _) = with_readers(50_000);
    let rooms: Vec<u32> = (0..60)
        .map(|_| {
            let message = CreateChannelMessage {
                channel_type: 3,
                data: Some(any(WORLD, &step(0, 1))),
                ..CreateChannelMessage::default()
            };
            world.create_with(master, &message)
        })
        .collect();
    for &room in &rooms {
        world.subscribe(slow, room, every(20));
    }
    world.pass(200);
    world.forget_all();
    world.peers[slow].stalled = true;
    for index in 1..=20 {
        for &room in &rooms {
            world.update(master, room, WORLD, &step(index, 100));
        }
        world.pass(20);
    }
    let side = world.peers[slow].side;
    world.resume(slow);
    world.pass(2000);
    assert_eq!(world.peers[slow].closed, None);
    let counters = world.sides[side].counters();
    assert!(counters.of(Peer::Client).resyncs > 0, "not all was kept");
    let all = world.take(slow, types::UPDATE);
    for room in rooms {
        let updates = all.iter().filter(|pack| pack.channel_id == room);
        let updates: Vec<TestRepChannelData> = updates.map(data).collect();
        assert_eq!(last_seen(&updates), vec![20.0; 100], "channel {room}");
    }
}

#[test]
fn what_grows_too_large_to_merge_is_replaced_by_the_state() {
    let (mut world, master, slow, _) = with_readers(200);
    world.peers[slow].stalled = true;
    for index in 1..=200 {
        world.update(master, GLOBAL, WORLD, &step(index, 100));
        world.pass(20);
    }
    world.resume(slow);
    world.pass(100);
    world.update(master, GLOBAL, WORLD, &step(201, 50));
    world.pass(100);
    let updates = world.updates::<TestRepChannelData>(slow, GLOBAL);
    let seen = last_seen(&updates);
    assert_eq!(seen[..50], [201.0; 50]);
    assert_eq!(seen[50..], [200.0; 50]);
    let side = world.peers[slow].side;
    assert!(world.sides[side].counters().of(Peer::Client).resyncs > 0);
    assert_eq!(world.peers[slow].closed, None);
}

#[test]
fn a_reader_that_is_too_far_behind_is_closed() {
    let (mut world, master, slow, quick) = with_readers(50_000);
    world.peers[slow].stalled = true;
    let payload = vec![1; 10_000];
    for _ in 0..30 {
        world.forward(master, GLOBAL, 2 | 4, 0, &payload);
    }
    assert_eq!(world.peers[slow].closed, Some(CloseReason::TooMuchWaiting));
    assert_eq!(world.take(quick, types::GAME).len(), 30);
    assert_eq!(
        world.take(master, types::UNSUB).len(),
        1,
        "its owner is notified"
    );
}

#[test]
fn a_reader_that_reads_nothing_for_too_long_is_closed() {
    let (mut world, master, slow, quick) = with_readers(50_000);
    world.peers[slow].stalled = true;
    world.update(master, GLOBAL, WORLD, &step(1, 1));
    world.pass(59_000);
    assert_eq!(world.peers[slow].closed, None);
    world.pass(2_000);
    assert_eq!(world.peers[slow].closed, Some(CloseReason::NotReading));
    assert_eq!(world.peers[quick].closed, None, "nothing waits for it");
}

#[test]
fn nothing_of_a_channel_comes_once_it_is_unsubscribed() {
    let (mut world, master, slow, _) = with_readers(50_000);
    world.peers[slow].stalled = true;
    for index in 1..=300 {
        world.update(master, GLOBAL, WORLD, &step(index, 100));
        world.pass(20);
    }
    world.unsubscribe(slow, GLOBAL);
    world.resume(slow);
    let order = world.types(slow);
    let unsubscribed = order.iter().position(|&one| one == types::UNSUB).unwrap();
    assert!(
        order[unsubscribed..]
            .iter()
            .all(|&one| one != types::UPDATE)
    );
}
