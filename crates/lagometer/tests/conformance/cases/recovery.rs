//! Servers that break off and come back.

use std::process::{Command, Stdio};

use lagometer_client::OwnedEvent;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::tpspb::TestRepChannelData;
use lagometer_protocol::messages::unrealpb::PlayerState;
use prost::Message;

use crate::harness::{Gateway, Peer, READ, Settings, WRITE, Whose, options};

const GAME: &str = "tpspb.TestRepChannelData";

/// Makes this program the owner of a channel at the address it names.
const OWNER: &str = "LAGOMETER_CONFORMANCE_OWNER";

fn recovering(whose: Whose) -> Gateway {
    Gateway::start_with(
        whose,
        &Settings {
            recovery: true,
            ..Settings::default()
        },
    )
}

fn player(id: u32, player_id: i32) -> TestRepChannelData {
    let state = PlayerState {
        player_id: Some(player_id),
        ..Default::default()
    };
    TestRepChannelData {
        player_states: [(id, state)].into(),
        ..Default::default()
    }
}

/// Waits for word of a channel that `is_it` knows.
fn word(peer: &mut Peer, what: &str, channel: u32, is_it: fn(&FromGateway) -> bool) {
    peer.expect(what, |event| match event {
        OwnedEvent::Message {
            channel_id,
            message,
            ..
        } if *channel_id == channel && is_it(message) => Some(()),
        _ => None,
    });
}

fn owner_lost(message: &FromGateway) -> bool {
    matches!(message, FromGateway::ChannelOwnerLost(_))
}

/// Runs as the owner where the environment says so; does not return then.
pub(crate) fn own_if_asked() {
    let Ok(address) = std::env::var(OWNER) else {
        return;
    };
    let mut owner = Peer::let_in_as(address.parse().unwrap(), "killed");
    let channel = owner.create_test(GAME, &player(1, 41), None);
    owner.update(channel, GAME, &player(2, 42));
    loop {
        owner.client.drain_events().for_each(drop);
        let _ = owner.client.next_event(std::time::Duration::from_secs(1));
    }
}

pub(crate) fn c22_an_owner_that_is_killed_is_recovered(whose: Whose) {
    let gateway = recovering(whose);
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .env(OWNER, gateway.servers.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut watcher = gateway.server();
    let deadline = std::time::Instant::now() + crate::harness::SOON;
    let channel = loop {
        assert!(std::time::Instant::now() < deadline, "no channel is made");
        if let Some(&channel) = watcher.list().iter().find(|&&channel| channel != 0) {
            break channel;
        }
    };
    watcher.sub(channel, options(READ, 20));
    while !watcher
        .data::<TestRepChannelData>(channel)
        .player_states
        .contains_key(&2)
    {}
    // SIGKILL: it says nothing any more.
    owner.kill().unwrap();
    owner.wait().unwrap();
    word(&mut watcher, "word of the loss", channel, owner_lost);
    let mut back = Peer::let_in_as(gateway.servers, "killed");
    let data = recovered(&mut back, channel).channel_data.unwrap();
    let data = TestRepChannelData::decode(&*data.value).unwrap();
    assert_eq!(data.player_states[&1].player_id, Some(41));
    assert_eq!(data.player_states[&2].player_id, Some(42));
}

fn recovered(
    back: &mut Peer,
    channel: u32,
) -> lagometer_protocol::messages::channeldpb::ChannelDataRecoveryMessage {
    back.expect("the channel", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::RecoveryChannelData(recovered),
            ..
        } if recovered.channel_id == channel => Some(recovered.clone()),
        _ => None,
    })
}

pub(crate) fn c22_a_server_takes_up_what_it_owned(whose: Whose) {
    let gateway = recovering(whose);
    let mut owner = Peer::let_in_as(gateway.servers, "the-one");
    let id = owner.id;
    let nothing = TestRepChannelData::default();
    let channel = owner.create_test(GAME, &nothing, Some(options(WRITE, 30)));
    let mut watcher = gateway.server();
    watcher.sub(channel, options(READ, 20));
    owner.update(channel, GAME, &player(1, 7));
    watcher.data::<TestRepChannelData>(channel);
    owner.list();
    drop(owner);
    word(&mut watcher, "word of the loss", channel, owner_lost);

    let mut back = Peer::let_in_as(gateway.servers, "the-one");
    assert_eq!(back.id, id, "the connection id comes back");
    let recovered = recovered(&mut back, channel);
    assert_eq!(recovered.owner_conn_id, id);
    let sub_options = recovered.sub_options.unwrap();
    assert_eq!(sub_options.data_access, Some(WRITE.into()));
    assert_eq!(sub_options.fan_out_interval_ms, Some(30));
    let data = recovered.channel_data.unwrap();
    let data = TestRepChannelData::decode(&*data.value).unwrap();
    assert_eq!(data.player_states[&1].player_id, Some(7));
    word(&mut back, "the end of the recovery", 0, |message| {
        matches!(message, FromGateway::RecoveryEnd(_))
    });
    word(&mut watcher, "word of the return", channel, |message| {
        matches!(message, FromGateway::ChannelOwnerRecovered(_))
    });
    // It owns again: what a client says reaches it.
    let mut client = gateway.client();
    client.send(|outbox| outbox.message_owner(channel, 130, b"welcome back"));
    assert_eq!(back.user().3, b"welcome back");
}

pub(crate) fn c22_clients_are_not_served_until_the_recovery_ends(whose: Whose) {
    let gateway = recovering(whose);
    let mut owner = Peer::let_in_as(gateway.servers, "the-one");
    let channel = owner.create_test(GAME, &player(1, 1), Some(options(WRITE, 30)));
    let mut watcher = gateway.server();
    watcher.sub(channel, options(READ, 20));
    let mut client = gateway.client();
    drop(owner);
    word(&mut watcher, "word of the loss", channel, owner_lost);
    let mut back = Peer::let_in_as(gateway.servers, "the-one");
    recovered(&mut back, channel);
    client.send(|outbox| outbox.message_owner(channel, 130, b"too early"));
    client.list();
    word(&mut back, "the end of the recovery", 0, |message| {
        matches!(message, FromGateway::RecoveryEnd(_))
    });
    client.send(|outbox| outbox.message_owner(channel, 130, b"in time"));
    assert_eq!(back.user().3, b"in time");
}

pub(crate) fn c22_a_server_that_disconnects_itself_may_come_back(whose: Whose) {
    let gateway = recovering(whose);
    let mut owner = Peer::let_in_as(gateway.servers, "the-one");
    let id = owner.id;
    let channel = owner.create_test(GAME, &player(1, 1), Some(options(WRITE, 30)));
    let mut watcher = gateway.server();
    watcher.sub(channel, options(READ, 20));
    owner.send(|outbox| outbox.disconnect(id));
    word(&mut watcher, "word of the loss", channel, owner_lost);
    let mut back = Peer::let_in_as(gateway.servers, "the-one");
    assert_eq!(back.id, id);
    recovered(&mut back, channel);
}
