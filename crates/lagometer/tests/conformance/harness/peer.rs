//! A game server or a player of a test, who fails it when what has to come
//! does not.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lagometer_client::blocking::{Client, ClientError};
use lagometer_client::{Outbox, OwnedEvent, SendError, Settings, Stub};
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, CreateChannelMessage, CreateChannelResultMessage,
    SubscribedToChannelResultMessage, UnsubscribedFromChannelResultMessage,
};
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{Broadcast, FromGateway, any};
use prost::Message;

/// What has to come comes within this.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// What must not come is waited for this long: many ticks.
pub(crate) const QUIET: Duration = Duration::from_millis(250);

/// A peer that is let in.
pub(crate) struct Peer {
    pub(crate) client: Client,
    pub(crate) id: u32,
}

impl Peer {
    /// Connects and logs in with a token of its own.
    pub(crate) fn let_in(address: SocketAddr) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::let_in_as(address, &format!("peer-{number}"))
    }

    /// Connects and logs in with that token.
    pub(crate) fn let_in_as(address: SocketAddr, token: &str) -> Self {
        let mut client = connect(address);
        let id = client.login(token, "lt", SOON).unwrap();
        Self { client, id }
    }

    /// Puts something into the outbox and sends it.
    pub(crate) fn send<T>(&mut self, put: impl FnOnce(&mut Outbox) -> Result<T, SendError>) -> T {
        let sent = put(self.client.outbox()).unwrap();
        self.client.flush().unwrap();
        sent
    }

    /// Waits for the first event of which `wanted` makes something.
    pub(crate) fn expect<T>(&mut self, what: &str, wanted: impl Fn(&OwnedEvent) -> Option<T>) -> T {
        match self
            .client
            .take_event(SOON, |event| wanted(event).is_some())
        {
            Ok(event) => wanted(&event).unwrap(),
            Err(error) => {
                let others: Vec<OwnedEvent> = self.client.drain_events().collect();
                panic!("{what}: {error}; there were {others:#?}");
            }
        }
    }

    /// That nothing comes of which `unwanted` makes something.
    pub(crate) fn expect_none<T: Debug>(
        &mut self,
        what: &str,
        unwanted: impl Fn(&OwnedEvent) -> Option<T>,
    ) {
        match self
            .client
            .take_event(QUIET, |event| unwanted(event).is_some())
        {
            Err(ClientError::TimedOut(_)) => {}
            other => panic!("{what}: {other:?}"),
        }
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, asked: Stub) -> FromGateway {
        self.expect("an answer", |event| match event {
            OwnedEvent::Message { stub, message, .. } if *stub == asked => Some(message.clone()),
            _ => None,
        })
    }

    /// Makes a channel and waits for the answer.
    pub(crate) fn create(&mut self, channel: CreateChannelMessage) -> CreateChannelResultMessage {
        let asked = self.send(|outbox| outbox.create_channel(channel));
        match self.answer(asked) {
            FromGateway::CreateChannel(made) => made,
            other => panic!("{other:?}"),
        }
    }

    /// Makes a channel of type TEST with data, subscribed with `options`, and
    /// waits until that is so.
    pub(crate) fn create_test<T: Message>(
        &mut self,
        type_name: &str,
        data: &T,
        options: Option<ChannelSubscriptionOptions>,
    ) -> u32 {
        let made = self.create(CreateChannelMessage {
            channel_type: ChannelType::Test.into(),
            sub_options: options,
            data: Some(any_of(type_name, data)),
            ..Default::default()
        });
        self.sub_result(made.channel_id);
        made.channel_id
    }

    /// Takes GLOBAL.
    pub(crate) fn own_global(&mut self) {
        self.create(CreateChannelMessage {
            channel_type: ChannelType::Global.into(),
            ..Default::default()
        });
        self.sub_result(0);
    }

    /// Subscribes itself and waits for the answer.
    pub(crate) fn sub(
        &mut self,
        channel: u32,
        options: ChannelSubscriptionOptions,
    ) -> SubscribedToChannelResultMessage {
        let id = self.id;
        let asked = self.send(|outbox| outbox.subscribe(channel, id, Some(options)));
        match self.answer(asked) {
            FromGateway::SubToChannel(result) => result,
            other => panic!("{other:?}"),
        }
    }

    /// The next word of a subscription to a channel.
    pub(crate) fn sub_result(&mut self, channel: u32) -> SubscribedToChannelResultMessage {
        self.expect("word of a subscription", sub_result_in(channel))
    }

    /// The next word of a subscription's end.
    pub(crate) fn unsub_result(&mut self, channel: u32) -> UnsubscribedFromChannelResultMessage {
        self.expect("word of a subscription's end", |event| match event {
            OwnedEvent::Message {
                channel_id,
                message: FromGateway::UnsubFromChannel(result),
                ..
            } if *channel_id == channel => Some(*result),
            _ => None,
        })
    }

    /// Updates a channel's data.
    pub(crate) fn update<T: Message>(&mut self, channel: u32, type_name: &str, data: &T) {
        let (url, value) = (any::type_url(type_name), data.encode_to_vec());
        self.send(|outbox| outbox.update(channel, &url, &value));
    }

    /// The next data of a channel.
    pub(crate) fn data<T: Message + Default>(&mut self, channel: u32) -> T {
        self.expect("channel data", |event| match event {
            OwnedEvent::Data {
                channel_id, value, ..
            } if *channel_id == channel => Some(T::decode(&**value).unwrap()),
            _ => None,
        })
    }

    /// That no data of a channel comes.
    pub(crate) fn expect_no_data(&mut self, what: &str, channel: u32) {
        self.expect_none(what, |event| match event {
            OwnedEvent::Data {
                channel_id, value, ..
            } if *channel_id == channel => Some(value.clone()),
            _ => None,
        });
    }

    /// The next message of the game's own: channel, type, client, payload.
    pub(crate) fn user(&mut self) -> (u32, u32, u32, Vec<u8>) {
        self.expect("a message of the game's own", user_message)
    }

    /// Sends a server's message of the game's own.
    pub(crate) fn broadcast(&mut self, channel: u32, flags: u32, client: u32, payload: &[u8]) {
        self.send(|outbox| outbox.message(channel, Broadcast(flags), client, 110, payload));
    }

    /// Asks for all channels and waits for the answer: what was sent to GLOBAL
    /// before has been handled then.
    pub(crate) fn list(&mut self) -> Vec<u32> {
        let asked = self.send(|outbox| outbox.list_channels(ChannelType::Unknown, &[]));
        match self.answer(asked) {
            FromGateway::ListChannel(list) => {
                list.channels.iter().map(|info| info.channel_id).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A connection that has said nothing.
pub(crate) fn connect(address: SocketAddr) -> Client {
    Client::connect(address, Settings::default(), Schema::bundled()).unwrap()
}

/// A message as `google.protobuf.Any`.
pub(crate) fn any_of<T: Message>(type_name: &str, data: &T) -> prost_types::Any {
    prost_types::Any {
        type_url: any::type_url(type_name),
        value: data.encode_to_vec(),
    }
}

/// Word of a subscription to a channel.
pub(crate) fn sub_result_in(
    channel: u32,
) -> impl Fn(&OwnedEvent) -> Option<SubscribedToChannelResultMessage> {
    move |event| match event {
        OwnedEvent::Message {
            channel_id,
            message: FromGateway::SubToChannel(result),
            ..
        } if *channel_id == channel => Some(result.clone()),
        _ => None,
    }
}

/// A message of the game's own: channel, type, client, payload.
pub(crate) fn user_message(event: &OwnedEvent) -> Option<(u32, u32, u32, Vec<u8>)> {
    match event {
        OwnedEvent::User {
            channel_id,
            msg_type,
            client_conn_id,
            payload,
            ..
        } => Some((*channel_id, *msg_type, *client_conn_id, payload.clone())),
        _ => None,
    }
}
