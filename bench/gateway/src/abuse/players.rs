//! Those who behave: a game server that owns GLOBAL and a few rooms, and players
//! who see one room each, all on this thread.
//!
//! The server updates the state of everybody in a room at every turn, players
//! send the room's owner messages of the game's own, and both know what was sent
//! and what came. The first player speaks to GLOBAL, whose owner must receive it.
//! Players are subscribed by the server, which works under every state machine.

mod peer;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lagometer_client::swarm::{MemberId, Swarm};
use lagometer_client::{Outbox, SendError, Settings};
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
};

use super::attacker::Target;
use super::deployment::{Endpoints, TOKEN};
use super::latency::Ages;
use super::row::{Age, Lost};
use super::source::{Source, connect};
use crate::BenchError;
use crate::counters::microseconds;
use crate::peer::CONNECTIONS_A_TURN;
use crate::receiving::{Driver, GATHER};
use crate::states::{TYPE_URL, put_state};
use peer::{Board, Peer, USER_BYTES};

/// How long a step of setting up may take.
const SOON: Duration = Duration::from_secs(30);

/// How long what is under way may take to arrive at the end.
const DRAIN: Duration = Duration::from_millis(1500);

/// A message of the game's own.
const USER_MESSAGE: u32 = 101;

/// The most that may wait to be sent: a gateway that stands still is no reason
/// for those who behave to fail.
const WAITING_BYTES: usize = 64 << 20;

/// How many play, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// How many players.
    pub(super) players: usize,
    /// Over how many rooms.
    pub(super) rooms: usize,
    /// Updates of each state a second, and messages of each player.
    pub(super) rate_hz: u32,
    /// Milliseconds between two windows.
    pub(super) fan_out_ms: u32,
}

/// All of them.
pub(super) struct Players {
    load: Load,
    swarm: Swarm<Peer>,
    board: Rc<RefCell<Board>>,
    server: MemberId,
    members: Vec<MemberId>,
    /// Connections that ended under way: the last turn that each had seen.
    ended: BTreeMap<MemberId, u64>,
    /// Why the first of them ended.
    why: Option<String>,
    rooms: Vec<u32>,
    server_turns: u64,
    player_turns: u64,
    update: Vec<u8>,
    late_us: hdrhistogram::Histogram<u64>,
}

impl Driver for Players {
    type Peer = Peer;

    const AT_ONCE: usize = CONNECTIONS_A_TURN;

    fn swarm(&mut self) -> &mut Swarm<Peer> {
        &mut self.swarm
    }
}

impl Players {
    /// Connects everybody and subscribes them.
    ///
    /// # Errors
    ///
    /// When the gateway does not let them.
    pub(super) fn gather(load: Load, endpoints: &Endpoints) -> Result<Self, BenchError> {
        let period_us = 1e6 / f64::from(load.rate_hz.max(1));
        let board = Rc::new(RefCell::new(Board::new(load.players, period_us)));
        let mut swarm = Swarm::new()?.with_turns_of(CONNECTIONS_A_TURN);
        let stream = connect(Source::Server.address(0), endpoints.servers, SOON)?;
        let server = add(&mut swarm, &board, stream, false)?;
        let mut players = Self {
            load,
            swarm,
            board,
            server,
            members: Vec::new(),
            ended: BTreeMap::new(),
            why: None,
            rooms: Vec::new(),
            server_turns: 0,
            player_turns: 0,
            update: Vec::new(),
            late_us: microseconds(),
        };
        players.log_in(&[server], "server")?;
        players.open_rooms()?;
        players.connect_players(endpoints)?;
        players.subscribe_players()?;
        let mut board = players.board.borrow_mut();
        board.schedule.start_us = board.now_us();
        drop(board);
        Ok(players)
    }

    /// What an attacker may know.
    pub(super) fn target(&self, endpoints: Endpoints) -> Target {
        let id = |&member| self.swarm.conn_id(member);
        Target {
            endpoints,
            rooms: self.rooms.clone(),
            owner: id(&self.server).unwrap_or_default(),
            players: self.members.iter().filter_map(id).collect(),
        }
    }

    fn open_rooms(&mut self) -> Result<(), BenchError> {
        let server = self.server;
        let room = |channel_type: ChannelType| CreateChannelMessage {
            channel_type: channel_type.into(),
            data: Some(prost_types::Any {
                type_url: TYPE_URL.to_owned(),
                value: Vec::new(),
            }),
            // The owner has no need of what it sent.
            sub_options: Some(options(ChannelDataAccess::WriteAccess, 1000)),
            ..CreateChannelMessage::default()
        };
        let rooms = self.load.rooms;
        self.say(server, |outbox| {
            outbox.create_channel(room(ChannelType::Global))?;
            (0..rooms)
                .try_for_each(|_| outbox.create_channel(room(ChannelType::Subworld)).map(drop))
        })?;
        self.wait("the server's channels", SOON, |all| {
            let made = all.swarm.member(server);
            made.is_some_and(|(peer, _)| peer.rooms.len() == rooms + 1)
        })?;
        if let Some((peer, _)) = self.swarm.member(server) {
            self.rooms = peer.rooms.split_off(1);
        }
        Ok(())
    }

    fn connect_players(&mut self, endpoints: &Endpoints) -> Result<(), BenchError> {
        // Clients are accepted from the moment on that GLOBAL has an owner.
        let deadline = Instant::now() + SOON;
        while self.members.len() < self.load.players {
            let from = Source::Player.address(self.members.len());
            match connect(from, endpoints.tcp, SOON) {
                Ok(stream) => {
                    let player = add(&mut self.swarm, &self.board, stream, true)?;
                    self.members.push(player);
                }
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => self.swarm.poll(Duration::from_millis(20)).map(drop)?,
            }
            self.swarm.poll(Duration::ZERO)?;
        }
        let players = self.members.clone();
        self.log_in(&players, "player")
    }

    fn subscribe_players(&mut self) -> Result<(), BenchError> {
        let server = self.server;
        let read = options(ChannelDataAccess::ReadAccess, self.load.fan_out_ms);
        for at in 0..self.members.len() {
            let room = self.rooms[at % self.rooms.len()];
            let player = self.swarm.conn_id(self.members[at]).unwrap_or_default();
            let read = read.clone();
            self.say(server, |outbox| {
                outbox.subscribe(room, player, Some(read)).map(drop)
            })?;
        }
        let players = self.members.clone();
        self.wait("the players' subscriptions", SOON, |all| {
            all.each(&players, |peer| peer.subscriptions > 0)
        })
    }

    fn log_in(&mut self, members: &[MemberId], name: &str) -> Result<(), BenchError> {
        for (at, &member) in members.iter().enumerate() {
            let name = format!("{name}-{at}");
            self.say(member, |outbox| outbox.authenticate(&name, TOKEN).map(drop))?;
        }
        self.wait("the logins", SOON, |all| {
            all.each(members, |peer| peer.is_let_in)
        })
    }

    fn each(&mut self, members: &[MemberId], is_so: impl Fn(&Peer) -> bool) -> bool {
        members
            .iter()
            .all(|&id| self.swarm.member(id).is_some_and(|(peer, _)| is_so(peer)))
    }

    fn say(
        &mut self,
        member: MemberId,
        what: impl FnOnce(&mut Outbox) -> Result<(), SendError>,
    ) -> Result<(), BenchError> {
        if let Some((_, outbox)) = self.swarm.member(member) {
            what(outbox)?;
        }
        self.swarm.flush(member);
        Ok(())
    }

    /// Plays for so long.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn play(&mut self, span: Duration) -> Result<(), BenchError> {
        let end = Instant::now() + span;
        loop {
            let now = Instant::now();
            if now >= end {
                return Ok(());
            }
            let by_us = self.board.borrow().now_us() + GATHER.as_micros() as u64 / 2;
            while self.player_due_us() <= by_us {
                self.player_speaks();
            }
            while self.server_due_us() <= by_us {
                self.server_updates();
            }
            self.receive(now, end)?;
        }
    }

    fn server_due_us(&self) -> u64 {
        self.board.borrow().schedule.due_us(self.server_turns + 1)
    }

    /// Players take turns at equal distances.
    fn player_due_us(&self) -> u64 {
        self.message_due_us(self.player_turns)
    }

    fn message_due_us(&self, turn: u64) -> u64 {
        let schedule = self.board.borrow().schedule;
        let between_us = schedule.period_us / self.load.players.max(1) as f64;
        schedule.start_us + (between_us * turn as f64) as u64
    }

    fn player_speaks(&mut self) {
        let due_us = self.player_due_us();
        self.note_lateness(due_us);
        let players = self.load.players as u64;
        let (at, sequence) = (self.player_turns % players, self.player_turns / players);
        self.player_turns += 1;
        let mut payload = [0; USER_BYTES];
        payload[..8].copy_from_slice(&at.to_le_bytes());
        payload[8..16].copy_from_slice(&sequence.to_le_bytes());
        payload[16..24].copy_from_slice(&due_us.to_le_bytes());
        let channel = match at {
            0 => 0,
            _ => self.rooms[at as usize % self.rooms.len()],
        };
        let member = self.members[at as usize];
        // What does not fit any more counts as lost.
        let _ = self.say(member, |outbox| {
            outbox.message_owner(channel, USER_MESSAGE, &payload)
        });
    }

    fn server_updates(&mut self) {
        let due_us = self.server_due_us();
        self.note_lateness(due_us);
        self.server_turns += 1;
        let number = self.server_turns as u16;
        let mut update = std::mem::take(&mut self.update);
        for (at, &room) in self.rooms.iter().enumerate() {
            update.clear();
            for player in (at..self.load.players).step_by(self.rooms.len()) {
                put_state(&mut update, player as u32 + 1, due_us, number);
            }
            if let Some((_, outbox)) = self.swarm.member(self.server) {
                // The next turn says it again.
                let _ = outbox.update(room, TYPE_URL, &update);
            }
        }
        self.update = update;
        self.swarm.flush(self.server);
    }

    fn note_lateness(&mut self, due_us: u64) {
        let board = self.board.borrow();
        if board.is_measuring {
            let late_us = board.now_us().saturating_sub(due_us);
            self.late_us.saturating_record(late_us.max(1));
        }
    }

    /// From now on what arrives counts.
    pub(super) fn begin(&mut self) {
        let mut board = self.board.borrow_mut();
        board.down = Ages::new();
        board.up = Ages::new();
        board.is_measuring = true;
        self.late_us = microseconds();
    }

    /// The end of what counts: what has not arrived by now counts as old as it
    /// is.
    pub(super) fn end(&mut self) -> Age {
        self.note_ended();
        let mut board = self.board.borrow_mut();
        board.is_measuring = false;
        let (schedule, now_us) = (board.schedule, board.now_us());
        for &player in &self.members {
            let seen = match self.swarm.member(player) {
                Some((peer, _)) => peer.seen,
                None => self.ended.get(&player).copied(),
            };
            let seen = seen.unwrap_or_default();
            schedule.note(&mut board.down, seen, self.server_turns, now_us);
        }
        let players = self.load.players as u64;
        let between_us = schedule.period_us / players.max(1) as f64;
        for at in 0..players {
            let first = board.received[at as usize] * players + at;
            for turn in (first..self.player_turns).step_by(self.load.players.max(1)) {
                let due_us = schedule.start_us + (between_us * turn as f64) as u64;
                board.up.note(now_us.saturating_sub(due_us));
            }
        }
        let all = board.down.count() + board.up.count();
        let late = board.down.late() + board.up.late();
        Age {
            down_ms: board.down.spread(),
            up_ms: board.up.spread(),
            late_pct: 100.0 * late as f64 / all.max(1) as f64,
            generator_late_ms: (&self.late_us).into(),
        }
    }

    /// Reads what is still to come, and says what never came.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn finish(mut self) -> Result<Lost, BenchError> {
        let end = Instant::now() + DRAIN;
        while Instant::now() < end && !self.is_complete() {
            self.swarm.poll(Duration::from_millis(5))?;
        }
        self.note_ended();
        let turns = self.server_turns;
        let mut updates = 0;
        for &player in &self.members {
            let seen = self.swarm.member(player).and_then(|(peer, _)| peer.seen);
            updates += u64::from(seen != Some(turns));
        }
        let board = self.board.borrow();
        Ok(Lost {
            updates,
            messages: self.player_turns - board.received.iter().sum::<u64>(),
            connections: self.ended.len() as u64,
            wrong: board.wrong,
            why: self.why,
        })
    }

    /// Takes note of connections that have ended.
    fn note_ended(&mut self) {
        while let Some((member, peer, reason)) = self.swarm.take_ended() {
            self.ended.insert(member, peer.seen.unwrap_or_default());
            self.why.get_or_insert(reason.to_string());
        }
    }

    fn is_complete(&mut self) -> bool {
        let turns = self.server_turns;
        let players = self.members.clone();
        let received: u64 = self.board.borrow().received.iter().sum();
        received == self.player_turns && self.each(&players, |peer| peer.seen == Some(turns))
    }
}

fn add(
    swarm: &mut Swarm<Peer>,
    board: &Rc<RefCell<Board>>,
    stream: TcpStream,
    is_player: bool,
) -> Result<MemberId, BenchError> {
    let settings = Settings {
        max_waiting_bytes: WAITING_BYTES,
        ..Settings::default()
    };
    let peer = Peer::new(Rc::clone(board), is_player);
    Ok(swarm.add(stream.into(), settings, peer)?)
}

fn options(access: ChannelDataAccess, interval_ms: u32) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        data_access: Some(access.into()),
        fan_out_interval_ms: Some(interval_ms),
        ..ChannelSubscriptionOptions::default()
    }
}
