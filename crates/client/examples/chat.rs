//! A chat room: `cargo run -p lagometer-client --example chat -- NAME [GATEWAY]`
//!
//! What is typed goes to all in the room. The first to come opens it. The
//! gateway has to let clients create and update channels, as with channeld's
//! `client_authoratative_fsm.json`.

use std::io::BufRead;
use std::sync::mpsc;
use std::time::Duration;

use lagometer_client::blocking::{Client, ClientError};
use lagometer_client::{OwnedEvent, Settings};
use lagometer_protocol::FromGateway;
use lagometer_protocol::any;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelDataMergeOptions, ChannelSubscriptionOptions, ChannelType,
    CreateChannelMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::schema::Schema;
use prost::Message;

const ROOM: &str = "lagometer-chat";
const SOON: Duration = Duration::from_secs(5);

fn main() -> Result<(), ClientError> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "somebody".to_owned());
    let gateway = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:12108".to_owned());

    let mut client = Client::connect(&gateway, Settings::default(), Schema::bundled())?;
    client.login(&name, "chat", SOON)?;
    let room = enter(&mut client)?;
    println!("{name} is in channel {room}; an empty line leaves");

    let lines = typed_lines();
    loop {
        match lines.try_recv() {
            Ok(line) if line.is_empty() => return Ok(()),
            Ok(content) => say(&mut client, room, &name, content)?,
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => return Ok(()),
        }
        let Some(OwnedEvent::Data { value, .. }) = client.next_event(Duration::from_millis(20))?
        else {
            continue;
        };
        let said = ChatChannelData::decode(&*value).unwrap_or_default();
        for message in said.chat_messages {
            println!("{}: {}", message.sender, message.content);
        }
    }
}

/// Finds the room, or opens it, and subscribes to it.
fn enter(client: &mut Client) -> Result<u32, ClientError> {
    let may_write = ChannelSubscriptionOptions {
        data_access: Some(ChannelDataAccess::WriteAccess.into()),
        ..Default::default()
    };
    let asked = client
        .outbox()
        .list_channels(ChannelType::Subworld, &[ROOM])?;
    if let FromGateway::ListChannel(list) = client.answer(asked, SOON)?
        && let Some(room) = list.channels.first()
    {
        let own = client.conn_id().unwrap_or_default();
        let asked = client
            .outbox()
            .subscribe(room.channel_id, own, Some(may_write))?;
        client.answer(asked, SOON)?;
        return Ok(room.channel_id);
    }
    let asked = client.outbox().create_channel(CreateChannelMessage {
        channel_type: ChannelType::Subworld.into(),
        metadata: ROOM.to_owned(),
        sub_options: Some(may_write),
        data: Some(prost_types::Any {
            type_url: any::type_url("chatpb.ChatChannelData"),
            value: Vec::new(),
        }),
        merge_options: Some(ChannelDataMergeOptions {
            list_size_limit: 100,
            truncate_top: true,
            ..Default::default()
        }),
    })?;
    match client.answer(asked, SOON)? {
        FromGateway::CreateChannel(made) => Ok(made.channel_id),
        _ => Err(ClientError::Closed),
    }
}

/// Adds a message to the room's list. The gateway does not notify a client of
/// its own updates.
fn say(client: &mut Client, room: u32, name: &str, content: String) -> Result<(), ClientError> {
    let data = ChatChannelData {
        chat_messages: vec![ChatMessage {
            sender: name.to_owned(),
            content,
            ..Default::default()
        }],
    };
    let type_url = any::type_url("chatpb.ChatChannelData");
    client
        .outbox()
        .update(room, &type_url, &data.encode_to_vec())?;
    client.flush()
}

fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
