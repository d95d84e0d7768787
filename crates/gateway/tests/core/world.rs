//! A gateway and its peers in virtual time.

use lagometer_gateway::core::{
    AuthPolicy, ChannelSettings, CloseReason, ConnKey, ConnectionManager, ConnectionSettings, Fsm,
    Peer, ReadControl, SideId, sides_agree,
};
use lagometer_protocol::any::type_url;
use lagometer_protocol::messages::channeldpb::{
    self, AuthMessage, AuthResultMessage, ChannelDataUpdateMessage, ChannelSubscriptionOptions,
    CreateChannelMessage, CreateChannelResultMessage, MessagePack as OwnedPack,
    ServerForwardMessage, SubscribedToChannelMessage, UnsubscribedFromChannelMessage,
};
use lagometer_protocol::{FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet};
use lagometer_units::Time;
use prost::Message;
use prost_types::Any;
use std::net::IpAddr;
use std::time::Duration;

use crate::twins::Twins;

/// Message types by name, as the wire has them.
pub(crate) mod types {
    pub(crate) const AUTH: u32 = 1;
    pub(crate) const CREATE: u32 = 3;
    pub(crate) const REMOVE: u32 = 4;
    pub(crate) const LIST: u32 = 5;
    pub(crate) const SUB: u32 = 6;
    pub(crate) const UNSUB: u32 = 7;
    pub(crate) const UPDATE: u32 = 8;
    pub(crate) const DISCONNECT: u32 = 9;
    pub(crate) const QUERY: u32 = 11;
    pub(crate) const HANDOVER: u32 = 12;
    pub(crate) const REGIONS: u32 = 13;
    pub(crate) const INTEREST: u32 = 14;
    pub(crate) const CREATE_ENTITY: u32 = 15;
    pub(crate) const GROUP_ADD: u32 = 16;
    pub(crate) const READY: u32 = 18;
    pub(crate) const RECOVERY_DATA: u32 = 20;
    pub(crate) const RECOVERY_END: u32 = 21;
    pub(crate) const OWNER_LOST: u32 = 22;
    pub(crate) const OWNER_RECOVERED: u32 = 23;
    pub(crate) const GAME: u32 = 150;
}

/// GLOBAL's number.
pub(crate) const GLOBAL: u32 = 0;

/// One peer, by its index.
pub(crate) type Who = usize;

/// A gateway and its peers.
pub(crate) struct World {
    pub(crate) sides: Vec<ConnectionManager>,
    pub(crate) channels: Twins,
    pub(crate) now: Time,
    pub(crate) peers: Vec<TestPeer>,
}

/// A peer that reads frames, or does not.
pub(crate) struct TestPeer {
    pub(crate) side: usize,
    pub(crate) key: ConnKey,
    pub(crate) id: u32,
    pub(crate) closed: Option<CloseReason>,
    /// It reads nothing.
    pub(crate) stalled: bool,
    /// It is not to be read.
    pub(crate) paused: bool,
    pub(crate) inbox: Vec<OwnedPack>,
    pub(crate) frames: usize,
    decoder: FrameDecoder,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// A gateway of two connection managers that lets everyone in and everyone
    /// subscribe, with settings changed as a test wants.
    pub(crate) fn with(change: impl FnOnce(&mut ConnectionSettings, &mut ChannelSettings)) -> Self {
        let mut connections = ConnectionSettings {
            client_fsm: Fsm::authoritative_client(),
            ..ConnectionSettings::default()
        };
        let mut channels = ChannelSettings {
            auth: AuthPolicy::AdmitAll,
            ..ChannelSettings::default()
        };
        change(&mut connections, &mut channels);
        Self {
            sides: vec![
                ConnectionManager::new(connections.clone()),
                ConnectionManager::new(connections),
            ],
            channels: Twins::new(channels),
            now: Time::ZERO,
            peers: Vec::new(),
        }
    }

    /// Connects without logging in.
    pub(crate) fn connect(&mut self, peer: Peer) -> Who {
        self.connect_from(peer, None)
    }

    pub(crate) fn connect_from(&mut self, peer: Peer, address: Option<IpAddr>) -> Who {
        let side = self.peers.len() % self.sides.len();
        let key = self.sides[side].open(self.now, peer, address).unwrap();
        self.peers.push(TestPeer {
            side,
            key,
            id: 0,
            closed: None,
            stalled: false,
            paused: false,
            inbox: Vec::new(),
            frames: 0,
            decoder: FrameDecoder::new(FrameLimits::default()),
        });
        self.peers.len() - 1
    }

    /// Connects and logs in.
    pub(crate) fn join(&mut self, peer: Peer) -> Who {
        let player = format!("player-{}", self.peers.len());
        self.join_as(peer, &player)
    }

    pub(crate) fn join_as(&mut self, peer: Peer, player: &str) -> Who {
        let who = self.connect(peer);
        self.log_in(who, player);
        who
    }

    /// Connects from an address and logs in.
    pub(crate) fn join_from(&mut self, peer: Peer, address: IpAddr) -> Who {
        let who = self.connect_from(peer, Some(address));
        self.log_in(who, "player");
        who
    }

    pub(crate) fn log_in(&mut self, who: Who, player: &str) {
        self.send(who, GLOBAL, 0, types::AUTH, &login(player));
        let answer = self.one(who, types::AUTH);
        self.peers[who].id = AuthResultMessage::decode(&*answer.msg_body)
            .unwrap()
            .conn_id;
    }

    pub(crate) fn server(&mut self) -> Who {
        self.join(Peer::Server)
    }

    pub(crate) fn client(&mut self) -> Who {
        self.join(Peer::Client)
    }

    /// A server that owns GLOBAL.
    pub(crate) fn master(&mut self) -> Who {
        let master = self.server();
        assert_eq!(self.create(master, 1), GLOBAL);
        master
    }

    pub(crate) fn id(&self, who: Who) -> u32 {
        self.peers[who].id
    }

    /// Sends one message and lets the gateway work on it.
    pub(crate) fn send(
        &mut self,
        who: Who,
        channel: u32,
        stub: u32,
        of_type: u32,
        body: &impl Message,
    ) {
        self.send_raw(who, channel, stub, 0, of_type, &body.encode_to_vec());
    }

    pub(crate) fn send_raw(
        &mut self,
        who: Who,
        channel: u32,
        stub: u32,
        broadcast: u32,
        of_type: u32,
        body: &[u8],
    ) {
        let mut builder = FrameBuilder::new();
        let message = MessagePack {
            channel_id: channel,
            broadcast,
            stub_id: stub,
            msg_type: of_type,
            body,
        };
        builder.push(&message).unwrap();
        let frame = builder.finish().unwrap().to_vec();
        self.send_bytes(who, &frame);
    }

    pub(crate) fn send_bytes(&mut self, who: Who, bytes: &[u8]) {
        let (side, key) = (self.peers[who].side, self.peers[who].key);
        self.sides[side].receive(self.now, key, bytes);
        self.settle();
    }

    /// Creates a channel of a type; returns its number.
    pub(crate) fn create(&mut self, who: Who, channel_type: i32) -> u32 {
        self.create_with(
            who,
            &CreateChannelMessage {
                channel_type,
                ..CreateChannelMessage::default()
            },
        )
    }

    pub(crate) fn create_with(&mut self, who: Who, message: &CreateChannelMessage) -> u32 {
        self.send(who, GLOBAL, 9, types::CREATE, message);
        let answers = self.take(who, types::CREATE);
        let answer = answers
            .iter()
            .find(|pack| pack.stub_id == 9)
            .expect("created");
        CreateChannelResultMessage::decode(&*answer.msg_body)
            .unwrap()
            .channel_id
    }

    pub(crate) fn subscribe(
        &mut self,
        who: Who,
        channel: u32,
        options: ChannelSubscriptionOptions,
    ) {
        let id = self.id(who);
        self.subscribe_other(who, id, channel, options);
    }

    pub(crate) fn subscribe_other(
        &mut self,
        who: Who,
        conn_id: u32,
        channel: u32,
        options: ChannelSubscriptionOptions,
    ) {
        let message = SubscribedToChannelMessage {
            conn_id,
            sub_options: Some(options),
        };
        self.send(who, channel, 5, types::SUB, &message);
    }

    pub(crate) fn unsubscribe(&mut self, who: Who, channel: u32) {
        let conn_id = self.id(who);
        let message = UnsubscribedFromChannelMessage { conn_id };
        self.send(who, channel, 6, types::UNSUB, &message);
    }

    pub(crate) fn update(&mut self, who: Who, channel: u32, type_name: &str, data: &impl Message) {
        let message = ChannelDataUpdateMessage {
            data: Some(any(type_name, data)),
            context_conn_id: 0,
        };
        self.send(who, channel, 0, types::UPDATE, &message);
    }

    /// Sends a game message in its wrapping.
    pub(crate) fn forward(
        &mut self,
        who: Who,
        channel: u32,
        broadcast: u32,
        to: u32,
        payload: &[u8],
    ) {
        let body = ServerForwardMessage {
            client_conn_id: to,
            payload: payload.to_vec().into(),
        };
        let body = body.encode_to_vec();
        self.send_raw(who, channel, 3, broadcast, types::GAME, &body);
    }

    /// Hangs up.
    pub(crate) fn hang_up(&mut self, who: Who) {
        let (side, key) = (self.peers[who].side, self.peers[who].key);
        self.sides[side].close(key, CloseReason::PeerClosed);
        self.peers[who].closed = Some(CloseReason::PeerClosed);
        self.settle();
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        self.settle();
        loop {
            let deadlines = self.sides.iter().map(ConnectionManager::next_deadline);
            let next = deadlines
                .chain([self.channels.next_deadline()])
                .flatten()
                .min();
            let Some(next) = next.filter(|&next| next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            for side in &mut self.sides {
                side.handle_deadline(self.now);
            }
            self.channels.handle_deadline(self.now);
            self.settle();
        }
        self.now = end;
        self.check();
    }

    /// What must hold whatever was said.
    pub(crate) fn check(&self) {
        self.channels.check_invariants().unwrap();
        for side in &self.sides {
            side.check_invariants().unwrap();
        }
        let sides: Vec<(SideId, &ConnectionManager)> = (0..).map(SideId).zip(&self.sides).collect();
        sides_agree(&self.channels, &sides).unwrap();
    }

    /// Takes the messages of a type that a peer got.
    pub(crate) fn take(&mut self, who: Who, of_type: u32) -> Vec<OwnedPack> {
        let inbox = std::mem::take(&mut self.peers[who].inbox);
        let (taken, left) = inbox.into_iter().partition(|pack| pack.msg_type == of_type);
        self.peers[who].inbox = left;
        taken
    }

    /// Takes the only message of a type that a peer got.
    pub(crate) fn one(&mut self, who: Who, of_type: u32) -> OwnedPack {
        let mut taken = self.take(who, of_type);
        assert_eq!(taken.len(), 1, "type {of_type}: {taken:?}");
        taken.remove(0)
    }

    /// Takes the updates of a channel that a peer got, as values.
    pub(crate) fn updates<M: Message + Default>(&mut self, who: Who, channel: u32) -> Vec<M> {
        self.take(who, types::UPDATE)
            .into_iter()
            .filter(|pack| pack.channel_id == channel)
            .map(|pack| data(&pack))
            .collect()
    }

    /// The types of all messages a peer got, which are forgotten.
    pub(crate) fn types(&mut self, who: Who) -> Vec<u32> {
        let inbox = std::mem::take(&mut self.peers[who].inbox);
        inbox.iter().map(|pack| pack.msg_type).collect()
    }

    pub(crate) fn forget_all(&mut self) {
        for peer in &mut self.peers {
            peer.inbox.clear();
        }
    }

    /// Carries the bus and the wires until nothing moves.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut moved = false;
            for (index, side) in (0..).zip(&mut self.sides) {
                while let Some(message) = side.poll_bus() {
                    self.channels.handle(self.now, SideId(index), message);
                    moved = true;
                }
            }
            while let Some((side, message)) = self.channels.poll_bus() {
                self.sides[usize::from(side.0)].handle(self.now, message);
                moved = true;
            }
            moved |= self.write();
            moved |= self.close();
            self.pause();
            if !moved {
                return;
            }
        }
    }

    /// Lets a peer that read nothing read again.
    pub(crate) fn resume(&mut self, who: Who) {
        self.peers[who].stalled = false;
        self.read(who, usize::MAX);
        self.settle();
    }

    /// Lets a peer read so many bytes at most.
    pub(crate) fn read(&mut self, who: Who, most: usize) {
        let peer = &mut self.peers[who];
        let side = &mut self.sides[peer.side];
        let bytes: Vec<u8> = side
            .output(peer.key)
            .flatten()
            .copied()
            .take(most)
            .collect();
        side.wrote(self.now, peer.key, bytes.len());
        let mut rest = &bytes[..];
        let mut scratch = Vec::new();
        while let Some(frame) = peer.decoder.next(&mut rest).expect("frames") {
            peer.frames += 1;
            let packet = frame.packet_bytes(1 << 20, &mut scratch).expect("snappy");
            let packet = Packet::new_checked(packet).expect("a packet");
            peer.inbox.extend(packet.messages().map(OwnedPack::from));
        }
    }

    fn write(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            while let Some(key) = self.sides[index].poll_writable() {
                let is_it = |peer: &TestPeer| peer.side == index && peer.key == key;
                let who = self.peers.iter().position(is_it).expect("a peer");
                if !self.peers[who].stalled {
                    self.read(who, usize::MAX);
                    moved = true;
                }
            }
        }
        moved
    }

    fn pause(&mut self) {
        for index in 0..self.sides.len() {
            while let Some((key, control)) = self.sides[index].poll_pause() {
                for peer in &mut self.peers {
                    if peer.side == index && peer.key == key {
                        peer.paused = control == ReadControl::Pause;
                    }
                }
            }
        }
    }

    fn close(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            while let Some((key, why)) = self.sides[index].poll_close() {
                self.sides[index].close(key, why);
                moved = true;
                for peer in &mut self.peers {
                    if peer.side == index && peer.key == key {
                        peer.closed.get_or_insert(why);
                    }
                }
            }
        }
        moved
    }
}

pub(crate) fn login(player: &str) -> AuthMessage {
    AuthMessage {
        player_identifier_token: player.to_owned(),
        login_token: "secret".to_owned(),
    }
}

pub(crate) fn any(type_name: &str, data: &impl Message) -> Any {
    Any {
        type_url: type_url(type_name),
        value: data.encode_to_vec(),
    }
}

/// The data in an update.
pub(crate) fn data<M: Message + Default>(pack: &OwnedPack) -> M {
    let update = ChannelDataUpdateMessage::decode(&*pack.msg_body).expect("an update");
    M::decode(&*update.data.expect("data").value).expect("data of the type")
}

/// Options with an interval alone.
pub(crate) fn every(millis: u32) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        fan_out_interval_ms: Some(millis),
        ..ChannelSubscriptionOptions::default()
    }
}

/// Options with write access.
pub(crate) fn writing(millis: u32) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        data_access: Some(channeldpb::ChannelDataAccess::WriteAccess as i32),
        ..every(millis)
    }
}
