//! The loop that owns connections: it reads what has arrived, lets the core
//! have its say, and writes once to each connection that there is something
//! for.
//!
//! Where the gateway runs on one thread, the channels are in this loop too.

mod accept;
mod drain;
mod kcp;
mod memory;
mod traffic;
mod unauthenticated;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lagometer_limits::SpareFiles;
use lagometer_units::Time;
use rustix::io::Errno;

use crate::core::{CloseReason, ConnKey, ConnectionManager, Peer, ReadControl};

use super::admission_control::PermitId;
use super::bus_adapter::BusAdapter;
use super::command::{Command, Commands};
use super::config::Config;
use super::journal::Journal;
use super::listener::Listener;
use super::pace::Rates;
use super::poller::{Events, Poller, Waker};
use super::recordings::RecordingWriter;
use super::report::{Numbers, Report};
use super::shared::Shared;
use super::sockets::Sockets;
use super::stream_transport::{KcpPort, Unproven};

use drain::Drain;
use traffic::LOOK_AT_CLOCK_EVERY;

/// Tokens from here on are not connections.
pub(super) const WAKER: u64 = 1 << 32;
const LISTENERS: u64 = 2 << 32;
const KCP_PORTS: u64 = 3 << 32;

/// How often connections that have not logged in are checked for timeouts.
const TIMEOUT_CHECKS: Duration = Duration::from_millis(500);

/// How long a loop that may read nothing waits for the channels at most.
const CHANNELS_BUSY: Duration = Duration::from_millis(5);

/// After the system had no room for another connection, how long none is
/// accepted at that listener.
const NO_ROOM: Duration = Duration::from_millis(100);

/// How long none is where those who were evicted are still to be closed.
const BEING_CLOSED: Duration = Duration::from_millis(5);

/// Files kept back for game servers.
const SPARE_FILES: usize = 16;

/// A shorter rest is not worth two system calls: the system's timers are later
/// than this anyway.
const SHORTEST_REST: Duration = Duration::from_micros(50);

/// So long before a tick of the channels a loop that rests looks at what has
/// arrived: time enough to take it in.
const LOOK_BEFORE_TICK: Duration = Duration::from_micros(300);

/// Where KCP conversations lose segments, how long what arrives is let gather at
/// most: their peers' round trips are longer by it, and with them, as much is
/// lost, the timeouts that make the tail. It takes three fifths more processor
/// time than four milliseconds, hence only there.
const KCP_GATHER: Duration = Duration::from_millis(1);

/// For so long after something was sent again.
const KCP_LOSES_FOR: Duration = Duration::from_secs(1);

/// How long an edge lets what arrives gather at most: it does not know the ticks of channels
/// on another node, so that all of it is added to how old things are when they are seen.
const EDGE_GATHER: Duration = Duration::from_millis(2);

/// What one turn reads into.
const READ_BUFFER_BYTES: usize = 128 << 10;

/// One connection loop.
pub(super) struct ConnectionLoop {
    /// Which of the loops this is.
    number: usize,
    /// The channels are on another node.
    is_edge: bool,
    poller: Poller,
    waker: Waker,
    shared: Arc<Shared>,
    config: Arc<Config>,
    side: ConnectionManager,
    bus: BusAdapter,
    commands: Arc<Commands>,
    report: Arc<Report>,
    recordings: Option<RecordingWriter>,
    journal: Journal,
    sockets: Sockets,
    listeners: Vec<Listener>,
    /// For game servers that come when the process has used up its files.
    spare_files: SpareFiles,
    kcp_ports: Vec<KcpPort>,
    /// KCP conversations by when they are due.
    kcp_due: BTreeSet<(Time, usize)>,
    /// When one of them last sent something again.
    kcp_resent_at: Option<Time>,
    /// KCP conversations with peers that may not be where they say.
    kcp_unproven: Unproven,
    /// Connections that have logged in and may have more to read than the poller
    /// knows, each once.
    unread: VecDeque<ConnKey>,
    /// Those that have not logged in and may have something to read, each once.
    unread_unauthenticated: VecDeque<ConnKey>,
    /// Connections that are not read for a while, by when they are again.
    paused: BTreeSet<(Time, ConnKey)>,
    /// Those that have not logged in.
    unauthenticated: BTreeMap<PermitId, ConnKey>,
    /// How fast a client is read.
    rates: Rates,
    /// Processor time that a connection may cost before its login.
    login_work: Duration,
    /// The listeners for clients are open.
    clients_may_come: bool,
    check_timeouts_at: Option<Time>,
    accept_again_at: Option<Time>,
    drain: Option<Drain>,
    /// When the last turn began.
    turned_at: Time,
    /// The time that the channels are told with what comes to them now.
    channels_at: Time,
    /// The shortest tick that channels have.
    tick: Duration,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// The last probe that was sent and the last that was answered for.
    probed: u64,
    answered: u64,
    turns: u64,
    busy_ns: u64,
}

/// What a loop is made of.
pub(super) struct Parts {
    pub(super) number: usize,
    pub(super) is_edge: bool,
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) shared: Arc<Shared>,
    pub(super) config: Arc<Config>,
    pub(super) bus: BusAdapter,
    pub(super) commands: Arc<Commands>,
    pub(super) report: Arc<Report>,
    pub(super) recordings: Option<RecordingWriter>,
    /// Those of TCP only the first loop has.
    pub(super) listeners: Vec<Listener>,
}

impl ConnectionLoop {
    pub(super) fn new(parts: Parts) -> Self {
        let mut side = ConnectionManager::new(parts.config.connections.clone());
        side.record_clients(parts.recordings.is_some());
        let (rates, login_work) = (rates(&parts.config), parts.config.limits.login_work);
        Self {
            number: parts.number,
            is_edge: parts.is_edge,
            poller: parts.poller,
            waker: parts.waker,
            shared: parts.shared,
            side,
            tick: parts.config.channels.types.shortest_tick(),
            config: parts.config,
            bus: parts.bus,
            commands: parts.commands,
            report: parts.report,
            recordings: parts.recordings,
            journal: Journal::default(),
            sockets: Sockets::default(),
            // Those of TCP, which take files, only the first loop has.
            spare_files: SpareFiles::new(if parts.number == 0 { SPARE_FILES } else { 0 }),
            listeners: parts.listeners,
            kcp_ports: Vec::new(),
            kcp_due: BTreeSet::new(),
            kcp_resent_at: None,
            kcp_unproven: Unproven::default(),
            unread: VecDeque::new(),
            unread_unauthenticated: VecDeque::new(),
            paused: BTreeSet::new(),
            unauthenticated: BTreeMap::new(),
            rates,
            login_work,
            clients_may_come: false,
            check_timeouts_at: None,
            accept_again_at: None,
            drain: None,
            turned_at: Time::ZERO,
            channels_at: Time::ZERO,
            buffer: vec![0; READ_BUFFER_BYTES],
            scratch: Vec::new(),
            probed: 0,
            answered: 0,
            turns: 0,
            busy_ns: 0,
        }
    }

    /// Runs until everyone is gone.
    pub(super) fn run(mut self) -> Result<(), Errno> {
        let mut events = Events::new();
        self.open_listeners(Peer::Server)?;
        if !self.config.wait_for_owner {
            self.shared.owned.store(true, Ordering::SeqCst);
        }
        self.open_client_listeners_if_owned()?;
        loop {
            let is_in_time = self.wait(&mut events)?;
            let now = self.shared.clock.now();
            // What is found after writing to many may have come at any time since the
            // loop last looked: a tick that was due meanwhile is its tick. Where writing
            // takes longer than ticks are apart, it would else miss every second one.
            self.channels_at = if is_in_time { now } else { self.turned_at };
            self.turned_at = now;
            if self.turn(now, &events)? {
                // Whoever is left goes now, and what was recorded is kept.
                self.end_all(now);
                self.keep_log(now);
                return Ok(());
            }
            self.turns += 1;
            self.busy_ns += self.shared.clock.now().since(now).as_nanos() as u64;
            self.answer();
        }
    }

    /// Waits for whatever comes first. Returns whether it has come since the last tick, as
    /// far as that is known.
    fn wait(&mut self, events: &mut Events) -> Result<bool, Errno> {
        if self.bus.is_full() {
            self.waker.notifier().wait(CHANNELS_BUSY)?;
            self.poller.wait(Some(Duration::ZERO), events)?;
            return Ok(false);
        }
        if self.has_unread() || self.side.has_more_to_do() {
            self.poller.wait(Some(Duration::ZERO), events)?;
            return Ok(false);
        }
        let due = [
            self.side.next_deadline(),
            self.bus.next_deadline(),
            self.kcp_due.first().map(|(due, _)| *due),
            self.paused.first().map(|(until, _)| *until),
            self.check_timeouts_at,
            self.accept_again_at,
            self.drain.as_ref().map(Drain::next_deadline),
        ]
        .into_iter()
        .flatten()
        .min();
        let mut now = self.shared.clock.now();
        // Being woken for each message costs more than the message: while much
        // comes, it is let gather. The waker ends the wait all the same.
        let rested = self.rested(now);
        let rest = due.map_or(rested, |due| due.min(rested)).since(now);
        if rest >= SHORTEST_REST {
            self.waker.notifier().wait(rest)?;
            now = self.shared.clock.now();
        }
        if self.turned_at.round_up_to(self.tick) <= now {
            self.poller.wait(Some(Duration::ZERO), events)?;
            if events.iter().next().is_some() {
                return Ok(false);
            }
        }
        self.poller.wait(due.map(|due| due.since(now)), events)?;
        Ok(true)
    }

    /// How long what arrives is let gather.
    fn gather(&self, now: Time) -> Duration {
        let gather = self.config.threads.gather;
        match self.kcp_resent_at {
            Some(at) if now.since(at) < KCP_LOSES_FOR => gather.min(KCP_GATHER),
            _ if self.is_edge => gather.min(EDGE_GATHER),
            _ => gather,
        }
    }

    /// Until when nothing need be looked at that has only arrived.
    fn rested(&self, now: Time) -> Time {
        let rested = self.turned_at + self.gather(now);
        if self.is_edge {
            return rested;
        }
        // What came before a tick belongs into that tick's windows, even where
        // it is the first that anybody waits for.
        let tick = now.round_up_to(self.tick);
        if rested >= tick && now + LOOK_BEFORE_TICK < tick {
            return tick - LOOK_BEFORE_TICK;
        }
        rested
    }

    /// One turn. Returns whether it was the last.
    fn turn(&mut self, now: Time, events: &Events) -> Result<bool, Errno> {
        if events.iter().any(|event| event.token == WAKER) {
            self.waker.silence();
        }
        while let Some(command) = self.commands.take() {
            match command {
                Command::Adopt(accepted) => self.adopt(now, accepted),
                Command::Evict(permit, why) => self.evict(now, permit, why),
                Command::Reload(config) => self.reload(config),
                Command::Drain => self.begin_to_drain(now),
                Command::End => return Ok(true),
            }
        }
        self.take_events(now, events);
        self.tick_kcp(now);
        let asked = self.report.asked();
        if asked != self.probed {
            self.probed = asked;
            self.bus.send_probe(asked);
        }
        self.exchange(now);
        self.channels_at = now;
        self.side.handle_deadline(now);
        self.bus.handle_deadline(now);
        self.exchange(now);
        self.pause_senders();
        self.check_timeouts(now);
        self.flush(now);
        self.close_those_to_go(now);
        self.exchange(now);
        self.keep_log(now);
        self.open_client_listeners_if_owned()?;
        self.wake_listeners(now)?;
        Ok(self.drained(now))
    }

    /// Carries messages to the channels and back. Who is let in by them has a
    /// place from then on that is given to nobody else.
    fn exchange(&mut self, now: Time) {
        for key in self.bus.exchange(now, self.channels_at, &mut self.side) {
            self.note_login(now, key);
        }
    }

    fn take_events(&mut self, now: Time, events: &Events) {
        let mut may_read = !self.bus.is_full();
        let mut listeners = Vec::new();
        if may_read {
            self.resume_paused(now);
            may_read = self.read_listed(now);
        }
        for (at, event) in events.iter().enumerate() {
            if at % LOOK_AT_CLOCK_EVERY == LOOK_AT_CLOCK_EVERY - 1 && may_read {
                may_read = !self.is_late(now);
            }
            let number = (event.token & 0xffff_ffff) as usize;
            match event.token & !0xffff_ffff {
                0 => self.take_event(now, number, event, may_read),
                LISTENERS => listeners.push(number),
                KCP_PORTS if !self.bus.is_full() => self.read_kcp(now, number),
                _ => {}
            }
        }
        self.serve_unauthenticated(now, &listeners);
    }

    /// Other settings, where they can be changed.
    fn reload(&mut self, config: Arc<Config>) {
        self.side.set_settings(config.connections.clone());
        self.bus.reload(&config, &self.waker);
        self.tick = config.channels.types.shortest_tick();
        (self.rates, self.login_work) = (rates(&config), config.limits.login_work);
        self.config = config;
    }

    /// Those who take too long to log in have to go.
    fn check_timeouts(&mut self, now: Time) {
        if self.check_timeouts_at.is_none_or(|at| now < at) {
            return;
        }
        let within = self.shared.admission.limits().login_within;
        let waiting: Vec<ConnKey> = self.unauthenticated.values().copied().collect();
        for key in waiting {
            if let Some(socket) = self.sockets.get(key)
                && socket.is_unauthenticated
                && now.since(socket.opened) >= within
            {
                self.end(now, key, CloseReason::AuthTimeout);
            }
        }
        let any = !self.unauthenticated.is_empty();
        self.check_timeouts_at = any.then(|| now + TIMEOUT_CHECKS);
    }

    /// Those whose messages wait for a server that cannot keep up are read more
    /// slowly.
    fn pause_senders(&mut self) {
        while let Some((key, control)) = self.side.poll_pause() {
            if self.sockets.get(key).is_some() {
                self.hold_back(key.slot(), control == ReadControl::Pause);
            }
        }
    }

    fn keep_log(&mut self, now: Time) {
        while let Some(event) = self.side.poll_event() {
            self.journal.write(now, &event);
        }
        self.journal.settle(now);
        while let Some(recording) = self.side.poll_recording() {
            if let Some(recordings) = &self.recordings {
                recordings.keep(recording);
            }
        }
    }

    fn answer(&mut self) {
        let Self {
            report,
            answered,
            side,
            bus,
            sockets,
            kcp_unproven,
            turns,
            busy_ns,
            ..
        } = self;
        // Not before the probe has been through the channels and back.
        report.answer(bus.returned_probe(), answered, || {
            let mut numbers = Numbers {
                connections: Some(side.counters()),
                turns: *turns,
                busy_ns: *busy_ns,
                waiting_bytes: sockets
                    .iter()
                    .map(|socket| side.waiting(socket.key) as u64)
                    .sum(),
                kcp_unproven_bytes: kcp_unproven.held_bytes() as u64,
                ..Numbers::default()
            };
            bus.report(&mut numbers);
            numbers
        });
    }
}

fn rates(config: &Config) -> Rates {
    Rates {
        messages_per_s: u64::from(config.limits.messages_per_second),
        bytes_per_s: config.limits.bytes_per_second,
    }
}
