//! A game server and players, each with a connection to some edge, who connect again when
//! they are hung up on.

use std::collections::BTreeSet;

use lagometer_gateway::core::{ConnKey, ConnectionManager, Peer};
use lagometer_protocol::any::type_url;
use lagometer_protocol::messages::channeldpb::{
    AuthMessage, AuthResultMessage, ChannelDataUpdateMessage, ChannelSubscriptionOptions,
    CreateChannelMessage, CreateChannelResultMessage, SubscribedToChannelMessage,
};
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use lagometer_protocol::{FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet};
use lagometer_units::Time;
use prost::Message;
use prost_types::Any;

/// Types of messages, as the wire has them.
const AUTH: u32 = 1;
const CREATE: u32 = 3;
const SUB: u32 = 6;
const UPDATE: u32 = 8;

const TYPE: &str = "tpspb.TestRepChannelData";

/// The entry that only a whole state has.
const MARK: u32 = 0;

/// One of the game's ends.
pub(crate) struct GamePeer {
    pub(crate) kind: Peer,
    name: String,
    /// Its connection, and on which edge it is.
    pub(crate) at: Option<(usize, ConnKey)>,
    id: Option<u32>,
    pub(crate) in_game: bool,
    decoder: FrameDecoder,
    /// What it has seen, in this session.
    pub(crate) seen: BTreeSet<u32>,
    /// Something was left out, which a whole state is to make good.
    pub(crate) misses: bool,
    /// How often it was hung up on.
    pub(crate) hung_up: u64,
    /// How often something was left out.
    pub(crate) missed: u64,
    /// When something new came last, and the longest that nothing did, nanoseconds.
    news_at: Option<u64>,
    pub(crate) longest: u64,
    out: Vec<u8>,
    /// What went wrong.
    pub(crate) wrong: Option<String>,
}

impl GamePeer {
    pub(crate) fn new(kind: Peer, name: String) -> Self {
        Self {
            kind,
            name,
            at: None,
            id: None,
            in_game: false,
            decoder: FrameDecoder::new(FrameLimits::default()),
            seen: BTreeSet::new(),
            misses: false,
            hung_up: 0,
            missed: 0,
            news_at: None,
            longest: 0,
            out: Vec::new(),
            wrong: None,
        }
    }

    /// It was hung up on, or its edge is gone.
    pub(crate) fn hang_up(&mut self) {
        let fresh = Self::new(self.kind, std::mem::take(&mut self.name));
        *self = Self {
            hung_up: self.hung_up + 1,
            missed: self.missed,
            longest: self.longest,
            wrong: self.wrong.take(),
            ..fresh
        };
    }

    pub(crate) fn connect(&mut self, now: Time, edge: usize, side: &mut ConnectionManager) {
        let key = side.open(now, self.kind, None).expect("nobody is banned");
        self.at = Some((edge, key));
        let login = AuthMessage {
            player_identifier_token: self.name.clone(),
            login_token: "secret".to_owned(),
        };
        self.say(AUTH, &login);
        side.receive(now, key, &std::mem::take(&mut self.out));
    }

    /// Sends what it has to say, and reads what there is. Returns whether it said or did
    /// anything.
    pub(crate) fn exchange(
        &mut self,
        world_now: u64,
        now: Time,
        side: &mut ConnectionManager,
        truth: u32,
    ) -> bool {
        let Some((_, key)) = self.at else {
            return false;
        };
        let bytes: Vec<u8> = side.output(key).flatten().copied().collect();
        side.wrote(now, key, bytes.len());
        let mut rest = &bytes[..];
        let mut scratch = Vec::new();
        while let Some(frame) = self.decoder.next(&mut rest).expect("frames") {
            let packet = frame.packet_bytes(1 << 20, &mut scratch).expect("a packet");
            let packet = Packet::new_checked(packet).expect("a packet");
            let messages: Vec<(u32, Vec<u8>)> = packet
                .messages()
                .map(|message| (message.msg_type, message.body.to_vec()))
                .collect();
            for (of_type, body) in messages {
                let seen = self.seen.last().copied();
                self.on_message(of_type, &body, truth);
                if self.seen.last().copied() > seen {
                    let before = self.news_at.replace(world_now);
                    self.longest = self.longest.max(world_now - before.unwrap_or(world_now));
                }
            }
        }
        if self.out.is_empty() {
            return false;
        }
        side.receive(now, key, &std::mem::take(&mut self.out));
        true
    }

    fn on_message(&mut self, of_type: u32, body: &[u8], truth: u32) {
        match of_type {
            // A server is notified of each player's login, too.
            AUTH if self.id.is_none() => {
                let result = AuthResultMessage::decode(body).expect("a result");
                self.id = Some(result.conn_id);
                match self.kind {
                    Peer::Server => self.ask_for_global(truth),
                    Peer::Client => {
                        self.in_game = true;
                        let message = SubscribedToChannelMessage {
                            conn_id: result.conn_id,
                            sub_options: Some(options()),
                        };
                        self.say(SUB, &message);
                    }
                }
            }
            CREATE if self.kind == Peer::Server && !self.in_game => {
                let result = CreateChannelResultMessage::decode(body).expect("a result");
                self.in_game = Some(result.owner_conn_id) == self.id;
                if self.in_game {
                    // Where the channel has outlived its owner, the data in the request
                    // was passed over.
                    self.say_update(data(0..=truth));
                }
            }
            UPDATE if self.kind == Peer::Client => {
                let update = ChannelDataUpdateMessage::decode(body).expect("an update");
                let data = update.data.expect("data");
                let data = TestRepChannelData::decode(&*data.value).expect("data of the type");
                let keys: BTreeSet<u32> = data.test_npc_states.keys().copied().collect();
                self.on_data(&keys);
            }
            _ => {}
        }
    }

    /// A window goes on where the last one ended, unless something was left out, which a
    /// whole state makes good.
    fn on_data(&mut self, keys: &BTreeSet<u32>) {
        let is_whole = keys.contains(&MARK);
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
            return;
        };
        if keys.len() as u32 != last - first + 1 {
            self.wrong = Some(format!("{} got a window with holes: {keys:?}", self.name));
        }
        if is_whole {
            // What it has, the whole state has too: nothing is ever taken back.
            if self.seen.last().is_some_and(|&seen| seen > last) {
                self.wrong = Some(format!("{} saw the past: {last}", self.name));
            }
            self.misses = false;
        } else if let Some(&seen) = self.seen.last() {
            if first <= seen {
                self.wrong = Some(format!("{} saw {first} again, after {seen}", self.name));
            }
            self.missed += u64::from(first > seen + 1);
            self.misses |= first > seen + 1;
        } else {
            self.misses = true;
        }
        self.seen.extend(keys);
    }

    /// A server's: asks for GLOBAL.
    fn ask_for_global(&mut self, truth: u32) {
        let message = CreateChannelMessage {
            channel_type: 1,
            data: Some(data(0..=truth)),
            sub_options: Some(ChannelSubscriptionOptions {
                skip_self_update_fan_out: Some(true),
                ..options()
            }),
            ..CreateChannelMessage::default()
        };
        self.say(CREATE, &message);
    }

    /// A server's: one more entry; or it asks for GLOBAL again, which its own connection of
    /// before may still have: that is not answered.
    pub(crate) fn update(&mut self, now: Time, side: &mut ConnectionManager, truth: &mut u32) {
        let Some((_, key)) = self.at else {
            return;
        };
        if self.in_game {
            *truth += 1;
            self.say_update(data(*truth..=*truth));
        } else if self.id.is_some() {
            self.ask_for_global(*truth);
        }
        side.receive(now, key, &std::mem::take(&mut self.out));
    }

    fn say_update(&mut self, data: Any) {
        let message = ChannelDataUpdateMessage {
            data: Some(data),
            context_conn_id: 0,
        };
        self.say(UPDATE, &message);
    }

    fn say(&mut self, msg_type: u32, body: &impl Message) {
        let body = body.encode_to_vec();
        let message = MessagePack {
            msg_type,
            body: &body,
            ..MessagePack::default()
        };
        let mut builder = FrameBuilder::new();
        builder.push(&message).expect("it fits");
        self.out
            .extend_from_slice(builder.finish().expect("a frame"));
    }
}

/// Ends the connections that an edge wants to be rid of. Returns whether there were any.
pub(crate) fn close(edge: usize, sides: &mut [ConnectionManager], peers: &mut [GamePeer]) -> bool {
    let loops = sides.len();
    let mut any = false;
    for (number, side) in sides.iter_mut().enumerate() {
        while let Some((key, why)) = side.poll_close() {
            side.close(key, why);
            any = true;
            for peer in peers.iter_mut().skip(number).step_by(loops) {
                if peer.at == Some((edge, key)) {
                    peer.hang_up();
                }
            }
        }
    }
    any
}

fn options() -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        fan_out_interval_ms: Some(100),
        ..ChannelSubscriptionOptions::default()
    }
}

fn data(entries: impl Iterator<Item = u32>) -> Any {
    let state = TestNpcState {
        b_moving: Some(true),
        goal_location: None,
    };
    let data = TestRepChannelData {
        test_npc_states: entries.map(|entry| (entry, state)).collect(),
        ..TestRepChannelData::default()
    };
    Any {
        type_url: type_url(TYPE),
        value: data.encode_to_vec(),
    }
}
