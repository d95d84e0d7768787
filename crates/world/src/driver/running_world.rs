//! The course of a world: players come one by one, everything is measured, all
//! stand still and what they see is compared with the truth.

mod agenda;
mod leaving;
mod measurements;
mod peer;
mod returning;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_units::Time;

use crate::driver::backend::{ConnectionBackend, PeerId, PlayError};
use crate::driver::coordination::{Coordination, SingleProcess, Truth};
use crate::driver::shard::Shard;
use crate::measure::outcome::{Moment, Outcome};
use crate::player::{Player, SILENT_AT_MOST};
use crate::server::{Server, ServerCounts};
use crate::sim::scenario::Scenario;
use agenda::{Agenda, Duty, due_after};
use measurements::{Absent, Measurements};
pub use peer::Peer;

/// How long the gateway may take to give the world to the server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often views are compared again until the timeout.
const COMPARE_AGAIN: Duration = Duration::from_millis(500);

/// How often the others are listened to once there is nothing else to do.
const POLL_TIME: Duration = Duration::from_millis(10);

/// How long others may take to say where everybody is once all are to stop.
const LAST_WORD: Duration = Duration::from_secs(1);

/// How often progress is reported.
const NOTE_EVERY: Duration = Duration::from_millis(500);

/// The longest that nothing is looked after, so that a stop is noticed.
const NAP: Duration = Duration::from_millis(100);

/// Plays `scenario` on `backend`: players come one by one, then everything is
/// measured for the scenario's time, then all stand still and every view is
/// compared with the truth. `clock` is what servers and players read the time
/// from. `progress` is called every half second; when `stop` becomes true, what
/// was found so far is returned.
///
/// # Errors
///
/// [`PlayError`] where the gateway is not there or leaves; players that lose
/// their connections are counted instead.
pub fn play_on<W: ConnectionBackend>(
    scenario: &Arc<Scenario>,
    backend: W,
    clock: &Rc<Cell<Time>>,
    progress: &mut dyn FnMut(&Moment),
    stop: &AtomicBool,
) -> Result<Outcome, PlayError> {
    let mut alone = SingleProcess::new(progress, stop);
    play_shard(scenario, Shard::WHOLE, backend, clock, &mut alone)
}

/// Plays a shard of `scenario` on `backend`, in `coordination` of those who play the
/// others at the same time: see [`play_on`]. What is found is of this shard; the
/// others are sent it before the connections close.
///
/// # Errors
///
/// As [`play_on`], and [`PlayError::Coordination`] where one of the others is gone.
pub fn play_shard<W: ConnectionBackend>(
    scenario: &Arc<Scenario>,
    shard: Shard,
    backend: W,
    clock: &Rc<Cell<Time>>,
    coordination: &mut dyn Coordination,
) -> Result<Outcome, PlayError> {
    let mut world = RunningWorld::open(scenario, shard, backend, clock, coordination)?;
    world.fill()?;
    world.measure()?;
    world.compare()?;
    world.close()
}

/// The world while it is played.
struct RunningWorld<'a, W> {
    scenario: Arc<Scenario>,
    shard: Shard,
    backend: W,
    coordination: &'a mut dyn Coordination,
    /// By their numbers; all but one that owns GLOBAL alone simulate.
    servers: BTreeMap<u32, PeerId>,
    players: BTreeMap<u32, PeerId>,
    /// Servers whose connections have broken off: when, and why.
    absent: BTreeMap<u32, (Time, String)>,
    /// Players whose connections have broken off and who are not back.
    cut_off: BTreeMap<u32, Box<Player>>,
    /// What servers did whose connections have broken off.
    retired: ServerCounts,
    /// Nobody moves any more.
    frozen: bool,
    /// When those who lost their connections know everything again.
    settled_at: Time,
    agenda: Agenda,
    clock: Rc<Cell<Time>>,
    measurements: Measurements,
}

impl<'a, W: ConnectionBackend> RunningWorld<'a, W> {
    /// Connects the servers and waits until they have the world.
    fn open(
        scenario: &Arc<Scenario>,
        shard: Shard,
        backend: W,
        clock: &Rc<Cell<Time>>,
        coordination: &'a mut dyn Coordination,
    ) -> Result<Self, PlayError> {
        let mut world = Self {
            measurements: Measurements::new(scenario, backend.processor_time()),
            scenario: Arc::clone(scenario),
            shard,
            backend,
            coordination,
            servers: BTreeMap::new(),
            players: BTreeMap::new(),
            absent: BTreeMap::new(),
            cut_off: BTreeMap::new(),
            retired: ServerCounts::default(),
            frozen: false,
            settled_at: Time::ZERO,
            agenda: Agenda::default(),
            clock: Rc::clone(clock),
        };
        for (number, mut server) in (0..).zip(Server::all(scenario, clock)) {
            if !shard.servers.has(number) {
                continue;
            }
            if number == 0 {
                server.begin_world();
            }
            let id = world.connect_server(server)?;
            world.servers.insert(number, id);
            if number == 0 {
                // The others find the gateway as a world begins.
                world.wait_for_servers()?;
            }
        }
        world.wait_for_servers()?;
        world.backend.start()?;
        Ok(world)
    }

    /// Waits until all servers have what they are to own.
    fn wait_for_servers(&mut self) -> Result<(), PlayError> {
        let began = self.now();
        loop {
            if let Some((_, reason)) = self.backend.take_ended() {
                return Err(PlayError::NoWorld(reason));
            }
            let mut all_ready = true;
            for server in self.servers() {
                let ready = server.is_ready();
                all_ready &= ready.map_err(|why| PlayError::NoWorld(why.into()))?;
            }
            if all_ready {
                return Ok(());
            }
            if self.now().since(began) > TIMEOUT {
                let grid = match self.scenario.space {
                    Some(_) => ", or it was started without `-scc`",
                    None => "",
                };
                let why = format!("no answer; another server may own it{grid}");
                return Err(PlayError::NoWorld(why));
            }
            self.backend.poll(NAP)?;
        }
    }

    /// Lets the players in, one by one.
    fn fill(&mut self) -> Result<(), PlayError> {
        let servers = Server::count(&self.scenario);
        let (now, each) = (self.now(), self.scenario.server_frame());
        for &server in self.servers.keys() {
            // Spread evenly, as those of servers on their own machines are.
            let phase = each * server / servers;
            self.agenda.add(
                due_after(Time::ZERO + phase, each, now),
                Duty::ServerFrame(server),
            );
        }
        // Whoever takes the place of a shard that was lost comes later.
        let first_note = due_after(Time::ZERO + NOTE_EVERY, NOTE_EVERY, now);
        let noted_from = first_note - NOTE_EVERY;
        let nth = noted_from.since(Time::ZERO).as_nanos() / NOTE_EVERY.as_nanos();
        self.measurements.begin_notes(nth as u32, noted_from);
        self.agenda.add(first_note, Duty::Note);
        for player in self.shard.players.numbers(self.scenario.players) {
            self.agenda
                .add(self.scenario.joins_at(player), Duty::Join(player));
        }
        self.run_until(self.scenario.filled_at())
    }

    fn measure(&mut self) -> Result<(), PlayError> {
        self.measurements.forget(players(&self.backend));
        for &id in self.players.values() {
            if let Some((Peer::Player(player), _)) = self.backend.peer(id) {
                player.begin_measuring();
            }
        }
        for player in self.cut_off.values_mut() {
            player.begin_measuring();
        }
        self.backend.begin_measuring()?;
        self.collect()?;
        let now = self.now();
        let (counts, flow) = (self.server_counts(), self.backend.flow());
        let cpu = self.backend.processor_time();
        self.measurements.begin(now, counts, flow, cpu);
        self.run_until(self.scenario.filled_at() + self.scenario.duration.0)?;
        self.collect()?;
        let (now, cpu) = (self.now(), self.backend.processor_time());
        let own = self.shard.players.numbers(self.scenario.players);
        let absent = Absent::among(own, &self.players, &self.cut_off);
        let connected = players(&self.backend);
        self.measurements.end(now, connected, &absent, cpu);
        let (counts, flow) = (self.server_counts(), self.backend.flow());
        self.measurements.end_counts(counts, flow);
        self.measurements.gateway = self.backend.end_measuring()?;
        Ok(())
    }

    /// Lets everything stand still and compares every view with the truth.
    fn compare(&mut self) -> Result<(), PlayError> {
        self.frozen = true;
        for &id in self.servers.values() {
            if let Some((Peer::Server(server), _)) = self.backend.peer(id) {
                server.freeze();
            }
        }
        let mut until = self.now() + self.scenario.settles_within();
        let give_up = until + self.backend.timeout();
        let settled_by = give_up + TIMEOUT;
        loop {
            self.run_until(until)?;
            let settled = self.settled_at.min(settled_by);
            if until < settled && !self.coordination.is_stopped()? {
                until = settled;
                continue;
            }
            let Some(truth) = self.wait_for_truth()? else {
                return Ok(());
            };
            self.collect()?;
            let all_right = self.measurements.compare(&truth, players(&self.backend));
            if all_right || until >= give_up || self.coordination.is_stopped()? {
                return Ok(());
            }
            until += COMPARE_AGAIN;
        }
    }

    /// Plays on until it is known where all characters are; `None` where all
    /// are to stop and it is not known soon.
    fn wait_for_truth(&mut self) -> Result<Option<Truth>, PlayError> {
        let began = self.now();
        let mut stand_at = began;
        loop {
            let now = self.now();
            // Somebody may have come back while others were waited for.
            if now >= stand_at {
                self.stand()?;
                stand_at = now + COMPARE_AGAIN;
            }
            if let Some(truth) = self.coordination.truth()? {
                return Ok(Some(truth));
            }
            if self.coordination.is_stopped()? && now.since(began) > LAST_WORD {
                return Ok(None);
            }
            self.step(now + POLL_TIME)?;
        }
    }

    /// Says where the characters of the servers here are.
    fn stand(&mut self) -> Result<(), PlayError> {
        let own: Truth = self
            .servers()
            .filter_map(Server::crowd)
            .flat_map(|crowd| crowd.own().map(|(entity, body)| (entity, body.place)))
            .collect();
        // Where all are is the last that is said of it.
        self.collect()?;
        self.coordination.stand(own)
    }

    /// Reports what was found, and plays on until nobody needs this shard's
    /// connections any more. The gateway is left as it was found.
    fn close(mut self) -> Result<Outcome, PlayError> {
        self.measurements.input_digest(players(&self.backend));
        let partial = self.coordination.is_stopped()?;
        let outcome = self.measurements.take_outcome(self.now(), partial);
        self.coordination.found(&outcome)?;
        while !self.coordination.is_over()? {
            self.step(self.now() + POLL_TIME)?;
        }
        self.leave();
        Ok(outcome)
    }

    /// Does what is due and serves the connections until `end`.
    fn run_until(&mut self, end: Time) -> Result<(), PlayError> {
        while !self.coordination.is_stopped()? {
            let now = self.now();
            self.clock.set(now);
            if now >= end {
                break;
            }
            self.step(end)?;
        }
        Ok(())
    }

    /// Does what is due and serves the connections once, but for no longer
    /// than until `end`.
    fn step(&mut self, end: Time) -> Result<(), PlayError> {
        let now = self.now();
        self.clock.set(now);
        while let Some((due, duty)) = self.agenda.take(now) {
            self.perform(due, duty)?;
        }
        let now = self.now();
        let next = self.agenda.next_at().map_or(end, |next| next.min(end));
        self.backend.poll(next.since(now).min(NAP))?;
        self.clock.set(self.now());
        self.reap_closed();
        Ok(())
    }

    fn perform(&mut self, due: Time, duty: Duty) -> Result<(), PlayError> {
        match duty {
            Duty::ServerFrame(number) => self.server_frame(due, number)?,
            Duty::Join(number) => self.join(number)?,
            Duty::Return(number) => self.come_back(number),
            Duty::Revive(number) => self.revive(number)?,
            Duty::PlayerFrame(number) => self.player_frame(due, number),
            // Of those who stand still nothing new is sent: what is seen of
            // them only looks old.
            Duty::Look(_) if self.frozen => {}
            Duty::Look(number) => {
                let (now, id) = (self.now(), self.players[&number]);
                // Whoever is cut off sees what it saw last.
                if let Some(player) = self.cut_off.get(&number) {
                    self.measurements.look(player, now);
                } else if let Some((Peer::Player(player), _)) = self.backend.peer(id) {
                    self.measurements.look(player, now);
                }
                self.agenda
                    .add(due + self.measurements.look_every(), Duty::Look(number));
            }
            Duty::Note => {
                self.collect()?;
                let (flow, cpu) = (self.backend.flow(), self.backend.processor_time());
                let (now, counts) = (self.now(), self.server_counts());
                let came = self.players.len() as u32;
                let mut note = self
                    .measurements
                    .note(now, came, players(&self.backend), flow, cpu);
                note.moment.gateway_ticks = self.backend.gateway_ticks();
                let (measurements, backend) = (&self.measurements, &self.backend);
                let own = self.shard.players.numbers(self.scenario.players);
                let absent = Absent::among(own, &self.players, &self.cut_off);
                let so_far =
                    || measurements.so_far(now, players(backend), &absent, counts, flow, cpu);
                self.coordination.note(note, &so_far)?;
                self.agenda.add(due + NOTE_EVERY, Duty::Note);
            }
        }
        Ok(())
    }

    fn server_frame(&mut self, due: Time, number: u32) -> Result<(), PlayError> {
        let (began, id) = (self.now(), self.servers[&number]);
        self.clock.set(began);
        let has_claims = match self.backend.peer(id) {
            Some((Peer::Server(server), outbox)) if server.simulates() => {
                server.frame(began, outbox);
                server.has_claims()
            }
            _ => return Ok(()),
        };
        if has_claims {
            // Whom it lets go of is known before the gateway learns it and
            // gives them to another, even if this process ends in between.
            self.report()?;
        }
        self.backend.flush(id);
        let ended = self.now();
        let each = self.scenario.server_frame();
        self.measurements
            .frame(began.since(due), ended.since(began));
        let mut next = due + each;
        // A frame whose time has gone by altogether is left out.
        while next + each <= ended {
            next += each;
            self.measurements.miss_frame();
        }
        self.agenda.add(next, Duty::ServerFrame(number));
        Ok(())
    }

    fn join(&mut self, number: u32) -> Result<(), PlayError> {
        if !self.let_in(number)? {
            return Ok(());
        }
        let now = self.now();
        // Spread evenly, so that ages are sampled at all times alike.
        let observers = self.scenario.observers.clamp(1, self.scenario.players);
        let phase = f64::from(number % observers) / f64::from(observers);
        let first_look = now + self.measurements.look_every().mul_f64(phase);
        self.agenda.add(first_look, Duty::Look(number));
        Ok(())
    }

    fn player_frame(&mut self, due: Time, number: u32) {
        let (now, id) = (self.now(), self.players[&number]);
        let Some((Peer::Player(player), outbox)) = self.backend.peer(id) else {
            return;
        };
        // Nothing comes where everybody stands still.
        if !self.frozen && player.is_cut_off(now) {
            let seconds = SILENT_AT_MOST.as_secs();
            let why = format!("it received nothing for {seconds} s");
            self.backend.give_up(id, why);
            return;
        }
        player.frame(now, outbox);
        self.backend.flush(id);
        self.agenda.add(
            due + self.scenario.player_frame(),
            Duty::PlayerFrame(number),
        );
    }

    /// Has what all servers say of whom they simulate held against each other.
    fn report(&mut self) -> Result<(), PlayError> {
        for &id in self.servers.values() {
            if let Some((Peer::Server(server), _)) = self.backend.peer(id) {
                self.measurements.claims(server.take_claims());
            }
        }
        let own = self.measurements.report(self.backend.now());
        let said = self.coordination.report(own)?;
        self.measurements.judge(said);
        Ok(())
    }

    /// Asks servers and players for what they noted since the last time.
    fn collect(&mut self) -> Result<(), PlayError> {
        self.report()?;
        if self.scenario.space.is_some() {
            for &id in self.players.values() {
                if let Some((Peer::Player(player), _)) = self.backend.peer(id) {
                    self.measurements
                        .handover_gaps(&player.take_handover_gaps());
                }
            }
        }
        Ok(())
    }

    fn server_counts(&self) -> ServerCounts {
        let mut sum = self.retired;
        for server in self.servers() {
            sum += server.counts();
        }
        sum
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        self.backend.peers().filter_map(Peer::server)
    }

    fn now(&self) -> Time {
        self.backend.now()
    }
}

/// The players among those who stand.
fn players<W: ConnectionBackend>(backend: &W) -> impl Iterator<Item = &Player> {
    backend.peers().filter_map(Peer::player)
}
