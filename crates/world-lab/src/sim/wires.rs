//! Connections to a gateway in virtual time, and the loop in which it passes.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use lagometer_client::{Outbox, Session, Settings};
use lagometer_gateway::core::{CloseReason, ConnKey, Peer as Kind, ReadControl};
use lagometer_link::{Direction, Link};
use lagometer_units::Time;
use lagometer_world::{End, Flow, GatewayFigures, Peer, PeerId, PlayError, Scenario, Wires};

use super::flight::Flights;
use super::gateway::{Gateway, GatewayError};
use super::half;
use super::road::{Road, Tally, Weather};
use crate::PlayerTransport;

/// How long a view may take to become right beyond what a calm road takes:
/// several of a transport's longest waits before it sends again.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The least time between two deadlines of one end.
const FINEST: Duration = Duration::from_micros(1);

/// Connections in virtual time.
pub(super) struct SimWires<'a> {
    transport: PlayerTransport,
    seed: u64,
    link: &'a dyn Fn(u32, Time) -> Link,
    /// What servers and players read the time from.
    clock: Rc<Cell<Time>>,
    /// The instant that is told as zero.
    zero: Time,
    now: Time,
    gateway: Gateway,
    seats: Vec<Option<Seat>>,
    /// The seat of each of the gateway's connections, by its slot.
    by_slot: Vec<usize>,
    flights: Flights,
    /// Ends of roads by when they are due.
    due: BTreeSet<(Time, usize, Direction)>,
    ended: VecDeque<(Peer, String)>,
    tally: Rc<Cell<Tally>>,
    flow: Flow,
    /// When measuring began, and the gateway's messages then.
    measuring: (Time, (u64, u64)),
    scratch: Vec<u8>,
}

/// One connection.
struct Seat {
    key: ConnKey,
    session: Session,
    peer: Peer,
    /// A player's; game servers are beside the gateway.
    road: Option<(u32, Box<Road>)>,
}

impl<'a> SimWires<'a> {
    pub(super) fn new(
        transport: PlayerTransport,
        scenario: &Scenario,
        link: &'a dyn Fn(u32, Time) -> Link,
        clock: Rc<Cell<Time>>,
        tally: Rc<Cell<Tally>>,
    ) -> Result<Self, GatewayError> {
        Ok(Self {
            transport,
            seed: scenario.seed,
            link,
            clock,
            zero: Time::ZERO,
            now: Time::ZERO,
            gateway: Gateway::new(scenario.space.as_ref())?,
            seats: Vec::new(),
            by_slot: Vec::new(),
            flights: Flights::default(),
            due: BTreeSet::new(),
            ended: VecDeque::new(),
            tally,
            flow: Flow::default(),
            measuring: (Time::ZERO, (0, 0)),
            scratch: Vec::new(),
        })
    }

    /// Does what is due now, and what follows from it at once.
    fn play_instant(&mut self) {
        let now = self.now;
        while let Some(flight) = self.flights.pop_due(now) {
            let (seat, direction) = (flight.seat, flight.direction);
            let arrived = self.on_road(seat, |road, weather| road.arrive(&flight, weather));
            self.flights.recycle(flight.bytes);
            if arrived == Some(true) {
                self.serve(seat, direction);
            }
        }
        while let Some(&(at, seat, direction)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.on_road(seat, |road, weather| {
                road.noted[direction.index()] = None;
                road.tick(direction, weather);
            });
            // The end that sends in one direction is where the other arrives.
            self.serve(seat, opposite(direction));
        }
        self.gateway.handle_deadline(now);
        self.settle();
    }

    /// Serves the end to which packets of `direction` come.
    fn serve(&mut self, seat: usize, direction: Direction) {
        match direction {
            Direction::Up => self.serve_gateway(seat),
            Direction::Down => self.serve_player(seat),
        }
    }

    fn serve_player(&mut self, id: usize) {
        let Some(Some(Seat {
            session,
            peer,
            road: Some((_, road)),
            ..
        })) = self.seats.get_mut(id)
        else {
            return;
        };
        let mut tally = self.tally.get();
        let mut weather = Weather {
            now: self.now,
            flights: &mut self.flights,
            tally: &mut tally,
        };
        let served = road.serve_player(session, peer, &mut weather);
        self.tally.set(tally);
        match served {
            Ok((received, sent)) => {
                self.flow.received_bytes += received;
                self.flow.sent_bytes += sent;
                self.note(id);
            }
            Err(why) => self.end(id, CloseReason::PeerClosed, why),
        }
    }

    fn serve_gateway(&mut self, id: usize) {
        let Some(Some(Seat {
            key,
            road: Some((_, road)),
            ..
        })) = self.seats.get_mut(id)
        else {
            return;
        };
        let mut tally = self.tally.get();
        let mut weather = Weather {
            now: self.now,
            flights: &mut self.flights,
            tally: &mut tally,
        };
        let over = road.serve_gateway(
            &mut self.gateway.side,
            *key,
            &mut self.scratch,
            &mut weather,
        );
        self.tally.set(tally);
        match over {
            None => self.note(id),
            Some(why) => self.end(id, why, why.to_string()),
        }
    }

    /// Lets the gateway and whoever is beside it talk until nobody has more to
    /// say at this instant.
    fn settle(&mut self) {
        loop {
            let mut moved = self.gateway.exchange(self.now);
            while let Some(key) = self.gateway.side.poll_writable() {
                moved = true;
                if let Some(&seat) = self.by_slot.get(key.slot()) {
                    self.write(seat, key);
                }
            }
            while let Some((key, control)) = self.gateway.side.poll_pause() {
                moved = true;
                if let Some(&seat) = self.by_slot.get(key.slot()) {
                    self.pause(seat, key, control);
                }
            }
            while let Some((key, why)) = self.gateway.side.poll_close() {
                moved = true;
                if let Some(&seat) = self.by_slot.get(key.slot()) {
                    self.end(seat, why, format!("the gateway has closed it: {why}"));
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
        if let Some(Some(seat)) = self.seats.get_mut(id)
            && seat.key == key
            && let Some((_, road)) = &mut seat.road
        {
            road.is_paused = control == ReadControl::Pause;
            if !road.is_paused {
                self.serve_gateway(id);
            }
        }
    }

    /// Writes what the gateway has for a connection.
    fn write(&mut self, id: usize, key: ConnKey) {
        let Some(Some(seat)) = self
            .seats
            .get_mut(id)
            .filter(|seat| seat.as_ref().is_some_and(|seat| seat.key == key))
        else {
            return;
        };
        let Some((_, road)) = &mut seat.road else {
            self.write_beside(id);
            return;
        };
        let mut tally = self.tally.get();
        let mut weather = Weather {
            now: self.now,
            flights: &mut self.flights,
            tally: &mut tally,
        };
        let over = road.write_gateway(&mut self.gateway.side, key, &mut self.scratch, &mut weather);
        self.tally.set(tally);
        match over {
            None => self.note(id),
            Some(why) => self.end(id, why, why.to_string()),
        }
    }

    /// Hands all there is to the peer beside the gateway, and takes its answer.
    fn write_beside(&mut self, id: usize) {
        let Some(Some(seat)) = self.seats.get_mut(id) else {
            return;
        };
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        for slice in self.gateway.side.output(seat.key) {
            bytes.extend_from_slice(slice);
        }
        self.gateway.side.wrote(self.now, seat.key, bytes.len());
        self.flow.received_bytes += bytes.len() as u64;
        let received = seat.session.receive(&bytes, &mut seat.peer);
        self.scratch = bytes;
        match received {
            Ok(()) => self.take_from_beside(id),
            Err(why) => self.end(id, CloseReason::PeerClosed, why.to_string()),
        }
    }

    /// Takes what the peer beside the gateway has to say.
    fn take_from_beside(&mut self, id: usize) {
        let Some(Some(seat)) = self.seats.get_mut(id) else {
            return;
        };
        let outbox = seat.session.outbox();
        let pending = outbox.pending();
        let bytes = pending.len();
        self.gateway.side.receive(self.now, seat.key, pending);
        outbox.sent(bytes);
        self.flow.sent_bytes += bytes as u64;
    }

    /// Does something on a player's road.
    fn on_road<T>(
        &mut self,
        id: usize,
        act: impl FnOnce(&mut Road, &mut Weather<'_>) -> T,
    ) -> Option<T> {
        let Some(Some(Seat {
            road: Some((_, road)),
            ..
        })) = self.seats.get_mut(id)
        else {
            return None;
        };
        let mut tally = self.tally.get();
        let mut weather = Weather {
            now: self.now,
            flights: &mut self.flights,
            tally: &mut tally,
        };
        let done = act(road, &mut weather);
        self.tally.set(tally);
        Some(done)
    }

    /// Notes when a road's ends are due.
    fn note(&mut self, id: usize) {
        let Some(Some(Seat {
            road: Some((_, road)),
            ..
        })) = self.seats.get_mut(id)
        else {
            return;
        };
        for direction in Direction::BOTH {
            // What is due at once has been done: the finest clock among the
            // transports counts microseconds.
            let deadline = road
                .next_deadline(direction, self.now)
                .map(|at| at.max(self.now + FINEST));
            let noted = &mut road.noted[direction.index()];
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

    /// A connection is over, for both of its ends at once.
    fn end(&mut self, id: usize, why: CloseReason, told: String) {
        let Some(seat) = self.seats.get_mut(id).and_then(Option::take) else {
            return;
        };
        if let Some((_, road)) = &seat.road {
            for direction in Direction::BOTH {
                if let Some(at) = road.noted[direction.index()] {
                    self.due.remove(&(at, id, direction));
                }
            }
        }
        self.gateway.close(seat.key, why);
        self.ended.push_back((seat.peer, told));
    }

    /// The next instant at which anything happens by itself.
    fn next_event(&self) -> Option<Time> {
        [
            self.flights.next_arrival(),
            self.due.first().map(|&(at, ..)| at),
            self.gateway.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn tell_time(&self) {
        self.clock.set(Time::ZERO + self.now.since(self.zero));
    }
}

impl Wires for SimWires<'_> {
    fn start(&mut self) -> Result<(), PlayError> {
        self.zero = self.now;
        self.tell_time();
        Ok(())
    }

    fn now(&self) -> Time {
        Time::ZERO + self.now.since(self.zero)
    }

    fn connect(&mut self, end: End, settings: Settings, peer: Peer) -> Result<PeerId, PlayError> {
        let refused = |why: String| PlayError::Connect {
            at: "the gateway in virtual time".to_owned(),
            source: io::Error::other(why),
        };
        let id = self.seats.len();
        let (kind, road) = match end {
            End::Server => (Kind::Server, None),
            End::Player(number) => {
                let seed = self.seed ^ (u64::from(number) << 20);
                let ends = half::pair(self.transport, seed, number + 1, self.now)
                    .map_err(|error| refused(error.to_string()))?;
                let link = (self.link)(number, Time::MAX);
                (
                    Kind::Client,
                    Some((number, Box::new(Road::new(id, link, ends)))),
                )
            }
        };
        let key = self
            .gateway
            .open(self.now, kind)
            .ok_or_else(|| refused("it lets nobody in".to_owned()))?;
        if self.by_slot.len() <= key.slot() {
            self.by_slot.resize(key.slot() + 1, usize::MAX);
        }
        self.by_slot[key.slot()] = id;
        self.seats.push(Some(Seat {
            key,
            session: Session::new(settings),
            peer,
            road,
        }));
        self.on_road(id, |road, weather| road.send(Direction::Up, weather));
        self.note(id);
        Ok(PeerId(id))
    }

    fn poll(&mut self, at_most: Duration) -> Result<(), PlayError> {
        let end = self.now + at_most;
        // What was put in since the last time.
        self.settle();
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.tell_time();
            self.play_instant();
        }
        self.now = end;
        self.tell_time();
        Ok(())
    }

    fn peer(&mut self, id: PeerId) -> Option<(&mut Peer, &mut Outbox)> {
        let seat = self.seats.get_mut(id.0)?.as_mut()?;
        Some((&mut seat.peer, seat.session.outbox()))
    }

    fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.seats.iter().flatten().map(|seat| &seat.peer)
    }

    fn flush(&mut self, id: PeerId) {
        let Some(Some(seat)) = self.seats.get_mut(id.0) else {
            return;
        };
        let Some((_, road)) = &mut seat.road else {
            self.take_from_beside(id.0);
            return;
        };
        let mut tally = self.tally.get();
        let mut weather = Weather {
            now: self.now,
            flights: &mut self.flights,
            tally: &mut tally,
        };
        let written = road.write_player(seat.session.outbox(), &mut weather);
        self.tally.set(tally);
        match written {
            Ok(bytes) => {
                self.flow.sent_bytes += bytes;
                self.note(id.0);
            }
            Err(why) => self.end(id.0, CloseReason::PeerClosed, why),
        }
    }

    fn hang_up(&mut self, id: PeerId) {
        let why = CloseReason::PeerClosed;
        self.end(id.0, why, why.to_string());
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
        for seat in self.seats.iter_mut().flatten() {
            if let Some((number, road)) = &mut seat.road {
                // What is on its way arrives as the calm link said.
                road.link = (self.link)(*number, self.now);
            }
        }
        let mut tally = self.tally.get();
        tally.begin();
        self.tally.set(tally);
        self.measuring = (self.now, self.gateway.messages());
        Ok(())
    }

    fn end_measuring(&mut self) -> Option<GatewayFigures> {
        let (began, (taken_before, sent_before)) = self.measuring;
        let (taken, sent) = self.gateway.messages();
        let mut tally = self.tally.get();
        tally.end();
        self.tally.set(tally);
        let seconds = self.now.since(began).as_secs_f64().max(1e-9);
        Some(GatewayFigures {
            messages_in_per_s: Some((taken - taken_before) as f64 / seconds),
            messages_out_per_s: Some((sent - sent_before) as f64 / seconds),
            ..GatewayFigures::default()
        })
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}

/// The other direction.
const fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
    }
}
