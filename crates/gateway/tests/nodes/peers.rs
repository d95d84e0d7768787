//! A game server and players, each with a connection to some edge, who connect again when
//! they are hung up on.

use std::collections::{BTreeMap, BTreeSet};

use lagometer_gateway::core::{ConnKey, ConnectionManager, Peer};
use lagometer_protocol::messages::channeldpb::{
    AuthMessage, AuthResultMessage, ChannelDataUpdateMessage, ChannelSubscriptionOptions,
    CreateChannelMessage, CreateChannelResultMessage, ListChannelMessage, ListChannelResultMessage,
    RemoveChannelMessage, SubscribedToChannelMessage, SubscribedToChannelResultMessage,
};
use lagometer_protocol::{FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet};
use lagometer_units::Time;
use prost::Message;
use prost_types::Any;

use crate::recovering::{self, Before, Recovering};
use crate::view::{self, View, data};
use crate::world::{Said, TO_ALL, World};

/// Types of messages, as the wire has them.
const AUTH: u32 = 1;
pub(crate) const CREATE: u32 = 3;
const REMOVE: u32 = 4;
const LIST: u32 = 5;
pub(crate) const SUB: u32 = 6;
pub(crate) const UPDATE: u32 = 8;

/// Messages of the game's own are of types from here on.
const GAMES_OWN: u32 = 100;

/// The type of the channels that the server makes beside GLOBAL, and how many it makes.
const ROOM: i32 = 2;
pub(crate) const ROOMS: usize = 2;

/// Peers look so often which channels there are.
const LISTS_EVERY: u64 = 1_000 * crate::bus::MS;

pub(crate) const GLOBAL: u32 = 0;

/// One of the game's ends.
pub(crate) struct GamePeer {
    pub(crate) kind: Peer,
    name: String,
    /// Its connection, and on which edge it is.
    pub(crate) at: Option<(usize, ConnKey)>,
    id: Option<u32>,
    pub(crate) in_game: bool,
    decoder: FrameDecoder,
    /// What it has seen, by channel.
    pub(crate) views: BTreeMap<u32, View>,
    /// The rooms that it knows of, by their names.
    pub(crate) rooms: BTreeMap<u32, String>,
    pub(crate) world: World,
    /// It looks at the cells of the world again and again.
    observes: bool,
    /// The channels beside GLOBAL that it is subscribed to.
    subscribed: BTreeSet<u32>,
    /// When it looks for rooms next.
    lists_at: u64,
    /// A server's: it comes back for what it had.
    pub(crate) recovers: bool,
    before: Option<Before>,
    recovering: Option<Recovering>,
    /// How often it was given that.
    pub(crate) recoveries: u64,
    /// How often it was hung up on.
    pub(crate) hung_up: u64,
    /// How often something was left out.
    pub(crate) missed: u64,
    /// How often entities were handed over in earlier sessions, and not from where they were.
    handovers: u64,
    torn: u64,
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
            views: BTreeMap::new(),
            rooms: BTreeMap::new(),
            world: World::default(),
            observes: false,
            subscribed: BTreeSet::new(),
            lists_at: 0,
            recovers: false,
            before: None,
            recovering: None,
            recoveries: 0,
            hung_up: 0,
            missed: 0,
            handovers: 0,
            torn: 0,
            news_at: None,
            longest: 0,
            out: Vec::new(),
            wrong: None,
        }
    }

    /// A player that looks at the cells of the world again and again.
    pub(crate) fn observer(name: String) -> Self {
        Self {
            observes: true,
            ..Self::new(Peer::Client, name)
        }
    }

    /// What it sees of the world otherwise than it is, if it sees something otherwise.
    pub(crate) fn sees_wrongly(&self, server: &Self) -> Option<String> {
        self.world.differs_from(&server.world, self.observes)
    }

    /// It was hung up on, or its edge is gone.
    pub(crate) fn hang_up(&mut self) {
        let before = self.had();
        let fresh = Self::new(self.kind, std::mem::take(&mut self.name));
        *self = Self {
            world: self.world.begun_anew(),
            recovers: self.recovers,
            before,
            recoveries: self.recoveries,
            hung_up: self.hung_up + 1,
            observes: self.observes,
            handovers: self.handovers + self.world.handovers,
            torn: self.torn + self.world.torn,
            missed: self.missed,
            longest: self.longest,
            wrong: self.wrong.take(),
            ..fresh
        };
    }

    /// What a server that recovers has, as far as it knows: what it had before, as long as it was
    /// not given that.
    fn had(&mut self) -> Option<Before> {
        let id = self.id.filter(|_| self.recovers && self.in_game);
        let Some(id) = id else {
            return self.before.take();
        };
        let rooms = self.rooms.keys().copied();
        let rooms = rooms.filter(|room| self.subscribed.contains(room));
        let channels = [GLOBAL]
            .into_iter()
            .chain(rooms)
            .chain(self.world.has_made());
        Some(Before {
            id,
            channels: channels.collect(),
        })
    }

    pub(crate) fn connect(&mut self, now: Time, edge: usize, side: &mut ConnectionManager) {
        let key = side.open(now, self.kind, None).expect("nobody is banned");
        self.at = Some((edge, key));
        let login = AuthMessage {
            player_identifier_token: self.name.clone(),
            login_token: "secret".to_owned(),
        };
        self.say(GLOBAL, AUTH, &login);
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
            let messages: Vec<(u32, u32, Vec<u8>)> = packet
                .messages()
                .map(|message| (message.channel_id, message.msg_type, message.body.to_vec()))
                .collect();
            for (channel, of_type, body) in messages {
                let seen = self.newest(GLOBAL);
                self.on_message(channel, of_type, &body, truth);
                if self.newest(GLOBAL) > seen {
                    let before = self.news_at.replace(world_now);
                    self.longest = self.longest.max(world_now - before.unwrap_or(world_now));
                }
            }
        }
        if self.in_game && self.lists_at <= world_now {
            self.lists_at = world_now + LISTS_EVERY;
            let message = ListChannelMessage {
                type_filter: ROOM,
                ..ListChannelMessage::default()
            };
            self.say(GLOBAL, LIST, &message);
            let said = match self.kind {
                Peer::Server => self.world.build(),
                Peer::Client => {
                    let id = self.id.unwrap_or_default();
                    self.world.look(id, &self.subscribed, self.observes)
                }
            };
            self.say_all(said);
        }
        if self.out.is_empty() {
            return false;
        }
        side.receive(now, key, &std::mem::take(&mut self.out));
        true
    }

    fn newest(&self, channel: u32) -> Option<u32> {
        self.views.get(&channel)?.seen.last().copied()
    }

    /// How often it saw entities handed over, and not from where they were.
    pub(crate) fn handovers(&self) -> (u64, u64) {
        let World {
            handovers, torn, ..
        } = &self.world;
        (self.handovers + handovers, self.torn + torn)
    }

    /// When it has something to say next, if nothing comes.
    pub(crate) fn next(&self) -> Option<u64> {
        (self.at.is_some() && self.in_game).then_some(self.lists_at)
    }

    fn on_message(&mut self, channel: u32, of_type: u32, body: &[u8], truth: u32) {
        match self.kind {
            Peer::Server => {
                let said = self
                    .world
                    .on_answer(of_type, self.id.unwrap_or_default(), body);
                self.say_all(said);
            }
            Peer::Client => {
                let message = (channel, of_type, body);
                (self.world).on_message(message, &mut self.subscribed, self.observes);
            }
        }
        match of_type {
            // A server is notified of each player's login, too.
            AUTH if self.id.is_none() => {
                let result = AuthResultMessage::decode(body).expect("a result");
                self.id = Some(result.conn_id);
                match self.kind {
                    Peer::Server if result.should_recover => {
                        self.recovering = Some(Recovering::default());
                    }
                    Peer::Server => {
                        if self.before.is_some() {
                            self.wrong = Some("the server came back for nothing".to_owned());
                        }
                        self.ask_for_global(truth);
                    }
                    Peer::Client => {
                        self.in_game = true;
                        let message = SubscribedToChannelMessage {
                            conn_id: result.conn_id,
                            sub_options: Some(options()),
                        };
                        self.say(GLOBAL, SUB, &message);
                    }
                }
            }
            recovering::CHANNEL_DATA => {
                let recovering = self.recovering.as_mut().expect("it recovers");
                recovering.receive(body);
            }
            recovering::END => self.recovered(truth),
            CREATE if self.kind == Peer::Server && !self.in_game => {
                let result = CreateChannelResultMessage::decode(body).expect("a result");
                if result.channel_id != GLOBAL {
                    return;
                }
                self.in_game = Some(result.owner_conn_id) == self.id;
                if self.in_game {
                    // Where the channel has outlived its owner, the data in the request
                    // was passed over.
                    self.say_update(GLOBAL, data(0..=truth));
                }
            }
            LIST => self.on_list(body, truth),
            SUB if channel != GLOBAL => {
                let result = SubscribedToChannelResultMessage::decode(body).expect("a result");
                if Some(result.conn_id) == self.id {
                    self.subscribed.insert(channel);
                    self.world.forget(channel);
                }
            }
            // As with its owner. The next has the same number.
            REMOVE => {
                let removed = RemoveChannelMessage::decode(body).expect("a channel");
                self.rooms.remove(&removed.channel_id);
                self.subscribed.remove(&removed.channel_id);
                self.views.remove(&removed.channel_id);
                self.world.forget(removed.channel_id);
            }
            UPDATE if self.kind == Peer::Client && !World::has(channel) => {
                let keys = view::keys(body);
                let view = self.views.entry(channel).or_default();
                if let Some(wrong) = view.take(&keys, &mut self.missed) {
                    let name = &self.name;
                    self.wrong = Some(format!("{name} {wrong} in channel {channel}"));
                }
            }
            _ => {}
        }
    }

    /// A server was given all that it had, and goes on with that.
    fn recovered(&mut self, truth: u32) {
        let given = self.recovering.take().expect("it recovers");
        self.recoveries += 1;
        let id = self.id.expect("it has logged in");
        if let Some(before) = self.before.take()
            && let Some(wrong) = given.what_is_wrong(id, &before)
        {
            self.wrong = Some(format!("the server {wrong}"));
        }
        for (&channel, given) in &given.channels {
            if given.channel_type == ROOM {
                self.rooms.insert(channel, given.metadata.clone());
                self.subscribed.insert(channel);
                self.say_update(channel, data(0..=truth));
            }
        }
        let said = self.world.recover(&given);
        self.say_all(said);
        self.in_game = given.channels.contains_key(&GLOBAL);
        if self.in_game {
            self.say_update(GLOBAL, data(0..=truth));
        } else {
            self.ask_for_global(truth);
        }
    }

    /// A player subscribes to rooms that are new to it. The server makes those that are not
    /// there, and takes up those that another connection of its own has made.
    fn on_list(&mut self, body: &[u8], truth: u32) {
        let result = ListChannelResultMessage::decode(body).expect("a list");
        let ids: Vec<u32> = result.channels.iter().map(|it| it.channel_id).collect();
        if !ids.is_sorted_by(|one, other| one < other) {
            self.wrong = Some(format!("{} got a list out of order: {ids:?}", self.name));
        }
        // One that went before the subscription to it began, with the server that had made it.
        let subscribed = &self.subscribed;
        self.rooms
            .retain(|id, _| ids.contains(id) || subscribed.contains(id));
        for channel in result.channels {
            let id = channel.channel_id;
            if channel.channel_type != ROOM {
                continue;
            }
            // Another may have got the number before the last request for it came.
            let is_new = self.rooms.insert(id, channel.metadata).is_none();
            if !is_new && self.subscribed.contains(&id) {
                continue;
            }
            let mut options = options();
            if self.kind == Peer::Server {
                options.data_access = Some(2);
                options.skip_self_update_fan_out = Some(true);
            }
            let message = SubscribedToChannelMessage {
                conn_id: self.id.unwrap_or_default(),
                sub_options: Some(options),
            };
            self.say(id, SUB, &message);
            if self.kind == Peer::Server {
                self.say_update(id, data(0..=truth));
            }
        }
        for number in 0..ROOMS {
            let name = format!("room {number}");
            let is_there = self.rooms.values().any(|room| *room == name);
            if self.kind == Peer::Server && !is_there {
                let message = CreateChannelMessage {
                    channel_type: ROOM,
                    metadata: name,
                    data: Some(data(0..=truth)),
                    ..CreateChannelMessage::default()
                };
                self.say(GLOBAL, CREATE, &message);
            }
        }
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
        self.say(GLOBAL, CREATE, &message);
    }

    /// A server's: one more entry; or it asks for GLOBAL again, which its own connection of
    /// before may still have: that is not answered.
    pub(crate) fn update(&mut self, now: Time, side: &mut ConnectionManager, truth: &mut u32) {
        let Some((_, key)) = self.at else {
            return;
        };
        if self.in_game {
            *truth += 1;
            let rooms: Vec<u32> = self.rooms.keys().copied().collect();
            for channel in [GLOBAL].into_iter().chain(rooms) {
                self.say_update(channel, data(*truth..=*truth));
            }
            let said = self.world.walk();
            self.say_all(said);
        } else if self.id.is_some() && self.recovering.is_none() {
            self.ask_for_global(*truth);
        }
        side.receive(now, key, &std::mem::take(&mut self.out));
    }

    fn say_update(&mut self, channel: u32, data: Any) {
        let message = ChannelDataUpdateMessage {
            data: Some(data),
            context_conn_id: 0,
        };
        self.say(channel, UPDATE, &message);
    }

    fn say_all(&mut self, said: Vec<Said>) {
        for (channel, of_type, body) in said {
            self.say_encoded(channel, of_type, &body);
        }
    }

    fn say(&mut self, channel_id: u32, msg_type: u32, body: &impl Message) {
        self.say_encoded(channel_id, msg_type, &body.encode_to_vec());
    }

    fn say_encoded(&mut self, channel_id: u32, msg_type: u32, body: &[u8]) {
        let message = MessagePack {
            channel_id,
            msg_type,
            broadcast: if msg_type < GAMES_OWN { 0 } else { TO_ALL },
            body,
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

pub(crate) fn options() -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        fan_out_interval_ms: Some(100),
        ..ChannelSubscriptionOptions::default()
    }
}
