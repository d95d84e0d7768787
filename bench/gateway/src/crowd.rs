//! Players and a game server against a gateway that runs, for a while, on this
//! thread: one channel in which everyone sees everyone, or many such rooms.

mod plan;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lagometer_client::swarm::{MemberId, Swarm};
use lagometer_client::{Settings, Stub};
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
};

use crate::BenchError;
use crate::counters::Counters;
use crate::outcome::{Outcome, Seen};
use crate::peer::{CONNECTIONS_A_TURN, Peer, Progress, Shared};
use crate::process::Usage;
use crate::receiving::{Driver, GATHER};
use crate::states::{TYPE_URL, put_state};

pub(crate) use plan::{Mode, Plan};

/// How long a step of setting up may take.
const SOON: Duration = Duration::from_mins(1);

/// How long players wait at the end for what is still to come.
const DRAIN: Duration = Duration::from_millis(1500);

/// A message of the game's own: what Unreal calls "any".
const USER_MESSAGE: u32 = 101;

/// As large as a packed move of an Unreal character.
const USER_PAYLOAD: [u8; 60] = [7; 60];

/// The server's update is cut into messages no longer than this.
const UPDATE_BYTES: usize = 60_000;

/// Players who measure how old each state is; the rest only check it.
const PROBES: usize = 4;

/// Lets the crowd of `plan` play on the gateway with process id `pid`.
///
/// # Errors
///
/// When the gateway does not let it in, or the system lacks something.
pub(crate) fn run(plan: &Plan, pid: u32) -> Result<Outcome, BenchError> {
    Crowd::gather(plan)?.measure(pid)
}

/// Lets it send what it would on a loop with that process id, at the players' address,
/// which lets everybody in unasked and knows nothing of channels.
///
/// # Errors
///
/// When the loop does not let it in, or the system lacks something.
pub(crate) fn run_on_loop(plan: &Plan, pid: u32) -> Result<Outcome, BenchError> {
    let mut crowd = Crowd::connect(plan, plan.clients)?;
    crowd.channels.resize(plan.rooms, 0);
    crowd.connect_players()?;
    let everyone: Vec<MemberId> = [&[crowd.server], &crowd.players[..]].concat();
    crowd.wait("the loop", SOON, |crowd| {
        crowd.all(&everyone, |peer| peer.progress >= Progress::LetIn)
    })?;
    crowd.measure(pid)
}

struct Crowd {
    plan: Plan,
    swarm: Swarm<Peer>,
    shared: Rc<Shared>,
    server: MemberId,
    players: Vec<MemberId>,
    /// The channels of the rooms.
    channels: Vec<u32>,
    /// Messages of players sent so far, in turns.
    player_turns: u64,
    /// Updates of the server sent so far.
    server_turns: u64,
    /// The number last sent of each state, by room and id.
    numbers: Vec<Vec<u16>>,
    update: Vec<u8>,
}

impl Driver for Crowd {
    type Peer = Peer;

    const AT_ONCE: usize = CONNECTIONS_A_TURN;

    fn swarm(&mut self) -> &mut Swarm<Peer> {
        &mut self.swarm
    }
}

impl Crowd {
    /// Plays, and says what was seen of the gateway with process id `pid` and by it.
    fn measure(mut self, pid: u32) -> Result<Outcome, BenchError> {
        self.stop_looking();
        let start = Instant::now();
        self.play(start, start + self.plan.warm_up)?;

        let windows_before = self.windows();
        let received_before = self.swarm.traffic().received_bytes;
        let discarded_before = self.discarded();
        let gateway_before = Usage::of(pid);
        let own_before = Usage::own();
        let measuring = Instant::now();
        self.shared.counters.borrow_mut().is_measuring = true;
        self.play(start, start + self.plan.warm_up + self.plan.measured)?;
        self.shared.counters.borrow_mut().is_measuring = false;
        let seconds = measuring.elapsed().as_secs_f64();
        let gateway = Usage::of(pid);
        let own = Usage::own();
        let received_bytes = self.swarm.traffic().received_bytes - received_before;
        let worst_windows = self
            .windows()
            .iter()
            .zip(&windows_before)
            .map(|(after, before)| after - before)
            .min()
            .unwrap_or_default();

        let discarded = self.discarded();
        let discarded = discarded.iter().zip(&discarded_before);
        let least_discarded_bytes = discarded.map(|(after, before)| after - before).min();

        self.drain()?;
        let missing = self.missing();
        let lost_connections = self.count_ended();
        Ok(Outcome::new(
            &self.plan,
            &self.shared.counters.borrow(),
            &Seen {
                seconds,
                worst_windows,
                least_discarded_bytes,
                missing,
                lost_connections,
                received_bytes,
                gateway_cpu_s: gateway.cpu_s - gateway_before.cpu_s,
                gateway_rss_mb: gateway.rss_mb,
                generator_cpu_s: own.cpu_s - own_before.cpu_s,
            },
        ))
    }

    /// Connects everybody and subscribes them.
    fn gather(plan: &Plan) -> Result<Self, BenchError> {
        let mut crowd = Self::connect(plan, plan.servers)?;
        crowd.log_in(&[crowd.server], "server")?;
        crowd.open_rooms()?;
        crowd.connect_players()?;
        let players = crowd.players.clone();
        crowd.log_in(&players, "player")?;
        crowd.subscribe_players()?;
        Ok(crowd)
    }

    /// A crowd of which only the server is there yet.
    fn connect(plan: &Plan, servers: SocketAddr) -> Result<Self, BenchError> {
        let shared = Rc::new(Shared {
            counters: RefCell::new(Counters::default()),
            origin: Instant::now(),
        });
        let mut swarm = Swarm::new()?.with_turns_of(CONNECTIONS_A_TURN);
        let server = swarm.connect(
            servers,
            Settings::default(),
            Peer::server(Rc::clone(&shared)),
        )?;
        Ok(Self {
            plan: *plan,
            swarm,
            shared,
            server,
            players: Vec::new(),
            channels: Vec::new(),
            player_turns: 0,
            server_turns: 0,
            numbers: vec![vec![0; plan.room_size() + 1]; plan.rooms],
            update: Vec::new(),
        })
    }

    /// Has the server make a channel for each room.
    fn open_rooms(&mut self) -> Result<(), BenchError> {
        let server = self.server;
        let channel_type = match self.plan.rooms {
            1 => ChannelType::Global,
            _ => ChannelType::Test,
        };
        for _ in 0..self.plan.rooms {
            self.request(server, |outbox| {
                outbox.create_channel(CreateChannelMessage {
                    channel_type: channel_type.into(),
                    data: Some(prost_types::Any {
                        type_url: TYPE_URL.to_owned(),
                        value: Vec::new(),
                    }),
                    ..CreateChannelMessage::default()
                })
            })?;
        }
        let rooms = self.plan.rooms;
        self.wait("the server's channels", SOON, |crowd| {
            let made = crowd.swarm.member(server);
            made.is_some_and(|(peer, _)| peer.channels.len() == rooms)
        })?;
        if let Some((peer, _)) = self.swarm.member(server) {
            self.channels.clone_from(&peer.channels);
        }
        Ok(())
    }

    fn connect_players(&mut self) -> Result<(), BenchError> {
        // Some gateways open the players' port only now.
        let deadline = Instant::now() + SOON;
        let others = match self.plan.rate_hz {
            0 => 0,
            _ => self.plan.room_size(),
        };
        while self.players.len() < self.plan.players {
            let at = self.players.len();
            let checked_before = (0..at).filter(|&at| self.plan.is_checked(at)).count();
            let is_probe = self.plan.is_checked(at) && checked_before < PROBES;
            let peer = Peer::player(Rc::clone(&self.shared), others, is_probe);
            match self
                .swarm
                .connect(self.plan.clients, Settings::default(), peer)
            {
                Ok(member) => self.players.push(member),
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => self.swarm.poll(Duration::from_millis(50)).map(drop)?,
            }
            self.swarm.poll(Duration::ZERO)?;
        }
        Ok(())
    }

    fn subscribe_players(&mut self) -> Result<(), BenchError> {
        let access = match self.plan.mode {
            Mode::Client => ChannelDataAccess::WriteAccess,
            Mode::Server => ChannelDataAccess::ReadAccess,
        };
        let options = ChannelSubscriptionOptions {
            data_access: Some(access.into()),
            fan_out_interval_ms: Some(self.plan.fan_out_ms),
            ..ChannelSubscriptionOptions::default()
        };
        let players = self.players.clone();
        for (at, &player) in players.iter().enumerate() {
            let channel = self.channel_of(at);
            let options = Some(options.clone());
            self.request(player, |outbox| outbox.subscribe(channel, 0, options))?;
        }
        self.wait("the players' subscriptions", SOON, |crowd| {
            crowd.all(&players, |peer| peer.progress == Progress::Subscribed)
        })
    }

    fn channel_of(&self, player: usize) -> u32 {
        self.channels[player % self.plan.rooms]
    }

    fn log_in(&mut self, members: &[MemberId], token: &str) -> Result<(), BenchError> {
        for (at, &member) in members.iter().enumerate() {
            self.request(member, |outbox| {
                outbox.authenticate(&format!("{token}-{at}"), "bench")
            })?;
        }
        self.wait("the logins", SOON, |crowd| {
            crowd.all(members, |peer| peer.progress >= Progress::LetIn)
        })
    }

    fn request(
        &mut self,
        member: MemberId,
        ask: impl FnOnce(&mut lagometer_client::Outbox) -> Result<Stub, lagometer_client::SendError>,
    ) -> Result<(), BenchError> {
        if let Some((_, outbox)) = self.swarm.member(member) {
            ask(outbox)?;
        }
        self.swarm.flush(member);
        Ok(())
    }

    fn all(&mut self, members: &[MemberId], is_so: impl Fn(&Peer) -> bool) -> bool {
        members
            .iter()
            .all(|&id| self.swarm.member(id).is_some_and(|(peer, _)| is_so(peer)))
    }

    /// Sends all that is due from `start` until `end`, and reads from the gateway.
    fn play(&mut self, start: Instant, end: Instant) -> Result<(), BenchError> {
        loop {
            let now = Instant::now();
            if now >= end {
                return Ok(());
            }
            if self.plan.rate_hz == 0 {
                self.swarm.poll(end - now)?;
                continue;
            }
            // As much too early as too late, in the mean.
            let by = now + GATHER / 2;
            while self.player_due(start) <= by {
                self.player_sends(start)?;
            }
            if self.plan.mode == Mode::Server && self.server_due(start) <= by {
                self.server_updates(start)?;
            }
            self.receive(now, end)?;
        }
    }

    fn period_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.plan.rate_hz.max(1))
    }

    /// When the next player has its turn: they take turns at equal distances.
    fn player_due(&self, start: Instant) -> Instant {
        let all_ns = self.period_ns() * self.player_turns;
        start + Duration::from_nanos(all_ns / self.plan.players.max(1) as u64)
    }

    fn server_due(&self, start: Instant) -> Instant {
        start + Duration::from_nanos(self.period_ns() * self.server_turns)
    }

    fn player_sends(&mut self, start: Instant) -> Result<(), BenchError> {
        let due = self.player_due(start);
        self.note_lateness(due);
        let at = (self.player_turns % self.plan.players as u64) as usize;
        let round = self.player_turns / self.plan.players as u64;
        self.player_turns += 1;
        let member = self.players[at];
        let channel = self.channel_of(at);
        let (room, id) = self.plan.place_of(at);
        self.update.clear();
        if self.plan.mode == Mode::Client {
            let number = (round + 1) as u16;
            let stamp = self.stamp(due);
            self.numbers[room][id] = number;
            put_state(&mut self.update, id as u32, stamp, number);
        }
        if let Some((_, outbox)) = self.swarm.member(member) {
            let sent = match self.plan.mode {
                Mode::Client => outbox.update(channel, TYPE_URL, &self.update),
                Mode::Server => outbox.message_owner(channel, USER_MESSAGE, &USER_PAYLOAD),
            };
            self.shared.note_sent(sent)?;
        }
        self.swarm.flush(member);
        Ok(())
    }

    fn server_updates(&mut self, start: Instant) -> Result<(), BenchError> {
        let due = self.server_due(start);
        self.note_lateness(due);
        self.server_turns += 1;
        let number = self.server_turns as u16;
        let stamp = self.stamp(due);
        for room in 0..self.plan.rooms {
            let channel = self.channels[room];
            let members = self.plan.members_of(room);
            self.update.clear();
            for id in 1..=members {
                self.numbers[room][id] = number;
                put_state(&mut self.update, id as u32, stamp, number);
                if self.update.len() > UPDATE_BYTES || id == members {
                    if let Some((_, outbox)) = self.swarm.member(self.server) {
                        let sent = outbox.update(channel, TYPE_URL, &self.update);
                        self.shared.note_sent(sent)?;
                    }
                    self.update.clear();
                }
            }
        }
        self.swarm.flush(self.server);
        Ok(())
    }

    fn stamp(&self, due: Instant) -> u64 {
        due.saturating_duration_since(self.shared.origin)
            .as_micros() as u64
    }

    fn note_lateness(&self, due: Instant) {
        let mut counters = self.shared.counters.borrow_mut();
        if counters.is_measuring {
            let late = Instant::now().saturating_duration_since(due);
            counters.late_us.saturating_record(late.as_micros() as u64);
        }
    }

    /// Reads what is still to come.
    fn drain(&mut self) -> Result<(), BenchError> {
        let end = Instant::now() + DRAIN;
        while Instant::now() < end {
            self.swarm.poll(Duration::from_millis(10))?;
        }
        Ok(())
    }

    /// Players who check nothing only count what they get from now on.
    fn stop_looking(&mut self) {
        for at in 0..self.players.len() {
            if !self.plan.is_checked(at) {
                self.swarm.discard(self.players[at]);
            }
        }
    }

    /// How many windows each player has got that checks them.
    fn windows(&mut self) -> Vec<u64> {
        let checked = (0..self.players.len()).filter(|&at| self.plan.is_checked(at));
        let players: Vec<MemberId> = checked.map(|at| self.players[at]).collect();
        let windows = |id| self.swarm.member(id).map_or(0, |(peer, _)| peer.windows);
        players.into_iter().map(windows).collect()
    }

    /// How many bytes each of the other players has got.
    fn discarded(&self) -> Vec<u64> {
        let others = (0..self.players.len()).filter(|&at| !self.plan.is_checked(at));
        others
            .map(|at| self.swarm.discarded_bytes(self.players[at]))
            .collect()
    }

    /// Newest states that some player does not have.
    fn missing(&mut self) -> u64 {
        let own_is_announced = self.plan.mode == Mode::Server;
        let mut missing = 0;
        for at in (0..self.players.len()).filter(|&at| self.plan.is_checked(at)) {
            let (room, id) = self.plan.place_of(at);
            let own = (!own_is_announced).then_some(id as u32);
            missing += match self.swarm.member(self.players[at]) {
                Some((peer, _)) => peer.missing(own, &self.numbers[room]),
                None => self.plan.room_size() as u64,
            };
        }
        missing
    }

    fn count_ended(&mut self) -> u64 {
        std::iter::from_fn(|| self.swarm.take_ended()).count() as u64
    }
}
