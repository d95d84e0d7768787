//! One connection, and the table of them.

use std::net::IpAddr;

use lagometer_protocol::FrameDecoder;
use lagometer_units::Time;

use crate::core::bus::CloseReason;
use crate::core::ids::{ConnId, ConnKey, Peer};
use crate::core::settings::{ConnectionSettings, Fsm, FsmState};

use super::backlog::Backlog;
use super::conflation::ConflationBuffer;
use super::congestion::{Pause, ReadControl};
use super::outbox::Outbox;
use super::recorder::Recorder;

/// What a connection has asked for before its login.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BeforeLogin {
    pub(super) bytes: usize,
    pub(super) messages: usize,
    pub(super) attempts: u32,
}

/// Whether a peer has shown that it is where its address says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressProof {
    /// It receives what is sent there.
    Proven,
    /// The address may be another's, as that of a datagram may.
    Forgeable,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) key: ConnKey,
    pub(super) peer: Peer,
    pub(super) address: Option<IpAddr>,
    pub(super) address_proof: AddressProof,
    /// Its number, once it has attempted to be let in.
    pub(super) id: Option<ConnId>,
    pub(super) admitted: bool,
    pub(super) login: Login,
    pub(super) player: String,
    pub(super) state: FsmState,
    pub(super) decoder: FrameDecoder,
    pub(super) outbox: Outbox,
    /// It reads slowly: what it has not been sent.
    pub(super) conflation: Option<Box<ConflationBuffer>>,
    pub(super) closing: Option<CloseReason>,
    /// It stands in the list of those with something to write.
    pub(super) listed: bool,
    pub(super) refused: u32,
    pub(super) opened: Time,
    pub(super) last_received: Time,
    /// Since when something waits and nothing is read.
    pub(super) stuck_since: Option<Time>,
    /// What it has asked for before its login.
    pub(super) before_login: BeforeLogin,
    /// It is not to be read: its messages wait for a server that cannot keep up.
    pub(super) pause: Option<Box<Pause>>,
    /// What the driver was asked last.
    pub(super) read_control: ReadControl,
    /// A server for which much waits: who caused what.
    pub(super) backlog: Option<Box<Backlog>>,
    pub(super) recorder: Option<Box<Recorder>>,
    /// Once it is let in, what it sends is kept.
    pub(super) is_to_be_recorded: bool,
}

/// Whether the channel manager knows of a connection, and waits to answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Login {
    /// It has not sent AUTH.
    NotTried,
    /// It has, and was not answered yet.
    Pending,
    /// It has, and was.
    Answered,
}

/// Connections by slot; a slot is used again under another generation.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

impl Connection {
    /// Whether the address may be another's.
    pub(super) fn is_address_forgeable(&self) -> bool {
        self.address_proof == AddressProof::Forgeable
    }

    pub(super) fn new(
        key: ConnKey,
        peer: Peer,
        address: Option<IpAddr>,
        now: Time,
        settings: &ConnectionSettings,
    ) -> Self {
        Self {
            key,
            peer,
            address,
            address_proof: AddressProof::Proven,
            id: None,
            admitted: false,
            login: Login::NotTried,
            player: String::new(),
            state: fsm(settings, peer).start(),
            decoder: FrameDecoder::new(settings.frames),
            outbox: Outbox::default(),
            conflation: None,
            closing: None,
            listed: false,
            refused: 0,
            opened: now,
            last_received: now,
            stuck_since: None,
            before_login: BeforeLogin::default(),
            pause: None,
            read_control: ReadControl::Resume,
            backlog: None,
            recorder: None,
            is_to_be_recorded: false,
        }
    }
}

/// The state machine of a kind of peer.
pub(super) fn fsm(settings: &ConnectionSettings, peer: Peer) -> &Fsm {
    match peer {
        Peer::Server => &settings.server_fsm,
        Peer::Client => &settings.client_fsm,
    }
}

impl Table {
    pub(super) fn insert(&mut self, make: impl FnOnce(ConnKey) -> Connection) -> ConnKey {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let place = &mut self.slots[slot as usize];
        place.generation = place.generation.wrapping_add(1);
        let key = ConnKey {
            slot,
            generation: place.generation,
        };
        place.connection = Some(Box::new(make(key)));
        key
    }

    pub(super) fn remove(&mut self, key: ConnKey) -> Option<Box<Connection>> {
        self.get(key)?;
        self.free.push(key.slot);
        self.slots[key.slot()].connection.take()
    }

    pub(super) fn get(&self, key: ConnKey) -> Option<&Connection> {
        self.slots
            .get(key.slot())?
            .connection
            .as_deref()
            .filter(|connection| connection.key == key)
    }

    pub(super) fn get_mut(&mut self, key: ConnKey) -> Option<&mut Connection> {
        self.at_mut(key.slot)
            .filter(|connection| connection.key == key)
    }

    /// Whoever is in a slot now.
    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots.get_mut(slot as usize)?.connection.as_deref_mut()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = ConnKey> {
        self.slots
            .iter()
            .filter_map(|slot| Some(slot.connection.as_ref()?.key))
    }
}
