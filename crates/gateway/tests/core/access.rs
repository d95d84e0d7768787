//! Who may read and write a channel's data, and what comes of a change.

use lagometer_protocol::messages::channeldpb::{ChannelDataAccess, ChannelSubscriptionOptions};
use lagometer_protocol::messages::chatpb::ChatChannelData;

use crate::fan_out::{CHAT, said, say, with_data};
use crate::world::{GLOBAL, every, types};

#[test]
fn without_access_there_is_nothing_until_it_is_given() {
    let (mut world, master) = with_data(CHAT, &say("state"));
    let client = world.client();
    let access = |access: ChannelDataAccess| ChannelSubscriptionOptions {
        data_access: Some(access as i32),
        ..every(20)
    };
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::NoAccess));
    world.pass(100);
    world.update(master, GLOBAL, CHAT, &say("more"));
    world.pass(100);
    assert!(world.take(client, types::UPDATE).is_empty());
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::ReadAccess));
    world.pass(100);
    let states = world.updates::<ChatChannelData>(client, GLOBAL);
    assert_eq!(said(&states), ["state", "more"]);
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::NoAccess));
    world.update(master, GLOBAL, CHAT, &say("unheard"));
    world.pass(100);
    assert!(world.take(client, types::UPDATE).is_empty());
}

#[test]
fn only_who_may_write_writes() {
    let (mut world, master) = with_data(CHAT, &say("state"));
    let (reader, server) = (world.client(), world.server());
    let watcher = world.client();
    for who in [reader, watcher, server] {
        world.subscribe(who, GLOBAL, every(20));
    }
    world.pass(100);
    world.forget_all();
    world.update(reader, GLOBAL, CHAT, &say("graffiti"));
    world.update(server, GLOBAL, CHAT, &say("in the owner's name"));
    world.pass(40);
    let seen = world.updates::<ChatChannelData>(watcher, GLOBAL);
    assert_eq!(said(&seen), ["in the owner's name"]);
    assert!(
        world.take(master, types::UPDATE).is_empty(),
        "it counts as the owner's own"
    );
    assert_eq!(world.take(server, types::UPDATE).len(), 1);
}

/// Options that change the access alone.
fn access(access: ChannelDataAccess) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        data_access: Some(access as i32),
        ..ChannelSubscriptionOptions::default()
    }
}

#[test]
fn what_came_while_there_was_no_access_comes_as_updates_once_there_is() {
    let (mut world, master) = with_data(CHAT, &say("welcome"));
    let (client, other) = (world.client(), world.client());
    for who in [client, other] {
        world.subscribe(who, GLOBAL, every(20));
    }
    world.pass(100);
    world.forget_all();
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::NoAccess));
    world.pass(100);
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::ReadAccess));
    world.pass(100);
    assert_eq!(
        world.updates::<ChatChannelData>(client, GLOBAL),
        [],
        "nothing has happened"
    );
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::NoAccess));
    for text in ["one", "two"] {
        world.update(master, GLOBAL, CHAT, &say(text));
        world.pass(100);
    }
    assert_eq!(world.updates::<ChatChannelData>(client, GLOBAL), []);
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::ReadAccess));
    world.pass(100);
    let missed: Vec<ChatChannelData> = world.updates(client, GLOBAL);
    assert_eq!(said(&missed), ["one", "two"]);
    let all: Vec<ChatChannelData> = world.updates(other, GLOBAL);
    assert_eq!(said(&all), ["one", "two"]);
}

#[test]
fn what_was_missed_without_access_is_kept_up_to_a_limit() {
    let (mut world, master) = with_data(CHAT, &say("welcome"));
    let client = world.client();
    world.subscribe(client, GLOBAL, every(20));
    world.pass(100);
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::NoAccess));
    world.forget_all();
    for _ in 0..5000 {
        world.update(master, GLOBAL, CHAT, &say("much"));
    }
    world.subscribe(client, GLOBAL, access(ChannelDataAccess::ReadAccess));
    world.pass(100);
    let state: Vec<ChatChannelData> = world.updates(client, GLOBAL);
    assert_eq!(said(&state).len(), 5001, "the whole state in its place");
    assert_eq!(said(&state)[0], "welcome");
}
