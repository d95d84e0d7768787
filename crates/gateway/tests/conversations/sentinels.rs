//! The well-behaved among attackers: a game server that owns GLOBAL and a
//! channel, and two clients that read the channel and speak with the server.
//! Where only clients attack, nothing of theirs may be lost or late.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_protocol::ServerForward;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataUpdateMessage, ChannelSubscriptionOptions, CreateChannelMessage, MessagePack,
    SubscribedToChannelMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_units::Time;
use prost::Message;
use prost_types::Any;

/// The channel the sentinels have: the first that is made.
pub(crate) const CHANNEL: u32 = 1;

/// The game's own messages that the sentinels send.
const SAYS: u32 = 150;

/// How long, in virtual time, a line or an answer may take: five ticks and
/// intervals. Nothing that attackers do changes this.
const LATE: Duration = Duration::from_millis(200);

const URL: &str = "type.googleapis.com/chatpb.ChatChannelData";

/// What begins a sentinel's line, and no attacker's.
const MARK: &str = "line ";

/// What the sentinels have sent and not received yet.
#[derive(Default)]
pub(crate) struct Sentinels {
    /// Lines the server has written: when.
    lines: Vec<Time>,
    /// The next line of each reader.
    next: [usize; 2],
    /// What each reader has said that was not answered: number and when.
    asked: [VecDeque<(u32, Time)>; 2],
    said: u32,
}

impl Sentinels {
    /// The next line, as a message.
    pub(crate) fn write(&mut self, now: Time) -> MessagePack {
        let line = ChatChannelData {
            chat_messages: vec![ChatMessage {
                content: format!("{MARK}{}", self.lines.len()),
                ..ChatMessage::default()
            }],
        };
        self.lines.push(now);
        let update = ChannelDataUpdateMessage {
            data: Some(data(&line)),
            context_conn_id: 0,
        };
        pack(CHANNEL, 0, 8, &update)
    }

    /// What a reader asks the server next, as a message.
    pub(crate) fn ask(&mut self, now: Time, reader: usize) -> MessagePack {
        self.said += 1;
        self.asked[reader].push_back((self.said, now));
        MessagePack {
            channel_id: CHANNEL,
            msg_type: SAYS,
            msg_body: self.said.to_le_bytes().to_vec().into(),
            ..MessagePack::default()
        }
    }

    /// What the server answers to a message, if it is a reader's.
    pub(crate) fn answer(message: &MessagePack, readers: [u32; 2]) -> Option<MessagePack> {
        let forward = ServerForward::parse(&message.msg_body).ok()?;
        let is_readers = message.msg_type == SAYS
            && message.channel_id == CHANNEL
            // One that was not let in has no number; to 0 is to the server itself.
            && forward.client_conn_id != 0
            && readers.contains(&forward.client_conn_id);
        is_readers.then(|| MessagePack {
            broadcast: 1,
            ..message.clone()
        })
    }

    /// A reader has read a message. `alone` if nobody else writes.
    pub(crate) fn on_message(
        &mut self,
        reader: usize,
        message: &MessagePack,
        alone: bool,
    ) -> Result<(), String> {
        if message.channel_id != CHANNEL {
            return Ok(());
        }
        if message.msg_type == SAYS {
            let forward =
                ServerForward::parse(&message.msg_body).map_err(|error| error.to_string())?;
            let (asked, _) = self.asked[reader]
                .pop_front()
                .ok_or_else(|| format!("reader {reader} is answered what it has not asked"))?;
            if forward.payload != asked.to_le_bytes() {
                return Err(format!(
                    "reader {reader} asked {asked}: another answer comes"
                ));
            }
        } else if message.msg_type == 8 {
            let update = ChannelDataUpdateMessage::decode(&*message.msg_body)
                .map_err(|error| format!("reader {reader}: {error}"))?;
            let value = update.data.unwrap_or_default().value;
            let lines = ChatChannelData::decode(&*value)
                .map_err(|error| format!("reader {reader}: {error}"))?;
            for line in lines.chat_messages {
                self.line(reader, &line.content, alone)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, reader: usize, content: &str, alone: bool) -> Result<(), String> {
        let Some(number) = content.strip_prefix(MARK) else {
            return if alone {
                Err(format!(
                    "reader {reader} reads {content:?}, which nobody wrote"
                ))
            } else {
                Ok(())
            };
        };
        let number: usize = number.parse().map_err(|_| "a broken line".to_owned())?;
        let next = self.next[reader];
        if number < next || (alone && number != next) {
            return Err(format!(
                "reader {reader} reads line {number}, not line {next}"
            ));
        }
        self.next[reader] = number + 1;
        Ok(())
    }

    /// Whether nothing is still to come. `alone` if nobody else writes.
    pub(crate) fn are_served(&self, alone: bool) -> bool {
        let lines = |next: &usize| *next == self.lines.len() || !alone;
        self.asked.iter().all(VecDeque::is_empty) && self.next.iter().all(lines)
    }

    /// Whether nothing is late. `alone` if nobody else writes.
    pub(crate) fn check(&self, now: Time, alone: bool) -> Result<(), String> {
        for reader in 0..2 {
            if let Some(&(asked, at)) = self.asked[reader].front()
                && now.since(at) > LATE
            {
                return Err(format!(
                    "reader {reader} waits for answer {asked} since {at:?}"
                ));
            }
            let next = self.next[reader];
            if let Some(&at) = self.lines.get(next)
                && alone
                && now.since(at) > LATE
            {
                return Err(format!(
                    "reader {reader} waits for line {next} since {at:?}"
                ));
            }
        }
        Ok(())
    }
}

/// The server takes GLOBAL.
pub(crate) fn take_global() -> MessagePack {
    let message = CreateChannelMessage {
        channel_type: 1,
        ..CreateChannelMessage::default()
    };
    pack(0, 0, 3, &message)
}

/// The server makes the sentinels' channel: private, a chat.
pub(crate) fn make_channel() -> MessagePack {
    let message = CreateChannelMessage {
        channel_type: 2,
        data: Some(data(&ChatChannelData::default())),
        ..CreateChannelMessage::default()
    };
    pack(0, 0, 3, &message)
}

/// The server subscribes a reader to it.
pub(crate) fn subscribe(conn_id: u32) -> MessagePack {
    let message = SubscribedToChannelMessage {
        conn_id,
        sub_options: Some(ChannelSubscriptionOptions {
            data_access: Some(1),
            ..ChannelSubscriptionOptions::default()
        }),
    };
    pack(CHANNEL, 0, 6, &message)
}

pub(crate) fn pack(channel: u32, stub: u32, msg_type: u32, body: &impl Message) -> MessagePack {
    MessagePack {
        channel_id: channel,
        stub_id: stub,
        msg_type,
        msg_body: body.encode_to_vec().into(),
        ..MessagePack::default()
    }
}

fn data(of: &ChatChannelData) -> Any {
    Any {
        type_url: URL.to_owned(),
        value: of.encode_to_vec(),
    }
}
