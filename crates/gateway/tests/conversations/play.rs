//! Holds a conversation with the core in virtual time, and checks after every
//! act that what must hold does.

mod checks;
mod motion;

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use lagometer_gateway::core::bus::{ToChannels, ToConnections};
use lagometer_gateway::core::{Budget, ChannelManager, CloseReason, ConnectionManager, Peer};
use lagometer_protocol::messages::channeldpb::{AuthMessage, MessagePack};
use lagometer_units::Time;

use super::choices::Choices;
use super::hostile::NAMES;
use super::peer::TestPeer;
use super::script::{Act, Form, LAST, Script, SentFrame};
use super::sentinels::{self, Sentinels};
use super::settings::ConversationSettings;

/// The well-behaved, by their place among the peers.
const SERVER: usize = 0;
const READERS: [usize; 2] = [1, 2];
const BYSTANDER: usize = 3;
const ATTACKERS_FROM: usize = 4;

/// What is read of one connection before the others have their turn.
const READ_BYTES: usize = 64 << 10;

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
    settings: ConversationSettings,
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
    /// Why requests were refused.
    refusals: BTreeSet<&'static str>,
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
        let settings = script.settings.clone();
        let sides = settings.sides;
        let side = || {
            let mut side = ConnectionManager::new(settings.connections());
            side.record_clients(settings.recording);
            side
        };
        let mut play = Self {
            script,
            sides: (0..sides).map(|_| side()).collect(),
            held: vec![[false; 2]; sides],
            up: (0..sides).map(|_| VecDeque::new()).collect(),
            down: (0..sides).map(|_| VecDeque::new()).collect(),
            channels: ChannelManager::new(settings.channels()),
            now: Time::ZERO,
            peers: Vec::new(),
            sentinels: Sentinels::default(),
            outcome: Outcome::default(),
            attackers: 0,
            congested_at: Time::ZERO,
            refusals: BTreeSet::new(),
            settings,
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

    /// Why requests were refused so far: in the words of the log, and by the labels
    /// of the budgets that were exceeded.
    pub(crate) fn refusals(&self) -> BTreeSet<&'static str> {
        let mut over = self.channels.counters().over_budget;
        for side in &self.sides {
            over.add(&side.counters().over_budget);
        }
        let exceeded = Budget::ALL.into_iter().filter(|&budget| {
            let kinds = [Peer::Server, Peer::Client];
            kinds.iter().any(|&peer| over.of(peer, budget) > 0)
        });
        let labels = exceeded.map(Budget::label);
        self.refusals.iter().copied().chain(labels).collect()
    }

    /// Does the act at `index`, and checks everything after it.
    pub(crate) fn act(&mut self, index: usize) -> Result<(), String> {
        self.outcome.acts += 1;
        match &self.script.acts[index] {
            Act::Come { peer, mute, name } => self.come(*peer, *mute, *name),
            Act::Send { who, frames, piece } => {
                if let Some(who) = self.attacker(*who) {
                    let bytes: Vec<u8> = frames.iter().flat_map(SentFrame::bytes).collect();
                    let unpacked: usize = frames.iter().map(SentFrame::unpacked_len).sum();
                    self.outcome.bytes_in += unpacked.saturating_sub(bytes.len()) as u64;
                    self.send(who, &bytes, *piece)?;
                }
            }
            Act::Crush { attackers, frame } => self.crush(*attackers, frame)?,
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
                let other = self.settings.reloaded(*tight, *anti_ddos);
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
        if who == LAST {
            return open.last().copied();
        }
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

    /// Each of the attackers who came last sends a frame, and the server reads
    /// nothing until all have.
    fn crush(&mut self, attackers: usize, frame: &SentFrame) -> Result<(), String> {
        let (bytes, unpacked) = (frame.bytes(), frame.unpacked_len());
        let last = (ATTACKERS_FROM..self.peers.len()).rev();
        let open = last.filter(|&who| self.peers[who].is_open);
        let open: Vec<usize> = open.take(attackers).collect();
        self.peers[SERVER].stalls = true;
        for who in open {
            self.outcome.bytes_in += unpacked.saturating_sub(bytes.len()) as u64;
            self.send(who, &bytes, usize::MAX)?;
        }
        self.peers[SERVER].stalls = false;
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

    fn hang_up(&mut self, who: usize, why: CloseReason) {
        let (side, key) = (self.peers[who].side, self.peers[who].key);
        self.sides[side].close(key, why);
        self.peers[who].is_open = false;
    }

    fn id(&self, who: usize) -> u32 {
        let id = |peer: &TestPeer| self.sides[peer.side].id(peer.key);
        self.peers.get(who).and_then(id).map_or(0, |id| id.0)
    }
}

fn login(name: &str, token: &str) -> MessagePack {
    let message = AuthMessage {
        player_identifier_token: name.to_owned(),
        login_token: token.to_owned(),
    };
    sentinels::pack(0, 3, 1, &message)
}
