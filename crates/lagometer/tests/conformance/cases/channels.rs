//! Channels and subscriptions: who is sent what.

use lagometer_client::OwnedEvent;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelType, ConnectionType, CreateChannelMessage,
    CreateEntityChannelMessage,
};

use crate::harness::peer::sub_result_in;
use crate::harness::{Gateway, READ, Settings, WRITE, Whose, options};

fn of_type(channel_type: ChannelType) -> CreateChannelMessage {
    CreateChannelMessage {
        channel_type: channel_type.into(),
        ..Default::default()
    }
}

/// A message that answers nothing.
fn unasked(event: &OwnedEvent) -> Option<FromGateway> {
    match event {
        OwnedEvent::Message { stub, message, .. } if stub.0 == 0 => Some(message.clone()),
        _ => None,
    }
}

pub(crate) fn c06_globals_owner_is_notified_of_logins_and_channels(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut master = gateway.server();
    master.own_global();
    let mut other = gateway.server();
    let login = master.expect("word of the login", |event| match unasked(event) {
        Some(FromGateway::Auth(login)) => Some(login),
        _ => None,
    });
    assert_eq!(login.conn_id, other.id);
    let made = other.create(CreateChannelMessage {
        metadata: "room".into(),
        ..of_type(ChannelType::Test)
    });
    assert_eq!(made.owner_conn_id, other.id);
    assert_eq!(made.metadata, "room");
    let word = master.expect("word of the channel", |event| match unasked(event) {
        Some(FromGateway::CreateChannel(made)) => Some(made),
        _ => None,
    });
    assert_eq!(word, made);
    // The creator is subscribed; nobody else is notified.
    assert_eq!(other.sub_result(made.channel_id).conn_id, other.id);
    master.expect_none("another's subscription", sub_result_in(made.channel_id));
}

pub(crate) fn c06_a_taken_global_is_refused_in_silence(whose: Whose) {
    let gateway = Gateway::start(whose);
    gateway.server().list();
    let mut master = gateway.server();
    master.own_global();
    let mut other = gateway.server();
    other.send(|outbox| outbox.create_channel(of_type(ChannelType::Global)));
    other.send(|outbox| outbox.create_channel(of_type(ChannelType::Unknown)));
    other.list();
    other.expect_none("an answer", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::CreateChannel(made),
            ..
        } => Some(made.clone()),
        _ => None,
    });
}

pub(crate) fn c06_lists_are_filtered_by_type_and_metadata(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut server = gateway.server();
    let mut named = |metadata: &str, channel_type| {
        server
            .create(CreateChannelMessage {
                metadata: metadata.into(),
                ..of_type(channel_type)
            })
            .channel_id
    };
    let red = named("a red room", ChannelType::Test);
    let blue = named("a blue room", ChannelType::Subworld);
    let mut list = |of_type, filters: &[&str]| {
        let asked = server.send(|outbox| outbox.list_channels(of_type, filters));
        let FromGateway::ListChannel(list) = server.answer(asked) else {
            panic!("no list");
        };
        let mut ids: Vec<u32> = list.channels.iter().map(|info| info.channel_id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(list(ChannelType::Unknown, &[]), [0, red, blue]);
    assert_eq!(list(ChannelType::Test, &[]), [red]);
    assert_eq!(list(ChannelType::Unknown, &["red", "blue"]), [red, blue]);
    assert_eq!(list(ChannelType::Subworld, &["red"]), [0u32; 0]);
}

pub(crate) fn c06_subscriptions_are_reported_to_asker_subject_and_owner(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let mut third = gateway.server();
    let mut subject = gateway.client();
    let channel = owner.create(of_type(ChannelType::Test)).channel_id;
    owner.sub_result(channel);
    let subject_id = subject.id;
    let asked = third.send(|outbox| outbox.subscribe(channel, subject_id, None));
    let FromGateway::SubToChannel(answer) = third.answer(asked) else {
        panic!("no subscription");
    };
    assert_eq!(answer.conn_id, subject.id);
    assert_eq!(answer.conn_type, ConnectionType::Client as i32);
    assert_eq!(answer.channel_type, ChannelType::Test as i32);
    let effective = answer.sub_options.clone().unwrap();
    assert_eq!(effective.data_access, Some(READ.into()));
    assert_eq!(effective.fan_out_interval_ms, Some(20));
    assert_eq!(effective.fan_out_delay_ms, Some(0));
    assert_eq!(effective.skip_self_update_fan_out, Some(true));
    assert_eq!(effective.skip_first_fan_out, Some(false));
    assert_eq!(subject.sub_result(channel), answer);
    assert_eq!(owner.sub_result(channel), answer);

    let asked = third.send(|outbox| outbox.unsubscribe(channel, subject_id));
    let FromGateway::UnsubFromChannel(answer) = third.answer(asked) else {
        panic!("no end of a subscription");
    };
    assert_eq!(answer.conn_id, subject.id);
    assert_eq!(subject.unsub_result(channel), answer);
    assert_eq!(owner.unsub_result(channel), answer);
    // Once more: there is nothing to end, and nothing is said.
    third.send(|outbox| outbox.unsubscribe(channel, subject_id));
    third.list();
    third.expect_none("a second end", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::UnsubFromChannel(end),
            ..
        } => Some(*end),
        _ => None,
    });
}

pub(crate) fn c06_a_client_subscribes_only_itself(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let other = gateway.client();
    let channel = owner.create(of_type(ChannelType::Test)).channel_id;
    let mut client = gateway.client();
    let asked = client.send(|outbox| outbox.subscribe(channel, other.id, None));
    let FromGateway::SubToChannel(answer) = client.answer(asked) else {
        panic!("no subscription");
    };
    assert_eq!(answer.conn_id, client.id);
}

pub(crate) fn c07_an_interval_changes_in_silence(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create(of_type(ChannelType::Test)).channel_id;
    owner.sub_result(channel);
    let mut client = gateway.client();
    client.sub(channel, options(READ, 50));
    owner.sub_result(channel);
    let id = client.id;
    client.send(|outbox| outbox.subscribe(channel, id, Some(options(READ, 100))));
    client.expect_none("an answer", sub_result_in(channel));
    owner.expect_none("word", sub_result_in(channel));
    // It has changed nonetheless: the next answer shows it.
    let answer = client.sub(
        channel,
        lagometer_protocol::messages::channeldpb::ChannelSubscriptionOptions {
            data_access: Some(WRITE.into()),
            ..Default::default()
        },
    );
    assert_eq!(answer.sub_options.unwrap().fan_out_interval_ms, Some(100));
}

pub(crate) fn c08_a_change_of_access_is_reported(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create(of_type(ChannelType::Test)).channel_id;
    owner.sub_result(channel);
    let mut client = gateway.client();
    client.sub(channel, options(READ, 50));
    owner.sub_result(channel);
    let answer = client.sub(channel, options(ChannelDataAccess::WriteAccess, 50));
    assert_eq!(
        answer.sub_options.clone().unwrap().data_access,
        Some(WRITE.into())
    );
    assert_eq!(owner.sub_result(channel), answer);
}

pub(crate) fn c16_a_removal_is_reported_to_subscribers(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create(of_type(ChannelType::Test)).channel_id;
    let mut client = gateway.client();
    client.sub(channel, options(READ, 20));
    owner.send(|outbox| outbox.remove_channel(channel));
    for peer in [&mut client, &mut owner] {
        peer.expect("word of the removal", |event| match event {
            OwnedEvent::Message {
                message: FromGateway::RemoveChannel(removed),
                ..
            } if removed.channel_id == channel => Some(()),
            _ => None,
        });
    }
    assert!(!owner.list().contains(&channel));
}

/// The word of a removal bears type 4 when the gateway removes by itself too.
pub(crate) fn c16_an_owners_end_removes_its_channel_with_word(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut watcher = gateway.server();
    let mut owner = gateway.server();
    let channel = owner.create(of_type(ChannelType::Subworld)).channel_id;
    watcher.sub(channel, options(READ, 20));
    drop(owner);
    watcher.expect("word of the removal", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::RemoveChannel(removed),
            ..
        } if removed.channel_id == channel => Some(()),
        _ => None,
    });
}

pub(crate) fn c16_an_owners_end_removes_its_channel(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut watcher = gateway.server();
    let mut owner = gateway.server();
    let channel = owner.create(of_type(ChannelType::Subworld)).channel_id;
    let stays = owner.create(of_type(ChannelType::Test)).channel_id;
    assert!(watcher.list().contains(&channel));
    drop(owner);
    let gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !watcher.list().contains(&channel)
    });
    assert!(gone, "a subworld ends with its owner");
    assert!(watcher.list().contains(&stays), "a test channel does not");
}

pub(crate) fn c16_a_subscribers_end_is_reported_to_the_owner(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner.create(of_type(ChannelType::Test)).channel_id;
    let mut client = gateway.client();
    client.sub(channel, options(READ, 20));
    let id = client.id;
    drop(client);
    let ended = owner.unsub_result(channel);
    assert_eq!(ended.conn_id, id);
    assert_eq!(ended.conn_type, ConnectionType::Client as i32);
}

pub(crate) fn c17_ids_count_up_and_removed_ones_come_again(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut server = gateway.server();
    let mut make = || server.create(of_type(ChannelType::Test)).channel_id;
    let (first, second) = (make(), make());
    assert_eq!((first, second), (1, 2));
    server.send(|outbox| outbox.remove_channel(first));
    server.expect("the removal", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::RemoveChannel(_),
            ..
        } => Some(()),
        _ => None,
    });
    assert_eq!(
        server.create(of_type(ChannelType::Test)).channel_id,
        1,
        "the removed one is the next"
    );
    assert_eq!(server.create(of_type(ChannelType::Test)).channel_id, 3);
}

pub(crate) fn c17_entity_channels_have_the_ids_of_their_entities(whose: Whose) {
    let gateway = Gateway::start_with(whose, &Settings::default());
    let mut server = gateway.server();
    server.own_global();
    let entity = |entity_id| CreateEntityChannelMessage {
        entity_id,
        ..Default::default()
    };
    let asked = server.send(|outbox| outbox.create_entity_channel(0, entity(0x80001)));
    let FromGateway::CreateEntityChannel(made) = server.answer(asked) else {
        panic!("no entity channel");
    };
    assert_eq!(made.channel_id, 0x80001);
    assert_eq!(made.channel_type, ChannelType::Entity as i32);
    server.sub_result(0x80001);
    // Below the range, and once more: refused in silence.
    server.send(|outbox| outbox.create_entity_channel(0, entity(0x7ffff)));
    server.send(|outbox| outbox.create_entity_channel(0, entity(0x80001)));
    server.list();
    server.expect_none("an answer", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::CreateEntityChannel(made),
            ..
        } => Some(made.clone()),
        _ => None,
    });
}

pub(crate) fn c21_well_known_entities_find_those_who_come_later(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut server = gateway.server();
    server.own_global();
    let mut early = gateway.client();
    let asked = server.send(|outbox| {
        outbox.create_entity_channel(
            0,
            CreateEntityChannelMessage {
                entity_id: 0x80002,
                is_well_known: true,
                ..Default::default()
            },
        )
    });
    server.answer(asked);
    assert_eq!(early.sub_result(0x80002).conn_id, early.id);
    let mut late = gateway.client();
    let word = late.sub_result(0x80002);
    assert_eq!(word.conn_id, late.id);
    assert_eq!(word.sub_options.unwrap().fan_out_delay_ms, Some(1000));
}

pub(crate) fn c17_an_entity_may_be_made_like_other_channels(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let made = owner.create(CreateChannelMessage {
        channel_type: ChannelType::Entity.into(),
        ..Default::default()
    });
    assert_eq!(made.channel_type, ChannelType::Entity as i32);
    assert_eq!(made.channel_id, 1);
}
