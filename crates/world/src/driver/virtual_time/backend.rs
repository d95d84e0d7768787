//! Connections to a gateway in virtual time, and the loop in which it passes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use lagometer_client::{Outbox, Session, Settings};
use lagometer_gateway::core::{CloseReason, ConnKey, Peer as Kind, ReadControl};
use lagometer_link::{Direction, Link};
use lagometer_results::GatewayMetrics;
use lagometer_testbed::{Capture, EventDriven, PathStats, Simulated, run_until};
use lagometer_units::Time;

use super::gateway::{Gateway, GatewayError};
use super::half;
use super::path::PlayerPath;
use crate::driver::player_transport::PlayerStream;
use crate::{ConnectionBackend, End, Flow, Peer, PeerId, PlayError, PlayerTransport, Scenario};

/// How long a view may take to become right beyond what a calm path takes:
/// several of a transport's longest waits before it sends again.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The least time between two deadlines of one end.
const FINEST: Duration = Duration::from_micros(1);

/// Connections in virtual time.
pub(super) struct SimBackend<'a> {
    transport: PlayerTransport,
    seed: u64,
    link: &'a dyn Fn(u32, Time) -> Link,
    /// What servers and players read the time from.
    clock: Rc<Cell<Time>>,
    /// The instant that counts as zero.
    zero: Time,
    gateway: Gateway,
    connections: Vec<Option<SimConnection>>,
    /// The index of each of the gateway's connections, by its slot.
    by_slot: Vec<usize>,
    network: Simulated,
    /// Ends of paths by when they are due.
    due: BTreeSet<(Time, usize, Direction)>,
    ended: VecDeque<(Peer, String)>,
    measured: Rc<Cell<PathStats>>,
    flow: Flow,
    /// When measuring began, if it has, and the gateway's messages then.
    measuring: Option<(Time, (u64, u64))>,
    scratch: Vec<u8>,
}

/// One connection.
struct SimConnection {
    key: ConnKey,
    session: Session,
    peer: Peer,
    /// A player's; game servers are beside the gateway.
    path: Option<(u32, Box<PlayerPath>)>,
}

impl<'a> SimBackend<'a> {
    pub(super) fn new(
        transport: PlayerTransport,
        scenario: &Scenario,
        link: &'a dyn Fn(u32, Time) -> Link,
        capture: Rc<RefCell<Option<Capture>>>,
        clock: Rc<Cell<Time>>,
        measured: Rc<Cell<PathStats>>,
    ) -> Result<Self, GatewayError> {
        Ok(Self {
            transport,
            seed: scenario.seed,
            link,
            clock,
            zero: Time::ZERO,
            gateway: Gateway::new(scenario.space.as_ref())?,
            connections: Vec::new(),
            by_slot: Vec::new(),
            network: Simulated::new(capture),
            due: BTreeSet::new(),
            ended: VecDeque::new(),
            measured,
            flow: Flow::default(),
            measuring: None,
            scratch: Vec::new(),
        })
    }

    /// Serves the end to which packets of `direction` come.
    fn serve(&mut self, id: usize, direction: Direction) {
        match direction {
            Direction::Up => self.serve_gateway(id),
            Direction::Down => self.serve_player(id),
        }
    }

    fn serve_player(&mut self, id: usize) {
        let Some(Some(SimConnection {
            session,
            peer,
            path: Some((_, path)),
            ..
        })) = self.connections.get_mut(id)
        else {
            return;
        };
        let served = path.serve_player(session, peer, &mut self.network);
        match served {
            Ok((received, sent)) => {
                self.flow.received_bytes += received;
                self.flow.sent_bytes += sent;
                self.note(id);
            }
            Err(why) => self.end(id, CloseReason::PeerClosed, why.to_string()),
        }
    }

    fn serve_gateway(&mut self, id: usize) {
        let Some(Some(SimConnection {
            key,
            path: Some((_, path)),
            ..
        })) = self.connections.get_mut(id)
        else {
            return;
        };
        let over = path.serve_gateway(
            &mut self.gateway.side,
            *key,
            &mut self.scratch,
            &mut self.network,
        );
        match over {
            None => self.note(id),
            Some(why) => self.end_by_gateway(id, why),
        }
    }

    /// Lets the gateway and whoever is beside it talk until nobody has more to
    /// say at this instant.
    fn settle(&mut self) {
        loop {
            let mut moved = self.gateway.exchange(self.network.now);
            while let Some(key) = self.gateway.side.poll_writable() {
                moved = true;
                if let Some(&connection) = self.by_slot.get(key.slot()) {
                    self.write(connection, key);
                }
            }
            while let Some((key, control)) = self.gateway.side.poll_pause() {
                moved = true;
                if let Some(&connection) = self.by_slot.get(key.slot()) {
                    self.pause(connection, key, control);
                }
            }
            while let Some((key, why)) = self.gateway.side.poll_close() {
                moved = true;
                if let Some(&connection) = self.by_slot.get(key.slot()) {
                    self.end_by_gateway(connection, why);
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Has the gateway read nothing of a player for a while, or go on. What
    /// arrives meanwhile fills the transport's window, as with a real gateway.
    fn pause(&mut self, id: usize, key: ConnKey, control: ReadControl) {
        if let Some(Some(connection)) = self.connections.get_mut(id)
            && connection.key == key
            && let Some((_, path)) = &mut connection.path
        {
            path.is_paused = control == ReadControl::Pause;
            if !path.is_paused {
                self.serve_gateway(id);
            }
        }
    }

    /// Writes what the gateway has for a connection.
    fn write(&mut self, id: usize, key: ConnKey) {
        let Some(Some(connection)) = self.connections.get_mut(id).filter(|connection| {
            connection
                .as_ref()
                .is_some_and(|connection| connection.key == key)
        }) else {
            return;
        };
        let Some((_, path)) = &mut connection.path else {
            self.write_beside(id);
            return;
        };
        let over = path.write_gateway(
            &mut self.gateway.side,
            key,
            &mut self.scratch,
            &mut self.network,
        );
        match over {
            None => self.note(id),
            Some(why) => self.end_by_gateway(id, why),
        }
    }

    /// Hands all there is to the peer beside the gateway, and takes its answer.
    fn write_beside(&mut self, id: usize) {
        let Some(Some(connection)) = self.connections.get_mut(id) else {
            return;
        };
        self.gateway
            .take_output(self.network.now, connection.key, &mut self.scratch);
        self.flow.received_bytes += self.scratch.len() as u64;
        let received = connection
            .session
            .receive(&self.scratch, &mut connection.peer);
        match received {
            Ok(()) => self.take_from_beside(id),
            Err(why) => self.end(id, CloseReason::PeerClosed, why.to_string()),
        }
    }

    /// Takes what the peer beside the gateway has to say.
    fn take_from_beside(&mut self, id: usize) {
        let Some(Some(connection)) = self.connections.get_mut(id) else {
            return;
        };
        let outbox = connection.session.outbox();
        let bytes = self.gateway.read(self.network.now, connection.key, outbox);
        self.flow.sent_bytes += bytes;
    }

    /// Does something on a player's path.
    fn with_path<T>(
        &mut self,
        id: usize,
        act: impl FnOnce(&mut PlayerPath, &mut Simulated) -> T,
    ) -> Option<T> {
        let connection = self.connections.get_mut(id)?.as_mut()?;
        let (_, path) = connection.path.as_mut()?;
        Some(act(path, &mut self.network))
    }

    /// Notes when a path's ends are due.
    fn note(&mut self, id: usize) {
        let Some(Some(SimConnection {
            path: Some((_, path)),
            ..
        })) = self.connections.get_mut(id)
        else {
            return;
        };
        for direction in Direction::BOTH {
            // What is due at once has been done: the finest clock among the
            // transports counts microseconds.
            let deadline = path
                .next_deadline(direction, self.network.now)
                .map(|at| at.max(self.network.now + FINEST));
            let noted = &mut path.noted[direction.index()];
            if *noted == deadline {
                continue;
            }
            if let Some(at) = noted.take() {
                self.due.remove(&(at, id, direction));
            }
            *noted = deadline;
            self.due.extend(deadline.map(|at| (at, id, direction)));
        }
    }

    /// The gateway has ended a connection. TCP says so to the player; in KCP nothing does,
    /// so it goes on with a gateway that has forgotten it, until it gives that up.
    fn end_by_gateway(&mut self, id: usize, why: CloseReason) {
        let is_kcp = matches!(self.transport.stream, PlayerStream::Kcp(_));
        match self.connections.get_mut(id) {
            Some(Some(SimConnection {
                key,
                path: Some((_, path)),
                ..
            })) if is_kcp => {
                path.is_dropped = true;
                self.gateway.close(*key, why);
                self.note(id);
            }
            _ => self.end(id, why, format!("the gateway has closed it: {why}")),
        }
    }

    /// A connection is over, for both of its ends at once.
    fn end(&mut self, id: usize, why: CloseReason, reason: String) {
        let Some(connection) = self.connections.get_mut(id).and_then(Option::take) else {
            return;
        };
        if let Some((_, path)) = &connection.path {
            for direction in Direction::BOTH {
                if let Some(at) = path.noted[direction.index()] {
                    self.due.remove(&(at, id, direction));
                }
            }
        }
        self.gateway.close(connection.key, why);
        self.ended.push_back((connection.peer, reason));
    }

    /// Moves on to `now`.
    fn set_time(&mut self, now: Time) {
        self.network.now = now;
        self.clock
            .set(Time::ZERO + self.network.now.since(self.zero));
    }
}

impl EventDriven for SimBackend<'_> {
    fn now(&self) -> Time {
        self.network.now
    }

    fn next_event(&self) -> Option<Time> {
        [
            self.network.in_flight.next_arrival(),
            self.due.first().map(|&(at, ..)| at),
            self.gateway.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what is due, and what follows from it at once.
    fn play_instant(&mut self, now: Time) {
        self.set_time(now);
        while let Some(packet) = self.network.in_flight.pop_due(now) {
            let (id, direction) = (packet.owner, packet.direction);
            let arrived = self.with_path(id, |path, network| path.arrive(&packet, network));
            self.network.in_flight.recycle(packet.bytes);
            if arrived == Some(true) {
                self.serve(id, direction);
            }
        }
        while let Some(&(at, id, direction)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.with_path(id, |path, network| {
                path.noted[direction.index()] = None;
                path.tick(direction, network);
            });
            // The end that sends in one direction is where the other arrives.
            self.serve(id, direction.opposite());
        }
        self.gateway.handle_deadline(now);
        self.settle();
    }

    fn pass_to(&mut self, until: Time) {
        self.set_time(until);
    }
}

impl ConnectionBackend for SimBackend<'_> {
    fn start(&mut self) -> Result<(), PlayError> {
        self.zero = self.network.now;
        self.set_time(self.zero);
        Ok(())
    }

    fn now(&self) -> Time {
        Time::ZERO + self.network.now.since(self.zero)
    }

    fn connect(&mut self, end: End, settings: Settings, peer: Peer) -> Result<PeerId, PlayError> {
        let refused = |why: String| PlayError::Connect {
            at: "the gateway in virtual time".to_owned(),
            source: io::Error::other(why),
        };
        let id = self.connections.len();
        let (kind, path) = match end {
            End::Server => (Kind::Server, None),
            End::Player(number) => {
                let seed = self.seed ^ (u64::from(number) << 20);
                let ends = half::pair(self.transport, seed, number + 1, self.network.now)
                    .map_err(|error| refused(error.to_string()))?;
                // Who comes back finds the link as it would be by then.
                let starts = self.measuring.map_or(Time::MAX, |(began, _)| began);
                let link = (self.link)(number, starts);
                (
                    Kind::Client,
                    Some((number, Box::new(PlayerPath::new(id, number, link, ends)))),
                )
            }
        };
        let key = self
            .gateway
            .open(self.network.now, kind)
            .ok_or_else(|| refused("it lets nobody in".to_owned()))?;
        if self.by_slot.len() <= key.slot() {
            self.by_slot.resize(key.slot() + 1, usize::MAX);
        }
        self.by_slot[key.slot()] = id;
        self.connections.push(Some(SimConnection {
            key,
            session: Session::new(settings),
            peer,
            path,
        }));
        self.with_path(id, |path, network| path.send(Direction::Up, network));
        self.note(id);
        Ok(PeerId(id))
    }

    fn poll(&mut self, at_most: Duration) -> Result<(), PlayError> {
        let end = self.network.now + at_most;
        // What was put in since the last time.
        self.settle();
        run_until(self, end);
        Ok(())
    }

    fn peer(&mut self, id: PeerId) -> Option<(&mut Peer, &mut Outbox)> {
        let connection = self.connections.get_mut(id.0)?.as_mut()?;
        Some((&mut connection.peer, connection.session.outbox()))
    }

    fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.connections
            .iter()
            .flatten()
            .map(|connection| &connection.peer)
    }

    fn flush(&mut self, id: PeerId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0) else {
            return;
        };
        let Some((_, path)) = &mut connection.path else {
            self.take_from_beside(id.0);
            return;
        };
        let written = path.write_player(connection.session.outbox(), &mut self.network);
        match written {
            Ok(bytes) => {
                self.flow.sent_bytes += bytes;
                self.note(id.0);
            }
            Err(why) => self.end(id.0, CloseReason::PeerClosed, why.to_string()),
        }
    }

    fn hang_up(&mut self, id: PeerId) {
        let why = CloseReason::PeerClosed;
        self.end(id.0, why, why.to_string());
    }

    fn give_up(&mut self, id: PeerId, why: String) {
        self.end(id.0, CloseReason::PeerClosed, why);
    }

    fn take_ended(&mut self) -> Option<(Peer, String)> {
        self.ended.pop_front()
    }

    fn flow(&self) -> Flow {
        self.flow
    }

    fn processor_time(&self) -> Option<Duration> {
        None
    }

    fn begin_measuring(&mut self) -> Result<(), PlayError> {
        for connection in self.connections.iter_mut().flatten() {
            if let Some((number, path)) = &mut connection.path {
                // What is on its way arrives as the calm link said.
                path.link = (self.link)(*number, self.network.now);
            }
        }
        self.network.begin_measuring();
        self.measuring = Some((self.network.now, self.gateway.messages()));
        Ok(())
    }

    fn end_measuring(&mut self) -> Result<Option<GatewayMetrics>, PlayError> {
        let (began, (taken_before, sent_before)) =
            (self.measuring).unwrap_or((self.network.now, self.gateway.messages()));
        let (taken, sent) = self.gateway.messages();
        self.measured.set(self.network.measured());
        let seconds = self.network.now.since(began).as_secs_f64().max(1e-9);
        Ok(Some(GatewayMetrics {
            messages_in_per_s: Some((taken - taken_before) as f64 / seconds),
            messages_out_per_s: Some((sent - sent_before) as f64 / seconds),
            ..GatewayMetrics::default()
        }))
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}
