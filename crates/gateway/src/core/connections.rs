//! The connection manager: owns connections.
//!
//! Bytes come in and become frames, packets, messages; each message is held
//! against the connection's state machine, and what is allowed goes to the
//! channel manager. What the channel manager sends is put into frames, one outbox
//! for each connection; a group's window is fanned out here.
//!
//! A reader that is slow harms only itself. Up to a limit its frames wait;
//! then updates of channel data are merged instead, channel by channel, until
//! it has caught up. What cannot be merged waits up to a second limit, at which
//! the connection is closed, as it is when it reads nothing for too long.

mod backlog;
mod check;
mod conflation;
mod congestion;
mod connection;
mod deliver;
mod full_servers;
mod groups;
mod inbound;
mod lost_channels;
mod outbox;
mod recorder;
mod spare_buffers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use lagometer_limits::source_prefix;
use lagometer_protocol::Compressor;
use lagometer_units::Time;

use super::arena::Arena;
use super::budget::{Budget, BudgetMonitor};
use super::burst_queue::BurstQueue;
use super::bus::{CheckedEnvelope, CloseReason, Misbehaviour, ToChannels};
use super::by_number::ByNumber;
use super::counters::ConnectionCounters;
use super::events::{Event, Events};
use super::ids::{ConnId, ConnKey, Peer};
use super::settings::ConnectionSettings;

pub use congestion::ReadControl;
use connection::{AddressProof, Connection, Login, Table};
use groups::Groups;
pub use inbound::Received;
use spare_buffers::SpareBuffers;

/// How often connections are checked for timeouts.
const TIMEOUT_CHECKS: Duration = Duration::from_millis(500);

/// The most addresses that are banned at a time.
const BANNED: usize = 16_384;

/// One connection manager. See the [module](super) for how it is driven.
#[derive(Debug)]
pub struct ConnectionManager {
    settings: ConnectionSettings,
    table: Table,
    by_id: ByNumber<ConnId, u32>,
    groups: Groups,
    /// Addresses that no client is accepted from, and until when.
    banned: BTreeMap<IpAddr, Time>,
    to_channels: BurstQueue<ToChannels>,
    /// Slots of connections with something to write, each once.
    writable: VecDeque<ConnKey>,
    closing: VecDeque<(ConnKey, CloseReason)>,
    /// Connections that are to be paused or resumed.
    read_control: VecDeque<ConnKey>,
    /// When pauses end, or answers about them are due.
    pauses_due: BTreeSet<(Time, ConnKey)>,
    recordings: VecDeque<Recording>,
    recording: bool,
    /// Bytes kept of all recordings.
    recorded_bytes: usize,
    check_timeouts_at: Option<Time>,
    spare: SpareBuffers,
    compressor: Compressor,
    /// Messages on their way to the channel manager are copied into this.
    arena: Arena,
    scratch: Vec<u8>,
    /// Those of a packet's messages that the channel manager is to get.
    allowed: Vec<CheckedEnvelope>,
    unpacked: Vec<u8>,
    counters: ConnectionCounters,
    budgets: BudgetMonitor,
    events: Events,
}

/// All that one client sent in its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The client.
    pub id: Option<ConnId>,
    /// An encoded `replaypb.ReplaySession`: the content of a `.cpr` file.
    pub file: Vec<u8>,
}

/// A connection was not accepted: its address is banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address is banned")]
pub struct AddressBanned;

impl ConnectionManager {
    /// A side without connections.
    #[must_use]
    pub fn new(settings: ConnectionSettings) -> Self {
        Self {
            settings,
            table: Table::default(),
            by_id: ByNumber::default(),
            groups: Groups::default(),
            banned: BTreeMap::new(),
            to_channels: BurstQueue::default(),
            writable: VecDeque::new(),
            closing: VecDeque::new(),
            read_control: VecDeque::new(),
            pauses_due: BTreeSet::new(),
            recordings: VecDeque::new(),
            recording: false,
            recorded_bytes: 0,
            check_timeouts_at: None,
            spare: SpareBuffers::default(),
            compressor: Compressor::new(),
            arena: Arena::default(),
            scratch: Vec::new(),
            allowed: Vec::new(),
            unpacked: Vec::new(),
            counters: ConnectionCounters::default(),
            budgets: BudgetMonitor::default(),
            events: Events::default(),
        }
    }

    /// Takes other settings. Connections that are open keep the frame limits
    /// they have; everything else applies to them too, save that a state
    /// machine with other states begins with the next connection.
    pub fn set_settings(&mut self, settings: ConnectionSettings) {
        let same_machines = settings.server_fsm == self.settings.server_fsm
            && settings.client_fsm == self.settings.client_fsm;
        if same_machines || self.table.keys().next().is_none() {
            self.settings = settings;
        } else {
            let server_fsm = self.settings.server_fsm.clone();
            let client_fsm = self.settings.client_fsm.clone();
            self.settings = ConnectionSettings {
                server_fsm,
                client_fsm,
                ..settings
            };
        }
    }

    /// Keeps what clients that connect from now on send once they are let in;
    /// see
    /// [`poll_recording`](Self::poll_recording).
    pub fn record_clients(&mut self, record: bool) {
        self.recording = record;
    }

    /// A connection was accepted. It takes part from now on, and has to be
    /// ended with [`close`](Self::close).
    ///
    /// # Errors
    ///
    /// [`AddressBanned`]: hang up.
    pub fn open(
        &mut self,
        now: Time,
        peer: Peer,
        address: Option<IpAddr>,
    ) -> Result<ConnKey, AddressBanned> {
        if peer == Peer::Client && self.is_banned(now, address) {
            self.counters.banned += 1;
            return Err(AddressBanned);
        }
        let settings = &self.settings;
        let key = self
            .table
            .insert(|key| Connection::new(key, peer, address, now, settings));
        if self.recording
            && peer == Peer::Client
            && let Some(connection) = self.table.get_mut(key)
        {
            connection.is_to_be_recorded = true;
        }
        let counters = self.counters.of_mut(peer);
        counters.open += 1;
        counters.opened += 1;
        self.check_timeouts_at.get_or_insert(now + TIMEOUT_CHECKS);
        self.events.push(Event::Opened { peer, address });
        Ok(key)
    }

    /// The socket is closed, by the peer or because
    /// [`poll_close`](Self::poll_close) asked for it: the connection is no
    /// more. `why` does not matter if the side had already decided to close it.
    pub fn close(&mut self, key: ConnKey, why: CloseReason) {
        self.begin_to_close(key, why);
        let Some(mut connection) = self.table.remove(key) else {
            return;
        };
        self.counters.of_mut(connection.peer).open -= 1;
        if let Some(id) = connection.id
            && self.by_id.get(&id) == Some(&key.slot)
        {
            self.by_id.remove(&id);
        }
        if let Some(recorder) = connection.recorder.take() {
            self.recorded_bytes -= recorder.len();
            self.recordings.push_back(Recording {
                id: connection.id,
                file: recorder.into_file(),
            });
        }
    }

    /// All connections are to be closed: the gateway shuts down.
    pub fn close_all(&mut self, why: CloseReason) {
        let keys: Vec<ConnKey> = self.table.keys().collect();
        for key in keys {
            self.begin_to_close(key, why);
        }
    }

    /// The next message for the channel manager.
    pub fn poll_bus(&mut self) -> Option<ToChannels> {
        self.to_channels.pop_front()
    }

    /// The next connection that has something to write. It is not given again
    /// before there is more to write than there was: whoever cannot write all
    /// of it waits until the socket can be written to.
    pub fn poll_writable(&mut self) -> Option<ConnKey> {
        loop {
            let key = self.writable.pop_front()?;
            if let Some(connection) = self.table.get_mut(key) {
                connection.listed = false;
                return Some(key);
            }
        }
    }

    /// What is to be written to a connection, in order, as shared slices for
    /// one vectored write (or several: there may be more slices than one write
    /// takes). Say with [`wrote`](Self::wrote) how much was.
    pub fn output(&mut self, key: ConnKey) -> impl Iterator<Item = &[u8]> {
        if let Some(connection) = self.table.get_mut(key) {
            connection.outbox.seal(&mut self.compressor);
        }
        self.table
            .get(key)
            .into_iter()
            .flat_map(|connection| connection.outbox.slices())
    }

    /// Bytes that wait to be written to a connection.
    #[must_use]
    pub fn waiting(&self, key: ConnKey) -> usize {
        self.table
            .get(key)
            .map_or(0, |connection| connection.outbox.waiting())
    }

    /// Bytes of memory that what has come of a connection and is no whole frame
    /// yet takes.
    #[must_use]
    pub fn held_bytes(&self, key: ConnKey) -> usize {
        let connection = self.table.get(key);
        connection.map_or(0, |connection| connection.decoder.held_bytes())
    }

    /// So many bytes of the [`output`](Self::output) were written.
    pub fn wrote(&mut self, now: Time, key: ConnKey, bytes: usize) {
        let Some(connection) = self.table.get_mut(key) else {
            return;
        };
        connection.outbox.wrote(bytes);
        self.counters.of_mut(connection.peer).bytes_out += bytes as u64;
        if let Some(backlog) = &mut connection.backlog {
            backlog.settle(connection.outbox.waiting());
        }
        if connection.outbox.is_empty() {
            connection.stuck_since = None;
            connection.backlog = None;
        } else if bytes > 0 || connection.stuck_since.is_none() {
            connection.stuck_since = Some(now);
        }
        if let Some((buffer, used_bytes)) = connection.outbox.give_back() {
            self.spare.give(now, buffer, used_bytes);
        }
        if connection.conflation.is_some()
            && connection.outbox.waiting() <= self.settings.slow_readers.resume_at_bytes
        {
            self.catch_up(now, key);
        }
    }

    /// The next connection that is to be closed, and why: write what can be
    /// written of its [`output`](Self::output) without waiting, close the
    /// socket, call [`close`](Self::close).
    pub fn poll_close(&mut self) -> Option<(ConnKey, CloseReason)> {
        self.closing.pop_front()
    }

    /// Whether something came up that has not been fetched yet: bytes to write,
    /// or connections to close. Whoever sleeps now would hold it up.
    #[must_use]
    pub fn has_more_to_do(&self) -> bool {
        !self.writable.is_empty() || !self.closing.is_empty()
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let pause = self.pauses_due.first().map(|(due, _)| *due);
        [self.check_timeouts_at, pause].into_iter().flatten().min()
    }

    /// Does what is due: pauses end, and connections that have run out of time
    /// are closed.
    pub fn handle_deadline(&mut self, now: Time) {
        self.end_pauses(now);
        if self.check_timeouts_at.is_none_or(|at| now < at) {
            return;
        }
        let mut late = Vec::new();
        let mut any = false;
        for key in self.table.keys() {
            any = true;
            if let Some(connection) = self.table.get(key)
                && connection.closing.is_none()
                && let Some(why) = self.out_of_time(now, connection)
            {
                let address = connection.address;
                let address = address.filter(|_| !connection.is_address_forgeable());
                late.push((key, address, why));
            }
        }
        for (key, address, why) in late {
            if why == CloseReason::AuthTimeout
                && let Some(address) = address
            {
                let what = Misbehaviour::NoLogin { address };
                self.to_channels.push_back(ToChannels::Misbehaved(what));
            }
            self.begin_to_close(key, why);
        }
        self.check_timeouts_at = any.then(|| now + TIMEOUT_CHECKS);
    }

    /// A connection's number on the wire, once it has one.
    #[must_use]
    pub fn id(&self, key: ConnKey) -> Option<ConnId> {
        self.table.get(key)?.id
    }

    /// Whether a connection was let in.
    #[must_use]
    pub fn is_admitted(&self, key: ConnKey) -> bool {
        self.table
            .get(key)
            .is_some_and(|connection| connection.admitted)
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> ConnectionCounters {
        ConnectionCounters {
            events_lost: self.events.lost(),
            over_budget: self.budgets.counters(),
            ..self.counters
        }
    }

    /// Whether a connection's address may be another's, as that of a datagram
    /// may: what the connection does is then not held against the address. The driver
    /// hands on nothing of such a connection that has logged in until it is shown to be
    /// there.
    pub fn set_address_forgeable(&mut self, key: ConnKey, is_forgeable: bool) {
        if let Some(connection) = self.table.get_mut(key) {
            let is_proven = connection.is_address_forgeable() && !is_forgeable;
            if is_proven && connection.login != Login::NotTried {
                self.to_channels
                    .push_back(ToChannels::AddressProven { key });
            }
            connection.address_proof = if is_forgeable {
                AddressProof::Forgeable
            } else {
                AddressProof::Proven
            };
        }
    }

    /// The driver reads nothing of a connection until then: it is not silent meanwhile.
    pub fn not_read_until(&mut self, key: ConnKey, until: Time) {
        if let Some(connection) = self.table.get_mut(key) {
            connection.last_received = connection.last_received.max(until);
        }
    }

    /// A connection asked for more than a budget that its driver enforces:
    /// counted, and logged at a limited rate. What becomes of the connection is
    /// the driver's to decide ([`CloseReason::OverBudget`]).
    pub fn over_budget(&mut self, now: Time, key: ConnKey, budget: Budget) {
        if let Some(connection) = self.table.get(key) {
            let id = connection.id.filter(|_| connection.admitted);
            let event = self.budgets.record(now, connection.peer, id, budget);
            if let Some(event) = event {
                self.events.push(event);
            }
        }
    }

    /// The next event for the log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The next session that was recorded to its end.
    pub fn poll_recording(&mut self) -> Option<Recording> {
        self.recordings.pop_front()
    }

    /// Whether clients from an address are not accepted.
    fn is_banned(&self, now: Time, address: Option<IpAddr>) -> bool {
        !self.banned.is_empty()
            && address
                .and_then(|address| self.banned.get(&source_prefix(address)))
                .is_some_and(|&until| now < until)
    }

    fn ban(&mut self, now: Time, address: IpAddr, until: Time) {
        self.banned.retain(|_, until| now < *until);
        if self.banned.len() < BANNED {
            self.banned.insert(address, until);
        }
    }

    fn out_of_time(&self, now: Time, connection: &Connection) -> Option<CloseReason> {
        let slow = self.settings.slow_readers.close_after;
        if connection
            .stuck_since
            .is_some_and(|since| now.since(since) >= slow)
        {
            return Some(CloseReason::NotReading);
        }
        if connection.peer == Peer::Server {
            return None;
        }
        if !connection.admitted
            && let Some(limits) = &self.settings.anti_ddos
            && now.since(connection.opened) >= limits.auth_timeout
        {
            return Some(CloseReason::AuthTimeout);
        }
        let silent = now.since(connection.last_received);
        let is_silent = connection.pause.is_none()
            && self
                .settings
                .silent_at_most
                .is_some_and(|most| silent >= most);
        is_silent.then_some(CloseReason::Silent)
    }

    /// Nothing is taken from the connection any more, and the channel manager is
    /// notified that it is gone.
    fn begin_to_close(&mut self, key: ConnKey, why: CloseReason) {
        let Some(connection) = self.table.get_mut(key) else {
            return;
        };
        if connection.closing.is_some() {
            return;
        }
        connection.closing = Some(why);
        connection.conflation = None;
        if connection.login != Login::NotTried {
            self.to_channels.push_back(ToChannels::Closed {
                key,
                broke_off: why.broke_off(),
            });
        }
        let counters = self.counters.of_mut(connection.peer);
        match why {
            CloseReason::BadBytes => counters.closed_for_bad_bytes += 1,
            CloseReason::TooMuchWaiting | CloseReason::NotReading => {
                counters.closed_for_slow_reading += 1;
            }
            _ => {}
        }
        self.closing.push_back((key, why));
        self.events.push(Event::Closed {
            id: connection.id,
            peer: connection.peer,
            why,
        });
    }
}
