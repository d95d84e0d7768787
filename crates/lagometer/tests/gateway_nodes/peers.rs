//! Game servers and players of a gateway of several nodes.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lagometer_client::Settings;
use lagometer_client::blocking::{Client, ClientError};
use lagometer_protocol::FromGateway;
use lagometer_protocol::any::type_url;
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
};
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use lagometer_protocol::schema::Schema;
use prost::Message as _;
use prost_types::Any;

use crate::node::PATIENT;

const GLOBAL: u32 = 0;

fn data(entries: impl Iterator<Item = u32>) -> TestRepChannelData {
    let state = TestNpcState {
        b_moving: Some(true),
        goal_location: None,
    };
    TestRepChannelData {
        test_npc_states: entries.map(|entry| (entry, state)).collect(),
        ..TestRepChannelData::default()
    }
}

fn data_type() -> String {
    type_url("tpspb.TestRepChannelData")
}

fn connect(at: SocketAddr, name: &str) -> Result<Client, ClientError> {
    let mut client = Client::connect(at, Settings::default(), Schema::bundled())?;
    client.login(name, "secret", Duration::from_secs(5))?;
    Ok(client)
}

/// Connects to any of these until one lets it in.
fn connect_somewhere(to: &[SocketAddr], name: &str) -> Client {
    let until = Instant::now() + PATIENT;
    loop {
        for &at in to {
            if let Ok(client) = connect(at, name) {
                return client;
            }
        }
        assert!(Instant::now() < until, "{name} is let in nowhere");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn every_20_ms() -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        fan_out_interval_ms: Some(20),
        ..ChannelSubscriptionOptions::default()
    }
}

/// A game server that owns GLOBAL and adds entries to its data.
pub(crate) struct GameServer {
    pub(crate) client: Client,
    pub(crate) entries: u32,
}

impl GameServer {
    /// Takes GLOBAL through any of these, and brings it to where the game is.
    pub(crate) fn start(to: &[SocketAddr], entries: u32) -> Self {
        let until = Instant::now() + PATIENT;
        loop {
            let mut client = connect_somewhere(to, "server");
            let message = CreateChannelMessage {
                channel_type: 1,
                data: Some(Any {
                    type_url: data_type(),
                    value: data(0..entries).encode_to_vec(),
                }),
                ..CreateChannelMessage::default()
            };
            let own = client.conn_id().unwrap();
            let asked = client.outbox().create_channel(message).unwrap();
            let answer = client.answer(asked, Duration::from_millis(500));
            if let Ok(FromGateway::CreateChannel(created)) = answer
                && created.owner_conn_id == own
            {
                let mut server = Self { client, entries };
                if server.try_update(0..entries).is_ok() {
                    return server;
                }
            }
            // Its own connection of before has it until the gateway knows that it is gone, and
            // that is not answered.
            assert!(Instant::now() < until, "the server never owns GLOBAL");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn update(&mut self, entries: std::ops::Range<u32>) {
        self.try_update(entries).unwrap();
    }

    /// Makes so many channels beside GLOBAL, each with no entries. Returns their numbers.
    pub(crate) fn make_rooms(&mut self, count: u32) -> Vec<u32> {
        let make = |number| {
            let message = CreateChannelMessage {
                channel_type: 2,
                metadata: format!("room {number}"),
                data: Some(Any {
                    type_url: data_type(),
                    value: Vec::new(),
                }),
                ..CreateChannelMessage::default()
            };
            let asked = self.client.outbox().create_channel(message).unwrap();
            match self.client.answer(asked, PATIENT).unwrap() {
                FromGateway::CreateChannel(made) => made.channel_id,
                other => panic!("{other:?}"),
            }
        };
        (0..count).map(make).collect()
    }

    /// Adds an entry to each of these channels.
    pub(crate) fn add_to(&mut self, rooms: &[u32]) {
        self.entries += 1;
        let value = data(self.entries - 1..self.entries).encode_to_vec();
        for &room in rooms {
            let outbox = self.client.outbox();
            outbox.update(room, &data_type(), &value).unwrap();
        }
        self.client.flush().unwrap();
    }

    fn try_update(&mut self, entries: std::ops::Range<u32>) -> Result<(), ClientError> {
        let value = data(entries).encode_to_vec();
        let outbox = self.client.outbox();
        outbox.update(GLOBAL, &data_type(), &value).unwrap();
        self.client.flush()
    }

    /// Adds one, if the gateway still has this server.
    pub(crate) fn try_add(&mut self) -> Result<(), ClientError> {
        self.entries += 1;
        self.try_update(self.entries - 1..self.entries)
    }

    pub(crate) fn add(&mut self, more: u32) {
        for _ in 0..more {
            self.entries += 1;
            self.update(self.entries - 1..self.entries);
        }
    }
}

/// A player that sees GLOBAL.
pub(crate) fn player(to: &[SocketAddr], name: &str) -> Client {
    let mut client = connect_somewhere(to, name);
    subscribe(&mut client, GLOBAL);
    client
}

/// Lists all channels of the rooms' type: their numbers and names.
pub(crate) fn rooms(client: &mut Client) -> Vec<(u32, String)> {
    let asked = client
        .outbox()
        .list_channels(ChannelType::Private, &[])
        .unwrap();
    match client.answer(asked, PATIENT).unwrap() {
        FromGateway::ListChannel(list) => {
            let rooms = list.channels.into_iter();
            rooms.map(|it| (it.channel_id, it.metadata)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Subscribes to a channel.
pub(crate) fn subscribe(client: &mut Client, channel: u32) {
    let own = client.conn_id().unwrap();
    let outbox = client.outbox();
    outbox.subscribe(channel, own, Some(every_20_ms())).unwrap();
    client.flush().unwrap();
}

pub(crate) fn seen(client: &Client) -> BTreeSet<u32> {
    seen_of(client, GLOBAL)
}

/// What a client has of a channel.
pub(crate) fn seen_of(client: &Client, channel: u32) -> BTreeSet<u32> {
    let data = client.mirror().data::<TestRepChannelData>(channel);
    let data = data.unwrap_or_default();
    data.test_npc_states.into_keys().collect()
}

/// Waits until a player sees all entries.
pub(crate) fn sees(client: &mut Client, entries: u32) -> Result<(), ClientError> {
    client.wait_until(PATIENT, |client| seen(client).len() as u32 == entries)
}

/// Waits until a peer is hung up on, and returns how long that took.
pub(crate) fn is_hung_up_on(client: &mut Client) -> Duration {
    let since = Instant::now();
    loop {
        match client.next_event(Duration::from_millis(100)) {
            Ok(_) => assert!(since.elapsed() < PATIENT, "it stays"),
            Err(_) => return since.elapsed(),
        }
    }
}
