//! Holds a conversation with the core in virtual time, and checks after every
//! act that what must hold does.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use lagometer_gateway::core::bus::{ToChannels, ToConnections};
use lagometer_gateway::core::{
    ChannelManager, CloseReason, ConnectionManager, Peer, ReadControl, SideId, sides_agree,
};
use lagometer_protocol::messages::channeldpb::{AuthMessage, MessagePack};
use lagometer_units::Time;

use super::choices::Choices;
use super::hostile::NAMES;
use super::peer::TestPeer;
use super::script::{Act, CLOSE_AT_BYTES, Form, Script, SentFrame, Stage};
use super::sentinels::{self, Sentinels};

/// The well-behaved, by their place among the peers.
const SERVER: usize = 0;
const READERS: [usize; 2] = [1, 2];
const BYSTANDER: usize = 3;
const ATTACKERS_FROM: usize = 4;

/// What is read of one connection before the others have their turn.
const READ_BYTES: usize = 64 << 10;

/// How long a peer may stay paused once no server is congested: a pause, and
/// the wait for an answer whether it is to go on.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Less does not congest a server, under any settings that are drawn.
const CONGESTED_BYTES: usize = CLOSE_AT_BYTES / 4;

/// How a conversation went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// A hash of everything that was written to anybody, in order.
    pub(crate) digest: u64,
    pub(crate) acts: u64,
    /// Messages that the gateway took in, and put out.
    pub(crate) messages_in: u64,
    pub(crate) messages_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Messages that crossed the bus.
    pub(crate) bus: u64,
}

/// A gateway and those who speak with it.
pub(crate) struct Play<'s> {
    script: &'s Script,
    stage: Stage,
    sides: Vec<ConnectionManager>,
    /// What stands still on the way from and to each side.
    held: Vec<[bool; 2]>,
    up: Vec<VecDeque<ToChannels>>,
    down: Vec<VecDeque<ToConnections>>,
    channels: ChannelManager,
    now: Time,
    peers: Vec<TestPeer>,
    sentinels: Sentinels,
    outcome: Outcome,
    attackers: u32,
    /// When a server was congested last.
    congested_at: Time,
}

/// A conversation chosen by the bytes of a fuzzer.
///
/// # Panics
///
/// If anything does not hold, with the conversation.
pub(crate) fn body(data: &[u8]) {
    let script = Script::draw(&mut Choices::Bytes(data));
    let hold = || -> Result<(), String> {
        let mut play = Play::new(&script)?;
        for index in 0..script.acts.len() {
            play.act(index)?;
        }
        play.finish()
    };
    if let Err(what) = hold() {
        panic!("{what}\n{script}");
    }
}

impl<'s> Play<'s> {
    pub(crate) fn new(script: &'s Script) -> Result<Self, String> {
        let stage = script.stage.clone();
        let sides = stage.sides;
        let side = || {
            let mut side = ConnectionManager::new(stage.connections());
            side.record_clients(stage.recording);
            side
        };
        let mut play = Self {
            script,
            sides: (0..sides).map(|_| side()).collect(),
            held: vec![[false; 2]; sides],
            up: (0..sides).map(|_| VecDeque::new()).collect(),
            down: (0..sides).map(|_| VecDeque::new()).collect(),
            channels: ChannelManager::new(stage.channels()),
            now: Time::ZERO,
            peers: Vec::new(),
            sentinels: Sentinels::default(),
            outcome: Outcome::default(),
            attackers: 0,
            congested_at: Time::ZERO,
            stage,
        };
        play.bring_sentinels()?;
        Ok(play)
    }

    /// How it has gone so far.
    pub(crate) fn outcome(&self) -> Outcome {
        let counters = self.sides.iter().map(ConnectionManager::counters);
        let of_all = counters.flat_map(|counters| counters.peers);
        of_all.fold(self.outcome, |outcome, peer| Outcome {
            messages_in: outcome.messages_in + peer.messages_in,
            messages_out: outcome.messages_out + peer.messages_out,
            ..outcome
        })
    }

    /// Does the act at `index`, and checks everything after it.
    pub(crate) fn act(&mut self, index: usize) -> Result<(), String> {
        self.outcome.acts += 1;
        match &self.script.acts[index] {
            Act::Come { peer, mute, name } => self.come(*peer, *mute, *name),
            Act::Send { who, frames, piece } => {
                if let Some(who) = self.attacker(*who) {
                    let bytes: Vec<u8> = frames.iter().flat_map(SentFrame::bytes).collect();
                    self.send(who, &bytes, *piece)?;
                }
            }
            Act::Go { who } => {
                if let Some(who) = self.attacker(*who) {
                    self.hang_up(who, CloseReason::PeerClosed);
                }
            }
            Act::Stall { who, stalls } => {
                if let Some(who) = self.attacker(*who) {
                    self.peers[who].stalls = *stalls;
                    self.read(who, if *stalls { 0 } else { usize::MAX })?;
                }
            }
            Act::Read { who, bytes } => {
                if let Some(who) = self.attacker(*who) {
                    self.read(who, *bytes)?;
                }
            }
            Act::HoldBack { who, holds } => {
                if let Some(who) = self.attacker(*who) {
                    self.peers[who].held_back = *holds;
                    self.deliver(who)?;
                }
            }
            Act::Hold { side, up, holds } => self.held[*side][usize::from(*up)] = *holds,
            Act::Decide(verdict) => {
                while let Some(request) = self.channels.poll_auth_request() {
                    self.channels
                        .answer_auth(self.now, request.ticket, *verdict);
                }
            }
            Act::Reload { tight, anti_ddos } => {
                let other = self.stage.reloaded(*tight, *anti_ddos);
                for side in &mut self.sides {
                    side.set_settings(other.connections());
                }
                self.channels.set_settings(other.channels());
            }
            Act::Pass(millis) => self.pass(*millis)?,
            Act::Write => {
                let line = self.sentinels.write(self.now);
                self.say(SERVER, line)?;
            }
            Act::Echo { reader } => {
                let question = self.sentinels.ask(self.now, *reader);
                self.say(READERS[*reader], question)?;
            }
        }
        self.settle()?;
        self.check()
    }

    /// Lets the bus move and time pass, and everybody hang up.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        self.pass(3000)?;
        self.check()?;
        for who in ATTACKERS_FROM..self.peers.len() {
            if self.peers[who].is_open {
                self.hang_up(who, CloseReason::TransportFailed);
            }
        }
        self.settle()?;
        self.check()?;
        self.pass(5000)?;
        self.check()
    }

    fn bring_sentinels(&mut self) -> Result<(), String> {
        let names = ["master", "reader-1", "reader-2", "bystander"];
        let kinds = [Peer::Server, Peer::Client, Peer::Client, Peer::Client];
        for (who, (name, kind)) in names.into_iter().zip(kinds).enumerate() {
            let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, who as u8));
            self.connect(kind, address);
            self.say(who, login(name, "secret"))?;
            self.settle()?;
            while let Some(request) = self.channels.poll_auth_request() {
                let verdict = lagometer_gateway::core::AuthVerdict::Admit;
                self.channels.answer_auth(self.now, request.ticket, verdict);
            }
            self.settle()?;
        }
        self.say(SERVER, sentinels::take_global())?;
        self.say(SERVER, sentinels::make_channel())?;
        for reader in READERS {
            let id = self.id(reader);
            self.say(SERVER, sentinels::subscribe(id))?;
        }
        self.pass(100)?;
        self.check()
    }

    fn come(&mut self, peer: Peer, mute: bool, name: usize) {
        self.attackers += 1;
        // Few addresses, for some to be banned and come again.
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 1, (self.attackers % 5) as u8));
        if self.connect(peer, address) && !mute {
            let who = self.peers.len() - 1;
            // Refused or not, it is the gateway's affair.
            let _ = self.say(who, login(NAMES[name], "token"));
        }
    }

    fn connect(&mut self, kind: Peer, address: IpAddr) -> bool {
        let side = self.peers.len() % self.sides.len();
        let opened = self.sides[side].open(self.now, kind, Some(address));
        if let Ok(key) = opened {
            self.peers.push(TestPeer::new(side, key));
        }
        opened.is_ok()
    }

    /// An attacker that is there, if any is.
    fn attacker(&self, who: usize) -> Option<usize> {
        let open: Vec<usize> = (ATTACKERS_FROM..self.peers.len())
            .filter(|&who| self.peers[who].is_open)
            .collect();
        (!open.is_empty()).then(|| open[who % open.len()])
    }

    fn say(&mut self, who: usize, message: MessagePack) -> Result<(), String> {
        let frame = SentFrame {
            messages: vec![message],
            times: 1,
            form: Form::Plain,
        };
        self.send(who, &frame.bytes(), usize::MAX)
    }

    fn send(&mut self, who: usize, bytes: &[u8], piece: usize) -> Result<(), String> {
        self.outcome.bytes_in += bytes.len() as u64;
        let (side, key) = (self.peers[who].side, self.peers[who].key);
        for read in bytes.chunks(READ_BYTES) {
            if !self.peers[who].is_read() {
                self.peers[who].unread.extend_from_slice(read);
                continue;
            }
            for piece in read.chunks(piece.min(READ_BYTES)) {
                self.sides[side].receive(self.now, key, piece);
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Hands on what a peer sent while it was not read, as far as it is now.
    fn deliver(&mut self, who: usize) -> Result<(), String> {
        while self.peers[who].is_read() && !self.peers[who].unread.is_empty() {
            let peer = &mut self.peers[who];
            let read: Vec<u8> = peer
                .unread
                .drain(..peer.unread.len().min(READ_BYTES))
                .collect();
            let (side, key) = (peer.side, peer.key);
            self.sides[side].receive(self.now, key, &read);
            self.settle()?;
        }
        Ok(())
    }

    /// Pauses and resumes peers as the core says.
    fn pause(&mut self) -> Vec<usize> {
        let mut resumed = Vec::new();
        for index in 0..self.sides.len() {
            while let Some((key, control)) = self.sides[index].poll_pause() {
                let is_it = |peer: &TestPeer| peer.side == index && peer.key == key;
                if let Some(who) = self.peers.iter().position(is_it) {
                    self.peers[who].paused = control == ReadControl::Pause;
                    resumed.extend((control == ReadControl::Resume).then_some(who));
                }
            }
        }
        resumed
    }

    /// Notes that a server is congested now.
    fn note_congestion(&mut self) {
        let is_congested = |peer: &TestPeer| {
            peer.is_open && self.sides[peer.side].waiting(peer.key) >= CONGESTED_BYTES
        };
        if self.peers.iter().any(is_congested) {
            self.congested_at = self.now;
        }
    }

    fn hang_up(&mut self, who: usize, why: CloseReason) {
        let (side, key) = (self.peers[who].side, self.peers[who].key);
        self.sides[side].close(key, why);
        self.peers[who].is_open = false;
    }

    /// Lets time pass, from one deadline to the next, with the bus free.
    fn pass(&mut self, millis: u64) -> Result<(), String> {
        self.held.fill([false; 2]);
        self.settle()?;
        let end = self.now + Duration::from_millis(millis);
        let mut woken = 0_u64;
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
            self.settle()?;
            woken += 1;
            // Every tick of every channel, at a millisecond each, and more.
            if woken > 10_000 + 100 * millis {
                return Err(format!("woken {woken} times in {millis} ms"));
            }
        }
        self.now = end;
        Ok(())
    }

    /// Carries the bus and the wires until nothing moves.
    fn settle(&mut self) -> Result<(), String> {
        loop {
            let mut moved = self.carry();
            for who in 0..self.peers.len() {
                if self.peers[who].is_open && !self.peers[who].stalls {
                    moved |= self.read(who, usize::MAX)?;
                }
            }
            moved |= self.close();
            moved |= self.listen()?;
            self.note_congestion();
            if !moved {
                break;
            }
        }
        for who in self.pause() {
            self.deliver(who)?;
        }
        Ok(())
    }

    fn carry(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            while let Some(message) = self.sides[index].poll_bus() {
                self.up[index].push_back(message);
            }
            while !self.held[index][1]
                && let Some(message) = self.up[index].pop_front()
            {
                self.outcome.bus += 1;
                self.channels
                    .handle(self.now, SideId(index as u16), message);
                moved = true;
            }
        }
        while let Some((side, message)) = self.channels.poll_bus() {
            self.down[usize::from(side.0)].push_back(message);
        }
        for index in 0..self.sides.len() {
            while !self.held[index][0]
                && let Some(message) = self.down[index].pop_front()
            {
                self.outcome.bus += 1;
                self.sides[index].handle(self.now, message);
                moved = true;
            }
            while self.sides[index].poll_writable().is_some() {}
            while self.sides[index].poll_event().is_some() {}
            while self.sides[index].poll_recording().is_some() {}
        }
        while self.channels.poll_event().is_some() {}
        moved
    }

    /// A peer reads so many bytes at most.
    fn read(&mut self, who: usize, most: usize) -> Result<bool, String> {
        let peer = &mut self.peers[who];
        let side = &mut self.sides[peer.side];
        if side.waiting(peer.key) == 0 {
            return Ok(false);
        }
        let slices = side.output(peer.key).flatten();
        let bytes: Vec<u8> = slices.copied().take(most).collect();
        if bytes.is_empty() {
            return Ok(false);
        }
        side.wrote(self.now, peer.key, bytes.len());
        self.outcome.bytes_out += bytes.len() as u64;
        for &byte in who.to_le_bytes().iter().chain(&bytes) {
            // FNV-1a.
            let mixed = self.outcome.digest ^ u64::from(byte);
            self.outcome.digest = mixed.wrapping_mul(0x0100_0000_01b3);
        }
        let (id, admitted) = (side.id(peer.key), side.is_admitted(peer.key));
        peer.read(&bytes, id, admitted)?;
        Ok(true)
    }

    fn close(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            while let Some((key, why)) = self.sides[index].poll_close() {
                self.sides[index].close(key, why);
                moved = true;
                for peer in &mut self.peers {
                    if peer.side == index && peer.key == key {
                        peer.is_open = false;
                    }
                }
            }
        }
        moved
    }

    /// The well-behaved hear what came for them; the others do not care.
    fn listen(&mut self) -> Result<bool, String> {
        let readers = READERS.map(|reader| self.id(reader));
        let alone = self.is_alone();
        let mut answers = Vec::new();
        for who in 0..self.peers.len() {
            for message in std::mem::take(&mut self.peers[who].inbox) {
                if who == SERVER {
                    answers.extend(Sentinels::answer(&message, readers));
                } else if let Some(reader) = READERS.iter().position(|&reader| reader == who)
                    && self.is_promised()
                {
                    self.sentinels.heard(reader, &message, alone)?;
                } else if who == BYSTANDER && alone && message.msg_type != 1 {
                    return Err(format!("the bystander is sent type {}", message.msg_type));
                }
            }
        }
        let any = !answers.is_empty();
        for answer in answers {
            if self.peers[SERVER].is_open {
                let frame = SentFrame {
                    messages: vec![answer],
                    times: 1,
                    form: Form::Plain,
                };
                let (side, key) = (self.peers[SERVER].side, self.peers[SERVER].key);
                self.sides[side].receive(self.now, key, &frame.bytes());
            }
        }
        Ok(any)
    }

    /// Whether the well-behaved are promised anything: servers are trusted, and
    /// so is whoever loads files that let clients do more.
    fn is_promised(&self) -> bool {
        !self.stage.hostile_servers && self.stage.files.is_none()
    }

    /// Whether nobody but the sentinels may write to their channel.
    fn is_alone(&self) -> bool {
        self.is_promised() && !self.stage.clients_decide
    }

    fn id(&self, who: usize) -> u32 {
        let id = |peer: &TestPeer| self.sides[peer.side].id(peer.key);
        self.peers.get(who).and_then(id).map_or(0, |id| id.0)
    }

    fn is_held(&self) -> bool {
        self.held.iter().flatten().any(|&held| held)
    }

    /// What must hold now.
    fn check(&self) -> Result<(), String> {
        let broken = |error: lagometer_gateway::core::BrokenInvariant| error.to_string();
        self.channels.check_invariants().map_err(broken)?;
        for side in &self.sides {
            side.check_invariants().map_err(broken)?;
        }
        let may_clients_own = self.stage.files.is_some_and(|files| files.dev);
        if !may_clients_own && let Some((owner, Peer::Client)) = self.channels.global_owner() {
            return Err(format!("GLOBAL is owned by a client, {owner}"));
        }
        let limits = self.stage.slow_readers();
        let limit = limits.close_at_bytes.max(limits.server_close_at_bytes);
        for peer in &self.peers {
            let waiting = self.sides[peer.side].waiting(peer.key);
            if waiting > limit + (1 << 20) {
                return Err(format!("{waiting} bytes wait for one connection"));
            }
        }
        if self.is_held() {
            return Ok(());
        }
        let sides: Vec<(SideId, &ConnectionManager)> = (0..).map(SideId).zip(&self.sides).collect();
        sides_agree(&self.channels, &sides).map_err(broken)?;
        let relieved_for = self.now.since(self.congested_at);
        let paused = self
            .peers
            .iter()
            .position(|peer| peer.is_open && peer.paused);
        if let Some(who) = paused.filter(|_| relieved_for > LONGEST_PAUSE) {
            return Err(format!(
                "peer {who} is paused though no server is congested for {relieved_for:?}"
            ));
        }
        if !self.is_promised() {
            return Ok(());
        }
        for who in 0..ATTACKERS_FROM {
            if self.peers[who].paused {
                return Err(format!("sentinel {who} is paused"));
            }
            if !self.peers[who].is_open {
                return Err(format!("sentinel {who} was cut off"));
            }
        }
        if self.channels.global_owner().map(|(id, _)| id.0) != Some(self.id(SERVER)) {
            return Err("the server has lost GLOBAL to clients".to_owned());
        }
        self.sentinels.check(self.now, self.is_alone())
    }
}

fn login(name: &str, token: &str) -> MessagePack {
    let message = AuthMessage {
        player_identifier_token: name.to_owned(),
        login_token: token.to_owned(),
    };
    sentinels::pack(0, 3, 1, &message)
}
